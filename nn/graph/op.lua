-- SPDX-License-Identifier: MIT
-- graph.op: a user-defined op. A call is checked against `infer`; in a traced module it is one node, whatever ops
-- `run` calls, because recording is off during the call. Its quantized form and its emitter are found by name, like
-- those of nn/graph/forms.def and nn/export/ops.def.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local module = internal.import 'nn/base/module'
local ops = internal.import 'nn/graph/ops'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor

---------------------------------------------------------------- checks of the parts of an op

local FORM = {inputs = 'table', weights = 'table', gives = 'string', needs = 'boolean', all = 'boolean', fits = 'function', macs = 'function'}
local GIVES = {'codes', 'float', 'same'}

local function check_form(name, form)
	local known, gives = {}, false
	for field in next, FORM do known[#known + 1] = field end
	table.sort(known)
	for field, value in next, form do
		local kind = FORM[field]
		if not kind then fail("op: %s: form: unknown field '%.40s'%s", name, tostring(field), base.near(field, known)) end
		if type(value) ~= kind then fail('op: %s: form.%s: wanted a %s, got %s', name, field, kind, describe(value)) end
	end
	for _, word in ipairs(GIVES) do gives = gives or form.gives == word end
	if not gives then
		fail("op: %s: form.gives: wanted %s, got %s%s", name, table.concat(GIVES, ', '), describe(form.gives), base.near(form.gives, GIVES))
	end
	for _, field in ipairs {'inputs', 'weights'} do
		for _, at in ipairs(form[field] or {}) do
			if math.type(at) ~= 'integer' or at < 1 then
				fail('op: %s: form.%s: wanted positions of operands, got %s', name, field, describe(at))
			end
		end
	end
	local made = {ops = {name}, inputs = {1}, weights = {}}
	for field, value in next, form do made[field] = value end
	return made
end

local function check_name(name, replace)
	if type(name) ~= 'string' or not name:find '^%a[%w_]*$' then
		fail("op: name: wanted letters, digits and '_', got %s", describe(name))
	end
	if not replace and ops.user(name) then
		fail("op: name: wanted an unused name, got '%s', which is defined already; replace=true replaces that op", name)
	end
	if ops.built_in(name) then
		fail("op: name: wanted an unused name, got '%s', which is a built-in op; replace=true with emit= alone replaces its C", name)
	end
	return name
end

---------------------------------------------------------------- a call

-- The description of an operand that infer gets.
local function type_of(x)
	if not is_tensor(x) then return x end
	return {shape = {x:size()}, dtype = x:dtype(), spec = x:quantized() and x:spec() or nil}
end

local function check_inferred(def, results)
	if #results == 0 then fail('%s: infer: wanted {shape=, dtype=} for each result, got nothing', def.name) end
	for i, result in ipairs(results) do
		local shape = type(result) == 'table' and result.shape
		local good = type(shape) == 'table' and (result.dtype == nil or type(result.dtype) == 'string')
		for _, n in ipairs(good and shape or {}) do good = good and math.type(n) == 'integer' and n >= 0 end
		if not good then
			fail('%s: infer: result %d: wanted {shape={sizes}, dtype=\'…\'}, got %s', def.name, i,
				type(result) == 'table' and 'a table without such a shape' or describe(result))
		end
	end
end

-- Applies the form to the types of infer, which are floats: codes of out= where it is given, or those of the input.
local function with_codes(def, results, operands, attrs)
	local first, x = results[1], operands[1]
	if attrs.out then
		first.dtype, first.spec = attrs.out.dtype, attrs.out
	elseif def.form and def.form.gives == 'same' and is_tensor(x) and x:quantized() then
		first.dtype, first.spec = x:dtype(), x:spec()
	end
end

local function infer(def, operands, attrs)
	local types = {}
	for i, x in ipairs(operands) do types[i] = type_of(x) end
	types[#types + 1] = attrs
	local results = {def.infer(table.unpack(types))}
	check_inferred(def, results)
	for i, result in ipairs(results) do results[i] = {shape = result.shape, dtype = result.dtype or 'float32', spec = result.spec} end
	with_codes(def, results, operands, attrs)
	return results
end

local function result_text(result)
	return result.dtype .. core.size.text(result.shape) .. (result.spec and ' codes' or '')
end

local function check_results(def, wanted, results)
	if #wanted ~= results.n then fail('%s: infer declares %d results, run returned %d', def.name, #wanted, results.n) end
	for i, result in ipairs(wanted) do
		local x = results[i]
		if not is_tensor(x) then fail('%s: run: result %d: wanted a tensor, got %s', def.name, i, describe(x)) end
		local good = x:dtype() == result.dtype and x:quantized() == (result.spec ~= nil) and x:dim() == #result.shape
		for axis, n in ipairs(result.shape) do good = good and x:size(axis) == n end
		if not good then
			fail('%s: result %d: infer declares %s, run returned %s', def.name, i, result_text(result), result_text(type_of(x)))
		end
	end
end

-- Calls f while recording is off.
local function quietly(f, ...)
	local recorder, tracer = internal.record(nil), module.tracer
	module.tracer = nil
	local _ <close> = setmetatable({}, {__close = function()
		internal.record(recorder)
		module.tracer = tracer
	end})
	return internal.unyieldable(f, ...) -- a coroutine dropped in a yield would leave recording off
end

-- The write count of each operand.
local function versions(operands)
	local list = {}
	for i, x in ipairs(operands) do list[i] = is_tensor(x) and internal.writes(x) or 0 end
	return list
end

local function apply(def, operands, attrs)
	local wanted = infer(def, operands, attrs)
	local arguments, before = table.move(operands, 1, #operands, 1, {}), versions(operands)
	arguments[#arguments + 1] = attrs
	local results = table.pack(quietly(def.run, table.unpack(arguments)))
	for i, version in ipairs(versions(operands)) do
		if version ~= before[i] then fail('%s: run: wanted a function that does not modify its operands, got one that writes into operand %d', def.name, i) end
	end
	check_results(def, wanted, results)
	return results
end

-- Splits arguments into operands (leading tensors and numbers) and options.
local function read_arguments(def, ...)
	local operands, n = {}, select('#', ...)
	local rest
	for i = 1, n do
		local value = (select(i, ...))
		if is_tensor(value) or type(value) == 'number' then
			operands[i] = value
		elseif i == n and type(value) == 'table' and getmetatable(value) == nil then
			rest = value
		else
			fail('%s: operand %d: wanted a tensor or a number, got %s', def.name, i, describe(value))
		end
	end
	if not is_tensor(operands[1]) then fail('%s: operand 1: wanted a tensor, got %s', def.name, describe(operands[1])) end
	local attrs = {}
	for key, value in next, base.options(def.doc, rest) do attrs[key] = value end
	if attrs.out then attrs.out = quant.spec(attrs.out) end
	return operands, attrs
end

local function call(def, ...)
	local operands, attrs = read_arguments(def, ...)
	local results = apply(def, operands, attrs)
	if module.tracer then
		local recorder = internal.record(nil)
		internal.record(recorder)
		recorder('op', def.name, operands, attrs, {table.unpack(results, 1, results.n)}, false)
	end
	return table.unpack(results, 1, results.n)
end

---------------------------------------------------------------- graph.op

local options = base.doc {name = 'graph.op', usage = "f = graph.op{name='clip', infer=, run=, emit=, form=, options=}",
	text = [[Defines a user op: returns a function of tensors that graph.trace records as one node. Its arguments are operands (tensors, numbers)
followed by a table of options; infer and run get the same arguments.

infer(x, …, options) returns {shape={sizes}, dtype='float32'} for each result. Operands are given as {shape=, dtype=, spec=}, without
their values.

run(x, …, options) computes the results with any tensor functions. Writing to operands is an error, and so is a result that differs
from what infer declares.

options= lists the named options, each {name, type, text}; types are integer, number, text, true or false, list.

form= declares a quantized form, so that rules apply to the op. Fields: inputs= and weights= (positions of operands that may be codes;
default {1} and {}); gives= 'codes' (with out=, run returns codes of that spec, else floats), 'float', or 'same' (codes with the
parameters of x); needs=true (integers are used only if the result is needed as codes, as for sums); fits(node), which returns false
and a text of what is supported if the node has no integer version; macs(shape), where shape(i) is the sizes of operand i and shape(0)
those of the result. infer always describes floats; codes follow from gives.

emit(e, node) writes C for g:export. x, f = e:input(node, i) returns the C expression of operand i and its properties (shape, count,
ctype; for codes scale, zero, lo, hi); y, g = e:output(node) does the same for the result. Images may have their channels last: the third result
of e:input is the layout ('plain' or 'nhwc'), which e:output(node, layout) passes on; e:input(node, i, 'plain') requests channels first.

Further methods: e:func(name, text, fields, needs) returns a C function made from a text that contains ${name} and ${field}, written
once for each combination of fields (types); needs= lists the functions that it calls: 'round', 'exp', 'tanh' …, named q_round and so
on in the text. e:array(name, ctype, values, text) returns a constant array, e:constant(node, i) the tensor of a constant operand,
e:scratch(bytes) memory for one call, e.float(x) a C literal. e:call(format, …) adds a line to the forward pass.

Set e.inexact = true if floats are not bit-equal to run. Without emit=, g:export refuses the op by name.

A name that is in use is refused unless replace=true, which replaces a user op, also in existing graphs. For a built-in op,
replace=true with emit= alone replaces its C in all exports (without emit=: restores it); a rule of m:quantize or g:quantize,
{'fc', 'int8/1', emit=f} or {'fc', false, emit=f}, does so for the nodes that it matches. e:default(node) writes the built-in C. The
self-test of an export compares the C with the results of Quoll, so wrong C is detected.]],
	example = [[clip = graph.op{name='symclip', replace=true, options={{'limit', 'number', 'largest magnitude'}},
	infer=function(x) return {shape=x.shape, dtype=x.dtype} end,
	run=function(x, o) return x:clamp(-o.limit, o.limit) end}
m = nn.module(function(self, x) return clip(self.fc(x), {limit=2}) end, {fc=nn.Linear(3, 2)})
g = graph.trace(m, tensor.ones(1, 3))
print(clip(tensor{-3, 1}, {limit=2}), g:node('symclip1').shape)  --> float32(2)  -2 1 (B, 2)]],
	options = {{'name', 'text', 'name of the op'}, {'infer', 'function', 'sizes and dtypes of the results'}, {'run', 'function', 'computes the results'},
		{'emit', 'function', 'writes C (for g:export)'}, {'form', 'list', 'quantized form'}, {'options', 'list', 'named options of the op'},
		{'replace', 'true or false', 'replace an op of this name (default false)'}}}

local function check_options(name, list, form)
	local made = {}
	for i, option in ipairs(list or {}) do
		if type(option) ~= 'table' or type(option[1]) ~= 'string' or type(option[2]) ~= 'string' or not base.is_type(option[2]) then
			fail("op: %s: options: item %d: wanted {name, type, text} with a type such as 'number', got %s", name, i,
				type(option) == 'table' and describe(option[2]) or describe(option))
		end
		if option[1] == 'out' then fail("op: %s: options: item %d: wanted another name than 'out', which forms add themselves", name, i) end
		made[i] = option
	end
	if form and form.gives == 'codes' then made[#made + 1] = {'out', 'spec', 'spec of the result'} end
	return made
end

-- Replaces the C of a built-in op, not its computation.
local function replace_emitter(name, o)
	for _, field in ipairs {'infer', 'run', 'form', 'options'} do
		if o[field] then fail("op: %s: %s: wanted emit= alone for a built-in op, got %s", name, field, describe(o[field])) end
	end
	if name == 'input' or name == 'const' then fail("op: name: wanted an op, got '%s'", name) end
	ops.set_emitter(name, o.emit)
end

function graph.op(o)
	o = base.options(options, o)
	if o.replace and type(o.name) == 'string' and ops.built_in(o.name) then return replace_emitter(o.name, o) end
	local name = check_name(o.name, o.replace)
	for _, field in ipairs {'infer', 'run'} do
		if not o[field] then fail('op: %s: %s: wanted a function, got nothing', name, field) end
	end
	local def = {name = name, infer = o.infer, run = o.run, emit = o.emit, form = o.form and check_form(name, o.form), user = true}
	def.doc = {name = name, options = check_options(name, o.options, def.form)}
	def.apply = function(operands, attrs) return apply(def, operands, attrs) end
	ops.define(def)
	return function(...) return call(def, ...) end
end

return true
