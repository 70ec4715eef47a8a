-- SPDX-License-Identifier: MIT
-- Llama and Mistral: RMS norms, rotary positions, gated feed-forward part, grouped heads of keys and values.
local _, internal = ...
local place = internal.import 'nn/checkpoints/place'
local llama = {title = 'llama', gguf = {'llama'}, huggingface = {'llama', 'mistral'}}

-- In files of Hugging Face, rotary pairs are the halves of a head; in .gguf files of this architecture they are neighbours.
local function query(x, o, back) return o.halves and place.pairs(x, o.heads, back) or x end
local function key(x, o, back) return o.halves and place.pairs(x, o.kvheads, back) or x end

llama.head = {huggingface = 'lm_head.weight', gguf = 'output.weight'}
llama.ignored = {'%.rotary_emb%.inv_freq$'}
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

-- The base of rotary positions: rope_theta, in transformers 5 among the rope_parameters.
local function rope_base(c)
	local rope = c:get 'rope_parameters' and c:inner 'rope_parameters' or c
	local scaling = c:get 'rope_scaling' and c:inner 'rope_scaling' or c:get 'rope_parameters' and rope
	if scaling then scaling:choice(scaling:get 'type' and 'type' or 'rope_type', {default = true}, 'default') end
	return rope:number('rope_theta', 10000)
end

-- Options of nn.Transformer by config.json.
function llama.of_huggingface(c)
	c:choice('hidden_act', SILU, 'silu')
	if c:flag('mlp_bias', false) then c:fail 'mlp_bias: wanted false, got true' end
	local context = c:size('max_position_embeddings', 2048)
	local o = {vocab = c:size 'vocab_size', d = c:size 'hidden_size', heads = c:size 'num_attention_heads', layers = c:size 'num_hidden_layers',
		ff = c:size 'intermediate_size', context = context, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false,
		eps = c:number('rms_norm_eps', 1e-6), ropebase = rope_base(c), attentionbias = c:flag('attention_bias', false),
		tie = c:flag('tie_word_embeddings', false), halves = true}
	o.kvheads = c:size('num_key_value_heads', o.heads)
	o.headsize = c:size('head_dim', math.max(1, o.d // o.heads))
	-- no position sees further back: as long as the text is no longer, the window changes nothing
	if c:get 'sliding_window' then o.context = math.min(context, c:size 'sliding_window') end
	return o
end

-- The same by the keys of a .gguf file; t: its tensors.
function llama.of_gguf(c, t)
	if c:get 'expert_count' and c:get 'expert_count' ~= 0 then c:fail('expert_count: wanted none, got %s', c:get 'expert_count') end
	if t['rope_freqs.weight'] then c:fail 'rope_freqs.weight: wanted rotary positions without factors, got some' end
	c:choice('rope.scaling.type', {none = true}, 'none')
	local o = {d = c:size 'embedding_length', heads = c:size 'attention.head_count', layers = c:size 'block_count', ff = c:size 'feed_forward_length',
		context = c:size('context_length', 2048), norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false,
		eps = c:number('attention.layer_norm_rms_epsilon', 1e-5), ropebase = c:number('rope.freq_base', 10000),
		attentionbias = t['blk.0.attn_q.bias'] ~= nil, outbias = t['blk.0.attn_output.bias'] ~= nil, tie = t['output.weight'] == nil}
	o.kvheads = c:size('attention.head_count_kv', o.heads)
	o.headsize = c:size('attention.key_length', math.max(1, o.d // o.heads))
	if c:size('attention.value_length', o.headsize) ~= o.headsize or c:size('rope.dimension_count', o.headsize) ~= o.headsize then
		c:fail('rope.dimension_count, attention.value_length: wanted %d, the size of a head, got another', o.headsize)
	end
	local embedding = t['token_embd.weight']
	o.vocab = embedding and embedding:dim() == 2 and embedding:size(1) or c:size 'vocab_size'
	return o
end

return llama
