-- SPDX-License-Identifier: MIT
-- The relu with learned slopes below 0.
local _, internal = ...
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'PReLU',
	usage = 'nn.PReLU()  nn.PReLU(channels, {init=0.25})  nn.PReLU(channels, init)',
	text = [[x:prelu(weight): x where it is positive, else weight * x, where the weight is trained: one number, or one for each channel along
the second axis.]],
	options = {{'init', 'number', 'what the weight begins with (default 0.25)'}}, positional = {'init'},
	example = 'print(nn.PReLU(3)(tensor.full{2, 3, value=-4})[1])  --> float32(3)  -1  -1  -1',
	init = function(self, options, channels)
		local first = module.number('PReLU', 'init', options.init or 0.25, -math.huge, math.huge, true)
		channels = module.size('PReLU', 'channels', channels == nil and 1 or channels)
		module.parameter(self, 'weight', tensor.full {channels, value = first})
	end,
	sites = {main = {'input'}},
	forward = function(self, given)
		local out, x = module.site(self, 'main', module.input(self, given))
		return out and x:prelu(self.weight, {out = out}) or module.real(x):prelu(self.weight)
	end,
	describe = function(self) return tostring(self.weight:nelem()) end,
})
