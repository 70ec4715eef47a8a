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
	local ok, message = pcall(run, 'Resize', {x, false, tensor {1, 1, 2, 2}}, {coordinate_transformation_mode = 'tf_crop_and_resize'}, {fixed = {3}})
	assert(not ok and message:find "coordinate_transformation_mode: wanted another than 'tf_crop_and_resize'", message)
end)

---------------------------------------------------------------- by the formulas of ONNX

local PLACE = {
	half_pixel = function(i, scale) return (i + 0.5) / scale - 0.5 end,
	pytorch_half_pixel = function(i, scale, _, now) return now > 1 and (i + 0.5) / scale - 0.5 or 0 end,
	asymmetric = function(i, scale) return i / scale end,
	align_corners = function(i, _, was, now) return now > 1 and i * (was - 1) / (now - 1) or 0 end,
	half_pixel_symmetric = function(i, scale, was, now) return was / 2 * (1 - now / (scale * was)) + (i + 0.5) / scale - 0.5 end,
}
local NEAREST = {
	floor = math.floor, ceil = math.ceil, round_prefer_floor = function(v) return math.ceil(v - 0.5) end,
	round_prefer_ceil = function(v) return math.floor(v + 0.5) end,
}

local function cubic(a, t)
	t = math.abs(t)
	return t <= 1 and (a + 2) * t ^ 3 - (a + 3) * t ^ 2 + 1 or t < 2 and a * t ^ 3 - 5 * a * t ^ 2 + 8 * a * t - 4 * a or 0
end

local function line(list, scale, now, o)
	local made, was = {}, #list
	local function at(i) return list[math.max(0, math.min(was - 1, i)) + 1] end
	for i = 0, now - 1 do
		local place = PLACE[o.coordinate_transformation_mode or 'half_pixel'](i, scale, was, now)
		local first = math.floor(place)
		if o.mode == 'nearest' then
			made[i + 1] = at(NEAREST[o.nearest_mode or 'round_prefer_floor'](place))
		elseif o.mode == 'linear' then
			made[i + 1] = at(first) * (1 - place + first) + at(first + 1) * (place - first)
		else
			local sum, weights = 0, 0
			for k = first - 1, first + 2 do
				local weight = (o.exclude_outside == 1 and (k < 0 or k >= was)) and 0 or cubic(o.cubic_coeff_a or -0.75, place - k)
				sum, weights = sum + weight * at(k), weights + weight
			end
			made[i + 1] = sum / weights
		end
	end
	return made
end

local row = {1, 5, 2, 8, -3, 4}

it('follows the rules for places', function()
	for coords in next, PLACE do
		for _, mode in ipairs {{mode = 'linear'}, {mode = 'cubic'}, {mode = 'cubic', cubic_coeff_a = -0.5, exclude_outside = 1}, {mode = 'nearest'},
			{mode = 'nearest', nearest_mode = 'floor'}, {mode = 'nearest', nearest_mode = 'ceil'}, {mode = 'nearest', nearest_mode = 'round_prefer_ceil'}} do
			mode.coordinate_transformation_mode = coords
			for _, now in ipairs {1, 3, 4, 9, 12} do
				local y = run('Resize', {tensor(row):view(1, 1, 6), false, false, tensor {1, 1, now, dtype = 'int64'}}, mode, {fixed = {4}})
				assert(equal(y, tensor(line(row, now / 6, now, mode)):view(1, 1, now), 1e-4), coords .. ' ' .. mode.mode)
			end
			for _, scale in ipairs {0.8125, 1.3125, 2} do
				local now = math.floor(6 * scale)
				if coords ~= 'align_corners' or now == 6 * scale then
					local y = run('Resize', {tensor(row):view(1, 1, 1, 6), false, tensor {scale}}, {axes = {3}, mode = mode.mode, nearest_mode = mode.nearest_mode,
						cubic_coeff_a = mode.cubic_coeff_a, exclude_outside = mode.exclude_outside, coordinate_transformation_mode = coords}, {fixed = {3}, opset = 18})
					assert(equal(y, tensor(line(row, scale, now, mode)):view(1, 1, 1, now), 1e-4), coords .. ' ' .. mode.mode)
				end
			end
		end
	end
end)

it('resizes any axes, with the aspect ratio', function()
	local x = tensor(row):view(2, 3)
	local y = run('Resize', {x:view(2, 1, 3, 1, 1), false, false, tensor {4, 1, 6, 1, 2, dtype = 'int64'}}, {mode = 'linear'}, {fixed = {4}})
	local o, wide = {mode = 'linear'}, {}
	for i, list in ipairs(x:totable()) do wide[i] = line(list, 2, 6, o) end
	local columns = tensor(wide):t():totable()
	for i, list in ipairs(columns) do columns[i] = line(list, 2, 4, o) end
	assert(equal(y[1]:dim() == 4 and y:select(5, 2):view(4, 6), tensor(columns):t(), 1e-4))
	local policy = {keep_aspect_ratio_policy = 'not_larger', axes = {2, 3}, mode = 'linear'}
	y = run('Resize', {tensor(row):view(1, 1, 2, 3), false, false, tensor {8, 6, dtype = 'int64'}}, policy, {fixed = {4}, opset = 18})
	assert(y:size(3) == 4 and y:size(4) == 6)
	policy.keep_aspect_ratio_policy = 'not_smaller'
	y = run('Resize', {tensor(row):view(1, 1, 2, 3), false, false, tensor {8, 6, dtype = 'int64'}}, policy, {fixed = {4}, opset = 18})
	assert(y:size(3) == 8 and y:size(4) == 12)
	-- With antialias each weighs by its distance in units of the new pixels: triangles around 1 and 4 of 0 to 5.
	y = run('Resize', {tensor(row):view(1, 1, 1, 6), false, false, tensor {1, 1, 1, 2, dtype = 'int64'}}, {mode = 'linear', antialias = 1, exclude_outside = 1},
		{fixed = {4}, opset = 18})
	local left, right = (2 * 1 + 3 * 5 + 2 * 2 + 1 * 8) / 8, (1 * 2 + 2 * 8 + 3 * -3 + 2 * 4) / 8
	assert(equal(y:view(2), {left, right}))
	local function refused(attrs, sizes, text)
		local ok, message = pcall(run, 'Resize', {tensor(row):view(1, 1, 2, 3), false, sizes}, attrs, {fixed = {3}, opset = 18})
		assert(not ok and message:find(text), message)
	end
	refused({mode = 'linear', antialias = 1}, tensor {1, 1, 0.5, 0.5}, 'antialias: wanted it with exclude_outside=1, got 0')
	refused({mode = 'linear', coordinate_transformation_mode = 'align_corners'}, tensor {1, 1, 1, 1.5}, 'align_corners: wanted scales that give whole sizes')
	refused({mode = 'area'}, tensor {1, 1, 1, 2}, "mode: wanted nearest, linear or cubic, got 'area'")
	refused({}, tensor {2, 2}, 'sizes, scales: wanted one for each of 4 axes, got 2')
end)
