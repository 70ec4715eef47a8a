-- SPDX-License-Identifier: MIT
-- Windows, DFT and STFT. Complex numbers are the last axis: real and imaginary part, or a real part alone. A transform is two products with
-- matrices of cosines and sines, which suits the lengths of audio models.
local _, internal = ...
local ops = {}

---------------------------------------------------------------- windows

local function window(terms)
	return function(n, size)
		local count = n:number(size, 'size')
		if count < 1 or count > 1 << 24 then n:fail('size: wanted 1 to 2^24, got %d', count) end
		local dtype = internal.onnx_dtype(n:attr('output_datatype', 1))
		if not dtype or not quant.dtype(dtype).float then n:fail('output_datatype: wanted floats, got number %d', n:attr('output_datatype', 1)) end
		local period = n:attr('periodic', 1) ~= 0 and count or count - 1
		local list = {dtype = 'float64'}
		for i = 0, count - 1 do
			local angle, sum = period > 0 and 2 * math.pi * i / period or 0, terms[1]
			for k = 2, #terms do sum = sum + terms[k] * math.cos((k - 1) * angle) end
			list[i + 1] = sum
		end
		return tensor(list):to(dtype)
	end
end
ops.HannWindow = window {0.5, -0.5}
ops.HammingWindow = window {25 / 46, 25 / 46 - 1}
ops.BlackmanWindow = window {0.42, -0.5, 0.08}

---------------------------------------------------------------- transforms

local MOST = 1 << 24 -- numbers of a matrix

-- Matrices (rows, columns) of factor(row, column) times cosines and sines of 2 pi row column / length.
local function matrices(n, rows, columns, length, factor)
	if rows < 1 or columns < 1 or rows > MOST // columns then n:fail('wanted a matrix of 1 to 2^24 numbers, got %d x %d', rows, columns) end
	return n:once(('%d %d %d'):format(rows, columns, length), function()
		local cos, sin = {dtype = 'float64'}, {dtype = 'float64'}
		for i = 0, rows - 1 do
			for k = 0, columns - 1 do
				local angle, f = 2 * math.pi * (i * k % length) / length, factor(i, k)
				cos[#cos + 1], sin[#sin + 1] = f * math.cos(angle), f * math.sin(angle)
			end
		end
		return {tensor(cos):view(rows, columns), tensor(sin):view(rows, columns)}
	end)
end

-- Real parts of the whole transform of half of one: numbers between the ends count twice, as those that are not there are their conjugates.
local function real_of_half(n, re, im, length)
	local rows = math.min(re:size(-1), length // 2 + 1)
	local m = matrices(n, rows, length, length, function(i) return (i == 0 or 2 * i == length) and 1 / length or 2 / length end)
	local cos, sin = m[1]:to(re:dtype()), m[2]:to(re:dtype())
	local y = re:narrow(-1, 1, rows):matmul(cos)
	return im and y - im:narrow(-1, 1, rows):matmul(sin) or y
end

-- The transform of re + i im, whose elements are the last axis.
local function transform(n, re, im, length, columns, inverse)
	local rows = math.min(re:size(-1), length) -- what is missing is 0
	local m = matrices(n, rows, columns, length, function() return inverse and 1 / length or 1 end)
	local cos, sin = m[1]:to(re:dtype()), m[2]:to(re:dtype())
	re, im = re:narrow(-1, 1, rows), im and im:narrow(-1, 1, rows)
	local a, b = re:matmul(cos), re:matmul(sin)
	if not im then return a, inverse and b or -b end
	local c, d = im:matmul(cos), im:matmul(sin)
	if inverse then return a - d, c + b end
	return a + d, c - b
end

-- Real and imaginary part of x with `axis` last.
local function parts_of(n, x, axis)
	local rank = x:dim()
	if rank < 2 or x:size(-1) > 2 or x:size(-1) < 1 or axis == rank then n:fail 'wanted a last axis of 1 or 2 parts behind that of the transform, got others' end
	local function part(i)
		local y = x:select(-1, i)
		return axis == rank - 1 and y or y:transpose(axis, rank - 1)
	end
	return part(1), x:size(-1) == 2 and part(2) or nil
end

local function joined(re, im, axis)
	local y = im and tensor.stack({re, im}, {axis = re:dim() + 1}) or re:unsqueeze(re:dim() + 1)
	local last = re:dim()
	return axis == last and y or y:transpose(axis, last)
end

local function transformed(n, x, axis, length, inverse, onesided)
	local re, im = parts_of(n, x, axis)
	length = length or inverse and onesided and 2 * (x:size(axis) - 1) or x:size(axis)
	if math.type(length) ~= 'integer' or length < 1 then n:fail('dft_length: wanted 1 or more, got %s', tostring(length)) end
	if inverse and onesided then return joined(real_of_half(n, re, im, length), nil, axis) end
	if onesided and im then n:fail 'onesided: wanted real numbers, got complex ones' end
	local a, b = transform(n, re, im, length, onesided and length // 2 + 1 or length, inverse)
	return joined(a, b, axis)
end

function ops.DFT(n, x, length, axis)
	local at = n.opset < 20 and n:attr('axis', 1) or axis and n:number(axis, 'axis') or -2
	return transformed(n, x, n:axis(at, x:dim()), length and n:number(length, 'dft_length'), n:attr('inverse', 0) ~= 0, n:attr('onesided', 0) ~= 0)
end

function ops.STFT(n, x, step, weights, length)
	local hop = n:number(step, 'frame_step')
	local size = weights and weights:size(1) or length and n:number(length, 'frame_length') or n:fail 'wanted a window or frame_length, got neither'
	if x:dim() ~= 3 then n:fail('signal: wanted 3 axes, got %d', x:dim()) end
	if hop < 1 or size < 1 or size > x:size(2) then n:fail('wanted a step of 1 or more and frames of 1 to %d, got %d and %d', x:size(2), hop, size) end
	local frames = (x:size(2) - size) // hop + 1
	local index = n:once('index', function()
		local list = {dtype = 'int64'}
		for f = 0, frames - 1 do
			for i = 1, size do list[#list + 1] = f * hop + i end
		end
		return tensor(list)
	end)
	local y = x:indexselect(2, index):view(x:size(1), frames, size, x:size(3))
	if weights then y = y * weights:view(1, 1, size, 1) end
	return transformed(n, y, 3, nil, false, n:attr('onesided', 1) ~= 0)
end

return ops
