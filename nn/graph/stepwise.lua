-- SPDX-License-Identifier: MIT
-- Steps of m:generate as a program (interp/bind/program.c): the ops of a model for one token of each row, traced once, so that a step does
-- not run the model's Lua again. Caches are constants that nn.cachedattention writes into; the tokens and how far rows are go in.
local _, internal = ...
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'
local pass = internal.import 'nn/graph/pass'
local trace = internal.import 'nn/graph/trace'

-- Whether the ops of a step are all that the model does: no function of the user sees its values.
local function is_plain(m)
	local plain = true
	module.walk(m, function(_, inner)
		local run = rawget(inner, 'run')
		if rawget(inner, module.HOOK) or rawget(inner, 'watch') or rawget(inner, 'forward') then plain = false end
		if type(run) == 'function' and not internal.is_own(debug.getinfo(run, 'S').source) then plain = false end
	end)
	return plain and not module.tracer and not debug.gethook()
end

local function traced(m, caches, rows)
	local step = nn.module(function(self, ids, starts)
		local list = {at = {n = caches.at.n, starts = starts, ragged = true}}
		for i, c in ipairs(caches) do list[i] = kvcache.shared(c, list.at) end
		return self.model(ids, list)
	end, {model = m})
	local inputs = {{name = 'ids', dtype = 'int64', shape = {rows, 1}}, {name = 'starts', dtype = 'int64', shape = {rows}}}
	return pass.run(trace.abstract(step:eval(), inputs), {'fuse'}, {})
end

-- A function of the tokens (rows, 1) and starts (rows) that gives the logits (rows, 1, V); nil where steps run the model.
return function(m, caches, rows)
	if module.device(m) ~= 'cpu' or not is_plain(m) then return nil end
	local good, g = pcall(traced, m, caches, rows)
	if not good then return nil end
	return function(ids, starts) return g:run {ids, starts} end
end
