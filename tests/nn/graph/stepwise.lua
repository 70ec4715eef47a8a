-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Steps of m:generate as a program: the tokens and the bits of the model's own steps; models that are left to Lua.
tensor.seed(7)
local internal = debug.getregistry()['quoll.internal']
local _ = nn.load
local decoder, module = internal.import 'nn/base/decoder', internal.import 'nn/base/module'
local compile = decoder.compile
local KINDS = {
	gpt = {vocab = 20, d = 32, heads = 4, layers = 2, ff = 32, context = 60},
	llama = {vocab = 20, d = 32, heads = 4, kvheads = 2, layers = 2, ff = 64, context = 60, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false},
	scaled = {vocab = 20, d = 32, heads = 4, layers = 1, ff = 64, context = 60, position = 'rope', ropescaling = {type = 'linear', factor = 2}, window = 7},
}

local function with(f, ...)
	decoder.compile = f
	local result = table.pack(pcall(...))
	decoder.compile = compile
	assert(result[1], result[2])
	return table.unpack(result, 2, result.n)
end

local function same(a, b) return a:nelem() == b:nelem() and a:eq(b):all():item() end

it('makes the same text, in every mode and format', function()
	for name, o in pairs(KINDS) do
		local float = nn.Transformer(o):eval()
		float.embedding.weight:detach():mul_(20)
		local models = {float = float, weights = float:quantize {mode = 'weight_only', weight = 'int4:16'}, dynamic = float:quantize {mode = 'dynamic', weight = 'int4:32'}}
		for kind, m in pairs(models) do
			for _, kv in ipairs {'float32', 'int8'} do
				local made = 0
				local function counted(...)
					local program = compile(...)
					assert(program, name .. kind)
					return function(...)
						made = made + 1
						return program(...)
					end
				end
				local options = {steps = 50, kv = kv, temperature = 0.7, seed = 2}
				local a = with(counted, m.generate, m, {{1, 2, 3}, {4}}, options)
				local b = with(nil, m.generate, m, {{1, 2, 3}, {4}}, options)
				assert(same(a[1], b[1]) and same(a[2], b[2]) and made == 49, name .. kind .. made)
			end
		end
	end
end)

it('logits have the bits of the model', function()
	local m = nn.Transformer(KINDS.llama):eval():quantize {mode = 'dynamic', weight = 'int4:32'}
	tensor.nograd(function()
		local ids, cache, other = tensor {{3}, {5}, dtype = 'int64'}, m:cache(2, 8), m:cache(2, 8)
		local program = compile(m, other, 2)
		for at = 0, 3 do
			local y = m(ids, cache)
			assert(y:eq(program(ids, tensor {at, at, dtype = 'int64'})):all():item())
			assert(cache[2].v:eq(other[2].v):all():item())
		end
	end)
end)

it('what a function of the user sees is left to Lua', function()
	local m = nn.Transformer(KINDS.gpt):eval()
	local calls = 0
	rawset(m.norm, module.HOOK, function(self, x)
		calls = calls + 1
		return module.run(self, x)
	end)
	m:generate({1}, {steps = 40})
	assert(calls == 40)
	rawset(m.norm, module.HOOK, nil)
	assert(compile(m, m:cache(1, 4), 1))
	m[1].ff = nil
	module.replace(m[1], 'ff', nn.module(function(_, x) return x * 2 end, {}))
	rawset(m[1], 'ff', module.children(m[1])[4].module)
	assert(not compile(m, m:cache(1, 4), 1))
end)
