-- SPDX-License-Identifier: MIT
-- Ops in graphs: applying one by name (all ops of the tables, and `assign`), and its quantized form, the first for
-- its name in the files of nn/graph/forms.def.
--
-- A form (one table, or a list of them, returned by such a file):
--   ops      names of the ops that it describes
--   inputs   operands that are activations and can be codes;  weights  operands that are weights
--   gives    result: 'codes': has out=, the spec of the result; 'float': floats from codes; 'same': codes of the input's spec;
--            'places': plain integers from codes
--   keeps(spec, node)  'same': whether codes of that spec stay codes in that node; otherwise the op gives floats; nil: always
--   needs    true: it is an integer op only if its operands are codes of known range and (except 'places') out= is given
--   all      every operand is an activation;  numbers  some may be numbers, which are not changed
--   decodes  the op itself decodes codes of weights: in mode weight_only it is not changed
--   in_parts(at, axes)   whether the float op takes codes of so many axes as operand `at`, too, and decodes them in parts
--            (nn/graph/in_parts.lua);  takes_flat: also a matrix of codes, with the sizes of the kernel as k=
--   fits(node, spec of the weight, spec of the input, weight)   false and the reason when this node has no integer version
--   per      axis of the outputs in the weight, if it is not the first
--   attrs(node, weight)   more attributes of the integer version, or nil
--   of(node)     the form of nodes that another one describes, or nil
--   columns(at, operands, results, attrs)   the rows that weight `at` is multiplied with, as a matrix, or nil
--   macs(shape)  multiplications; shape(i): sizes of operand i, shape(0): of the first result
local _, internal = ...
local size = internal.import 'nn/graph/size'
local ops = {}
local list, forms
local user = {} -- name -> op of graph.op

local function op_list()
	if list then return list end
	list = {}
	for _, all in ipairs {tensor.ops(), nn.ops()} do
		for _, op in ipairs(all) do list[op.name] = op end
	end
	list.assign = {name = 'assign'}
	return list
end

function ops.info(name) return op_list()[name] or user[name] or {name = name} end

local OWN = {input = true, const = true} -- nodes that are not ops
function ops.built_in(name) return OWN[name] or op_list()[name] ~= nil end

-- An op of graph.op: {name=, apply=, emit=, form=}.
function ops.define(def) user[def.name] = def end
function ops.user(name) return user[name] end

-- User-defined emitters by op name: those of graph.op, and replacements of built-in ones (nil: restores the built-in one).
local emitters = {}
function ops.set_emitter(name, emit) emitters[name] = emit end
function ops.emitter(name) return user[name] and user[name].emit or emitters[name] end

-- Whether the node passes on codes of its input's spec.
function ops.keeps_codes(node)
	local form = ops.form(node.op, node)
	return form ~= nil and form.gives == 'same' and (not form.fits or (form.fits(node)) == true)
end

-- The form of an op; that of a node, where the op has several.
function ops.form(name, node)
	if not forms then
		forms = {}
		for _, file in ipairs(internal.registry 'nn/graph/forms') do
			local entry = internal.import(file)
			for _, form in ipairs(entry.ops and {entry} or entry) do
				for _, op in ipairs(form.ops) do forms[op] = forms[op] or form end
			end
		end
	end
	local form = user[name] and user[name].form or forms[name]
	return form and form.of and node and form.of(node) or form
end

-- Names of all ops whose nodes can be quantized, for messages.
function ops.quantizable()
	local names = {}
	ops.form ''
	local function add(name, form)
		if form and form.gives and form.gives ~= 'same' then names[#names + 1] = name end
	end
	for name, form in next, forms do add(name, form) end
	for name, def in next, user do add(name, def.form) end
	table.sort(names)
	return names
end

-- A copy with the slices replaced: {axis, first, length}, {axis, index, 0} or {axis, first, last, step}.
local function assign(x, value, slices)
	local y = x:clone()
	local view = y
	for _, s in ipairs(slices) do
		view = s[4] and view:slice(s[1], s[2], s[3], s[4]) or s[3] == 0 and view:select(s[1], s[2]) or view:narrow(s[1], s[2], s[3])
	end
	view:copy_(value)
	return y
end

-- Applies an op by name; gives the list of its results. A spec follows the operands, other attributes are passed by
-- name.
function ops.apply(name, operands, attrs)
	if name == 'assign' then return {assign(operands[1], operands[2], attrs.slices)} end
	if user[name] then return user[name].apply(operands, attrs) end
	local info, arguments = ops.info(name), {table.unpack(operands)}
	if info.list_in then arguments = {operands} end
	local rest
	for key, value in next, attrs do
		if key == 'spec' then
			arguments[#arguments + 1] = value
		else
			rest = rest or {}
			rest[key] = value
		end
	end
	arguments[#arguments + 1] = rest
	local results = {internal.op(name)(table.unpack(arguments))}
	return info.list_out and results[1] or results
end

-- Multiplications of a node for a batch of b; 0 for ops without a form or without macs.
function ops.macs(g, node, b)
	local form = ops.form(node.op, node)
	if not form or not form.macs then return 0 end
	return form.macs(function(i) return size.at(i == 0 and node.results[1].shape or g:result_of(node.inputs[i]).shape, b) end)
end

-- Bytes of a result for a batch of b; rows of packed dtypes are padded to whole groups of elements.
function ops.bytes(result, b)
	local d, n = quant.dtype(result.dtype), size.count(result.shape, b)
	if d.bits >= 8 or #result.shape == 0 then return (n * d.bits + 7) // 8 end
	local row = size.at(result.shape[#result.shape], b)
	return row == 0 and 0 or n // row * ((row + d.packed - 1) // d.packed * d.packed * d.bits // 8)
end

return ops
