-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Prompts that are computed once: the text after one, files, other models.
tensor.seed(6)
local OPTIONS = {vocab = 20, d = 16, heads = 4, kvheads = 2, layers = 2, ff = 24, context = 40, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true) and not message:find '\n', message)
end
local m = nn.Transformer(OPTIONS):eval()
m.embedding.weight:detach():mul_(20)
local LONG, file = {1, 5, 9, 3, 7, 2, 8, 8, 4, 6, 11, 13}, os.tmpname() .. '.safetensors'

local function same(a, b) return a:nelem() == b:nelem() and a:eq(b):all():item() end
local function after(...)
	local ids = table.move(LONG, 1, #LONG, 1, {})
	for _, id in ipairs {...} do ids[#ids + 1] = id end
	return ids
end

it('generates what it generates without', function()
	for _, kv in ipairs {'float32', 'float16', 'int8', 'int4:4', {k = 'int8:2', v = 'float16'}} do
		local p = m:prompt(LONG, {kv = kv})
		p:save(file)
		local q = m:loadprompt(file)
		assert(#p == 12 and #q == 12 and tostring(p) == tostring(q))
		for _, ids in ipairs {after(4, 2), LONG, {1, 5, 9, 17}, {17}} do
			local want = m:generate(ids, {steps = 10, kv = kv})
			assert(same(m:generate(ids, {steps = 10, prompt = p}), want) and same(m:generate(ids, {steps = 10, prompt = q, kv = kv}), want))
		end
		local rows, wanted = m:generate({after(4, 2), after(9)}, {steps = 10, prompt = q}), m:generate({after(4, 2), after(9)}, {steps = 10, kv = kv})
		assert(same(rows[1], wanted[1]) and same(rows[2], wanted[2]))
	end
end)

it('computes the rest only', function()
	local p, seen = m:prompt(LONG), 0
	local internal = debug.getregistry()['quoll.internal']
	local HOOK = internal.import('nn/base/module').HOOK
	rawset(m.embedding, HOOK, function(self, ids)
		seen = math.max(seen, ids:size(2))
		return internal.import('nn/base/module').run(self, ids)
	end)
	m:generate(after(4, 2), {steps = 3, prompt = p})
	rawset(m.embedding, HOOK, nil)
	assert(seen == 2, seen)
end)

it('quantized models', function()
	local q = m:quantize {mode = 'dynamic', weight = 'int8/1'}
	local p = q:prompt(LONG, {kv = 'int8'})
	p:save(file)
	assert(same(q:generate(after(4), {steps = 6, prompt = q:loadprompt(file)}), q:generate(after(4), {steps = 6, kv = 'int8'})))
	refused('loadprompt: ' .. file .. ': wanted a prompt of this model, got one of another', m.loadprompt, m, file)
	refused('generate: prompt: wanted one of this model, got one of another', m.generate, m, {1}, {prompt = p})
end)

it('refusals', function()
	local p = m:prompt(LONG, {kv = 'int8'})
	p:save(file)
	refused('wanted a prompt of this model, got one of another', function() nn.Transformer(OPTIONS):loadprompt(file) end)
	local t, metadata = tensor.load(file, {metadata = true})
	local function changed(name, value, keys)
		local all = {}
		for key, x in pairs(t) do all[key] = x end
		all[name] = value
		tensor.save(file, all, {metadata = keys or metadata})
		return file
	end
	refused('k1: wanted int8', m.loadprompt, m, changed('k1', tensor.ones(1)))
	refused('v2: wanted int8', m.loadprompt, m, changed('v2', t.v2:narrow(3, 1, 11):clone()))
	refused('v2: wanted int8', m.loadprompt, m, changed('v2', t.v2:dequantize():quantize 'int8:2'))
	refused('v2: wanted int8', m.loadprompt, m, changed('v2', nil))
	refused('ids: wanted 1 to 40 numbers of tokens, got', m.loadprompt, m, changed('ids', tensor {1, 2, 21, dtype = 'int32'}))
	refused('ids: wanted 1 to 40 numbers of tokens, got', m.loadprompt, m, changed('ids', tensor {0.5}))
	refused('wanted a file of p:save, got another', m.loadprompt, m, changed('ids', t.ids, {a = 'b'}))
	refused('wanted a file of p:save, got another', m.loadprompt, m, changed('ids', t.ids, {['quoll.prompt'] = '1', kv = 'x', model = metadata.model}))
	refused('generate: kv: wanted the prompt', m.generate, m, {1}, {prompt = p, kv = 'int4'})
	refused('generate: prompt: wanted what m:prompt or m:loadprompt gives, got 3', m.generate, m, {1}, {prompt = 3})
	refused('prompt: wanted a model with a cache of keys and values', m.prompt, nn.Linear(2, 2), {1})
	refused('prompt: ids: wanted one text, got 2', m.prompt, m, {{1}, {2}})
	refused('prompt: ids: wanted at most 40 (context=), got 41', m.prompt, m, tensor.ones {41, dtype = 'int64'})
	refused("save: wanted the name of a .safetensors file, got 'x.npz'", p.save, p, 'x.npz')
end)
