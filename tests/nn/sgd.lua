-- SPDX-License-Identifier: MIT
-- optim.sgd: five steps of two tensors, the second without a gradient in step 3, against PyTorch 2 in float64; the same
-- in float32 and float16; what it refuses.
local cases = {
	{{lr=0.1},
		{0.951822091, -2.16169928, 0.497920967, 3.1513605, 0.212714739, -0.738325171},
		{0.926047022, -2.09154264, 0.545501071, 3.31781399, 0.234840762, -0.542819148},
		{0.96043533, -1.89230971, 0.573035348, 3.25550571, 0.234840762, -0.542819148},
		{1.00460806, -1.85587721, 0.540186018, 3.05571745, 0.238995232, -0.688612956},
		{0.993852063, -2.03561883, 0.495077426, 3.01113946, 0.192095233, -0.859532737}},
	{{lr=0.1, momentum=0.9},
		{0.951822091, -2.16169928, 0.497920967, 3.1513605, 0.212714739, -0.738325171},
		{0.882686904, -2.23707199, 0.543629941, 3.45403844, 0.201284027, -0.532311802},
		{0.854853544, -2.1056745, 0.612302294, 3.66414031, 0.201284027, -0.532311802},
		{0.873976252, -1.95098426, 0.641258083, 3.65344372, 0.195150856, -0.492693578},
		{0.88043069, -1.99150467, 0.622209701, 3.59923881, 0.142731003, -0.627956957}},
	{{lr=0.1, momentum=0.9, nesterov=true},
		{0.908461972, -2.30722863, 0.496049837, 3.28758495, 0.179158005, -0.727817825},
		{0.820465236, -2.30490742, 0.584768017, 3.72644858, 0.190996386, -0.34689977},
		{0.829803519, -1.98741677, 0.674107413, 3.85323199, 0.190996386, -0.34689977},
		{0.89118669, -1.81176305, 0.667318292, 3.6438168, 0.189631002, -0.457037176},
		{0.886239685, -2.02797303, 0.605066157, 3.5504544, 0.0955531358, -0.749693999}},
	{{lr=0.1, momentum=0.5, decay=0.2},
		{0.931822091, -2.12169928, 0.487920967, 3.0913605, 0.207714739, -0.723325171},
		{0.853321626, -2.06995829, 0.519703135, 3.24166703, 0.204543836, -0.50001523},
		{0.831393269, -1.80345571, 0.552734433, 3.18967868, 0.204543836, -0.50001523},
		{0.847973957, -1.5977028, 0.525346064, 2.90010266, 0.203021978, -0.524153763},
		{0.828548823, -1.64261391, 0.456036366, 2.65273462, 0.151300611, -0.696659736}},
	{{lr=0.1, decay=0.2},
		{0.931822091, -2.12169928, 0.487920967, 3.0913605, 0.207714739, -0.723325171},
		{0.88741058, -2.00910865, 0.525742651, 3.19598678, 0.225686467, -0.513352644},
		{0.904050677, -1.76969355, 0.542762075, 3.06975877, 0.225686467, -0.513352644},
		{0.930142396, -1.69786718, 0.499057504, 2.80857533, 0.225327208, -0.648879399},
		{0.900783549, -1.84365146, 0.443967762, 2.70782584, 0.173920665, -0.806821593}},
	{{lr=0.1, momentum=0.9, clip=1.5}, norms = {2.30018659, 2.72523587, 2.13346596, 2.56019691, 2.60495498},
		{0.968582187, -2.10544745, 0.498644219, 3.09870532, 0.225685509, -0.742386602},
		{0.926119277, -2.16173518, 0.523612623, 3.27915791, 0.21598087, -0.627925903},
		{0.912080423, -2.07231726, 0.565443013, 3.39775749, 0.21598087, -0.627925903},
		{0.925325914, -1.97049561, 0.583844197, 3.38744272, 0.209680767, -0.61033073},
		{0.931053278, -1.98235593, 0.574430587, 3.35249029, 0.17700446, -0.692915038}},
	{{lr=0.1, limit=0.4},
		{0.96, -2.04, 0.497920967, 3.04, 0.212714739, -0.738325171},
		{0.934224931, -2, 0.537920967, 3.08, 0.234840762, -0.698325171},
		{0.968613239, -1.96, 0.565455244, 3.04, 0.234840762, -0.698325171},
		{1.00861324, -1.9235675, 0.532605914, 3, 0.238995232, -0.738325171},
		{0.99785724, -1.9635675, 0.492605914, 2.96, 0.198995232, -0.778325171}},
}

local function gradient(step, n, offset)
	local list = {}
	for i = 0, n - 1 do list[i + 1] = math.sin(1.3 * step + 0.9 * i + offset) * (i % 2 == 1 and 2 or 0.5) end
	return tensor{dtype = 'float64', table.unpack(list)}
end

local function run(case, dtype, tolerance)
	local a = tensor{1, -2, 0.5, 3, dtype = 'float64'}:to(dtype):requires_grad_()
	local b = tensor{0.25, -0.75, dtype = 'float64'}:to(dtype):requires_grad_()
	local o = optim.sgd({a, b}, case[1])
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
	local o = optim.sgd({x}, {lr = 0.02, momentum = 0.8})
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
		local ok, message = pcall(optim.sgd, {x}, options)
		assert(not ok and message:find(pattern, 1, true), message)
	end
	refused('sgd: lr: wanted a number of at least 0, got -1', {lr = -1})
	refused('sgd: lr: wanted a number of at least 0, got ', {lr = 0/0})
	refused("sgd: lr: wanted a number or a schedule such as optim.cosine{…}, got 'x'", {lr = 'x'})
	refused('sgd: clip: wanted a number of at least 0, got -1', {clip = -1})
	refused('sgd: limit: wanted a number above 0, got 0', {limit = 0})
	refused('sgd: decay: wanted number, got true', {decay = true})
	refused('sgd: momentum: wanted a number from 0 to 1, got 1.5', {momentum = 1.5})
	refused('sgd: momentum with nesterov: wanted a number', {nesterov = true})
	refused("sgd: unknown option 'momentun'; did you mean 'momentum'?", {momentun = 0.5})
end)
