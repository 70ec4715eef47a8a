-- SPDX-License-Identifier: MIT
-- nn.load: folders with shards and what may be wrong with them.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local CONFIG = [[{"model_type": "llama", "vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "max_position_embeddings": 32, "tie_word_embeddings": true, "attention_bias": true, "rms_norm_eps": 1e-6}]]

-- A folder with two shards and an index, which change(map, shards) may spoil.
local function sharded(change)
	local folder, map, shards, i = tools.folder(CONFIG), {}, {{}, {}}, 0
	for name, x in pairs(tools.llama {bias = true, outbias = true}) do
		i = i % 2 + 1
		shards[i][name], map[name] = x, ('model-0000%d-of-00002.safetensors'):format(i)
	end
	if change then change(map, shards) end
	for k, t in ipairs(shards) do tensor.save(('%s/model-0000%d-of-00002.safetensors'):format(folder, k), t) end
	local lines = {}
	for name, file in pairs(map) do lines[#lines + 1] = ('"%s": %s'):format(name, type(file) == 'string' and '"' .. file .. '"' or tostring(file)) end
	tools.write(folder .. '/model.safetensors.index.json', ('{"metadata": {}, "weight_map": {%s}}'):format(table.concat(lines, ', ')))
	return folder
end

local function refused(want, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

it('shards', function()
	tools.check(nn.load(sharded()), {0.14330076, 0.038715363, -0.10880286, -0.11164583, 0.078723893, -56.438405})
	local from, to = sharded(), os.tmpname()
	os.remove(to)
	nn.load(from):save(to .. '/')
	local index = tools.read(to .. '/model.safetensors.index.json')
	for _, file in ipairs {'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'} do
		local a, b = tensor.load(from .. '/' .. file), tensor.load(to .. '/' .. file)
		assert(#a == #b)
		for name, x in pairs(a) do assert(b[name]:eq(x):all():item() and index:find(('"%s": "%s"'):format(name, file), 1, true)) end
	end
	tools.check(nn.load(to), {0.14330076, 0.038715363, -0.10880286, -0.11164583, 0.078723893, -56.438405})
	local function spoiled(want, change) refused(want, nn.load, sharded(change)) end
	spoiled("wanted the tensors that the index names for it, got 'model.norm.weight'", function(map, shards)
		shards[1]['model.norm.weight'], shards[2]['model.norm.weight'] = tensor.ones(16), tensor.ones(16)
		map['model.norm.weight'] = 'model-00001-of-00002.safetensors'
	end)
	spoiled("wanted 'none' as the index says", function(map) map.none = 'model-00001-of-00002.safetensors' end)
	for _, file in ipairs {'../model.safetensors', '/etc/passwd', 'a/b.safetensors', 'model.bin', '.safetensors'} do
		spoiled('wanted the name of a .safetensors file in the folder, got', function(map) map['model.norm.weight'] = file end)
	end
	spoiled('wanted the name of a .safetensors file in the folder, got 5', function(map) map['model.norm.weight'] = 5 end)
	spoiled('cannot open', function(map) map.none = 'other.safetensors' end)
end)

it('files that are not there or something else', function()
	refused("load: there/is/none: there is no such file or folder", nn.load, 'there/is/none')
	refused('wanted the name of a folder or file, got nil', nn.load)
	local folder = tools.folder(CONFIG)
	refused('wanted model.safetensors, or model.safetensors.index.json', nn.load, folder)
	refused('wanted a folder with config.json, a .gguf file or', nn.load, folder .. '/config.json')
	os.remove(folder .. '/config.json')
	refused('wanted a folder with config.json, there is none', nn.load, folder)
	for text, want in pairs {['['] = 'config.json: wanted', ['[1]'] = 'model_type: wanted', ['{"model_type": "bloom"}'] = "model_type: wanted bert or distilbert or gpt2 or llama or",
		[('['):rep(1e5)] = 'config.json: wanted', ['3'] = 'wanted an object, got another value'} do
		tools.write(folder .. '/config.json', text)
		tensor.save(folder .. '/model.safetensors', {x = tensor.ones(1)})
		refused(want, nn.load, folder)
	end
end)
