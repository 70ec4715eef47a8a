-- SPDX-License-Identifier: MIT
-- g:pass: runs passes over a graph. A pass is a file of nn/graph/passes.def that returns {group=, text=,
-- run=function(edit, say)}: it modifies the edit (nn/graph/core.lua) and reports each change by say(node name, what). needs= lists ops
-- of which one is in every graph that it changes.
-- The resulting graph is checked; the original graph is unchanged.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local report = internal.import 'interp/prelude/report'
local fail, describe = base.fail, base.describe
local methods, method = core.methods, core.method
local pass = {}

local ROUNDS = 100 -- a group that needs more does not terminate

local known

-- Whether the edit may have a node of one of the ops.
local function has_any(e, needs)
	if e.present_at ~= e.changes then
		e.present, e.present_at = {}, e.changes
		for _, node in next, e.nodes do e.present[node.op] = true end
	end
	for _, op in ipairs(needs) do
		if e.present[op] then return true end
	end
	return false
end

local function registry()
	if known then return table.unpack(known) end
	local list, by_name, groups, words = {}, {}, {}, {}
	for _, file in ipairs(internal.registry 'nn/graph/passes') do
		local entry, name = internal.import(file), file:match '[^/]+$'
		list[#list + 1] = {name = name, run = function(e, say)
			if not entry.needs or has_any(e, entry.needs) then entry.run(e, say) end
		end, group = entry.group, text = entry.text}
		by_name[name] = {list[#list]}
		words[#words + 1] = name
		if entry.group then
			if not groups[entry.group] then
				groups[entry.group] = {}
				if entry.group ~= name then words[#words + 1] = entry.group end
			end
			table.insert(groups[entry.group], list[#list])
		end
	end
	known = {by_name, groups, words}
	return by_name, groups, words
end

local function find(name)
	local by_name, groups, words = registry()
	local found = by_name[name] or groups[name]
	if not found then
		fail("pass: wanted one of %s, got %s%s", table.concat(words, ' '), describe(name), base.near(name, words))
	end
	return found
end

-- Calls a method of an edit that a pass has changed.
local function done(e, method_name, name)
	local good, made = pcall(e[method_name], e)
	if not good then fail("pass: '%s' broke the graph: %s", name, (tostring(made):gsub('^[^:]*:%d+: ', ''))) end
	return made
end

-- Runs each pass or group repeatedly until it changes nothing: until all of its passes have seen the same graph. settle(e, name) follows
-- each pass that changed the edit, and gives the edit for the next. nil and the name: it does not terminate. silent: no rows for this name.
local function run_all(e, names, rows, settle, silent)
	for _, name in ipairs(names) do
		local entries, list, runs, idle = find(name), name == silent and {} or rows, 0, 0
		while idle < #entries do
			local entry, before = entries[runs % #entries + 1], e.changes
			entry.run(e, function(node, what) list[#list + 1] = {pass = entry.name, node = node, what = what} end)
			runs, idle = runs + 1, e.changes > before and 0 or idle + 1
			if idle == 0 then e = settle(e, entry.name) end
			if runs > ROUNDS * #entries then return nil, name end
		end
	end
	return e
end

-- The graph is checked at the end; if it is broken, the passes run again with a check after each, to name the one that broke it.
-- silent: the name among names whose changes have no rows; unchecked: g was not checked either.
function pass.run(g, names, rows, silent, unchecked)
	local e, endless = run_all(core.edit(g), names, rows, function(e, name)
		done(e, 'settle', name)
		return e
	end, silent)
	if e and e.changes == 0 then
		if unchecked then internal.import('nn/graph/check').check(g, false, true) end
		return g
	end
	local good, made = false, nil
	if e then good, made = pcall(e.finish, e) end
	if good then return made end
	run_all(core.edit(g), names, {}, function(broken, name) return core.edit(done(broken, 'finish', name)) end)
	fail('%s', endless and ("pass: '%s' does not terminate"):format(endless) or tostring(made))
end

-- For an edit whose types are not consistent yet, so that no graph can be built in between: runs the passes until none changes
-- anything, then `settle`, then the last passes once, and finishes the edit.
function pass.loose(e, names, settle, last)
	local function one(name)
		local before = e.changes
		find(name)[1].run(e, function() end)
		e:sweep()
		return e.changes > before
	end
	local rounds, again = 0, true
	while again do
		again = false
		for _, name in ipairs(names) do again = one(name) or again end
		rounds = rounds + 1
		if rounds > ROUNDS then fail("pass: '%s' does not terminate", names[1]) end
	end
	settle(e)
	for _, name in ipairs(last) do one(name) end
	return e:finish()
end

method('pass', "g:pass 'fuse'  g:pass{'fold', 'fuse', 'dce'}",
	[[Returns a new graph that computes the same with fewer nodes, and a report with a row for each change; g is not modified. Passes are
given by name or by group, and run until they change nothing.

fold: fold_norm (folds batch norm into the weights of the layer before it), fold_constants (evaluates nodes whose inputs are all
constant).

layers: recognize (functions and norms that are spelled out become one op: gelu, silu, hardswish, relu6, layernorm, rmsnorm),
recognize_rope (x cos + rotate_half(x) sin becomes rope with tables), recognize_attention (softmax(scale q kᵀ + mask) v becomes attention, causal
where a constant mask says so), make_linear (a product with a constant matrix becomes linear, a constant that is added to a layer its bias), recognize_onehot (a linear of
x == {c, c+1, …} becomes embedding).

fuse: fuse_activation (an activation becomes the act= of the layer before it), merge_equal (merges equal quantize nodes of one value),
fuse_requantize (dequantize followed by quantize: removed if the parameters are equal, else one requantize), raise_quantize (moves a
quantize up through ops that only move or compare elements, and makes it the out= of an integer op), clamp_codes (act='relu6' becomes
'relu' where the largest code decodes to 6 or less, and a relu is removed where the smallest code decodes to 0, because the op before it
saturates there).

take_codes lets ops take the codes that their operands decode; insert_borders inserts dequantize before ops without an integer version; dce removes nodes that no output needs (every pass does this,
too). The graph is checked at the end: edges in both directions, order, types, no orphans.]],
	[[m = nn.Sequential{nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()}
g = graph.trace(m, tensor.ones(1, 3, 8, 8))
h, r = g:pass{'fold', 'fuse'}
print(#r, r[1].pass, h:node('conv1').attrs.act)  --> 2 fold_norm relu]])
function methods.pass(g, names)
	core.expect(g, 'pass')
	if type(names) == 'string' then names = {names} end
	if type(names) ~= 'table' or #names == 0 then fail('pass: wanted the name of a pass or a list of them, got %s', describe(names)) end
	local rows = {columns = {'pass', 'node', 'what'}}
	local made = pass.run(g, names, rows)
	rows.note = ('%d nodes, before %d'):format(#made.order, #g.order)
	return made, report(rows)
end

return pass
