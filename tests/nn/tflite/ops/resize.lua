-- SPDX-License-Identifier: MIT
-- labels: quick
-- Images of other sizes in TFLite: values of LiteRT 2.3 by its formula, in the test.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local function place(i, from, to, corners, half)
	local scale = corners and to > 1 and (from - 1) / (to - 1) or from / to
	return half and (i + 0.5) * scale - 0.5 or i * scale, scale
end

local function linear(x, to, corners, half)
	local from, list = x:size(2), {}
	for i = 0, to - 1 do
		local at = math.max(0, (place(i, from, to, corners, half)))
		local first = math.min(math.floor(at), from - 1)
		local a, b = x:narrow(2, first + 1, 1), x:narrow(2, math.min(first + 1, from - 1) + 1, 1)
		list[#list + 1] = a + (b - a) * (at - first)
	end
	return tensor.cat(list, {axis = 2})
end

it('resizes by every rule', function()
	local x = tensor.randn(1, 4, 5, 2)
	for _, rule in ipairs {{false, false}, {true, false}, {false, true}} do
		for _, to in ipairs {{7, 9}, {2, 3}, {8, 10}, {1, 1}} do
			local o = {corners = rule[1], half = rule[2]}
			local y = run('RESIZE_BILINEAR', {x, ints(to[1], to[2])}, o, {fixed = {2}})
			local want = linear(linear(x, to[1], rule[1], rule[2]):transpose(2, 3), to[2], rule[1], rule[2]):transpose(2, 3)
			assert(equal(y, want, 1e-5), ('%s %s %d'):format(rule[1], rule[2], to[1]))
			local nearest = run('RESIZE_NEAREST_NEIGHBOR', {x, ints(to[1], to[2])}, o, {fixed = {2}})
			for i = 0, to[1] - 1 do
				local _, scale = place(i, 4, to[1], rule[1], rule[2])
				local at = rule[1] and math.floor(i * scale + 0.5) or math.floor(rule[2] and (i + 0.5) * scale or i * scale)
				assert(nearest[1][i + 1][1]:eq(x[1][math.min(at, 3) + 1][({nearest:size()})[3] == 1 and rule[2] and 3 or 1]):all():item())
			end
		end
	end
	assert(equal(run('RESIZE_BILINEAR', {x, ints(4, 5)}, {}, {fixed = {2}}), x))
	local ok, message = pcall(run, 'RESIZE_BILINEAR', {x, ints(0, 5)}, {}, {fixed = {2}})
	assert(not ok and message:find 'size: wanted two numbers of 1 and up, got 0 5', message)
end)

-- Made with LiteRT 2.3 (BUILTIN_REF).
it('resizes codes with signs in 1024ths', function()
	local codes = tensor {{5, 120, -128}, {-57, 30, 77}}:view(1, 2, 3, 1)
	local x = ((codes - 5) * tensor.full {1, value = 0.05}):quantize {dtype = 'int8', scale = 0.05, zero_point = 5, scheme = 'asymmetric'}
	for i, want in ipairs {{5, 74, 71, -78, -128, -36, 21, 50, 19, 9, -57, -5, 39, 68, 77}, {5, 63, 120, -4, -128, -26, 25, 75, 25, -26, -57, -14, 30, 54, 77},
		{5, 51, 120, -28, -128, -26, 14, 75, 15, -26, -57, -22, 30, 58, 77}} do
		local y = run('RESIZE_BILINEAR', {x, ints(3, 5)}, {corners = i == 2, half = i == 3}, {fixed = {2}, out = {type = 'INT8', scale = 0.05, zero = 5}})
		assert(equal(y:codes():view(-1), want, 0), i)
	end
end)
