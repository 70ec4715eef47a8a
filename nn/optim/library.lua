-- SPDX-License-Identifier: MIT
-- optim: optimizers (the files of nn/optim.def), schedules, and the norm of gradients.
local optim, internal = ...
local base = internal.import 'interp/prelude/base'
local optimizer = internal.import 'nn/optim/optimizer'
local doc, fail = base.doc, base.fail

doc {name = 'optim', kind = 'module', usage = 'optim.adam(m, {lr=1e-3})',
	text = [[Optimizers: o = optim.sgd(m, {lr=0.1}) makes one for the parameters of a module or for a list of tensors; after
loss:backward(), o:step() changes them and o:zero() forgets the gradients. o:lr, o:state and o:load are for schedules of one's own
and checkpoints. lr= also takes a schedule: optim.cosine, optim.onecycle, optim.step, or any function of the number of the step.]]}

for _, file in ipairs(internal.registry 'nn/optim') do optimizer.define(optim, internal.import(file)) end
for name, schedule in pairs(internal.import 'nn/optim/schedules') do optim[name] = schedule end

doc {name = 'optim.norm', usage = 'optim.norm(m)',
	text = [[The norm of all gradients of a module or of a list of tensors together: the square root of the sum of all squares, added up in
float64. Tensors without a gradient count as 0. nan or inf: some gradient is not finite.]],
	example = [[x = tensor{3, 4, grad=true}
y = (x * x):sum() * 0.5
y:backward()
print(optim.norm{x})  --> 5.0]]}
function optim.norm(m)
	return internal.gradient_norm(optimizer.gradients('norm', m))
end

local clip = doc {name = 'optim.clip', usage = 'optim.clip(m, {clip=, limit=})',
	text = [[Changes the gradients of a module or of a list of tensors, and returns their norm before. The optimizers' options clip= and
limit= do the same within the step, without writing the gradients. A norm that is nan or inf leaves all as it is.]],
	options = {{'clip', 'number', 'largest norm of all gradients together; above it all are scaled down'},
		{'limit', 'number', 'each element is limited to -limit..limit, after clip'}},
	example = [[x = tensor{3, 4, grad=true}
y = (x * x):sum() * 0.5
y:backward()
print(optim.clip({x}, {clip=1}), optim.norm{x})  --> 5.0 1.0000]]}
function optim.clip(m, options)
	options = base.options(clip, options)
	local gradients = optimizer.gradients('clip', m)
	local most = options.clip and optimizer.number('clip', 'clip', options.clip, 0, math.huge)
	local limit = options.limit and optimizer.number('clip', 'limit', options.limit, 0, math.huge)
	if not (most or limit) or limit == 0 then fail('clip: wanted clip= or limit= above 0, got none') end
	local scale, norm = optimizer.scale(gradients, most or math.huge)
	if scale then internal.gradient_clip(gradients, scale, limit or 0.0) end
	return norm
end
