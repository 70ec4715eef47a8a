-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Pooling to a given size and by powers, against PyTorch: sin(0.37 i), 6 x 7.
local x = (tensor.arange(1, 42):to 'float64' * 0.37):sin():view(1, 1, 6, 7):detach()
local function near(y, wanted)
	wanted.dtype = 'float64'
	assert(y:nelem() == #wanted and (y:reshape(-1) - tensor(wanted)):abs():max():item() < 1e-5)
end
near(x:adaptiveavgpool2d {4, 3}, {0.23251, 0.09320, -0.09486, -0.25904, -0.20659, -0.04609, -0.09650, -0.23408, -0.24921, -0.04434, 0.14002, 0.25114})
near(x:adaptivemaxpool2d {4, 3}, {0.89570, 0.99588, 0.96128, 0.18060, 0.67930, 0.99648, 0.95937, 0.51823, 0.37429, 0.99702, 0.99702, 0.78825})
near(x:adaptiveavgpool2d {3, 7}, {0.27111, 0.24350, 0.18293, 0.09761, -0.00093, -0.09934, -0.18430, 0.14507, 0.21859, 0.26252, 0.27092, 0.24266, 0.18155, 0.09587, -0.14033, -0.04644, 0.05373, 0.14663, 0.21969, 0.26301, 0.27073})
near(x:lppool2d(3, {2, 3}, {stride = 2}), {1.07250, 1.60700, 1.60417, 1.23077, 0.80157, 1.39435, 1.66680, 1.50338, 0.89788})

it('more windows than numbers, equal windows, gradients', function()
	local y = x:adaptivemaxpool2d {8, 9}
	print(y:size())  --> 1 1 8 9
	for i = 1, 8 do
		for j = 1, 9 do
			local a, b, c, d = (i - 1) * 6 // 8 + 1, -(-i * 6 // 8), (j - 1) * 7 // 9 + 1, -(-j * 7 // 9)
			assert(y[1][1][i][j]:item() == x[{{}, {}, {a, b}, {c, d}}]:max():item())
		end
	end
	assert(x:adaptiveavgpool2d(1):eq(x:avgpool2d()):all():item() and x:adaptivemaxpool2d {3, 7}:eq(x:maxpool2d {2, 1}):all():item())
	local a = x:detach():requires_grad_()
	a:adaptiveavgpool2d({4, 3}):sum():backward()
	assert(math.abs(a:grad():sum():item() - 12) < 1e-12)
	local b = x:detach():requires_grad_()
	b:adaptivemaxpool2d {4, 3}:sum():backward()
	assert(b:grad():sum():item() == 12)
end)

it('modules, also on codes', function()
	local given = tensor.randn(4, 3, 8, 8)
	assert(nn.AdaptiveAvgPool2d(3)(given):eq(given:adaptiveavgpool2d(3)):all():item())
	assert(nn.AdaptiveMaxPool2d {3, 4}(given):eq(given:adaptivemaxpool2d {3, 4}):all():item())
	local m = nn.Sequential {nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Conv2d(4, 2, 1)}
	m:calibrate({{given, given}}, {log = false})
	local q = m:quantize {mode = 'static'}
	quant.log 'reset'
	q(given)
	assert(quant.log():where {op = 'avgpool2d'}[1].path == 'integer')
end)

local function refused(pattern, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('adaptiveavgpool2d: wanted x (n, c, h, w), got', x.adaptiveavgpool2d, x[1], 2)
refused('adaptivemaxpool2d: size: wanted a number of at least 1 or {h, w}, got 0', x.adaptivemaxpool2d, x, {0, 2})
refused('adaptiveavgpool2d: size: wanted a number of at least 1 or {h, w}, got nil', x.adaptiveavgpool2d, x)
refused('lppool2d: p: wanted a number above 0, got -1', x.lppool2d, x, -1, 2)
refused('AdaptiveAvgPool2d: size: wanted a number or {height, width}', nn.AdaptiveAvgPool2d, 'all')
