-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- The observer adaptive: the best of the others on data that stay, and quick to follow data that change.
local function feed(o, scale, n)
	for _ = 1, n do o:update(tensor.randn(4000) * scale) end
	return o
end

it('is as good as the best of the others to 0.01 dB', function()
	tensor.seed(11)
	local x = tensor.randn(30000)
	x = x * x * x
	for _, s in ipairs {'int8', 'uint8', 'int4'} do
		local adaptive, best = x:metrics(x:quantize(s .. '@adaptive')).sqnr, -math.huge
		for _, name in ipairs {'minmax', 'percentile', 'entropy', 'mse'} do
			best = math.max(best, x:metrics(x:quantize(s .. '@' .. name)).sqnr)
		end
		assert(adaptive >= best - 0.01, s .. ' ' .. adaptive .. ' ' .. best)
	end
end)
it('sees no drift where there is none', function()
	tensor.seed(12)
	assert(feed(quant.observer 'int8@adaptive', 1, 60):stats().drifts == 0)
end)
it('follows a step within 20 batches, both ways', function()
	tensor.seed(13)
	for _, step in ipairs {8, 1 / 8} do
		local o = feed(feed(quant.observer 'int8@adaptive', 1, 60), step, 20)
		local fresh = feed(quant.observer 'int8@mse', step, 20)
		local _, hi = o:range()
		local _, wanted = fresh:range()
		assert(o:stats().drifts == 1 and math.abs(hi / wanted - 1) < 0.15, step .. ' ' .. hi .. ' ' .. wanted)
		local kept = feed(feed(quant.observer 'int8@minmax', 1, 60), step, 20)
		assert(step > 1 or select(2, kept:range()) > 5 * hi) -- minmax never comes down again
	end
end)
