-- SPDX-License-Identifier: MIT
-- labels: full
-- stories260K on 20 texts of 256 tokens that its float model drew (temperature 1, seeds 1 to 20; scripts/stories.lua made the ids):
-- what integer weights do to the perplexity, and by which kernels.
local file = data.find 'weights/stories260K.bin'
if not file then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local m, texts, batches = nn.llama(file), dofile(folder .. 'tests/golden/stories_ids.lua'), {}
for i, ids in ipairs(texts) do
	local n = ids:size(1) - 1
	batches[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
end

-- Perplexity, and what ran: rows[op] = {[operands] = {path, kernel, count}}; nothing may fall back.
local function measure(model)
	quant.log 'reset'
	local perplexity, rows = model:evaluate(batches, {metric = 'perplexity', log = false}).perplexity, {}
	for i = 1, #quant.log() do
		local row = quant.log()[i]
		assert(row.path ~= 'fallback', row.op)
		rows[row.op] = rows[row.op] or {}
		rows[row.op][row.operands] = row
	end
	return perplexity, rows
end

it('has the texts: 256 tokens behind the first, all different', function()
	local seen = {}
	assert(#texts == 20)
	for _, ids in ipairs(texts) do
		assert(ids:size(1) == 257 and ids[1]:item() == 2 and ids:min():item() >= 1 and ids:max():item() <= m.vocab)
		local text = table.concat(ids:totable(), ' ')
		assert(not seen[text])
		seen[text] = true
	end
	tensor.seed(1) -- the first one again, as far as float products agree
	local again = m:generate(data.tokenizer(data.find 'weights/tok512.bin'):encode('', {bos = true}), {steps = 16, temperature = 1})
	assert(again:eq(texts[1]:narrow(1, 1, 17)):all():item())
end)

local float, float_rows = measure(m)
it('float32: the perplexity of its own texts', function()
	assert(math.abs(float - 3.506) < 0.002, float)
	assert(float_rows.linear['float32 x float32'].count == 20 * 36)
end)
it('int8/1 weights: at most half a percent more', function()
	local q = m:quantize{mode = 'weight_only', weight = 'int8/1'}
	local perplexity, rows = measure(q)
	assert(perplexity <= 1.005 * float, perplexity / float)
	local linear = rows.linear['float32 x int8q']
	assert(rows.embedding['int8q x int64'].kernel == 'rows' and linear.count == 20 * 36 and linear.path == 'weight_only')
	assert(linear.kernel:find '^gemm_coded_')
	assert(q:nbytes() < 0.3 * m:nbytes())
end)
it('int8/1 weights and int8 inputs in integers: measured +0.7 percent', function()
	local perplexity, rows = measure(m:quantize{mode = 'dynamic', weight = 'int8/1', input = 'int8'})
	assert(perplexity <= 1.01 * float, perplexity / float)
	local linear = rows.linear['int8q x int8q']
	assert(linear.path == 'int8' and linear.kernel:find '^gemm_i8_' and linear.count == 20 * 36 and not rows.linear['float32 x float32'])
end)
it('int4:32 weights: measured', function()
	local q = m:quantize{mode = 'weight_only', weight = 'int4:32'}
	local perplexity, rows = measure(q)
	assert(perplexity > float and perplexity < 1.3 * float, perplexity / float)
	local linear = rows.linear['float32 x int4q']
	assert(rows.embedding['int4q x int64'].kernel == 'rows' and linear.count == 20 * 36 and linear.path == 'weight_only')
	assert(q:nbytes() < 0.165 * m:nbytes())
end)
local pipe = io.popen(('"/proc/$PPID/exe" %sscripts/stories.lua 2>&1'):format(folder))
local text = pipe:read 'a'
pipe:close()
assert(text:find 'float32 +3.506 ' and text:find 'int8/1 +3.50' and text:find 'int4:32 +4%.%d+ ' and text:find 'dynamic +3.5', text)
it('codes of keys and values: by channel and by token', function()
	local function more(kv) return (m:evaluate(batches, {metric = 'perplexity', log = false, kv = kv}).perplexity / float - 1) * 100 end
	local function both(bits, recent) return {k = ('uint%d/2:32+min'):format(bits), v = ('uint%d/3:32+min'):format(bits), recent = recent} end
	assert(math.abs(more 'float32') < 1e-4)
	local eight, four, three = more(both(8)), more(both(4)), more(both(3)) -- measured -0.01, +0.44, +2.52
	assert(eight <= 0.1 and four <= 1 and three <= 4, ('%.2f %.2f %.2f'):format(eight, four, three))
	assert(more(both(4, 32)) <= 0.2) -- +0.04
	assert(more 'uint4:8+min' > 30) -- a scale and a minimum for each position of a head, as of keys, too: +46
end)
