-- SPDX-License-Identifier: MIT
-- labels: full
-- Pooling in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(12, 3, 10, 10)
exported.integers {
	{'largest', nn.Sequential {nn.Conv2d(3, 8, 3), nn.MaxPool2d(3, {stride=2, pad=1}), nn.Conv2d(8, 4, 1)}, x},
}
exported.functions({
	['largest of int32'] = function(_, a) return a:mul(100):to('int32'):maxpool2d(3, {stride=2, pad=1}):to 'float32' end,
	['largest of plain bytes'] = function(_, a) return a:mul(20):to('int8'):maxpool2d(2):to 'float32' end,
	['mean of codes'] = function(_, a) return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(3, {stride=2}):dequantize() end,
	['mean of codes into others'] = function(_, a)
		return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(2, {out={dtype='int8', scale=0.01}}):dequantize()
	end,
	['mean of codes in fixed point'] = function(_, a)
		return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(2, {out={dtype='int8', scale=0.01, rounding='single'}})
	end,
	['mean of codes, rounded exactly'] = function(_, a)
		return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(2, {out={dtype='int8', scale=0.01, rounding='exact'}})
	end,
	['mean of codes as their quotient'] = function(_, a)
		return a:quantize {dtype='int8', scale=0.03, zero_point=-20}:avgpool2d(2, {out={dtype='int8', scale=0.03, zero_point=-20, rounding='double'}})
	end,
	['mean of codes as their quotient, with padding'] = function(_, a)
		local spec = {dtype='uint8', scale=0.03, zero_point=120, rounding='double'}
		return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(4, {stride=3, pad=1, out=spec})
	end,
	['mean of codes as their quotient, without the padding'] = function(_, a)
		local spec = {dtype='uint8', scale=0.03, zero_point=120, rounding='double'}
		return a:quantize {dtype='uint8', scale=0.03, zero_point=120}:avgpool2d(4, {stride=3, pad=1, countincludepad=false, out=spec})
	end,
	['mean of codes of 16 bits in fixed point'] = function(_, a)
		return a:quantize {dtype='int16', scale=0.0003}:avgpool2d(3, {pad=1, out={dtype='int16', scale=0.0001, rounding='double'}})
	end,
	['largest of floats'] = function(_, a) return a:maxpool2d(2) end,
}, x)
-- Options: with float32 windows of different numbers are divided, codes have a factor for each number.
local byte = {dtype='uint8', scale=0.03, zero_point=120}
local function with(o, out)
	local made = {out = out}
	for name, value in pairs(o) do made[name] = value end
	return made
end
local uneven = {stride=2, pad={1, 0, 0, 2}, countincludepad=false, ceilmode=true}
exported.functions({
	['largest with dilation'] = function(_, a) return a:maxpool2d(3, {stride=2, pad=2, dilation=2, ceilmode=true}) end,
	['places of the largest'] = function(_, a) return select(2, a:maxpool2d(3, {stride=2, pad=2, dilation=2, ceilmode=true, indices=true})) end,
	['largest of codes with dilation'] = function(_, a) return a:quantize(byte):maxpool2d(2, {pad=2, stride=1, dilation={1, 2}}) end,
	['places of the largest codes'] = function(_, a) return select(2, a:quantize(byte):maxpool2d(2, {autopad='same', stride=1, indices=true})) end,
	['largest of whole planes'] = function(_, a) return a:maxpool2d 'all' end,
	['mean without the padding'] = function(_, a) return a:avgpool2d(3, uneven) end,
	['mean with a last window'] = function(_, a) return a:avgpool2d({2, 3}, {stride=3, pad=1, ceilmode=true}) end,
	['mean of codes without the padding'] = function(_, a) return a:quantize(byte):avgpool2d(3, uneven) end,
	['mean of codes without the padding into others'] = function(_, a) return a:quantize(byte):avgpool2d(3, with(uneven, {dtype='int8', scale=0.01})) end,
	['mean of codes without the padding in fixed point'] = function(_, a)
		return a:quantize(byte):avgpool2d(2, with(uneven, {dtype='int8', scale=0.02, rounding='double'}))
	end,
	['mean with autopad'] = function(_, a) return a:avgpool2d(3, {stride=2, autopad='same_lower', countincludepad=false}) end,
}, x)
exported.functions({mean = function(_, a) return a:avgpool2d(2) end}, x)

exported.functions({['one by one'] = function(_, a) return a:maxpool2d(1) end, ['largest of nan'] = function(_, a) return a:maxpool2d(2) end},
	tensor{-math.huge, -math.huge, -math.huge, -math.huge, 1, 0 / 0, 2, math.huge, 0 / 0, -0.0, 0, -1}:view(3, 1, 2, 2))
