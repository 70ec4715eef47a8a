-- SPDX-License-Identifier: MIT
-- AWQ (AutoAWQ, version 'gemm'): qweight (inputs, outputs / 8) and qzeros (groups, outputs / 8) have codes of 4 bits of eight outputs in each word,
-- in the order 0 2 4 6 1 3 5 7; scales are (groups, outputs). w = scale * (q - zero).
local awq = {method = 'awq'}

local function read_layer(p, layer, wanted)
	local words, scale, zeros = p:take(layer, 'qweight', 2), p:take(layer, 'scales', 2), p:take(layer, 'qzeros', 2)
	local inputs, outputs = words:size(1), scale:size(2)
	local group = wanted == -1 and math.max(1, inputs) or wanted
	p:sized(layer, 'scales', scale, (inputs + group - 1) // group, outputs)
	local how = {order = 'awq', bits = 4, axis = 2, count = outputs, turn = true}
	local zero = p:sized(layer, 'qzeros', p:unpack(layer, 'qzeros', zeros, how), outputs, scale:size(1))
	p:put(layer, {codes = p:unpack(layer, 'qweight', words, how), bits = 4, scale = scale:t(), zero = zero, group = group})
end

function awq.read(c, p)
	local bits, size = c:get 'bits' and 'bits' or 'w_bit', c:get 'group_size' and 'group_size' or 'q_group_size'
	if c:size(bits, 4) ~= 4 then c:fail('%s: wanted 4, got %d', bits, c:size(bits)) end
	c:choice(c:get 'version' and 'version' or 'format', {gemm = true, GEMM = true}, 'gemm')
	if not c:flag('zero_point', true) then c:fail 'zero_point: wanted true, got false' end
	local group = c:get(size) == -1 and -1 or c:size(size, 128)
	for _, layer in ipairs(p:layers 'qweight') do read_layer(p, layer, group) end
end

function awq.write(_, p, layer)
	local w = p:opened(layer)
	local how = {order = 'awq', bits = 4, axis = 2, count = w.codes:size(1), turn = true}
	p:packed(layer, 'qweight', w.codes, how)
	p:packed(layer, 'qzeros', w.zero:to 'uint8', how)
	p.left[layer .. '.scales'] = w.scale:t():contiguous()
end

return awq
