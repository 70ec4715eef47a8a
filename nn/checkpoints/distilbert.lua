-- SPDX-License-Identifier: MIT
-- DistilBERT: an nn.Encoder of half as many blocks as BERT, without types of tokens. Its head for sequences has a layer and relu where BERT
-- has the pooler.
local _, internal = ...
local bert = internal.import 'nn/checkpoints/bert'
local distilbert = {title = 'distilbert', huggingface = {'distilbert'}, module = 'Encoder'}

distilbert.head = {huggingface = 'vocab_projector.weight'}
distilbert.ignored = {'^embeddings%.position_ids$'}
distilbert.outside = {'^vocab_', '^pre_classifier%.', '^classifier%.', '^qa_outputs%.'}
distilbert.names = {
	{'embedding.weight', huggingface = 'embeddings.word_embeddings.weight'},
	{'positions', huggingface = 'embeddings.position_embeddings.weight'},
}
bert.layers(distilbert.names, {{'norm', 'embeddings.LayerNorm'}, {'pooler', 'pre_classifier'}, {'head', 'classifier'},
	{'head.transform', 'vocab_transform'}, {'head.norm', 'vocab_layer_norm'}, {'head.decoder', 'vocab_projector'},
	{'block%d.attention.query', 'transformer.layer.%d.attention.q_lin'}, {'block%d.attention.key', 'transformer.layer.%d.attention.k_lin'},
	{'block%d.attention.value', 'transformer.layer.%d.attention.v_lin'}, {'block%d.attention.out', 'transformer.layer.%d.attention.out_lin'},
	{'block%d.norm1', 'transformer.layer.%d.sa_layer_norm'}, {'block%d.ff.linear1', 'transformer.layer.%d.ffn.lin1'},
	{'block%d.ff.linear2', 'transformer.layer.%d.ffn.lin2'}, {'block%d.norm2', 'transformer.layer.%d.output_layer_norm'}})

function distilbert.prepare(t, o) return bert.prepared(t, o, 'distilbert.') end
distilbert.finish = bert.finish

function distilbert.of_huggingface(c, t)
	local d = c:size 'dim'
	local o = {vocab = c:size 'vocab_size', d = d, heads = c:size 'n_heads', layers = c:size 'n_layers', ff = c:size('hidden_dim', 4 * d),
		context = c:size('max_position_embeddings', 512), act = c:choice('activation', bert.ACTIVATIONS, 'gelu'), eps = 1e-12,
		tie = c:flag('tie_word_embeddings', true), pooler = t['pre_classifier.weight'] ~= nil, pooleract = 'relu'}
	bert.classes(c, t, o)
	if t['vocab_transform.weight'] then o.head = 'maskedlm' end
	return o
end

return distilbert
