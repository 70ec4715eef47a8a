-- SPDX-License-Identifier: MIT
-- w:gptq(u, spec) against the loop of the paper in plain Lua, and what must hold of it.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(5)

local function moments(rows, n)
	local x = tensor.randn(rows, n):matmul(tensor.randn(n, n)):to 'float64'
	local h = x:t():matmul(x) / rows
	return h + tensor.eye(n):to 'float64' * (0.01 * h:diag():mean():item())
end
local function same(a, b) return a:codes():eq(b:codes()):all():item() and a:dequantize():eq(b:dequantize()):all():item() end
local function loss(w, h, q)
	local e = (w - q:dequantize()):to 'float64'
	return e:matmul(h):mul(e):sum():item()
end

-- The loop on lists, column by column; spec: of a matrix (rows, group), whose scales are fitted when it begins.
local function by_hand(w, u, spec, group)
	local rows, n = #w, #w[1]
	local codes = {}
	for r = 1, rows do codes[r] = {} end
	for first = 1, n, group do
		local part = {}
		for r = 1, rows do part[r] = table.move(w[r], first, math.min(first + group - 1, n), 1, {}) end
		local scales = tensor(part):quantize(spec):qparams().scale:to 'float32':view(rows)
		for j = first, math.min(first + group - 1, n) do
			for r = 1, rows do
				local scale = scales[r]:item()
				local x = string.unpack('f', string.pack('f', w[r][j]))
				local q = tensor {x}:quantize {dtype = 'int4', scale = scale}
				codes[r][j] = q:codes()[1]:item()
				local e = (w[r][j] - q:dequantize()[1]:item()) / u[j][j]
				for k = j + 1, n do w[r][k] = w[r][k] - e * u[j][k] end
			end
		end
	end
	codes.dtype = 'int4'
	return tensor(codes)
end

it('is the loop of the paper', function()
	for _, case in ipairs {{'int4/1', 19, 19}, {'int4:8', 24, 8}, {'int4:8', 21, 8}} do
		local spec, n, group = table.unpack(case)
		local w, u = tensor.randn(5, n), moments(64, n):inversefactor()
		local q = w:gptq(u, spec)
		assert(q:codes():eq(by_hand(w:totable(), u:totable(), spec, group)):all():item(), spec)
		assert(tostring(q:spec()) == spec)
	end
end)
it('rounds with H = I', function()
	local w = tensor.randn(9, 64)
	local eye = tensor.eye(64)
	for _, spec in ipairs {'int4/1', 'int8', 'int4:32', 'uint4:16', 'uint4:32+min', 'int3/1', 'int2:32', 'nf4:64', 'mxfp4', 'nvfp4', 'fp8_e4m3',
		'binary', 'ternary', {dtype = 'int8', axis = 1, bits = {8, 4, 4, 2, 3, 8, 5, 6, 7}}, {dtype = 'uint8', axis = 2}} do
		assert(same(w:gptq(eye, spec), w:quantize(spec)), tostring(spec))
		assert(same(w:gptq(eye, spec, {static = true}), w:quantize(spec)), tostring(spec))
	end
end)
it('loses less than rounding, for every format', function()
	local w, h = tensor.randn(16, 256), moments(512, 256)
	local u = h:inversefactor()
	for _, name in ipairs {'int4/1', 'int4:32', 'int4:100', 'int4:200', 'uint4:32', 'uint4:32+min', 'nf4:64', 'mxfp4', 'nvfp4', 'int4:32@mse', 'int3:64', 'q4_0', 'q4_1',
		'q4_k', 'q5_k', 'q6_k', 'q3_k', 'q2_k', 'iq4_nl', 'fp8_e4m3', 'int4:32:64'} do
		for _, static in ipairs {false, true} do
			local q = w:gptq(u, name, {static = static})
			local ratio = loss(w, h, q) / loss(w, h, w:quantize(name))
			assert(ratio < 0.9, name .. ' ' .. ratio)
			assert(q:spec().name == w:quantize(name):spec().name)
		end
	end
end)
it('an order is one of permuted columns', function()
	local w, h = tensor.randn(6, 40), moments(99, 40)
	local _, order = h:diag():sort {descending = true}
	local back = tensor.zeros(40):to 'int64'
	for i, at in ipairs(order:totable()) do back[at] = i end
	local u = h:indexselect(1, order):indexselect(2, order):inversefactor()
	local q = w:gptq(u, 'int4/1', {order = order})
	local permuted = w:indexselect(2, order):gptq(u, 'int4/1', {static = true})
	assert(q:dequantize():eq(permuted:dequantize():indexselect(2, back)):all():item())
	-- the same columns in another order of the weight, under that order
	assert(same(w:gptq(h:inversefactor(), 'int4/1'), w:gptq(h:inversefactor(), 'int4/1', {order = tensor.arange(1, 40):to 'int64'})))
end)
it('groups of rows have factors of their own', function()
	local w, h = tensor.randn(6, 20), {moments(50, 20), moments(50, 20)}
	local u = tensor.stack {h[1]:inversefactor(), h[2]:inversefactor()}
	local q = w:gptq(u, 'int4:10')
	for g = 1, 2 do
		local part = w:narrow(1, 3 * g - 2, 3):gptq(u[g], 'int4:10')
		assert(q:dequantize():narrow(1, 3 * g - 2, 3):eq(part:dequantize()):all():item())
	end
end)
it('has the same codes on any number of threads', function()
	local w, u = tensor.randn(100, 300), moments(400, 300):inversefactor()
	local before, all = tensor.threads(), {}
	for i, threads in ipairs {1, 2, 3} do
		tensor.threads(threads)
		all[i] = w:gptq(u, 'int4:32')
	end
	tensor.threads(before)
	assert(same(all[1], all[2]) and same(all[1], all[3]))
	assert(same(w:t():contiguous():t():gptq(u, 'int4:32'), all[1]))
end)
it('takes odd sizes and other floats', function()
	for _, size in ipairs {{1, 1}, {3, 7}, {2, 129}, {5, 260}, {0, 8}} do
		local q = tensor.randn(size[1], size[2]):gptq(tensor.eye(size[2]), 'int4:32')
		assert(q:size(1) == size[1] and q:size(2) == size[2])
	end
	local w, u = tensor.randn(4, 16), moments(40, 16):inversefactor()
	assert(same(w:to 'float64':gptq(u, 'int4/1'), w:gptq(u, 'int4/1')))
	assert(w:to 'float16':gptq(u:to 'float32', 'int4/1'):size(2) == 16)
end)
it('refuses', function()
	local w, u = tensor.randn(4, 16), tensor.eye(16)
	refused('wanted a weight (rows, n) and a factor', w.gptq, w, tensor.eye(15), 'int4')
	refused('wanted a weight (rows, n) and a factor', w.gptq, w, tensor.ones(3, 16, 16), 'int4')
	refused('wanted numbers > 0 on its diagonal, got 0 at 2', w.gptq, w, tensor.eye(16):mul(tensor.ones(16, 16)):mul(tensor.arange(1, 16):ne(2):to 'float32'), 'int4')
	refused('wanted each column from 1 to 16 once', w.gptq, w, u, 'int4', {order = tensor.ones(16):to 'int64'})
	refused('wanted 16 integers for each group', w.gptq, w, u, 'int4', {order = tensor.ones(3):to 'int64'})
	refused('wanted plain floats', w.gptq, w:quantize 'int8', u, 'int4')
	refused('wanted a format whose columns', w.gptq, w, u, 'float16')
end)
