-- SPDX-License-Identifier: MIT
-- nn.llama: a checkpoint of llama2.c as an nn.Transformer.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail, describe = base.doc, base.fail, base.describe

-- What a layer's tensors are called there and here; (layers, …) in the file.
local PLACES = {
	{'rms_attention', function(block) return block.norm1 end}, {'wq', function(block) return block.attention.query end},
	{'wk', function(block) return block.attention.key end}, {'wv', function(block) return block.attention.value end},
	{'wo', function(block) return block.attention.out end}, {'rms_ffn', function(block) return block.norm2 end},
	{'w1', function(block) return block.ff.gate end}, {'w2', function(block) return block.ff.down end},
	{'w3', function(block) return block.ff.up end},
}

doc {name = 'nn.llama', usage = "nn.llama 'stories260K.bin'",
	text = [[The model in a checkpoint of llama2.c (version 0, float32), in eval mode: an nn.Transformer with RMS norms, rotary
positions, the gated feed-forward part and no biases. Token numbers are the file's plus one, as `data.tokenizer` gives them.]],
	example = "print(pcall(nn.llama, 'no/such/file.bin'))  --> false	..."}

return function(file)
	if type(file) ~= 'string' then fail('llama: wanted a file name, got %s', describe(file)) end
	local t = tensor.load(file)
	if type(t) ~= 'table' or not t.config then fail('llama: %s: wanted a checkpoint of llama2.c, got another file', file) end
	local d, hidden, layers, heads, kvheads, vocab, context = table.unpack(t.config:totable())
	local m = nn.Transformer {vocab = math.abs(vocab), d = d, heads = heads, kvheads = kvheads, layers = layers, ff = hidden, context = context,
		norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false, tie = t.classifier == nil}
	tensor.nograd(function()
		m.embedding.weight:copy_(t.embedding)
		m.norm.weight:copy_(t.rms_final)
		if t.classifier then m.head.weight:copy_(t.classifier) end
		for i = 1, layers do
			for _, place in ipairs(PLACES) do place[2](m[i]).weight:copy_(t[place[1]][i]) end
		end
	end)
	return m:eval()
end
