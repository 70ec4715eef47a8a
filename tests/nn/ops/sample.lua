-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.sample beside a plain sort: which classes stay, and the one at a share of their probabilities.
tensor.seed(2)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local refused = checks.refused

-- The weights of the classes that stay, by the definition.
local function kept(row, o)
	local w, order, most = {}, {}, -math.huge
	for _, l in ipairs(row) do most = math.max(most, l) end
	for i, l in ipairs(row) do w[i], order[i] = math.exp((l - most) / (o.temperature or 1)), i end
	table.sort(order, function(a, b) return w[a] > w[b] or w[a] == w[b] and a < b end)
	local stop, total, part = math.min(o.topk or #row, #row), 0, 0
	for i = 1, stop do total = total + w[order[i]] end
	for i = 1, stop do
		part = part + w[order[i]]
		if o.topp and part >= o.topp * total then
			stop = i
			break
		end
	end
	local set = {}
	for i = 1, stop do
		if w[order[i]] >= (o.minp or 0) and w[order[i]] > 0 then set[order[i]] = w[order[i]] end
	end
	return set
end

-- Whether the class i is at the share u of the weights that stay, but for the rounding of sums.
local function is_at(row, o, u, i)
	local set, total, before = kept(row, o), 0, 0
	if not set[i] then return false end
	for k = 1, #row do
		total = total + (set[k] or 0)
		if k < i then before = before + (set[k] or 0) end
	end
	return before <= u * total + 1e-5 * total and u * total <= before + set[i] + 1e-5 * total
end

local CASES = {{}, {temperature = 0.3}, {temperature = 4}, {topk = 1}, {topk = 7}, {topp = 0.5}, {topp = 0.95, temperature = 2}, {minp = 0.1}, {topk = 20, topp = 0.8},
	{topk = 500, topp = 0.3, minp = 0.02, temperature = 1.5}, {topp = 1e-9}, {minp = 1}}

it('the class at a share of the weights', function()
	local logits = tensor.randn(6, 301) * 3
	local rows = logits:totable()
	for _, o in ipairs(CASES) do
		for _, share in ipairs {0, 0.13, 0.5, 0.77, 0.999} do
			local got = nn.sample(logits, tensor {share, share, share, share, share, share, dtype = 'float64'}, o):totable()
			for i, row in ipairs(rows) do
				assert(is_at(row, o, share, got[i]), ('class %d at %g of row %d, topk %s topp %s minp %s'):format(got[i], share, i, o.topk, o.topp, o.minp))
			end
		end
	end
end)

it('of equal classes the first stay; what cannot be', function()
	local flat = tensor.zeros(1, 10)
	for share = 0, 0.9, 0.1 do
		assert(nn.sample(flat, tensor {share}, {topk = 3}):item() == math.floor(share * 3 + 1e-6) + 1 or share == 0.3 or share == 0.6)
		assert(nn.sample(flat, tensor {share}, {topp = 0.2}):item() <= 2)
	end
	local some = tensor {{-math.huge, 2, -math.huge, 2, -1e30}}
	for share = 0, 0.99, 0.03 do
		local i = nn.sample(some, tensor {share}):item()
		assert(i == 2 or i == 4)
	end
	assert(nn.sample(some, tensor {0.6}, {topk = 5, topp = 0.99}):item() == 4)
end)

it('frequencies are the probabilities', function()
	local logits, count, n = tensor {{0, 1, 2, -1}}, {0, 0, 0, 0}, 4000
	local drawn = nn.sample(logits:expand(n, 4), tensor.rand(n)):totable()
	for _, i in ipairs(drawn) do count[i] = count[i] + 1 end
	for i, p in ipairs(logits:softmax():view(4):totable()) do assert(math.abs(count[i] / n - p) < 0.03) end
end)

it('bad input', function()
	local x, u = tensor.zeros(2, 3), tensor {0.5, 0.5}
	refused('sample: temperature: wanted a number above 0, got 0', nn.sample, x, u, {temperature = 0})
	refused('sample: topk: wanted 1 or more, got 0', nn.sample, x, u, {topk = 0})
	refused('sample: topp: wanted a number above 0, at most 1, got 0', nn.sample, x, u, {topp = 0})
	refused('sample: minp: wanted a number from 0 to 1, got 2', nn.sample, x, u, {minp = 2})
	refused('sample: wanted logits (n, classes) and shares u (n), got (2, 3) and (1)', nn.sample, x, tensor {0.5})
	refused('sample: u: wanted shares from 0 to below 1, got 1', nn.sample, x, tensor {0.5, 1})
	refused('sample: logits: wanted finite numbers or -inf, got nan for class 2', nn.sample, tensor {{0, 0 / 0, 1}, {0, 0, 0}}, u)
	refused('sample: logits: wanted one class at least that is not -inf, got none', nn.sample, tensor {{-math.huge, -math.huge}}, tensor {0.5})
	assert(nn.sample(tensor.zeros(0, 3), tensor.zeros(0)):nelem() == 0)
end)
