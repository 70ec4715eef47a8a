-- SPDX-License-Identifier: MIT
-- Ops that become several nodes: einsum of more than two operands, with the bits of the op.
tensor.seed(4)
local x, w, v = tensor.randn(5, 3, 4), tensor.randn(4, 6), tensor.randn(6, 3)
for equation, operands in pairs {['bij,jk,ki->b'] = {w, v}, ['...ij,jk,kl->...il'] = {w, v}, ['bij, jk, ki'] = {w, v}, ['bij,bij,jk,kl->lb'] = {x, w, v},
	['bii,ij,jk'] = {w, v}} do
	local first = equation:find '^bii' and x['::1, 1:3, 1:3'] or x
	local own = equation:find '^bii' and {tensor.randn(3, 4), w} or operands
	local m = nn.module(function(_, a)
		if equation:find '^bij,bij' then return tensor.einsum(equation, a, a, w, v) end
		return tensor.einsum(equation, a, table.unpack(own))
	end)
	local g = graph.trace(m, first)
	local nodes = 0
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if node.op == 'einsum' then
			nodes = nodes + 1
			assert(#node.inputs == 2)
		end
	end
	assert(nodes == (equation:find '^bij,bij' and 3 or 2), equation)
	assert(g:run(first):eq(m(first)):all():item(), equation)
end
local two = graph.trace(nn.module(function(_, a) return tensor.einsum('bij,jk->bk', a, w) end), x)
assert(#two.order == 3)
