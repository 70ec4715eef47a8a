-- SPDX-License-Identifier: MIT
-- form='qoperator': ops on codes, those of ONNX and of onnxruntime (com.microsoft), which form='integer' has in part. Each function gives the codes of the result, or nil
-- where the operands or the result have no such form; then the codes are decoded.
local _, internal = ...
local codes = internal.import 'nn/onnx/out/codes'
local types = internal.import 'nn/onnx/types'
local qlinear = {}
local MICROSOFT = 'com.microsoft'

local MOVING = {qoperator = true, integer = true} -- forms in which codes are moved as they are

-- Codes of 8 bits under one scale, or one for each index of `axis`.
local function bytes_of(n, i, axis)
	local c = MOVING[n.form] and n:codes(i)
	if not c or not types.is_byte(c.type) or c.block or c.axis and c.axis ~= axis then return nil end
	return codes.write(n.w, c)
end
qlinear.bytes_of = bytes_of

-- The parameters of the result: codes without a name; nil if it has none of 8 bits.
function qlinear.target(n)
	local spec = n.result.spec
	if not MOVING[n.form] or not spec or not spec.affine or not types.is_byte(spec.dtype) then return nil end
	local c = codes.params(n.w, n.name, spec)
	return c and not c.axis and c or nil
end

-- The codes with that name. Those of a narrower range are clipped; `floor`: and at 0.
function qlinear.result(n, c, name, floor)
	local d = quant.dtype(c.type)
	local low, high = floor and c.zero_number or d.min, d.max
	if c.least then low, high = math.max(low, c.least), math.min(high, c.most) end
	if low > d.min or high < d.max then name = n:emit('Clip', {name, n:number(low, c.type), n:number(high, c.type)}) end
	c.name = name
	return {codes = c}
end

local function triple(c) return c.name, c.scale, c.zero end

local BINARY = {Add = 'QLinearAdd', Mul = 'QLinearMul'}

function qlinear.binary(n, op)
	local act = n.node.attrs.act
	if n.form ~= 'qoperator' or not BINARY[op] or act and act ~= 'relu' then return nil end
	local a, b, c = bytes_of(n, 1), bytes_of(n, 2), qlinear.target(n)
	if not a or not b or not c or a.type ~= b.type or a.type ~= c.type then return nil end
	n:attr 'act'
	local x, x_scale, x_zero = triple(a)
	local y, y_scale, y_zero = triple(b)
	return qlinear.result(n, c, n:emit(BINARY[op], {x, x_scale, x_zero, y, y_scale, y_zero, c.scale, c.zero}, {}, 1, MICROSOFT), act)
end

function qlinear.unary(n, op, attrs)
	if n.form ~= 'qoperator' then return nil end
	local a, c = bytes_of(n, 1), qlinear.target(n)
	if not a or not c or a.type ~= c.type then return nil end
	return qlinear.result(n, c, n:emit(op, {a.name, a.scale, a.zero, c.scale, c.zero}, attrs, 1, MICROSOFT))
end

function qlinear.concat(n, axis)
	local c = n.form == 'qoperator' and qlinear.target(n)
	if not c then return nil end
	local inputs = {c.scale, c.zero}
	for i = 1, n.count do
		local a = bytes_of(n, i)
		if not a or a.type ~= c.type then return nil end
		table.move({triple(a)}, 1, 3, #inputs + 1, inputs)
	end
	return qlinear.result(n, c, n:emit('QLinearConcat', inputs, {axis = axis}, 1, MICROSOFT))
end

---------------------------------------------------------------- products

local function single(x) return (string.unpack('<f', string.pack('<f', x))) end

-- The float32 that is `steps` after x > 0.
local function stepped(x, steps) return (string.unpack('<f', string.pack('<i4', string.unpack('<i4', string.pack('<f', x)) + steps))) end

local STEPS = {0, 1, -1, 2, -2}

-- How many sums become another code by the multiplier `other` than by `want`.
local function flips(want, other)
	local most = math.min(2 ^ 17, 256 / want) // 1 | 0
	local sums = tensor.arange(-most, most)
	return (sums * want):round():ne((sums * other):round()):to 'int64':sum():item()
end

-- onnxruntime multiplies sums by float32(float32(sx * sw) / sy), g:run by float32(sx * sw / sy): a scale within two steps of sw with which
-- both are what g:run takes, or else the first, or where there is none that with which the fewest sums become another code.
local function near(sx, sw, sy)
	local want, first, best, least = single(sx * sw / sy), nil, sw, math.huge
	if not (sw > 0x1p-100 and sw < 0x1p100 and want > 0x1p-20 and want < 0x1p20) then return sw end
	for _, steps in ipairs(STEPS) do
		local s = stepped(sw, steps)
		if single(single(sx * s) / sy) == want then
			if single(sx * s / sy) == want then return s end
			first = first or s
		end
	end
	for _, steps in ipairs(first and {} or STEPS) do
		local s = stepped(sw, steps)
		local count = flips(want, single(single(sx * s) / sy))
		if count < least then best, least = s, count end
	end
	return first or best
end

-- The name of the scales of codes w in a product with x whose result is c.
function qlinear.scales(n, x, w, c)
	local list = {dtype = 'float32'}
	for i, s in ipairs(w.scales:to 'float32':reshape(-1):totable()) do list[i] = near(x.number, s, c.number) end
	local t = tensor(list)
	return n.w:initializer(w.stem .. '.scale', t:nelem() == 1 and t:reshape {} or t)
end

-- A bias as int32 under the scales of both operands; nil where it does not fit. Gives its tensor and scales.
function qlinear.bias(x, w, bias)
	if not bias or not x.number or not w.scales then return nil end
	local scales = (w.scales:to 'float32' * x.number):reshape(-1)
	local real = bias:to 'float64' / scales:to 'float64'
	if not (real:abs():max():item() < 2 ^ 30) then return nil end
	return real:to 'int32', scales
end

-- The number of the operand with a bias, if it has one.
function qlinear.bias_codes(n, x, w, at)
	if n.count < at then return true end
	local bias = n:constant(at)
	local q = bias and qlinear.bias(x, w, bias)
	return q and n.w:initializer(n:value(at).made .. '.codes', q) or nil
end

return qlinear
