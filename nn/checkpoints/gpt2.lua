-- SPDX-License-Identifier: MIT
-- GPT-2: layer norms, learned positions, GELU by its tanh formula, one matrix for queries, keys and values. Files of Hugging Face have
-- weights as (inputs, outputs), those of .gguf as (outputs, inputs).
local gpt2 = {title = 'gpt2', gguf = {'gpt2'}, huggingface = {'gpt2'}, columns = true}

local function turned(x, o) return o.columns and x:t():contiguous() or x end

gpt2.head = {huggingface = 'lm_head.weight', gguf = 'output.weight'}
gpt2.ignored = {'^h%.%d+%.attn%.bias$', '^h%.%d+%.attn%.masked_bias$'}
gpt2.names = {
	{'embedding.weight', huggingface = 'wte.weight', gguf = 'token_embd.weight'},
	{'positions', huggingface = 'wpe.weight', gguf = 'position_embd.weight'},
	{'norm.weight', huggingface = 'ln_f.weight', gguf = 'output_norm.weight'},
	{'norm.bias', huggingface = 'ln_f.bias', gguf = 'output_norm.bias'},
	{'head.weight', huggingface = 'lm_head.weight', gguf = 'output.weight'},
}
for ours, theirs in pairs {['norm1'] = {'ln_1', 'attn_norm'}, ['norm2'] = {'ln_2', 'ffn_norm'}, ['attention.out'] = {'attn.c_proj', 'attn_output', true},
	['attention.query'] = {'attn.query', 'attn_query'}, ['attention.key'] = {'attn.key', 'attn_key'}, ['attention.value'] = {'attn.value', 'attn_value'},
	['ff.linear1'] = {'mlp.c_fc', 'ffn_up', true}, ['ff.linear2'] = {'mlp.c_proj', 'ffn_down', true}} do
	for _, field in ipairs {'weight', 'bias'} do
		table.insert(gpt2.names, {('block%%d.%s.%s'):format(ours, field), huggingface = ('h.%%d.%s.%s'):format(theirs[1], field),
			gguf = ('blk.%%d.%s.%s'):format(theirs[2], field), turn = theirs[3] and field == 'weight' and turned or nil})
	end
end

local PARTS = {'query', 'key', 'value'}

-- Divides the matrix of three parts; takes the prefix of the file's names away.
function gpt2.prepare(t, o, kind)
	local all, prefix = {}, nil
	for name, value in pairs(t) do
		local short, cut = name:gsub('^transformer%.', '')
		if cut > 0 then prefix = 'transformer.' end
		local block, field = short:match(kind == 'gguf' and '^(blk%.%d+)%.attn_qkv%.(%a+)$' or '^(h%.%d+)%.attn%.c_attn%.(%a+)$')
		if not block then
			all[short] = value
		elseif value:dim() >= 1 then
			if field == 'weight' then value = turned(value, o) end
			local n = value:size(1) // 3
			for i, part in ipairs(PARTS) do
				if n > 0 then all[(kind == 'gguf' and '%s.attn_%s.%s' or '%s.attn.%s.%s'):format(block, part, field)] = value:narrow(1, (i - 1) * n + 1, n) end
			end
		end
	end
	return all, prefix
end

-- Joins them again.
function gpt2.finish(all, order, o, kind)
	local joined, names = {}, {}
	for _, name in ipairs(order) do
		local block, part, field = name:match(kind == 'gguf' and '^(blk%.%d+)%.attn_(%a+)%.(%a+)$' or '^(h%.%d+)%.attn%.(%a+)%.(%a+)$')
		if part == 'query' then
			local parts, pattern = {}, kind == 'gguf' and '%s.attn_%s.%s' or '%s.attn.%s.%s'
			for i, word in ipairs(PARTS) do parts[i] = all[pattern:format(block, word, field)] end
			local theirs = (kind == 'gguf' and '%s.attn_qkv.%s' or '%s.attn.c_attn.%s'):format(block, field)
			joined[theirs] = tensor.cat(parts, {axis = 1})
			if field == 'weight' then joined[theirs] = turned(joined[theirs], o) end
			names[#names + 1] = theirs
		elseif part ~= 'key' and part ~= 'value' then
			joined[name] = all[name]
			names[#names + 1] = name
		end
	end
	return joined, names
end

local ACTIVATIONS = {gelu_new = 'gelutanh', gelu_pytorch_tanh = 'gelutanh', gelu = 'gelu', relu = 'relu', silu = 'silu', swish = 'silu'}

function gpt2.of_huggingface(c)
	local d = c:size 'n_embd'
	if not c:flag('scale_attn_weights', true) then c:fail 'scale_attn_weights: wanted true, got false' end
	if c:flag('scale_attn_by_inverse_layer_idx', false) then c:fail 'scale_attn_by_inverse_layer_idx: wanted false, got true' end
	return {vocab = c:size 'vocab_size', d = d, heads = c:size 'n_head', layers = c:size 'n_layer', ff = c:size('n_inner', 4 * d),
		context = c:size('n_positions', 1024), norm = 'layernorm', act = c:choice('activation_function', ACTIVATIONS, 'gelu_new'), position = 'learned',
		eps = c:number('layer_norm_epsilon', 1e-5), tie = c:flag('tie_word_embeddings', true), columns = true}
end

function gpt2.of_gguf(c, t)
	local embedding = t['token_embd.weight']
	return {vocab = embedding and embedding:dim() == 2 and embedding:size(1) or c:size 'vocab_size', d = c:size 'embedding_length',
		heads = c:size 'attention.head_count', layers = c:size 'block_count', ff = c:size 'feed_forward_length', context = c:size 'context_length',
		norm = 'layernorm', act = 'gelutanh', position = 'learned', eps = c:number('attention.layer_norm_epsilon', 1e-5), tie = t['output.weight'] == nil}
end

return gpt2
