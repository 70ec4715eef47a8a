-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

it('resizes pictures', function()
	local x = tensor {1, 2, 3, 4}:view(1, 1, 2, 2)
	local y = run('Resize', {x, tensor.empty {0}, tensor {1, 1, 2, 2}}, {coordinate_transformation_mode = 'asymmetric', nearest_mode = 'floor'}, {fixed = {2, 3}})
	assert(equal(y, {{{{1, 1, 2, 2}, {1, 1, 2, 2}, {3, 3, 4, 4}, {3, 3, 4, 4}}}}))
	assert(equal(run('Upsample', {x, tensor {1, 1, 1, 2}}, nil, {fixed = {2}, opset = 9}), {{{{1, 1, 2, 2}, {3, 3, 4, 4}}}}))
	y = run('Resize', {x, false, false, tensor {1, 1, 2, 4, dtype = 'int64'}}, {mode = 'linear'}, {fixed = {4}})
	assert(equal(y, {{{{1, 1.25, 1.75, 2}, {3, 3.25, 3.75, 4}}}}))
	for _, other in ipairs {{mode = 'linear', coordinate_transformation_mode = 'half_pixel_symmetric'}, {nearest_mode = 'ceil'}} do
		local done, why = pcall(run, 'Resize', {x, false, tensor {1, 1, 2, 2}}, other, {fixed = {3}})
		assert(not done and why:find 'mode: wanted nearest by a whole factor', why)
	end
	local ok, message = pcall(run, 'Resize', {x, false, tensor {1, 1, 2, 2}}, {coordinate_transformation_mode = 'tf_crop_and_resize'}, {fixed = {3}})
	assert(not ok and message:find 'tf_crop_and_resize', message)
end)
