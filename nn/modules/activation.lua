-- SPDX-License-Identifier: MIT
-- Activations as modules: each calls the tensor's method of that name, with the attributes that its options set.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local input = module.input

local function check_form(_, _, value)
	if value == 'none' then return nil end
	if value ~= 'tanh' then base.fail("GELU: approximate: wanted 'tanh' or 'none', got %s", base.describe(value)) end
	return value
end

local function check_axis(name, _, value)
	local axis = math.tointeger(value)
	if not axis or axis == 0 then base.fail('%s: axis: wanted an integer other than 0, got %s', name, base.describe(value)) end
	return axis
end

local function check_number(name, key, value) return module.number(name, key, value, -math.huge, math.huge, true) end

local AXIS = {'axis', 'integer', '1 is the first, -1 the last (default -1)', check = check_axis}
local function number(key, text) return {key, 'number', text, check = check_number} end

-- Soft shrinkage takes lambda away from what it keeps.
local function soft(attributes)
	attributes.lambda = attributes.lambda or 0.5
	attributes.bias = attributes.lambda
end

-- name, op, text, options: name, type, text, check(name of the module, key, value) -> attribute; complete(attributes)
local list = {
	{'ReLU', 'relu', 'max(x, 0); quantized operands stay integers.'},
	{'ReLU6', 'relu6', 'min(max(x, 0), 6).'},
	{'Tanh', 'tanh', 'The hyperbolic tangent.'},
	{'Sigmoid', 'sigmoid', '1 / (1 + exp(-x)).'},
	{'GELU', 'gelu', "x times the normal distribution function of x; approximate='tanh' is the formula with tanh that GPT-2 has.",
		{{'approximate', 'text', "'tanh' or 'none' (default)", check = check_form}}},
	{'SiLU', 'silu', 'x * sigmoid(alpha * x), also called swish.', {number('alpha', 'default 1')}},
	{'Hardswish', 'hardswish', 'x * relu6(x + 3) / 6.'},
	{'Hardsigmoid', 'hardsigmoid', 'alpha * x + beta, limited to 0..1.', {number('alpha', 'default 1/6; in ONNX 0.2'), number('beta', 'default 0.5')}},
	{'Hardtanh', 'hardtanh', 'x limited to low..high.', {number('low', 'default -1'), number('high', 'default 1')}},
	{'LeakyReLU', 'leakyrelu', 'x where it is positive, else slope * x.', {number('slope', 'default 0.01')}},
	{'ELU', 'elu', 'x where it is positive, else alpha * (exp(x) - 1).', {number('alpha', 'default 1')}},
	{'SELU', 'selu', 'The elu that keeps mean 0 and variance 1.'},
	{'CELU', 'celu', 'x where it is positive, else alpha * (exp(x / alpha) - 1).', {number('alpha', 'default 1')}},
	{'Softplus', 'softplus', 'log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold.',
		{number('beta', 'default 1'), number('threshold', 'default: none; in PyTorch 20')}},
	{'Mish', 'mish', 'x * tanh(softplus(x)).'},
	{'Softsign', 'softsign', 'x / (1 + |x|).'},
	{'LogSigmoid', 'logsigmoid', 'log(sigmoid(x)).'},
	{'Softshrink', 'shrink', 'x less lambda above lambda, x plus lambda below -lambda, else 0.', {number('lambda', 'default 0.5')}, soft},
	{'Hardshrink', 'shrink', 'x above lambda and below -lambda, else 0.', {number('lambda', 'default 0.5')}},
	{'Threshold', 'threshold', 'x where it is above the threshold, else value.', {number('threshold', 'default 1'), number('value', 'default 0')}},
	{'Softmax', 'softmax', 'exp(x) / sum exp(x) along an axis, counted from 1 (negative: from the end).', {AXIS}},
	{'LogSoftmax', 'logsoftmax', 'The logarithm of softmax along an axis, counted from 1 (negative: from the end).', {AXIS}},
}

local function plain(op)
	return function(self, given)
		local out, x = module.site(self, 'main', input(self, given))
		return x[op](x, out and {out = out})
	end
end

local function saturated(self, x) -- codes that begin at 0 are those of the relu
	return internal.non_negative(input(self, x)) and x or x:relu()
end

local function with_attributes(op)
	return function(self, given)
		local out, x = module.site(self, 'main', input(self, given))
		local attributes = self.attributes
		if out then
			attributes = {out = out}
			for key, value in pairs(self.attributes) do attributes[key] = value end
		end
		return x[op](x, attributes)
	end
end

-- Options as attributes of the op, which checks them here, not only when it is called first.
local function read_options(name, op, options, given, complete)
	local attributes, numbers = {}, false
	for _, option in ipairs(options) do
		local key = option[1]
		if given[key] ~= nil then attributes[key] = option.check(name, key, given[key]) end
		numbers = numbers or option[2] == 'number'
	end
	if complete then complete(attributes) end
	local one = numbers and tensor.ones(1)
	if one then one[op](one, attributes) end
	return attributes
end

local function usage_of(name, keys)
	local text = 'nn.' .. name .. '()'
	if #keys == 0 then return text end
	return ('%s  nn.%s{%s=}  nn.%s(%s)'):format(text, name, table.concat(keys, '=, '), name, table.concat(keys, ', '))
end

for _, entry in ipairs(list) do
	local name, op, text, options, complete = table.unpack(entry, 1, 5)
	local keys, given = {}, {}
	for i, option in ipairs(options or {}) do keys[i], given[i] = option[1], {table.unpack(option, 1, 3)} end
	module.define(nn, {
		name = name, usage = usage_of(name, keys),
		text = ('x:%s() as a module: %s'):format(op, text),
		example = ('print(nn.%s()(tensor.zeros(2)):size())  --> 2'):format(name),
		options = options and given, positional = options and keys,
		integer = name == 'ReLU',
		sites = name ~= 'ReLU' and {main = {'input'}} or nil,
		init = function(self, o) self.attributes = read_options(name, op, options or {}, o, complete) end,
		forward = options and with_attributes(op) or op == 'relu' and saturated or plain(op),
		describe = options and function(self) return (module.fields_text(self.attributes, keys):gsub('^, ', '')) end or nil,
	})
end
