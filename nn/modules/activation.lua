-- SPDX-License-Identifier: MIT
-- Activations as modules: each calls the tensor's method of that name.
local _, internal = ...
local module = internal.import 'module'

local list = {
	{'ReLU', 'relu', 'max(x, 0); quantized operands stay integers.'},
	{'ReLU6', 'relu6', 'min(max(x, 0), 6).'},
	{'Tanh', 'tanh', 'The hyperbolic tangent.'},
	{'Sigmoid', 'sigmoid', '1 / (1 + exp(-x)).'},
	{'GELU', 'gelu', 'x times the normal distribution function of x.'},
	{'SiLU', 'silu', 'x * sigmoid(x).'},
	{'Hardswish', 'hardswish', 'x * relu6(x + 3) / 6.'},
	{'LeakyReLU', 'leakyrelu', 'x where it is positive, else 0.01 x.'},
	{'Softmax', 'softmax', 'exp(x) / sum exp(x) along the last axis.'},
}

for _, entry in ipairs(list) do
	local name, op, text = entry[1], entry[2], entry[3]
	module.define(nn, {
		name = name,
		usage = 'nn.' .. name .. '()',
		text = ('x:%s() as a module: %s'):format(op, text),
		example = ('print(nn.%s()(tensor.zeros(2)):size())  --> 2'):format(name),
		integer = name == 'ReLU',
		init = function() end,
		forward = function(_, x) return x[op](x) end,
	})
end
