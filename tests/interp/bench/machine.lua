-- SPDX-License-Identifier: MIT
-- bench.machine: structure and relations of its rows, not times.
it('gives limits and shares of them', function()
	local threads, before = tensor.threads(), tensor.memory().now
	tensor.seed(3)
	local wanted = tensor.rand(1):item()
	tensor.seed(3)
	local r = bench.machine {rows = {'limits', 'int8', 'conv int8', 'dequantize'}, threads = {1, 2}, time = 0.01}
	assert(tensor.rand(1):item() == wanted and tensor.threads() == threads)
	local seen = {}
	for _, row in ipairs(r) do
		local key = ('%s %s %d'):format(row.family, row.size, row.threads)
		assert(not seen[key], key)
		seen[key] = row
		if row.family == 'limits' then
			assert(row.most > 0 and row.ms == nil and row.unit:find '^G')
		else
			assert(row.min <= row.ms and row.rate > 0 and row.kernel and row.path, key)
			assert(row.most == nil or math.abs(row.share - row.rate / row.most) < 1e-9)
		end
	end
	for _, n in ipairs {1, 2} do
		for _, name in ipairs {'fma', 'int8', 'read', 'copy', 'write', 'quantize'} do assert(seen[('limits %s %d'):format(name, n)]) end
		local row = seen[('int8 256x256x256 %d'):format(n)]
		assert(row.path == 'int8' and row.limit == 'int8' and math.abs(row.rate * row.min - 2e-6 * 256 ^ 3) < 1e-6)
		assert(seen[('int8 1x4096x4096 %d'):format(n)].limit:find '^l3$' or seen[('int8 1x4096x4096 %d'):format(n)].limit == 'read')
	end
	collectgarbage()
	assert(tensor.memory().now <= before + (1 << 20))
end)

it('refuses what is no row', function()
	local function refused(text, o)
		local good, message = pcall(bench.machine, o)
		assert(not good and message:find(text, 1, true), message)
	end
	refused("machine: rows: item 1: wanted one of limits, float32, int8", {rows = {'int9'}})
	refused("did you mean 'int8'?", {rows = {'int9'}})
	refused('machine: threads: item 1: wanted an integer from 1 to 256, got 0', {threads = {0}})
	refused("machine: unknown option 'row'", {row = {}})
end)
