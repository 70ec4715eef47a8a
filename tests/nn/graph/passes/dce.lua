-- SPDX-License-Identifier: MIT
-- Pass dce: what the outputs do not need goes, inputs stay.
local m = nn.module(function(self, x, _)
	local _ = self.a(x):exp()
	local states = select(2, self.l(x:unsqueeze(2)))
	return self.b(x) + states[1][1]
end, {a=nn.Linear(4, 4), b=nn.Linear(4, 4), l=nn.LSTM(4, 4)})
local x = tensor.randn(2, 4)
local g = graph.trace(m, {x, x}, {dead=true})

it('removes dead nodes with their constants', function()
	local h, r = g:pass 'dce'
	print(#r, r[-1].node, #g.order - #h.order)  --> 4 exp1 4
	print(h:node('input2').op, pcall(h.node, h, 'a.weight'))  --> input false ...
	print(h:run{x, x}:error(g:run{x, x}).max, h:run{x, x}:error(m(x, x)).max)  --> 0.0 0.0
	print(#select(2, h:pass 'dce'), h:pass('dce') == h)  --> 0 true
end)
