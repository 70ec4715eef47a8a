-- SPDX-License-Identifier: MIT
-- Recordings of runs on a device (tensor/recording.h): making one, and steps of m:fit from one. A step is recorded up to its gradients:
-- the loss is read and the optimizer's step is made behind each replay, so its numbers, schedules and clipping are as always.
local _, internal = ...
local module = internal.import 'nn/base/module'
local is_tensor = internal.is_tensor
local collectgarbage, gethook = collectgarbage, debug.gethook
local recorded = {}

-- Whether runs on these tensors can be recorded now. A hook of the user is to see every call.
function recorded.possible(inputs)
	return internal.recordable(inputs) and type(gethook()) ~= 'function'
end

-- Nothing is collected meanwhile: finalizers may run ops of their own, and what is freed would stay as long as the recording.
local function quietly(recording, state)
	local running = collectgarbage 'isrunning'
	collectgarbage 'stop'
	return setmetatable({}, {__close = function()
		if not state.good then internal.record_free(recording) end
		if running then collectgarbage 'restart' end
	end})
end

-- A recording of run(own inputs), which gives a list of results; nil: it cannot be one, and nothing has run. constants: tensors by
-- whose values the host may go.
function recorded.make(inputs, constants, training, run)
	collectgarbage()
	local recording, own = internal.record_begin(inputs, constants, training)
	if not recording then return nil end
	local state = {}
	local _ <close> = quietly(recording, state)
	local good, results = pcall(run, own)
	state.good = good and internal.record_end(recording, results)
	return state.good and recording or nil
end

-- Inputs of one key can have one recording.
function recorded.key(inputs)
	local words = {inputs[1]:device()}
	for _, x in ipairs(inputs) do words[#words + 1] = table.concat({x:dtype(), x:size()}, ' ') end
	return table.concat(words, ',')
end

---------------------------------------------------------------- steps of training

-- Losses of nn.<name> are ops, which do nothing but compute.
local LOSSES = {'crossentropy', 'nll', 'mse', 'l1', 'smoothl1', 'huber', 'kldiv', 'bce', 'bcelogits'}
local function is_op(loss)
	local known = false
	for _, name in ipairs(LOSSES) do known = known or loss == nn[name] end
	return known and debug.getinfo(loss, 'S').what == 'C'
end

-- Whether a call of m runs kinds of nn alone, and leaves nothing behind but what its ops write: no function of the user, nothing that
-- watches, no codes, no state from batch to batch.
local function is_plain(m)
	local plain = true
	module.walk(m, function(_, inner)
		local class = module.class_of(inner)
		plain = plain and module.classes[class.name] == class and class.name ~= 'module' and not rawget(inner, 'forward') and
			not rawget(inner, module.HOOK) and not rawget(inner, 'watch') and not rawget(inner, 'quantized') and not rawget(inner, 'carrying')
	end)
	return plain
end

local function is_optimizer(o) return getmetatable(o) == debug.getregistry()['quoll.optimizer'] end

-- The parameters that want a gradient.
local function wanting(m)
	local list = {}
	for _, p in ipairs(m:parameters()) do
		if p:requires_grad() then list[#list + 1] = p end
	end
	return list
end

local function same_list(a, b)
	if #a ~= #b then return false end
	for i, x in ipairs(a) do
		if not rawequal(x, b[i]) then return false end
	end
	return true
end

-- Records the step for batches like this one; s.useless if it cannot.
local function record(s, inputs, gradients)
	local list = wanting(s.m)
	s.opt:zero()
	for _, p in ipairs(list) do
		if p:grad() then s.useless = true end -- nobody forgets it: it would be a sum over steps
	end
	if s.useless then return end
	s.recording = recorded.make(inputs, {}, true, function(own)
		local results = {gradients(own[1], own[2])}
		s.list, s.at = list, {}
		for i, p in ipairs(list) do
			local g = p:grad()
			if g then
				results[#results + 1] = g
				s.at[#results] = i
			end
		end
		return results
	end)
	s.useless = not s.recording
end

-- The loss of the batch, with the gradients of all parameters set; nil: the step is to be made plainly.
local function run(s, inputs)
	if not same_list(s.list, wanting(s.m)) then
		s.useless = true
		return nil
	end
	local results = internal.replay(s.recording, inputs)
	if not results then
		s.useless = true
		return nil
	end
	s.opt:zero()
	for at, i in next, s.at do internal.set_grad(s.list[i], results[at]) end
	return results[1]
end

local methods = {}
local meta = {__index = methods}
function meta.__close(s)
	if s.recording then internal.record_free(s.recording) end
	s.recording, s.useless = nil, true
end

-- Steps of one pass over the data, to be closed: its recording ends with it. gradients(x, y) makes the step up to the gradients and
-- gives the loss.
function recorded.steps(m, o, gradients)
	local useless = o.replay == false or not (is_op(o.loss) and is_optimizer(o.opt) and is_plain(m))
	return setmetatable({m = m, opt = o.opt, gradients = gradients, useless = useless}, meta)
end

-- The loss of the batch from the recording, which the second batch of a size makes; nil: there is none.
function methods.run(s, x, y)
	if s.useless or not (is_tensor(x) and is_tensor(y)) then return nil end
	local inputs = {x, y}
	if not recorded.possible(inputs) then return nil end
	local key = recorded.key(inputs)
	if not s.recording and key == s.key then record(s, inputs, s.gradients) end
	local loss
	if s.recording and key == s.key and not s.useless then loss = run(s, inputs) end
	if s.useless and s.recording then meta.__close(s) end
	if not s.recording then s.key = key end
	return loss
end

return recorded
