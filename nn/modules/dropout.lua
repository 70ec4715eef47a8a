-- SPDX-License-Identifier: MIT
-- nn.Dropout: in training each element is 0 with probability p and scaled up otherwise.
local _, internal = ...
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'Dropout',
	usage = 'nn.Dropout(p)  nn.Dropout{p=0.5}',
	text = [[nn.dropout as a module: in training mode each element becomes 0 with probability p (default 0.5), and the others are divided by
1 - p; in eval mode x is returned unchanged. Random numbers depend on tensor.seed.]],
	example = [[m = nn.Dropout(0.5):eval()
print(m(tensor{1, 2}))  --> float32(2)  1 2]],
	options = {{'p', 'number', 'share of the elements that become 0 (default 0.5)'}}, positional = {'p'},
	integer = true,
	init = function(self, options) self.p = module.number('Dropout', 'p', options.p or 0.5, 0, 1, true) end,
	forward = function(self, x)
		if not self.training or self.p == 0 then return x end
		return nn.dropout(x, {p = self.p, training = true})
	end,
	describe = function(self) return ('%g'):format(self.p) end,
})
