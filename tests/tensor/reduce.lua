-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- What all reductions share: axes, keep, views, bits that depend neither on strides, threads nor kernels.
local state = 12345
local function random() -- uniform in -1..1
	state = (state * 1103515245 + 12345) % 2147483648
	return state / 1073741824 - 1
end
local function filled(...)
	local x = tensor.zeros(...)
	local flat = x:view(-1)
	local values = {}
	for i = 1, x:nelem() do values[i] = random() end
	flat:copy_(tensor(values))
	return x
end

local REDUCTIONS = {'sum', 'mean', 'max', 'min', 'argmax', 'argmin', 'any', 'all', 'var', 'std', 'norm', 'median'}
local function bits(t)
	local list = {}
	local function add(v)
		if type(v) == 'table' then for _, w in ipairs(v) do add(w) end return end
		list[#list + 1] = math.type(v) == 'float' and ('%a'):format(v) or tostring(v)
	end
	add(t:totable())
	return table.concat(list, ' ')
end
local function same(a, b, what)
	assert(a:dim() == b:dim() and bits(a) == bits(b), what)
end

it('takes one axis, a list, a negative one, positions and names', function()
	local x = filled(2, 3, 4, 5)
	for _, op in ipairs(REDUCTIONS) do
		local f = x[op]
		if op ~= 'norm' then -- whose first position is p
			same(f(x, 2), f(x, {axis = 2}), op)
			same(f(x, 2, 4), f(x, {axis = {4, 2}}), op)
			same(f(x, {2, 4}), f(x, {axis = {2, 4}}), op)
		end
		same(f(x, {axis = 2}), f(x, {axis = -3}), op)
		same(f(x), f(x, {axis = {1, 2, 3, 4}}), op)
		assert(table.concat({f(x, {axis = {1, 3}}):size()}, ' ') == '3 5')
		assert(table.concat({f(x, {axis = {1, 3}, keep = true}):size()}, ' ') == '1 3 1 5')
		same(f(x, {axis = {1, 3}, keep = true}):view(3, 5), f(x, {axis = {1, 3}}), op)
	end
end)

it('refuses axes that are not there', function()
	local x = filled(2, 3)
	for _, op in ipairs(REDUCTIONS) do
		local function fails(text, ...)
			local good, message = pcall(x[op], x, ...)
			assert(not good and message:find(text, 1, true), op .. ': ' .. tostring(message))
		end
		if op ~= 'norm' then fails('axis: wanted an axis from 1 to 2 (or -2 to -1), got 3', 3) end
		fails('got 0', {axis = 0})
		fails('axis 1 twice', {axis = {1, -2}})
		fails('empty list', {axis = {}})
		fails("did you mean 'axis'", {axsi = 1})
		fails('wanted', x)
	end
	local good, message = pcall(function() return tensor(1):sum(1) end)
	assert(not good and message:find('axis', 1, true))
end)

it('gives the same bits for every layout', function()
	for _, shape in ipairs{{37, 70}, {3, 1200}, {1200, 3}, {1100, 33}, {5, 9, 64}, {130, 2, 17}, {2, 3, 4, 5, 6}} do
		local x = filled(table.unpack(shape))
		local order = {}
		for d = 1, #shape do order[d] = #shape + 1 - d end
		local y = x:permute(table.unpack(order)):contiguous():permute(table.unpack(order)) -- the same in other strides
		assert(not y:iscontiguous())
		for _, op in ipairs(REDUCTIONS) do
			for mask = 1, (1 << #shape) - 1 do
				local axes = {}
				for d = 1, #shape do if mask >> (d - 1) & 1 == 1 then axes[#axes + 1] = d end end
				same(x[op](x, {axis = axes}), y[op](y, {axis = axes}), op .. ' ' .. table.concat(shape, 'x') .. ' ' .. mask)
			end
		end
	end
end)

it('works on slices, repeated axes and single numbers', function()
	local x = filled(40, 50)
	local slice, copy = x['5:30, 7:44'], x['5:30, 7:44']:clone()
	local wide = x[3]:expand(20, 50)
	for _, op in ipairs(REDUCTIONS) do
		for _, axes in ipairs{{1}, {2}, {1, 2}} do
			same(slice[op](slice, {axis = axes}), copy[op](copy, {axis = axes}), op)
			same(wide[op](wide, {axis = axes}), wide:clone()[op](wide:clone(), {axis = axes}), op)
		end
		assert(tensor(2)[op](tensor(2)):dim() == 0)
	end
	local deep = filled(2, 1, 3, 1, 2, 1, 2, 2)
	assert(math.abs(deep:sum{axis = {2, 5, 8}}:sum():item() - deep:sum():item()) < 1e-5)
end)

it('gives the same bits on every thread count and kernel level', function()
	local x, tall = filled(200001), filled(70000, 9)
	local threads, level = tensor.threads(), hw.features().level
	for _, op in ipairs(REDUCTIONS) do
		local want, rows = bits(x[op](x)), bits(tall[op](tall, {axis = 1}))
		for _, n in ipairs{1, 2, 3} do
			tensor.threads(n)
			assert(bits(x[op](x)) == want and bits(tall[op](tall, {axis = 1})) == rows, op .. n)
		end
		for _, name in ipairs{'ref', 'avx2', 'native'} do
			hw.force(name)
			assert(bits(x[op](x)) == want and bits(tall[op](tall, {axis = 1})) == rows, op .. name)
		end
		tensor.threads(threads)
		hw.force(level)
	end
end)

it('adds more exactly than one float after the other', function()
	local x = tensor(0.1):expand(1 << 22)
	local exact = x[1]:item() * (1 << 22)
	assert(math.abs(x:sum():item() / exact - 1) < 1e-6, x:sum():item() / exact)
	assert(math.abs(x:mean():item() / x[1]:item() - 1) < 1e-6)
end)

it('reads every dtype', function()
	local x = tensor{{1, 0, 1, 1}, {0, 1, 1, 0}, {1, 1, 1, 1}}
	for _, dtype in ipairs{'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'bool', 'int4', 'uint4'} do
		local y = x:to(dtype)
		for _, op in ipairs(REDUCTIONS) do
			for _, axes in ipairs{{1}, {2}, {1, 2}} do
				local got = y[op](y, {axis = axes}):to 'float32'
				assert(got:metrics(x[op](x, {axis = axes}):to 'float32').max < 1e-2, op .. dtype)
			end
		end
	end
end)
