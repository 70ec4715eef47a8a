-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.Graph: a graph as a module. It computes what the graph does, has its weights as parameters, and everything that modules do works.
tensor.seed(8)
local net = nn.Sequential {nn.Conv2d(2, 4, 3, {pad = 1}), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, 3)}
net(tensor.randn(16, 2, 4, 4) * 2 + 1) -- moves the running statistics
net:eval()
local x = tensor.randn(6, 2, 4, 4)
local g = graph.trace(net, x)
local function same(a, b, most) return (a - b):abs():max():item() <= (most or 0) end

it('computes what the graph does', function()
	local m = nn.Graph(g)
	assert(same(m(x), g:run(x)) and same(m(x:narrow(1, 1, 1)), g:run(x:narrow(1, 1, 1))))
	assert(#m:parameters() == 10, #m:parameters())
	assert(tostring(m):find 'conv1 +Conv2d%(2, 4, {3,3}, pad=1%)' and tostring(m):find 'layernorm1 +LayerNorm%(8%)' and tostring(m):find 'batchnorm1 +BatchNorm2d%(4%)', tostring(m))
	assert(same(nn.Graph((g:pass {'fold', 'fuse'}))(x), g:run(x), 1e-5))
	local again = graph.trace(m, x)
	assert(again:node 'conv1'.op == 'conv2d' and same(again:run(x), g:run(x)))
end)

it('has the norms of groups and of several axes as modules', function()
	local h = graph.trace(nn.Sequential {nn.Conv2d(2, 4, 3, {pad = 1}), nn.GroupNorm(2, 4), nn.LayerNorm {4, 4}}, x)
	local m = nn.Graph(h)
	assert(same(m(x), h:run(x)) and #m:parameters() == 6)
	assert(tostring(m):find('GroupNorm%(2, 4') and same(graph.trace(m, x):run(x), h:run(x)), tostring(m))
end)

it('keeps codes in the norms of groups and instances', function()
	local parts = {nn.Conv2d(2, 4, 3, {pad = 1}), nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 3, {pad = 1}), nn.InstanceNorm2d(4, {affine = true}),
		nn.Conv2d(4, 4, 3, {pad = 1}), nn.InstanceNorm2d(4), nn.Conv2d(4, 4, 3, {pad = 1}), nn.GroupNorm(2, 4, {affine = false}), nn.Conv2d(4, 2, 3)}
	local h = graph.trace(nn.Sequential(parts), x)
	local m = nn.Graph(h)
	assert(tostring(m):find 'InstanceNorm2d%(4, affine=true%)' and tostring(m):find 'InstanceNorm2d%(4%)' and tostring(m):find 'GroupNorm%(2, 4, affine=false%)',
		tostring(m))
	assert(same(m(x), h:run(x)) and #m:parameters() == 14)
	m:calibrate({{x}}, {log = false})
	local q = m:quantize {mode = 'static'}
	quant.log 'reset'
	local y = q(x)
	assert(#quant.log():where {path = 'fallback'} == 0 and #quant.log():where {op = 'groupnorm', path = 'integer'} == 2)
	assert(#quant.log():where {op = 'instancenorm', path = 'integer'} == 2)
	assert(y:error(m(x)).sqnr > 20)
	local target = tensor.randint {6, low = 1, high = 3}
	local head = nn.Sequential {m, nn.Flatten(), nn.Linear(8, 3)}
	head:fit({{x, target}}, {loss = nn.crossentropy, epochs = 1, log = false})
	assert(not same(m(x), h:run(x)))
end)

it('has several inputs and outputs, numbers, constants and tensors that two nodes share', function()
	local table_of, w = tensor.randn(5, 4), tensor.randn(4, 4)
	local two = nn.module(function(_, a, b) return {sum = a:linear(w) + b * 2 + table_of:narrow(1, 1, 1), other = b:linear(w):relu()}, a:matmul(w) end, {})
	local a, b = tensor.randn(3, 4), tensor.randn(3, 4)
	local h = graph.trace(two, {a, b})
	local m = nn.Graph(h)
	local got, want = {m(a, b)}, {h:run {a, b}}
	assert(same(got[1].sum, want[1].sum) and same(got[1].other, want[1].other) and same(got[2], want[2]))
	assert(same(select(2, m {a, b}), want[2]))
	local count = 0
	for _, p in ipairs(m:parameters()) do count = count + p:nelem() end
	assert(count == 16, count) -- w once; the table is no weight
end)

it('calibrates, quantizes, saves and trains as other modules', function()
	local m = nn.Graph((g:pass 'fold'))
	m:calibrate({{x}}, {log = false})
	local q = m:quantize {mode = 'static'}
	assert(not same(q(x), m(x)) and same(q(x), m(x), 0.2))
	local file = os.tmpname() .. '.safetensors'
	m:save(file)
	local other = nn.Graph((g:pass 'fold'))
	other:fit({{x, tensor.randint {6, low = 1, high = 3}}}, {loss = nn.crossentropy, epochs = 2, log = false})
	assert(not same(other(x), m(x)) and same(g:run(x), nn.Graph(g)(x))) -- training changes no tensor of the graph
	other:load(file)
	os.remove(file)
	assert(same(other(x), m(x)))
	local r = quant.sensitivity(m, {data = {{x, tensor.randint {6, low = 1, high = 3}}}, spec = 'int4', log = false})
	assert(#r == 3 and r[1].layer == 'conv1', r)
	assert(same(m:clone()(x), m(x)))
end)

it('normalizes by the batch in training mode', function()
	local m = nn.Graph(g)
	local before = m(x)
	m:train()
	m(x * 3 + 5)
	m:eval()
	assert(not same(m(x), before))
end)

it('refuses what is no graph', function()
	local ok, message = pcall(nn.Graph, net)
	assert(not ok and message:find 'Graph: wanted a graph', message)
end)
