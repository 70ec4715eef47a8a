-- SPDX-License-Identifier: MIT
-- What constructors of modules take: positions as in PyTorch, checked geometry, and options that reach every way to run.
tensor.seed(7)
local x = tensor.randn(2, 3, 8, 8)

local function same(a, b) return a:error(b).max == 0 end

-- module, the same by an op, how it is printed
local cases = {
	{nn.LeakyReLU(0.2), function(a) return a:leakyrelu(0.2) end, 'LeakyReLU(slope=0.2)'},
	{nn.LeakyReLU{slope = 0.3}, function(a) return a:leakyrelu{slope = 0.3} end, 'LeakyReLU(slope=0.3)'},
	{nn.GELU 'tanh', function(a) return 0.5 * a * (1 + (math.sqrt(2 / math.pi) * (a + 0.044715 * a * a * a)):tanh()) end, 'GELU(approximate=tanh)', 1e-6},
	{nn.GELU 'none', function(a) return a:gelu() end, 'GELU()'},
	{nn.Softmax(2), function(a) return a:exp() / a:exp():sum{axis = 2, keep = true} end, 'Softmax(axis=2)', 1e-6},
	{nn.Softmax(-2), function(a) return a:softmax(3) end, 'Softmax(axis=-2)'},
	{nn.Flatten(3), function(a) return a:reshape(2, 3, 64) end, 'Flatten(3)'},
	{nn.Flatten(2), function(a) return a:reshape(2, 192) end, 'Flatten()'},
	{nn.MaxPool2d(3, 2, 1), function(a) return a:maxpool2d(3, {stride = 2, pad = 1}) end, 'MaxPool2d(3, stride=2, pad=1)'},
	{nn.AvgPool2d({2, 3}, {1, 2}, {1, 1, 0, 0}), function(a) return a:avgpool2d({2, 3}, {stride = {1, 2}, pad = {1, 1, 0, 0}}) end,
		'AvgPool2d({2,3}, stride={1,2}, pad={1,1,0,0})'},
}

for _, case in ipairs(cases) do
	local m, op, text, near = table.unpack(case)
	describe(text, function()
		it('is printed with its options', function()
			assert(tostring(m):find(text, 1, true), tostring(m))
			assert(tostring(nn.Sequential{m}):find(text, 1, true))
		end)
		it('computes what the op does', function() assert(m(x):error(op(x)).max <= (near or 0)) end)
		it('has its gradient', function()
			local a, b = x:clone():requires_grad_(), x:clone():requires_grad_()
			local w = tensor.rand(m(x):size())
			local loss, other = (m(a) * w):sum(), (op(b) * w):sum()
			loss:backward()
			other:backward()
			assert(a:grad():error(b:grad()).max <= (near or 0))
		end)
		it('is the same as a copy, in a graph, and after quantization of the layers around it', function()
			local whole = nn.Sequential{nn.Conv2d(3, 3, 1), m}:eval()
			assert(same(whole:clone()(x), whole(x)))
			assert(same(graph.trace(whole, x):run(x), whole(x)))
			local q = whole:clone():quantize{mode = 'weight_only', weight = 'int8/1'}
			assert(q(x):error(op(q[1](x))).max <= (near or 0))
		end)
	end)
end

it('fuses no activation with attributes into a layer', function()
	local m = nn.Sequential{nn.Linear(4, 4), nn.GELU 'tanh'}:eval()
	local y = tensor.randn(3, 4)
	assert(same(m:fuse()(y), m(y)) and same(graph.trace(m, y):pass 'fuse':run(y), m(y)))
end)

it('takes layers, eps and flags by position', function()
	assert(nn.LSTM(3, 4, 2).layers == 2 and not nn.GRU(3, 4, 1, false).bias and nn.LSTM(3, 4, 1, true, false, 0.5).dropout == 0.5)
	assert(nn.BatchNorm2d(3, 1e-3, 0.2).momentum == 0.2 and nn.LayerNorm(4, 1e-6).eps == 1e-6 and nn.RMSNorm(4, 1e-6).eps == 1e-6)
	assert(nn.Dropout(0.25).p == 0.25 and not nn.Linear(2, 2, false).bias and not nn.Conv2d(2, 2, 1, 1, 0, 1, 1, false).bias)
	assert(nn.Conv2d(4, 4, 3, 1, 1, 1, 4).weight:size(2) == 1 and nn.Conv2d(1, 1, 3, {2, 1}, {name = 'c'}).name == 'c')
	assert(nn.Dropout(0.5):train(false).training == false and nn.Dropout(0.5):eval():train(true).training == true)
	assert(optim.adam({tensor{1, grad = true}}, 0.5, {decay = 0.1}):lr() == 0.5)
end)

-- Text of a constructor, what the message must hold.
for text, wanted in pairs {
	['nn.AvgPool2d{2}'] = 'kernel: wanted a number or {height, width}', ['nn.MaxPool2d{2.5, 2}'] = 'kernel: wanted an integer of at least 1, got 2.5',
	['nn.MaxPool2d(-1)'] = 'kernel: wanted an integer of at least 1, got -1', ['nn.MaxPool2d(2.5)'] = 'kernel', ['nn.MaxPool2d{0, 2}'] = 'kernel',
	['nn.MaxPool2d()'] = 'got nil', ['nn.MaxPool2d{1, 2, 3}'] = 'got a table of 3', ["nn.MaxPool2d 'all'"] = 'kernel',
	['nn.MaxPool2d(2, 0)'] = 'stride: wanted an integer of at least 1',
	['nn.AvgPool2d{stride = 2}'] = 'stride: wanted a kernel', ["nn.Conv2d(1, 1, 3, {stride = 'a'})"] = 'stride: wanted a number or {height, width}',
	['nn.Conv2d(1, 1, 3, {stride = 0})'] = 'stride', ['nn.Conv2d(1, 1, 3, {pad = -1})'] = 'pad: wanted an integer of at least 0', ['nn.Conv2d(1, 1, {3})'] = 'kernel',
	['nn.Conv2d(1, 1, 3, {dilation = {1}})'] = 'dilation', ['nn.Conv2d(3, 4, 3, {groups = 2})'] = 'groups', ['nn.Conv2d(1, 1, 3, 2, {stride = 2})'] = 'stride: wanted it once',
	['nn.Conv2d(1, 1, 3, {2, 1, bias = false})'] = 'stride', ['nn.BatchNorm2d(3, {eps = -1})'] = 'eps: wanted a finite number of at least 0',
	['nn.BatchNorm2d(3, 1e-3, 2)'] = 'momentum: wanted a number from 0 to 1', ['nn.LayerNorm(3, 0 / 0)'] = 'eps', ['nn.RMSNorm(3, math.huge)'] = 'eps',
	['nn.Softmax(0)'] = 'axis', ['nn.Softmax(1.5)'] = 'axis', ["nn.GELU 'fast'"] = "approximate: wanted 'tanh' or 'none'", ['nn.Flatten(0)'] = 'axis', ['nn.LeakyReLU(1 / 0)'] = 'slope',
	['nn.Linear(1 / 0, 2)'] = 'inputs: wanted an integer of at least 1, got inf', ['nn.Linear(2)'] = 'outputs: wanted an integer of at least 1, got nil',
	['nn.Linear(2, 2, 2)'] = 'bias: wanted true or false', ['nn.Dropout(1)'] = 'p: wanted a number from 0 to below 1', ['nn.LSTM(3, 4, 0)'] = 'layers', ['nn.LSTM(3, 4, 2, true, true, -1)'] = 'dropout',
	["nn.Linear('a', 2)"] = 'inputs', ['nn.Transformer{vocab = 4, d = 4, heads = 2, layers = 0}'] = 'layers', ['nn.ReLU(true)'] = 'wanted no argument 1, got true',
	['nn.Linear(2, 2):train(1)'] = 'train: wanted true or false', ['nn.Linear(2, 2)(tensor.ones(2), 1)'] = 'Linear: wanted no argument 2',
	['nn.Sequential{nn.ReLU()}(tensor.ones(2), 1)'] = 'Sequential: wanted no argument 2', ['nn.Residual{nn.ReLU()}(tensor.ones(2), 1)'] = 'Residual: wanted no argument 2',
} do
	it(text .. ' is refused', function()
		local ok, message = pcall(load('return ' .. text))
		assert(not ok and message:find(wanted, 1, true), tostring(message))
		local kind = text:match '^nn%.(%w+)'
		assert(message:find(kind .. ': ', 1, true) or message:find('train: ', 1, true), message)
	end)
end
