-- SPDX-License-Identifier: MIT
-- quant.gguf: a language model as a file of llama.cpp.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local llama = internal.import 'nn/checkpoints/llama'
local gpt2 = internal.import 'nn/checkpoints/gpt2'
local qwen2 = internal.import 'nn/checkpoints/qwen2'
local module = internal.import 'nn/base/module'
local place = internal.import 'nn/checkpoints/place'
local report = internal.import 'interp/prelude/report'
local rotary = internal.import 'nn/base/rotary'
local rules = internal.import 'nn/quantize/rules'
local doc, fail, describe = base.doc, base.fail, base.describe

local entry = doc {name = 'quant.gguf', usage = "quant.gguf(m, {file='m.gguf', weight='q4_0', rules=, metadata=})",
	text = [[Writes an nn.Transformer as a .gguf file, which llama.cpp and `nn.load` read, and returns a report with a row for each tensor. weight is the
format of the layers' weights, rules= exceptions as in `m:quantize`; without weight all is written as it is in the model, quantized or not.
Weights whose rows are no whole blocks of the format stay float32, as their rows say. m is not modified.

Models of Llama's kind (norm='rmsnorm', act='swiglu', position='rope') become llama, or qwen2 if nn.load has read such a one; with
norm='layernorm', act='gelutanh', biases and learned positions they become gpt2. Scaled rotary positions are written; a window, which
these files do not have, limits the context. metadata= are more keys, as
those of the tokenizer: select(2, tensor.load('other.gguf', {metadata = true})).]],
	options = {{'file', 'text', 'the name of the file'}, {'weight', 'spec', 'a format of GGUF: q8_0, q4_0, q4_k, … (default: as it is)'},
		{'rules', 'list', 'exceptions by name'}, {'metadata', 'list', 'more keys'}},
	example = [[file = os.tmpname() .. '.gguf'
m = nn.Transformer{vocab=32, d=32, heads=2, layers=1, norm='rmsnorm', act='swiglu', position='rope', bias=false}:eval()
print(#quant.gguf(m, {file=file, weight='q8_0'}))  --> 11
print(nn.load(file)[1].ff.up.weight:spec())  --> q8_0]]}

-- The architecture of a Transformer, or nil and why it has none.
local function architecture_of(m)
	local origin, first = rawget(m, 'origin'), m[1]
	local rms = module.class_of(m.norm).name == 'RMSNorm'
	if rms and not m.positions and rawget(first.ff, 'gate') then return origin and origin.title == 'qwen2' and qwen2 or llama end
	local act = not rms and m.positions and rawget(first.ff, 2)
	if act and module.class_of(act).name == 'GELU' and act.attributes.approximate == 'tanh' and first.ff[1].bias and first.attention.query.bias then return gpt2 end
	return nil
end

-- Adds the keys of scaled rotary positions; gives the divisors of Llama 3.1, which are a tensor there, or nil.
local function scaled_rope(a, keys)
	local s = a.ropescaling
	if not s then return nil end
	if s.type == 'linear' or s.type == 'yarn' then
		keys['rope.scaling.type'], keys['rope.scaling.factor'] = s.type, s.factor
		if s.type == 'linear' then return nil end
		local _, amplitude = rotary.frequencies(s, a.base or 10000.0, a.headsize)
		if s.truncate == 0 then fail 'gguf: ropescaling: wanted truncate=true, which llama.cpp computes, got false' end
		keys['rope.scaling.original_context_length'] = math.tointeger(s.original) or fail('gguf: ropescaling: original: wanted an integer, got %g', s.original)
		keys['rope.scaling.yarn_beta_fast'], keys['rope.scaling.yarn_beta_slow'] = s.betafast, s.betaslow
		keys['rope.scaling.attn_factor'] = amplitude / (s.factor <= 1 and 1 or 0.1 * math.log(s.factor) + 1)
		return nil
	end
	if s.type == 'longrope' then fail 'gguf: ropescaling: wanted frequencies that are the same for all lengths of texts, got longrope' end
	local plain, list = rotary.frequencies(nil, a.base or 10000.0, a.headsize), rotary.frequencies(s, a.base or 10000.0, a.headsize)
	for i, f in ipairs(plain) do list[i] = f / list[i] end
	return tensor(list)
end

-- Positions up to which no window hides anything.
local function context_of(m)
	local context = m.context
	for i = 1, m.layers do context = math.min(context, m[i].attention.window or context) end
	return context
end

-- The keys that describe the model, and a tensor beside the weights.
local function keys_of(m, architecture)
	local first, name, factors = m[1], architecture.title, nil
	local a, up = first.attention, architecture == gpt2 and first.ff[1] or first.ff.up
	local keys = {['general.architecture'] = name, ['general.quantization_version'] = 2, context_length = context_of(m), embedding_length = m.d, block_count = m.layers,
		feed_forward_length = up.weight:size(1), ['attention.head_count'] = a.heads, ['attention.head_count_kv'] = a.kvheads, vocab_size = m.vocab}
	if architecture == gpt2 then
		keys['attention.layer_norm_epsilon'] = m.norm.eps
	else
		keys['attention.layer_norm_rms_epsilon'], keys['rope.freq_base'], keys['rope.dimension_count'] = m.norm.eps, a.base or 10000.0, a.headsize
		keys['attention.key_length'], keys['attention.value_length'] = a.headsize, a.headsize
		factors = scaled_rope(a, keys)
	end
	local all = {}
	for key, value in pairs(keys) do all[key:find '^general%.' and key or name .. '.' .. key] = value end
	return all, factors
end

-- Layers whose rows are no whole blocks, as rules that leave them float; name -> why.
local function exceptions(m, spec)
	local list, why = {}, {}
	module.walk(m, function(name, inner)
		for _, field in ipairs(module.weights(inner) or {}) do
			local ok, message = pcall(function() return tensor.zeros(1, inner[field]:size(2)):quantize(spec) end)
			if not ok and message:find('multiple of', 1, true) then
				list[#list + 1] = {rules.pattern(name), false}
				why[name .. '.' .. field] = message:match '(wanted K a multiple.*)$'
			elseif not ok then
				fail('gguf: weight: %s', message)
			end
		end
	end)
	return list, why
end

local function quantized(m, o)
	if not o.weight then
		if o.rules then fail 'gguf: rules: wanted weight= beside them, got none' end
		return m, {}
	end
	local list, why = exceptions(m, o.weight)
	for i, rule in ipairs(o.rules or {}) do table.insert(list, i, rule) end
	return m:quantize {mode = 'weight_only', weight = o.weight, rules = list, fuse = false}, why
end

function quant.gguf(m, options)
	if not module.is_module(m) or module.class_of(m).name ~= 'Transformer' then fail('gguf: wanted an nn.Transformer, got %s', describe(m)) end
	local o = base.options(entry, options)
	if not o.file or not o.file:find '%.gguf$' then fail('gguf: file: wanted a name that ends in .gguf, got %s', describe(o.file)) end
	local architecture = architecture_of(m)
	if not architecture then
		fail "gguf: wanted a Transformer of Llama's kind, or of GPT-2's with biases and act='gelutanh', got another"
	end
	local a = m[1].attention
	if a.softcap then fail('gguf: wanted attention without softcap, which files of %s do not have, got %g', architecture.title, a.softcap) end
	local q, why = quantized(m, o)
	local own = {heads = a.heads, kvheads = a.kvheads, halves = architecture == qwen2}
	local names, keys, factors = {}, keys_of(m, architecture)
	local all, order = place.state(q, architecture, own, 'gguf', names)
	if architecture.finish then all, order = architecture.finish(all, order, own, 'gguf') end
	if factors then order[#order + 1], all['rope_freqs.weight'] = 'rope_freqs.weight', factors end
	for key, value in pairs(o.metadata or {}) do
		if keys[key] == nil then keys[key] = value end
	end
	tensor.save(o.file, all, {metadata = keys})
	local rows = {columns = {'name', 'tensor', 'bytes', 'why'}}
	for _, name in ipairs(order) do rows[#rows + 1] = {name, internal.describe(all[name]), all[name]:nbytes(), why[names[name]] or ''} end
	return report(rows)
end
