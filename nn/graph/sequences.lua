-- SPDX-License-Identifier: MIT
-- Layers of nn.Graph of which one alone reads what the other gives, with at most ops between them that commute with factors of the
-- channels: for nn/quantize/equalize.lua.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local sequences = {}

-- Whether a view changes nothing, or flattens images such that each channel stays contiguous.
local function keeps_channels(g, node)
	local from, to = g:result_of(node.inputs[1]).shape, node.results[1].shape
	if #from == 4 then return #to == 2 end
	for i = 1, math.max(#from, #to) do
		if not from[i] or not to[i] or tostring(from[i]) ~= tostring(to[i]) then return false end
	end
	return true
end

local THROUGH = {relu = true, maxpool2d = true, avgpool2d = true, contiguous = true, view = keeps_channels, reshape = keeps_channels}

local function passes(g, node)
	local how = THROUGH[node.op]
	return how == true or how and how(g, node)
end

-- The only node that reads a result; nil if it is also an output.
local function only_user(g, name, outputs)
	local users = g.users[name] or {}
	return #users == 1 and not outputs[name] and g.nodes[users[1]] or nil
end

-- layers: name of a node -> its module. Returns pairs of modules.
function sequences.of(g, layers)
	local outputs, list = {}, {}
	core.each_output(g, function(leaf) outputs[core.split(leaf.ref)] = true end)
	for _, name in ipairs(g.order) do
		local taker = layers[name] and only_user(g, name, outputs)
		while taker and not layers[taker.name] and passes(g, taker) do taker = only_user(g, taker.name, outputs) end
		if taker and layers[taker.name] then list[#list + 1] = {layers[name], layers[taker.name]} end
	end
	return list
end

return sequences
