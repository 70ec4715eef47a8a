-- SPDX-License-Identifier: MIT
-- AWQ (AutoAWQ). Version 'gemm': qweight (inputs, outputs / 8) and qzeros (groups, outputs / 8) have codes of 4 bits of eight outputs in each word,
-- in the order 0 2 4 6 1 3 5 7; scales are (groups, outputs). Version 'gemv': qweight (outputs, inputs / 8) and qzeros (outputs, words) have them
-- one after the other along the inputs and groups; scales are (outputs, 8 * words), of which those behind the groups are 0. w = scale * (q - zero).
local awq = {method = 'awq'}

-- The words of zero points of so many groups (calculate_zeros_width).
local function words_of(groups, group)
	local times = group >= 128 and 1 or group >= 64 and 2 or 4
	return ((groups + 7) // 8 + times - 1) // times * times
end

local function read_gemv(p, layer, wanted)
	local words, scale, zeros = p:take(layer, 'qweight', 2), p:take(layer, 'scales', 2), p:take(layer, 'qzeros', 2)
	local inputs, outputs = words:size(2) * 8, words:size(1)
	local group = wanted == -1 and math.max(1, inputs) or wanted
	local groups = (inputs + group - 1) // group
	local width = words_of(groups, group)
	p:sized(layer, 'scales', scale, outputs, 8 * width)
	p:sized(layer, 'qzeros', zeros, outputs, width)
	local zero = p:unpack(layer, 'qzeros', zeros, {order = 'words', bits = 4, axis = 2, count = 8 * width}):narrow(2, 1, groups)
	p:put(layer, {codes = p:unpack(layer, 'qweight', words, {order = 'words', bits = 4, axis = 2, count = inputs}), bits = 4,
		scale = scale:narrow(2, 1, groups), zero = zero, group = group})
end

local function read_gemm(p, layer, wanted)
	local words, scale, zeros = p:take(layer, 'qweight', 2), p:take(layer, 'scales', 2), p:take(layer, 'qzeros', 2)
	local inputs, outputs = words:size(1), scale:size(2)
	local group = wanted == -1 and math.max(1, inputs) or wanted
	p:sized(layer, 'scales', scale, (inputs + group - 1) // group, outputs)
	local how = {order = 'awq', bits = 4, axis = 2, count = outputs, turn = true}
	local zero = p:sized(layer, 'qzeros', p:unpack(layer, 'qzeros', zeros, how), outputs, scale:size(1))
	p:put(layer, {codes = p:unpack(layer, 'qweight', words, how), bits = 4, scale = scale:t(), zero = zero, group = group})
end

local VERSIONS = {gemm = 'gemm', GEMM = 'gemm', gemv = 'gemv', GEMV = 'gemv'}
local READ = {gemm = read_gemm, gemv = read_gemv}

local function version_of(c) return c:choice(c:get 'version' and 'version' or 'format', VERSIONS, 'gemm') end

function awq.read(c, p)
	local bits, size = c:get 'bits' and 'bits' or 'w_bit', c:get 'group_size' and 'group_size' or 'q_group_size'
	if c:size(bits, 4) ~= 4 then c:fail('%s: wanted 4, got %d', bits, c:size(bits)) end
	local read = READ[version_of(c)]
	if not c:flag('zero_point', true) then c:fail 'zero_point: wanted true, got false' end
	local group = c:get(size) == -1 and -1 or c:size(size, 128)
	for _, layer in ipairs(p:layers 'qweight') do read(p, layer, group) end
end

-- x with zeros behind its columns.
local function padded(x, columns)
	if x:size(2) == columns then return x:contiguous() end
	return tensor.cat({x, tensor.zeros {x:size(1), columns - x:size(2), dtype = x:dtype(), device = 'cpu'}}, {axis = 2})
end

local WRITE = {}
function WRITE.gemm(p, layer, w)
	local how = {order = 'awq', bits = 4, axis = 2, count = w.codes:size(1), turn = true}
	p:packed(layer, 'qweight', w.codes, how)
	p:packed(layer, 'qzeros', w.zero:to 'uint8', how)
	p.left[layer .. '.scales'] = w.scale:t():contiguous()
end

function WRITE.gemv(p, layer, w)
	local inputs, width = w.codes:size(2), words_of(w.scale:size(2), p.kept[layer].group)
	p:packed(layer, 'qweight', w.codes, {order = 'words', bits = 4, axis = 2, count = inputs})
	p:packed(layer, 'qzeros', padded(w.zero:to 'uint8', 8 * width), {order = 'words', bits = 4, axis = 2, count = 8 * width})
	p.left[layer .. '.scales'] = padded(w.scale, 8 * width)
end

function awq.write(c, p, layer) WRITE[version_of(c)](p, layer, p:opened(layer)) end

return awq
