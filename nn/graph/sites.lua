-- SPDX-License-Identifier: MIT
-- Quantization decisions of the graph for m:quantize: the float model is traced with a row saved by m:calibrate, the
-- graph's rules decide about every node, and the results are stored in the modules: out= of layers, and `sites` of
-- other ops (nn/quantize/sites.lua).
local _, internal = ...
local module = internal.import 'nn/base/module'
local pattern = internal.import 'nn/quantize/rules'.pattern
local sites = internal.import 'nn/quantize/sites'

-- The name of a node's op in its module.
local function key_of(node) return node.name == node.module and 'main' or node.name:sub(#node.module > 0 and #node.module + 2 or 1) end

local function names_of(layer, node)
	local list = layer and module.class_of(layer).sites
	return list and list[key_of(node)]
end

-- Whether the node's module can store a decision about it: a layer in its specs, other ops in sites.
local function can_set(d, node)
	local layer = d.layers[node.module]
	if not layer then return false end
	return d.is_layer(node) and module.weights(layer) ~= nil or not d.shared[layer] and names_of(layer, node) ~= nil
end

-- Rules that reproduce the state of the layers.
local function rules_of(rows, d)
	local rules = {}
	for _, row in ipairs(rows) do
		local layer = d.layers[row.name]
		local q = rawget(layer, 'quantized')
		local rule = {pattern(row.name), optional = true}
		if not module.weights(layer) or not q then
			rule[2] = false
		else
			local several = module.class_of(layer).observed
			rule.mode, rule.weight, rule.input = q.mode, q.weight, not several and q.input or nil
			if q.given_output then rule.output = q.output or false end
		end
		if module.weights(layer) then rules[#rules + 1] = rule end
	end
	return rules
end

-- The spec (with scale) of an operand that is codes; nil for floats.
local function operand_spec(d, ref)
	if type(ref) ~= 'string' then return nil end
	local node = d.final.nodes[d.split(ref)]
	if node.op == 'const' then return node.value:quantized() and d.spec_of(node.value) or nil end
	return d.final:result_of(ref).spec and d.codes.spec_of(d.final, ref) or nil
end

-- A layer returns the codes that follow it in the graph. An activation that the graph has fused into the layer is separate in the
-- module: this is equivalent only for relu, and for relu6 if the largest code decodes to 6.
local function set_layer(layer, node)
	local q, out = rawget(layer, 'quantized'), node.attrs.out
	if not q or q.given_output or module.class_of(layer).observed then return end
	local act, own = node.attrs.act, rawget(layer, 'act')
	if own == 'relu6' and act == 'relu' then layer.act = 'relu' end
	if out and (not act or act == own or act == 'relu') then q.output = out end
end

local function set_site(d, layer, node)
	local out = node.attrs.out
	if not out then return end
	local site, names = {out = out}, names_of(layer, node)
	for i in ipairs(names) do site[i] = operand_spec(d, node.inputs[i]) or false end
	local all = rawget(layer, 'sites') or {}
	all[key_of(node)] = site
	rawset(layer, 'sites', all)
end

-- The model without the rounding of mode qat, so that the trace has the float ops.
local function bare(m)
	local found = false
	module.walk(m, function(_, inner) found = found or rawget(inner, 'quantized') ~= nil end)
	if not found then return m end
	local copy = m:clone()
	module.walk(copy, function(_, inner) rawset(inner, 'quantized', nil) end)
	return copy
end

-- A trace of the float model with the row saved by calibration; or nil and the reason.
function sites.trace(m)
	local example = rawget(m, 'example')
	if not example then return nil, 'm:calibrate(data) has observed no tensor' end
	for _, p in ipairs(m:parameters()) do
		if p:dtype() ~= 'float32' then return nil, 'its parameters are ' .. p:dtype() end
	end
	local good, g = pcall(graph.trace, bare(m), module.moved(example, module.device(m)))
	if not good then return nil, (tostring(g):gsub('^[^:]*:%d+: ', ''):gsub('\n.*', '')) end
	return g
end

local LUA = "a Lua function calls '%s': graph.trace(m, x):quantize{…} runs it in integers"

-- The row of the report for a node that is not a layer.
local function add_row(rows, d, row, node)
	local layer = d.layers[row.node.module]
	local name = row.node.name
	local made = {name = name, kind = layer and module.class_of(layer).name or row.node.op, mode = node and node.attrs.out and 'static' or 'float',
		weight = '-', input = 'float', output = 'float', bits = '-', bytes = 0, float_bytes = 0, why = row.why}
	for _, ref in ipairs(made.mode == 'static' and node.inputs or {}) do
		local spec = operand_spec(d, ref)
		if spec and made.input == 'float' then made.input = spec.name end
	end
	if made.mode == 'static' then made.output, made.why = node.attrs.out.name, '' end
	if made.mode == 'float' and not can_set(d, row.node) then
		made.why = layer and d.shared[layer] and 'its module is used in several places' or LUA:format(row.node.op)
	end
	for i, old in ipairs(rows) do -- norms have parameters
		if old.name == name then
			made.bits, made.bytes, made.float_bytes, made.weight = old.bits, old.bytes, old.float_bytes, old.weight
			rows[i] = made
			return
		end
	end
	rows[#rows + 1] = made
end

-- Stores the graph's decisions in the modules of `new`, whose layers are quantized; g is the trace of the float model. Adds rows.
function sites.adopt(new, g, rows, o)
	local ops = internal.import 'nn/graph/ops'
	local record, core = internal.import 'nn/graph/record', internal.import 'nn/graph/core'
	local d = {layers = {}, shared = module.shared(new), codes = internal.import 'nn/graph/codes', split = core.split, spec_of = record.spec_of}
	module.walk(new, function(name, inner) d.layers[name] = inner end)
	function d.is_layer(node)
		local form = ops.form(node.op, node)
		return form and #(form.weights or {}) > 0
	end
	local float = {}
	for _, name in ipairs(g.order) do
		local node = g.nodes[name]
		if not can_set(d, node) then float[name] = true end
	end
	local final, list = internal.import('nn/graph/quantize').plan(g, {mode = o.mode or 'auto', input = o.input, rules = rules_of(rows, d)}, function() end, float)
	d.final = final
	for _, row in ipairs(list) do
		local node, layer = final.nodes[row.node.name], d.layers[row.node.module]
		if node and can_set(d, row.node) then
			if not d.is_layer(row.node) then set_site(d, layer, node) elseif not d.shared[layer] then set_layer(layer, node) end
		end
		local form = ops.form(row.node.op, row.node)
		if form and form.needs and form.gives == 'codes' then add_row(rows, d, row, node) end
	end
end
