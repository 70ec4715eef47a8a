-- SPDX-License-Identifier: MIT
-- GPTQ (AutoGPTQ, GPTQModel): qweight has the codes of a column of the weight one after the other in words of 32 bits, qzeros those of zero
-- points minus one (checkpoint_format 'gptq_v2': as they are), which wrap except those of 3 bits, scales (groups, outputs); g_idx, the group of each input, with desc_act=true is no
-- rising one. w = scale * (q - zero), with codes from 0 to 2^bits - 1.
local gptq = {method = 'gptq'}

local FORMATS = {gptq = 1, gptq_v2 = 2}
local WORD = 'int32' -- the only dtype of packed words that there is a reader for
local BITS = {[2] = true, [3] = true, [4] = true, [8] = true}

local function read_layer(p, layer, o)
	local words, scale, zeros = p:take(layer, 'qweight', 2), p:take(layer, 'scales', 2), p:take(layer, 'qzeros', 2)
	local g, outputs, groups = p:take(layer, 'g_idx'), scale:size(2), scale:size(1)
	local inputs = words:size(1) * 32 // o.bits
	local group = o.group == -1 and math.max(1, inputs) or o.group
	p:sized(layer, 'scales', scale, (inputs + group - 1) // group, outputs)
	if words:size(2) ~= outputs then p:sized(layer, 'qweight', words, words:size(1), outputs) end
	local order = o.bits == 3 and 'stream' or 'words'
	local zero = p:unpack(layer, 'qzeros', zeros, {order = order, bits = o.bits, axis = 2, count = outputs, turn = true})
	zero = p:sized(layer, 'qzeros', zero, outputs, groups):to 'int32'
	if o.format == 'gptq' then zero = zero + 1 end
	if o.format == 'gptq' and o.bits ~= 3 then zero = zero:band((1 << o.bits) - 1) end
	local middle = 1 << (o.bits - 1)
	local symmetric = zero:nelem() > 0 and zero:eq(middle):all():item()
	local codes = p:unpack(layer, 'qweight', words, {order = order, bits = o.bits, axis = 1, count = inputs, turn = true, offset = symmetric and middle or 0})
	p:put(layer, {codes = codes, bits = o.bits, scale = scale:t(), zero = not symmetric and zero or nil, group = group, kinds = {g_idx = g ~= nil},
		order = g and p:order(layer, 'g_idx', g, inputs, group)})
end

local function options(c)
	local o = {bits = c:size 'bits', group = c:get 'group_size' == -1 and -1 or c:size('group_size', 128), format = c:get 'checkpoint_format' or 'gptq'}
	if not BITS[o.bits] then c:fail('bits: wanted 2, 3, 4 or 8, got %d', o.bits) end
	c:choice('checkpoint_format', FORMATS, 'gptq')
	c:choice('pack_dtype', {[WORD] = true}, WORD)
	if type(c:get 'dynamic') == 'table' and next(c:get 'dynamic') then c:fail 'dynamic: wanted the same options for all layers, got others for some' end
	return o
end

function gptq.read(c, p)
	local o = options(c)
	for _, layer in ipairs(p:layers 'qweight') do read_layer(p, layer, o) end
end

function gptq.write(c, p, layer)
	local o, w = options(c), p:opened(layer)
	local how = {order = w.bits == 3 and 'stream' or 'words', bits = w.bits, axis = 1, count = w.codes:size(2), turn = true}
	p:packed(layer, 'qweight', w.codes, how)
	local zero = (w.zero - (o.format == 'gptq' and 1 or 0)):band((1 << w.bits) - 1)
	how.axis, how.count = 2, w.codes:size(1)
	p:packed(layer, 'qzeros', zero:to 'uint8', how)
	p.left[layer .. '.scales'], p.left[layer .. '.g_idx'] = w.scale:t():contiguous(), w.kinds.g_idx and w.groups or nil
end

return gptq
