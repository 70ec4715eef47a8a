-- SPDX-License-Identifier: MIT
-- Qwen2: Llama with biases of queries, keys and values, and in .gguf files, too, the halves of a head as rotary pairs.
local _, internal = ...
local llama = internal.import 'nn/checkpoints/llama'
local qwen2 = {title = 'qwen2', gguf = {'qwen2'}, huggingface = {'qwen2'}, head = llama.head, ignored = llama.ignored, names = llama.names}

function qwen2.of_huggingface(c)
	local o = llama.of_huggingface(c)
	o.attentionbias, o.outbias = true, false
	if not c:flag('use_sliding_window', false) then o.context = c:size('max_position_embeddings', 32768) end
	return o
end

function qwen2.of_gguf(c, t)
	local o = llama.of_gguf(c, t)
	o.halves = true
	return o
end

return qwen2
