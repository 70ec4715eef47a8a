-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Cross-entropy of logits and class numbers; literals from PyTorch in float64.
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused

local rows, classes = {{3, -1, 4, 1}, {-5, 9, 2, -6}, {5, 3, -5, 8}}, tensor{3, 1, 4, dtype = 'int64'}
local cases = {
	{{}, 4.803217926, {0.08608964949, 0.001576786932, -0.09931740352, 0.0116509671, -0.3333330564, 0.3330292711, 0.0003036833864,
		1.018744268e-07, 0.0157077719, 0.00212581576, 7.131317411e-07, -0.01783430079}},
	{{smoothing = 0.1}, 4.88655126, {0.07775631615, -0.006756546401, -0.07431740352, 0.003317633764, -0.3083330564, 0.3246959378,
		-0.008029649947, -0.008333231459, 0.00737443857, -0.006207517574, -0.008332620202, 0.007165699206}},
	{{ignore = 1}, 0.204370588, {0.1291344742, 0.002365180398, -0.1489761053, 0.01747645065, 0, 0, 0, 0, 0.02356165785,
		0.003188723639, 1.069697612e-06, -0.02675145119}},
	{{ignore = 4, smoothing = 0.2}, 6.902333202, {0.1041344742, -0.0226348196, -0.07397610527, -0.007523549354, -0.4249995846,
		0.4745439067, -0.02454447492, -0.02499984719, 0, 0, 0, 0}},
}
for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
	it('values and gradients in ' .. dtype, function()
		for _, c in ipairs(cases) do
			local x = tensor(rows):to(dtype):clone():requires_grad_()
			local loss = nn.crossentropy(x, classes, c[1])
			assert(loss:dim() == 0 and loss:dtype() == dtype)
			near(loss:view(1), {c[2]}, bound)
			loss:backward()
			near(x:grad(), c[3], bound)
			x:zero_grad()
			local twice = nn.crossentropy(x, classes, c[1]) * 2
			twice:backward()
			near(x:grad() / 2, c[3], bound)
		end
	end)
end

it('gradients against finite differences', function()
	local t = tensor{{1, 5, 2}, {3, 3, 4}, dtype = 'uint8'}
	check_gradient(function(x) return nn.crossentropy(x, t) end, wide(2, 3, 5))
	check_gradient(function(x) return nn.crossentropy(x, t, {ignore = 3, smoothing = 0.3}) end, wide(2, 3, 5))
	check_gradient(function(x) return nn.crossentropy(x, t, {axis = 2}) end, wide(2, 5, 3))
	check_gradient(function(x) return nn.crossentropy(x, t, {axis = 1, smoothing = 0.1}) end, wide(5, 2, 3))
end)

it('any axis holds the classes', function()
	local x, t = tensor.randn(4, 6, 3), tensor.randint {4, 3, low = 1, high = 6}
	assert(nn.crossentropy(x, t, {axis = 2}):item() == nn.crossentropy(x:transpose(2, 3), t):item())
	assert(nn.crossentropy(x, t, {axis = -2}):item() == nn.crossentropy(x, t, {axis = 2}):item())
	local one = tensor{0, 0, 0, 0}
	assert(math.abs(nn.crossentropy(one, tensor(2):to 'int64'):item() - math.log(4)) < 1e-6)
end)

it('is logsoftmax and gather, also for large logits and many classes', function()
	for _, c in ipairs {{50, 10000, 1}, {7, 3, 1000}, {3, 1025, 30}} do
		local x, t = tensor.randn(c[1], c[2]) * c[3], tensor.randint {c[1], low = 1, high = c[2]}
		local want = -x:to 'float64':logsoftmax():gather(2, t:view(-1, 1)):mean():item()
		assert(math.abs(nn.crossentropy(x, t):item() - want) < 1e-6 * math.max(1, want), c[2])
	end
	print(nn.crossentropy(tensor{{1e30, -1e30}}, tensor{1, dtype = 'int64'}))  --> 0
end)

it('nan and infinity are no crash', function()
	local t = tensor{1, 1, dtype = 'int64'}
	print(nn.crossentropy(tensor{{0/0, 1}, {1, 1}}, t), nn.crossentropy(tensor{{1/0, 1}, {1, 1}}, t))  --> nan nan
	print(nn.crossentropy(tensor{{-1/0, 1}, {1, 1}}, t), nn.crossentropy(tensor{{1, 1}, {1, 1}}, t, {ignore = 1}))  --> inf nan
	print(nn.crossentropy(tensor{{1, -1/0}, {1, -1/0}}, t))  --> 0
	local x = tensor{{0/0, 1}, {1, 1}}:requires_grad_()
	nn.crossentropy(x, t):backward()
	print(x:grad())  --> float32(2, 2)
	                 -->      nan      nan
	                 -->  -0.2500   0.2500
end)

it('keeps the logits only', function()
	local x, t = tensor.randn(300, 1000):requires_grad_(), tensor.randint {300, low = 1, high = 1000}
	collectgarbage()
	collectgarbage()
	local before = tensor.memory().now
	local loss = nn.crossentropy(x, t)
	assert(tensor.memory().now - before < 20000, tensor.memory().now - before)
	loss:backward()
	assert(loss:explain():find 'path float32, kernel simd_')
end)

it('gives the same bits everywhere', function()
	local x, t = tensor.randn(900, 777):requires_grad_(), tensor.randint {900, low = 1, high = 777}
	check_bits(function()
		x:zero_grad()
		local loss = nn.crossentropy(x, t, {smoothing = 0.1, ignore = 5})
		loss:backward()
		return loss:detach(), x:grad()
	end)
end)

it('half and quantized logits', function()
	local x = tensor(rows)
	local half = x:to 'float16':clone():requires_grad_()
	local loss = nn.crossentropy(half, classes)
	loss:backward()
	print(loss:dtype(), half:grad():dtype())  --> float32 float16
	local q = x:quantize 'int8'
	assert(nn.crossentropy(q, classes):item() == nn.crossentropy(q:dequantize(), classes):item())
end)

local x = tensor(rows)
for _, call in ipairs {
	{'target: wanted classes 1 to 4, got 5 at position (2)', x, tensor{1, 5, 2, dtype = 'int64'}},
	{'target: wanted classes 1 to 4, got 0 at position (3)', x, tensor{1, 2, 0, dtype = 'int64'}, {ignore = -1}},
	{'target: wanted class numbers (integers), got float32(3)', x, tensor{1, 2, 3}},
	{'target: wanted shape (3), that of the logits (3, 4) without axis 2, got (4)', x, tensor{1, 2, 3, 4, dtype = 'int64'}},
	{'target: wanted shape (4), that of the logits (3, 4) without axis 1, got (3)', x, classes, {axis = 1}},
	{'target: wanted shape (3), that of the logits (3, 4) without axis 2, got (3, 1)', x, classes:view(3, 1)},
	{'wanted at least one position and class, got logits (0, 4)', tensor.zeros(0, 4), tensor.zeros {0, dtype = 'int64'}},
	{'wanted at least one position and class, got logits (3, 0)', tensor.zeros(3, 0), classes},
	{'wanted logits with an axis of classes, got a number', tensor(1), classes},
	{'smoothing: wanted 0 to 1, got 1.5', x, classes, {smoothing = 1.5}},
	{"unknown option 'smooth'", x, classes, {smooth = 1}},
} do
	refused('crossentropy: ' .. call[1], nn.crossentropy, table.unpack(call, 2))
end

-- torch.nn.functional 2 in float64: options, losses of positions, mean, gradient of the mean
local w = {0.5, 2, 0.25, 1.5}
local others = {
	{'crossentropy', w, {}, {0.08843845028, 7.000456301, 0.08248106216}, 3.187278139, {0.02869654983, 0.000525595644, -0.03310580117, 0.003883655699,
		-0.2222220376, 0.2220195141, 0.0002024555909, 6.791628456e-08, 0.03141554381, 0.004251631519, 1.426263482e-06, -0.03566860159}},
	{'crossentropy', w, {smoothing = 0.1}, {0.4921809466, 7.081757635, 0.4488253645}, 3.565672865, {0.03246737297, -0.02152580799, 0.0005792578917,
		-0.01152082287, -0.2055553502, 0.2247744872, -0.002552545933, -0.01666659111, 0.02494370156, -0.01809459662, -0.002776393114, -0.00407271182}},
	{'crossentropy', w, {smoothing = 0.2, ignore = 1}, {0.895923443, 0, 0.8151696669}, 0.9777674913, {0.04659196642, -0.05602784353, 0.0440541218,
		-0.0346182447, 0, 0, 0, 0, 0.02374953339, -0.05199534613, -0.007141130345, 0.03538694308}},
	{'crossentropy', false, {smoothing = 0.1}, {0.5787538011, 13.5009126, 0.5799873748}, 4.88655126, {0.07775631615, -0.006756546401, -0.07431740352,
		0.003317633764, -0.3083330564, 0.3246959378, -0.008029649947, -0.008333231459, 0.00737443857, -0.006207517574, -0.008332620202, 0.007165699206}},
	{'nll', false, {}, {0.3537538011, 14.0009126, 0.05498737477}, 4.803217926, {0, 0, -0.3333333333, 0, -0.3333333333, 0, 0, 0, 0, 0, 0, -0.3333333333}},
	{'nll', w, {}, {0.08843845028, 7.000456301, 0.08248106216}, 3.187278139, {0, 0, -0.1111111111, 0, -0.2222222222, 0, 0, 0, 0, 0, 0, -0.6666666667}},
	{'nll', w, {ignore = 1}, {0.08843845028, 0, 0.08248106216}, 0.09766829283, {0, 0, -0.1428571429, 0, 0, 0, 0, 0, 0, 0, 0, -0.8571428571}},
}
for dtype, bound in pairs {float32 = 2e-6, float64 = 1e-9} do
	it('weights of classes, reductions and nll in ' .. dtype, function()
		for _, c in ipairs(others) do
			local name, weight, options, each, mean, slopes = table.unpack(c)
			local start = tensor{dtype = 'float64', table.unpack(rows)}
			local x = (name == 'nll' and start:logsoftmax() or start):to(dtype):clone():requires_grad_()
			local function loss(reduction)
				local o = {reduction = reduction}
				for k, v in pairs(options) do o[k] = v end
				if weight then return nn[name](x, classes, tensor(weight):to(dtype), o) end
				return nn[name](x, classes, o)
			end
			near(loss('none'), each, bound)
			near(loss('sum'):view(1), {each[1] + each[2] + each[3]}, bound)
			local m = loss()
			near(m:view(1), {mean}, bound)
			m:backward()
			near(x:grad(), slopes, bound)
			x:zero_grad()
			local sum = loss('sum')
			sum:backward()
			near(x:grad() * (mean / sum:item()), slopes, bound)
			x:zero_grad()
			local seed = tensor.full {3, value = mean / sum:item(), dtype = dtype}
			loss('none'):backward(seed)
			near(x:grad(), slopes, bound)
		end
	end)
end

it('gradients of weighted losses against finite differences', function()
	local t, v = tensor{{1, 5, 2}, {3, 3, 4}, dtype = 'uint8'}, tensor{0.5, 2, 1, 0.25, 3, dtype = 'float64'}
	for _, reduction in ipairs {'mean', 'sum', 'none'} do
		check_gradient(function(x) return nn.crossentropy(x, t, v, {ignore = 3, smoothing = 0.3, reduction = reduction}) end, wide(2, 3, 5))
		check_gradient(function(x) return nn.crossentropy(x, t, v, {axis = 2, reduction = reduction}) end, wide(2, 5, 3))
		check_gradient(function(x) return nn.nll(x, t, v, {ignore = 2, reduction = reduction}) end, wide(2, 3, 5))
	end
	assert(nn.crossentropy(wide(2, 5, 3), t, {axis = 2, reduction = 'none'}):size(2) == 3)
end)
refused('crossentropy: weight: wanted one number for each of 4 classes, got float32(3)', nn.crossentropy, x, classes, tensor{1, 2, 3})
refused('nll: target: wanted classes 1 to 4, got 5 at position (2)', nn.nll, x, tensor{1, 5, 2, dtype = 'int64'})
refused("nll: unknown option 'smoothing'", nn.nll, x, classes, {smoothing = 0.1})
refused("crossentropy: reduction: wanted one of mean sum none, got 'max'", nn.crossentropy, x, classes, {reduction = 'max'})
