-- SPDX-License-Identifier: MIT
-- g:quantize{equalize=, biascorrect=}: the bits of m:quantize with the same options; what stands between two layers decides.
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
local function images(n) return tensor.randn(n, 3, 8, 8) end
local models = {
	mlp = {uneven(nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4)}), tensor.randn(64, 8)},
	cnn = {uneven(nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups=8}), nn.MaxPool2d(2),
		nn.Conv2d(8, 6, 1, {bias=false}), nn.ReLU(), nn.Flatten(), nn.Linear(54, 4)}), images(24)},
	residual = {uneven(nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 1)}, nn.ReLU(),
		nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 3)}), images(24)},
}

for name, entry in pairs(models) do
	it(name .. ': the bits of m:quantize', function()
		local m, x = table.unpack(entry)
		local data = {{x, x}}
		for _, o in ipairs {{mode='weight_only', weight='int8', equalize=true}, {mode='dynamic', weight='int8', equalize=true},
			{mode='dynamic', weight='int4/1', biascorrect=data}, {mode='weight_only', weight='int4/1', biascorrect=data},
			{mode='weight_only', weight='int8', equalize=true, biascorrect=data}} do
			local wanted, got = m:quantize(o)(x), graph.trace(m, x):quantize(o):run(x, {check=true})
			assert(got:error(wanted).max == 0, ('%s %s: %g'):format(name, o.mode, got:error(wanted).max))
			local plain = graph.trace(m, x):quantize{mode=o.mode, weight=o.weight}:run(x)
			assert(got:error(plain).max > 0, 'the options change nothing')
		end
		m:calibrate(data, {log=false})
		for _, o in ipairs {{mode='static', weight='int8', equalize=data}, {mode='static', weight='int4/1', biascorrect=data},
			{mode='static', weight='int4', equalize=data, biascorrect=data}} do
			local wanted, got = m:quantize(o)(x), graph.trace(m, x):quantize(o):run(x, {check=true})
			assert(got:error(wanted).max == 0, ('%s %s: %g'):format(name, o.mode, got:error(wanted).max))
		end
		refused('quantize: equalize: wanted data to calibrate with again, because the ranges change, got true', graph.trace(m, x).quantize,
			graph.trace(m, x), {mode='static', equalize=true})
	end)
end

it('equal ranges make per-tensor weights better, and leave the float graph what it computes', function()
	local m, x = uneven(nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)}), tensor.randn(64, 8)
	local g, y = graph.trace(m, x), m(x)
	local function sqnr(o) return g:quantize(o):run(x):error(y).sqnr end
	assert(sqnr {mode='weight_only', weight='int8', equalize=true} > sqnr {mode='weight_only', weight='int8'} + 3)
	assert(g:run(x):error(y).max == 0)
end)

it('biascorrect: the mean of each channel is that of the float graph', function()
	local m, x = table.unpack(models.mlp)
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local function shift(q) return (q:run(x) - g:run(x)):mean{axis=1}:abs():max():item() end
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		local before, after = g:quantize{mode=mode, weight='int4'}, g:quantize{mode=mode, weight='int4', biascorrect={{x, x}}}
		assert(shift(after) < 1e-5 and shift(before) > 1e-3, ('%s: %g, before %g'):format(mode, shift(after), shift(before)))
	end
	refused('quantize: biascorrect: wanted at least one batch, got none', g.quantize, g, {mode='dynamic', biascorrect=function() return function() end end})
end)

it('the layers of a Lua function are found; what scales otherwise, or is read by others, stays', function()
	local x = tensor.randn(32, 8)
	local function weights(f)
		local m = uneven(nn.module(f, {a=nn.Linear(8, 16), b=nn.Linear(16, 4), c=nn.Linear(16, 4)}))
		local q = graph.trace(m, x):quantize{mode='weight_only', weight='int16', equalize=true}
		return q:node('a.weight').value:dequantize():error(m.a.weight:detach()).max / m.a.weight:detach():abs():max():item()
	end
	assert(weights(function(self, v) return self.b(self.a(v):relu()) end) > 0.05)
	assert(weights(function(self, v) return self.b(self.a(v):tanh()) end) < 1e-3)
	assert(weights(function(self, v)
		local y = self.a(v):relu()
		return self.b(y) + self.c(y)
	end) < 1e-3)
end)

it('a Linear whose rows are laid flat is left alone: its channels lie side by side', function()
	local m, x = uneven(nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2)}), tensor.randn(5, 3, 4)
	assert(m:equalize()(x):error(m(x)).max < 1e-4)
	local q = graph.trace(m, x):quantize{mode='weight_only', weight='int16', equalize=true}
	assert(q:run(x):error(m(x)).sqnr > 60)
end)
