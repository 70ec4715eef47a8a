-- SPDX-License-Identifier: MIT
-- Tensors of a .safetensors file that cannot be read do not hide the others: dtypes and ranks that there are none of here, damaged parameters.
-- They are named where they are asked for, by tensor.load, m:load and nn.load, also in shards; a file with nothing else is an error.
local checkpoints = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local FILE = os.tmpname() .. '.safetensors'

-- Writes entries {name, dtype, shape (a text), bytes}.
local function write(entries, file)
	local lines, at = {}, 0
	for i, e in ipairs(entries) do
		lines[i] = ('"%s": {"dtype": "%s", "shape": [%s], "data_offsets": [%d, %d]}'):format(e[1], e[2], e[3], at, at + #e[4])
		at = at + #e[4]
	end
	local header = '{' .. table.concat(lines, ', ') .. '}'
	header = header .. (' '):rep(-#header % 8)
	local data = {}
	for i, e in ipairs(entries) do data[i] = e[4] end
	checkpoints.write(file or FILE, string.pack('<I8', #header) .. header .. table.concat(data))
end

local function refused(want, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

local GOOD = {'good', 'F32', '2', string.pack('<ff', 1.5, -2)}

it('other tensors of the file', function()
	write {{'four', 'F4', '4', 'ab'}, GOOD, {'deep', 'U8', '1,1,1,1,1,1,1,1,1', 'x'}}
	for _, map in ipairs {false, true} do
		local t = tensor.load(FILE, {map = map})
		assert(t.good:totable()[1] == 1.5 and #t == 1 and t.other == nil and rawget(t, 'four') == nil)
		refused("tensor 'four': dtype: wanted one of BOOL", function() return t.four end)
		refused("tensor 'deep': shape: wanted at most 8 axes, got more", function() return t.deep end)
		assert(tostring(t):find('cannot be read: deep four', 1, true))
		for name in pairs(t) do assert(name == 'good') end
		tensor.save(FILE .. '.safetensors', t)
		assert(#tensor.load(FILE .. '.safetensors') == 1)
	end
end)

it('damaged parameters', function()
	tensor.save(FILE, {w = tensor.ones(2, 4):quantize 'int8/1', v = tensor.ones(3)})
	local text = checkpoints.read(FILE):gsub('w::scale', 'w::stale')
	checkpoints.write(FILE, text)
	local t = tensor.load(FILE)
	assert(t.v:nelem() == 3)
	refused("tensor 'w': scale: wanted a tensor 'w::scale', the file has none", function() return t.w end)
end)

it('the layout of the file is an error as before', function()
	local function wrong(want, entries)
		write(entries)
		refused(want, tensor.load, FILE)
	end
	wrong("tensor 'four': dtype: wanted one of BOOL", {{'four', 'F4', '4', 'ab'}}) -- nothing else is there
	wrong("wanted 8 bytes as dtype and shape need, got 4", {{'short', 'F32', '2', 'abcd'}, GOOD})
	write {{'four', 'F4', '4', 'ab'}, GOOD}
	local text = checkpoints.read(FILE)
	for _, bytes in ipairs {1, 4, 9} do
		checkpoints.write(FILE, text:sub(1, -1 - bytes))
		refused('data_offsets: wanted a range in', tensor.load, FILE)
	end
	checkpoints.write(FILE, (text:gsub('%[0, 2%]', '[0, 3]'))) -- overlaps the next
	refused('wanted data of its own', tensor.load, FILE)
	write {{'four', 'F4', '4', 'ab'}, {'four', 'F4', '4', 'ab'}, GOOD}
	refused('wanted every name once', tensor.load, FILE)
end)

it('m:load', function()
	local m = nn.Linear(2, 1)
	write {{'weight', 'F32', '1,2', string.pack('<ff', 1, 2)}, {'bias', 'F8_E4M3FNUZ', '1', 'x'}}
	refused("1 missing: bias; what cannot be read: tensor 'bias': dtype: wanted", m.load, m, FILE)
	m:load(FILE, {partial = true, log = false})
	assert(m.weight:totable()[1][2] == 2)
	refused("tensor 'bias': dtype", m.load, m, FILE, {rename = function(name) return name end})
end)

it('nn.load', function()
	local CONFIG = [[{"model_type": "%s", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "max_position_embeddings": 32, "tie_word_embeddings": true, "rms_norm_eps": 1e-6}]]
	local function spoil(file, name) -- a dtype of as many bytes that there is none of here
		local text, n = checkpoints.read(file):gsub('("' .. name .. '":{"dtype":)"F32"', '%1"C16"')
		assert(n == 1, name)
		checkpoints.write(file, text)
	end
	local t = checkpoints.llama {}
	t.other = tensor.ones(3)
	local folder = checkpoints.folder(CONFIG:format 'llama', t)
	refused('1 extra: other', nn.load, folder)
	spoil(folder .. '/model.safetensors', 'other')
	assert(nn.load(folder).layers == 2) -- not needed
	spoil(folder .. '/model.safetensors', 'model%.norm%.weight')
	refused("tensor 'model.norm.weight': dtype: wanted one of BOOL", nn.load, folder)
	folder = checkpoints.folder(CONFIG:format 'bert', checkpoints.bert 'bert.')
	assert(nn.load(folder))
	spoil(folder .. '/model.safetensors', 'bert%.embeddings%.LayerNorm%.bias')
	refused("1 missing: norm.bias; what cannot be read: tensor 'bert.embeddings.LayerNorm.bias': dtype", nn.load, folder)
	folder = checkpoints.folder(CONFIG:format 'llama')
	t.other = nil
	tensor.save(folder .. '/a.safetensors', t)
	local lines = {}
	for name in pairs(t) do lines[#lines + 1] = ('"%s": "a.safetensors"'):format(name) end
	checkpoints.write(folder .. '/model.safetensors.index.json', ('{"weight_map": {%s}}'):format(table.concat(lines, ', ')))
	assert(nn.load(folder))
	spoil(folder .. '/a.safetensors', 'model%.layers%.1%.mlp%.up_proj%.weight')
	refused("tensor 'model.layers.1.mlp.up_proj.weight': dtype", nn.load, folder)
end)
