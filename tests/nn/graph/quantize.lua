-- SPDX-License-Identifier: MIT
-- labels: quick host
-- g:quantize: the same bits as m:quantize where both see the same, explicit scales, rules, chains of dtypes, errors; g:calibrate.
tensor.seed(12)

local function fails(pattern, fn, ...)
	local good, message = pcall(fn, ...)
	assert(not good, 'wanted an error: ' .. pattern)
	assert(message:find(pattern), message)
end

local function counts(g)
	local n = {}
	for _, name in ipairs(g.order) do n[g.nodes[name].op] = (n[g.nodes[name].op] or 0) + 1 end
	return n
end

local function ids(b) return tensor.randint{b, 6, low=1, high=20, dtype='int32'} end
local function images(b) return tensor.randn(b, 3, 8, 8) end

-- name, model, a batch, whether it is all integer
local models = {
	mlp = {nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)}, function(b) return tensor.randn(b, 8) end},
	cnn = {nn.Sequential{nn.Conv2d(3, 8, 3, {pad=1, bias=false}), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
		nn.Residual{nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {pad=1})}, nn.ReLU(),
		nn.Residual{nn.Conv2d(8, 12, 3, {pad=1}), shortcut=nn.Conv2d(8, 12, 1)}, nn.ReLU(), nn.Conv2d(12, 4, 1), nn.AvgPool2d(),
		nn.Flatten(), nn.Linear(4, 4)}, images},
	lstm = {nn.Sequential{nn.Embedding(20, 8), nn.LSTM(8, 12, {layers=2}), nn.Linear(12, 20)}, ids},
	gru = {nn.Sequential{nn.Embedding(20, 8), nn.GRU(8, 12), nn.Linear(12, 20)}, ids},
	transformer = {nn.Transformer{vocab=20, d=16, heads=4, layers=2, context=8}, ids},
	llama = {nn.Transformer{vocab=20, d=16, heads=4, kvheads=2, layers=1, norm='rmsnorm', act='swiglu', position='rope', bias=false}, ids},
}

it('gives the bits of m:quantize in every mode', function()
	for name, entry in pairs(models) do
		local m, x = entry[1]:eval(), entry[2](4)
		m:calibrate({{x, x}, {entry[2](4), x}}, {log=false})
		local g = graph.trace(m, x)
		local before = #g.order
		for _, o in ipairs {{mode='static'}, {mode='dynamic'}, {mode='weight_only'}, {mode='auto', weight='int8'},
			{mode='weight_only', weight='int4:16'}, {mode='static', weight='int4/1', input='int8'}} do
			local q = g:quantize(o)
			local wanted = m:quantize(o)
			for b = 1, 3 do
				local v = entry[2](b)
				local got = q:run(v, {check=true})
				assert(got:error(wanted(v)).max == 0, ('%s %s %s: %g'):format(name, o.mode, o.weight, got:error(wanted(v)).max))
				assert(q:run(v, {arena=true}):error(got).max == 0)
			end
			assert(#select(2, q:pass {'fuse', 'insert_borders', 'dce'}) == 0, name)
		end
		assert(#g.order == before and g:run(x):error(m(x)).max == 0)
	end
end)

it('passes codes through relu, pooling and sums; floats stand only where an op wants them', function()
	local m, x = models.cnn[1], images(16)
	m:calibrate({{x, x}}, {log=false})
	local q, r = graph.trace(m, x):quantize{mode='static'}
	local n = counts(q)
	print(n.quantize, n.dequantize, n.requantize, n.batchnorm)  --> 1 nil nil nil
	print(q:node('residual1.add1').attrs.out.name, n.relu, q:node('avgpool1').dtype)  --> uint8 nil uint8
	print(r:where{node='residual1.add1'}.mode, r:where{node='avgpool1'}.mode)  --> static static
	quant.log 'reset'
	q:run(x)
	print(#quant.log():where{path='fallback'}, quant.log():where{op='conv2d'}[1].path)  --> 0 int8
end)

it('takes scale and zero point from the rules, without calibration', function()
	local m = nn.Sequential{nn.Linear(8, 16, {name='fc1'}), nn.ReLU(), nn.Linear(16, 4, {name='fc2'})}
	local x = tensor.randn(32, 8)
	local q, r = graph.trace(m, x):quantize{rules={
		{'.*fc1', mode='static', weight={dtype='int8', scale=0.05}, input={dtype='int8', scale=0.05, zero_point=0}},
		{'fc2', false}}}
	print(r[1].rule, r[1].mode, r[2].rule, r[2].mode, r[2].why)  --> 1 static 2 float a rule says so
	print(q:node('fc1.weight').value:qparams().scale:item(), q:node('fc1.quantize').attrs.spec.scale)  --> 0.05 0.05
	local codes = x:quantize{dtype='int8', scale=0.05}
	local wanted = m[3](codes:linear(m[1].weight:detach():quantize{dtype='int8', scale=0.05}, m[1].bias):relu())
	print(q:run(x):error(wanted).max)  --> 0.0
end)

it('the rules of the requirement: fc in int8 with given scales, conv in int16 per channel', function()
	local m = nn.Sequential{nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(64, 10, {name='fc'})}
	local x = images(8)
	local rules = {{'.*fc.*', mode='static', weight={dtype='int8', scale=0.05}, input={dtype='int8', scale=0.05, zero_point=0}},
		{'.*conv.*', mode='static', weight='int16/1', input={dtype='int16', scale=0.01}}}
	local g = graph.trace(m, x)
	local r = g:match(rules)
	print(r:where{node='conv1'}.rule, r:where{node='conv1'}.weight, r:where{node='fc'}.rule, r:where{node='fc'}.input)  --> 2 int16/1 1 int8 asymmetric
	local q = g:quantize{rules=rules}
	local wanted = m:quantize{rules=rules}
	print(q:node('conv1.weight').dtype, q:node('conv2.weight').value:qparams().scale:nelem(), q:node('fc.weight').dtype)  --> int16 4 int8
	print(q:node('conv1').attrs.out.name, q:node('conv2').attrs.out.name)  --> int16 int8 asymmetric
	quant.log 'reset'
	assert(q:run(x, {check=true}):error(wanted(x)).max < 0.1)
	print(#quant.log():where{path='fallback'}, quant.log():where{op='conv2d'}[1].path)  --> 0 int16
end)

it('chains of dtypes: codes of one layer are requantized for the next', function()
	local m = nn.Sequential{nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)}
	local x = tensor.randn(16, 8)
	local int8, int16 = {dtype='int8', scale=0.05}, {dtype='int16', scale=2e-4}
	local g = graph.trace(m, x)
	local q = g:quantize{mode='static', weight='int8/1', rules={{'linear1', input=int8, output=int8},
		{'linear2', input=int16, weight='int16/1'}, {'linear3', input=int8}}}
	local n = counts(q)
	print(n.quantize, n.requantize, n.dequantize)  --> 1 1 nil
	print(q:node('linear2.quantize').op, q:node('linear2').attrs.out.dtype, q:node('linear3').attrs.out)  --> requantize int8 nil
	local same = g:quantize{mode='static', rules={{'linear1', input=int8, output=int8}, {'linear.*', input=int8}}}
	print(counts(same).requantize, counts(same).quantize)  --> nil 1
	assert(q:run(x, {check=true}):error(m(x)).sqnr > 20)
end)

it('output= makes the last layer give codes', function()
	local m = nn.Sequential{nn.Linear(4, 4)}
	local x = tensor.randn(8, 4)
	local q = graph.trace(m, x):quantize{mode='static', input={dtype='int8', scale=0.03}, output={dtype='int8', scale=0.02}}
	print(q:run(x):dtype(), q:run(x):qparams().scale:item())  --> int8 0.02
end)

it('a rule may be a function of the node; a matched op without an integer version is an error unless optional', function()
	local m = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.module(function(_, v) return v:cumsum(2) end), nn.Linear(16, 4)}
	local x = tensor.randn(4, 8)
	local g = graph.trace(m, x)
	local _, r = g:quantize{mode='dynamic', fuse=false, rules={function(node)
		if node.op == 'linear' and node.attrs.act == nil and node.name == 'linear3' then return false end
		if node.name == 'linear1' then return 'int4/1' end
	end}}
	print(r:where{node='linear1'}.weight, r:where{node='linear3'}.mode, r:where{node='linear1'}.rule)  --> int4/1 float 1
	fails("module1: 'cumsum' has no integer version; those that have: .*linear", g.quantize, g, {rules={{'module1', 'int8'}}})
	local _, optional = g:quantize{mode='dynamic', rules={{'module1', 'int8', optional=true}}}
	print(optional:where{op='cumsum'}.mode, optional:where{op='cumsum'}.why)  --> float 'cumsum' has no integer version...
	fails("rules: item 2: wanted a pattern that matches a layer, got 'fc'", g.quantize, g, {mode='dynamic', rules={{'linear1', 'int8'}, {'fc', 'int8'}}})
	fails("rules: item 2: wanted a pattern that is the first to match a layer, got 'linear1': it matches 'linear1', but item 1 before it took all",
		g.quantize, g, {mode='dynamic', rules={{'.*', optional=true}, {'linear1', false}}})
	_, r = g:quantize{mode='dynamic', rules={{'.*', optional=true}, {'linear1', false, optional=true}, {'fc', 'int8', optional=true}}}
	print(tostring(r):gsub('%s+', ' '):match '; matched.*')  --> ; matched nothing: rule 3 ('fc'); rule 2 ('linear1') does nothing: rule 1 before it took all that it matches
	fails('wanted a POSIX extended regular expression', g.quantize, g, {rules={{'(', 'int8'}}})
	fails("rules: wanted a list of {pattern, spec}, got a field 'linear1'", g.quantize, g, {rules={linear1='int4'}})
	fails("rules: item 1: unknown field 'inptu'; did you mean 'input'", g.quantize, g, {rules={{'linear1', {weight='int4', inptu='int8'}}}})
	fails("rules: item 1: unknown field 'wieght'", g.quantize, g, {rules={function() return {weight='int4/1', wieght=1} end}})
	fails('rules: item 1: optional: wanted true or false, got 5', g.quantize, g, {rules={{'linear1', 'int8', optional=5}}})
end)

it('float specs in rules mean float weights or float inputs; beside a named mode they are refused, in m:quantize as here', function()
	local m, x = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)}, tensor.randn(16, 8)
	local g = graph.trace(m, x)
	for _, o in ipairs {{mode='dynamic', rules={{'linear1', 'float32'}}}, {mode='weight_only', rules={{'linear1', weight='float32'}}},
		{mode='dynamic', rules={{'linear1', 'float16'}}}, {mode='dynamic', rules={{'linear1', input='float32'}}}, {input='float32'},
		{mode='weight_only', weight='bfloat16'}} do
		local q, r = g:quantize(o)
		local wanted, s = m:quantize(o)
		for i, name in ipairs {'linear1', 'linear2'} do
			assert(r:where{node=name}.mode == s[i].mode, name .. ' ' .. r:where{node=name}.mode .. ' ' .. s[i].mode)
		end
		assert(q:run(x, {check=true}):error(wanted(x)).max == 0)
	end
	local q, r = g:quantize{mode='dynamic', rules={{'linear1', weight='float32'}, {'linear2', 'float16'}}}
	print(r:where{node='linear1'}.mode, r:where{node='linear1'}.why, r:where{node='linear2'}.mode)  --> float the spec of its weight is 'float32' weight_only
	print(q:node('linear1.weight').dtype, q:node('linear2.weight').dtype)  --> float32 float16
	for _, object in ipairs {m, g} do
		fails("linear1: input: wanted a spec of codes in mode 'dynamic', got 'float32'; mode='weight_only'", object.quantize, object,
			{mode='dynamic', input='float32'})
		fails("linear2: weight: wanted a spec of codes in mode 'static', got 'float16'", object.quantize, object,
			{mode='dynamic', rules={{'linear2', mode='static', weight='float16'}}})
	end
end)

it('rules for sums alone are served, or refused with what to do', function()
	local m = nn.Sequential{nn.Linear(8, 8), nn.Residual{nn.Linear(8, 8)}, nn.Linear(8, 4)}
	local x = tensor.randn(32, 8)
	local g = graph.trace(m, x)
	local a, b = {dtype='int8', scale=0.05}, {dtype='int8', scale=0.1}
	fails('residual1.add1: its operands are not codes, or their range was not observed; .* g:calibrate.* %(rule 1%)', g.quantize, g,
		{mode='dynamic', rules={{'residual.*add.*', mode='static'}}})
	fails("residual1.add1: it has an integer version in mode 'static' only; .*rule 1", g.quantize, g, {mode='dynamic', rules={{'.*add.*', 'int8'}}})
	fails("residual1.add1: output: wanted operands that are codes or whose range is known, got 'residual1.linear1'; call g:calibrate", g.quantize, g,
		{mode='static', input=a, rules={{'.*add.*', output=b}}})
	fails("residual1.add1: output: wanted a spec with scale=, got 'int8'", g.quantize, g, {mode='static', input=a, rules={{'.*add.*', input=a, output='int8'}}})
	local _, r = g:quantize{mode='dynamic', rules={{'residual.*add.*', mode='static', optional=true}}}
	print(r:where{op='add'}.mode, r:where{op='add'}.rule)  --> float 1
	local q, s = g:quantize{mode='dynamic', rules={{'residual.*add.*', mode='static', input=a, output=b}}}
	print(s:where{op='add'}.mode, s:where{op='add'}.output, q:node('residual1.add1').attrs.out.scale)  --> static int8 0.1
	quant.log 'reset'
	q:run(x, {check=true})
	print(#quant.log():where{op='add', path='integer'}, #quant.log():where{path='fallback'})  --> 1 0
	local _, float = g:quantize{mode='dynamic', rules={{'.*add.*', input='float32', optional=true}}}
	print(float:where{op='add'}.why)  --> it has an integer version in mode 'static' only
end)

it('rules that quant.search and quant.sensitivity write fit the graph', function()
	tensor.seed(12)
	local m, x = models.lstm[1], ids(4)
	local y = tensor.randint{4, 6, low=1, high=20, dtype='int64'}
	local _, rules = quant.sensitivity(m, {data={{x, y}}, metric='loss', spec='int4/1', log=false})
	assert(#rules > 0)
	rules[#rules + 1] = {'.*', 'int4/1'}
	if rules[1][1] ~= 'lstm1$' then table.insert(rules, 1, {'lstm1$', 'int8'}) end -- its nodes are lstm1.lstm1 and lstm1.lstm2
	local g = graph.trace(m, x)
	local q = g:quantize{mode='weight_only', rules=rules}
	assert(q:run(x):error(m:quantize{mode='weight_only', rules=rules}(x)).max == 0)
end)

it('weights that are codes already stay as they are', function()
	local w = tensor.randn(5, 8):quantize 'int4/1'
	local m = nn.module(function(self, x) return x:linear(self.w) end, {w=w})
	local x = tensor.randn(3, 8)
	local g = graph.trace(m, x)
	print(g:run(x):error(m(x)).max)  --> 0.0
	local q, r = g:quantize{mode='dynamic', input='int8'}
	quant.log 'reset'
	local y = q:run(x, {check=true})
	print(q:node('w').dtype, r.weight, quant.log():where{op='linear'}.path)  --> int4 int4/1 int8
	print(y:error(x:quantize('int8'):linear(w)).max)  --> 0.0
	print(g:quantize{mode='weight_only'}:run(x):error(x:linear(w:dequantize())).max)  --> 0.0
end)

it('twice is once', function()
	local m, x = models.cnn[1], images(8)
	m:calibrate({{x, x}}, {log=false})
	local q = graph.trace(m, x):quantize{mode='static'}
	local twice, r = q:quantize{mode='static'}
	print(tostring(twice) == tostring(q), r[1].mode, r[1].why)  --> true float quantized already
	assert(twice:run(x):error(q:run(x)).max == 0)
	local traced = graph.trace(m:quantize{mode='static'}, x)
	assert(traced:quantize{mode='static'}:run(x):error(traced:run(x)).max == 0)
end)

it('twice is once in every mode, and every pass on what comes out changes nothing', function()
	local passes = {'fold_norm', 'fold_constants', 'fuse_activation', 'merge_equal', 'fuse_requantize', 'raise_quantize', 'clamp_codes',
		'insert_borders', 'dce'}
	for name, entry in pairs(models) do
		local m, x = entry[1]:eval(), entry[2](4)
		m:calibrate({{x, x}}, {log=false})
		for _, g in ipairs {graph.trace(m, x), (graph.trace(m, x):calibrate({{x, x}}, {log=false}))} do
			for _, pass in ipairs(passes) do
				local once = g:pass(pass)
				local twice, r = once:pass(pass)
				assert(#r == 0 and tostring(twice) == tostring(once), name .. ' ' .. pass)
			end
			for _, o in ipairs {{mode='static'}, {mode='dynamic'}, {mode='weight_only'}, {mode='weight_only', weight='int4:16'},
				{mode='static', rounding='single'}, {rules={{'.*1', mode='weight_only', optional=true}}}} do
				local q = g:quantize(o)
				local twice, r = q:quantize(o)
				assert(tostring(twice) == tostring(q), name .. ' ' .. tostring(o.mode))
				assert(twice:run(x, {check=true}):error(q:run(x)).max == 0)
				for _, row in ipairs(r) do assert(row.mode == 'float', row.node) end
				for _, pass in ipairs(passes) do assert(#select(2, q:pass(pass)) == 0, name .. ' ' .. pass) end
			end
		end
		local traced = graph.trace(m:quantize{mode='weight_only'}, x)
		local again = traced:quantize{mode='weight_only'}
		assert(again:run(x):error(traced:run(x)).max == 0 and tostring(again:quantize{mode='weight_only'}) == tostring(again), name)
	end
end)

it('g:calibrate sees every edge, also sums in models written in Lua', function()
	tensor.seed(14)
	local m = nn.module(function(self, x) return self.c((self.a(x) + self.b(x)):relu()) end,
		{a=nn.Linear(8, 8), b=nn.Linear(8, 8), c=nn.Linear(8, 4)})
	local x = tensor.randn(64, 8)
	local g = graph.trace(m, x)
	fails("mode 'static' wanted a calibrated input", g.quantize, g, {mode='static'})
	g:calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	print(r:where{op='add'}.mode, q:node('add1').attrs.out.name, counts(q).quantize, counts(q).dequantize)  --> static uint8 1 nil
	assert(q:run(x):error(m(x)).sqnr > 25)
	fails('wanted one scale for the whole tensor', g.calibrate, g, {{x, x}}, {input='int8/1'})
	fails('data: wanted a loader or a list of batches {x, y}, got a model', g.calibrate, g, m, {log=false})
	fails('got a function that gives nil', g.calibrate, g, function() end, {log=false})
	fails('data: wanted batches of tensors, got 1', g.calibrate, g, {{1, 2}}, {log=false})
	fails('wanted a tensor to go into a layer, got table', graph.trace, nn.Linear(2, 2), {{tensor.ones(1, 2)}})
	fails('at least one batch', g.calibrate, g, function() return function() end end, {log=false})
	local e = graph.trace(m, x):calibrate({{x, x}}, {input='uint8@entropy', log=false})
	assert(e:quantize{mode='static'}:node('a.quantize').attrs.spec.scale ~= q:node('a.quantize').attrs.spec.scale)
end)

it('refuses what it cannot do by name', function()
	local m, x = models.mlp[1], tensor.randn(4, 8)
	local g = graph.trace(m, x)
	fails("mode: wanted auto, static, dynamic, weight_only, got 'qat'", g.quantize, g, {mode='qat'})
	fails("unknown option 'weights'; did you mean 'weight'", g.quantize, g, {weights='int8'})
	fails('linear1: output: wanted mode .static., got .dynamic.', g.quantize, g, {mode='dynamic', output={dtype='int8', scale=1}})
	fails('linear1: output: wanted a spec with scale=', g.quantize, g, {mode='static', input={dtype='int8', scale=1}, output='int8'})
	fails('wanted one scale for the whole tensor', g.quantize, g, {mode='dynamic', input='int8/1'})
	fails('wanted a graph with nodes that can be quantized', g.quantize, graph.trace(nn.ReLU(), x), {mode='dynamic'})
	fails("wanted a graph, as in g:quantize", g.quantize, m, {})
end)

it('inputs of formats without integer products: the results of m:quantize', function()
	local x = tensor.randn(8, 64)
	for _, input in ipairs {'mxfp8_e4m3', 'nvfp4', 'nf4:64', 'fp8_e4m3/1', 'int4:32+min'} do
		local m, o = nn.Sequential {nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)}, {mode='dynamic', weight='int8/1', input=input}
		local y, g = m:quantize(o)(x), graph.trace(m, x:narrow(1, 1, 1)):quantize(o)
		assert(g:run(x):eq(y):all():item(), input)
		local good, message = pcall(g.export, g, {dir=os.tmpname() .. 'd', name='net'})
		assert(not good and message:find 'wanted affine codes under one scale', message)
	end
	local g = graph.trace(nn.Linear(64, 8), x:narrow(1, 1, 1))
	print(pcall(g.quantize, g, {mode='dynamic', input='int8:32'}))  --> false ...wanted one scale for the whole tensor, got 'int8:32'
end)
