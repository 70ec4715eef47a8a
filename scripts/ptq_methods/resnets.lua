-- SPDX-License-Identifier: MIT
-- Section resnets: images of 1000 that are named rightly.
local _, tools = ...

local CHAINS = {'rtn', 'mse', 'gptq', {'mse', {'gptq', act = true}}, {{'gptq', act = true, range = 'mse'}, 'biascorrect'}, {'mse', {'gptq', act = true}, 'biascorrect'}}
local LEARNED = {'adaround', 'brecq', {'adaround', 'biascorrect'}}
local GOALS = { -- model, spec, of chains of gptq, of those with gradients, of the best
	{'resnet8', 'int4/1', gptq = 872, learned = 866},
	{'resnet8', 'int3/1', best = 822},
	{'resnet20', 'int4/1', best = 911},
	{'resnet20', 'int3/1', best = 905},
}

local function codes(t, g, m, test, calibration)
	local name = ('%s %s'):format(g[1], g[2])
	for _, list in ipairs {CHAINS, LEARNED} do
		for _, method in ipairs(list) do
			t:add {what = name, method = method, goal = list == LEARNED and g.learned or nil, of = function(seed)
				local q = m:quantize {mode = 'weight_only', weight = g[2], method = method, data = calibration(seed), log = false}
				return tools.right(q, test), ('%d as float32'):format(tools.agree(m, q, test))
			end}
		end
		if list == CHAINS and g.gptq then t:best(name, g.gptq) end
	end
	if g.best then t:best(name, g.best) end
end

return function()
	local t = tools.table {unit = 'of 1000', higher = true, digits = 1}
	for _, name in ipairs {'resnet8', 'resnet20'} do
		local m, test, calibration = tools.images(name)
		t:add {what = name .. ' float32', once = true, of = function() return tools.right(m, test) end}
		for _, g in ipairs(GOALS) do
			if g[1] == name then codes(t, g, m, test, calibration) end
		end
		for _, method in ipairs(name == 'resnet20' and {'rtn', {'mse', {'gptq', act = true}, 'biascorrect'}} or {}) do
			local what = 'resnet20 int4/1, activations static uint8'
			t:add {what = what, method = method, goal = method ~= 'rtn' and 908 or nil, of = function(seed)
				local f, given = m:clone(), calibration(seed)
				f:calibrate(given, {input = 'uint8', log = false})
				return tools.right(f:quantize {mode = 'static', weight = 'int4/1', method = method, data = given, log = false}, test)
			end}
		end
	end
	t:print()
end
