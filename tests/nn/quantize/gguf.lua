-- SPDX-License-Identifier: MIT
-- quant.gguf: models go into .gguf files and come back with the same bits.
local FILE = os.tmpname() .. '.gguf'
local LLAMA = {vocab = 40, d = 64, heads = 4, kvheads = 2, headsize = 32, layers = 2, ff = 96, context = 32, norm = 'rmsnorm', act = 'swiglu', position = 'rope',
	ropebase = 500.0, eps = 1e-6, bias = false}
local ids = tensor {{1, 7, 40, 3}, dtype = 'int64'}
tensor.seed(1)

local function out(m) return tensor.nograd(function() return m:eval()(ids) end) end

it('floats of Llama and GPT-2', function()
	for _, change in ipairs {{}, {tie = false, attentionbias = true, kvheads = 4}} do
		local o = {}
		for key, value in pairs(LLAMA) do o[key] = value end
		for key, value in pairs(change) do o[key] = value end
		local m = nn.Transformer(o)
		quant.gguf(m, {file = FILE, metadata = {['tokenizer.ggml.model'] = 'none', ['general.architecture'] = 'other'}})
		local again = nn.load(FILE)
		assert(out(again):eq(out(m)):all():item() and again.context == 32)
		assert(select(2, tensor.load(FILE, {metadata = true}))['tokenizer.ggml.model'] == 'none')
	end
	local m = nn.Transformer {vocab = 40, d = 64, heads = 4, layers = 2, context = 16, act = 'gelutanh'}
	print(#quant.gguf(m, {file = FILE}))  --> 28
	assert(out(nn.load(FILE)):eq(out(m)):all():item())
end)

it('quantized weights keep their bits; rows that are no whole blocks stay float', function()
	local m = nn.Transformer(LLAMA)
	quant.gguf(m, {file = FILE, weight = 'q4_0', rules = {{'block1\\.attention\\.query', 'q8_0'}, {'block2\\.ff', false}}})
	local t, q = tensor.load(FILE), m:eval():quantize {mode = 'weight_only', weight = 'q4_0',
		rules = {{'block1\\.attention\\.query', 'q8_0'}, {'block2\\.ff', false}}}
	assert(tostring(t['blk.0.attn_q.weight']:spec()) == 'q8_0' and tostring(t['blk.0.attn_k.weight']:spec()) == 'q4_0')
	assert(not t['blk.1.ffn_up.weight']:quantized() and t['token_embd.weight']:quantized() and not t['output.weight'])
	assert(out(nn.load(FILE)):eq(out(q)):all():item())
	-- 96 is no multiple of 256; neither is 64
	local rows = quant.gguf(m, {file = FILE, weight = 'q4_k'})
	print(rows[1].name, rows[1].why)  --> token_embd.weight	wanted K a multiple of 256 for the format q4_k, got 64
	assert(out(nn.load(FILE)):eq(out(m)):all():item())
end)

it('scaled rotary positions, windows', function()
	for i, scaling in ipairs {{type = 'linear', factor = 4}, {type = 'yarn', factor = 4, original = 8}, {type = 'yarn', factor = 2, original = 8, attentionfactor = 0.9,
		betafast = 4, betaslow = 0.5}, {type = 'llama3', factor = 8, lowfreqfactor = 1, highfreqfactor = 4, original = 16}} do
		local o = {ropescaling = scaling, window = i == 1 and {0, 6} or nil}
		for key, value in pairs(LLAMA) do o[key] = value end
		local m = nn.Transformer(o)
		quant.gguf(m, {file = FILE})
		local again = nn.load(FILE)
		assert((out(again) - out(m)):abs():max():item() < 1e-5 and again.context == (i == 1 and 6 or 32))
		assert((out(again) - out(nn.Transformer(LLAMA):load(m:state()))):abs():max():item() > 1e-4)
	end
	local o = {softcap = 20}
	for key, value in pairs(LLAMA) do o[key] = value end
	local ok, message = pcall(quant.gguf, nn.Transformer(o), {file = FILE})
	assert(not ok and message:find('gguf: wanted attention without softcap', 1, true), message)
	local ones = {}
	for i = 1, nn.Transformer(LLAMA)[1].attention.headsize // 2 do ones[i] = 1 end
	o.softcap, o.ropescaling = nil, {type = 'longrope', original = 8, short = ones, long = ones}
	ok, message = pcall(quant.gguf, nn.Transformer(o), {file = FILE})
	assert(not ok and message:find('ropescaling: wanted frequencies that are the same for all lengths of texts, got longrope', 1, true), message)
end)

it('a file that was read is written again', function()
	quant.gguf(nn.Transformer(LLAMA), {file = FILE, weight = 'q5_1'})
	local handle = assert(io.open(FILE, 'rb'))
	local before = handle:read 'a'
	handle:close()
	quant.gguf(nn.load(FILE), {file = FILE})
	handle = assert(io.open(FILE, 'rb'))
	assert(handle:read 'a' == before)
	handle:close()
end)

quant.gguf(nn.Linear(2, 2), {file = FILE})                     --> error: gguf: wanted an nn.Transformer, got
quant.gguf(nn.Transformer(LLAMA), {file = 'x.bin'})            --> error: gguf: file: wanted a name that ends in .gguf
quant.gguf(nn.Transformer(LLAMA), {file = FILE, rules = {}})   --> error: gguf: rules: wanted weight= beside them
quant.gguf(nn.Transformer(LLAMA), {file = FILE, weight = 'int8/1'})  --> error: wanted floats, int8 to int64, or a format of GGUF
quant.gguf(nn.Transformer {vocab = 4, d = 4, heads = 2, layers = 1, act = 'relu'}, {file = FILE})  --> error: gguf: wanted a Transformer of Llama's kind

it('codes of a file stay as they are in modes dynamic and weight_only', function()
	local file = os.tmpname() .. '.gguf'
	local float = nn.Transformer {vocab = 32, d = 32, heads = 2, layers = 1, ff = 64, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}:eval()
	quant.gguf(float, {file = file, weight = 'q4_0'})
	local m = nn.load(file)
	local q, rows = m:quantize {mode = 'dynamic'}
	local up, own = q[1].ff.up.weight, m[1].ff.up.weight
	assert(up:codes():eq(own:codes()):all():item() and tostring(up:spec()) == 'q4_0' and rows:where {name = 'block1.ff.up'}[1].mode == 'dynamic')
	local ids = tensor {{1, 5, 9, 2}, dtype = 'int64'}
	local want = tensor.nograd(function() return m(ids) end)
	assert(tensor.nograd(function() return q(ids) end):error(want).sqnr > 25)
	assert(tensor.nograd(function() return m:quantize {mode = 'weight_only'}(ids) end):error(want).sqnr > 100)
	local ok, message = pcall(m.quantize, m, {mode = 'dynamic', weight = 'int8/1'})
	assert(not ok and message:find("weight: wanted that of its codes, 'q4_0', got 'int8/1'", 1, true), message)
end)
