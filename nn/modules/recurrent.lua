-- SPDX-License-Identifier: MIT
-- Recurrent layers: nn.RNN, nn.LSTM, nn.GRU. Layers can be stacked; each is one op over the whole sequence.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'

-- gates: rows of the weights for each unit; states: h, or h and c; op: a function of nn
local KINDS = {
	{name = 'RNN', op = 'rnn', gates = 1, states = 1, text = 'tanh of the sums'},
	{name = 'LSTM', op = 'lstm', gates = 4, states = 2, text = 'long short-term memory (gates i f g o)'},
	{name = 'GRU', op = 'gru', gates = 3, states = 1, text = 'gated recurrent unit (gates r z n)'},
}

local CALL = {options = {{'lengths', 'tensor'}}}

-- m(x, states, options), m(x, options): the states are a list.
local function arguments(self, states, options)
	if type(states) == 'table' and options == nil and rawget(states, 1) == nil then states, options = nil, states end
	return {states = states, lengths = base.options({name = module.class_of(self).name, options = CALL.options}, options).lengths}
end

-- back: of the second direction, from the last step to the first
local function names(layer, bias, back)
	local suffix = layer .. (back and '_reverse' or '')
	local list = {'weight_ih' .. suffix, 'weight_hh' .. suffix}
	if bias then list[3], list[4] = 'bias_ih' .. suffix, 'bias_hh' .. suffix end
	return list
end

-- The directions of a layer: false, and true for the one from the end.
local function directions(self) return self.bidirectional and {false, true} or {false} end

-- The states of every layer, and direction, before the first step: those given, those carried, or zeros.
local function begin(self, x, given)
	if given then return given end
	local b = self.batchfirst and x:size(1) or x:size(2)
	if self.carried and self.carried[1][1]:size(1) == b then return module.moved(self.carried, x:device()) end
	local states, like = {}, {b, self.hidden, dtype = module.real(x):dtype(), device = x:device()}
	for layer = 1, self.layers * #directions(self) do
		states[layer] = {}
		for i = 1, self.states do states[layer][i] = tensor.zeros(like) end
	end
	return states
end

local function detached(states)
	local list = {}
	for layer, inner in ipairs(states) do
		list[layer] = {}
		for i, state in ipairs(inner) do list[layer][i] = state:detach() end
	end
	return list
end

-- how.get(field) gives the tensor to compute with; how.before(layer, x) (may be nil) what goes into a layer, codes whose float32 results
-- are rounded to the dtype of x; how.in_codes: 'int8', or nil.
local function run_layer(self, how, layer, back, x, states)
	local operands = {how.before and how.before(layer, x) or x}
	for i = 1, self.states do operands[#operands + 1] = states[i] end
	for _, field in ipairs(names(layer, self.bias, back)) do operands[#operands + 1] = how.get(field) end
	local options = {batchfirst = self.batchfirst, states = how.in_codes, reverse = back or self.reverse or nil, lengths = how.lengths}
	if self.early then options.resetafter = false end
	operands[#operands + 1] = options
	local results = {nn[self.op](table.unpack(operands))}
	for i = 1, how.dtype and #results or 0 do results[i] = results[i]:to(how.dtype) end
	return results[1], {table.unpack(results, 2, 1 + self.states)}
end

-- given: of arguments()
local function run(self, x, given, get, before, in_codes)
	local states, after, ways = begin(self, x, given.states), {}, directions(self)
	local how = {get = get, before = before, in_codes = in_codes, dtype = before and module.half(x), lengths = given.lengths}
	for layer = 1, self.layers do
		module.note(self, 'input' .. layer, x)
		local results = {}
		for i, back in ipairs(ways) do
			results[i], after[#after + 1] = run_layer(self, how, layer, back, x, states[#after + 1])
		end
		x = #results > 1 and tensor.cat(results, {axis = 3}) or results[1]
		if self.training and self.dropout > 0 and layer < self.layers then x = nn.dropout(x, {p = self.dropout, training = true}) end
	end
	if self.carrying then self.carried = detached(after) end
	return x, after
end

-- In integers x is quantized before each layer, and h at each step where the weight's spec allows (help 'nn.lstm').
local function states_of(spec)
	local d = quant.dtype(spec.dtype)
	local plain = d.bits == 8 and d.kind == 'int' and spec.affine and not spec.offset and (not spec.axis or spec.axis == 1)
	return plain and 'int8' or nil
end

local function is_weight(field) return field:find '^weight' ~= nil end

local MODES = {}

function MODES.weight_only(self, q, x, ...)
	x = module.real(x)
	local in_parts = module.decodes_in_parts(x, q.weight)
	return run(self, x, arguments(self, ...), function(field) return is_weight(field) and not in_parts and self[field]:dequantize() or self[field] end)
end

function MODES.dynamic(self, q, x, ...)
	return run(self, x, arguments(self, ...), function(field) return self[field] end,
		function(_, value) return module.codes(value, q.input) end, states_of(q.weight))
end

function MODES.static(self, q, x, ...)
	return run(self, x, arguments(self, ...), function(field) return self[field] end,
		function(layer, value) return module.codes(value, q.inputs[layer]) end, states_of(q.weight))
end

function MODES.train(self, q, x, ...)
	return run(self, x, arguments(self, ...), function(field) return is_weight(field) and self[field]:quantize(q.weight) or self[field] end,
		function(_, value) return module.codes(value, q.input) end, states_of(q.weight))
end

function MODES.qat(self, q, x, ...)
	return run(self, module.real(x), arguments(self, ...),
		function(field) return is_weight(field) and module.fake_weight(self, q, field) or self[field] end,
		function(layer, value) return module.fake_input(self, q, value, layer) end)
end

local function define(kind)
	module.define(nn, {
		name = kind.name,
		usage = ('nn.%s(inputs, hidden, {layers=1, dropout=0, bias=true, batchfirst=true, bidirectional=false, reverse=false%s})  nn.%s(inputs, hidden, layers)'):format(
			kind.name, kind.name == 'GRU' and ', resetafter=true' or '', kind.name),
		text = ([[Recurrent layers over a sequence, %s: x (B, T, inputs) to (B, T, hidden), or with batchfirst=false both with T first.
Behind it the states after the last step are returned, a list with {%s} (B, hidden) for each layer; m(x, states) begins with
such, else with zeros. bidirectional: a second set of weights (weight_ih1_reverse …) goes from the last step to the first, y is (B, T, 2 hidden) with
its results behind the others, and the list of states has both directions of layer 1, then of layer 2. reverse: one direction, from the
last step to the first. m(x, {lengths=}) or m(x, states, {lengths=}): integers (B), the steps of each sequence; its states stay after the last
of them and y is 0 there, as with PyTorch's packed sequences.%s dropout acts between layers in training. In m:fit, m:evaluate and m:generate on a text that goes on
from batch to batch the states are carried over. Weights begin uniform within 1/sqrt(hidden); their layout is PyTorch's.]]):format(
			kind.text, kind.states == 2 and 'h, c' or 'h', kind.name == 'GRU' and [[
 resetafter=false: the reset gate multiplies h before its product (ONNX's linear_before_reset=0, Keras's reset_after=False).]] or ''),
		options = {{'layers', 'integer', 'default 1'}, {'dropout', 'number', 'between layers, in training (default 0)'},
			{'bias', 'true or false', 'default true'}, {'batchfirst', 'true or false', '(B, T, n), else (T, B, n) (default true)'},
			{'bidirectional', 'true or false', 'both directions (default false)'}, {'reverse', 'true or false', 'from the last step (default false)'},
			kind.name == 'GRU' and {'resetafter', 'true or false', 'the reset gate after the product (default true)'} or nil},
		positional = kind.name ~= 'RNN' and {'layers', 'bias', 'batchfirst', 'dropout'} or {'layers'},
		example = ('m = nn.%s(3, 4, {layers=2})\nprint(m(tensor.ones(2, 5, 3)):size())  --> 2 5 4'):format(kind.name),
		init = function(self, options, inputs, hidden)
			inputs, hidden = module.size(kind.name, 'inputs', inputs), module.size(kind.name, 'hidden', hidden)
			self.layers, self.hidden, self.inputs = module.size(kind.name, 'layers', options.layers or 1), hidden, inputs
			self.dropout = module.number(kind.name, 'dropout', options.dropout or 0, 0, 1, true)
			self.bidirectional, self.reverse = options.bidirectional or false, options.reverse or false
			if self.bidirectional and self.reverse then base.fail('%s: wanted reverse or bidirectional, got both', kind.name) end
			self.early = options.resetafter == false
			self.bias, self.batchfirst = options.bias ~= false, options.batchfirst ~= false
			self.op, self.states, self.carrying, self.carried = kind.op, kind.states, false, false
			local bound = 1 / math.sqrt(hidden)
			local ways = directions(self)
			for layer = 1, self.layers do
				for _, back in ipairs(ways) do
					for i, field in ipairs(names(layer, self.bias, back)) do
						local width = i == 1 and (layer == 1 and inputs or hidden * #ways) or i == 2 and hidden
						local size = width and {kind.gates * hidden, width} or {kind.gates * hidden}
						module.parameter(self, field, tensor.rand(table.unpack(size)):mul_(2 * bound):sub_(bound))
					end
				end
			end
		end,
		weights = function(self)
			local list = {}
			for layer = 1, self.layers do
				for _, back in ipairs(directions(self)) do table.move(names(layer, false, back), 1, 2, #list + 1, list) end
			end
			return list
		end,
		observed = function(self)
			local list = {}
			for layer = 1, self.layers do list[layer] = 'input' .. layer end
			return list
		end,
		-- Keep the states from call to call, or reset them.
		carry = function(self, on)
			if on and (self.bidirectional or self.reverse) then
				base.fail('%s: wanted the direction from the first step, got %s=true: states are carried from the end of a text to its continuation', kind.name,
					self.reverse and 'reverse' or 'bidirectional')
			end
			self.carrying, self.carried = on, false
		end,
		modes = MODES,
		forward = function(self, x, states, options)
			return run(self, module.real(x), arguments(self, states, options), function(field) return self[field] end)
		end,
		describe = function(self)
			local shown = {layers = self.layers > 1 and self.layers or nil, dropout = self.dropout > 0 and ('%g'):format(self.dropout) or nil}
			if not self.bias then shown.bias = false end
			if not self.batchfirst then shown.batchfirst = false end
			if self.bidirectional then shown.bidirectional = true end
			if self.reverse then shown.reverse = true end
			if self.early then shown.resetafter = false end
			return ('%d, %d'):format(self.inputs, self.hidden) .. module.fields_text(shown, {'layers', 'dropout', 'bias', 'batchfirst', 'bidirectional', 'reverse', 'resetafter'})
		end,
	})
end

for _, kind in ipairs(KINDS) do define(kind) end
