-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor.arange(1, 16):to('float32'):view(1, 1, 4, 4)
local w = tensor.ones(1, 1, 2, 2)

it('convolves with pads, strides, dilations, groups and a bias', function()
	assert(equal(run('Conv', {x, w, tensor {10}}, {strides = {2, 2}}, {fixed = {2, 3}}), {{{{24, 32}, {56, 64}}}}))
	assert(equal(run('Conv', {x, w}, {strides = {2, 2}, dilations = {2, 2}}, {fixed = {2}}), {{{{24}}}}))
	assert(equal(run('Conv', {x, w}, {strides = {4, 4}, pads = {1, 0, 0, 2}}, {fixed = {2}}), {{{{3, 0}}}}))
	local two = tensor.cat({x, x * 2}, {axis = 2})
	assert(equal(run('Conv', {two, tensor.ones(2, 1, 4, 4)}, {group = 2}, {fixed = {2}}), {{{{136}}, {{272}}}}))
end)

it('pads by auto_pad', function()
	local y = run('Conv', {x, w}, {auto_pad = 'SAME_UPPER', strides = {3, 3}}, {fixed = {2}})
	assert(equal(y, {{{{14, 12}, {27, 16}}}}), y)
	y = run('Conv', {x, w}, {auto_pad = 'SAME_LOWER', strides = {3, 3}}, {fixed = {2}})
	assert(equal(y, {{{{1, 7}, {22, 54}}}}), y)
	assert(equal(run('Conv', {x, w}, {auto_pad = 'VALID', strides = {2, 2}}, {fixed = {2}}), {{{{14, 22}, {46, 54}}}}))
end)

it('convolves along one axis', function()
	local line = tensor {{{1, 2, 3, 4, 5}}}
	assert(equal(run('Conv', {line, tensor {{{1, 0, -1}}}}, {pads = {1, 1}}, {fixed = {2}}), {{{-2, -2, -2, -2, 4}}}))
	local ok, message = pcall(run, 'Conv', {tensor.ones(1, 1, 2, 2, 2, 2), tensor.ones(1, 1, 1, 1, 1, 1)}, nil, {fixed = {2}})
	assert(not ok and message:find '%(Conv%): wanted 1', message)
end)

-- Each number of x adds a copy of its kernel to the result, whose ends are cut off.
local function transposed(t, w, stride, dilation, begin, size)
	local y = {}
	for i = 1, size do y[i] = 0 end
	for i, v in ipairs(t) do
		for k, c in ipairs(w) do
			local at = (i - 1) * stride + (k - 1) * dilation - begin + 1
			if at >= 1 and at <= size then y[at] = y[at] + v * c end
		end
	end
	return y
end

it('convolves transposed', function()
	local t, w = {1, -2, 3, 0.5}, {1, 10, 100}
	local x, kernel = tensor(t):view(1, 1, 4), tensor(w):view(1, 1, 3)
	local cases = {{{}, 1, 1, 0, 6}, {{strides = {2}}, 2, 1, 0, 9}, {{strides = {3}, pads = {1, 0}}, 3, 1, 1, 11}, {{strides = {2}, dilations = {2}, pads = {1, 2}}, 2, 2, 1, 8},
		{{strides = {3}, output_padding = {1}}, 3, 1, 0, 13}, {{strides = {2}, output_shape = {10}}, 2, 1, 0, 10}, {{strides = {2}, output_shape = {8}}, 2, 1, 1, 8},
		{{strides = {2}, auto_pad = 'SAME_UPPER'}, 2, 1, 0, 8}, {{strides = {1}, auto_pad = 'SAME_LOWER'}, 1, 1, 1, 4}, {{strides = {2}, auto_pad = 'VALID'}, 2, 1, 0, 9}}
	for i, case in ipairs(cases) do
		local y = run('ConvTranspose', {x, kernel, tensor {0.5}}, case[1], {fixed = {2, 3}})
		assert(equal(y, tensor(transposed(t, w, case[2], case[3], case[4], case[5])):view(1, 1, -1) + 0.5), i)
	end
	local y = run('ConvTranspose', {x:view(1, 2, 1, 2), tensor {1, 2, 3, 4}:view(2, 1, 1, 2)}, {group = 2, strides = {1, 2}}, {fixed = {2}})
	assert(equal(y, {{{{1, 2, -2, -4}}, {{9, 12, 1.5, 2}}}}))
	local ok, message = pcall(run, 'ConvTranspose', {x, kernel}, {output_shape = {30}}, {fixed = {2}})
	assert(not ok and message:find 'pads: wanted 0 or more before the input', message)
end)

it('convolves volumes', function()
	tensor.seed(4)
	local t, kernel, bias = tensor.randn(2, 4, 5, 4, 6), tensor.randn(4, 2, 2, 3, 2), tensor.randn(4)
	local T, K, B = t:totable(), kernel:totable(), bias:totable()
	local stride, dilation, begin = {2, 1, 1}, {2, 1, 3}, {1, 0, 2}
	local y = run('Conv', {t, kernel, bias}, {strides = stride, dilations = dilation, pads = {1, 0, 2, 0, 1, 1}, group = 2}, {fixed = {2, 3}})
	assert(table.concat({y:size()}, ' ') == '2 4 2 3 6')
	for i, place in ipairs {{1, 1, 1, 1, 1}, {2, 4, 2, 3, 6}, {1, 3, 2, 2, 4}, {2, 2, 1, 3, 2}} do
		local n, o, sum = place[1], place[2], B[place[2]]
		for c = 1, 2 do
			for d = 1, 2 do
				for h = 1, 3 do
					for w_ = 1, 2 do
						local at = {}
						for a, k in ipairs {d, h, w_} do at[a] = (place[a + 2] - 1) * stride[a] + (k - 1) * dilation[a] - begin[a] + 1 end
						local plane = T[n][c + (o > 2 and 2 or 0)][at[1]]
						sum = sum + (plane and plane[at[2]] and plane[at[2]][at[3]] or 0) * K[o][c][d][h][w_]
					end
				end
			end
		end
		assert(math.abs(y[n][o][place[3]][place[4]][place[5]]:item() - sum) < 1e-4, i)
	end
end)
