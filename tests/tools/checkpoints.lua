-- SPDX-License-Identifier: MIT
-- Small models of other programs, written by the tests: parameters follow the formula of scripts/goldens_transformers.py.
local tools = {}

-- Parameter k of the sorted names, from 0.
function tools.parameter(k, ...)
	local n, list = 1, {dtype = 'float32'}
	for _, size in ipairs {...} do n = n * size end
	for i = 0, n - 1 do list[i + 1] = ((i * 37 + k * 101) % 199 - 99) / 300 end
	return tensor(list):view(...)
end

-- name -> tensor of a list of {name, size, …}; names are sorted as Python does.
function tools.parameters(shapes)
	table.sort(shapes, function(a, b) return a[1] < b[1] end)
	local t = {}
	for k, row in ipairs(shapes) do t[row[1]] = tools.parameter(k - 1, table.unpack(row, 2)) end
	return t
end

function tools.write(path, text)
	local handle = assert(io.open(path, 'wb'))
	handle:write(text)
	handle:close()
	return path
end

function tools.read(path)
	local handle = assert(io.open(path, 'rb'))
	local text = handle:read 'a'
	handle:close()
	return text
end

-- A new folder with config.json and, given tensors, model.safetensors.
function tools.folder(config, t)
	local folder = os.tmpname()
	os.remove(folder)
	assert(os.execute('mkdir ' .. folder))
	tools.write(folder .. '/config.json', config)
	if t then tensor.save(folder .. '/model.safetensors', t, {metadata = {format = 'pt'}}) end
	return folder
end

-- The tokens of the goldens, counted from 1: (2, 7).
function tools.ids()
	local list = {dtype = 'int64'}
	for b = 0, 1 do
		for t = 0, 6 do list[#list + 1] = (b * 11 + t) * 13 % 20 + 1 end
	end
	return tensor(list):view(2, 7)
end

-- Compares logits with a line of the goldens: elements 0, 1, 50, 137 and 279, and the sum weighted with 1 + i % 13. options: of the call.
function tools.check(m, want, options)
	local y, sum = tensor.nograd(function() return m(tools.ids(), options) end):view(280):totable(), 0
	for i, at in ipairs {0, 1, 50, 137, 279} do
		assert(math.abs(y[at + 1] - want[i]) < 2e-6, ('%d: %.8g'):format(at, y[at + 1]))
	end
	for i, v in ipairs(y) do sum = sum + v * (1 + (i - 1) % 13) end
	assert(math.abs(sum - want[6]) < 5e-4, sum)
end

-- Layers of Llama's kind with d = 16, 4 heads, 2 of keys, 24 units.
function tools.llama(o)
	local width = 4 * (o.headsize or 4)
	local shapes = {{'model.embed_tokens.weight', 20, 16}, {'model.norm.weight', 16}}
	if o.head then shapes[3] = {'lm_head.weight', 20, 16} end
	for i = 0, 1 do
		local p = ('model.layers.%d.'):format(i)
		for _, row in ipairs {{'input_layernorm.weight', 16}, {'post_attention_layernorm.weight', 16}, {'mlp.gate_proj.weight', 24, 16},
			{'mlp.up_proj.weight', 24, 16}, {'mlp.down_proj.weight', 16, 24}, {'self_attn.q_proj.weight', width, 16}, {'self_attn.k_proj.weight', width // 2, 16},
			{'self_attn.v_proj.weight', width // 2, 16}, {'self_attn.o_proj.weight', 16, width}} do
			shapes[#shapes + 1] = {p .. row[1], table.unpack(row, 2)}
			if row[1]:find '[qkv]_proj' and o.bias or row[1]:find 'o_proj' and o.outbias then
				shapes[#shapes + 1] = {p .. row[1]:gsub('weight', 'bias'), row[2]}
			end
		end
	end
	return tools.parameters(shapes)
end

-- A BERT (d = 16, 4 heads, 24 units, 2 blocks) by {name, size, …} of its encoder, under the names of `names`, and of what else there is.
local BERT = {'embeddings.word_embeddings', 'embeddings.position_embeddings', 'embeddings.token_type_embeddings', 'embeddings.LayerNorm',
	'encoder.layer.%d.attention.self.query', 'encoder.layer.%d.attention.self.key', 'encoder.layer.%d.attention.self.value',
	'encoder.layer.%d.attention.output.dense', 'encoder.layer.%d.attention.output.LayerNorm', 'encoder.layer.%d.intermediate.dense',
	'encoder.layer.%d.output.dense', 'encoder.layer.%d.output.LayerNorm'}
local SIZES = {{20, 16}, {32, 16}, {2, 16}, {16}, {16, 16}, {16, 16}, {16, 16}, {16, 16}, {16}, {24, 16}, {16, 24}, {16}}

function tools.bert(prefix, more, names)
	local shapes = more or {}
	for i, name in ipairs(names or BERT) do
		for block = 0, name:find '%%d' and 1 or 0 do
			local stem = prefix .. name:format(block)
			if name ~= '' then shapes[#shapes + 1] = {stem .. '.weight', table.unpack(SIZES[i])} end
			if i > 3 then shapes[#shapes + 1] = {stem .. '.bias', SIZES[i][1]} end
		end
	end
	return tools.parameters(shapes)
end

local GGUF = {['model.embed_tokens'] = 'token_embd', ['model.norm'] = 'output_norm', lm_head = 'output', input_layernorm = 'attn_norm',
	post_attention_layernorm = 'ffn_norm', ['mlp.gate_proj'] = 'ffn_gate', ['mlp.up_proj'] = 'ffn_up', ['mlp.down_proj'] = 'ffn_down',
	['self_attn.q_proj'] = 'attn_q', ['self_attn.k_proj'] = 'attn_k', ['self_attn.v_proj'] = 'attn_v', ['self_attn.o_proj'] = 'attn_output'}

-- The same under the names of .gguf files; turn(name, tensor) may change one.
function tools.gguf_names(t, turn)
	local all = {}
	for name, value in pairs(t) do
		local stem, field = name:match '^(.*)%.(%a+)$'
		local block, rest = stem:match '^model%.layers%.(%d+)%.(.*)$'
		all[(block and 'blk.' .. block .. '.' .. GGUF[rest] or GGUF[stem]) .. '.' .. field] = turn and turn(name, value) or value
	end
	return all
end

return tools
