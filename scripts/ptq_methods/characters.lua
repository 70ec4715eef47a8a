-- SPDX-License-Identifier: MIT
-- Section characters: the loss by rounding of the tutorials' LSTM and Transformer, and how much of it methods win back.
local here, tools = ...

local CHAINS = {'mse', 'gptq', {'gptq', act = true}, {'mse', {'gptq', act = true}}, {'gptq', act = true, range = 'mse'}, {'awq', {'gptq', act = true}}, 'autoround'}

-- 8 batches of the validation text, others for each seed.
local function calibration(loader, seed)
	local list, i = {}, 0
	for x in loader() do
		i = i + 1
		if i > 8 * (seed - 1) then list[#list + 1] = {x} end
		if #list == 8 then break end
	end
	return list
end

local function model(name, text, options)
	local m = dofile(here .. '../tutorials/models/' .. name .. '.lua'):load(here .. '../tutorials/models/' .. name .. '.safetensors'):eval()
	return m, data.loader(text.valid, options), data.loader(text.test, options)
end

return function()
	local t = tools.table {unit = 'percent'}
	for _, name in ipairs {'lstm', 'transformer'} do
		local text = name == 'lstm' and data.ptb() or data.text {level = 'char', steps = 128}
		local m, valid, test = model(name, text, name == 'lstm' and {batch = 20, steps = 35} or {batch = 32, steps = 128, order = 'windows'})
		local rules = {{'embedding.*', false}}
		local function worse(q) return 100 * (q:evaluate(test, {metric = 'perplexity', log = false}).perplexity / t.float - 1) end
		t.float = m:evaluate(test, {metric = 'perplexity', log = false}).perplexity
		local plain = t:add {what = name .. ' int4:32', method = 'rtn', once = true, of = function()
			return worse(m:quantize {mode = 'weight_only', weight = 'int4:32', rules = rules})
		end}
		for _, method in ipairs(CHAINS) do
			t:add {what = name .. ' int4:32', method = method, of = function(seed)
				local value = worse(m:quantize {mode = 'weight_only', weight = 'int4:32', rules = rules, method = method, data = calibration(valid, seed), log = false})
				return value, ('%.0f %% won back'):format(100 * (1 - value / plain))
			end}
		end
		t:best(name .. ' int4:32', plain * 2 / 3)
	end
	t:print()
end
