-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- What the operations on lines share: any axis of any layout gives the bits of the dense line, on every thread count
-- and kernel level.
tensor.seed(5)
local LINES = {
	softmax = {}, logsoftmax = {}, cumsum = {}, sort = {}, sort_down = {op = 'sort', descending = true},
	topk = {k = 2}, smallest = {op = 'topk', k = 1, largest = false},
}
local function results(name, x, axis)
	local options = {}
	for k, v in pairs(LINES[name]) do options[k] = v end
	local op = options.op or name
	options.op, options.axis = nil, axis
	return {x[op](x, options)}
end
local function bits(list)
	local out = {}
	local function add(v)
		if type(v) == 'table' then for _, w in ipairs(v) do add(w) end return end
		out[#out + 1] = math.type(v) == 'float' and ('%a'):format(v) or tostring(v)
	end
	for _, t in ipairs(list) do
		out[#out + 1] = table.concat({t:size()}, 'x') .. t:dtype()
		add(t:totable())
	end
	return table.concat(out, ' ')
end

it('gives the bits of the dense line for every axis and layout', function()
	for _, dtype in ipairs{'float32', 'float64', 'float16', 'int8', 'int64', 'bool'} do
		for _, shape in ipairs{{7, 40}, {40, 7}, {3, 20, 5}, {2, 3, 4, 5}, {60, 2}} do
			local x = (tensor.randn(table.unpack(shape)) * 3):to(dtype)
			local order = {}
			for d = 1, #shape do order[d] = #shape + 1 - d end
			local y = x:permute(table.unpack(order)):contiguous():permute(table.unpack(order))
			for name in pairs(LINES) do
				for axis = 1, #shape do
					local back, forth, n = {}, {}, 0
					for d = 1, #shape do if d ~= axis then n = n + 1 forth[n] = d back[d] = n end end
					forth[#shape], back[axis] = axis, #shape
					local dense = results(name, x:permute(table.unpack(forth)):contiguous(), #shape)
					for i, t in ipairs(dense) do dense[i] = t:permute(table.unpack(back)) end
					local want, what = bits(dense), name .. dtype .. table.concat(shape, 'x') .. axis
					assert(bits(results(name, x, axis)) == want, what)
					assert(bits(results(name, y, axis)) == want, what)
				end
			end
		end
	end
end)

it('works on slices and repeated axes', function()
	local x = tensor.randn(30, 40)
	local slice, wide = x['3:20, 5:31'], x[3]:expand(20, 40)
	for name in pairs(LINES) do
		for axis = 1, 2 do
			assert(bits(results(name, slice, axis)) == bits(results(name, slice:clone(), axis)), name)
			assert(bits(results(name, wide, axis)) == bits(results(name, wide:clone(), axis)), name)
		end
	end
end)

-- The same without texts, for large tensors that have no NaN: equal numbers, and equal signs of zeros.
local function same(a, b)
	for i, t in ipairs(a) do
		if t:dtype() ~= b[i]:dtype() or not t:eq(b[i]):all():item() or not (1 / t):eq(1 / b[i]):all():item() then return false end
	end
	return #a == #b
end

it('gives the same bits on every thread count and kernel level', function()
	local threads, level = tensor.threads(), hw.features().level
	local x, long = tensor.randn(300, 700), tensor.randn(100003)
	for name in pairs(LINES) do
		local want, once = {results(name, x, 1), results(name, x, 2)}, results(name, long, 1)
		local function check(what)
			for axis = 1, 2 do assert(same(results(name, x, axis), want[axis]), name .. what) end
			assert(same(results(name, long, 1), once), name .. what)
		end
		for _, n in ipairs{1, 2, 3} do
			tensor.threads(n)
			check(n)
		end
		for _, forced in ipairs{'ref', 'avx2', 'native'} do
			hw.force(forced)
			check(forced)
		end
		tensor.threads(threads)
		hw.force(level)
	end
end)

it('handles wide tensors with few long lines', function()
	local x = tensor.randn(20000, 3)
	local copy = x:t():contiguous()
	for axis_name, op in pairs{cumsum = 'cumsum', softmax = 'softmax'} do
		assert(same({x[op](x, 1)}, {copy[op](copy, 2):t()}), axis_name)
	end
end)
