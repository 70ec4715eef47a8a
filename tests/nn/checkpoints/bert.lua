-- SPDX-License-Identifier: MIT
-- BERT: logits of transformers 5.24 (scripts/goldens_transformers.py); the heads, names of old files, what is refused.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')

local CONFIG = [[{"model_type": "bert", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
	"max_position_embeddings": 32, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12%s}]]
local GOLDEN = {0.052483246, 0.18506262, -0.1967884, 0.053292766, -0.1343983, -382.1043}
local TYPES = tensor{{1, 1, 1, 2, 2, 2, 2}, {1, 1, 1, 2, 2, 2, 2}, dtype = 'int32'}
local OPTIONS = {types = TYPES, lengths = tensor{7, 4, dtype = 'int32'}}

local function masked()
	return tools.bert('bert.', {{'cls.predictions.bias', 20}, {'cls.predictions.transform.dense.weight', 16, 16}, {'cls.predictions.transform.dense.bias', 16},
		{'cls.predictions.transform.LayerNorm.weight', 16}, {'cls.predictions.transform.LayerNorm.bias', 16}})
end

-- Saves m and compares names and values with the folder.
local function saved_back(m, folder)
	local to, n = os.tmpname(), 0
	os.remove(to)
	m:save(to .. '/')
	local a, b = tensor.load(folder .. '/model.safetensors'), tensor.load(to .. '/model.safetensors')
	for name, x in pairs(a) do
		assert(b[name] and b[name]:eq(x):all():item(), name)
		n = n + 1
	end
	assert(n == #b)
	return nn.load(to)
end

local function refused(want, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

it('masked tokens: padding by lengths, by a mask of numbers, of bool', function()
	local folder = tools.folder(CONFIG:format '', masked())
	local m = nn.load(folder)
	tools.check(m, GOLDEN, OPTIONS)
	tools.check(saved_back(m, folder), GOLDEN, OPTIONS)
	local mask = tensor{{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 0, 0, 0}, dtype = 'int64'}
	tools.check(m, GOLDEN, {types = TYPES, mask = mask})
	tools.check(m, GOLDEN, {types = TYPES, mask = mask:ne(0)})
	assert(m.head.decoder.weight == m.embedding.weight and not m.training)
end)

it('with the head of pairs of sentences, which stays in the file, and a head of its own weights', function()
	local t = masked()
	t['cls.seq_relationship.weight'], t['cls.seq_relationship.bias'] = tensor.randn(2, 16), tensor.randn(2)
	t['bert.pooler.dense.weight'], t['bert.pooler.dense.bias'] = tensor.randn(16, 16), tensor.randn(16)
	t['bert.embeddings.position_ids'] = tensor.zeros {1, 32, dtype = 'int64'}
	local folder = tools.folder(CONFIG:format '', t)
	tools.check(saved_back(nn.load(folder), folder), GOLDEN, OPTIONS)
	t['cls.predictions.decoder.weight'], t['cls.predictions.decoder.bias'] = t['bert.embeddings.word_embeddings.weight']:clone(), t['cls.predictions.bias']:clone()
	folder = tools.folder(CONFIG:format ', "tie_word_embeddings": false', t)
	tools.check(saved_back(nn.load(folder), folder), GOLDEN, OPTIONS)
end)

it('an encoder with and without a pooler, names without a prefix and of old files', function()
	local want = tensor.nograd(function() return nn.load(tools.folder(CONFIG:format '', masked())):encode(tools.ids(), OPTIONS) end)
	local t = {}
	for name, x in pairs(masked()) do
		if name:find '^bert' then t[name:sub(6):gsub('LayerNorm%.weight', 'LayerNorm.gamma'):gsub('LayerNorm%.bias', 'LayerNorm.beta')] = x end
	end
	local folder = tools.folder(CONFIG:format '', t)
	local m = nn.load(folder)
	local y, pooled = m(tools.ids(), OPTIONS)
	assert(pooled == nil and (y - want):abs():max():item() == 0)
	saved_back(m, folder)
	t['pooler.dense.weight'], t['pooler.dense.bias'] = tensor.randn(16, 16), tensor.randn(16)
	folder = tools.folder(CONFIG:format '', t)
	y, pooled = saved_back(nn.load(folder), folder)(tools.ids(), OPTIONS)
	assert((y - want):abs():max():item() == 0)
	local plain = y:select(2, 1):matmul(t['pooler.dense.weight']:t()) + t['pooler.dense.bias']
	assert((pooled - plain:tanh()):abs():max():item() < 1e-6)
end)

it('heads for sequences, tokens and answers', function()
	local t = tools.bert 'bert.'
	local y = tensor.nograd(function() return (nn.load(tools.folder(CONFIG:format '', t))(tools.ids())) end)
	local w, b = tensor.randn(3, 16), tensor.randn(3)
	for name, kind in pairs {classifier = 'BertForTokenClassification', qa_outputs = 'BertForQuestionAnswering'} do
		t[name .. '.weight'], t[name .. '.bias'] = w, b
		local folder = tools.folder(CONFIG:format((', "architectures": ["%s"]'):format(kind)), t)
		local got = saved_back(nn.load(folder), folder)(tools.ids())
		assert((got - (y:matmul(w:t()) + b)):abs():max():item() < 1e-6)
		t[name .. '.weight'], t[name .. '.bias'] = nil, nil
	end
	t['classifier.weight'], t['classifier.bias'] = w, b
	local p, c = tensor.randn(16, 16), tensor.randn(16)
	t['bert.pooler.dense.weight'], t['bert.pooler.dense.bias'] = p, c
	local folder = tools.folder(CONFIG:format ', "architectures": ["BertForSequenceClassification"]', t)
	local got = saved_back(nn.load(folder), folder)(tools.ids())
	local want = (y:select(2, 1):matmul(p:t()) + c):tanh():matmul(w:t()) + b
	assert((got - want):abs():max():item() < 1e-5)
	refused('got MultipleChoice', nn.load, tools.folder(CONFIG:format ', "architectures": ["BertForMultipleChoice"]', t))
end)

it('what the model cannot compute, missing and left over tensors', function()
	local function config(extra, want) refused(want, nn.load, tools.folder(CONFIG:format(', ' .. extra), tools.bert '')) end
	config('"is_decoder": true', 'is_decoder: wanted false, got true')
	config('"add_cross_attention": true', 'add_cross_attention: wanted false')
	config('"position_embedding_type": "relative_key"', "position_embedding_type: wanted absolute, got 'relative_key'")
	config('"hidden_act": "quick_gelu"', 'hidden_act: wanted gelu or gelu_new or')
	config('"num_hidden_layers": 3', '16 missing: block3.')
	config('"max_position_embeddings": 33', 'positions has shape (33, 16), the file has (32, 16)')
	local t = tools.bert ''
	t['cls.seq_relationship.weight'], t['cls.seq_relationship.bias'] = tensor.randn(2, 16), tensor.randn(2)
	refused('got one for pairs of sentences', nn.load, tools.folder(CONFIG:format '', t))
	t = tools.bert ''
	t['lm.other'] = tensor.ones(1)
	refused('1 extra: lm.other', nn.load, tools.folder(CONFIG:format '', t))
	t['lm.other'], t['bert.embeddings.LayerNorm.bias'] = nil, tensor.ones(16)
	refused("wanted each tensor once, got 'embeddings.LayerNorm.bias' twice", nn.load, tools.folder(CONFIG:format '', t))
	t = tools.bert ''
	t['classifier.weight'] = tensor.ones(1)
	refused('1 extra: classifier.weight', nn.load, tools.folder(CONFIG:format '', t))
end)
