-- SPDX-License-Identifier: MIT
-- nn.Dropout: in training each element is 0 with probability p and scaled up otherwise.
local _, internal = ...
local base = internal.import 'base'
local module = internal.import 'module'

return module.define(nn, {
	name = 'Dropout',
	usage = 'nn.Dropout(p)',
	text = [[nn.dropout as a module: in training each element becomes 0 with probability p (default 0.5), the others are divided by
1 - p; in use x passes as it is. Random numbers as tensor.seed says.]],
	example = [[m = nn.Dropout(0.5):eval()
print(m(tensor{1, 2}))  --> float32(2)  1 2]],
	integer = true,
	init = function(self, _, p)
		self.p = p or 0.5
		if type(self.p) ~= 'number' or not (self.p >= 0 and self.p < 1) then
			base.fail('Dropout: p: wanted a number from 0 to below 1, got %s', base.describe(p))
		end
	end,
	forward = function(self, x)
		if not self.training or self.p == 0 then return x end
		return nn.dropout(x, {p = self.p, training = true})
	end,
	describe = function(self) return ('%g'):format(self.p) end,
})
