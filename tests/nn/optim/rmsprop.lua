-- SPDX-License-Identifier: MIT
-- optim.rmsprop: five steps of two tensors, the second without a gradient in step 3, against PyTorch 2 in float64; the same in float32 and
-- float16; what it refuses (tests/tools/optimizer.lua).
local cases = {
	{{},
		{0.900000021, -2.09999999, 0.400000481, 3.09999999, 0.150000027, -0.650000086},
		{0.852642539, -2.06002917, 0.499906084, 3.17415334, 0.201223017, -0.550176142},
		{0.906248852, -1.98482972, 0.550146419, 3.14728187, 0.201223017, -0.550176142},
		{0.963155908, -1.97113931, 0.498545518, 3.08181931, 0.210844457, -0.610081948},
		{0.94936243, -2.02730387, 0.440536867, 3.06729499, 0.137106489, -0.667747807}},
	{{lr=0.05, alpha=0.9, eps=1e-3, momentum=0.8},
		{0.842917169, -2.15780527, 0.36276067, 3.15778423, 0.0932158516, -0.596055891},
		{0.640048761, -2.21841167, 0.409905279, 3.40356153, 0.0510085999, -0.315294355},
		{0.567154996, -2.14377646, 0.529419412, 3.55498651, 0.0510085999, -0.315294355},
		{0.604852651, -2.06060094, 0.538898559, 3.56630306, 0.0336178261, -0.18817082},
		{0.610668084, -2.09064417, 0.448689871, 3.54986609, -0.102814407, -0.182269766}},
	{{lr=0.05, centered=true, decay=0.1},
		{0.497481179, -2.50251887, -0.00251819419, 3.50251887, -0.252518781, -0.247481356},
		{0.260756669, -2.2226553, 0.493866555, 3.87442334, 0.0119189204, 0.25320079},
		{0.4804326, -1.82459351, 0.708766504, 3.62648482, 0.0119189204, 0.25320079},
		{0.719875956, -1.72755651, 0.40653499, 3.24746772, 0.0552500219, -0.0467782396},
		{0.612607742, -1.9777007, 0.106987765, 3.12668499, -0.303835709, -0.331660399}},
	{{lr=0.05, centered=true, momentum=0.5, clip=0.7}, norms = {2.30018659, 2.72523587, 2.13346596, 2.56019691, 2.60495498},
		{0.497481437, -2.5025188, -0.00251092526, 3.5025188, -0.252518463, -0.247482514},
		{0.0377686753, -2.58078083, 0.247827773, 4.09828728, -0.278742421, 0.505407657},
		{0.0971408017, -2.22801414, 0.673688504, 4.2396016, -0.278742421, 0.505407657},
		{0.390789623, -1.99200552, 0.63030121, 3.98941366, -0.246850356, 0.57043422},
		{0.474635006, -2.12496188, 0.323560509, 3.79430962, -0.586611844, 0.310249987}},
}

dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/optimizer.lua')('rmsprop', cases, {lr = optim.cosine {lr=0.1, steps=400}}, {
	['alpha: wanted a number from 0 to 1, got 1.5'] = {alpha = 1.5},
	['eps: wanted a number of at least 0, got -1'] = {eps = -1},
	['momentum: wanted a number from 0 to 1, got 2'] = {momentum = 2},
	["unknown option 'rho'"] = {rho = 0.5},
})

it('constant gradients leave no variance, which is no nan', function()
	local x = tensor{1, grad = true}
	local o = optim.rmsprop({x}, {lr = 1e-6, centered = true})
	for _ = 1, 3000 do
		o:zero()
		local y = (x * 0.3):sum()
		y:backward()
		o:step()
	end
	assert(x:detach():isfinite():item())
end)

it('state and load go on with the same bits', function()
	local function make() return tensor{1, -2, grad = true} end
	local function step(o, x)
		o:zero()
		local y = (x * x):sum()
		y:backward()
		o:step()
	end
	local a = make()
	local o = optim.rmsprop({a}, {momentum = 0.9, centered = true})
	for _ = 1, 4 do step(o, a) end
	local b = a:detach():clone():requires_grad_()
	local other = optim.rmsprop({b}, {momentum = 0.9, centered = true}):load(o:state())
	for _ = 1, 4 do
		step(o, a)
		step(other, b)
	end
	assert(a:detach():eq(b:detach()):all():item())
end)
