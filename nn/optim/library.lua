-- SPDX-License-Identifier: MIT
-- optim: optimizers (the files of nn/optim.def), schedules, and the norm of gradients.
local optim, internal = ...
local base = internal.import 'interp/prelude/base'
local optimizer = internal.import 'nn/optim/optimizer'
local doc, fail = base.doc, base.fail

doc {name = 'optim', kind = 'module', usage = 'optim.adam(m, {lr=1e-3})',
	text = [[Optimizers: o = optim.sgd(m, {lr=0.1}) makes one for the parameters of a module or for a list of tensors; after
loss:backward(), o:step() updates them and o:zero() clears the gradients. o:lr, o:state and o:load serve custom schedules
and checkpoints. lr= also takes a schedule: optim.cosine, optim.onecycle, optim.step, or any function of the step number.]]}

for _, file in ipairs(internal.registry 'nn/optim') do optimizer.define(optim, internal.import(file)) end
for name, schedule in pairs(internal.import 'nn/optim/schedules') do optim[name] = schedule end

doc {name = 'optim.norm', usage = 'optim.norm(m)',
	text = [[The global norm of the gradients of a module or of a list of tensors: the square root of the sum of all squares, accumulated in
float64. Tensors without a gradient count as 0. nan or inf: some gradient is not finite.]],
	example = [[x = tensor{3, 4, grad=true}
y = (x * x):sum() * 0.5
y:backward()
print(optim.norm{x})  --> 5.0]]}
function optim.norm(m)
	return internal.gradient_norm(optimizer.gradients('norm', m))
end

local clip = doc {name = 'optim.clip', usage = 'optim.clip(m, {clip=, limit=})',
	text = [[Clips the gradients of a module or of a list of tensors and returns their norm before clipping. The optimizers' options clip= and
limit= do the same within the step, without writing the gradients. If the norm is nan or inf, nothing is changed.]],
	options = {{'clip', 'number', 'maximum global norm; larger gradients are scaled down to it'},
		{'limit', 'number', 'clamps each element to -limit..limit, after clip'}},
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
