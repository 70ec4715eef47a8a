-- SPDX-License-Identifier: MIT
-- labels: quick host
-- maxpool2d and avgpool2d: against PyTorch 2, the float32 shortcuts against the plain rows, nan, ties, and what is
-- refused. tests/nn/gradients.lua compares the gradients with finite differences.
local function sequence(k, ...)
	local n = 1
	for _, size in ipairs {...} do n = n * size end
	return (tensor.arange(1, n):to 'float64' * k):sin():view(...):detach()
end
local function near(got, wanted)
	assert((got:to('float64'):reshape(-1) - tensor(wanted):to 'float64'):abs():max():item() <= 2e-6)
end

-- name, arguments, then what PyTorch gives for y and dx with the gradient sin(0.7 i)
for _, c in ipairs {
	{'maxpool2d', {3, {stride=2, pad=1}}, {0.796565, 0.995881, 0.995881, 0.796565, 0.679305,
		0.898708}, {0, 0, 0, 1.84866, 0,
		0.979206, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.350783, -0.871576}},
	{'avgpool2d', {{3, 2}, {stride={2, 1}, pad={1, 1}}}, {0.19303, 0.392752, 0.379105, 0.314147,
		0.206671, 0.0719065, -0.0598925,
		-0.131938, -0.146492, -0.14122, -0.116834, -0.0500613}, {0.271611, 0.30811, 0.1997, -0.00263251,
		-0.203727, 0.00265803,
		0.205701, 0.312, 0.27156, 0.103401, -0.268953, -0.102409, 0.1123, 0.274192, 0.307128, -0.268953,
		-0.102409, 0.1123,
		0.274192, 0.307128}},
	{'avgpool2d', {}, {0.0974721}, {}},
} do
	for dtype in ('float32 float64'):gmatch '%w+' do
		it(('%s as PyTorch in %s'):format(c[1], dtype), function()
			local x = sequence(0.37, 1, 1, 4, 5):to(dtype):detach():requires_grad_()
			local y = x[c[1]](x, table.unpack(c[2]))
			near(y, c[3])
			y:backward(sequence(0.7, y:size()):to(dtype))
			if #c[4] > 0 then near(x:grad(), c[4]) else near(x:grad(), tensor.full{20, value=0.0322109}:totable()) end
		end)
	end
end

-- The shortcuts of float32 have the result and the gradient of float64, which has none.
tensor.seed(5)
local function same(op, x, ...)
	local a, b = x:detach():requires_grad_(), x:to('float64'):detach():requires_grad_()
	local y, z = a[op](a, ...), b[op](b, ...)
	local g = tensor.randn(y:size())
	y:backward(g)
	z:backward(g:to 'float64')
	local function equal(p, q)
		return ((p:to 'float64' - q):abs():le(1e-6) + (p:isnan() * q:isnan())):gt(0):all():item()
	end
	assert(equal(y, z) and equal(a:grad(), b:grad()), op)
end
it('windows of 2 x 2 side by side, any width', function()
	for _, width in ipairs {2, 4, 8, 16, 34, 130, 300} do same('maxpool2d', tensor.randn(3, 2, 4, width), 2) end
	same('maxpool2d', tensor.randn(2, 2, 5, 7), 2)
	same('maxpool2d', tensor.randn(2, 2, 6, 600), 2, {stride=1})
	same('maxpool2d', tensor.randn(2, 2, 9, 900), 3, {stride=3, pad=1})
end)
it('equal numbers and nan', function()
	same('maxpool2d', tensor.ones(1, 1, 4, 40), 2)
	same('maxpool2d', tensor.ones(1, 1, 4, 40), 3, {stride=1})
	local x = tensor.randn(1, 1, 8, 40)
	for i = 1, 8 do x[1][1][i][5 * i - 2] = 0 / 0 end
	assert(x:maxpool2d(2):isnan():sum():item() == 8)
	same('maxpool2d', x, 2)
	same('maxpool2d', x, 3, {stride=2, pad=1})
	assert(tensor.full{1, 1, 2, 2, value=-math.huge}:maxpool2d(2):item() == -math.huge)
end)
it('whole planes of any size', function()
	for _, s in ipairs {{1, 1}, {3, 5}, {4, 4}, {16, 16}, {17, 40}} do
		same('avgpool2d', tensor.randn(3, 2, table.unpack(s)))
	end
	print(tensor.randn(2, 3, 4, 5):avgpool2d('all'):size())  --> 2 3 1 1
	print(tensor.randn(2, 3, 4, 5):avgpool2d{k='all'}:size())  --> 2 3 1 1
end)
it('other dtypes, nothing to do, and the ledger', function()
	local x = tensor.randn(2, 3, 4, 4)
	assert(x:to('float16'):maxpool2d(2):eq(x:to('float16'):to('float32'):maxpool2d(2):to 'float16'):all():item())
	assert(x:permute(1, 2, 4, 3):maxpool2d(2):eq(x:maxpool2d(2):permute(1, 2, 4, 3)):all():item())
	print(tensor.zeros(0, 3, 4, 4):maxpool2d(2):size())  --> 0 3 2 2
	quant.log(true)
	x:maxpool2d(2)
	x:to('float64'):avgpool2d(2)
	for _, row in ipairs(quant.log()) do
		local path = {maxpool2d='float32', avgpool2d='float64'}
		if path[row.op] then assert(row.kernel:find '^simd' and row.path == path[row.op]) end
	end
	local q = x:quantize 'int8'
	assert(q:maxpool2d(2):eq(q:dequantize():maxpool2d(2)):all():item())
end)

local x = tensor.ones(2, 3, 5, 6)
local function refused(pattern, op, ...)
	local ok, message = pcall(x[op], ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('maxpool2d: k: wanted the window: a number or {h, w}, got nothing', 'maxpool2d', x)
refused('maxpool2d: pad: wanted at most half of the kernel (3 x 3), got 2', 'maxpool2d', x, 3, {pad=2})
refused('maxpool2d: wanted a kernel no larger than the padded input, got a kernel of 6 x 6', 'maxpool2d', x, 6)
refused('avgpool2d: wanted a kernel of at least 1 x 1, got 0 x 2', 'avgpool2d', x, {0, 2})
refused('avgpool2d: k: wanted a number or {h, w}, got 3 numbers', 'avgpool2d', x, {1, 2, 3})
refused("avgpool2d: k: wanted one of all, got 'any'", 'avgpool2d', x, 'any')
refused('avgpool2d: wanted a kernel of at least 1 x 1, got 0 x 4', 'avgpool2d', tensor.zeros(2, 3, 0, 4))
refused('maxpool2d: wanted x (n, c, h, w), got (3, 5, 6)', 'maxpool2d', x[1], 2)
refused('maxpool2d: wanted floats or a quantized tensor, got int32', 'maxpool2d', x:to 'int32', 2)
refused('maxpool2d: stride: wanted 1 or more and at most 1073741824, got 0', 'maxpool2d', x, 2, {stride=0})

it('a window as large as the plane that begins in the padding', function()
	local x = tensor.arange(1, 16):to 'float32':view(1, 1, 4, 4)
	print(x:avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):item() * 16)  --> 54.0
	print(x:to('float64'):avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):item() * 16)  --> 54.0
	x:requires_grad_()
	x:avgpool2d(4, {stride=2, pad={1, 0, 1, 0}}):sum():backward()
	print(x:grad():sum():item() * 16)  --> 9.0
end)
