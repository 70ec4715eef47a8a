-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Tables of functions that are kept: a call gives the codes of decoding, computing and quantizing whatever calls were before it.
tensor.seed(7)
local x = tensor.randn(40, 30) * 3

local function check(op, spec, out, view)
	local q = view(x:quantize(spec))
	local y, expected = q[op](q, {out=out}), q:dequantize()[op](q:dequantize()):quantize(out)
	assert(y:codes():ne(expected:codes()):any():item() == false, op)
	local a, b = y:qparams(), expected:qparams()
	assert(y:dtype() == expected:dtype() and a.scale:item() == b.scale:item())
	assert(tostring(a.zero_point and a.zero_point:item()) == tostring(b.zero_point and b.zero_point:item()))
	assert(y:origin().kernel == 'table')
end

local function same(q) return q end
local function turned(q) return q:t() end

it('differ by op, params of the operand and of the result', function()
	for _ = 1, 2 do
		for _, op in ipairs {'sigmoid', 'tanh', 'hardswish'} do
			for _, spec in ipairs {{dtype='uint8', scale=0.02, zero_point=128}, {dtype='uint8', scale=0.02, zero_point=100}, {dtype='uint8', scale=0.03, zero_point=100},
				{dtype='int8', scale=0.02, zero_point=100}, {dtype='int8', scale=0.02}, {dtype='int8', scale=0.02, quant_min=-100, quant_max=100}} do
				for _, out in ipairs {{dtype='uint8', scale=1 / 256, zero_point=3}, {dtype='uint8', scale=1 / 128, zero_point=3}, {dtype='uint8', scale=1 / 256, zero_point=5},
					{dtype='int8', scale=1 / 256}, {dtype='int8', scale=1 / 256, quant_min=-50, quant_max=60}, {dtype='int8', scale=1 / 128}} do
					check(op, spec, out, same)
				end
			end
		end
	end
end)

it('serve views, and leave options and fitted scales alone', function()
	local out = {dtype='uint8', scale=1 / 64, zero_point=9}
	local q = x:quantize {dtype='uint8', scale=0.05, zero_point=90}
	for _ = 1, 2 do
		check('relu', {dtype='uint8', scale=0.05, zero_point=90}, out, same)
		check('relu', {dtype='uint8', scale=0.05, zero_point=90}, out, turned)
		check('tanh', {dtype='uint8', scale=0.05, zero_point=90}, 'uint8', same)
		for _, slope in ipairs {0.01, 0.3} do
			local y, expected = q:leakyrelu {slope=slope, out=out}, q:dequantize():leakyrelu {slope=slope}:quantize(out)
			assert(y:codes():ne(expected:codes()):any():item() == false)
		end
	end
end)

it('fixed-point functions have tables of their own', function()
	local q = x:quantize {dtype='int8', scale=0.05}
	local float, fixed = {dtype='int8', scale=1 / 32, zero_point=-100}, {dtype='int8', scale=1 / 32, zero_point=-100, rounding='double'}
	local a, b = q:hardswish {out=float}:codes(), q:hardswish {out=fixed}
	assert(b:origin().path == 'integer double')
	for _ = 1, 2 do
		assert(q:hardswish {out=float}:codes():ne(a):any():item() == false)
		assert(q:hardswish {out=fixed}:codes():ne(b:codes()):any():item() == false)
	end
end)
