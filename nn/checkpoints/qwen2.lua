-- SPDX-License-Identifier: MIT
-- Qwen2: Llama with biases of queries, keys and values, and in .gguf files, too, the halves of a head as rotary pairs.
local _, internal = ...
local llama = internal.import 'nn/checkpoints/llama'
local qwen2 = {title = 'qwen2', gguf = {'qwen2'}, huggingface = {'qwen2'}, head = llama.head, ignored = llama.ignored, names = llama.names}

local KINDS = {full_attention = 'full', sliding_attention = 'sliding'}

-- The window of each block: by layer_types, or from block max_window_layers on, counted from 0.
local function windows(c, layers)
	local size, list, types = c:size('sliding_window', 4096), {}, c:get 'layer_types' and c:inner 'layer_types'
	local first = c:get 'max_window_layers' == 0 and 0 or c:size('max_window_layers', 28)
	for i = 1, layers do
		local slides = i > first
		if types then slides = types:choice(i, KINDS) == 'sliding' end
		list[i] = slides and size or 0
	end
	return list
end

function qwen2.of_huggingface(c)
	local o = llama.of_huggingface(c)
	o.attentionbias, o.outbias = true, false
	o.context = c:size('max_position_embeddings', 32768)
	if c:flag('use_sliding_window', false) and c:get 'sliding_window' ~= nil then o.window = windows(c, o.layers) end
	return o
end

function qwen2.of_gguf(c, t)
	local o = llama.of_gguf(c, t)
	o.halves = true
	return o
end

return qwen2
