-- SPDX-License-Identifier: MIT
-- Qwen2: logits of transformers 5.24 (scripts/goldens_transformers.py), from a folder and from a .gguf file.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local GOLDEN = {-0.0075584608, -0.05321322, 0.17937998, 0.09316919, 0.16525082, 241.20782}

local m = nn.load(tools.folder([[{"model_type": "qwen2", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
	"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "sliding_window": 8, "use_sliding_window": false,
	"tie_word_embeddings": true, "rms_norm_eps": 1e-6}]], tools.llama {bias = true}))
tools.check(m, GOLDEN)
print(m.context, m[2].attention.query.bias:size(), m[2].attention.out.bias)  --> 32 16 false

it('.gguf', function()
	local file = os.tmpname() .. '.gguf'
	tensor.save(file, tools.gguf_names(tools.llama {bias = true}), {metadata = {['general.architecture'] = 'qwen2', ['qwen2.context_length'] = 32,
		['qwen2.embedding_length'] = 16, ['qwen2.block_count'] = 2, ['qwen2.feed_forward_length'] = 24, ['qwen2.attention.head_count'] = 4,
		['qwen2.attention.head_count_kv'] = 2, ['qwen2.attention.layer_norm_rms_epsilon'] = 1e-6}})
	tools.check(nn.load(file), GOLDEN)
end)

it('windows from one block on, or of blocks by name', function()
	local CONFIG = [[{"model_type": "qwen2", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "sliding_window": 3, "use_sliding_window": true,
		"tie_word_embeddings": true, "rms_norm_eps": 1e-6%s}]]
	for _, more in ipairs {', "max_window_layers": 1', ', "layer_types": ["full_attention", "sliding_attention"]'} do
		local windowed = nn.load(tools.folder(CONFIG:format(more), tools.llama {bias = true}))
		assert(windowed[1].attention.window == false and windowed[2].attention.window == 3)
		tools.check(windowed, {-0.0075584608, -0.05321322, 0.17937998, 0.091649026, 0.16500549, 239.87326})
	end
	local ok, message = pcall(nn.load, tools.folder(CONFIG:format ', "layer_types": ["full_attention", "linear"]', tools.llama {bias = true}))
	assert(not ok and message:find("layer_types: 2: wanted full_attention or sliding_attention, got 'linear'", 1, true), message)
end)
