-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass recognize_onehot: linears of compared numbers become embeddings with the same bits, also of numbers outside of the list; a second run
-- changes nothing; others stay.
tensor.seed(3)
local w, b = tensor.randn(4, 6), tensor.randn(4)
w:narrow(2, 2, 1):fill_(-0.0)
local x = tensor {{0, 1, 5, 6, -1}, {3, 2, 2, 1000000, -2147483648}, {4, 0, 1, 2, 5}}

local function of(dtype, first, bias, turned)
	local list = tensor.arange(first, first + 5, {dtype = dtype})
	if turned then list = list:view(1, 1, 6) end
	return function(_, ids)
		local wide = ids:unsqueeze(-1)
		local one = (turned and list:eq(wide) or wide:eq(list)):to 'float32'
		return bias and one:linear(w, b) or one:linear(w)
	end
end

local function ops_of(g)
	local names = {}
	for _, name in ipairs(g.order) do names[#names + 1] = g:node(name).op end
	return ' ' .. table.concat(names, ' ') .. ' '
end

local function passed(f, given)
	local g = graph.trace(nn.module(f, {}), given)
	local made, r = g:pass 'layers'
	local y, want = made:run(given), g:run(given)
	assert(y:eq(want):all():item() and (1 / y):eq(1 / want):all():item()) -- the signs of zeros, too
	local again, none = made:pass 'layers'
	assert(#none == 0 and #again.order == #made.order)
	return made, r
end

it('has the same bits', function()
	for _, dtype in ipairs {'int32', 'int64'} do
		for _, first in ipairs {0, -1, 2} do
			for _, bias in ipairs {false, true} do
				for _, turned in ipairs {false, true} do
					local g = passed(of(dtype, first, bias, turned), x:to(dtype))
					local text = ops_of(g)
					assert(text:find ' embedding ' and not text:find ' eq ' and not text:find ' linear ', text)
					local few = x:to(dtype):narrow(1, 1, 1)
					assert(g:run(few):eq(g:run(x:to(dtype)):narrow(1, 1, 1)):all():item())
				end
			end
		end
	end
end)

local function stays(f, given)
	local text = ops_of(passed(f, given))
	assert(not text:find 'embedding', text)
end

it('leaves other lists, floats, and weights that are used elsewhere', function()
	local ids = x:to 'int32'
	local function equal(list, given) return function(_, a) return a:unsqueeze(-1):eq(list):to 'float32':linear(w) end, given end
	stays(equal(tensor {0, 1, 2, 3, 5, 4, dtype = 'int32'}, ids))
	stays(equal(tensor {0, 2, 4, 6, 8, 10, dtype = 'int32'}, ids))
	stays(equal(tensor {0, 1, 2, 3, 4, 5}, x))
	stays(equal(tensor {0, 1, 2, 3, 4, 5, dtype = 'int32'}:view(1, 1, 1, 6), ids))
	stays(function(_, a) return a:unsqueeze(-1):eq(tensor.arange(0, 5, {dtype = 'int32'})):to 'float32':linear(w) + w:sum() end, ids)
	stays(function(_, a) return a:eq(tensor.arange(0, 5, {dtype = 'int32'})):to 'float32':linear(w) end, tensor {{1, 2, 3, 4, 5, 6}, dtype = 'int32'})
end)

it('leaves weights that are not finite', function()
	local inf = w:clone()
	inf:narrow(2, 3, 1):fill_(math.huge)
	local g = graph.trace(nn.module(function(_, a) return a:unsqueeze(-1):eq(tensor.arange(0, 5, {dtype = 'int32'})):to 'float32':linear(inf) end, {}), x:to 'int32')
	assert(not ops_of((g:pass 'layers')):find 'embedding')
end)
