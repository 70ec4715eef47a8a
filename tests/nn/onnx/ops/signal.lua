-- SPDX-License-Identifier: MIT
-- labels: quick
-- Windows, DFT and STFT: numbers of NumPy (fft) and PyTorch (windows, stft).
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local a, b = {}, {}
for i = 0, 5 do a[i + 1], b[i + 1] = i * 7 % 11 - 5, i * 5 % 9 - 3 end
local x = tensor {a, b}
local real = x:view(2, 6, 1)
local complex = tensor.stack({x, tensor {b, a}}, {axis = 3})
local function number(n) return tensor {n, dtype = 'int64'}:sum() end
-- The numbers of the op, in order; axis and length: nil as by default.
local function dft(given, o, axis, length)
	local inputs, fixed = {given, length and number(length) or false, axis and number(axis) or false}, {}
	for i = 2, 3 do fixed[#fixed + 1] = inputs[i] and i or nil end
	local y = run('DFT', inputs, o, {opset = 20, fixed = fixed})
	return y:reshape(y:nelem())
end

it('transforms', function()
	assert(equal(dft(real, {}), {-2, 0, -10, -1.732051, 1, -6.928203, -10, 0, 1, 6.928203, -10, 1.732051, 3, 0, -1.5, 2.598076, -1.5, 0.8660254, -15, 0, -1.5, -0.8660254, -1.5, -2.598076}))
	assert(equal(dft(real, {onesided = 1}, nil, 5), {1, 0, -6.5, 3.16344, -6.5, -7.245181, -1, 0, -3.5, 0.08575671, -3.5, -6.518638}))
	assert(equal(dft(real, {onesided = 1}, 1, 8), {-2, 0, -6, -5.071068, -2, 6, -6, -9.071068, -10, 0, 3, 0, -5.535534, 1.292893, -2, -3, 1.535534, -2.707107, -15, 0}))
	assert(equal(dft(complex, {}, 0), {-8, -8, 4, 4, -4, -4, 8, 8, 0, 0, 1, 1, -2, 2, 0, 0, 0, 0, 2, -2, 2, -2, -7, 7}))
	assert(equal(dft(complex, {inverse = 1}), {-0.3333333, 0.5, -1.233654, 0.03867513, 0.3110042, 0.9047005, -1.666667, -2.5, 0.0223291, -1.404701, -2.099679, -0.5386751, 0.5, -0.3333333, -0.5386751, -2.099679, -1.404701, 0.0223291, -2.5, -1.666667, 0.9047005, 0.3110042, 0.03867513, -1.233654}))
	local half = complex:narrow(2, 1, 4):contiguous()
	assert(equal(dft(half, {inverse = 1, onesided = 1}), {0, -1, -1.154701, -3, 1.154701, -1, 0, -0.3333333, -1.154701, -2.333333, 1.154701, -0.3333333}))
	assert(equal(dft(half, {inverse = 1, onesided = 1}, nil, 5), {-1, -0.3961898, -3.125501, -0.6633538, 0.1850442, -0.6, 0.00381018, -2.725501, -0.2633538, 0.5850442}))
	local before = run('DFT', {real}, {axis = 1}, {opset = 17}) -- an attribute before opset 20
	assert(equal(before:reshape(24), dft(real, {})))
end)

it('makes windows', function()
	local function window(op, size, o) return run(op, {number(size)}, o, {fixed = {1}, opset = 17}) end
	assert(equal(window('HannWindow', 4), {0, 0.5, 1, 0.5}) and equal(window('HannWindow', 5, {periodic = 0}), {0, 0.5, 1, 0.5, 0}))
	assert(equal(window('HammingWindow', 4), {0.08695652, 0.5434783, 1, 0.5434783}))
	assert(equal(window('BlackmanWindow', 5, {periodic = 0, output_datatype = 11}), {0, 0.34, 1, 0.34, 0}))
	assert(window('HannWindow', 1, {periodic = 0, output_datatype = 10}):dtype() == 'float16')
end)

it('transforms frames', function()
	local w = tensor {0, 0.5, 1, 0.5}
	local y = run('STFT', {real, number(2), w}, {}, {fixed = {2}, opset = 17})
	assert(y:size(2) == 2 and y:size(3) == 3 and y:size(4) == 2)
	assert(equal(y:reshape(24), {1.5, 0, 2, 1.5, -5.5, 0, 2, 0, -1, -4, 8.881784e-16, 0, 0.5, 0, 2, 0.5, -4.5, 0, 2.5, 0, 1, 0.5, -4.5, 0}))
	local whole = run('STFT', {real, number(3), false, number(3)}, {onesided = 0}, {fixed = {2, 4}, opset = 17})
	assert(equal(whole:select(2, 2):reshape(12), dft(real:narrow(2, 4, 3):contiguous(), {})))
end)

it('refuses others', function()
	local function refused(want, ...)
		local ok, message = pcall(...)
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
	end
	refused('wanted a last axis of 1 or 2 parts', dft, tensor.ones(2, 6, 3), {})
	refused('wanted a last axis of 1 or 2 parts', dft, real, {}, 2)
	refused('axis: wanted one of 3 axes, got 3', dft, real, {}, 3)
	refused('dft_length: wanted 1 or more, got 0', dft, real, {}, nil, 0)
	refused('onesided: wanted real numbers, got complex ones', dft, complex, {onesided = 1})
	refused('wanted a matrix of 1 to 2^24 numbers, got 6 x 1099511627776', dft, real, {}, nil, 1 << 40)
	refused('size: wanted 1 to 2^24, got 0', run, 'HannWindow', {number(0)}, {}, {fixed = {1}, opset = 17})
	refused('output_datatype: wanted floats, got number 7', run, 'HannWindow', {number(3)}, {output_datatype = 7}, {fixed = {1}, opset = 17})
	refused('wanted a step of 1 or more and frames of 1 to 6, got 0 and 4', run, 'STFT', {real, number(0), tensor.ones(4)}, {}, {fixed = {2}, opset = 17})
	refused('wanted a window or frame_length, got neither', run, 'STFT', {real, number(1)}, {}, {fixed = {2}, opset = 17})
end)
