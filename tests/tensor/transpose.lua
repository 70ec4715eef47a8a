-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Copies between layouts with other neighbours, against elements taken one by one: sizes around the tile, every width of
-- elements, axes before and between.
local function check(view)
	local copy = view:clone()
	local flat, sizes, n = copy:view(-1), {view:size()}, 0
	assert(copy:iscontiguous())
	local function each(v, axis)
		for i = 1, sizes[axis] do
			if axis < #sizes then
				each(v[i], axis + 1)
			else
				n = n + 1
				assert(v[i]:item() == flat[n]:item(), ('item %d'):format(n))
			end
		end
	end
	each(view, 1)
end

for _, dtype in ipairs{'int8', 'float16', 'int32', 'float32', 'float64', 'bool'} do
	describe(dtype, function()
		it('turns matrices', function()
			for _, size in ipairs{{32, 32}, {33, 65}, {31, 40}, {70, 32}} do
				local x = tensor.arange(1, size[1] * size[2]):view(size[1], size[2]) % 101
				x = dtype == 'bool' and x:gt(50) or x:to(dtype)
				check(x:t())
				check(x:narrow(1, 2, size[1] - 1):t())
			end
		end)
		it('permutes axes', function()
			local x = tensor.arange(1, 2 * 33 * 3 * 35):view(2, 33, 3, 35) % 101
			x = dtype == 'bool' and x:gt(50) or x:to(dtype)
			check(x:permute(1, 4, 3, 2))
			check(x:permute(4, 1, 3, 2))
			check(x:permute(3, 4, 1, 2))
		end)
	end)
end
describe('short rows', function()
	it('are copied across', function()
		local x = tensor.arange(1, 300):view(3, 100)
		check(x:t())
		check(x:view(3, 50, 2):permute(2, 3, 1))
	end)
end)
