-- SPDX-License-Identifier: MIT
-- Section kv: the perplexity of stories260K if keys and values of attention are kept as codes.
local _, tools = ...

local CASES = {
	{'8 bits', 'int8', 0.1},
	{'4 bits, keys by channel of 32 positions, values by token', {k = 'uint4/2:32+min', v = 'uint4/3:32+min', recent = 32}, 3.5},
	{'3 bits, the same', {k = 'uint3/2:32+min', v = 'uint3/3:32+min', recent = 32}, 19},
	{'4 bits, all by token', {k = 'uint4/3:32+min', v = 'uint4/3:32+min'}},
}

return function()
	local m, texts = tools.stories()
	local float = tools.perplexity(m, texts)
	local t = tools.table {unit = 'percent'}
	for _, case in ipairs(CASES) do
		local good, r = pcall(m.evaluate, m, texts, {metric = 'perplexity', kv = case[2], log = false})
		t:add {what = case[1], goal = case[3], once = true, missing = not good and 'evaluate{kv=}' or nil, of = function() return 100 * (r.perplexity / float - 1) end}
	end
	t:print()
end
