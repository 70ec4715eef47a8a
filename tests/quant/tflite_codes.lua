-- SPDX-License-Identifier: MIT
-- Folding batch norm and quantizing the float ResNet8 of MLPerf Tiny gives the int8 weights that TensorFlow's converter made of it:
-- at most one of 76720 codes is off, by one.
local codes, float = data.find 'weights/resnet8-int8-tflite-params.safetensors', data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors'
if not codes or not float then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local m, names = dofile(folder .. 'tutorials/models/resnet8.lua')
m:load(float, {rename=names}):eval()
local theirs = tensor.load(codes)

-- Their tensors 8 to 16 are the weights of conv0 to conv8, (output, height, width, channel).
local function compare(weight_of)
	local off, most, count, scale = 0, 0, 0, 0
	for i = 0, 8 do
		local w, t = weight_of(i), ('t%02d'):format(8 + i)
		local difference = (w:codes():permute(1, 3, 4, 2):to 'int64' - theirs[t .. '.data']:to 'int64'):abs()
		off, most, count = off + difference:gt(0):sum():item(), math.max(most, difference:max():item()), count + w:nelem()
		scale = math.max(scale, (w:qparams().scale:to 'float64' / theirs[t .. '.scale']:to 'float64' - 1):abs():max():item())
	end
	return off, most, count, scale
end
it('m:fuse and m:quantize', function()
	local by = {}
	for name, layer in pairs(m:fuse():quantize({mode='weight_only', weight='int8/1'}):named()) do
		local short = name:match 'conv%d$'
		if short then by[short] = layer.weight end
	end
	local off, most, count, scale = compare(function(i) return by['conv' .. i] end)
	print(count, off <= 1, most <= 1, scale < 1e-6)  --> 76720 true true true
end)
it('the pass fold_norm and g:quantize', function()
	local g = graph.trace(m, tensor.zeros(1, 3, 32, 32)):quantize {mode='weight_only', weight='int8/1'}
	local function weight_of(i)
		for _, name in ipairs(g.order) do
			if name:match('conv' .. i .. '%.weight$') then return g:node(name).value end
		end
	end
	local off, most, count, scale = compare(weight_of)
	print(count, off <= 1, most <= 1, scale < 1e-6)  --> 76720 true true true
end)
