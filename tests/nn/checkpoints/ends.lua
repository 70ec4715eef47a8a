-- SPDX-License-Identifier: MIT
-- The tokens that end a text and the tokenizer of models that nn.load has read.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local CONFIG = [[{"model_type": "llama", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "max_position_embeddings": 32, "hidden_act": "silu", "tie_word_embeddings": true%s}]]

local function write(path, text)
	local file <close> = assert(io.open(path, 'w'))
	file:write(text)
end

local function eos_of(m) return m.origin.eos and table.concat(m.origin.eos, ' ') or 'none' end

it('folders', function()
	local folder = tools.folder(CONFIG:format ', "eos_token_id": 2', tools.llama {})
	local m = nn.load(folder)
	assert(eos_of(m) == '3' and m.origin.tokenizer == nil)
	write(folder .. '/generation_config.json', '{"eos_token_id": [4, 6]}')
	assert(eos_of(nn.load(folder)) == '5 7' and eos_of(nn.load(folder):clone()) == '5 7')
	write(folder .. '/tokenizer.json', [[{"model": {"type": "BPE", "unk_token": "u", "vocab": {"a": 0, "b": 1, "ab": 2, "u": 3}, "merges": ["a b"]}}]])
	m = nn.load(folder)
	assert(m.origin.tokenizer == folder)
	assert(m:generate('ab', {steps = 3, eos = false}):find '^ab')
	local first = m:generate({1, 2}, {steps = 1, eos = false}):totable()[3]
	write(folder .. '/generation_config.json', ('{"eos_token_id": %d}'):format(first - 1))
	local ids, why = nn.load(folder):generate({1, 2}, {steps = 5, ends = true})
	assert(ids:size(1) == 3 and why == 'eos')
	write(folder .. '/generation_config.json', '{"eos_token_id": "x"}')
	local ok, message = pcall(nn.load, folder)
	assert(not ok and message:find("eos_token_id: wanted a token, got 'x'", 1, true), message)
	assert(eos_of(nn.load(tools.folder(CONFIG:format '', tools.llama {}))) == 'none')
end)

it('.gguf', function()
	local file = os.tmpname() .. '.gguf'
	local m = nn.Transformer {vocab = 32, d = 32, heads = 2, layers = 1, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}:eval()
	quant.gguf(m, {file = file, metadata = {['tokenizer.ggml.eos_token_id'] = 2, ['tokenizer.ggml.eot_token_id'] = 5}})
	local again = nn.load(file)
	assert(eos_of(again) == '3 6' and again.origin.tokenizer == nil)
	quant.gguf(m, {file = file, metadata = {['tokenizer.ggml.model'] = 'none'}})
	again = nn.load(file)
	assert(again.origin.tokenizer == file and again:generate({1}, {steps = 2}):size(1) == 3)
	local ok, message = pcall(again.generate, again, 'text')
	assert(not ok and message:find('tokenizer.ggml.model: wanted gpt2, llama, t5 or bert', 1, true), message)
end)
