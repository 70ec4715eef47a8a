-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
tensor.seed(10)
local x = tensor.randn(3, 2, 4, 5)

local function attributes(f, o)
	local model = out.model(out.graph(f, x), o)
	local node, list = model.graph.node[#model.graph.node], {}
	for i, a in ipairs(node.attribute) do list[i] = a.name .. '=' .. tostring(a.s or a.i or a.ints and table.concat(a.ints, ',')) end
	return node.op_type .. ' ' .. table.concat(list, ' ')
end

it('mixes pixels, or copies the nearest', function()
	for _, opset in ipairs {13, 17} do
		local bare = {opset = opset}
		out.back(function(_, a) return a:resize {5, 9} end, x, {export = bare, tolerance = 2e-6})
		out.back(function(_, a) return a:resize {size = {8, 10}, mode = 'nearest'} end, x, {export = bare})
	end
	print(attributes(function(_, a) return a:resize {size = {5, 9}, mode = 'nearest'} end))  --> Resize coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=floor
end)

it('takes all pixels where a picture shrinks, without those outside', function()
	print(attributes(function(_, a) return a:resize {size = {2, 3}, antialias = true} end))  --> Resize antialias=1 axes=2,3 coordinate_transformation_mode=half_pixel exclude_outside=1 mode=linear
	out.refused('wanted at least 18', function(_, a) return a:resize {size = {2, 3}, antialias = true} end, x, {opset = 17})
end)

it('has the modes and places of ONNX, by sizes or scales, and codes', function()
	for _, opset in ipairs {13, 18} do
		for _, o in ipairs {{size = {5, 9}, mode = 'bicubic'}, {size = {3, 9}, mode = 'cubic', a = -0.5, excludeoutside = true}, {scale = 1.7, mode = 'linear'},
			{scale = 2, scalew = 1.5, coords = 'half_pixel'}, {size = {7, 3}, coords = 'asymmetric'}, {size = {7, 3}, coords = 'pytorch_half_pixel'},
			{scale = 1.5, mode = 'nearest', coords = 'half_pixel', rounding = 'round_prefer_ceil'}, {size = {3, 7}, mode = 'nearest', coords = 'align_corners'}} do
			out.back(function(_, a) return a:resize(o) end, x, {export = {opset = opset}, tolerance = 2e-6})
		end
	end
	out.refused('mode=area', function(_, a) return a:resize {size = {2, 3}, mode = 'area'} end, x)
	local exported = dofile 'tests/tools/exported.lua'
	local net = nn.Sequential {nn.Conv2d(2, 3, 1), nn.Upsample {scale = 2, mode = 'bilinear'}, nn.Conv2d(3, 2, 3)}
	for _, form in ipairs {'qdq', 'qoperator'} do
		local path, g = os.tmpname(), exported.quantized(net, x, {mode = 'static'})
		g:export {onnx = path, form = form}
		local y, z = g:run(x), graph.load(path):run(x)
		os.remove(path)
		assert(y:error(z).sqnr > 35, form)
	end
end)
