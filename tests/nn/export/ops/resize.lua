-- SPDX-License-Identifier: MIT
-- labels: full
-- Pictures of another size in exported C: the bits of Quoll's own.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(9)
local list = {}
for _, size in ipairs {{3, 14}, {1, 1}, {7, 9}, {20, 5}} do
	for mode, o in pairs {nearest = {mode = 'nearest'}, bilinear = {}, antialias = {antialias = true}} do
		list[('%s %d x %d'):format(mode, size[1], size[2])] = function(_, a)
			return a:resize {size = size, mode = o.mode, antialias = o.antialias}
		end
	end
end
for name, o in pairs {
	['bicubic'] = {size = {5, 12}, mode = 'bicubic'}, ['corners'] = {size = {10, 4}, coords = 'align_corners'}, ['area'] = {size = {3, 20}, mode = 'area'},
	['scale'] = {scale = 0.6, scalew = 1.7, mode = 'cubic', a = -0.5, excludeoutside = true}, ['nearest to half pixels'] = {scale = 1.5, mode = 'nearest',
		coords = 'half_pixel', rounding = 'round_prefer_ceil'}, ['asymmetric'] = {scale = 2, mode = 'linear', coords = 'asymmetric'},
} do list[name] = function(_, a) return a:resize(o) end end
exported.functions(list, tensor.randn(4, 3, 7, 9))
exported.functions({
	['after a convolution'] = function(_, a) return a:resize {6, 8}:maxpool2d(2) end,
	['bytes'] = function(_, a) return (a * 40 + 100):to 'uint8':resize {size = {5, 12}, antialias = true}:to 'float32' end,
	['nearest of integers'] = function(_, a) return (a * 1000):to 'int32':resize {size = {9, 4}, mode = 'nearest'} end,
	['codes to the nearest'] = function(_, a) return a:quantize {dtype = 'uint8', scale = 0.02, zero_point = 99}:resize {scale = 2, mode = 'nearest'} end,
	['pooling to a size'] = function(_, a) return a:adaptiveavgpool2d {3, 4}:lppool2d(2, {1, 2}) end,
	['largest to a size'] = function(_, a) return a:adaptivemaxpool2d {3, 4} end,
	['codes'] = function(_, a) return a:quantize {dtype = 'uint8', scale = 0.02, zero_point = 99}:resize(4) end,
}, tensor.randn(3, 2, 7, 9))

local image, nets = tensor.randn(4, 3, 8, 9), {}
for _, o in ipairs {{scale=2, mode='bilinear'}, {scale=1.7, mode='bicubic', aligncorners=true}, {scale=0.5, mode='area'}} do
	local net = nn.Sequential {nn.Conv2d(3, 4, 3), nn.Upsample(o), nn.Conv2d(4, 2, 3)}
	for _, input in ipairs {'uint8', 'int8', 'int16'} do
		nets[#nets + 1] = {name=o.mode .. ' of ' .. input, x=image, graph=function() return exported.quantized(net, image, {mode='static', input=input}) end}
	end
end
exported.together(nets, {compilers={'cc -O2'}, alone=true})
