-- SPDX-License-Identifier: MIT
-- g:plan: what lives together lies apart, the block is hardly larger than what lives at one node, and a run in it is right.
tensor.seed(3)

-- No two buffers that live at the same node overlap; offsets are multiples of 64. Gives the peak and the bound.
local function check(g, batch)
	local r, peak, bound = g:plan{batch=batch}
	for i, a in ipairs(r) do
		assert(a.offset % 64 == 0 and a.offset + a.bytes <= peak)
		for k = i + 1, #r do
			local b = r[k]
			local together = a.first <= b.last and b.first <= a.last
			local apart = a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
			assert(not together or apart, a.node .. ' and ' .. b.node)
		end
	end
	assert(peak >= bound and peak <= 1.1 * bound, ('%d of at least %d'):format(peak, bound))
	return r, peak, bound
end

it('a chain needs two buffers, and none where an op writes over its operand', function()
	local g = graph.trace(nn.Sequential{nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16), nn.Linear(16, 16)}, tensor.ones(1, 16))
	local r, peak, bound = check(g)
	print(#r, peak, bound, r[1].inplace)  --> 3 320 320 relu1
	print(select(2, check(g, 10)))  --> 3200 3200
end)

it('what is wanted later, and outputs, are not written over', function()
	local m = nn.module(function(_, x)
		local a = x * 2
		local b = a:relu()
		return a:exp() + b, a
	end)
	local g = graph.trace(m, tensor.randn(2, 40))
	check(g)
	local x = tensor.randn(3, 40)
	local y, a = g:run(x, {arena=true})
	local y2, a2 = m(x)
	print(y:error(y2).max, a:error(a2).max)  --> 0.0 0.0
	local used = graph.trace(nn.module(function(_, v)
		local w = v * 2
		local t = w:t():relu()
		return t:matmul(w)
	end), tensor.randn(2, 40))
	local z = tensor.randn(2, 40)
	print(used:run(z, {arena=true}):error(used:run(z)).max)  --> 0.0
end)

-- Networks with many branches of different sizes.
local function branches(n, seed)
	local parts = {}
	for i = 1, n do parts['l' .. i] = nn.Linear(8, (i * seed) % 13 * 8 + 8) end
	return nn.module(function(self, x)
		local list = {}
		for i = 1, n do list[i] = self['l' .. i](x) end
		local sum = list[1]:sum{axis=2}
		for i = n, 2, -1 do sum = sum + list[i]:exp():sum{axis=2} end
		return sum
	end, parts)
end

it('branches of all sizes come within 10 % of the bound, and run right in the block', function()
	for seed = 1, 8 do
		local m = branches(4 + seed, seed)
		local g = graph.trace(m, tensor.randn(1, 8))
		check(g)
		check(g, 3)
		local x = tensor.randn(3, 8)
		assert(g:run(x, {arena=true}):error(m(x)).max == 0)
	end
end)

it('codes take their own bytes', function()
	local m = nn.Sequential{nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)}
	local x = tensor.randn(8, 64)
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x):quantize{mode='static'}
	local r, peak = check(g)
	print(r[1].node, r[1].bytes, r[2].node, r[2].bytes, peak)  --> linear1.quantize 64 linear1 128 384
	print(g:run(x, {arena=true}):error(g:run(x)).max)  --> 0.0
end)

it('refuses a batch of 0 and an unknown option', function()
	local g = graph.trace(nn.ReLU(), tensor.ones(1, 2))
	print(pcall(g.plan, g, {batch=0}))  --> false ...at least 1, got 0
	print(pcall(g.plan, g, {bach=1}))  --> false ...did you mean 'batch'...
	print(#graph.trace(nn.Sequential{nn.Flatten()}, tensor.ones(1, 2)):plan())  --> 0
end)

it('packed values of every width lie in the arena', function()
	tensor.seed(2)
	local m = nn.Sequential {nn.Linear(13, 11), nn.ReLU(), nn.Linear(11, 7), nn.ReLU(), nn.Linear(7, 3)}
	local x = tensor.randn(4, 13)
	for _, name in ipairs(quant.dtype()) do
		local d = quant.dtype(name)
		if d.bits < 8 and d.kind ~= 'binary' then
			local g = graph.trace(m, x)
			g:calibrate {{x, x}}
			local q = g:quantize {mode = 'static', weight = 'int8/1', input = name}
			assert(q:run(x):eq(q:run(x, {arena = true})):all():item(), name)
			local unit = d.packed * d.bits // 8
			for _, row in ipairs(q:plan()) do
				local dtype = q.nodes[row.node].results[1].dtype
				assert(dtype ~= name or row.offset % (64 * unit) == 0, name)
			end
		end
	end
end)
