-- SPDX-License-Identifier: MIT
-- nn.Embedding: a row of the weight for each number.
local _, internal = ...
local initial = internal.import 'nn/base/initial'
local module = internal.import 'nn/base/module'

return module.define(nn, {
	name = 'Embedding',
	usage = 'nn.Embedding(count, size)',
	text = [[weight:embedding(ids): the rows of the weight (count, size) for ids from 1 to count. The weight is initialized with normal
random numbers.]],
	example = [[m = nn.Embedding(10, 4)
print(m(tensor{{1, 2, 10}, dtype='int32'}):size())  --> 1 3 4]],
	init = function(self, _, count, size)
		count = module.size('Embedding', 'count', count)
		module.parameter(self, 'weight', initial.of(tensor.randn, count, module.size('Embedding', 'size', size)))
	end,
	weights = {'weight'},
	no_input = true, -- numbers are not quantized
	compute = function(_, ids, weight, out) return weight:embedding(ids, out and {out = out}) end,
	forward = function(self, ids) return self.weight:embedding(ids) end,
	node = {op = 'embedding', attrs = {}, tensors = {'weight'}, input = 2},
	adopt = function() end,
	describe = function(self) return ('%d, %d'):format(self.weight:size()) end,
})
