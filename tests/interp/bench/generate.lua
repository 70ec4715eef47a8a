-- SPDX-License-Identifier: MIT
-- bench.generate: rows, what they are made of, random weights in formats, refusals; no times.
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true) and not message:find '\n', message)
end
local SHAPE = {vocab = 64, d = 32, heads = 2, layers = 2, ff = 64}
local SMALL = {prompt = 16, context = 8, steps = 5, runs = 1}

local function with(o)
	for key, value in pairs(SMALL) do o[key] = o[key] or value end
	return o
end

it('a row for each number of threads and rows of the batch', function()
	local before = tensor.threads()
	tensor.seed(3)
	local r = bench.generate(SHAPE, with {weight = 'int4:32', threads = {1, 2}, batch = {1, 3}, kv = 'int8'})
	assert(#r == 4 and r[2].batch == 3 and r[3].threads == 2 and r[4].batch == 3 and tensor.threads() == before)
	local weights = 2 * (4 * 32 * 32 + 3 * 32 * 64) + 32 * 64
	for _, row in ipairs(r) do
		assert(row.rate > 0 and row.prompt_rate > 0 and row.steps == 5 and row.context == 8 and row.prompt == 16 and row.kv == 'int8')
		assert(row.bytes == weights // 2 + weights // 32 * 2, row.bytes) -- codes of 4 bits, scales of 16
		assert(row.ms >= row.min and math.abs(row.rate - row.batch / row.ms * 1e3) < 1e-6 * row.rate)
		assert(not row.most or math.abs(row.share - row.rate / row.most) < 1e-6)
	end
	tensor.seed(3)
	local a = tensor.rand(1):item()
	tensor.seed(3)
	assert(a == tensor.rand(1):item())
end)

it('models and formats', function()
	local float = bench.generate(SHAPE, with {})
	assert(float[1].bytes == 4 * (2 * (4 * 32 * 32 + 3 * 32 * 64) + 32 * 64))
	assert(bench.generate(SHAPE, with {weight = 'int8:32', mode = 'weight_only'})[1].bytes < float[1].bytes // 3)
	local m = nn.Transformer {vocab = 20, d = 16, heads = 2, layers = 1, ff = 16, context = 16}
	assert(bench.generate(m, with {})[1].rate > 0 and m.training)
end)

it('both modes of the codes of a model; bytes of caches', function()
	local shape = {vocab = 64, d = 32, heads = 4, kvheads = 2, layers = 2, ff = 64, context = 64}
	local m = nn.Transformer(shape):eval()
	local q = m:quantize {mode = 'weight_only', weight = 'int4:32', log = false}
	local ids = tensor {{1, 5, 9}, dtype = 'int64'}
	local want, dynamic = q(ids), m:quantize {mode = 'dynamic', weight = 'int4:32', log = false}(ids)
	local seen, internal = {}, debug.getregistry()['quoll.internal']
	local decoder = internal.import 'nn/base/decoder'
	local new = decoder.new
	decoder.new = function(model, ...)
		seen[#seen + 1] = model(ids)
		return new(model, ...)
	end
	local good, r = pcall(bench.generate, q, with {mode = {'dynamic', 'weight_only'}, kv = {k = 'uint4/2:4+min', v = 'uint4/3:16+min', recent = 4}})
	decoder.new = new
	assert(good, r)
	assert(#r == 2 and r[1].mode == 'dynamic' and r[2].mode == 'weight_only' and r[1].bytes == r[2].bytes and #seen == 4)
	assert(seen[1]:eq(dynamic):all():item() and seen[4]:eq(want):all():item() and q(ids):eq(want):all():item() and not want:eq(dynamic):all():item())
	assert(r[1].kv == 'k=uint4/2:4+min v=uint4/3:16+min recent=4')
	assert(r[1].cache == 2 * (8 + 16 * 4 / 4 + 8 + 4)) -- two layers: codes, a scale and a minimum of 16 bits for each block
	assert(r[1].read == r[1].bytes + r[1].cache * (8 + 2 + 2))
	local b = bench.generate(m, with {batch = 2})[1]
	assert(b.cache == 2 * 2 * 16 * 4 and b.read == b.bytes / 2 + b.cache * 12 and b.mode == nil and b.kv == 'float32')
	refused('generate: mode: wanted a model quantized in mode weight_only or dynamic', bench.generate, m, with {mode = 'dynamic'})
	refused("generate: mode: item 2: wanted dynamic or weight_only, got 'static'", bench.generate, q, with {mode = {'dynamic', 'static'}})
	refused('generate: input: wanted mode= with it for a model, got none', bench.generate, q, with {input = 'int8'})
end)

it('refusals', function()
	local m = nn.Transformer {vocab = 20, d = 16, heads = 2, layers = 1, ff = 16, context = 16}
	refused('generate: wanted a prompt and steps within the context of 16 tokens, got 20', bench.generate, m, with {prompt = 20})
	refused('generate: weight: wanted shapes with it, got a model', bench.generate, m, with {weight = 'int8'})
	refused('generate: mode: wanted weight= with it, got none', bench.generate, SHAPE, with {mode = 'dynamic'})
	refused('generate: batch: item 1: wanted an integer from 1 to 256, got 0', bench.generate, SHAPE, with {batch = 0})
	refused('generate: wanted an nn.Transformer or its shapes, got', bench.generate, nn.Linear(2, 2))
	refused('generate: wanted a model, or a table of shapes', bench.generate, 3)
	refused('Transformer: d: wanted an integer', bench.generate, {vocab = 3})
end)
