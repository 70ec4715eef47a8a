-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass make_linear: products with constants become linear, constants that are added biases; values stay, a second run changes nothing.
tensor.seed(2)
local w, b, x = tensor.randn(3, 4), tensor.randn(4), tensor.randn(2, 3)
local row = b:view(1, 4)

local function passed(f, given)
	local g = graph.trace(nn.module(f, {}), given)
	local made, r = g:pass 'layers'
	local y, want = {made:run(given)}, {g:run(given)}
	for i = 1, #want do assert((y[i] - want[i]):abs():max():item() < 1e-5) end
	local again, none = made:pass 'layers'
	assert(#none == 0 and #again.order == #made.order)
	return made, r
end

local function ops_of(g)
	local names = {}
	for _, name in ipairs(g.order) do names[#names + 1] = g:node(name).op end
	return table.concat(names, ' ')
end

it('joins a product and a sum', function()
	local g, r = passed(function(_, a) return a:matmul(w) + b end, x)
	assert(ops_of(g) == 'input const const linear' and #r == 2, ops_of(g))
	g = passed(function(_, a) return row + a:matmul(w) end, x)
	assert(ops_of(g) == 'input const const linear', ops_of(g))
end)

it('adds biases of channels to convolutions', function()
	local k, bias, image = tensor.randn(4, 3, 3, 3), tensor.randn(4, 1, 1), tensor.randn(2, 3, 5, 5)
	local g = passed(function(_, a) return a:conv2d(k) + bias end, image)
	assert(ops_of(g) == 'input const const conv2d', ops_of(g))
	g = passed(function(_, a) return a:conv2d(k) + tensor.ones(3) end, image) -- along the width: no bias
	assert(ops_of(g):find 'add', ops_of(g))
end)

it('leaves what other ops use, or what is no bias', function()
	local g = passed(function(_, a)
		local y = a:matmul(w)
		return y + b, y
	end, x)
	assert(ops_of(g):find 'add', ops_of(g))
	g = passed(function(_, a) return a:matmul(w) + tensor.full {1, value = 2}, a:linear(w:t():contiguous(), b) + b end, x)
	assert(select(2, ops_of(g):gsub('add', '')) == 2, ops_of(g))
	g = passed(function(_, a) return a:matmul(w), a:matmul(w) end, x) -- the matrix has two users
	assert(ops_of(g):find 'matmul', ops_of(g))
end)
