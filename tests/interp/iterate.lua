-- SPDX-License-Identifier: MIT
-- Tensors in for loops.
local function walk(iterate, x)
	local list = {}
	for i, v in iterate(x) do list[#list + 1] = i .. '=' .. tostring(v:dim() == 0 and v:item() or v) end
	return table.concat(list, '; ')
end

for _, name in ipairs {'pairs', 'ipairs'} do
	it(name .. ' walks along axis 1 and ends at #x', function()
		local iterate = _G[name]
		assert(walk(iterate, tensor {5, 7, 9}) == '1=5.0; 2=7.0; 3=9.0')
		assert(walk(iterate, tensor {{1, 2}, {3, 4}}) == '1=float32(2)  1  2; 2=float32(2)  3  4')
		assert(walk(iterate, tensor.zeros(0, 3)) == '')
		assert(walk(iterate, tensor {1, 2, 3, 4}['2:3']) == '1=2.0; 2=3.0', 'a view')
	end)
	it(name .. ' gives views: writing to them writes to the tensor', function()
		local x = tensor.zeros(3, 2)
		for i, row in _G[name](x) do row:fill_(i) end
		assert(x:eq(tensor {{1, 1}, {2, 2}, {3, 3}}):all():item())
	end)
	it(name .. ' gives views with quant params', function()
		local n = 0
		for i, row in _G[name](tensor {{1, 2}, {3, 4}}:quantize 'int8/1') do
			assert(row:quantized() and row:qparams().scale:dim() == 0, tostring(row))
			n = n + i
		end
		assert(n == 3)
	end)
	it(name .. ' of a tensor without axes is an error', function()
		local good, message = pcall(function() for _ in _G[name](tensor {1}:sum()) do end end)
		assert(not good and message:find 'wanted', message)
	end)
	it(name .. ' of tables is as it was', function()
		local n = 0
		for i, v in _G[name] {4, 5} do n = n + i * v end
		assert(n == 14)
	end)
end

it('an index behind the end is an error outside of ipairs', function()
	local x = tensor {1, 2}
	print(pcall(function() return x[3] end))  --> false ...index: wanted an index from 1 to 2 (or negative, from the end), got 3
	local step = ipairs {}
	print(step(x, 1))  --> 2 2
	print(step(x, 2))  --> nil
	print(pcall(step, x, 3))  --> false ...got 4
	local wrapped = coroutine.wrap(function() for i in ipairs(x) do coroutine.yield(i) end end)
	print(wrapped(), wrapped(), wrapped())  --> 1 2
end)
