-- SPDX-License-Identifier: MIT
-- BERT: an nn.Encoder with types of tokens, and the heads of transformers' models that the file has. Names of the encoder begin with
-- `bert.` where the file has a head.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local bert = {title = 'bert', huggingface = {'bert'}, module = 'Encoder'}

bert.head = {huggingface = 'cls.predictions.decoder.weight'}
-- the head of pairs of sentences comes with models of masked tokens, which do not use it
bert.ignored = {'^embeddings%.position_ids$', '^cls%.seq_relationship%.'}
bert.outside = {'^cls%.', '^classifier%.', '^qa_outputs%.'}
bert.names = {
	{'embedding.weight', huggingface = 'embeddings.word_embeddings.weight'},
	{'positions', huggingface = 'embeddings.position_embeddings.weight'},
	{'types.weight', huggingface = 'embeddings.token_type_embeddings.weight'},
	{'head.decoder.weight', huggingface = 'cls.predictions.decoder.weight'},
	{'head.decoder.bias', huggingface = 'cls.predictions.bias'},
}

-- Rows of the weight and bias of layers: {name here, name there}.
function bert.layers(names, list)
	for _, row in ipairs(list) do
		for _, field in ipairs {'weight', 'bias'} do names[#names + 1] = {row[1] .. '.' .. field, huggingface = row[2] .. '.' .. field} end
	end
end

bert.layers(bert.names, {{'norm', 'embeddings.LayerNorm'}, {'pooler', 'pooler.dense'}, {'head.transform', 'cls.predictions.transform.dense'},
	{'head.norm', 'cls.predictions.transform.LayerNorm'},
	{'block%d.attention.query', 'encoder.layer.%d.attention.self.query'}, {'block%d.attention.key', 'encoder.layer.%d.attention.self.key'},
	{'block%d.attention.value', 'encoder.layer.%d.attention.self.value'}, {'block%d.attention.out', 'encoder.layer.%d.attention.output.dense'},
	{'block%d.norm1', 'encoder.layer.%d.attention.output.LayerNorm'}, {'block%d.ff.linear1', 'encoder.layer.%d.intermediate.dense'},
	{'block%d.ff.linear2', 'encoder.layer.%d.output.dense'}, {'block%d.norm2', 'encoder.layer.%d.output.LayerNorm'}})
bert.layers(bert.names, {{'head', 'classifier'}})

-- Norms of files before transformers 1.0 have gamma and beta. The layer of answers in a text has a name of its own.
local OLD = {['LayerNorm.gamma'] = 'LayerNorm.weight', ['LayerNorm.beta'] = 'LayerNorm.bias'}

-- Takes the prefix away, and all names of one thing but one.
function bert.prepared(t, o, begin)
	local all, prefix = {}, nil
	for name, value in pairs(t) do
		local short = name:gsub('^qa_outputs%.', 'classifier.')
		if short:sub(1, #begin) == begin then short, prefix = short:sub(#begin + 1), begin end
		for old, new in pairs(OLD) do
			if short:sub(-#old) == old then short, o.gamma = short:sub(1, -#old - 1) .. new, true end
		end
		if all[short] then base.fail("load: wanted each tensor once, got '%s' twice", base.word(short)) end
		all[short] = value
	end
	return all, prefix
end

-- The bias of tokens is there twice where the layer before it is not the embedding.
function bert.prepare(t, o)
	local all, prefix = bert.prepared(t, o, 'bert.')
	local bias = all['cls.predictions.decoder.bias']
	if bias then all['cls.predictions.bias'], all['cls.predictions.decoder.bias'], o.twice = bias, nil, true end
	return all, prefix
end

function bert.finish(all, order, o)
	for i, name in ipairs(order) do
		local theirs = o.answers and name:gsub('^classifier%.', 'qa_outputs.') or name
		for old, new in pairs(o.gamma and OLD or {}) do
			if theirs:sub(-#new) == new then theirs = theirs:sub(1, -#new - 1) .. old end
		end
		if theirs ~= name then all[theirs], all[name], order[i] = all[name], nil, theirs end
	end
	if o.twice then
		order[#order + 1] = 'cls.predictions.decoder.bias'
		all[order[#order]] = all['cls.predictions.bias']
	end
	return all, order
end

bert.ACTIVATIONS = {gelu = 'gelu', gelu_new = 'gelutanh', gelu_pytorch_tanh = 'gelutanh', relu = 'relu', silu = 'silu', swish = 'silu', tanh = 'tanh'}

-- What the layer of classes is: its number of classes and whether it is for the whole text. t: the tensors of the file.
function bert.classes(c, t, o)
	local layer = t['classifier.weight'] or t['qa_outputs.weight']
	if not layer or layer:dim() ~= 2 then return end
	o.classes, o.answers = math.max(1, layer:size(1)), t['qa_outputs.weight'] ~= nil
	local kinds, list = {}, c:get 'architectures'
	for _, name in ipairs(type(list) == 'table' and list or {}) do kinds[tostring(name):match 'For(%a+)$' or ''] = true end
	if kinds.MultipleChoice then c:fail 'architectures: wanted a head for masked tokens, sequences, tokens or answers, got MultipleChoice' end
	o.head = (o.answers or kinds.TokenClassification) and 'token' or 'sequence'
end

function bert.of_huggingface(c, t)
	if c:flag('is_decoder', false) then c:fail 'is_decoder: wanted false, got true' end
	if c:flag('add_cross_attention', false) then c:fail 'add_cross_attention: wanted false, got true' end
	c:choice('position_embedding_type', {absolute = true}, 'absolute')
	local d = c:size 'hidden_size'
	local o = {vocab = c:size 'vocab_size', d = d, heads = c:size 'num_attention_heads', layers = c:size 'num_hidden_layers',
		ff = c:size('intermediate_size', 4 * d), context = c:size('max_position_embeddings', 512), types = c:size('type_vocab_size', 2),
		act = c:choice('hidden_act', bert.ACTIVATIONS, 'gelu'), eps = c:number('layer_norm_eps', 1e-12), tie = c:flag('tie_word_embeddings', true),
		pooler = (t['bert.pooler.dense.weight'] or t['pooler.dense.weight']) ~= nil}
	bert.classes(c, t, o)
	if t['cls.predictions.transform.dense.weight'] then
		o.head = 'maskedlm'
	elseif t['cls.seq_relationship.weight'] then
		c:fail 'cls.seq_relationship.weight: wanted a head for masked tokens, sequences, tokens or answers, got one for pairs of sentences'
	end
	return o
end

return bert
