-- SPDX-License-Identifier: MIT
-- Runs of a graph on a device that are recorded (tensor/recording.h): the first run on inputs of some shapes and dtypes is a plain one,
-- the next is recorded, later ones are one launch of the recording with the same bits. What cannot be recorded runs plainly, always.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local recorded = internal.import 'nn/base/recorded'
local replay = {}

local MOST = 4 -- recordings of a graph; the least recently used one goes
local WORTH = 8 -- replays that pay for a recording
local PATIENCE = 64 -- plain runs before the next try, at most

-- graph -> list of entries, the last used one first: {key=, runs= (since the last try), wait= (plain runs before the next), recording=,
-- replays=, useless=}
local entries = setmetatable({}, {__mode = 'k'})

-- graph -> {refs=, place= (ref -> its number), constants=}; false: it calls Lua.
local parts = setmetatable({}, {__mode = 'k'})

local function read_parts(g)
	local p = {refs = {}, place = {}, constants = {}}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if ops.user(node.op) then return false end
		if node.value then p.constants[#p.constants + 1] = node.value end
	end
	core.each_output(g, function(leaf)
		if p.place[leaf.ref] then return end
		p.refs[#p.refs + 1] = leaf.ref
		p.place[leaf.ref] = #p.refs
	end)
	return #p.refs > 0 and p
end

local function parts_of(g)
	if parts[g] == nil then parts[g] = read_parts(g) end
	return parts[g]
end

---------------------------------------------------------------- entries

-- The entry of the key, which becomes the first one.
local function entry_of(g, key)
	local list = entries[g]
	if not list then
		list = {}
		entries[g] = list
	end
	local at = #list + 1
	for i, entry in ipairs(list) do
		if entry.key == key then at = i end
	end
	local entry = table.remove(list, at) or {key = key, runs = 0, wait = 1}
	table.insert(list, 1, entry)
	local last = list[MOST + 1]
	list[MOST + 1] = nil
	if last and last.recording then internal.record_free(last.recording) end
	return entry
end

-- A recording that was of little use is not made again so soon: weights that change from run to run would make one each time.
local function forget(entry)
	internal.record_free(entry.recording)
	entry.wait = entry.replays < WORTH and math.min(2 * entry.wait, PATIENCE) or 1
	entry.recording, entry.runs = nil, 0
end

---------------------------------------------------------------- recording

local function record(p, inputs, run)
	return recorded.make(inputs, p.constants, false, function(own)
		local get, results = run(own), {}
		for i, ref in ipairs(p.refs) do results[i] = get(ref) end
		return results
	end)
end

local function try_to_record(entry, p, inputs, run)
	entry.runs = entry.runs + 1
	if entry.useless or entry.runs <= entry.wait then return end
	entry.recording, entry.replays = record(p, inputs, run), 0
	entry.useless = not entry.recording
end

-- A function ref -> tensor for the outputs of the graph, if they come from a recording; else nil. run(inputs) runs the nodes on other
-- tensors and gives such a function.
function replay.run(g, inputs, ordered, run)
	if not recorded.possible(inputs) then return nil end
	local p = parts_of(g)
	if not p then return nil end
	local entry = entry_of(g, recorded.key(inputs) .. tostring(ordered))
	if not entry.recording then try_to_record(entry, p, inputs, run) end
	if not entry.recording then return nil end
	local results = internal.replay(entry.recording, inputs)
	if not results then
		forget(entry)
		entry.runs = 1
		return nil
	end
	entry.replays = entry.replays + 1
	return function(ref) return results[p.place[ref]] end
end

return replay
