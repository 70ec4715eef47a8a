-- SPDX-License-Identifier: MIT
-- compressed-tensors, formats 'pack-quantized' and 'int-quantized': weight_packed (outputs, words of inputs) has signed codes plus half of their
-- range, one after the other also across words, `weight` has them in int8; weight_scale is (outputs, groups), with one group for channels; zero points are there for asymmetric ones, packed
-- along the outputs or as int8; weight_g_idx has the group of each input (actorder 'group'). w = (q - zero) * scale. Inputs of 8 bits (w8a8) have
-- scales that are found at each call, or input_scale and input_zero_point of the whole tensor.
local _, internal = ...
local compressed = {method = 'compressed-tensors'}

local FORMATS = {['pack-quantized'] = 'packed', ['int-quantized'] = 'plain', ['naive-quantized'] = 'plain'}

-- The number of bits that goes with words of so many inputs: that of a group of the configuration.
local function bits_of(p, layer, words, inputs, known)
	for _, bits in ipairs(known) do
		if words == (inputs * bits + 31) // 32 then return bits end
	end
	p:fail('%s.weight_packed: wanted words of %s bits for %d inputs, got %d', layer, table.concat(known, ' or '), inputs, words)
end

-- The number of inputs of a group, by that of the groups.
local function group_of(p, layer, inputs, groups, sizes)
	if groups == 1 then return math.max(1, inputs) end
	for _, size in ipairs(sizes) do
		if groups == (inputs + size - 1) // size then return size end
	end
	p:fail('%s.weight_scale: wanted a scale for each output or for groups of %s inputs, got %d for %d inputs', layer,
		#sizes > 0 and table.concat(sizes, ' or ') or 'no', groups, inputs)
end

local function packed_layer(p, layer, known)
	local words, shape = p:take(layer, 'weight_packed', 2), p:take(layer, 'weight_shape', 1)
	if shape:size(1) ~= 2 or quant.dtype(shape:dtype()).float then p:fail('%s.weight_shape: wanted 2 integers, got %s', layer, internal.describe(shape)) end
	local outputs, inputs = shape[1]:item(), shape[2]:item()
	if outputs ~= words:size(1) or inputs < 1 or inputs > words:size(2) * 16 then
		p:fail('%s.weight_shape: wanted the sizes of the weight that %s has, got %d, %d', layer, internal.describe(words), outputs, inputs)
	end
	local bits = bits_of(p, layer, words:size(2), inputs, known.bits)
	local how = {order = 'stream', bits = bits, axis = 2, count = inputs, offset = 1 << (bits - 1)}
	local codes, zero = p:unpack(layer, 'weight_packed', words, how), p:take(layer, 'weight_zero_point')
	if zero and zero:dim() == 2 then
		how.axis, how.count = 1, outputs
		zero = p:unpack(layer, 'weight_zero_point', zero, how)
	end
	return codes, bits, zero, shape:dtype()
end

local function plain_layer(p, layer)
	local codes = p:take(layer, 'weight', 2)
	local info = quant.dtype(codes:dtype())
	if info.kind ~= 'int' or info.bits ~= 8 then p:fail('%s.weight: wanted int8, got %s', layer, internal.describe(codes)) end
	return codes, 8, p:take(layer, 'weight_zero_point')
end

-- How the inputs of a layer become codes: what nn/base/modes.lua takes; nil: they stay floats. kinds: how the file has it.
local function input_of(p, layer, a, kinds)
	if not a then return nil end
	local scheme = a.symmetric and 'symmetric' or 'asymmetric'
	if a.dynamic then return {mode = 'dynamic', rows = a.strategy, input = quant.spec {dtype = 'int8', scheme = scheme, quant_min = -128}} end
	local scale, zero = p:take(layer, 'input_scale'), p:take(layer, 'input_zero_point')
	if not scale or scale:nelem() ~= 1 or not quant.dtype(scale:dtype()).float then
		p:fail('%s.input_scale: wanted one number, got %s', layer, scale and internal.describe(scale) or 'none')
	end
	if zero and (zero:nelem() ~= 1 or quant.dtype(zero:dtype()).float) then p:fail('%s.input_zero_point: wanted one integer, got %s', layer, internal.describe(zero)) end
	if not a.symmetric and not zero then p:fail('%s.input_zero_point: wanted one integer, got none', layer) end
	kinds.input_scale, kinds.input_zero_point = scale, zero
	local value, point = scale:to('float32'):sum():item(), zero and zero:sum():item() or 0
	if not (value > 0 and value < math.huge) then p:fail('%s.input_scale: wanted a finite number above 0, got %g', layer, value) end
	if point < -128 or point > 127 or a.symmetric and point ~= 0 then
		p:fail('%s.input_zero_point: wanted %s, got %d', layer, a.symmetric and '0' or '-128 to 127', point)
	end
	return {mode = 'static', input = quant.spec {dtype = 'int8', scheme = scheme, quant_min = -128, scale = value, zero_point = not a.symmetric and point or nil}}
end

-- Signed zero points are codes from the bottom of the range.
local function read_layer(p, layer, known, packed)
	local codes, bits, zero, shape
	if packed then codes, bits, zero, shape = packed_layer(p, layer, known) else codes, bits, zero = plain_layer(p, layer) end
	local scale, g, outputs, inputs = p:take(layer, 'weight_scale', 2), p:take(layer, 'weight_g_idx'), codes:size(1), codes:size(2)
	p:sized(layer, 'weight_scale', scale, outputs, scale:size(2))
	local group = group_of(p, layer, inputs, scale:size(2), known.groups)
	local kinds = {g = g and g:dtype(), zero = zero and zero:dtype(), shape = shape}
	if zero then
		if zero:dim() ~= 2 or quant.dtype(zero:dtype()).float then p:fail('%s.weight_zero_point: wanted integers of 2 axes, got %s', layer, internal.describe(zero)) end
		zero = p:sized(layer, 'weight_zero_point', zero, outputs, scale:size(2))
		if zero:eq(0):all():item() then zero = nil end
	end
	if zero then
		local half = 1 << (bits - 1)
		codes, zero = (codes:to 'int32' + half):to 'uint8', zero:to 'int32' + half
	end
	kinds.input = input_of(p, layer, known.input, kinds)
	p:put(layer, {codes = codes, bits = bits, scale = scale, zero = zero, group = group, kinds = kinds, order = g and p:order(layer, 'weight_g_idx', g, inputs, group)})
end

local STRATEGIES = {group = 'group', channel = 'channel'}

-- The description of inputs of 8 bits; false: floats.
local function activations(group)
	if not group:get 'input_activations' then return false end
	local a = group:inner 'input_activations'
	a:choice('type', {int = true}, 'int')
	if a:size('num_bits', 8) ~= 8 then a:fail('num_bits: wanted 8, got %d', a:size 'num_bits') end
	local dynamic = a:flag('dynamic', false)
	return {dynamic = dynamic, symmetric = a:flag('symmetric', true),
		strategy = a:choice('strategy', dynamic and {token = 'token', tensor = 'tensor'} or {tensor = 'tensor'}, 'tensor')}
end

local function same_input(a, b)
	for _, key in ipairs {'dynamic', 'symmetric', 'strategy'} do
		if (a and a[key]) ~= (b and b[key]) then return false end
	end
	return true
end

-- Bits and sizes of groups of all kinds of layers, and how their inputs are.
local function known_of(c)
	local known, groups = {bits = {}, groups = {}}, c:inner 'config_groups'
	local names = {}
	for name in pairs(groups.values) do names[#names + 1] = tostring(name) end
	table.sort(names)
	for _, name in ipairs(names) do
		local group = groups:inner(name)
		local input = activations(group)
		if known.input ~= nil and not same_input(known.input, input) then group:fail 'input_activations: wanted the same for all groups, got others' end
		known.input = input
		if group:get 'output_activations' then group:fail 'output_activations: wanted none, got some' end
		local w = group:inner 'weights'
		w:choice('type', {int = true}, 'int')
		local bits = w:size('num_bits', 8)
		if bits < 2 or bits > 8 then w:fail('num_bits: wanted 2 to 8, got %d', bits) end
		known.bits[#known.bits + 1] = bits
		if w:choice('strategy', STRATEGIES, 'channel') == 'group' then known.groups[#known.groups + 1] = w:size 'group_size' end
	end
	return known
end

function compressed.read(c, p)
	if c:get 'kv_cache_scheme' then c:fail 'kv_cache_scheme: wanted none, got some' end
	local packed, known = c:choice('format', FORMATS) == 'packed', known_of(c)
	for _, layer in ipairs(p:layers(packed and 'weight_packed' or 'weight_scale')) do read_layer(p, layer, known, packed) end
end

-- Zero points that were there and all 0 are there again.
function compressed.write(c, p, layer)
	local packed, w = c:choice('format', FORMATS) == 'packed', p:opened(layer)
	local half, name = 1 << (w.bits - 1), layer .. '.'
	p.left[name .. 'weight_scale'], p.left[name .. 'weight_g_idx'] = w.scale, w.kinds.g and w.groups:to(w.kinds.g) or nil
	p.left[name .. 'input_scale'], p.left[name .. 'input_zero_point'] = w.kinds.input_scale, w.kinds.input_zero_point
	if not packed then
		p.left[name .. 'weight'] = (w.codes:to 'int32' - half):to 'int8'
		p.left[name .. 'weight_zero_point'] = w.kinds.zero and (w.zero - half):to(w.kinds.zero) or nil
		return
	end
	local how = {order = 'stream', bits = w.bits, axis = 2, count = w.codes:size(2)}
	p:packed(layer, 'weight_packed', w.codes, how)
	how.axis, how.count = 1, w.codes:size(1)
	if w.kinds.zero then p:packed(layer, 'weight_zero_point', w.zero:to 'uint8', how) end
	p.left[name .. 'weight_shape'] = tensor {w.codes:size(1), w.codes:size(2), dtype = w.kinds.shape, device = 'cpu'}
end

return compressed
