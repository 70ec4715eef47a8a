-- SPDX-License-Identifier: MIT
-- Checkpoints of llama2.c: tensors of all layers together, and a list of sizes instead of a description.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local llama2c = {title = 'llama2.c'}

-- What a layer's tensors are called there and in .gguf files.
local PLACES = {rms_attention = 'attn_norm', wq = 'attn_q', wk = 'attn_k', wv = 'attn_v', wo = 'attn_output', rms_ffn = 'ffn_norm', w1 = 'ffn_gate',
	w2 = 'ffn_down', w3 = 'ffn_up'}

-- Options of nn.Transformer, and the tensors under the names of .gguf files of Llama; nil if the file is another one.
function llama2c.read(t)
	if base.is_tensor(t) or not t.config then return nil end
	local d, hidden, layers, heads, kvheads, vocab, context = table.unpack(t.config:totable())
	local all = {['token_embd.weight'] = t.embedding, ['output_norm.weight'] = t.rms_final, ['output.weight'] = t.classifier}
	for theirs, ours in pairs(PLACES) do
		for i = 1, layers do all[('blk.%d.%s.weight'):format(i - 1, ours)] = t[theirs][i] end
	end
	return {vocab = math.abs(vocab), d = d, heads = heads, kvheads = kvheads, layers = layers, ff = hidden, context = context, norm = 'rmsnorm', act = 'swiglu',
		position = 'rope', bias = false, tie = t.classifier == nil}, all
end

return llama2c
