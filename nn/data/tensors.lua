-- SPDX-License-Identifier: MIT
-- data.tensors: a data set of existing tensors.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local fail, describe = base.fail, base.describe

local entry = base.doc {name = 'data.tensors', usage = 'data.tensors(x, y)  data.tensors(x, y, {classes=, name=})',
	text = [[A `dataset` of samples along the first axis of x and their targets along that of y (which may be left
out). Nothing is copied.]],
	example = [[ds = data.tensors(tensor.ones(5, 2), tensor{1,2,1,2,1, dtype='int64'})
print(#ds, ds:get(2))  --> 5 float32(2)  1 1 2]],
	options = {{'classes', 'list', 'names of the classes 1, 2, …'}, {'name', 'text', 'what print calls it'}}}

local function check(name, t)
	if not base.is_tensor(t) or t:dim() == 0 then
		fail('tensors: %s: wanted a tensor with samples along its first axis, got %s', name,
			describe(t))
	end
end

return function(x, y, options)
	check('x', x)
	if type(y) == 'table' and options == nil then y, options = nil, y end
	options = base.options(entry, options)
	if y ~= nil then
		check('y', y)
		if y:size(1) ~= x:size(1) then
			fail('tensors: y: wanted as many targets as samples, got %d and %d', y:size(1), x:size(1))
		end
	end
	return dataset.new {x = x, y = y, classes = options.classes, name = options.name}
end
