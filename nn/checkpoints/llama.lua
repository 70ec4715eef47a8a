-- SPDX-License-Identifier: MIT
-- Llama and Mistral: RMS norms, rotary positions, gated feed-forward part, grouped heads of keys and values.
local _, internal = ...
local place = internal.import 'nn/checkpoints/place'
local llama = {title = 'llama', gguf = {'llama'}, huggingface = {'llama', 'mistral'}}

-- In files of Hugging Face, rotary pairs are the halves of a head; in .gguf files of this architecture they are neighbours.
local function query(x, o, back) return o.halves and place.pairs(x, o.heads, back) or x end
local function key(x, o, back) return o.halves and place.pairs(x, o.kvheads, back) or x end

llama.head = {huggingface = 'lm_head.weight', gguf = 'output.weight'}
llama.ignored = {'%.rotary_emb%.inv_freq$', '^rope_freqs%.weight$'}
llama.names = {
	{'embedding.weight', huggingface = 'model.embed_tokens.weight', gguf = 'token_embd.weight'},
	{'norm.weight', huggingface = 'model.norm.weight', gguf = 'output_norm.weight'},
	{'head.weight', huggingface = 'lm_head.weight', gguf = 'output.weight'},
	{'block%d.norm1.weight', huggingface = 'model.layers.%d.input_layernorm.weight', gguf = 'blk.%d.attn_norm.weight'},
	{'block%d.norm2.weight', huggingface = 'model.layers.%d.post_attention_layernorm.weight', gguf = 'blk.%d.ffn_norm.weight'},
	{'block%d.ff.gate.weight', huggingface = 'model.layers.%d.mlp.gate_proj.weight', gguf = 'blk.%d.ffn_gate.weight'},
	{'block%d.ff.up.weight', huggingface = 'model.layers.%d.mlp.up_proj.weight', gguf = 'blk.%d.ffn_up.weight'},
	{'block%d.ff.down.weight', huggingface = 'model.layers.%d.mlp.down_proj.weight', gguf = 'blk.%d.ffn_down.weight'},
}
for name, parts in pairs {query = {'q_proj', 'attn_q', query}, key = {'k_proj', 'attn_k', key}, value = {'v_proj', 'attn_v'},
	out = {'o_proj', 'attn_output'}} do
	for _, field in ipairs {'weight', 'bias'} do
		table.insert(llama.names, {('block%%d.attention.%s.%s'):format(name, field), huggingface = ('model.layers.%%d.self_attn.%s.%s'):format(parts[1], field),
			gguf = ('blk.%%d.%s.%s'):format(parts[2], field), turn = parts[3]})
	end
end

local SILU = {silu = true, swish = true}

-- Within the context of the model, `dynamic` changes nothing.
local ROPE = {default = 'default', dynamic = 'default', linear = 'linear', llama3 = 'llama3', yarn = 'yarn', longrope = 'longrope'}

-- YaRN's factor of cosines and sines, where two powers of the scale give it.
local function amplitude(s, factor)
	if s:get 'attention_factor' then return s:number 'attention_factor' end
	if not s:get 'mscale' or not s:get 'mscale_all_dim' or s:get 'mscale' == 0 or s:get 'mscale_all_dim' == 0 then return nil end
	local function scale(name) return factor <= 1 and 1 or 0.1 * s:number(name) * math.log(factor) + 1 end
	return scale 'mscale' / scale 'mscale_all_dim'
end

-- pairs_of: of a head.
local function scaling_of(c, s, pairs_of)
	local kind = s:choice(s:get 'rope_type' and 'rope_type' or s:get 'type' and 'type' or 'rope_type', ROPE, 'default')
	if kind == 'default' then return nil end
	local context = c:size('max_position_embeddings', 2048)
	local original = (c:get 'original_max_position_embeddings' and c or s):size('original_max_position_embeddings', context)
	local o = {type = kind, factor = s:number('factor', (kind == 'yarn' or kind == 'longrope') and context / original or nil)}
	if kind ~= 'linear' then o.original = original end
	if kind == 'llama3' then
		o.lowfreqfactor, o.highfreqfactor = s:number 'low_freq_factor', s:number 'high_freq_factor'
		if o.highfreqfactor <= o.lowfreqfactor then s:fail('high_freq_factor: wanted more than low_freq_factor, got %g', o.highfreqfactor) end
	elseif kind == 'longrope' then
		o.short, o.long = s:numbers('short_factor', pairs_of), s:numbers('long_factor', pairs_of)
		o.attentionfactor = s:get 'attention_factor' and s:number 'attention_factor' or nil
	elseif kind == 'yarn' then
		o.betafast, o.betaslow, o.truncate = s:number('beta_fast', 32), s:number('beta_slow', 1), s:flag('truncate', true)
		o.attentionfactor = amplitude(s, o.factor)
	end
	return o
end

-- Rotary positions: rope_theta and rope_scaling, in transformers 5 among the rope_parameters.
local function rope_of(c, o)
	local rope = c:get 'rope_parameters' and c:inner 'rope_parameters' or c
	local scaling = c:get 'rope_scaling' and c:inner 'rope_scaling' or c:get 'rope_parameters' and rope
	for _, from in ipairs {c, rope} do
		if from:get 'partial_rotary_factor' and from:get 'partial_rotary_factor' ~= 1 then
			from:fail('partial_rotary_factor: wanted 1, got %s', from:get 'partial_rotary_factor')
		end
	end
	o.ropebase = (rope:get 'rope_theta' and rope or c):number('rope_theta', 10000)
	o.ropescaling = scaling and scaling_of(c, scaling, o.headsize // 2) or nil
end

-- Options of nn.Transformer by config.json.
function llama.of_huggingface(c)
	c:choice('hidden_act', SILU, 'silu')
	if c:flag('mlp_bias', false) then c:fail 'mlp_bias: wanted false, got true' end
	local context = c:size('max_position_embeddings', 2048)
	local o = {vocab = c:size 'vocab_size', d = c:size 'hidden_size', heads = c:size 'num_attention_heads', layers = c:size 'num_hidden_layers',
		ff = c:size 'intermediate_size', context = context, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false,
		eps = c:number('rms_norm_eps', 1e-6), attentionbias = c:flag('attention_bias', false),
		tie = c:flag('tie_word_embeddings', false), halves = true}
	o.kvheads = c:size('num_key_value_heads', o.heads)
	o.headsize = c:size('head_dim', math.max(1, o.d // o.heads))
	rope_of(c, o)
	if c:get 'model_type' == 'mistral' and c:get 'sliding_window' then o.window = c:size 'sliding_window' end
	return o
end

local GGUF_ROPE = {none = 'none', linear = 'linear', yarn = 'yarn'}

-- The same of a .gguf file: llama.cpp's keys, and a tensor of divisors (Llama 3.1).
local function gguf_rope(c, t, o)
	local factors, kind = t['rope_freqs.weight'], c:choice('rope.scaling.type', GGUF_ROPE, 'linear')
	local factor = c:get 'rope.scaling.factor' and c:number 'rope.scaling.factor' or c:get 'rope.scale_linear' and c:number 'rope.scale_linear' or 1
	if kind == 'none' or kind == 'linear' and factor == 1 then kind = nil end
	if factors then
		if kind then c:fail('rope.scaling.type: wanted none beside rope_freqs.weight, got %s', kind) end
		if factors:dim() ~= 1 or factors:size(1) ~= o.headsize // 2 then
			c:fail('rope_freqs.weight: wanted (%d) numbers, got %s', o.headsize // 2, internal.describe(factors))
		end
		o.ropescaling = {type = 'factors', factors = factors:to('float64'):totable()}
	elseif kind == 'linear' then
		o.ropescaling = {type = 'linear', factor = factor}
	elseif kind == 'yarn' then
		local more = c:get 'rope.scaling.attn_factor' and c:number 'rope.scaling.attn_factor' or 1
		o.ropescaling = {type = 'yarn', factor = factor, original = c:size('rope.scaling.original_context_length', o.context),
			betafast = c:number('rope.scaling.yarn_beta_fast', 32), betaslow = c:number('rope.scaling.yarn_beta_slow', 1),
			attentionfactor = more * (factor <= 1 and 1 or 0.1 * math.log(factor) + 1)}
	end
end

-- The same by the keys of a .gguf file; t: its tensors.
function llama.of_gguf(c, t)
	if c:get 'expert_count' and c:get 'expert_count' ~= 0 then c:fail('expert_count: wanted none, got %s', c:get 'expert_count') end
	local o = {d = c:size 'embedding_length', heads = c:size 'attention.head_count', layers = c:size 'block_count', ff = c:size 'feed_forward_length',
		context = c:size('context_length', 2048), norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false,
		eps = c:number('attention.layer_norm_rms_epsilon', 1e-5), ropebase = c:number('rope.freq_base', 10000),
		attentionbias = t['blk.0.attn_q.bias'] ~= nil, outbias = t['blk.0.attn_output.bias'] ~= nil, tie = t['output.weight'] == nil}
	o.kvheads = c:size('attention.head_count_kv', o.heads)
	o.headsize = c:size('attention.key_length', math.max(1, o.d // o.heads))
	if c:size('attention.value_length', o.headsize) ~= o.headsize or c:size('rope.dimension_count', o.headsize) ~= o.headsize then
		c:fail('rope.dimension_count, attention.value_length: wanted %d, the size of a head, got another', o.headsize)
	end
	gguf_rope(c, t, o)
	local embedding = t['token_embd.weight']
	o.vocab = embedding and embedding:dim() == 2 and embedding:size(1) or c:size 'vocab_size'
	return o
end

return llama
