-- SPDX-License-Identifier: MIT
-- data.self: texts that a language model writes itself, as data for calibration (LLM-QAT, arXiv 2305.17888, section 3.1).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local texts = internal.import 'nn/base/texts'
local fail, describe = base.fail, base.describe

local TOGETHER = 16 -- texts that are written at a time
local LENGTH = 256

local entry = base.doc {name = 'data.self', usage = 'data.self(m)  data.self(m, {texts=32, steps=256, seed=1, temperature=1})',
	text = [[Texts that a language model writes itself, for those who have none to quantize it with: a list of batches {x, y}, tokens (1, n) and the tokens
after them, for data= of m:quantize, m:calibrate, m:evaluate and quant.methods. What a model writes is likely to it, so its layers see inputs as in use; texts of
the use itself are better where there are some.

texts= texts (default 8) of at most steps= tokens each (default 256, or what the model's context holds) are drawn by m:generate at temperature= (default 1).
A text begins with begin= (numbers of tokens, or text), else with the tokens that begin texts of the tokenizer, else with a token at random, and ends early
where the model ends it (eos= as in m:generate; eos=false: never). The same seed= (default 1) gives the same texts; text i does not depend on how many there are,
so those of texts=8 are the first of texts=32. batch= puts as many neighbours of one length into a batch (default 1).]],
	example = [[tensor.seed(1)
m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
calib = data.self(m, {texts=3, steps=20})
print(#calib, calib[1][1]:size())  --> 3 1 20
q = m:quantize{mode='weight_only', weight='int4:8', method='gptq', data=calib, log=false}]],
	options = {{'texts', 'positive integer', 'default 8'}, {'steps', 'positive integer', 'tokens of a text (default 256, or what the context holds)'},
		{'seed', 'integer', 'default 1'}, {'temperature', 'number', 'above 0 (default 1)'}, {'topk', 'integer', 'as in m:generate'}, {'topp', 'number', 'as in m:generate'},
		{'begin', 'any', 'tokens or text that each text begins with'}, {'tokenizer', 'any', 'data.tokenizer, or the name of its file (default: that of the file of nn.load)'},
		{'eos', 'any', 'tokens that end a text: one, a list, false (default: those of the file)'}, {'batch', 'positive integer', 'texts in a batch, where neighbours are of one length (default 1)'}}}

local function check(m, o)
	if not module.is_module(m) then fail('self: wanted a language model, got %s', describe(m)) end
	if o.temperature and not (o.temperature > 0 and o.temperature < math.huge) then
		fail('self: temperature: wanted a finite number above 0, got %s', describe(o.temperature))
	end
end

-- How many tokens the model knows.
local function vocabulary(m)
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local good, y = pcall(m, module.moved(tensor {{1}, dtype = 'int64'}, module.device(m)))
	if not good or not base.is_tensor(y) or y:dim() ~= 3 then fail('self: wanted a model from tokens (B, T) to logits (B, T, V), got %s', module.class_of(m).name) end
	return y:size(3)
end

-- What each of n texts begins with.
local function beginnings(m, o, n)
	local t, list = texts.tokenizer('self', m, o.tokenizer), {}
	local begin = o.begin
	if begin == nil and t and t.before then begin = t:encode('', {bos = true, eos = t.eos and false or nil}) end
	if begin ~= nil then
		local rows = texts.read('self: begin', m, begin, t).rows
		if #rows ~= 1 then fail('self: begin: wanted one text, got %d', #rows) end
		for i = 1, n do list[i] = rows[1] end
		return list
	end
	local seed, position = internal.rng(o.seed or 1, 0)
	local _ <close> = setmetatable({}, {__close = function() internal.rng(seed, position) end})
	for i, id in ipairs(tensor.randint(n, {low = 1, high = vocabulary(m), dtype = 'int64'}):totable()) do list[i] = {id} end
	return list
end

local function steps_of(m, o, begun)
	local room = math.type(rawget(m, 'context')) == 'integer' and m.context + 1 - begun
	if room and room < 1 then fail('self: begin: wanted at most %d tokens (context=), got %d', m.context, begun) end
	if room and o.steps and o.steps > room then fail('self: steps: wanted at most %d, that a text fits in the context of %d tokens, got %d', room, m.context, o.steps) end
	return o.steps or math.min(LENGTH, room or LENGTH)
end

-- Texts as batches {x, y}: neighbours of one length together.
local function batches_of(list, most)
	local batches, from = {}, 1
	while from <= #list do
		local to, n = from, list[from]:size(1)
		while to < #list and to - from + 1 < most and list[to + 1]:size(1) == n do to = to + 1 end
		local rows = {}
		for i = from, to do rows[#rows + 1] = list[i]:unsqueeze(1) end
		local all = tensor.cat(rows, {axis = 1})
		batches[#batches + 1] = {all:narrow(2, 1, n - 1), all:narrow(2, 2, n - 1)}
		from = to + 1
	end
	return batches
end

return function(m, options)
	local o = base.options(entry, options)
	check(m, o)
	local n, seed, list = o.texts or 8, o.seed or 1, {}
	local begin = beginnings(m, o, n)
	local with = {steps = steps_of(m, o, #begin[1]), temperature = o.temperature or 1, topk = o.topk, topp = o.topp, eos = o.eos}
	for first = 1, n, TOGETHER do
		with.seed = seed + first - 1
		for _, ids in ipairs(m:generate(table.move(begin, first, math.min(n, first + TOGETHER - 1), 1, {}), with)) do list[#list + 1] = ids:to 'cpu' end
	end
	return batches_of(list, o.batch or 1)
end
