-- SPDX-License-Identifier: MIT
-- Section activations: stories260K with activations of 8 bits. Planted outliers: channel 8 of the gains of each block's norms x 64, the weights
-- after them divided by 64, which is the same function.
local _, tools = ...

local function planted(m)
	local f = m:clone()
	for i = 1, 5 do
		local b = f['block' .. i]
		for norm, layers in pairs {norm1 = {b.attention.query, b.attention.key, b.attention.value}, norm2 = {b.ff.gate, b.ff.up}} do
			b[norm].weight:detach():narrow(1, 8, 1):mul_(64)
			for _, layer in ipairs(layers) do layer.weight:detach():narrow(2, 8, 1):div_(64) end
		end
	end
	return f
end

local function static(m, given, method)
	local f = m:clone()
	f:calibrate(given, {input = 'uint8', log = false})
	return f:quantize {mode = 'static', weight = 'int8/1', method = method, data = method and given or nil, log = false}
end

return function()
	local m, texts = tools.stories()
	local float = tools.perplexity(m, texts)
	local t = tools.table {unit = 'percent'}
	local function percent(q) return 100 * (tools.perplexity(q, texts) / float - 1) end
	t:add {what = 'dynamic int8, one scale a tensor', once = true, of = function() return percent(m:quantize {mode = 'dynamic', weight = 'int8/1'}) end}
	local good, q = pcall(m.quantize, m, {mode = 'dynamic', weight = 'int8/1', input = 'int8/token'})
	t:add {what = 'dynamic int8 per token', goal = 0.2, once = true, missing = not good and 'scales per token' or nil, of = function() return percent(q) end}
	t:add {what = 'static int8', of = function(seed) return percent(static(m, tools.own_texts(m, seed, 8))) end}
	for _, method in ipairs {'smoothquant', 'rotate'} do
		t:add {what = 'static int8', method = method, of = function(seed) return percent(static(m, tools.own_texts(m, seed, 8), method)) end}
	end
	t:print()
	local p = tools.table {unit = 'perplexity', digits = 3}
	local f = planted(m)
	p:add {what = 'planted outliers, float32', once = true, of = function() return tools.perplexity(f, texts) end}
	p:add {what = 'planted outliers, static int8', of = function(seed) return tools.perplexity(static(f, tools.own_texts(m, seed, 8)), texts) end}
	p:add {what = 'planted outliers, static int8', method = {'smoothquant', alpha = 0.5}, goal = 3.56, of = function(seed)
		return tools.perplexity(static(f, tools.own_texts(m, seed, 8), {'smoothquant', alpha = 0.5}), texts)
	end}
	p:print()
end
