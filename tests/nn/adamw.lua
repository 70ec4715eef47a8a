-- SPDX-License-Identifier: MIT
-- optim.adamw: five steps of two tensors, the second without a gradient in step 3, against PyTorch 2 in float64; the same
-- in float32 and float16; what it refuses.
local cases = {
	{{},
		{0.99899, -2.00098, 0.498995, 3.00097, 0.2489975, -0.7489925},
		{0.998038088, -2.00127833, 0.499704203, 3.00194134, 0.248798748, -0.748202273},
		{0.997752526, -2.00094264, 0.500496946, 3.00248663, 0.248798748, -0.748202273},
		{0.997884718, -2.00058753, 0.500754731, 3.00243636, 0.248706228, -0.748091102},
		{0.997919384, -2.000636, 0.500617019, 3.00231099, 0.248227497, -0.748347507}},
	{{lr=0.05, decay=0.3},
		{0.935000001, -2.02, 0.442500024, 3.005, 0.196250001, -0.688750004},
		{0.873878914, -2.00561691, 0.471572132, 3.00999236, 0.183493145, -0.639281905},
		{0.846991614, -1.95974907, 0.504385553, 2.99360801, 0.183493145, -0.639281905},
		{0.841395249, -1.91359747, 0.509959301, 2.9476917, 0.176239129, -0.624508227},
		{0.831006564, -1.88831726, 0.495674681, 2.89870923, 0.149783383, -0.628334908}},
	{{lr=0.05, decay=0, beta1=0.5, beta2=0.9, clip=2}, norms = {2.30018659, 2.72523587, 2.13346596, 2.56019691, 2.60495498},
		{0.950000001, -2.05, 0.450000028, 3.05, 0.200000002, -0.700000005},
		{0.908387459, -2.05604541, 0.494703642, 3.09944201, 0.20003727, -0.652534587},
		{0.919360372, -2.0199046, 0.542624761, 3.10896386, 0.20003727, -0.652534587},
		{0.952438634, -1.99367102, 0.538189931, 3.0790157, 0.204661535, -0.663019423},
		{0.963260477, -2.0102062, 0.504374903, 3.05440185, 0.169102542, -0.697979013}},
}

local function gradient(step, n, offset)
	local list = {}
	for i = 0, n - 1 do list[i + 1] = math.sin(1.3 * step + 0.9 * i + offset) * (i % 2 == 1 and 2 or 0.5) end
	return tensor{dtype = 'float64', table.unpack(list)}
end

local function run(case, dtype, tolerance)
	local a = tensor{1, -2, 0.5, 3, dtype = 'float64'}:to(dtype):requires_grad_()
	local b = tensor{0.25, -0.75, dtype = 'float64'}:to(dtype):requires_grad_()
	local o = optim.adamw({a, b}, case[1])
	for step = 1, 5 do
		o:zero()
		local loss = (a * gradient(step, 4, 0):to(dtype)):sum()
		if step ~= 3 then loss = loss + (b * gradient(step, 2, 1):to(dtype)):sum() end
		loss:backward()
		local norm = o:step()
		if case.norms then assert(math.abs(norm - case.norms[step]) < tolerance * case.norms[step]) else assert(norm == nil) end
		for i, value in ipairs(case[step + 1]) do
			local got = i <= 4 and a[i]:item() or b[i - 4]:item()
			assert(math.abs(got - value) <= tolerance * (1 + math.abs(value)), ('step %d, %d: %.9g, not %.9g'):format(step, i, got, value))
		end
	end
end

it('makes the steps of PyTorch', function()
	for i, case in ipairs(cases) do
		describe('case ' .. i, function()
			run(case, 'float64', 1e-8)
			run(case, 'float32', 5e-6)
			run(case, 'float16', 1e-2)
		end)
	end
end)

it('finds the minimum of a quadratic', function()
	local x = tensor{5, -3, grad = true}
	local o = optim.adamw({x}, {lr = 0.1, decay = 0})
	for _ = 1, 400 do
		o:zero()
		local away = x + tensor{-1, -2}
		local loss = (away * away * tensor{1, 10}):sum()
		loss:backward()
		o:step()
	end
	assert((x:detach() - tensor{1, 2}):abs():max():item() < 1e-2)
end)

it('refuses bad options', function()
	local x = tensor{1, grad = true}
	local function refused(pattern, options)
		local ok, message = pcall(optim.adamw, {x}, options)
		assert(not ok and message:find(pattern, 1, true), message)
	end
	refused('adamw: lr: wanted a number of at least 0, got -1', {lr = -1})
	refused('adamw: lr: wanted a number of at least 0, got ', {lr = 0/0})
	refused("adamw: lr: wanted a number or a schedule such as optim.cosine{…}, got 'x'", {lr = 'x'})
	refused('adamw: clip: wanted a number of at least 0, got -1', {clip = -1})
	refused('adamw: limit: wanted a number above 0, got 0', {limit = 0})
	refused('adamw: decay: wanted number, got true', {decay = true})
	refused('adamw: beta1: wanted a number from 0 to 1, got 1.0', {beta1 = 1.0})
	refused('adamw: eps: wanted a number of at least 0, got -1', {eps = -1})
	refused("adamw: unknown option 'beta'; did you mean", {beta = 0.5})
end)
