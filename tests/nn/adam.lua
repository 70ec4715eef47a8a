-- SPDX-License-Identifier: MIT
-- optim.adam: five steps of two tensors, the second without a gradient in step 3, against PyTorch 2 in float64; the same
-- in float32 and float16; what it refuses.
local cases = {
	{{},
		{0.999, -2.001, 0.499, 3.001, 0.249, -0.749},
		{0.998058078, -2.00131834, 0.499714193, 3.00200135, 0.248803738, -0.748217263},
		{0.997782496, -2.00100267, 0.500511933, 3.00257666, 0.248803738, -0.748217263},
		{0.997924666, -2.00066756, 0.500774723, 3.00255641, 0.248713706, -0.748113574},
		{0.997969311, -2.00073603, 0.500642019, 3.00246107, 0.248237462, -0.74837746}},
	{{lr=0.05, beta1=0.8, beta2=0.95, eps=1e-3},
		{0.950103567, -2.0499691, 0.452294596, 3.04996699, 0.200133743, -0.700424635},
		{0.903650295, -2.06326996, 0.489584963, 3.10008189, 0.193134719, -0.659879574},
		{0.894228398, -2.04312173, 0.530669716, 3.12579725, 0.193134719, -0.659879574},
		{0.907424272, -2.02306592, 0.540405384, 3.11859699, 0.191474575, -0.657275793},
		{0.913236763, -2.02854591, 0.527749343, 3.10812235, 0.16604935, -0.674872858}},
	{{lr=0.05, decay=0.3},
		{0.950000001, -2.05, 0.450000003, 3.05, 0.200000001, -0.700000001},
		{0.901257902, -2.04102384, 0.46826256, 3.1000119, 0.181090657, -0.658026635},
		{0.866153853, -2.01036694, 0.49222916, 3.09335366, 0.181090657, -0.658026635},
		{0.843353887, -1.97771725, 0.482771562, 3.06582444, 0.165620725, -0.645833731},
		{0.815787127, -1.96136918, 0.458154661, 3.03414946, 0.135639121, -0.652216156}},
	{{lr=0.05, clip=0.7}, norms = {2.30018659, 2.72523587, 2.13346596, 2.56019691, 2.60495498},
		{0.950000003, -2.05, 0.450000079, 3.05, 0.200000004, -0.700000014},
		{0.904149784, -2.06865802, 0.485425949, 3.09986836, 0.186716754, -0.660522585},
		{0.893493671, -2.05274377, 0.526429708, 3.12663603, 0.186716754, -0.660522585},
		{0.90128704, -2.03636567, 0.540563264, 3.12500363, 0.179339829, -0.656437041},
		{0.904427194, -2.03792004, 0.534966305, 3.11985885, 0.154598745, -0.670628694}},
}

local function gradient(step, n, offset)
	local list = {}
	for i = 0, n - 1 do list[i + 1] = math.sin(1.3 * step + 0.9 * i + offset) * (i % 2 == 1 and 2 or 0.5) end
	return tensor{dtype = 'float64', table.unpack(list)}
end

local function run(case, dtype, tolerance)
	local a = tensor{1, -2, 0.5, 3, dtype = 'float64'}:to(dtype):requires_grad_()
	local b = tensor{0.25, -0.75, dtype = 'float64'}:to(dtype):requires_grad_()
	local o = optim.adam({a, b}, case[1])
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
	local o = optim.adam({x}, {lr = 0.1})
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
		local ok, message = pcall(optim.adam, {x}, options)
		assert(not ok and message:find(pattern, 1, true), message)
	end
	refused('adam: lr: wanted a number of at least 0, got -1', {lr = -1})
	refused('adam: lr: wanted a number of at least 0, got ', {lr = 0/0})
	refused("adam: lr: wanted a number or a schedule such as optim.cosine{…}, got 'x'", {lr = 'x'})
	refused('adam: clip: wanted a number of at least 0, got -1', {clip = -1})
	refused('adam: limit: wanted a number above 0, got 0', {limit = 0})
	refused('adam: decay: wanted number, got true', {decay = true})
	refused('adam: beta1: wanted a number from 0 to 1, got 1.0', {beta1 = 1.0})
	refused('adam: eps: wanted a number of at least 0, got -1', {eps = -1})
	refused("adam: unknown option 'beta'; did you mean", {beta = 0.5})
end)
