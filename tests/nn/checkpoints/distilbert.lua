-- SPDX-License-Identifier: MIT
-- DistilBERT: logits of transformers 5.24 (scripts/goldens_transformers.py), and its head for sequences.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')

local CONFIG = [[{"model_type": "distilbert", "vocab_size": 20, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 32,
	"activation": "gelu"%s}]]
local GOLDEN = {0.05101122, 0.30659255, 0.33126605, -0.30783686, -0.15750441, 387.86334}
local NAMES = {'embeddings.word_embeddings', 'embeddings.position_embeddings', '', 'embeddings.LayerNorm', 'transformer.layer.%d.attention.q_lin',
	'transformer.layer.%d.attention.k_lin', 'transformer.layer.%d.attention.v_lin', 'transformer.layer.%d.attention.out_lin',
	'transformer.layer.%d.sa_layer_norm', 'transformer.layer.%d.ffn.lin1', 'transformer.layer.%d.ffn.lin2', 'transformer.layer.%d.output_layer_norm'}

local function saved_back(m, folder)
	local to = os.tmpname()
	os.remove(to)
	m:save(to .. '/')
	local a, b, n = tensor.load(folder .. '/model.safetensors'), tensor.load(to .. '/model.safetensors'), 0
	for name, x in pairs(a) do
		assert(b[name] and b[name]:eq(x):all():item(), name)
		n = n + 1
	end
	assert(n == #b)
end

it('masked tokens', function()
	local t = tools.bert('distilbert.', {{'vocab_projector.bias', 20}, {'vocab_transform.weight', 16, 16}, {'vocab_transform.bias', 16},
		{'vocab_layer_norm.weight', 16}, {'vocab_layer_norm.bias', 16}}, NAMES)
	local folder = tools.folder(CONFIG:format '', t)
	local m = nn.load(folder)
	tools.check(m, GOLDEN, {lengths = tensor{7, 4, dtype = 'int32'}})
	saved_back(m, folder)
	local ok, message = pcall(m, tools.ids(), {types = tools.ids()})
	assert(not ok and message:find('types: wanted none', 1, true), message)
end)

it('a head for sequences, by relu of a layer', function()
	local t = tools.bert('distilbert.', nil, NAMES)
	local y = tensor.nograd(function() return (nn.load(tools.folder(CONFIG:format '', t))(tools.ids())) end)
	local p, c, w, b = tensor.randn(16, 16), tensor.randn(16), tensor.randn(5, 16), tensor.randn(5)
	t['pre_classifier.weight'], t['pre_classifier.bias'], t['classifier.weight'], t['classifier.bias'] = p, c, w, b
	local folder = tools.folder(CONFIG:format ', "architectures": ["DistilBertForSequenceClassification"]', t)
	local m = nn.load(folder)
	local want = (y:select(2, 1):matmul(p:t()) + c):relu():matmul(w:t()) + b
	assert((m(tools.ids()) - want):abs():max():item() < 1e-5)
	saved_back(m, folder)
end)
