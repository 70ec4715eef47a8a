-- SPDX-License-Identifier: MIT
-- g:export{onnx=}: the graph as an ONNX file. All nodes are translated before anything is written; those that have no translation are
-- one error. The opset is 17 or what the forms in use need: the translation begins again with that one.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local codes = internal.import 'nn/onnx/out/codes'
local message = internal.import 'nn/onnx/message'
local report = internal.import 'interp/prelude/report'
local values = internal.import 'nn/onnx/values'
local written = internal.import 'nn/onnx/written'
local fail = base.fail

local FORMS = {'float', 'qdq', 'qoperator', 'integer'}
local OLDEST, USUAL, NEWEST = 13, 17, 25
local IR = {[13] = 7, [14] = 7, [15] = 8, [16] = 8, [17] = 8, [18] = 8, [19] = 9, [20] = 9, [21] = 10, [22] = 10, [23] = 11, [24] = 12, [25] = 13}
local MOST = (1 << 31) - (1 << 20) -- bytes of a message that readers of protobuf take
local LEAST = 1024 -- bytes of a tensor that goes to the file beside the model

---------------------------------------------------------------- translations

local registry

local function translations()
	if registry then return registry end
	registry = {}
	for _, path in ipairs(internal.registry 'nn/onnx/out') do
		local entry = internal.import(path)
		for name, f in next, entry.ops or entry do registry[name] = f end
	end
	return registry
end

---------------------------------------------------------------- nodes

local function has_codes(g)
	for _, name in ipairs(g.order) do
		if g.nodes[name].op == 'fake' then return true end
		for _, result in ipairs(g.nodes[name].results) do
			if result.spec then return true end
		end
	end
	return false
end

-- Makes the value of a result from what a translation gave: a name, or {codes=}, {decoded=}.
local function keep(w, first, ref, made, result)
	local v = {shape = result.shape, dtype = result.dtype, stem = ref}
	if type(made) == 'table' then
		v.codes, v.decoded = made.codes, made.decoded
		local c = v.codes
		if c and not c.constant and w:rename(first, c.name, ref) then c.name = ref end
		if c then w.taken[c.name] = true end
	else
		v.name = w:rename(first, made, ref) and ref or made
		w.taken[v.name] = true
	end
	w.of[ref] = v
end

-- The codes of a result that was computed in floats: by the scale of the operand or of the spec. A view of constant codes stays floats.
local function encoded(w, n, made, result)
	local from = not n.node.attrs.out and n:codes(1)
	if from and (from.axis or from.block) then return made end
	if from then return {codes = codes.like(w, n.name, made, codes.write(w, from))} end
	return {codes = codes.encode(w, n.name, made, result.spec, result.shape)}
end

local function translate(w, node, f)
	local n, first = written.new(w, node), #w.nodes + 1
	if not f then values.refuse('no translation') end
	local made = {f(n)}
	n:check_attributes()
	for i, result in ipairs(node.results) do
		local y = made[i]
		if w.form == 'float' and node.attrs.out then y = codes.saturated(w, n.name, y, node.attrs.out) end
		if result.spec and w.form ~= 'float' and type(y) == 'string' then y = encoded(w, n, y, result) end
		keep(w, first, core.ref(node.name, i), y, w.form == 'float' and result.spec and {shape = result.shape, dtype = 'float32'} or result)
	end
end

-- Nodes without operands whose sizes are known are constants.
local FILLS = {arange = true, linspace = true, eye = true, zeros = true, ones = true, full = true}

local function fold(w, node)
	local value = ops.apply(node.op, {}, node.attrs)[1]
	w.of[node.name] = {dtype = value:dtype(), shape = node.results[1].shape, constant = value, stem = node.name, made = node.name}
end

local function input(w, node)
	local result = node.results[1]
	local v = {shape = result.shape, dtype = result.dtype, stem = node.name, input = node.name}
	w.taken[node.name] = true
	w.of[node.name] = v
	if not result.spec then
		v.name = node.name
		return
	end
	if w.form == 'float' then
		v.name, v.dtype = node.name, 'float32'
		return
	end
	local c = codes.params(w, node.name, result.spec)
	if not c then values.refuse 'an input of codes whose scale is found at each run' end
	c.name, v.codes = node.name, c
end

-- Translates all nodes; adds what has no translation to `missing`.
local function translate_all(w, missing)
	local all = translations()
	for _, name in ipairs(w.g.order) do
		local node = w.g.nodes[name]
		local good, problem = true, nil
		if node.op == 'input' then
			good, problem = pcall(input, w, node)
		elseif FILLS[node.op] and #node.inputs == 0 and not core.size.varies(node.attrs) then
			fold(w, node)
		elseif node.op ~= 'const' then
			good, problem = pcall(translate, w, node, all[node.op])
		end
		if not good then
			local reason = values.reason(problem)
			if not reason then error(problem, 0) end
			missing[#missing + 1] = {node = node, reason = reason}
			for i, result in ipairs(node.results) do
				w.of[core.ref(name, i)] = {shape = result.shape, dtype = result.spec and 'float32' or result.dtype, name = core.ref(name, i)}
			end
		end
	end
end

local function refuse(missing)
	local list = {}
	for i, m in ipairs(missing) do list[i] = ("%s ('%.60s'): %s"):format(m.node.op, m.node.name, m.reason) end
	fail('export: onnx: wanted nodes that have a form in ONNX, got %d without: %s', #list, table.concat(list, '; '))
end

---------------------------------------------------------------- inputs and outputs

-- Sizes of an input or output: the batch has a name.
local function dims(shape)
	local made = {}
	for i, n in ipairs(shape) do
		made[i] = not core.size.is_affine(n) and n or tostring(n) == 'B' and 'batch' or (tostring(n):gsub('B', 'batch'))
	end
	return made
end

-- Outputs have the names of their nodes. One that is an input, a constant, another output or a view without a node gets an Identity.
local function outputs_of(w)
	local list, seen, made = {}, {}, {}
	for _, n in ipairs(w.nodes) do
		for _, name in ipairs(n.outputs) do made[name] = true end
	end
	core.each_output(w.g, function(leaf)
		local v = w:value(leaf.ref)
		local c = v.codes and codes.write(w, v.codes)
		local name = c and c.name or w:plain(v)
		if not made[name] or seen[name] then
			local other = w:fresh(leaf.ref, name ~= leaf.ref)
			w.nodes[#w.nodes + 1] = {op = 'Identity', inputs = {name}, outputs = {other}, attrs = {}}
			name = other
		end
		seen[name] = true
		list[#list + 1] = {name = name, type = c and c.type or v.dtype, shape = dims(v.shape)}
	end)
	return list
end

local function inputs_of(w)
	local list = {}
	for i, name in ipairs(w.g.inputs) do
		local v = w.of[name]
		list[i] = {name = name, type = v.codes and v.codes.type or v.dtype, shape = dims(v.shape)}
	end
	return list
end

-- Without nodes and initializers that no output needs.
local function sweep(w, outputs)
	local needed, nodes, initializers = {}, {}, {}
	for _, o in ipairs(outputs) do needed[o.name] = true end
	for i = #w.nodes, 1, -1 do
		local n, used = w.nodes[i], false
		for _, name in ipairs(n.outputs) do used = used or needed[name] end
		if used then
			table.insert(nodes, 1, n)
			n.name = n.outputs[1] -- names of nodes differ, too
			for _, name in ipairs(n.inputs) do needed[name] = true end
		end
	end
	for _, t in ipairs(w.initializers) do initializers[#initializers + 1] = needed[t.name] and t or nil end
	return nodes, initializers
end

---------------------------------------------------------------- the model

-- The model as a table for message.model.
local function build(g, form, o)
	local opset = o.opset or USUAL
	local w, missing
	repeat
		w, missing = values.new(g, form, opset), {}
		w.given = o.opset
		translate_all(w, missing)
		if #missing > 0 then refuse(missing) end
		local again = w.least > opset
		if again and o.opset then fail('export: opset: wanted at least %d for the forms in use, got %d', w.least, o.opset) end
		opset = w.least
	until not again
	local outputs = outputs_of(w)
	local nodes, initializers = sweep(w, outputs)
	local opsets = {{'', opset}}
	for domain in next, w.domains do opsets[#opsets + 1] = {domain, 1} end
	return {ir = IR[opset], opsets = opsets, version = internal.version or '', name = 'graph', nodes = nodes, initializers = initializers,
		inputs = inputs_of(w), outputs = outputs, least = LEAST}
end

local function check(o)
	base.check_path('export: onnx', o.onnx)
	if o.form and not base.one_of(o.form, FORMS) then
		fail('export: form: wanted float, qdq, qoperator or integer, got %s%s', base.describe(o.form), base.near(o.form, FORMS))
	end
	if o.opset and (o.opset < OLDEST or o.opset > NEWEST) then fail('export: opset: wanted %d to %d, got %d', OLDEST, NEWEST, o.opset) end
end

local function rows_of(m, size, outside, form)
	local rows = {columns = {'node', 'op', 'domain'}}
	for i, n in ipairs(m.nodes) do rows[i] = {node = n.name, op = n.op, domain = n.domain or ''} end
	rows.note = ('opset %d, form %s: %d nodes, %d initializers; %d bytes%s'):format(m.opsets[1][2], form, #m.nodes, #m.initializers, size,
		outside and (' and %d bytes of external data'):format(outside.size) or '')
	return report(rows)
end

return function(g, o)
	check(o)
	local form = o.form or has_codes(g) and 'qdq' or 'float'
	local m = build(g, form, o)
	local location = o.onnx:match '[^/]*$' .. '.data'
	local parts, outside = message.model(m, o.external and location or nil)
	if parts.size > MOST and not outside then parts, outside = message.model(m, location) end
	local path = base.path(o.onnx)
	local good, problem = internal.onnx_write(path, parts, outside and path .. '.data' or nil, outside)
	if not good then fail("export: onnx: '%s': %s", o.onnx, problem) end
	return rows_of(m, parts.size, outside, form)
end
