-- SPDX-License-Identifier: MIT
-- Layers with packed codes as checkpoints have them, for the tests of nn/packings: a Llama of one block whose query has codes.
local checkpoints = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local packings = {NAME = 'model.layers.0.self_attn.q_proj'}

-- Words of a list of rows of codes, packed along the columns (axis 2) or rows (axis 1): fields one after the other in a stream of bits.
function packings.words(rows, bits, axis, order)
	local lines, count = {}, axis == 2 and #rows or #rows[1]
	local length = axis == 2 and #rows[1] or #rows
	for i = 1, count do
		local line = {}
		for w = 1, (length * bits + 31) // 32 do line[w] = 0 end
		for k = 1, length do
			local code = axis == 2 and rows[i][k] or rows[k][i]
			local at = (k - 1) * bits
			if order then at = (k - 1) // 8 * 32 + order[(k - 1) % 8 + 1] * 4 end
			for b = 0, bits - 1 do
				local bit = at + b
				line[bit // 32 + 1] = line[bit // 32 + 1] | (code >> b & 1) << bit % 32
			end
		end
		lines[i] = line
	end
	local list = {dtype = 'int32'}
	local across, down = axis == 2 and #lines[1] or count, axis == 2 and count or #lines[1]
	for r = 1, down do
		for c = 1, across do
			local v = axis == 2 and lines[r][c] or lines[c][r]
			list[#list + 1] = v >= 1 << 31 and v - (1 << 32) or v
		end
	end
	return tensor(list):view(down, across)
end

-- Rows of numbers below `below` by a formula.
function packings.codes(rows, columns, below, seed)
	local list = {}
	for r = 1, rows do
		list[r] = {}
		for c = 1, columns do list[r][c] = ((r * 37 + c * 101 + seed * 59) * (r + 3 * c + seed)) % 997 % below end
	end
	return list
end

-- Scales (rows, columns) that are exact in 16 bits.
function packings.scales(rows, columns, dtype)
	local list = {}
	for i = 1, rows * columns do list[i] = (1 + i * 7 % 13) / 64 end
	return tensor(list):view(rows, columns):to(dtype or 'float16')
end

local CONFIG = [[{"model_type": "llama", "vocab_size": 20, "hidden_size": 32, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
	"num_key_value_heads": 2, "max_position_embeddings": 32, "tie_word_embeddings": true, "rms_norm_eps": 1e-6, "quantization_config": %s}]]

-- The folder of a model whose query is the tensors in `layer`; change(t) may spoil all tensors.
function packings.folder(quantization, layer, change)
	local p, t = 'model.layers.0.', {['model.embed_tokens.weight'] = checkpoints.parameter(1, 20, 32), ['model.norm.weight'] = tensor.ones(32)}
	for i, row in ipairs {{'input_layernorm', 32}, {'post_attention_layernorm', 32}, {'mlp.gate_proj', 8, 32}, {'mlp.up_proj', 8, 32}, {'mlp.down_proj', 32, 8},
		{'self_attn.k_proj', 32, 32}, {'self_attn.v_proj', 32, 32}, {'self_attn.o_proj', 32, 32}} do
		t[p .. row[1] .. '.weight'] = checkpoints.parameter(i + 1, table.unpack(row, 2))
	end
	for kind, value in pairs(layer) do t[packings.NAME .. '.' .. kind] = value end
	if change then change(t) end
	return checkpoints.folder(CONFIG:format(quantization), t), t
end

-- Saves m to a folder, which has the same description and tensors as the one it was read from.
function packings.same(m, from)
	local to, n = os.tmpname(), 0
	os.remove(to)
	m:save(to .. '/')
	assert(checkpoints.read(to .. '/config.json') == checkpoints.read(from .. '/config.json'))
	local a, b = tensor.load(from .. '/model.safetensors'), tensor.load(to .. '/model.safetensors')
	for name, x in pairs(a) do
		assert(b[name] and b[name]:dtype() == x:dtype() and b[name]:eq(x):all():item(), name)
		n = n + 1
	end
	assert(n == #b)
end

-- The weight of the query in the order of the file, by m's float form saved to a folder; checks that it loads, too.
function packings.saved(m)
	local to = os.tmpname()
	os.remove(to)
	local plain = m:dequantize()
	plain:save(to .. '/')
	assert(not checkpoints.read(to .. '/config.json'):find 'quantization_config')
	local again, ids = nn.load(to), tensor{{1, 20, 3, 7}, dtype = 'int32'}
	assert((again(ids) - m(ids)):abs():max():item() < 1e-4 and (plain(ids) - m(ids)):abs():max():item() < 1e-4)
	return tensor.load(to .. '/model.safetensors')[packings.NAME .. '.weight']
end

function packings.refused(want, quantization, layer, change)
	local folder = packings.folder(quantization, layer, change)
	local ok, message = pcall(nn.load, folder)
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

return packings
