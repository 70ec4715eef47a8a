-- SPDX-License-Identifier: MIT
-- labels: quick
-- GridSample, AffineGrid and Col2Im: numbers of PyTorch 2.15 (grid_sample, affine_grid, fold).
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local list = {}
for i = 0, 23 do list[i + 1] = i * 7 % 11 end
local x = tensor(list):view(2, 1, 3, 4)
local grid = tensor {{{{-1.3, -0.9}, {0.1, 0.35}}, {{0.77, 1.6}, {-0.2, -2.7}}}, {{{0.5, 0.5}, {-1, 1}}, {{1, -1}, {3.1, 0.2}}}}
local WANT = { -- mode, padding, the numbers without and with align_corners
	{'linear', 'zeros', {0, 6.0075, 0, 0, 3.375, 2, 1.5, 0}, {0.3300001, 6.147501, 0.5520002, 0, 2.875, 8, 6, 0}},
	{'linear', 'border', {0, 6.0075, 0, 6.6, 3.375, 8, 6, 2.8}, {0.6000001, 6.147501, 1.38, 6.2, 2.875, 8, 6, 2.2}},
	{'linear', 'reflection', {0.6999993, 6.0075, 1.999999, 7.6, 3.375, 8, 6, 3.8}, {3.254999, 6.147501, 4.38, 6.06, 2.875, 8, 6, 3.919998}},
	{'nearest', 'zeros', {0, 4, 0, 0, 0, 8, 0, 0}, {0, 9, 0, 0, 0, 8, 6, 0}},
	{'nearest', 'border', {0, 4, 0, 7, 0, 8, 6, 1}, {0, 9, 0, 7, 0, 8, 6, 1}},
	{'nearest', 'reflection', {0, 4, 0, 8, 0, 8, 6, 2}, {0, 9, 5, 8, 0, 8, 6, 2}},
	{'cubic', 'zeros', {0.04042504, 7.453775, 0.01194393, 0, 3.710815, 2.56543, 1.546875, 0},
		{-0.3659879, 7.339105, -0.02876236, -0.3213004, 2.096802, 8, 6, 0}}}

it('reads between the elements of pictures', function()
	for _, want in ipairs(WANT) do
		for align = 0, 1 do
			local o = {mode = want[1], padding_mode = want[2], align_corners = align}
			assert(equal(run('GridSample', {x, grid}, o, {opset = 20}):view(-1), want[3 + align]), want[1] .. ' ' .. want[2] .. ' ' .. align)
		end
	end
	assert(equal(run('GridSample', {x, grid}, {mode = 'bilinear'}, {opset = 16}):view(-1), WANT[1][3])) -- the names of before, the default
	local wide = tensor.cat({x, x * 2}, {axis = 2}) -- channels
	assert(equal(run('GridSample', {wide, grid}, {mode = 'nearest'}, {opset = 20}):select(2, 2):reshape(8), tensor(WANT[4][3]) * 2))
	local volume = {}
	for i = 0, 23 do volume[i + 1] = i * 5 % 13 end
	local y = run('GridSample', {tensor(volume):view(1, 1, 2, 3, 4), tensor {0.3, -0.6, 0.1, -1.2, 0.9, 0.4}:view(1, 1, 1, 2, 3)}, {}, {opset = 20})
	assert(equal(y:view(-1), {7.134, 0.5329996}))
end)

it('takes any numbers as places', function()
	local far = tensor {{{{0 / 0, math.huge}, {-math.huge, 1e30}}}}
	for _, mode in ipairs {'linear', 'nearest', 'cubic'} do
		for _, padding in ipairs {'zeros', 'border', 'reflection'} do
			assert(run('GridSample', {x:narrow(1, 1, 1):contiguous(), far}, {mode = mode, padding_mode = padding}, {opset = 20}):nelem() == 2)
		end
	end
end)

it('makes grids of matrices', function()
	local theta, size = tensor {{{1.0, 0.5, 0.1}, {-0.25, 2, 0.3}}}, tensor {1, 1, 2, 3, dtype = 'int64'}
	assert(equal(run('AffineGrid', {theta, size}, {}, {fixed = {2}, opset = 20}):reshape(12),
		{-0.8166667, -0.5333333, -0.15, -0.7, 0.5166667, -0.8666666, -0.3166667, 1.466667, 0.35, 1.3, 1.016667, 1.133333}))
	assert(equal(run('AffineGrid', {theta, size}, {align_corners = 1}, {fixed = {2}, opset = 20}):reshape(12),
		{-1.4, -1.45, -0.4, -1.7, 0.6, -1.95, -0.4, 2.55, 0.6, 2.3, 1.6, 2.05}))
	assert(equal(run('AffineGrid', {tensor.ones(2, 3, 4), tensor {1, 1, 1, 2, 1, dtype = 'int64'}}, {align_corners = 1}, {fixed = {2}, opset = 20}):reshape(12), {0, 0, 0, 2, 2, 2, 0, 0, 0, 2, 2, 2}))
end)

it('adds blocks', function()
	local blocks = {}
	for i = 0, 47 do blocks[i + 1] = i * 3 % 17 end
	local function sizes(a, b) return tensor {a, b, dtype = 'int64'} end
	local y = run('Col2Im', {tensor(blocks):view(1, 8, 6), sizes(4, 5), sizes(2, 2)}, {dilations = {1, 2}, pads = {1, 0, 1, 0}, strides = {2, 2}},
		{fixed = {2, 3}, opset = 18})
	assert(y:size(2) == 2 and y:size(3) == 4 and y:size(4) == 5)
	assert(equal(y:reshape(40), {2, 0, 8, 0, 6, 6, 0, 16, 0, 10, 8, 0, 20, 0, 12, 12, 0, 28, 0, 16, 6, 0, 16, 0, 10, 10, 0, 24, 0, 14, 12, 0, 28, 0, 16, 16, 0, 2, 0, 3}))
end)

it('refuses others', function()
	local function refused(want, ...)
		local ok, message = pcall(run, ...)
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
	end
	refused("mode: wanted linear, nearest or cubic, got 'area'", 'GridSample', {x, grid}, {mode = 'area'}, {opset = 20})
	refused("padding_mode: wanted zeros, border or reflection, got 'wrap'", 'GridSample', {x, grid}, {padding_mode = 'wrap'}, {opset = 20})
	refused('grid: wanted 2 numbers for each place, got 3', 'GridSample', {x, tensor.ones(2, 2, 2, 3)}, {}, {opset = 20})
	refused('size: wanted 4 or 5 sizes, got 3', 'AffineGrid', {tensor.ones(1, 2, 3), tensor {1, 1, 2, dtype = 'int64'}}, {}, {fixed = {2}, opset = 20})
	refused('size: wanted 1 to 2^24 places, got others', 'AffineGrid', {tensor.ones(1, 2, 3), tensor {1, 1, 1 << 40, 2, dtype = 'int64'}}, {}, {fixed = {2}, opset = 20})
	refused('theta: wanted matrices of 2 rows and 3 columns', 'AffineGrid', {tensor.ones(1, 3, 3), tensor {1, 1, 2, 2, dtype = 'int64'}}, {}, {fixed = {2}, opset = 20})
	local function fold(want, image, block, o)
		image.dtype, block.dtype = 'int64', 'int64'
		refused(want, 'Col2Im', {tensor.ones(1, 8, 6), tensor(image), tensor(block)}, o or {}, {fixed = {2, 3}, opset = 18})
	end
	fold('input: wanted a multiple of 4 elements and 12 blocks, got 8 and 6', {4, 5}, {2, 2})
	fold('strides: wanted 2 numbers, got 1', {4, 5}, {2, 2}, {strides = {1}})
	fold('strides: wanted 1 or more, got 0', {4, 5}, {2, 2}, {strides = {0, 1}})
	fold('sizes of 1 to 2^24, got others', {1 << 60, 1 << 60}, {2, 2})
end)
