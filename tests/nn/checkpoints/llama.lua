-- SPDX-License-Identifier: MIT
-- Llama and Mistral: logits of transformers 5.24 (scripts/goldens_transformers.py), from folders and from .gguf files.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')

local CONFIG = [[{"model_type": "%s", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "max_position_embeddings": 32, "hidden_act": "silu"%s}]]
local GOLDEN = {
	llama = {0.078510225, 0.040614773, -0.14937599, -0.12733781, -0.044043001, -160.60303},
	llama_bias = {0.14330076, 0.038715363, -0.10880286, -0.11164583, 0.078723893, -56.438405},
	llama3 = {0.072409123, -0.012877523, -0.2304969, -0.40492561, -0.16940461, -205.41546},
	yarn = {0.072409123, -0.012877523, -0.23083416, -0.40475801, -0.16947073, -205.43281},
	longrope4 = {0.072409123, -0.012877523, -0.23141846, -0.40359199, -0.16925021, -205.17188},
	longrope16 = {0.072409123, -0.012877523, -0.23079267, -0.40479282, -0.1694528, -205.43697},
	mistral = {0.22074507, 0.13601145, -0.14853339, -0.47355017, -0.12063935, -66.754625},
}

-- The attention of the first block.
local function attention_of(extra, model_type)
	return nn.load(tools.folder(CONFIG:format(model_type or 'llama', ', "tie_word_embeddings": true' .. extra), tools.llama {}))[1].attention
end

it('scaled rotary positions', function()
	local function check(text, want)
		for _, place in ipairs {'"rope_scaling": {%s}, "rope_theta": 500', '"rope_parameters": {"rope_theta": 500, %s}'} do
			local a = attention_of(', ' .. place:format(text))
			assert(a.base == 500 and type(a.ropescaling) == type(want))
			for name, value in pairs(want or {}) do assert(a.ropescaling[name] == value, name) end
		end
	end
	check('"rope_type": "linear", "factor": 3', {type = 'linear', factor = 3})
	check('"type": "dynamic", "factor": 3', false) -- plain up to the context
	check('"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16',
		{type = 'llama3', factor = 8, lowfreqfactor = 1, highfreqfactor = 4, original = 16})
	check('"rope_type": "yarn", "factor": 4', {type = 'yarn', factor = 4, original = 32, betafast = 32, betaslow = 1, truncate = 1, attentionfactor = 0})
	check('"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4], "original_max_position_embeddings": 8', {type = 'longrope', factor = 4, original = 8})
	check('"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4], "factor": 2, "attention_factor": 1.5', {factor = 2, original = 32, attentionfactor = 1.5})
	check('"type": "yarn", "original_max_position_embeddings": 8', {type = 'yarn', factor = 4, original = 8})
	check('"type": "yarn", "factor": 4, "beta_fast": 8, "beta_slow": 0.5, "attention_factor": 0.9, "truncate": false',
		{betafast = 8, betaslow = 0.5, attentionfactor = 0.9, truncate = 0})
	check('"type": "yarn", "factor": 4, "mscale": 0.8, "mscale_all_dim": 1.2', {attentionfactor = (0.08 * math.log(4) + 1) / (0.12 * math.log(4) + 1)})
end)

it('the logits of scaled positions', function()
	local config = CONFIG:format('llama', ', "tie_word_embeddings": true, "rope_scaling": {"rope_type": "%s", "factor": 4.0, %s}')
	tools.check(nn.load(tools.folder(config:format('llama3', '"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16'),
		tools.llama {})), GOLDEN.llama3)
	tools.check(nn.load(tools.folder(config:format('yarn', '"original_max_position_embeddings": 8'), tools.llama {})), GOLDEN.yarn)
	for _, original in ipairs {4, 16} do -- of 7 tokens: the long divisors, the short ones
		local rope = (', "tie_word_embeddings": true, "rope_parameters": {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.5], ' ..
			'"long_factor": [2.0, 6.5], "original_max_position_embeddings": %d}'):format(original)
		tools.check(nn.load(tools.folder(CONFIG:format('llama', rope), tools.llama {})), GOLDEN['longrope' .. original])
	end
end)

it('windows', function()
	assert(attention_of(', "sliding_window": 7', 'mistral').window == 7 and attention_of(', "sliding_window": null', 'mistral').window == false)
	assert(attention_of ', "sliding_window": 7'.window == false) -- Llama has none
end)

it('a head of its own, the base of rotary positions in both places', function()
	local t = tools.llama {head = true}
	for _, rope in ipairs {'"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}', '"rope_theta": 100, "rope_scaling": null'} do
		local m = nn.load(tools.folder(CONFIG:format('llama', ', "rms_norm_eps": 1e-3, "tie_word_embeddings": false, ' .. rope), t))
		tools.check(m, GOLDEN.llama)
		assert(not m.training and m.context == 32 and m[1].attention.kvheads == 2)
	end
end)

it('biases, and a tied head that the file has again', function()
	local t = tools.llama {bias = true, outbias = true}
	local config = CONFIG:format('llama', ', "attention_bias": true, "tie_word_embeddings": true, "rms_norm_eps": 1e-6')
	tools.check(nn.load(tools.folder(config, t)), GOLDEN.llama_bias)
	t['lm_head.weight'] = t['model.embed_tokens.weight']
	t['model.layers.0.self_attn.rotary_emb.inv_freq'] = tensor.ones(2)
	local m = nn.load(tools.folder(config, t) .. '/')
	tools.check(m, GOLDEN.llama_bias)
	assert(m.head.weight == m.embedding.weight)
end)

local function mistral()
	return nn.load(tools.folder(CONFIG:format('mistral', ', "head_dim": 8, "sliding_window": 16, "tie_word_embeddings": true'), tools.llama {headsize = 8}))
end

it('mistral: heads of another size, a window', function()
	local m = mistral()
	tools.check(m, GOLDEN.mistral)
	print(m.context, tostring(m[1].attention):match '^[^\n]*')  --> 32	Attention(16, 4, causal, kvheads=2, headsize=8, rope=true, window=16, bias=false)  1536 parameters
	local ids = m:generate({1, 2, 3}, {steps = 8, temperature = 0})
	local plain = tensor.nograd(function() return m(ids:narrow(1, 1, 10):unsqueeze(1)) end):argmax(-1):view(10)
	assert(plain:narrow(1, 3, 8):eq(ids:narrow(1, 4, 8)):all():item()) -- with a cache and without
end)

-- A .gguf file has neighbouring pairs, a folder halves of heads.
local function neighbours(name, x)
	if not name:find '[qk]_proj' then return x end
	local heads = name:find 'q_proj' and 4 or 2
	return x:dim() == 2 and x:view(heads, 2, -1, x:size(2)):transpose(2, 3):reshape(x:size()) or x:view(heads, 2, -1):transpose(2, 3):reshape(x:size(1))
end

it('.gguf', function()
	local file = os.tmpname() .. '.gguf'
	local keys = {['general.architecture'] = 'llama', ['llama.context_length'] = 32, ['llama.embedding_length'] = 16, ['llama.block_count'] = 2,
		['llama.feed_forward_length'] = 24, ['llama.attention.head_count'] = 4, ['llama.attention.head_count_kv'] = 2,
		['llama.attention.layer_norm_rms_epsilon'] = 1e-3, ['llama.rope.freq_base'] = 100.0, ['llama.rope.dimension_count'] = 4}
	tensor.save(file, tools.gguf_names(tools.llama {head = true}, neighbours), {metadata = keys})
	tools.check(nn.load(file), GOLDEN.llama)
	keys['llama.attention.layer_norm_rms_epsilon'], keys['llama.rope.freq_base'] = 1e-6, 10000.0
	tensor.save(file, tools.gguf_names(tools.llama {bias = true, outbias = true}, neighbours), {metadata = keys})
	tools.check(nn.load(file), GOLDEN.llama_bias)
	local function scaling(more, t)
		local all = {}
		for key, value in pairs(keys) do all[key] = value end
		for key, value in pairs(more) do all['llama.rope.' .. key] = value end
		tensor.save(file, t or tools.gguf_names(tools.llama {}, neighbours), {metadata = all})
		return nn.load(file)[1].attention.ropescaling
	end
	assert(scaling {['scaling.factor'] = 4.0}.factor == 4 and scaling {['scale_linear'] = 2.0}.type == 'linear')
	assert(scaling {['scaling.type'] = 'none', ['scaling.factor'] = 4.0} == false and scaling {['scaling.type'] = 'linear'} == false)
	local yarn = scaling {['scaling.type'] = 'yarn', ['scaling.factor'] = 4.0, ['scaling.original_context_length'] = 8, ['scaling.attn_factor'] = 0.5}
	assert(yarn.original == 8 and math.abs(yarn.attentionfactor - 0.5 * (0.1 * math.log(4) + 1)) < 1e-7)
	local t = tools.gguf_names(tools.llama {}, neighbours)
	t['rope_freqs.weight'] = tensor{1, 8}
	assert(scaling({}, t).factors[2] == 8)
	local ok, message = pcall(scaling, {['scaling.type'] = 'yarn', ['scaling.factor'] = 2.0}, t)
	assert(not ok and message:find('rope.scaling.type: wanted none beside rope_freqs.weight, got yarn', 1, true), message)
	t['rope_freqs.weight'] = tensor.ones(3)
	ok, message = pcall(scaling, {}, t)
	assert(not ok and message:find('rope_freqs.weight: wanted (2) numbers, got float32(3)', 1, true), message)
	local function refused(key, value, want)
		local before = keys[key]
		keys[key] = value
		tensor.save(file, tools.gguf_names(tools.llama {}, neighbours), {metadata = keys})
		ok, message = pcall(nn.load, file)
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
		keys[key] = before
	end
	refused('general.architecture', 'mamba', "general.architecture: wanted gpt2 or llama or qwen2, got 'mamba'")
	refused('llama.block_count', nil, 'llama.block_count: wanted an integer from 1 to 2^31, got none')
	refused('llama.attention.head_count_kv', tensor {2, 2}, 'llama.attention.head_count_kv: wanted an integer')
	refused('llama.expert_count', 8, 'expert_count: wanted none, got 8')
	refused('llama.rope.scaling.type', 'longrope', "llama.rope.scaling.type: wanted linear or none or yarn, got 'longrope'")
	refused('llama.rope.scaling.factor', -1.0, 'llama.rope.scaling.factor: wanted a number above 0, got -1')
	refused('llama.block_count', 3, 'wanted the tensors of a llama, got 9 missing: block3.')
end)

it('weights of 16 bits and in blocks are computed with as they are', function()
	local t = tools.llama {head = true}
	local config = CONFIG:format('llama', ', "rms_norm_eps": 1e-3, "rope_theta": 100')
	local want = tensor.nograd(function() return nn.load(tools.folder(config, t))(tools.ids()) end)
	for name, x in pairs(t) do t[name] = x:to 'bfloat16' end
	local m = nn.load(tools.folder(config, t))
	local y = tensor.nograd(function() return m(tools.ids()) end)
	assert(m[1].ff.up.weight:dtype() == 'bfloat16' and y:dtype() == 'float32')
	assert((y - want):abs():max():item() < 0.02 and (y - want):abs():max():item() > 0)
end)

it('saves to a folder with the names and values of the file', function()
	local config = CONFIG:format('llama', ', "attention_bias": true, "tie_word_embeddings": true, "rms_norm_eps": 1e-6')
	local from, to = tools.folder(config, tools.llama {bias = true, outbias = true}), os.tmpname()
	os.remove(to)
	nn.load(from):save(to .. '/')
	local a, metadata = tensor.load(from .. '/model.safetensors', {metadata = true})
	local b = tensor.load(to .. '/model.safetensors')
	local n = 0
	for name, x in pairs(a) do
		assert(b[name]:eq(x):all():item(), name)
		n = n + 1
	end
	assert(n == #b and metadata.format == 'pt' and tools.read(to .. '/config.json') == tools.read(from .. '/config.json'))
	tools.check(nn.load(to), GOLDEN.llama_bias)
	local ok, message = pcall(function() return nn.load(from):quantize{mode = 'weight_only'}:save(to .. '/') end)
	assert(not ok and message:find('weight: wanted floats, as in m:dequantize(), or', 1, true), message)
	ok, message = pcall(function() return nn.Linear(1, 1):save(to .. '/') end)
	assert(not ok and message:find('wanted a model that nn.load has read', 1, true), message)
end)

local function refused(extra, t, want)
	local ok, message = pcall(nn.load, tools.folder(CONFIG:format('llama', extra), t or tools.llama {}))
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

it('what the model cannot compute is an error', function()
	refused(', "rope_scaling": {"type": "su"}', nil, "rope_scaling: type: wanted default or dynamic or linear or llama3 or longrope or yarn, got 'su'")
	refused(', "rope_scaling": {"type": "longrope", "short_factor": [1, 2]}', nil, 'rope_scaling: long_factor: wanted a list of 2 numbers, got none')
	refused(', "rope_scaling": {"type": "longrope", "short_factor": [1, 2, 3], "long_factor": [1, 2]}', nil, 'short_factor: wanted a list of 2 numbers, got')
	refused(', "rope_scaling": {"type": "longrope", "short_factor": [1, 0], "long_factor": [1, 2]}', nil, 'short_factor: wanted numbers above 0, got 0')
	refused(', "rope_scaling": {"type": "linear"}', nil, 'rope_scaling: factor: wanted a number above 0, got none')
	refused(', "rope_parameters": {"rope_type": "llama3", "rope_theta": 10000, "factor": 8}', nil, 'low_freq_factor: wanted a number above 0, got none')
	refused(', "rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}', nil, 'high_freq_factor: wanted more than low_freq_factor, got 4')
	refused(', "partial_rotary_factor": 0.5', nil, 'partial_rotary_factor: wanted 1, got 0.5')
	refused(', "mlp_bias": true', nil, 'mlp_bias: wanted false, got true')
	refused(', "hidden_act": "gelu"', nil, "hidden_act: wanted silu or swish, got 'gelu'")
	refused(', "num_hidden_layers": 16777216', nil, 'wanted the tensors of 16777216 layers, got')
	refused(', "num_hidden_layers": 2.5', nil, 'num_hidden_layers: wanted an integer')
	refused(', "hidden_size": 1e300', nil, 'hidden_size: wanted an integer')
	refused(', "rms_norm_eps": "x"', nil, "rms_norm_eps: wanted a number above 0, got 'x'")
	refused(', "tie_word_embeddings": true, "num_attention_heads": 3', nil, 'Attention: heads')
end)

it('missing, surplus and wrong tensors are named', function()
	local tied = ', "tie_word_embeddings": true'
	refused('', nil, 'wanted the tensors of a llama, got 1 missing: head.weight')
	local t = tools.llama {}
	t['model.norm.weight'] = nil
	t.other = tensor.ones(1)
	refused(tied, t, '1 missing: norm.weight; 1 extra: other')
	t['model.norm.weight'], t.other = tensor.ones(15), nil
	refused(tied, t, 'norm.weight has shape (16), the file has (15)')
end)
