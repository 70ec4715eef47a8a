-- SPDX-License-Identifier: MIT
-- m:generate: a language model continues a text. A Transformer caches keys and values, recurrent layers their state;
-- any other model processes the whole text at every step.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local fail, describe = base.fail, base.describe
local methods, method = module.methods, module.method

local function has_carry(m)
	local found = false
	module.walk(m, function(_, inner) found = found or module.class_of(inner).carry ~= nil end)
	return found
end

-- A function that takes the tokens since the last call (B, n) and returns the logits after the last one (B, V).
local function stepper(m, b, length)
	local function last(y) return module.real(y):select(2, -1) end
	if module.class_of(m).cache then
		local room = math.min(length, m.context)
		local cache, seen, used = m:cache(b, room), nil, 0
		return function(new)
			seen = seen and tensor.cat({seen, new}, {axis = 2}) or new
			if used + new:size(2) > room then -- restart with the second half of the tokens so far
				new = seen:narrow(2, seen:size(2) - math.max(1, room // 2) + 1, math.max(1, room // 2))
				cache, used = m:cache(b, room), 0
			end
			used = used + new:size(2)
			return last(m(new, cache))
		end
	end
	if has_carry(m) then
		module.walk(m, function(_, inner)
			if module.class_of(inner).carry then module.class_of(inner).carry(inner, true) end
		end)
		return function(new) return last(m(new)) end
	end
	local all
	return function(new)
		all = all and tensor.cat({all, new}, {axis = 2}) or new
		return last(m(all))
	end
end

-- Everything but the k largest gets probability 0.
local function keep_largest(logits, k)
	if not k or k >= logits:size(2) then return logits end
	local least = logits:topk(k):narrow(2, k, 1)
	return tensor.where(logits:ge(least), logits, -math.huge)
end

-- One token for each row: the likeliest at temperature 0, else drawn by the cumulated probabilities.
local function draw(logits, temperature, topk)
	if temperature == 0 then return logits:argmax(-1, {keep = true}) end
	local p = keep_largest(logits / temperature, topk):softmax():cumsum()
	local u = tensor.rand {p:size(1), 1, device = p:device()} * p:narrow(2, p:size(2), 1)
	return (p:le(u):to 'int64':sum(2, {keep = true}) + 1):clamp(1, p:size(2))
end

local function check_ids(ids)
	if type(ids) == 'table' and not getmetatable(ids) and #ids > 0 then ids = tensor(ids):to 'int64' end
	if not base.is_tensor(ids) or ids:dim() > 2 or ids:nelem() == 0 then
		fail('generate: ids: wanted at least one number of a token, got %s', describe(ids))
	end
	return ids:dim() == 1 and ids:unsqueeze(1) or ids, ids:dim() == 1
end

local generate = method('generate', 'm:generate(ids, {steps=100, temperature=1, topk=})',
	[[Goes on with a text: ids are the numbers of its tokens (n), a list, or several texts of one length (B, n). Returns them with the new
ones after it. temperature 0 takes the likeliest token; topk draws among the k likeliest only. Random numbers as tensor.seed
says. stop= is a token that ends the text (of one text). Where the text becomes longer than a Transformer's context, it goes on
with the second half of it.]],
	[[m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
print(m:generate({1, 5, 3}, {steps=4}):size())  --> 7]],
	{{'steps', 'integer', 'new tokens (default 100)'}, {'temperature', 'number', 'default 1'}, {'topk', 'integer', 'default: all'},
		{'stop', 'integer', 'a token that ends the text'}})
function methods.generate(m, ids, options)
	module.parts_of(m, 'generate')
	options = base.options(generate, options)
	local steps, temperature = options.steps or 100, options.temperature or 1
	if steps < 0 then fail('generate: steps: wanted 0 or more, got %d', steps) end
	if not (temperature >= 0) then fail('generate: temperature: wanted 0 or more, got %s', temperature) end
	if options.topk and options.topk < 1 then fail('generate: topk: wanted 1 or more, got %d', options.topk) end
	local all, one = check_ids(ids)
	all = module.moved(all, module.device(m))
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	local list, new = {all:to 'int64'}, all:to 'int64'
	local step = steps > 0 and stepper(m, all:size(1), all:size(2) + steps)
	for _ = 1, steps do
		new = draw(step(new), temperature, options.topk)
		list[#list + 1] = new
		if one and options.stop and new:item() == options.stop then break end
	end
	local result = tensor.cat(list, {axis = 2})
	return one and result:view(result:size(2)) or result
end
