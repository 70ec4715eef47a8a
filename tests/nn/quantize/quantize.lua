-- SPDX-License-Identifier: MIT
-- labels: quick host
-- m:calibrate and m:quantize: every mode, what runs in integers (the ledger says so), rules, coverage, what stays untouched.
tensor.seed(12)
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
local function net()
	return nn.Sequential {nn.Flatten(), nn.Linear(36, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 5)}
end
local m, x = net():eval(), tensor.randn(40, 1, 6, 6)
local data = {{x, tensor.ones {40, dtype='int64'}}, {x * 0.5, tensor.ones {40, dtype='int64'}}}
local before = m(x):detach()

-- What ran since the reset: op -> path -> count.
local function ran()
	local paths = {}
	for _, row in ipairs(quant.ledger()) do
		paths[row.op] = paths[row.op] or {}
		paths[row.op][row.path] = (paths[row.op][row.path] or 0) + row.count
	end
	return paths
end
local function logged(fn)
	quant.log 'reset'
	return fn(), ran()
end

it('calibrate does not touch the output, and sees every batch', function()
	local same = m:calibrate(data, {input='uint8@minmax', log=false})
	assert(same == m and m(x):detach():ne(before):any():item() == false)
	local r = m:observers()
	assert(#r == 3 and r[1].name == 'linear1' and r[1].count == 2 * 40 * 36 and r[1].spec == 'uint8')
	assert(r[1].lo == x:min():item() and r[1].hi == x:max():item())
	m:calibrate(data, {batches=1, log=false})
	assert(m:observers()[1].count == 40 * 36, 'a second calibration goes on from the first')
end)

it('static: codes pass from layer to layer', function()
	local state = {}
	for name, value in pairs(m:state()) do state[name] = value:detach():clone() end
	local q, c = m:quantize {mode='static'}
	local y, paths = logged(function() return q(x) end)
	assert(before:error(y).sqnr > 30)
	assert(paths.linear.int8 == 3 and paths.quantize and not paths.linear.fallback)
	local count = 0
	for _, n in pairs(paths.quantize) do count = count + n end
	assert(count == 1, 'only the input is quantized')
	assert(q.linear1.weight:dtype() == 'int8' and c[1].output ~= 'float' and c[3].output == 'float')
	assert(tostring(c):find '3 of 3 layers quantized')
	for name, value in pairs(m:state()) do assert(value:detach():ne(state[name]):any():item() == false, 'the original has changed') end
	refused("train: wanted a float model, or one quantized with mode='qat' or 'train', got one with mode='static'", q.train, q)
	assert(q:nbytes() < 0.32 * m:nbytes())
end)

it('static: frozen ranges, no search for the range at use', function()
	local q = m:quantize {mode='static'}
	local small = q(x * 0.001)
	local d = m:quantize {mode='dynamic'}
	local want = m(x * 0.001):detach()
	assert(want:error(d(x * 0.001)).sqnr > want:error(small).sqnr + 6, 'static finds its range anew')
end)

it('dynamic, weight_only, auto', function()
	local fresh = m:clone()
	for _, inner in pairs(fresh:named()) do rawset(inner, 'input_observers', nil) end
	local y, paths = logged(function() return (fresh:quantize {mode='dynamic'})(x) end)
	assert(before:error(y).sqnr > 30 and paths.linear.int8 == 3 and not paths.linear.fallback)
	y, paths = logged(function() return (fresh:quantize {mode='weight_only', weight='int4:8'})(x) end)
	assert(before:error(y).sqnr > 12 and paths.linear.weight_only == 3 and not paths.dequantize and not paths.linear.fallback)
	local _, c = fresh:quantize {}
	assert(c[1].mode == 'dynamic')
	_, c = m:quantize {}
	assert(c[1].mode == 'static')
	refused("quantize: linear1: mode 'static' wanted a calibrated layer", fresh.quantize, fresh, {mode='static'})
	refused("quantize: linear1: weight: wanted affine codes with one scale per output in mode 'dynamic', got 'int4/1:4'", fresh.quantize, fresh,
		{mode='dynamic', weight='int4/1:4'})
	for _, weight in ipairs {'int4:8', 'uint4:8+min'} do
		y, paths = logged(function() return (fresh:quantize {mode='dynamic', weight=weight})(x) end)
		assert(before:error(y).sqnr > 12 and paths.linear.int8 == 3 and not paths.linear.fallback)
	end
end)

it('train: real integers forward, gradients with decoded codes', function()
	local q = m:quantize {mode='train', weight='int8/1', input='int8'}
	local input = x:reshape(40, 36)
	local y, paths = logged(function() return q(x) end)
	assert(paths.linear.int8 == 3)
	local target = tensor.randn(40, 5)
	nn.mse(y, target):backward()
	-- the last layer by hand: dW = dY' deq(X), db = sum dY, with the codes that ran
	local h = input:quantize('int8'):linear(m.linear1.weight:detach():quantize 'int8/1', m.linear1.bias:detach()):relu()
	h = h:quantize('int8'):linear(m.linear2.weight:detach():quantize 'int8/1', m.linear2.bias:detach()):relu():quantize 'int8'
	local dy = (y:detach() - target) * (2 / (40 * 5))
	assert(q.linear3.weight:grad():error(dy:t():matmul(h:dequantize())).max < 1e-6)
	assert(q.linear3.bias:grad():error(dy:sum(1)).max < 1e-6)
	local start = nn.mse(q(x), target):item()
	q:fit({{x, target}}, {opt=optim.adam(q, {lr=0.01}), loss=nn.mse, epochs=20, log=false})
	assert(nn.mse(q(x), target):item() < 0.5 * start)
	-- what was trained is quantized by its float weights, in every mode
	for _, o in ipairs {{mode='weight_only', weight='int8/1'}, {mode='dynamic', weight='int8/1', input='uint8'}} do
		assert(q:eval():quantize(o)(x):error(q:dequantize():eval():quantize(o)(x)).max == 0)
	end
	refused("quantize: linear1: mode 'static' wanted a calibrated layer, got one of mode 'train', which stores no ranges; "
		.. 'calibrate and quantize m:dequantize()', q.quantize, q, {mode='static'})
	local f = q:dequantize():eval()
	f:calibrate({{x, target}}, {log=false})
	assert(f:quantize{mode='static'}(x):error(q(x)).sqnr > 20)
	-- auto: what the layers allow, without ranges dynamic
	local _, choice = q:quantize{mode='auto'}
	assert(choice[1].mode == 'dynamic')
	refused('q:dequantize() gives a float model', q.calibrate, q, {{x, target}})
	local o = {mode='dynamic', weight='int8/1'}
	refused('wanted a float layer, got one that is quantized already; q:dequantize() gives a float model', m.quantize, m:quantize(o), o)
end)

it('int8 takes at most a 3.6th of the bytes, of the allocator, whatever batches it has run', function()
	local function now()
		collectgarbage()
		collectgarbage()
		return tensor.memory().now
	end
	local mlp = nn.Sequential {nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)}:eval()
	local digits = tensor.rand(100, 784)
	mlp:calibrate({{digits}}, {log=false})
	for _, mode in ipairs {'static', 'dynamic'} do
		local start = now()
		local q = mlp:quantize {mode=mode}
		for _, batch in ipairs {100, 64, 8, 1} do
			for _ = 1, 4 do q(digits:narrow(1, 1, batch)) end
			assert(3.6 * (now() - start) < mlp:nbytes(), ('%s, %d rows: %d of %d bytes'):format(mode, batch, now() - start, mlp:nbytes()))
		end
	end
end)

it('train: what is kept for backward are codes', function()
	local function kept(model)
		collectgarbage()
		collectgarbage()
		local start = tensor.memory().now
		local y = model(x:dequantize())
		collectgarbage()
		collectgarbage()
		return tensor.memory().now - start, y
	end
	local wide = nn.Sequential {nn.Linear(6, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 6)}
	local q = wide:quantize {mode='train'}
	x = tensor.randn(2000, 6)
	local float, integer = kept(wide), kept(q)
	assert(integer < 0.36 * float, ('%d of %d bytes'):format(integer, float))
end)

it('qat: the output is that of rounded numbers, and static keeps the scales', function()
	x = tensor.randn(40, 1, 6, 6)
	m:calibrate(data, {log=false})
	local q = m:quantize {mode='qat', weight='int8/1', input='uint8'}
	local y = q(x):detach()
	local h = x:reshape(40, 36)
	for i = 1, 3 do
		local o = m['linear' .. i]
		local p = quant.params(m:observers()[i].lo, m:observers()[i].hi, 'uint8')
		h = h:fake {dtype='uint8', scale=p.scale, zero_point=p.zero_point}:linear(o.weight:detach():fake 'int8/1', o.bias:detach())
		if i < 3 then h = h:relu() end
	end
	assert(y:error(h).max < 1e-5)
	assert(q:verify(x).sqnr > 40 and q:verify(x).agree > 95)
	local s, c = q:quantize {mode='static'}
	assert(c[1].why == 'scales of the training' and s.linear1.weight:codes():ne(m.linear1.weight:detach():quantize('int8/1'):codes())
		:any():item() == false)
end)

it('qat: learned scales are parameters and leave with the conversion', function()
	local q = m:quantize {mode='qat', weight={bits=4, axis=1, learn=true}, input={bits=4, scheme='asymmetric', learn=true}}
	assert(q.linear1.weight_scale:nelem() == 48 and q.linear1.input_scale:requires_grad() and q.linear1.input_zero)
	local first = q.linear1.weight_scale:detach():clone()
	q:fit({{x, tensor.ones {40, dtype='int64'}}}, {opt=optim.adam(q, {lr=0.01}), epochs=3, log=false})
	assert(q.linear1.weight_scale:detach():error(first).max > 0)
	local s = q:quantize {mode='static'}
	assert(s.linear1.weight:qparams().scale:error(q.linear1.weight_scale:detach()).max == 0)
	assert(s.linear1.weight:qparams().bits == 4 and s.linear1.weight:codes():min():item() >= -7)
	for name in pairs(s:state()) do assert(not name:find 'scale') end
	assert(q:verify(x).agree > 90)
end)

it('rules: the first that matches wins', function()
	local q, c = m:quantize {mode='dynamic', rules={{'linear[12]$', 'int4/1'}, {'linear.*', false}}}
	assert(c[1].weight == 'int4/1' and c[2].weight == 'int4/1' and c[3].mode == 'float' and c[3].why == 'a rule says so')
	_, c = m:quantize {rules={function(_, layer) return layer.weight:size(1) < 10 and {mode='weight_only', weight='int4:8'} or nil end}}
	assert(c[3].mode == 'weight_only' and c[3].weight == 'int4:8' and c[1].mode == 'static' and q)
	_, c = m:quantize {mode='dynamic', rules={{'linear3', 'int4/1:8', optional=true}, {'conv.*', 'int8', optional=true}}}
	assert(c[3].mode == 'weight_only' and c[3].why:find 'no integer product')
	refused("rules: item 1: wanted a pattern that matches a layer, got 'conv.*'; layers: linear1 linear2 linear3", m.quantize, m,
		{rules={{'conv.*', 'int8'}}})
	refused("rules: item 3: wanted a pattern that is the first to match a layer, got '.*': it matches 'linear3', but items 1, 2 before it took all \z
		that it matches; put it in front", m.quantize, m, {mode='dynamic', rules={{'linear[12]', 'int8'}, {'linear3', false}, {'.*', 'int8'}}})
	refused("got 'linear2': it matches 'linear2', but item 1 before it took all", m.quantize, m, {mode='dynamic', rules={function() return false end, {'linear2', 'int8'}}})
	_, c = m:quantize {mode='dynamic', rules={{'linear', 'int4'}, {'linear3', 'int8', optional=true}, {'conv.*', 'int8', optional=true}}}
	assert(tostring(c):gsub('%s+', ' '):find("; matched nothing: rule 3 ('conv.*'); rule 2 ('linear3') does nothing: rule 1 before it took all that it matches",
		1, true), tostring(c))
	refused("rules: item 2: wanted a POSIX extended regular expression, got 'a('", m.quantize, m, {rules={{'linear1', 'int8'}, {'a(', 'int8'}}})
	refused("rules: item 1: unknown field 'wieght'; did you mean 'weight'?", m.quantize, m, {rules={{'linear1', wieght='int8'}}})
end)

it('static: specs that are given are taken as they are', function()
	local small = nn.Sequential {nn.Linear(8, 6, {name='fc1'}), nn.ReLU(), nn.Linear(6, 4, {name='fc2'})}
	local a = tensor.randn(5, 8)
	local q, c = small:quantize {mode='static', rules={
		{'fc1', weight={dtype='int8', scale=0.01}, input={dtype='int8', scale=0.05}, output={dtype='uint8', scale=0.04, zero_point=3}},
		{'fc2', input={dtype='uint8', scale=0.04, zero_point=3}}}}
	local y = q.fc1(a)
	assert(y:dtype() == 'uint8' and y:qparams().zero_point:item() == 3 and math.abs(y:qparams().scale:item() - 0.04) < 1e-8)
	local by_hand = a:quantize {dtype='int8', scale=0.05}:linear(small.fc1.weight:detach():quantize {dtype='int8', scale=0.01},
		small.fc1.bias:detach(), {out={dtype='uint8', scale=0.04, zero_point=3}})
	assert(y:codes():eq(by_hand:relu():codes()):all():item()) -- the activation is part of the layer
	assert(c[1].input == 'int8' and c[1].output ~= 'float' and c[2].output == 'float')
	-- a spec without a scale gets the range of the calibration
	small:calibrate({{a, a}}, {input='uint8', log=false})
	q = small:quantize {mode='static', input='int8'}
	local lo, hi = a:min():item(), a:max():item()
	assert(q.fc1.quantized.input.dtype == 'int8' and
		math.abs(q.fc1.quantized.input.scale - math.max(-lo, hi) / 127) < 1e-6)
	-- an output that is given stays, though the next layer takes other codes
	q = small:quantize {mode='static', rules={{'fc1', output={dtype='uint8', scale=0.5, zero_point=7}}}}
	assert(q.fc1(a):qparams().zero_point:item() == 7 and q(a):size(2) == 4)
	refused("quantize: fc1: output: wanted a spec with scale=, got 'uint8'", small.quantize, small, {mode='static', output='uint8'})
	refused("quantize: fc1: output: wanted mode 'static', got 'dynamic', which returns floats", small.quantize, small,
		{mode='dynamic', output={dtype='uint8', scale=0.5}})
	refused("quantize: fc1: input: wanted one scale for the whole tensor, got 'int8/1'", small.quantize, small,
		{mode='static', input='int8/1'})
end)

it('int4 weights of a 3 x 3 convolution share all their bytes', function()
	local conv = nn.Sequential {nn.Conv2d(16, 8, 3)}
	local images = tensor.randn(2, 16, 6, 6)
	for _, mode in ipairs {'weight_only', 'dynamic'} do
		local q = conv:quantize {mode=mode, weight='int4/1'}
		assert(q.conv1.weight:nbytes() == 8 * 16 * 9 // 2 + 8 * 4)
		local plain = conv.conv1.weight:detach():quantize 'int4/1'
		assert(q.conv1.weight:codes():eq(plain:codes()):all():item() and q(images):size(2) == 8)
	end
	assert(tensor.zeros(4, 3):quantize('int4'):nbytes() == 4 * 2 + 4 and tensor.zeros(4, 3):quantize('int4'):t():nbytes() == 4 * 2 + 4)
end)

it('bad input', function()
	refused("quantize: mode: wanted auto, static, dynamic, weight_only, qat, train, got 'statc'; did you mean 'static'?", m.quantize, m,
		{mode='statc'})
	refused("quantize: unknown option 'wieght'; did you mean 'weight'?", m.quantize, m, {wieght='int8'})
	refused('quantize: wanted a model with layers that have weights, got none', nn.ReLU().quantize, nn.ReLU(), {})
	refused('calibrate: data: wanted at least one batch, got none', m.calibrate, m, function() return function() end end, {log=false})
	refused("calibrate: input: wanted one scale for the whole tensor, got 'int8/1'", m.calibrate, m, data, {input='int8/1'})
	refused('quantize: linear1: wanted a float layer, got one that is quantized already', function()
		local q = m:quantize {mode='dynamic'}
		q:quantize {mode='dynamic'}
	end)
end)

---------------------------------------------------------------- what stands in several places

it('a layer in several places is quantized once and stays one', function()
	tensor.seed(61)
	local l, body = nn.Linear(8, 8), nn.Linear(8, 8)
	local block = nn.Residual {body, nn.ReLU()}
	local m = nn.Sequential {l, nn.ReLU(), block, l, block, nn.ReLU(), nn.Linear(8, 3)}:eval()
	local x = tensor.randn(64, 8)
	print(m)  --> Sequential()  171 parameters
	--> linear1...
	--> relu1...
	--> residual1...
	--> linear1...
	--> relu1...
	--> linear2     Linear(8, 8)  as linear1
	--> residual2   Residual()  as residual1
	--> relu2...
	--> linear3...
	assert(m:fuse()(x):error(m(x)).max < 1e-5)
	m:calibrate({{x, x}}, {log=false})
	print(#m:observers())  --> 5
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		local q, r = m:quantize {mode=mode}
		assert(#r:where {weight='int8/1'} == 3 and rawequal(q[1], q[4]) and rawequal(q[3], q[5]) and q[1].weight:dtype() == 'int8', mode)
		local y = q(x)
		assert(y:dtype() == 'float32' and y:error(m(x)).sqnr > 20, mode .. ' ' .. y:error(m(x)).sqnr)
		local traced, g = graph.trace(q, x), graph.trace(m, x)
		assert(traced:run(x, {check=true}):error(y).max == 0)
		local n, gq = 0, g:quantize {mode=mode}
		assert(gq:run(x, {check=true}):error(m(x)).sqnr > 20)
		for _, name in ipairs(gq.order) do n = n + (gq.nodes[name].op == 'const' and gq.nodes[name].value:quantized() and 1 or 0) end
		assert(n == 3, n)
		if mode ~= 'static' then assert(gq:run(x):error(y).max == 0, mode) end
	end
	refused("rules: item 1: wanted a pattern that matches a layer, got 'linear2'", m.quantize, m, {rules={{'linear2', 'int4'}}})
	assert(m:equalize()(x):error(m(x)).max < 1e-4)
end)
it('a batch norm or an activation behind the second place is not folded into both', function()
	tensor.seed(62)
	local c = nn.Conv2d(4, 4, 3, {pad=1})
	local norm = nn.BatchNorm2d(4)
	norm.running_mean:copy_(tensor.randn(4))
	local m = nn.Sequential {c, nn.Tanh(), c, norm, nn.ReLU()}:eval()
	local x = tensor.randn(4, 4, 6, 6)
	assert(m:fuse()(x):error(m(x)).max < 1e-5)
	assert(m:quantize{mode='weight_only', weight='int16/1'}(x):error(m(x)).sqnr > 60)
	local g = graph.trace(m, x)
	assert(g:pass{'fold', 'fuse'}:run(x):error(m(x)).max < 1e-5)
	assert(g:quantize{mode='weight_only', weight='int16/1'}:run(x):error(m(x)).sqnr > 60)
end)
it('weights that two layers hold become one tensor of codes', function()
	local m = nn.Sequential {nn.Embedding(20, 8), nn.Linear(8, 20)}
	m.linear1.weight = m.embedding1.weight
	local q = m:quantize {mode='weight_only'}
	print(rawequal(q.embedding1.weight, q.linear1.weight), m:nbytes(), q:nbytes())  --> true 720 320
	local other = m:quantize {mode='weight_only', rules={{'linear1', 'int4/1'}}}
	print(other.embedding1.weight:dtype(), other.linear1.weight:dtype())  --> int8 int4
end)
it('keeps a weight that two layers share, or says that it became two', function()
	local m = nn.Sequential {nn.Embedding(50, 16, {name='embedding'}), nn.Linear(16, 16), nn.Linear(16, 50, {name='head', bias=false})}
	m.head.weight = m.embedding.weight
	local q, r = m:quantize {mode='dynamic'}
	assert(rawequal(q.head.weight, q.embedding.weight) and q.head.weight:dtype() == 'int8')
	local codes = q.head.weight:nbytes() + q.linear1.weight:nbytes()
	local note = tostring(r):gsub('%s+', ' ')
	assert(note:find(('weights %d bytes, %.3f of'):format(codes, codes / (4 * (50 * 16 + 16 * 16))), 1, true), note)
	assert(not note:find 'became two')
	q, r = m:quantize {mode='dynamic', rules={{'embedding.*', false}}}
	note = tostring(r):gsub('%s+', ' ')
	assert(note:find("weights are no longer shared in 'embedding' and 'head'; the float model is smaller", 1, true), note)
	assert(r:where{name='head'}.why:find "its weight was that of 'embedding'" and r:where{name='embedding'}.why:find 'a rule says so; its weight')
	assert(q.embedding.weight:dtype() == 'float32' and q.head.weight:dtype() == 'int8' and q:nbytes() > m:nbytes())
	q, r = m:quantize {mode='dynamic', rules={{'embedding|head', weight='int4:16', mode='weight_only'}}}
	assert(rawequal(q.head.weight, q.embedding.weight) and not tostring(r):find 'became two')
end)

it('fields of a layer hide no method of it', function()
	local m, batches = nn.Linear(4, 3), {{tensor.randn(8, 4), tensor.ones(8)}}
	m:calibrate(batches, {input = 'uint8', log = false})
	print(#m:observers())  --> 1
	for _, mode in ipairs {'static', 'dynamic', 'weight_only', 'train', 'qat'} do
		local q = m:clone()
		q:calibrate(batches, {input = 'uint8', log = false})
		q = q:quantize {mode = mode}
		for key in next, q do
			local text = type(key) == 'string' and key:match '^[^_].*'
			local known, of_all = pcall(function() return nn.Linear(1, 1)[text] end)
			assert(not (text and known and type(of_all) == 'function'), text)
		end
	end
end)
