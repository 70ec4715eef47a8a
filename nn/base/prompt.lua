-- SPDX-License-Identifier: MIT
-- Prompts that have been computed: m:prompt makes one, p:save and m:loadprompt store it, m:generate goes on after it. A file has the
-- tokens and the caches of all layers as tensors, and a hash of the model, so that another model's is refused.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local identity = internal.import 'nn/base/identity'
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'
local texts = internal.import 'nn/base/texts'
local fit = internal.import 'nn/base/fit'
local fail, describe = base.fail, base.describe
local methods, method = module.methods, module.method
local prompt = {}

local of_prompt = {}
local meta = {__name = 'quoll.prompt', __index = of_prompt, methods = of_prompt, __len = function(p) return #p.ids end}
debug.getregistry()[meta.__name] = meta

function meta.__tostring(p) return ('prompt: %d positions, %s'):format(#p.ids, p.kv) end

function prompt.is(value) return getmetatable(value) == meta end

-- A hash of the model's shape and a row of each of its tensors: what a file must come from.
local function hash_of(m)
	local parts = {}
	module.each_tensor(m, function(name, x)
		local row = x:detach()
		if x:dim() > 1 then row = row:narrow(1, x:size(1) // 2 + 1, 1) end
		parts[#parts + 1] = ('%s %s %s'):format(name, table.concat({x:size()}, ','), identity.tensor(row))
	end)
	return internal.sha256(tostring(m) .. table.concat(parts, '\n'))
end

local function text_of(kv)
	local function one(value) return tostring(value == nil and 'float32' or value) end
	if type(kv) == 'table' and not getmetatable(kv) then
		return ('k=%s v=%s'):format(one(kv.k), one(kv.v)) .. ((kv.recent or 0) ~= 0 and (' recent=%s'):format(one(kv.recent)) or '')
	end
	return ('k=%s v=%s'):format(one(kv), one(kv))
end

local function kv_of(text)
	local k, v, rest = text:match '^k=(%S+) v=(%S+)(.*)$'
	local recent = rest and rest:match '^ recent=(%d+)$'
	return k and (recent or rest == '') and {k = k, v = v, recent = recent and math.tointeger(tonumber(recent))} or nil
end

-- m:generate with a prompt: the caches have to be of this model and format.
function prompt.check(what, m, p, kv)
	if not prompt.is(p) then fail('%s: prompt: wanted what m:prompt or m:loadprompt gives, got %s', what, describe(p)) end
	if p.hash ~= hash_of(m) then fail('%s: prompt: wanted one of this model, got one of another', what) end
	if kv ~= nil and text_of(kv) ~= p.kv then fail("%s: kv: wanted the prompt's '%s', got '%s'", what, p.kv, text_of(kv)) end
	return p
end

-- The format of its caches.
function prompt.kv(p) return kv_of(p.kv) end

local function check_model(what, m)
	module.parts_of(m, what)
	if not module.class_of(m).cache or not module.class_of(m).list then
		fail('%s: wanted a model with a cache of keys and values, as nn.Transformer, got %s', what, module.class_of(m).name)
	end
end

local entry = method('prompt', "m:prompt(ids)  m:prompt('A long text', {kv='int8'})",
	[[Computes a prompt of an nn.Transformer once: m:generate(ids, {prompt=p}) takes from it what ids (or a text) begins with, and computes the rest only.
p:save 'p.safetensors' stores it, m:loadprompt reads it. kv= is the format of the cache as in m:generate. #p is the number of positions.]],
	[[m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
p = m:prompt {1, 5, 3, 2}
a = m:generate({1, 5, 3, 2, 4}, {steps=3, prompt=p})
b = m:generate({1, 5, 3, 2, 4}, {steps=3})
print(#p, a:eq(b):all():item())  --> 4 true]],
	{{'kv', 'any', "format of the cache (default float32)"}, {'tokenizer', 'any', 'of a text: data.tokenizer or the name of its file'}})
function methods.prompt(m, given, options)
	check_model('prompt', m)
	options = base.options(entry, options)
	local rows = texts.read('prompt', m, given, options.tokenizer).rows
	if #rows ~= 1 then fail('prompt: ids: wanted one text, got %d', #rows) end
	local ids = rows[1]
	if #ids > m.context then fail('prompt: ids: wanted at most %d (context=), got %d', m.context, #ids) end
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local caches = m:cache(1, #ids, options.kv)
	caches.wanted = function(x) return x:narrow(2, #ids, 1) end
	m(module.moved(tensor {dtype = 'int64', table.unpack(ids)}:unsqueeze(1), module.device(m)), caches)
	return setmetatable({ids = ids, caches = caches, kv = text_of(options.kv), hash = hash_of(m)}, meta)
end

base.doc {name = 'prompt:save', usage = "p:save 'p.safetensors'", text = [[Stores a computed prompt, which m:loadprompt reads; returns p.]],
	example = [[file = os.tmpname() .. '.safetensors'
m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
m:prompt {1, 5, 3}:save(file)
print(#m:loadprompt(file))  --> 3]]}
function of_prompt.save(p, file)
	if not prompt.is(p) then fail('save: wanted a prompt, as in p:save(file), got %s', describe(p)) end
	if type(file) ~= 'string' or not file:find '%.safetensors$' then fail('save: wanted the name of a .safetensors file, got %s', describe(file)) end
	local all = {ids = tensor {dtype = 'int32', table.unpack(p.ids)}}
	for i, cache in ipairs(p.caches) do
		for _, name in ipairs(kvcache.names(cache)) do all[name .. i] = cache[name]:to 'cpu' end
	end
	tensor.save(file, all, {metadata = {['quoll.prompt'] = '1', kv = p.kv, model = p.hash}})
	return p
end

-- The tensor of the file in the place of one of the cache; both are of the same model and format.
local function take(file, name, given, own)
	local same = base.is_tensor(given) and given:dim() == own:dim() and given:quantized() == own:quantized() and given:dtype() == own:dtype()
	for d = 1, own:dim() do same = same and given:size(d) == own:size(d) end
	if same and own:quantized() then
		local a, b = given:qparams(), own:qparams()
		same = a.scheme == b.scheme and a.block == b.block and a.axis == b.axis
	end
	if not same then fail('loadprompt: %s: %s: wanted %s, got %s', file, name, describe(own), describe(given)) end
	return given
end

method('loadprompt', "m:loadprompt 'p.safetensors'", [[A prompt that p:save has stored, of this very model: one of another is refused.]],
	[[file = os.tmpname() .. '.safetensors'
m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
m:prompt {1, 5, 3}:save(file)
other = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
print(pcall(other.loadprompt, other, file))  --> false	...]])
function methods.loadprompt(m, file)
	check_model('loadprompt', m)
	if type(file) ~= 'string' then fail('loadprompt: wanted the name of a file, got %s', describe(file)) end
	local t, metadata = tensor.load(file, {metadata = true})
	local kv = type(metadata) == 'table' and metadata['quoll.prompt'] == '1' and type(metadata.kv) == 'string' and kv_of(metadata.kv)
	if not kv then fail('loadprompt: %s: wanted a file of p:save, got another', file) end
	if metadata.model ~= hash_of(m) then fail('loadprompt: %s: wanted a prompt of this model, got one of another', file) end
	local x = t.ids
	if not base.is_tensor(x) or x:dim() ~= 1 or quant.dtype(x:dtype()).float or x:quantized() or x:size(1) < 1 or x:size(1) > m.context or x:min():item() < 1 or x:max():item() > m.vocab then
		fail('loadprompt: %s: ids: wanted 1 to %d numbers of tokens, got %s', file, m.context, describe(x))
	end
	local caches = m:cache(1, x:size(1), kv)
	for i, cache in ipairs(caches) do
		for _, name in ipairs(kvcache.names(cache)) do
			cache[name] = module.moved(take(file, name .. i, t[name .. i], cache[name]), cache[name]:device())
		end
	end
	kvcache.advance(caches.at, x:size(1))
	return setmetatable({ids = x:totable(), caches = caches, kv = metadata.kv, hash = metadata.model}, meta)
end

return prompt
