-- SPDX-License-Identifier: MIT
-- nn.load: models from other programs. Files of nn/checkpoints.def are the architectures.
local nn, internal = _G.nn, select(2, ...)
local base = internal.import 'interp/prelude/base'
local codes = internal.import 'nn/packings/codes'
local files = internal.import 'nn/base/files'
local ends = internal.import 'nn/checkpoints/ends'
local fields = internal.import 'nn/checkpoints/fields'
local json = internal.import 'interp/prelude/json'
local initial = internal.import 'nn/base/initial'
local module = internal.import 'nn/base/module'
internal.import 'nn/base/modes'
local place = internal.import 'nn/checkpoints/place'
local sources = internal.import 'nn/checkpoints/sources'
local doc, fail, describe = base.doc, base.fail, base.describe

local known, by_title = {gguf = {}, huggingface = {}}, {}
for _, file in ipairs(internal.registry 'nn/checkpoints') do
	local architecture = internal.import(file)
	by_title[architecture.title] = architecture
	for kind, names in pairs(known) do
		for _, name in ipairs(architecture[kind] or {}) do names[name] = architecture end
	end
end

local methods = {}
for _, file in ipairs(internal.registry 'nn/packings') do
	local method = internal.import(file)
	methods[method.method] = method
end

local OWN = {halves = true, columns = true, gamma = true, answers = true, twice = true, packed = true} -- options of architectures, not of the module

-- A module whose parameters the caller sets.
local function unset(architecture, o)
	local options = {}
	for name, value in pairs(o) do
		if not OWN[name] then options[name] = value end
	end
	return initial.unset(nn[architecture.module or 'Transformer'], options)
end

-- Floats of 16 bits are multiplied as they are; what is between the products is float32.
local function widen(m)
	module.each_tensor(m, function(_, value)
		m.wide = m.wide or not value:quantized() and value:dtype():find '16$' ~= nil
	end)
	return m:eval()
end

-- Each layer has tensors: refused before a model of more layers is made.
local function check_layers(o, t, from)
	local count = 0
	for _ in next, t do count = count + 1 end
	for _ in next, (getmetatable(t) or {}).refused or {} do count = count + 1 end
	if o.layers and o.layers > count then fail('load: %s: wanted the tensors of %d layers, got %d tensors', from, o.layers, count) end
end

local function finish(architecture, o, t, from, kind)
	check_layers(o, t, from)
	local prefix, file = nil, t
	if architecture.prepare then t, prefix = architecture.prepare(t, o, kind) end
	local m, left = place.load(unset(architecture, o), architecture, o, t, from, kind, file)
	m.origin = {title = architecture.title, options = o, prefix = prefix, left = left}
	return widen(m)
end

-- What reads and writes the quantized weights of a folder, the checked fields of its configuration; nil if it has none.
local function method_of(c)
	if not c:get 'quantization_config' then return nil end
	local q = c:inner 'quantization_config'
	return q:choice('quant_method', methods), q
end

-- The tensors with quantized weights in place of packed ones, and what was kept for writing them.
local function unpacked(c, architecture, t)
	local method, q = method_of(c)
	if not method then return t end
	if architecture.columns then c:fail('quantization_config: wanted none for %s, got %s', architecture.title, method.method) end
	local p = codes.new(t, c.what:match '^(.*)/' or c.what)
	method.read(q, p)
	return p.left, p.kept
end

-- Whether a name of the file is that of a head, which has no prefix.
local function is_outside(architecture, name)
	for _, pattern in ipairs(architecture.outside or {'^lm_head%.'}) do
		if name:find(pattern) then return true end
	end
	return false
end

-- Lets layers quantize their inputs as the file says it.
local function quantize_inputs(m, architecture, packed, prefix)
	place.layers(m, architecture, 'huggingface', function(layer, theirs)
		local kept = packed[is_outside(architecture, theirs) and theirs or prefix .. theirs] or packed[theirs]
		local input = kept and kept.kinds and kept.kinds.input
		if not input then return end
		local weight = layer.weight:spec()
		rawset(layer, 'quantized', {mode = input.mode, weight = weight, input = input.input, inputs = {input.input}, rows = input.rows})
		rawset(layer, 'frozen', input.mode)
		rawset(layer, 'said', ('%s, weight %s, input %s%s'):format(input.mode, weight.name, input.input.name, input.rows and ' by ' .. input.rows or ''))
	end)
	module.mark_codes(m)
end

local function load_folder(folder)
	local c, tensors = sources.folder(folder)
	local architecture = c:choice('model_type', known.huggingface)
	local given = tensors()
	local t, packed = unpacked(c, architecture, given)
	local o = architecture.of_huggingface(c, t)
	o.packed = packed
	local m = finish(architecture, o, t, folder, 'huggingface')
	if packed then quantize_inputs(m, architecture, packed, m.origin.prefix or '') end
	m.origin.config, m.origin.packed, m.origin.shards = c.text, packed, getmetatable(given).shards
	ends.of_folder(m.origin, folder, c.values)
	return m
end

local function load_gguf(file)
	local t, metadata = tensor.load(file, {map = true, metadata = true})
	local name = fields.new(file, metadata)
	local architecture = name:choice('general.architecture', known.gguf)
	local c = fields.new(file, metadata, metadata['general.architecture'] .. '.')
	local m = finish(architecture, architecture.of_gguf(c, t), t, file, 'gguf')
	ends.of_gguf(m.origin, file, metadata)
	return m
end

local function load_llama2c(file)
	local o, t = internal.import 'nn/checkpoints/llama2c'.read(tensor.load(file))
	if not o then fail('load: %s: wanted a checkpoint of llama2.c, got another file', file) end
	return finish(known.gguf.llama, o, t, file, 'gguf')
end

-- Names of the file in place of those that architectures use.
local function prefixed(all, order, architecture, prefix)
	for i, name in ipairs(order) do
		local theirs = is_outside(architecture, name) and name or prefix .. name
		if theirs ~= name then all[theirs], all[name], order[i] = all[name], nil, theirs end
	end
end

-- Packs quantized weights that were packed in the file; others are an error. Gives the tensors, and whether some are packed.
local function packed_again(origin, all, folder)
	local p, some = codes.new(all, folder, 'save', origin.packed), false
	local method, q = method_of(fields.new(folder, json(origin.config)))
	for name, value in pairs(all) do
		local layer = name:match '^(.*)%.weight$'
		if value:quantized() then
			if not (method and layer and p.kept[layer]) then
				fail("save: %s: wanted floats, as in m:dequantize(), or a weight that was packed in the folder that was read, got %s", name, describe(value))
			end
			method.write(q, p, layer)
			some = true
		end
	end
	return p.left, some
end

-- Files of Hugging Face: config.json as it was, and the tensors in as many files as they were.
function files.save_folder(m, folder)
	local origin = rawget(m, 'origin')
	if not origin or not origin.config then
		fail('save: %s: wanted a model that nn.load has read from a folder of Hugging Face, got another', folder)
	end
	local architecture = by_title[origin.title]
	local all, order = place.state(m, architecture, origin.options, 'huggingface')
	if architecture.finish then all, order = architecture.finish(all, order, origin.options, 'huggingface') end
	for name, value in pairs(origin.left) do
		order[#order + 1], all[name] = name, value
	end
	prefixed(all, order, architecture, origin.prefix or '')
	local packed
	all, packed = packed_again(origin, all, folder)
	internal.make_folder(folder)
	sources.write(folder, all, origin.shards)
	internal.write_file(folder .. 'config.json', packed and origin.config or sources.plain(origin.config))
end

doc {name = 'nn.load', usage = "nn.load 'folder/'  nn.load 'm.gguf'  nn.load 'stories260K.bin'",
	text = [[A model from another program, in eval mode: an nn.Transformer or nn.Encoder, which evaluates, generates, quantizes, trains and is
exported as any other.

A folder of Hugging Face has config.json and model.safetensors, or model.safetensors.index.json and its shards; a .gguf file has all in
one; a .bin file is a checkpoint of llama2.c (version 0). Architectures: llama (also mistral), qwen2, gpt2; bert and distilbert, which are nn.Encoder, with the heads that the file has
for masked tokens, sequences, tokens or answers. Parameters keep their dtypes;
with weights of 16 bits activations are float32. Large ones are the mapped file (`tensor.load`, map=true). Quantized tensors stay as they are in the file: those of .gguf, and in folders
the codes of GPTQ, AWQ and compressed-tensors (pack-quantized, int-quantized, whose layers quantize their inputs where the file
says so: w8a8, by token or static); m:save 'folder/' packs them again, or
writes the floats that m:dequantize() gives. What the model cannot compute (other
architectures and rules of rotary positions, experts) is an error, as is every tensor that is missing or left over. Scaled rotary
positions are linear, llama3, yarn, longrope, and dynamic, which within the model's context is none; windows are those of Mistral and Qwen2.

Token numbers count from 1: they are those of other programs plus one, as `data.tokenizer` gives them. m:generate takes text where the file or
folder has a tokenizer, and knows the tokens that end a text.]],
	example = [[folder = data.find 'models/stories260K/hf/config.json'
if folder then print(nn.load(folder:match '^(.*)/'))
else print(pcall(nn.load, 'no/such/file.gguf')) end]]}

function nn.load(file)
	if type(file) ~= 'string' or file == '' then fail('load: wanted the name of a folder or file, got %s', describe(file)) end
	file = base.path(file)
	if internal.list_folder(file) then return load_folder(file) end
	if file:find '%.[gG][gG][uU][fF]$' then return load_gguf(file) end
	if file:find '%.bin$' then return load_llama2c(file) end
	if not internal.exists(file) then fail('load: %s: there is no such file or folder', file) end
	fail('load: %s: wanted a folder with config.json, a .gguf file or a checkpoint of llama2.c (.bin); tensor.load gives the tensors of others', file)
end

doc {name = 'nn.llama', usage = "nn.llama 'stories260K.bin'",
	text = [[The model in a checkpoint of llama2.c: nn.load for such files.]],
	example = "print(pcall(nn.llama, 'no/such/file.bin'))  --> false	..."}

function nn.llama(file)
	if type(file) ~= 'string' then fail('llama: wanted a file name, got %s', describe(file)) end
	return load_llama2c(file)
end
