-- SPDX-License-Identifier: MIT
-- Activations as modules: each calls the tensor's method of that name, with the attributes that its options set.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local module = internal.import 'nn/base/module'
local input = module.input

local function check_slope(value)
	return module.number('LeakyReLU', 'slope', value, -math.huge, math.huge, true)
end

local function check_form(value)
	if value == 'none' then return nil end
	if value ~= 'tanh' then base.fail("GELU: approximate: wanted 'tanh' or 'none', got %s", base.describe(value)) end
	return value
end

local function check_axis(value)
	local axis = math.tointeger(value)
	if not axis or axis == 0 then base.fail('Softmax: axis: wanted an integer other than 0, got %s', base.describe(value)) end
	return axis
end

-- name, op, text, then the option: name, type, text, check(value) -> attribute
local list = {
	{'ReLU', 'relu', 'max(x, 0); quantized operands stay integers.'},
	{'ReLU6', 'relu6', 'min(max(x, 0), 6).'},
	{'Tanh', 'tanh', 'The hyperbolic tangent.'},
	{'Sigmoid', 'sigmoid', '1 / (1 + exp(-x)).'},
	{'GELU', 'gelu', "x times the normal distribution function of x; approximate='tanh' is the formula with tanh that GPT-2 has.",
		{'approximate', 'text', "'tanh' or 'none' (default)"}, check_form},
	{'SiLU', 'silu', 'x * sigmoid(x).'},
	{'Hardswish', 'hardswish', 'x * relu6(x + 3) / 6.'},
	{'LeakyReLU', 'leakyrelu', 'x where it is positive, else slope * x.', {'slope', 'number', 'default 0.01'}, check_slope},
	{'Softmax', 'softmax', 'exp(x) / sum exp(x) along an axis, counted from 1 (negative: from the end).',
		{'axis', 'integer', '1 is the first, -1 the last (default -1)'}, check_axis},
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

local function with_attributes(op, key)
	return function(self, given)
		local out, x = module.site(self, 'main', input(self, given))
		return x[op](x, out and {[key] = self.attributes[key], out = out} or self.attributes)
	end
end

for _, entry in ipairs(list) do
	local name, op, text, option, check = table.unpack(entry, 1, 5)
	local key = option and option[1]
	module.define(nn, {
		name = name,
		usage = 'nn.' .. name .. '()' .. (option and ('  nn.%s{%s=}  nn.%s(%s)'):format(name, key, name, key) or ''),
		text = ('x:%s() as a module: %s'):format(op, text),
		example = ('print(nn.%s()(tensor.zeros(2)):size())  --> 2'):format(name),
		options = option and {option}, positional = option and {key},
		integer = name == 'ReLU',
		sites = name ~= 'ReLU' and {main = {'input'}} or nil,
		init = function(self, options)
			local value = options[key]
			self.attributes = value ~= nil and {[key] = check(value)} or {}
		end,
		forward = option and with_attributes(op, key) or op == 'relu' and saturated or plain(op),
		describe = option and function(self) return (module.fields_text(self.attributes, {key}):gsub('^, ', '')) end or nil,
	})
end
