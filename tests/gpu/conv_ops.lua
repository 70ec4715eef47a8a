-- SPDX-License-Identifier: MIT
-- Convolutions on a device. Ordered products (level ref) have the bits of the CPU, gradients and all options
-- included; others are near it. Nothing runs on the host.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'
local function near(a, b)
	a, b = a:to 'cpu', b:to 'cpu'
	return (a - b):abs():max():item() <= 1e-5 * (1 + a:abs():max():item())
end

-- Kernels in the ledger since the last reset; none may be the host's.
local function ran()
	local found = {}
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'host' and row.path ~= 'fallback', row.op .. ': ' .. tostring(row.reason))
		found[row.op] = row.path .. ' ' .. row.kernel
	end
	return found
end

-- y, dx, dw, db
local function all(given, options, device)
	local t = {}
	for i, x in ipairs(given) do t[i] = (x:to(device)):detach():clone():requires_grad_() end
	local y = t[1]:conv2d(t[2], t[3], options)
	y:backward(y:detach() * 0.5)
	return {y, t[1]:grad(), t[2]:grad(), t[3]:grad()}
end

tensor.seed(4)
local cases = {
	{'padding', 5, 7, 9, 11, 10, 3, 3, {pad=1}},
	{'stride', 3, 7, 9, 11, 10, 3, 3, {pad=1, stride=2}},
	{'everything uneven', 3, 7, 9, 11, 10, 3, 2, {pad={1, 0, 2, 1}, stride={2, 3}, dilation={2, 1}}},
	{'steps longer than the kernel', 2, 3, 7, 8, 4, 2, 2, {stride=3}},
	{'groups', 2, 6, 8, 8, 9, 3, 3, {pad=1, groups=3}},
	{'depthwise', 3, 5, 9, 20, 5, 3, 3, {pad=1, groups=5}},
	{'depthwise of wide images', 2, 2, 3, 600, 4, 3, 3, {pad=1, groups=2, stride={1, 1}}},
	{'parts of many images', 37, 3, 8, 8, 5, 3, 3, {pad=1}},
	{'parts of large images', 1, 2, 40, 41, 4, 3, 3, {pad=1}},
	{'wide images', 1, 2, 2, 700, 3, 1, 3, {pad={0, 0, 1, 1}}},
	{'small images, many of them', 33, 4, 4, 4, 6, 3, 3, {pad=1}},
	{'relu', 2, 3, 6, 6, 4, 3, 3, {pad=1, act='relu'}},
	{'gelu', 2, 3, 6, 6, 4, 3, 3, {pad=1, act='gelu'}},
	{'sigmoid', 2, 3, 6, 6, 4, 3, 3, {act='sigmoid'}},
}

for _, c in ipairs(cases) do
	it(c[1], function()
		local name, n, channels, h, w, o, kh, kw, options = table.unpack(c)
		local given = {tensor.randn(n, channels, h, w), tensor.randn(o, channels // (options.groups or 1), kh, kw), tensor.randn(o)}
		for _, level in ipairs {'ref', 'native'} do
			local _ <close> = setmetatable({hw.force(level)}, {__close = function(t) hw.force(t[1]) end})
			local wanted = all(given, options, 'cpu')
			quant.log 'reset'
			local got = all(given, options, D)
			local kernels = ran()
			for _, op in ipairs {'conv2d', 'conv2d_input', 'conv2d_weight'} do assert(kernels[op] == 'float32 conv_f32', op) end
			for i, what in ipairs {'y', 'dx', 'dw', 'db'} do
				assert((level == 'ref' and same or near)(wanted[i], got[i]), ('%s, %s: %s'):format(name, level, what))
			end
		end
	end)
end

it('16-bit floats, views, and float64 by way of the host', function()
	local x, w = tensor.randn(2, 8, 8, 3):permute(1, 4, 2, 3), tensor.randn(4, 3, 3, 3)
	local before = hw.force 'ref'
	for _, dtype in ipairs {'float16', 'bfloat16'} do
		local p, q = x:to(dtype), w:to(dtype)
		assert(same(p:conv2d(q, {pad=1}), (p:to(D)):conv2d(q:to(D), {pad=1})), dtype)
	end
	assert(same(x:conv2d(w), (x:to(D)):conv2d(w:to(D))))
	assert(same(x:to('float64'):conv2d(w:to 'float64'), (x:to('float64'):to(D)):conv2d(w:to('float64'):to(D))))
	hw.force(before)
end)

it('a weight of codes is decoded on the way', function()
	local x, w, b = tensor.randn(2, 3, 8, 8), tensor.randn(6, 3, 3, 3), tensor.randn(6)
	local before = hw.force 'ref'
	for _, spec in ipairs {'int8/1', 'int4/1', 'uint8'} do
		local q = w:quantize(spec)
		local wanted = x:conv2d(q, b, {pad=1, act='relu'})
		local dx, dq, db = x:to(D), q:to(D), b:to(D)
		quant.log 'reset'
		local got = dx:conv2d(dq, db, {pad=1, act='relu'})
		assert(ran().conv2d == 'float32 conv_f32' and same(wanted, got), spec)
	end
	hw.force(before)
end)

it('codes are multiplied as integers, by the bits of the CPU', function()
	local x, w, b = tensor.randn(2, 5, 9, 8):quantize 'uint8', tensor.randn(6, 5, 3, 3):quantize 'int8/1', tensor.randn(6)
	local dx, dw, db = x:to(D), w:to(D), b:to(D)
	for _, o in ipairs {{pad=1}, {stride=2, act='relu'}, {pad=1, act='gelu'}, {out={dtype='uint8', scale=0.1, zero_point=5}, act='relu'},
		{out={dtype='int8', scale=0.2}, act='tanh'}} do
		local y = x:conv2d(w, b, o)
		quant.log 'reset'
		local dy = dx:conv2d(dw, db, o)
		local kernel = ran().conv2d
		assert(kernel:find '^int8.* conv_i8_mma$' and same(y:dequantize(), dy:dequantize()), kernel)
	end
end)
