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
