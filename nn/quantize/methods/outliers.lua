-- SPDX-License-Identifier: MIT
-- LLM.int8 (arXiv 2208.07339): columns whose inputs are large stay float; the other columns have codes.
local internal = select(2, ...)
local module = internal.import 'nn/base/module'

local THRESHOLD = 6.0

return {
	phase = 'ranges', needs = 'moments',
	text = [[LLM.int8: columns of a linear layer whose inputs reach a threshold on the calibration data stay float beside the codes of the others, so that inputs
and weights of these have smaller ranges. For models whose activations have outliers in few channels, modes dynamic and weight_only; each such column costs 32 bits a
weight and a float product.]],
	options = {{'threshold', 'number', 'of |x| in a column (default 6)'}, {'most', 'number', 'share of the columns that may stay float, the largest first (default 1)'}},
	refuses = function(item, o)
		if not module.class_of(item.layer).set_apart then
			if module.class_of(item.layer).no_input then return end
			return ('wanted nn.Linear, got %s, which has no float columns'):format(module.class_of(item.layer).name)
		end
		if item.mode ~= 'weight_only' and item.mode ~= 'dynamic' then return ("wanted mode 'dynamic' or 'weight_only', got '%s'"):format(item.mode) end
		if item.tied then return "wanted shared='apart', because the float columns are those of one layer, got 'once'" end
		if rawget(item.layer, 'order') then return 'wanted the inputs in their order, got another' end
		local threshold, most = o.threshold or THRESHOLD, o.most or 1
		if not (threshold >= 0) then return ('wanted threshold= of at least 0, got %g'):format(threshold) end
		if not (most >= 0 and most <= 1) then return ('wanted most= of 0 to 1, got %g'):format(most) end
	end,
	run = function(t, o, block)
		if not t.class.set_apart or t.op then return end
		block:measure({t}, {'largest'})
		if not t.largest then return end
		local list, all = {}, t.largest:totable()
		for i, x in ipairs(all) do
			if x >= (o.threshold or THRESHOLD) then list[#list + 1] = i end
		end
		local found, most = #list, math.floor((o.most or 1) * #all)
		table.sort(list, function(a, b) return all[a] > all[b] or all[a] == all[b] and a < b end)
		for i = most + 1, found do list[i] = nil end
		table.sort(list)
		if found > 0 then t:say(('%d of %d columns float%s'):format(#list, #all, found > #list and (', of %d outliers'):format(found) or '')) end
		if #list > 0 then t:set_apart(list) end
	end,
}
