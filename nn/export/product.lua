-- SPDX-License-Identifier: MIT
-- Shared by linear and conv2d: the weight's codes as an array, and for each output the bias and the factor of its
-- sums, as in quant/integer/product_codes.c and quant/integer/conv_out.c.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local decode = internal.import 'nn/export/decode'
local fixed = internal.import 'nn/export/fixed'
local packed = internal.import 'nn/export/packed'
local parts = internal.import 'nn/export/parts'
local quantize = internal.import 'nn/export/ops/quantize'
local rules = internal.import 'nn/quantize/rules'
local tile = internal.import 'nn/export/tile'
local unary = internal.import 'nn/export/ops/unary'
local product = {}

local function numbers(t) return t and t:to('float64'):contiguous():view(t:nelem()):totable() end

-- The type of codes less their zero points, with values lo to hi: packed like w (dtype d) if they fit, else the smallest C type.
local function type_of(d, lo, hi)
	local half = 1 << (d.bits - 1)
	if d.kind == 'binary' then return d.name end
	if d.bits < 8 and lo >= -half and hi < half then return ('int%d'):format(d.bits) end
	return lo >= -128 and hi <= 127 and 'int8' or lo >= -32768 and hi <= 32767 and 'int16' or 'int32'
end

-- Of the codes of w: `codes` less their zero points (a tensor), `ctype` they fit in, for those that keep their zero points `raw` and `zeros`.
local function codes_of(w, rows)
	local p, raw = w:qparams(), w:codes():to 'int64'
	local codes, zero = raw, nil
	if p.zero_point then
		local shape = {w:size(1)}
		for i = 2, w:dim() do shape[i] = 1 end
		zero = p.zero_point:to 'int64'
		codes = raw - (zero:nelem() > 1 and zero:view(table.unpack(shape)) or zero:item())
	end
	local d = quant.dtype(w:dtype())
	local c = {codes = codes, dtype = type_of(d, codes:min():item(), codes:max():item())}
	if not (rows and d.bits < 8 and d.kind == 'uint' and quant.dtype(c.dtype).bits >= 8) then return c end
	c.dtype, c.raw, c.zeros = d.name, raw, zero:view(zero:nelem()):totable()
	for j = #c.zeros + 1, w:size(1) do c.zeros[j] = c.zeros[1] end
	return c
end

-- The array of the codes c, packed ones as a bit stream: its name, its type and, for codes that keep them, an array of zero points.
-- `order` permutes the axes first; k: length of a row.
local function array_of(e, node, c, order, k)
	local kept = c.raw or c.codes
	local flat = (order and kept:permute(table.unpack(order)) or kept):contiguous():view(kept:nelem()):totable()
	local name, kind = decode.array(e, node.name .. '_weight', flat, k, c.dtype, c.raw and 'codes' or 'codes less their zero points')
	return name, kind, c.zeros and e:array(node.name .. '_zero', 'uint8_t', c.zeros, 'zero points of the weights')
end

-- The C type of sums: 64 bits for 16-bit operands or if 32 bits might overflow.
local function sum_type(x, w, per)
	local wide = x.ctype == 'int16_t' or x.ctype == 'uint16_t' or quant.dtype(w:dtype()).bits > 8
	return (wide or per >= 16512) and 'int64_t' or 'int32_t', wide
end

-- If the range of x is found at run time, results are floats; factors and the terms of the zero point are computed before.
local function found(e, node, x, y, p, scales, sums, fold, offset)
	if y.scale then base.fail("export: node '%s': wanted float results for codes whose range is found at run time, got codes", node.name) end
	local add = e:scratch(p.outputs * 4)
	local sum = e:scratch(p.outputs * (p.sum == 'int64_t' and 8 or 4))
	for j = 1, fold and 0 or p.outputs do sums[j] = 0 end
	e:call('%s(%s, %d, %s, %s, %d, %s, %s);', e:part('folded', {sum = p.sum}), e:params(x), offset, e:array(node.name .. '_scale', 'float', scales, 'scales of w'),
		e:array(node.name .. '_sum', p.sum, sums, 'sums of the codes of each output'), p.outputs, add, sum)
	p.factor, p.bias = add, sum
	return p
end

-- The bias combined with zero points that are not subtracted from the codes of w.
local function with_zeros(e, p, zeros)
	if zeros then
		e:part('zeros', {sum = p.sum})
		p.bias = ('&(struct q_zeros_%s){%s, %s}'):format(parts.short(p.sum), p.bias, zeros)
	end
	return p
end

-- The conversion of sums to results y: the name of a q_limits (codes by a fixed-point rule) or of a q_codes.
local function result_of(e, node, y, rule, bias, relu)
	local name = node.name .. '_codes'
	if rule and y.scale then return e:struct('q_limits', name, ('{%d, %d, %d, %d}'):format(y.lo - y.zero, y.hi - y.zero, y.zero, relu)) end
	local add = not y.scale and bias and e:array(node.name .. '_bias', 'float', bias, 'added to the result')
	return e:struct('q_codes', name, ('{%s, %s, %d, %d, %s}'):format(e.float(y.scale and y.lo - y.zero or 0),
		e.float(y.scale and y.hi - y.zero or 0), y.scale and y.zero or 0, relu, add or '0'))
end

-- Biases at the scale of x times that of w, factors of the sums, and the largest bias. `scales` and `sums` of each output of w.
local function constants(e, node, x, y, p, bias, scales)
	local biases, factors, most = {}, {}, 0
	for j = 1, p.outputs do
		local unit = e.single(e.single(x.scale) * scales[j])
		local b = y.scale and bias and e.rint(bias[j] / unit) or 0
		local nan = b ~= b -- gives the zero point, as in ql_round_bias
		b = nan and 0 or b
		if math.abs(b) >= 2.0 ^ 61 then
			base.fail("export: node '%s': bias: wanted less than 2^61 steps of the sum, got %.0f for output %d", node.name, b, j)
		end
		most, biases[j] = math.max(most, math.abs(b)), math.tointeger(b)
		factors[j] = y.scale and e.single(x.scale) * scales[j] / y.scale or unit
		if nan then factors[j] = 0 end
		if not p.rule then factors[j] = e.single(factors[j]) end
	end
	return biases, factors, most
end

-- The weight operand `at` and its scales, one for each output.
local function weight_of(e, node, at, given)
	local w = given or e:constant(node, at)
	if not w or not w:quantized() then base.fail("export: node '%s': wanted a constant quantized weight", node.name) end
	local params = w:qparams()
	if params.block or params.axis and params.axis ~= 1 or not w:spec().affine then
		base.fail("export: node '%s': weight: wanted affine codes with one scale for each output, got '%s'", node.name, tostring(w:spec()))
	end
	local scales = numbers(params.scale)
	for j = #scales + 1, w:size(1) do scales[j] = scales[1] end
	return w, scales
end

-- The array of weights in the order of tiles.
local function tiled(e, node, p, codes, order)
	local flat = (order[1] and codes:permute(table.unpack(order)) or codes):contiguous():view(codes:nelem()):totable()
	local list, pitch = tile.pack(e, flat, p.per)
	local lie = e.target and ('panels of %d outputs by 4 codes'):format(e.target.lanes) or ('rows of %d bytes, %d of them codes'):format(pitch, p.per)
	local text = ('codes less their zero points: %s%s'):format(lie, order[1] and ', (width, height, channel) of a window' or '')
	p.w, p.wtype, p.pitch = e:array(node.name .. '_weight', 'int8_t', list, text, e.target), 'int8_t', pitch
end

-- Fields of the parts: w (name), wtype, bias, factor, codes (the name of a q_codes), sum (C type), rule. Options:
--   order   permutes the axes of w first;  k  length of a row of the array (then it may not keep zero points)
--   fold    sums of the codes of each output are in the bias, for zero points of x that the loops do not subtract
--   tile    the order of axes for tiles: if 8-bit codes give sums of 32 bits, w is in their layout and p.pitch says so
--   weight  replaces the weight operand
--   at      the index of the weight operand (2); others have neither bias nor activation
function product.prepare(e, node, x, y, o)
	local w, scales = weight_of(e, node, o.at or 2, o.weight)
	local bias = not o.at and node.inputs[3] and numbers(e:constant(node, 3))
	local p = {outputs = w:size(1), per = w:nelem() // w:size(1)}
	local c, sum, wide = codes_of(w, not o.k), sum_type(x, w, p.per)
	p.sum = sum
	p.rule = y.scale and fixed.rule(node.attrs.out, wide) or nil
	local biases, factors, most, zeros
	if not x.params then biases, factors, most = constants(e, node, x, y, p, bias, scales) end
	if most and most >= 2.0 ^ 30 then p.sum = 'int64_t' end
	if most and p.sum == 'int32_t' then p.rule = fixed.narrow(p.rule, factors) end
	local offset = o.tile and packed.ctype(c.dtype) == 'int8_t' and quant.dtype(c.dtype).bits == 8 and p.sum == 'int32_t' and tile.offset(e, x.ctype)
	if offset then
		tiled(e, node, p, c.codes, o.tile)
	else
		p.w, p.wtype, zeros = array_of(e, node, c, o.order, o.k or p.per)
	end
	local sums = c.codes:contiguous():view(p.outputs, p.per):sum {axis = 2}:totable()
	p.codes = '&' .. result_of(e, node, y, p.rule, bias, not o.at and node.attrs.act == 'relu' and 1 or 0)
	if x.params then return with_zeros(e, found(e, node, x, y, p, scales, sums, o.fold, offset or 0), zeros) end
	for j, b in ipairs(biases) do biases[j] = b - (o.fold and math.tointeger((x.zero + (offset or 0)) * sums[j]) or 0) end
	p.bias = e:array(node.name .. '_sum', p.sum, biases, 'added to the sums: bias at the scale of x times that of w')
	p.factor = p.rule and fixed.array(e, node.name .. '_factor', factors, p.rule) or e:array(node.name .. '_factor', 'float', factors,
		y.scale and 'scale of x times that of w over that of y' or 'scale of x times that of w')
	return with_zeros(e, p, zeros)
end

-- The conversion of float sums to results: fields of a q_codes.
local function plain_codes(e, node, add, at)
	return '&' .. e:struct('q_codes', node.name .. '_codes', ('{0.0f, 0.0f, 0, %d, %s}'):format(
		not at and node.attrs.act == 'relu' and 1 or 0, add or '0'))
end

-- A computed float weight, permuted to the order of axes in scratch memory.
local function computed(e, node, order, at, add)
	local x, f = e:input(node, at or 2, 'plain')
	if f.ctype ~= 'float' then base.fail("export: node '%s': wanted a float weight or a constant, got %s", node.name, f.dtype) end
	local shape, strides, dense = {}, {}, axes.dense(f.shape)
	for i, axis in ipairs(order or {}) do shape[i], strides[i] = f.shape[axis], dense[axis] end
	local w = order and e:scratch(f.bytes, 'float') or x
	if order then axes.copy(e, node, 'float', shape, x, strides, w) end
	return {w = w, wtype = 'float', sum = 'float', outputs = f.shape[1], per = f.count // f.shape[1], codes = plain_codes(e, node, add, at),
		bias = '0', factor = '0'}
end

-- The same for float weights.
function product.prepare_float(e, node, order, at, weight)
	local w, bias = weight or e:constant(node, at or 2), not at and node.inputs[3] and numbers(e:constant(node, 3))
	local add = bias and e:array(node.name .. '_bias', 'float', bias, 'added to the result')
	if not w then return computed(e, node, order, at, add) end
	if w:quantized() then base.fail("export: node '%s': wanted a float weight, got codes", node.name) end
	local flat = numbers(order and w:permute(table.unpack(order)) or w)
	return {w = e:array(node.name .. '_weight', 'float', flat, 'weights'), wtype = 'float', sum = 'float', outputs = w:size(1),
		per = w:nelem() // w:size(1), codes = plain_codes(e, node, add, at), bias = '0', factor = '0'}
end

-- For weights that are decoded, by a preceding node or because x is float: the fields of decode.weight and codes; nil for others.
-- rows(w) (may be nil) gives those of its rows that are wanted.
function product.prepare_decoded(e, node, x, at, rows)
	local w = e:decoded_from(node.inputs[at or 2])
	if not w and not (x.scale or x.params) then
		local held = e:constant(node, at or 2)
		w = held and decode.takes(held) and held
	end
	if not w then return end
	local bias = not at and node.inputs[3] and numbers(e:constant(node, 3))
	local p = decode.weight(e, node, rows and rows(w) or w, node.name .. '_weight')
	p.codes = plain_codes(e, node, bias and e:array(node.name .. '_bias', 'float', bias, 'added to the result'), at)
	return p
end

-- Whether codes of properties f are multiplied with the weight by blocks: the conditions of quant/paths/linear_blocks.c. Of a table of
-- integers also its unit.
function product.takes_blocks(e, node, f)
	local w = (f.scale or f.params) and tile.offset(e, f.ctype) and quant.dtype(f.dtype).bits == 8 and e:constant(node, 2)
	if not w or not w:quantized() or w:dim() ~= 2 or w:nelem() == 0 then return false end
	local p, d, spec = w:qparams(), quant.dtype(w:dtype()), w:spec()
	local unit = rules.table_unit(spec, p.values and p.values:to 'float64':totable() or spec.values)
	local block = p.block or (p.minimum or unit) and w:size(2)
	if not block or block > 16384 or not (spec.affine or p.minimum or unit) or d.bits > 8 or d.kind == 'binary' or type(p.bits) == 'table' then return false end
	if p.block then return p.axis == 2 and block % 8 == 0, unit end
	return (p.axis or 1) == 1, unit
end

-- Emits the result y (properties g) of a layer with emit(y, g). If its activation is not a relu, or its codes are binary or those of a
-- convolution below 8 bits, or if emit makes floats only, the result is computed as floats first and then quantized.
function product.result(e, node, y, g, emit, floats_only)
	local act = node.attrs.act
	act = act ~= 'relu' and act or nil
	local d = quant.dtype(g.dtype)
	if not act and not (floats_only and g.scale or g.grid or d.kind == 'binary' or node.op == 'conv2d' and d.bits < 8) then return emit(y, g) end
	local floats = {dtype = 'float32', ctype = 'float', shape = g.shape, count = g.count, bytes = 4 * g.count}
	local v = (g.scale or g.grid) and e:scratch(4 * g.count) or y
	emit(v, floats)
	if act then e:call('%s(%s, %d, %s);', e:part(unary.part(act, {})), v, g.count, v) end
	if g.scale or g.grid then quantize.known(e, v, y, g) end
end

return product
