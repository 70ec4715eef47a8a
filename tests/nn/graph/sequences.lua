-- SPDX-License-Identifier: MIT
-- Layers of nn.Graph that follow each other: method='equalize' of a graph has the weights of the module that it was traced from; what is between two
-- layers decides.
tensor.seed(51)
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end

-- Ranges of channels that differ widely, as training with batch norm leaves them.
local function uneven(m)
	tensor.nograd(function()
		for _, p in ipairs(m:parameters()) do
			if p:dim() > 1 then
				local shape = {p:size(1)}
				for _ = 2, p:dim() do shape[#shape + 1] = 1 end
				p:mul_((tensor.randn(table.unpack(shape)) * 1.5):exp())
			end
		end
	end)
	return m:eval()
end
local function graph_of(m, x) return nn.Graph(graph.trace(m, x)) end
local models = {
	mlp = {uneven(nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4)}), tensor.randn(64, 8)},
	cnn = {uneven(nn.Sequential {nn.Conv2d(3, 8, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups = 8}), nn.MaxPool2d(2),
		nn.Conv2d(8, 6, 1, {bias = false}), nn.ReLU(), nn.Flatten(), nn.Linear(54, 4)}), tensor.randn(24, 3, 8, 8)},
	residual = {uneven(nn.Sequential {nn.Conv2d(3, 8, 3, {pad = 1}), nn.Residual {nn.Conv2d(8, 8, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(8, 8, 1)}, nn.ReLU(),
		nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 3)}), tensor.randn(24, 3, 8, 8)},
}

for name, entry in pairs(models) do
	it(name .. ': as the module', function()
		local m, x = table.unpack(entry)
		local o = {mode = 'weight_only', weight = 'int8', method = 'equalize'}
		local wanted, got = m:quantize(o)(x), graph_of(m, x):quantize(o)(x)
		assert(got:error(wanted).max == 0, got:error(wanted).max)
		assert(got:error(graph_of(m, x):quantize {mode = 'weight_only', weight = 'int8'}(x)).max > 0, 'the method changes nothing')
		assert(m:equalize()(x):error(m(x)).sqnr > 90)
	end)
end
it('layers of a Lua function are found; what scales otherwise, or is read by others, stays', function()
	local x = tensor.randn(32, 8)
	local function moved(f)
		local m = uneven(nn.module(f, {a = nn.Linear(8, 16), b = nn.Linear(16, 4), c = nn.Linear(16, 4)}))
		local q = graph_of(m, x):equalize()
		assert((q(x)):error((m(x))).sqnr > 90)
		return q.a.weight:detach():error(m.a.weight:detach()).max / m.a.weight:detach():abs():max():item()
	end
	assert(moved(function(self, v) return self.b(self.a(v):relu()) end) > 0.05)
	assert(moved(function(self, v) return self.b(self.a(v):tanh()) end) == 0)
	assert(moved(function(self, v)
		local y = self.a(v):relu()
		return self.b(y) + self.c(y)
	end) == 0)
	assert(moved(function(self, v)
		local y = self.a(v):relu()
		return self.b(y), y
	end) == 0)
end)
it('a Linear whose rows are laid flat is left alone: its channels are interleaved', function()
	local m, x = uneven(nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2)}), tensor.randn(5, 3, 4)
	assert(graph_of(m, x):equalize()(x):error(m(x)).sqnr > 90)
end)
it('the options of g:quantize are methods now', function()
	local m, x = table.unpack(models.mlp)
	local g = graph.trace(m, x)
	refused("quantize: equalize: wanted nn.Graph(g):quantize{method='equalize'}, got the option of an earlier version", g.quantize, g, {equalize = true})
	refused("quantize: biascorrect: wanted nn.Graph(g):quantize{method='biascorrect', data=…}", g.quantize, g, {mode = 'dynamic', biascorrect = {{x}}})
end)
