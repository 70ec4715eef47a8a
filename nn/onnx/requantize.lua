-- SPDX-License-Identifier: MIT
-- form='integer': how sums of codes become codes, by the rules of g:run. Under the float rule a QuantizeLinear of scale 1 rounds the
-- product of the sum and a float32. In fixed point (quant/integer/fixed.h) a factor is multiplier * 2^(shift - 31), and the products are
-- int64, whose division truncates: what is rounded down is made positive first.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local qlinear = internal.import 'nn/onnx/qlinear'
local requantize = {}


-- A constant for each output; `sizes` of several.
function requantize.constant(n, name, t, sizes)
	return n.w:initializer(name, t:nelem() == 1 and t:reshape {} or t:reshape(table.unpack(sizes)))
end

local function list_of(values, f)
	local list = {dtype = 'int64'}
	for i, v in ipairs(values) do list[i] = f(v) end
	return tensor(list)
end

-- Whether all of these are 0.
local function none(t) return t:eq(0):all():item() end

-- The high half of the doubled product, rounded, then a shift that rounds halves away from 0.
local function double(n, sums, multiplier, shift, constant)
	local left = list_of(shift, function(s) return math.max(s, 0) end)
	local right = list_of(shift, function(s) return math.max(-s, 0) end)
	if not none(left) then
		sums = n:emit('Mul', {sums, constant('left', list_of(shift, function(s) return 1 << math.max(s, 0) end))})
		sums = n:emit('Clip', {sums, n:number(-(1 << 31), 'int64'), n:number((1 << 31) - 1, 'int64')})
	end
	local product = n:emit('Add', {n:emit('Mul', {sums, multiplier}), n:number((1 << 62) + (1 << 30), 'int64')})
	local high = n:emit('Sub', {n:emit('Div', {product, n:number(1 << 31, 'int64')}), n:number(1 << 31, 'int64')})
	if none(right) then return high end
	local half = constant('half', list_of(shift, function(s) return s < 0 and 1 << -s - 1 or 0 end))
	local divisor = constant('divisor', list_of(shift, function(s) return 1 << math.max(-s, 0) end))
	return n:emit('Mul', {n:emit('Sign', {high}), n:emit('Div', {n:emit('Add', {n:emit('Abs', {high}), half}), divisor})})
end

local function single(n, sums, multiplier, shift, constant)
	local half = constant('half', list_of(shift, function(s) return (1 << 62) + (1 << 30 - s) end))
	local divisor = constant('divisor', list_of(shift, function(s) return 1 << 31 - s end))
	local less = constant('less', list_of(shift, function(s) return 1 << 31 + s end))
	return n:emit('Sub', {n:emit('Div', {n:emit('Add', {n:emit('Mul', {sums, multiplier}), half}), divisor}), less})
end

-- Sums (int64) times factors, a list.
local function times(n, sums, rule, factors, sizes)
	local shift, multipliers = {}, {dtype = 'int64'}
	for i, factor in ipairs(factors) do multipliers[i], shift[i] = internal.fixed(factor) end
	local function constant(name, t) return requantize.constant(n, ('%s.%s'):format(n.name, name), t, sizes) end
	local f = rule == 'double' and double or single
	return f(n, sums, constant('multiplier', tensor(multipliers)), shift, constant)
end

-- Integers less the zero point as codes.
local function stored(n, v, c)
	local d = quant.dtype(c.type)
	v = n:emit('Clip', {n:emit('Add', {v, n:number(c.zero_number, 'int64')}), n:number(d.min, 'int64'), n:number(d.max, 'int64')})
	return n:emit('Cast', {v}, {to = n.w.TYPES[c.type]})
end

local function rounded(n, y, c)
	n:attr 'act'
	return qlinear.result(n, c, n:emit('QuantizeLinear', {y, n:number(1.0), c.zero}), n.node.attrs.act)
end

-- int32 sums times factors (float64, one for each output) as the codes c of the node's result.
function requantize.sums(n, sums, c, factors, sizes)
	local rule = n.result.spec.rounding
	if rule then
		local v = times(n, n:emit('Cast', {sums}, {to = n.w.TYPES.int64}), rule, factors:totable(), sizes)
		n:attr 'act'
		return qlinear.result(n, c, stored(n, v, c), n.node.attrs.act)
	end
	local factor = requantize.constant(n, n.name .. '.multiplier', factors:to 'float32', sizes)
	return rounded(n, n:emit('Mul', {n:emit('Cast', {sums}, {to = n.w.TYPES.float32}), factor}), c)
end

---------------------------------------------------------------- sums, differences and products

-- A code less its zero point, as a float.
local function plain(n, c) return n:emit('DequantizeLinear', {c.name, n:number(1.0), c.zero}) end

local LEFT = 20 -- bits by which bytes are made finer before they are rescaled

local function fixed(n, op, a, b, c)
	local rule = n.result.spec.rounding
	local function whole(x) return n:emit('Cast', {plain(n, x)}, {to = n.w.TYPES.int64}) end
	if op == 'Mul' then return stored(n, times(n, n:emit('Mul', {whole(a), whole(b)}), rule, {a.number * b.number / c.number}), c) end
	local twice = 2 * math.max(a.number, b.number)
	local function finer(x) return times(n, n:emit('Mul', {whole(x), n:number(1 << LEFT, 'int64')}), rule, {x.number / twice}) end
	return stored(n, times(n, n:emit(op, {finer(a), finer(b)}), rule, {twice / ((1 << LEFT) * c.number)}), c)
end

-- The codes of Add, Sub or Mul of codes; nil: others.
function requantize.binary(n, op)
	local act, a, b = n.node.attrs.act, n:codes(1), n:codes(2)
	local c = n.form == 'integer' and (not act or act == 'relu') and qlinear.target(n)
	if not c or not a or not b or not a.number or not b.number or not qlinear.bytes_of(n, 1) or not qlinear.bytes_of(n, 2) then return nil end
	codes.write(n.w, a)
	codes.write(n.w, b)
	if n.result.spec.rounding then
		n:attr 'act'
		return qlinear.result(n, c, fixed(n, op, a, b, c), act)
	end
	if op == 'Mul' then return rounded(n, n:emit('Mul', {n:emit('Mul', {plain(n, a), plain(n, b)}), n:number(a.number * b.number / c.number)}), c) end
	local function scaled(x) return n:emit('Mul', {plain(n, x), n:number(x.number / c.number)}) end
	return rounded(n, n:emit(op, {scaled(a), scaled(b)}), c)
end

---------------------------------------------------------------- means

-- x / n, halves away from 0.
local function quotient(n, x, count)
	local size = n:emit('Div', {n:emit('Add', {n:emit('Abs', {x}), n:number(count // 2, 'int64')}), n:number(count, 'int64')})
	return n:emit('Mul', {n:emit('Sign', {x}), size})
end

-- The codes of the mean of whole planes (quant/integer/pool_codes.c); nil: others.
function requantize.mean(n)
	local a, c, shape = n:codes(1), n.form == 'integer' and qlinear.target(n), n.shapes[1]
	local count = math.type(shape[3]) == 'integer' and math.type(shape[4]) == 'integer' and shape[3] * shape[4]
	if not count or count >= 1 << 14 or not c or not a or not a.number or not qlinear.bytes_of(n, 1) then return nil end
	codes.write(n.w, a)
	local rule, same = n.result.spec.rounding, a.number == c.number and a.zero_number == c.zero_number and a.type == c.type
	local function sum(x) return n:reduce('ReduceSum', x, {2, 3}, true, 13) end
	if same and rule == 'double' then
		local v = quotient(n, sum(n:emit('Cast', {a.name}, {to = n.w.TYPES.int64})), count)
		return qlinear.result(n, c, n:emit('Cast', {v}, {to = n.w.TYPES[c.type]}))
	end
	local total = sum(plain(n, a))
	if same and not rule then return rounded(n, n:emit('Div', {total, n:number(count + 0.0)}), c) end
	return requantize.sums(n, n:emit('Cast', {total}, {to = n.w.TYPES.int32}), c, tensor {a.number / (count * c.number), dtype = 'float64'})
end

return requantize
