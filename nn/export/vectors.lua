-- SPDX-License-Identifier: MIT
-- Inputs for the self-test of exported C. A float of an op that is not bit-equal in C (e.inexact) may differ in the last bits; rounded
-- to a code it may become the adjacent code, and then the result differs by far more. To find such inputs, the graph also runs with
-- these floats changed by NUDGE times the largest magnitude, once up and once down, each element with its own sign.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local run = internal.import 'nn/graph/run'
local vectors = {}

local NUDGE = 1e-6 -- several times the error of such ops
local FLOATS = 2e-5 -- error allowed in floats of a whole graph
local MORE = 30 -- additional candidates

local JUMPS = {}
for op in ('quantize argmax argmin topk sort argsort round floor ceil trunc sign eq ne lt le gt ge idiv mod'):gmatch '%a+' do JUMPS[op] = true end

-- Whether a discontinuous op follows floats that are not bit-equal.
local function jumps(g, e)
	local loose = false
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if loose and JUMPS[node.op] then return true end
		loose = loose or e.loose[name]
	end
	return false
end

local function moved(x, by)
	if x:dtype() ~= 'float32' or x:quantized() or x:nelem() == 0 then return x end
	local most = x:abs():max():item()
	if most - most ~= 0 then return x end
	if x:dim() == 0 then return x + by * most end
	return x + (tensor.rand {device = x:device(), x:size()} - 0.5):sign() * (by * most)
end

local function results_of(g, inputs, store)
	local get = run.execute(g, #inputs == 1 and inputs[1] or inputs, {store = store, ordered = true})
	local trees, results = {}, {}
	for i, tree in ipairs(g.outputs) do trees[i] = run.build(tree, get) end
	core.each_output(g, function(_, value) results[#results + 1] = value end, trees)
	return results
end

-- Results with the floats of e.loose moved, by the same signs at each call.
local function nudged(g, e, inputs, by)
	local seed, position = internal.rng(20261122, 0)
	local _ <close> = setmetatable({}, {__close = function() internal.rng(seed, position) end})
	return results_of(g, inputs, function(node, results)
		if not e.loose[node.name] then return results end
		local made = {}
		for i, x in ipairs(results) do made[i] = moved(x, by) end
		return made
	end)
end

local function numbers(x) return (x:quantized() and x:codes() or x):to 'float64' end

-- The largest difference of floats relative to the largest magnitude, and whether integers or codes differ.
local function apart(a, b)
	local share, other = 0, false
	local function most_of(x) return x:nelem() > 0 and tensor.where(x:isfinite(), x:abs(), 0.0):max():item() or 0 end
	for i, x in ipairs(a) do
		local wanted = numbers(x)
		local off, most = most_of(wanted - numbers(b[i])), most_of(wanted)
		if x:dtype() == 'float32' and not x:quantized() then
			share = math.max(share, off > 0 and off / most or 0)
		else
			other = other or off > 0
		end
	end
	return share, other
end

local function measured(g, e, inputs)
	local v = {inputs = inputs, results = results_of(g, inputs), share = 0, other = false}
	for _, by in ipairs {NUDGE, -NUDGE} do
		local share, other = apart(v.results, nudged(g, e, inputs, by))
		v.share, v.other = math.max(v.share, share), v.other or other
	end
	v.tolerance = math.max(FLOATS, 2 * v.share)
	return v
end

local function better(a, b)
	if a.other ~= b.other then return b.other end
	return a.share < b.share
end

-- A list of `wanted` {inputs=, results=, tolerance= (of floats)}: the first inputs of which no code depends on the error of such an op;
-- if there are too few, also those whose results change least, with twice that change as the tolerance. inputs_of(i): the i-th inputs,
-- or nil if there are no more.
function vectors.choose(g, e, wanted, inputs_of)
	local list, others = {}, {}
	local hard = not jumps(g, e)
	for i = 1, wanted + MORE do
		local inputs = #list < wanted and inputs_of(i)
		if not inputs then break end
		local v = hard and {inputs = inputs, results = results_of(g, inputs), tolerance = FLOATS} or measured(g, e, inputs)
		local good = v.tolerance == FLOATS and not v.other
		table.insert(good and list or others, v)
	end
	table.sort(others, better)
	table.move(others, 1, wanted - #list, #list + 1, list)
	return list
end

return vectors
