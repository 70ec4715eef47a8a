-- SPDX-License-Identifier: MIT
-- Quantization-aware training: layers of mode 'qat' compute with rounded floats. Ranges come from calibration, or from a
-- moving average over the batches of training; with learn=true in a spec the scale is a parameter (LSQ). convert
-- makes such a layer static with the same scales, so that its codes are those of training.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local fail = base.fail
local qat = {}

local function is_learned(spec) return type(spec) == 'table' and spec.learn == true end

-- The spec without learn, checked.
local function plain(spec)
	if type(spec) ~= 'table' or getmetatable(spec) then return quant.spec(spec) end
	local copy = {}
	for key, value in next, spec do
		if key ~= 'learn' then copy[key] = value end
	end
	return quant.spec(copy)
end

local function largest_code(spec)
	return spec.offset and 2 ^ spec.bits - 1 or 2 ^ (spec.bits - 1) - 1
end

-- 2 mean|x| / sqrt(largest code), for each scale (LSQ's start).
local function first_scale(x, spec)
	local _ <close> = internal.nograd()
	local size = x:detach():to('float32'):abs()
	if not spec.axis then return (size:mean() * (2 / math.sqrt(largest_code(spec)))):reshape(1) end
	local axes = {}
	for d = 1, x:dim() do
		if d ~= spec.axis then axes[#axes + 1] = d end
	end
	return size:mean(axes):maximum(1e-8) * (2 / math.sqrt(largest_code(spec)))
end

---------------------------------------------------------------- preparing a layer

-- A learned scale is a parameter of the layer, saved with it.
local function learn_weight(layer, field, q)
	local name = field .. '_scale'
	module.parameter(layer, name, first_scale(layer[field], q.weight))
	q.scales[field] = name
end

-- The state of one input of a layer; recurrent modules have one per inner layer, others a single one.
--   spec; learned: scale and zero name parameters; tracker: an observer of the batches; ready: the range is known
local function start(layer, input, lo, hi)
	local _ <close> = internal.nograd()
	local scale = quant.params(lo, hi, input.spec).scale
	layer[input.scale]:detach():fill_(scale)
	if input.zero then layer[input.zero]:detach():fill_(-lo / scale) end
	input.ready = true
end

-- The initial range is that of calibration, if there was one, else that of the first batch.
local function learned_input(layer, input, range, suffix)
	input.learned, input.ready, input.scale = true, range ~= nil, 'input_scale' .. suffix
	module.parameter(layer, input.scale, tensor {1.0, device = module.device(layer)})
	if input.spec.offset and (not range or range.lo < 0) then
		input.zero = 'input_zero' .. suffix
		module.parameter(layer, input.zero, tensor {0.0, device = module.device(layer)})
	end
	if range then start(layer, input, range.lo, range.hi) end
end

local function prepare_input(layer, given, range, suffix)
	local input = {spec = plain(given)}
	if is_learned(given) then
		learned_input(layer, input, range, suffix)
	elseif range then
		local p = quant.params(range.lo, range.hi, input.spec)
		input.spec = like.spec(input.spec, {scale = p.scale, zero_point = p.zero_point})
	else
		input.tracker = quant.observer(like.fields(input.spec, {observer = 'average'}))
	end
	return input
end

-- o: the specs weight and input; ranges: a list of {lo=, hi=} or false, one for each observed input of the layer
function qat.prepare(layer, o, ranges)
	local q = {mode = 'qat', weight = plain(o.weight), scales = {}, inputs = {}}
	if q.weight.block then fail("quantize: weight: wanted one scale per output in mode 'qat', got '%s'", tostring(q.weight)) end
	if is_learned(o.weight) then
		if type(q.weight.bits) == 'table' then
			fail("quantize: weight: wanted one number of bits with learn=true, got '%s'", tostring(q.weight))
		end
		for _, field in ipairs(module.weights(layer)) do learn_weight(layer, field, q) end
	end
	for i, range in ipairs(ranges) do
		q.inputs[i] = prepare_input(layer, o.input, range or nil, #ranges > 1 and tostring(i) or '')
	end
	q.input = q.inputs[1] and q.inputs[1].spec
	return q
end

---------------------------------------------------------------- running

local function learned(layer, input, x)
	if not input.ready then
		local real = x:detach():to 'float32'
		start(layer, input, math.min(0, real:min():item()), math.max(1e-8, real:max():item()))
	end
	local o = {bits = input.spec.bits, signed = not input.spec.offset, features = x:nelem() // x:size(1)}
	if input.zero then return x:lsq(layer[input.scale], layer[input.zero], o) end
	return x:lsq(layer[input.scale], o)
end

-- Adds a batch to the moving average of ranges. Of a batch on a device only its two ends are read, which is all that the average
-- takes; the tracker has no histogram then.
local function track(input, x)
	if x:device() == 'cpu' then
		input.tracker:update(x:detach())
	else
		input.ends_only = true
		input.tracker:update(tensor {device = 'cpu', internal.finite_range(x:detach())})
	end
end

local function fake_input(layer, q, x, i)
	local input = q.inputs[i or 1]
	if not input then return x end -- indices of rows
	x = module.real(x)
	if input.learned then return learned(layer, input, x) end
	if input.tracker and layer.training then track(input, x) end
	return x:fake(qat.frozen_input(layer, input))
end

local function fake_weight(layer, q, field)
	local name = q.scales[field]
	if not name then return layer[field]:fake(q.weight) end
	return layer[field]:lsq(layer[name], {bits = q.weight.bits, axis = q.weight.axis})
end
qat.fake_weight, qat.fake_input = fake_weight, fake_input

function module.modes.qat(layer, q, x)
	return module.class_of(layer).compute(layer, fake_input(layer, q, x), fake_weight(layer, q, 'weight'))
end

---------------------------------------------------------------- converting

-- An input's spec with the scale and zero point found by training.
function qat.frozen_input(layer, input)
	local s = input.spec
	if input.learned then
		local low = s.offset and quant.params(0, 1, s).zero_point or nil
		if input.zero then low = math.max(low, math.min(low + 2 ^ s.bits - 1, low + math.floor(layer[input.zero]:item() + 0.5))) end
		return like.spec(s, {scale = math.max(1e-8, layer[input.scale]:item()), zero_point = low and math.tointeger(low)})
	end
	if not input.tracker then return s end
	if input.tracker.count == 0 then
		fail("quantize: wanted a layer that was trained or calibrated before its use in mode 'qat', got one without data")
	end
	local p
	if input.ends_only then
		local lo, hi = input.tracker:range()
		p = quant.params(lo, hi, s)
	else
		p = input.tracker:params()
	end
	return like.spec(s, {scale = p.scale, zero_point = p.zero_point})
end

-- Names of the parameters that are needed for training only.
function qat.parameters(q)
	local list = {}
	for _, name in pairs(q.scales) do list[#list + 1] = name end
	for _, input in ipairs(q.inputs) do
		list[#list + 1] = input.scale
		list[#list + 1] = input.zero
	end
	return list
end

-- The weight's codes under the learned scale; values are clamped first, because 4 bits and more use the narrow range.
local function learned_codes(layer, q, field)
	local weight, scale = layer[field]:detach(), layer[q.scales[field]]:detach():maximum(1e-8)
	local high = 2 ^ (q.weight.bits - 1) - 1
	local low = q.weight.bits <= 3 and -2 ^ (q.weight.bits - 1) or -high
	local wide = scale
	if q.weight.axis then
		local shape = {}
		for d = 1, weight:dim() do shape[d] = d == q.weight.axis and weight:size(d) or 1 end
		wide = scale:view(table.unpack(shape))
	end
	weight = weight:maximum(wide * low):minimum(wide * high)
	return module.weight_codes(weight, {dtype = q.weight.dtype, bits = q.weight.bits, axis = q.weight.axis,
		scale = q.weight.axis and scale or scale:item()})
end

-- The codes that were used in training.
function qat.codes(layer, q, field)
	local _ <close> = internal.nograd()
	if q.scales[field] then return learned_codes(layer, q, field) end
	return module.weight_codes(layer[field]:detach(), q.weight)
end

-- For modules with a forward of their own.
module.fake_weight, module.fake_input = qat.fake_weight, qat.fake_input

return qat
