-- SPDX-License-Identifier: MIT
-- Activations as modules give what the methods give.
local x = tensor{{-2, -0.5, 0, 1, 7}}
for name, method in pairs {ReLU='relu', ReLU6='relu6', Tanh='tanh', Sigmoid='sigmoid', GELU='gelu', SiLU='silu',
	Hardswish='hardswish', LeakyReLU='leakyrelu', Softmax='softmax'} do
	it(name, function()
		assert(nn[name]()(x):error(x[method](x)).max == 0)
		assert(tostring(nn[name]()):find(name .. '()', 1, true))
	end)
end
print(nn.ReLU()(x:quantize 'int8'):dtype())  --> int8
