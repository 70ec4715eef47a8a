-- SPDX-License-Identifier: MIT
-- Section stories: how much larger the perplexity of stories260K becomes, percent.
local _, tools = ...

local ACT = {'gptq', act = true}
local CHAINS = {
	{'int4:32', {'rtn', 'mse', 'imatrix', 'gptq', ACT, {'gptq', act = true, range = 'mse'}, {'mse', ACT}, {'awq', ACT}, 'omniclip', 'autoround', {'rotate', 'rtn'}},
		goals = {gptq = 14, ['gptq act range=mse'] = 10}, best = 8.5},
	{'int4:32+min', {'rtn', 'mse', 'hqq', 'gptq', ACT, {'gptq', act = true, range = 'mse'}, {{'awq', clip = true}, ACT}, 'autoround'}, goals = {hqq = 9.8, gptq = 7.5}, best = 6.6},
	{'int3:32', {'rtn', 'mse', 'gptq', {'mse', ACT}, {'gptq', act = true, range = 'mse'}, 'autoround'}, goals = {}},
	{'int3:32+min', {'rtn', 'mse', 'hqq', 'gptq', ACT, {'gptq', act = true, range = 'mse'}, 'autoround'}, goals = {}, best = 30},
	{'int4:16', {'rtn', ACT}, goals = {}}, {'int4:64', {'rtn', ACT}, goals = {}},
	{'nf4:32', {'rtn', 'gptq'}, goals = {}}, {'nvfp4', {'rtn', 'gptq'}, goals = {}}, {'mxfp4', {'rtn', 'gptq'}, goals = {}},
}

-- Orderings that are published; each says whether it holds here.
local function orderings(t)
	local rows = {columns = {'ordering', 'holds', 'numbers'}}
	local function add(text, ...)
		local list, holds, words = {...}, 'yes', {}
		for i, one in ipairs(list) do
			local value = t:mean(one[1], one[2])
			if not value then holds = 'missing: ' .. one[2] break end
			words[i] = ('%s %s %+.2f %%'):format(one[1], one[2], value)
			local before = i > 1 and t:mean(list[i - 1][1], list[i - 1][2])
			if before and value > before then holds = 'no' end
		end
		rows[#rows + 1] = {text, holds, table.concat(words, ' > ')}
	end
	local min = 'int4:32+min'
	add('4 bits with a minimum: rounding > AWQ >= GPTQ >= AutoRound', {min, 'rtn'}, {min, 'awq clip, gptq act'}, {min, 'gptq act'}, {min, 'autoround'})
	add('3 bits: rounding > GPTQ', {'int3:32', 'rtn'}, {'int3:32', 'gptq'})
	add('ranges of least squares lower those of GPTQ', {'int4:32', 'gptq act'}, {'int4:32', 'mse, gptq act'})
	add('minima beat symmetric codes', {'int4:32', 'gptq act'}, {min, 'gptq act'})
	add('perplexity rises from blocks of 16 to 32 to 64', {'int4:64', 'gptq act'}, {'int4:32', 'gptq act'}, {'int4:16', 'gptq act'})
	local four, three = t:mean('int4:32', 'rtn'), t:mean('int3:32', 'rtn')
	if four and three and t:mean('int4:32', 'gptq') then
		local a, b = four - t:mean('int4:32', 'gptq'), three - t:mean('int3:32', 'gptq')
		rows[#rows + 1] = {'the gap between rounding and GPTQ grows at 3 bits', b > a and 'yes' or 'no', ('%.1f, %.1f points'):format(a, b)}
	end
	print(report(rows):text {width = 190})
end

return function()
	local m, texts = tools.stories()
	local float = tools.perplexity(m, texts)
	local t = tools.table {unit = 'percent'}
	for _, one in ipairs(CHAINS) do
		for _, method in ipairs(one[2]) do
			t:add {what = one[1], method = method, goal = one.goals[tools.text(method)], of = function(seed)
				local q = m:quantize {mode = 'weight_only', weight = one[1], method = method, data = tools.own_texts(m, seed, 32), log = false}
				return 100 * (tools.perplexity(q, texts) / float - 1), ('%d bytes'):format(q:nbytes())
			end}
		end
		if one.best then t:best(one[1], one.best) end
	end
	t:print()
	orderings(t)
end
