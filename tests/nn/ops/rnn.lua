-- SPDX-License-Identifier: MIT
-- labels: quick host
-- The plain recurrent layer: PyTorch's numbers; the cases are those of all recurrent layers (tests/tools/recurrent.lua).
local expected = {
	y = {-0.58257618, -0.76054348, -0.48537178, -0.33816313, -0.19040537, -0.36927873, -0.06635921, -0.75643177,
		-0.73073012, -0.54599538, -0.68399747, -0.49097939},
	h = {-0.19040537, -0.36927873, -0.68399747, -0.49097939},
	d_x = {0.19280904, 0.16607421, -0.06611621, -0.02164855, -0.28263004, -0.14620583, -0.05466119, -0.06867308,
		0.24027319, 0.11464347, -0.14631505, -0.03120581},
	d_h0 = {0.12847778, 0.00379799, -0.06462555, -0.03431274},
	d_w_ih = {-0.39721281, -0.28612820, -0.43816347, -0.53739619},
	d_w_hh = {0.06695730, -0.01476792, 0.55369530, 0.18574356},
	d_b_ih = {0.04290964, -0.39881930},
	d_b_hh = {0.04290964, -0.39881930},
}
local kind = {op = 'rnn', gates = 1, states = 1, expected = expected, exact = true}
local layer = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/recurrent.lua')(kind)
local run, data, with_grad, total, worst = layer.run, layer.data, layer.with_grad, layer.total, layer.worst

it('has relu as its other activation', function()
	local o, weights = data(2, 3, 2, 2)
	o.b_ih = o.b_ih + 0.6
	o = with_grad(o, 'float64')
	local y, h = run(o, {act = 'relu'})
	total(weights, y, h):backward()
	local relu = {
		y = {0.0, 0.0, 0.49740019, 0.0, 0.92632032, 0.0, 0.53354313, 0.0, 0.10409444, 0.0, 0.25963791, 0.0},
		h = {0.92632032, 0.0, 0.25963791, 0.0},
		d_x = {0.0, 0.0, -0.04919173, -0.05797194, -0.11966091, -0.14101914, -0.00090683, -0.00106869, 0.16375953,
			0.19298891, -0.03734840, -0.04401470},
		d_h0 = {0.0, 0.0, -0.00097992, -0.00046057},
		d_w_ih = {-0.30481754, -0.34724641, 0.0, 0.0},
		d_w_hh = {0.05599283, -0.00104522, 0.0, 0.0},
		d_b_ih = {-0.10302988, 0.0},
		d_b_hh = {-0.10302988, 0.0},
	}
	for name, list in pairs(relu) do
		local t = name == 'y' and y:detach() or name == 'h' and h:detach() or o[name:sub(3)]:grad()
		assert(worst(t:view(t:nelem()), tensor{dtype = 'float64', table.unpack(list)}) < 2e-8, name)
	end
	local ok, message = pcall(run, o, {act = 'sigmoid'})
	assert(not ok and message:find("rnn: act: wanted one of", 1, true), message)
end)

it('multiplies the states as linear does', function()
	tensor.seed(5)
	for _, size in ipairs {1, 3, 4, 63, 64, 65, 200} do
		local h, w = tensor.randn(29, size), tensor.randn(size, size)
		h[1]:fill_(0)
		for _, spec in ipairs {'int8', 'int8/1'} do
			local q = w:quantize(spec)
			local y = nn.rnn(tensor.zeros(29, 1, 1), h, tensor.zeros(size, 1), q, {states = 'int8', act = 'relu'})
			assert(worst(y:view(29, size), h:quantize 'int8/1':linear(q):relu()) == 0)
		end
	end
end)
