-- SPDX-License-Identifier: MIT
-- What the tests of the optimizers have in common: five steps of two tensors, the second without a gradient in step 3, against
-- PyTorch 2 in float64, the same in float32 and float16; the minimum of a quadratic; what they refuse. Gives a function of the
-- optimizer's name, cases {options, the numbers after each step, norms=}, the options for the quadratic, and bad ones: the
-- message's text = the options.
return function(name, cases, minimum, bad)
	local function gradient(step, n, offset)
		local list = {}
		for i = 0, n - 1 do list[i + 1] = math.sin(1.3 * step + 0.9 * i + offset) * (i % 2 == 1 and 2 or 0.5) end
		return tensor{dtype = 'float64', table.unpack(list)}
	end

	local function run(case, dtype, tolerance)
		local a = tensor{1, -2, 0.5, 3, dtype = 'float64'}:to(dtype):requires_grad_()
		local b = tensor{0.25, -0.75, dtype = 'float64'}:to(dtype):requires_grad_()
		local o = optim[name]({a, b}, case[1])
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
		local o = optim[name]({x}, minimum)
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
			local ok, message = pcall(optim[name], {x}, options)
			assert(not ok and message:find(name .. ': ' .. pattern, 1, true), message)
		end
		refused('lr: wanted a number of at least 0, got -1', {lr = -1})
		refused('lr: wanted a number of at least 0, got ', {lr = 0/0})
		refused("lr: wanted a number or a schedule such as optim.cosine{…}, got 'x'", {lr = 'x'})
		refused('clip: wanted a number of at least 0, got -1', {clip = -1})
		refused('limit: wanted a number above 0, got 0', {limit = 0})
		refused('decay: wanted number, got true', {decay = true})
		for pattern, options in pairs(bad) do refused(pattern, options) end
	end)
end
