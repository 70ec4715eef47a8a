-- SPDX-License-Identifier: MIT
-- Pass fuse_activation: act= of linear and conv2d gives the same bits; not where somebody else reads the sum.
tensor.seed(6)

it('fuses every activation that a layer can do', function()
	for _, kind in ipairs {'ReLU', 'ReLU6', 'GELU', 'SiLU', 'Tanh', 'Sigmoid', 'Hardswish'} do
		local m = nn.Sequential{nn.Linear(5, 7), nn[kind](), nn.Linear(7, 2)}
		local x = tensor.randn(3, 5)
		local g = graph.trace(m, x)
		local h, r = g:pass 'fuse'
		assert(#r == 1 and h:node('linear1').attrs.act == kind:lower() and #h.order == #g.order - 1)
		assert(h:run(x):error(m(x)).max == 0, kind)
	end
end)

it('leaves activations with attributes, behind other ops, or beside other users', function()
	local x = tensor.randn(3, 5)
	local function count(m) return #select(2, graph.trace(m, x):pass 'fuse') end
	print(count(nn.Sequential{nn.Linear(5, 5), nn.LeakyReLU()}), count(nn.Sequential{nn.LayerNorm(5), nn.ReLU()}))  --> 0 0
	print(count(nn.module(function(self, v)
		v = self.a(v)
		return v:relu() + v
	end, {a=nn.Linear(5, 5)})))  --> 0
	print(count(nn.module(function(self, v)
		v = self.a(v)
		return v:relu(), v
	end, {a=nn.Linear(5, 5)})))  --> 0
	print(count(nn.Sequential{nn.Linear(5, 5), nn.ReLU(), nn.Tanh()}))  --> 1
end)
