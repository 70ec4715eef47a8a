-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor.arange(1, 16):to('float32'):view(1, 1, 4, 4)

it('pools windows and planes', function()
	assert(equal(run('MaxPool', {x}, {kernel_shape = {2, 2}, strides = {2, 2}}), {{{{6, 8}, {14, 16}}}}))
	assert(equal(run('AveragePool', {x}, {kernel_shape = {2, 2}, strides = {2, 2}}), {{{{3.5, 5.5}, {11.5, 13.5}}}}))
	assert(equal(run('MaxPool', {x}, {kernel_shape = {2, 2}, strides = {3, 3}, pads = {1, 0, 0, 0}}), {{{{2}, {14}}}}))
	assert(equal(run('GlobalAveragePool', {x}), {{{{8.5}}}}) and equal(run('GlobalMaxPool', {x}), {{{{16}}}}))
	assert(equal(run('MaxPool', {x:view(1, 1, 16)}, {kernel_shape = {4}, strides = {4}}), {{{4, 8, 12, 16}}}) and equal(run('GlobalAveragePool', {x:view(1, 2, 8)}), {{{4.5}, {12.5}}}))
	local ok, message = pcall(run, 'MaxPool', {x}, {kernel_shape = {2}})
	assert(not ok and message:find 'kernel_shape: wanted 2 sizes', message)
end)

-- Pooling of x (1, 1, sizes…) by f(list of numbers in the window, how many count), the numbers as a flat list.
local function formula(t, o, f)
	local flat, sizes, axes = t:contiguous():view(-1):totable(), {t:size()}, t:dim() - 2
	local out, made = {1, 1}, {}
	local function each(list, i) return list and list[i] or 1 end
	local function pad(i) return o.pads and o.pads[i] or 0 end
	for i = 1, axes do
		local reach = each(o.dilations, i) * (o.kernel_shape[i] - 1) + 1
		local room = sizes[i + 2] + pad(i) + pad(i + axes) - reach
		out[i + 2] = room // each(o.strides, i) + 1
		if o.ceil_mode == 1 then
			local more = -(room // -each(o.strides, i)) + 1
			if (more - 1) * each(o.strides, i) < sizes[i + 2] + pad(i) then out[i + 2] = more end
		end
	end
	local function windows(axis, place)
		if axis > axes then
			local list, count = {}, 0
			local function numbers(inner, at, inside, counted)
				if inner > axes then
					if inside then list[#list + 1] = flat[at + 1] end
					if counted then count = count + 1 end
					return
				end
				for k = 0, o.kernel_shape[inner] - 1 do
					local i = place[inner] * each(o.strides, inner) + k * each(o.dilations, inner) - pad(inner)
					local size = sizes[inner + 2]
					numbers(inner + 1, at * size + i, inside and i >= 0 and i < size, counted and i < size + pad(inner + axes))
				end
			end
			numbers(1, 0, true, true)
			made[#made + 1] = f(list, count)
			return
		end
		for i = 0, out[axis + 2] - 1 do
			place[axis] = i
			windows(axis + 1, place)
		end
	end
	windows(1, {})
	return tensor(made):view(table.unpack(out))
end

local function sum(list)
	local all = 0
	for _, v in ipairs(list) do all = all + v end
	return all
end

it('has windows of all kinds on one to three axes', function()
	tensor.seed(3)
	local options = {{kernel_shape = {2, 3, 2}}, {kernel_shape = {2, 3, 2}, strides = {2, 2, 1}, pads = {1, 0, 1, 0, 1, 1}, ceil_mode = 1},
		{kernel_shape = {2, 2, 2}, dilations = {2, 1, 2}, strides = {1, 2, 1}, pads = {0, 1, 1, 1, 0, 0}},
		{kernel_shape = {2, 2, 2}, dilations = {2, 3, 2}, strides = {2, 1, 2}, pads = {1, 1, 0, 0, 0, 1}, ceil_mode = 1}}
	local all = {tensor.randn(1, 1, 9), tensor.randn(1, 1, 6, 7), tensor.randn(1, 1, 5, 6, 7)}
	for axes, t in ipairs(all) do
		for _, o in ipairs(options) do
			local cut = {ceil_mode = o.ceil_mode}
			for _, name in ipairs {'kernel_shape', 'strides', 'dilations'} do cut[name] = o[name] and table.move(o[name], 1, axes, 1, {}) end
			if o.pads then
				cut.pads = table.move(o.pads, 1, axes, 1, {})
				table.move(o.pads, 4, 3 + axes, axes + 1, cut.pads)
			end
			assert(equal(run('MaxPool', {t}, cut), formula(t, cut, function(list) return math.max(table.unpack(list)) end)))
			assert(equal(run('LpPool', {t}, cut, {opset = 22}), formula(t, cut, function(list)
				local all_of = 0
				for _, v in ipairs(list) do all_of = all_of + v * v end
				return math.sqrt(all_of)
			end)))
			assert(equal(run('AveragePool', {t}, cut, {opset = 22}), formula(t, cut, function(list) return sum(list) / #list end)))
			cut.count_include_pad = 1
			assert(equal(run('AveragePool', {t}, cut, {opset = 22}), formula(t, cut, function(list, count) return sum(list) / count end)))
		end
	end
end)

it('gives places, integers and norms', function()
	local y, places = run('MaxPool', {tensor.cat({x, x * -1}, {axis = 2})}, {kernel_shape = {2, 2}, strides = {2, 2}}, {outputs = 2})
	assert(equal(y, {{{{6, 8}, {14, 16}}, {{-1, -3}, {-9, -11}}}}) and equal(places, {{{{5, 7}, {13, 15}}, {{16, 18}, {24, 26}}}}))
	y, places = run('MaxPool', {x}, {kernel_shape = {2, 2}, strides = {2, 2}, storage_order = 1}, {outputs = 2})
	assert(y:dim() == 4 and equal(places, {{{{5, 13}, {7, 15}}}}))
	y, places = run('MaxPool', {x:view(1, 1, 16)}, {kernel_shape = {4}, strides = {4}}, {outputs = 2})
	assert(y:dim() == 3 and equal(places, {{{3, 7, 11, 15}}}))
	y = run('MaxPool', {x:to 'uint8'}, {kernel_shape = {2, 2}, strides = {2, 2}})
	assert(y:dtype() == 'uint8' and equal(y, {{{{6, 8}, {14, 16}}}}))
	assert(equal(run('GlobalLpPool', {tensor {{{3, -4}}}}), {{{5}}}) and equal(run('GlobalLpPool', {tensor {{{3, -4}}}}, {p = 1}), {{{7}}}))
	assert(equal(run('LpPool', {tensor {{{1, -2, 2}}}}, {kernel_shape = {3}, p = 3}, {opset = 22}), {{{17 ^ (1 / 3)}}}))
end)
