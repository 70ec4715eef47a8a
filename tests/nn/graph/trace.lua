-- SPDX-License-Identifier: MIT
-- graph.trace: names, sizes for any batch, equality with the module, and what cannot be traced.
tensor.seed(1)

local function fails(pattern, fn, ...)
	local good, message = pcall(fn, ...)
	assert(not good, 'wanted an error: ' .. pattern)
	assert(message:find(pattern), message)
end

-- g:run(x) is m(x) bit for bit for these batches, alone and in one block of memory.
local function same(m, make, batches)
	m:eval()
	local g = graph.trace(m, make(2))
	for _, b in ipairs(batches or {1, 2, 7}) do
		local x = make(b)
		local wanted, got = m(x), g:run(x, {check=true})
		assert(got:error(wanted).max == 0, 'differs with ' .. b)
		assert(g:run(x, {arena=true}):error(wanted).max == 0, 'differs in an arena with ' .. b)
	end
	return g
end

local function ids(b) return tensor.randint{b, 5, low=1, high=20, dtype='int32'} end
local function images(b) return tensor.randn(b, 3, 8, 8) end
local function rows(b) return tensor.randn(b, 6) end

it('names nodes after their layers, other ops after module and op', function()
	local g = same(nn.Sequential{nn.Conv2d(3, 4, 3, {pad=1}), nn.BatchNorm2d(4), nn.ReLU(),
		nn.Residual{nn.Conv2d(4, 4, 3, {pad=1}), nn.ReLU(), nn.Conv2d(4, 4, 3, {pad=1, name='last'})}, nn.AvgPool2d(), nn.Flatten(),
		nn.Linear(4, 2, {name='fc1'})}, images)
	local names = {}
	for _, name in ipairs(g.order) do
		if g.nodes[name].op ~= 'const' then names[#names + 1] = name end
	end
	print(table.concat(names, ' '))  --> input conv1 batchnorm1 relu1 residual1.conv1 residual1.relu1 residual1.last residual1.add1 avgpool1 flatten1 fc1
	print(g:node('residual1.last').inputs[2], g:node('batchnorm1').inputs[4])  --> residual1.last.weight batchnorm1.running_mean
	print(g:node('conv1').shape, g:node('flatten1').attrs.size[1], g:node('fc1').macs)  --> (B, 4, 8, 8) B 8
	print(g:node('residual1.add1').users[1], g:node('residual1.add1').module)  --> avgpool1 residual1
end)

it('gives the bits of recurrent layers, attention and Transformers for every batch', function()
	same(nn.Sequential{nn.Embedding(20, 8), nn.LSTM(8, 6, {layers=2}), nn.Linear(6, 20)}, ids)
	same(nn.Sequential{nn.Embedding(20, 8), nn.GRU(8, 6, {layers=2}), nn.Linear(6, 20)}, ids)
	same(nn.RNN(6, 4), function(b) return tensor.randn(b, 5, 6) end)
	same(nn.Attention(8, 2, {causal=true, rope=true}), function(b) return tensor.randn(b, 5, 8) end)
	same(nn.Transformer{vocab=20, d=8, heads=2, layers=2, context=8}, ids)
	local g = same(nn.Transformer{vocab=20, d=8, heads=2, kvheads=1, layers=1, norm='rmsnorm', act='swiglu', position='rope', bias=false}, ids)
	print(g:node('head').inputs[2], g:node('block1.attention.query').op)  --> embedding.weight linear
end)

it('names several ops with weights of one layer by number, states are results', function()
	local m = nn.LSTM(3, 4, {layers=2, name='memory'})
	local g = graph.trace(nn.module(function(self, x)
		local y, states = self.memory(x)
		return y, {h = states[2][1]}
	end, {memory=m}), tensor.randn(2, 5, 3))
	print(g:node('memory.lstm1').op, g:node('memory.lstm2').inputs[1], g:node('memory.lstm2:2').shape)  --> lstm memory.lstm1 (B, 4)
	local x = tensor.randn(3, 5, 3)
	local y, states = g:run(x)
	local y2, states2 = m(x)
	print(y:error(y2).max, states.h:error(states2[2][1]).max)  --> 0.0 0.0
end)

it('takes several inputs, lists of them, a second axis and inputs without a batch', function()
	local m = nn.module(function(self, x, pair) return self.a(x) + pair[1] * 2, pair[2] end, {a=nn.Linear(6, 4)})
	local g = graph.trace(m, {rows(2), {tensor.randn(2, 4), tensor.randn(2, 3)}})
	print(#g.inputs, g.inputs[2], g:node('input2.2').shape)  --> 3 input2.1 (B, 3)
	local x, pair = rows(5), {tensor.randn(5, 4), tensor.randn(5, 3)}
	local a, b = g:run{x, pair}
	print(a:error((m(x, pair))).max, b:error(pair[2]).max)  --> 0.0 0.0
	g = graph.trace(nn.LSTM(3, 4, {batchfirst=false}), tensor.randn(5, 2, 3), {batch=2})
	print(g:node('input').shape)  --> (5, B, 3)
	g = graph.trace(nn.module(function(_, v, w) return v:matmul(w) end), {rows(2), tensor.randn(6, 3)}, {batch={1, false}})
	print(g:node('input1').shape, g:node('input2').shape, g:run{rows(9), tensor.randn(6, 3)}:size(1))  --> (B, 6) (6, 3) 9
	print(graph.trace(nn.ReLU(), rows(4), {batch=false}):node('relu1').shape)  --> (4, 6)
	fails('batch: wanted an axis or false, got 0', graph.trace, nn.ReLU(), rows(4), {batch=0})
	fails('wanted float32%(B, 6%), got float32%(5, 4%)', g.run, g, {tensor.randn(5, 4), tensor.randn(6, 3)})
	fails('wanted a tensor or a list of tensors, got 3', g.run, g, 3)
	fails('input1: wanted a tensor, got .x.', g.run, g, {'x', 'y'})
end)

it('gives the bits of all sorts of ops', function()
	local function cube(b) return tensor.randn(b, 4, 6) end
	local list = {
		function(self, x) return tensor.einsum('bij,kj->bik', x, self.w) end,
		function(_, x)
			local parts = x:split(2, {axis=2})
			return parts[1] * parts[2]
		end,
		function(_, x)
			local values, at = x:topk(3)
			return values + at
		end,
		function(_, x) return tensor.where(x:gt(0), x, -x):to 'float64':exp():to 'float32' end,
		function(_, x) return tensor.stack({x, x * 2}, {axis=1}):sum{axis=1} / x:nelem() end,
		function(_, x) return (2 ^ x) + x ^ 2 - 1 / (x:abs() + 1) end,
		function(_, x) return x:mean{axis={2, 3}, keep=true} * x:var{axis=2, keep=true}:softmax{axis=1} end,
		function(_, x) return x:quantize('int8/2'):dequantize() + x:fake 'int4' end,
		function(_, x) return x:matmul(x:transpose(2, 3)):tril():norm{axis=2} end,
		function(_, x) return x:tile(1, 2, 1):flip{3}:leakyrelu(0.2):clamp(-1, 1) end,
		function(_, x) return nn.rope(x:unsqueeze(2)):squeeze(2):argmax(2) end,
	}
	for i, run in ipairs(list) do same(nn.module(run, i == 1 and {w=tensor.randn(5, 6)} or {}), cube, {2, 3, 5}) end
end)

it('sizes that grow evenly with the batch are kept as such', function()
	local g = same(nn.module(function(_, x)
		local b = x:size(1)
		return tensor.cat({x, tensor.zeros(2 * b + 1, x:size(2))}, {axis=1}):narrow(1, b, b + 1) / b
	end), rows, {1, 2, 6})
	print(g:node('zeros1').attrs.size[1], g:node('zeros1').shape, g:node('narrow1').attrs.start)  --> 2B+1 (2B+1, 6) B
	print(g:node('div1').inputs[2])  --> B
	fails("'zeros' of the model: attributes: wanted a value that is the same for every batch", graph.trace,
		nn.module(function(_, x) return x:sum() + tensor.zeros(x:size(1) * x:size(1)) end), rows(2))
	fails('wanted the same ops for every batch', graph.trace,
		nn.module(function(_, x) return x:size(1) > 2 and x:relu() or x:exp() end), rows(2))
	fails('wanted the same ops for every batch', graph.trace, nn.module(function(_, x)
		for _ = 1, x:size(1) do x = x:relu() end
		return x
	end), rows(2))
end)

it('slices become select and narrow, writing becomes a value of its own', function()
	local g = same(nn.module(function(_, x)
		local y = x[{ {}, {2, -1} }] * 2
		y[{ {}, 1 }] = 7
		y['1:1, 2'] = x[{ 1, 3 }]
		return y + x[-1][{ {1, 5} }]
	end), rows)
	local ops = {}
	for _, name in ipairs(g.order) do ops[#ops + 1] = g.nodes[name].op end
	print(table.concat(ops, ' '))  --> input narrow mul assign select select assign select narrow add
	print(g:node('select3').attrs.index)  --> B
	same(nn.module(function(_, x)
		local y = x * 1
		y:add_(x):mul_(3)
		return y:relu_()
	end), rows)
	same(nn.module(function(_, x)
		local y = x * 1
		y[x:gt(0)] = 0
		return y
	end), rows)
	fails('got x%[mask%], whose size depends on values', graph.trace, nn.module(function(_, x) return x[x:gt(0)]:sum() end), rows(2))
	fails('changed in place', graph.trace, nn.module(function(_, x)
		local y = x * 1
		local view = y:narrow(1, 1, 1)
		y:add_(1)
		return view + y
	end), rows(2))
	fails('changed in place', graph.trace, nn.module(function(_, x)
		local y = x * 1
		y:narrow(1, 1, 1):copy_(x:narrow(1, 1, 1))
		return y
	end), rows(2))
	fails('relu_: wanted a tensor that the module computes, got the input', graph.trace, nn.module(function(_, x) return x:relu_() end), rows(2))
	fails('add_: wanted a tensor that the module computes, got a tensor that existed before the call', graph.trace,
		nn.module(function(self, x) return x + self.count:add_(1) end, {count=tensor.zeros{1, dtype='int64'}}), rows(2))
end)

it('reading values into the program is an error that names the module', function()
	local inner = nn.module(function(_, x) return x:sum():item() > 0 and x or -x end, {name='choice'})
	fails("module 'choice': x:item%(%) reads a value of 'sum' that depends on the input", graph.trace, nn.Sequential{inner}, rows(2))
	fails('x:totable%(%) reads', graph.trace, nn.module(function(_, x) return x * x:totable()[1][1] end), rows(2))
	local m = nn.module(function(self, x) return x * self.gain:item() end, {gain=tensor{3}})
	same(m, rows)
end)

it('tensors that no op made must be the same in every call', function()
	local table_ = tensor.randn(6)
	local g = same(nn.module(function(_, x) return x + table_ + tensor{1, 2, 3, 4, 5, 6} end), rows)
	print(g:node('const1').op, g:node('const2').value)  --> const float32(6)  1 2 3 4 5 6
	local count = 0
	fails('wanted tensors that are computed by ops or equal in every call', graph.trace, nn.module(function(_, x)
		count = count + 1
		return x + tensor{count}
	end), rows(2))
end)

it('a quantized module can be traced: its nodes take and give codes', function()
	local m = nn.Sequential{nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)}
	local x = rows(32)
	m:calibrate({{x, x}}, {log=false})
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		local q = m:quantize{mode=mode}
		local g = graph.trace(q, x)
		assert(g:run(x, {check=true}):error(q(x)).max == 0)
	end
end)

it('values that nothing needs are left out, or kept on demand', function()
	local m = nn.module(function(self, x)
		local _ = self.a(x):exp()
		return self.b(x)
	end, {a=nn.Linear(6, 6), b=nn.Linear(6, 6)})
	print(#graph.trace(m, rows(1)).order, #graph.trace(m, rows(1), {dead=true}).order)  --> 4 8
end)

it('refuses what is no module, no tensor, and unknown options', function()
	fails('wanted a module, got 3', graph.trace, 3, rows(1))
	fails('wanted an example of the input, got nil', graph.trace, nn.ReLU())
	fails('wanted a tensor or a list of tensors, got', graph.trace, nn.ReLU(), {'x'})
	fails("unknown option 'batches'", graph.trace, nn.ReLU(), rows(1), {batches=3})
	for _, batch in ipairs {5, {5}} do fails("batch: wanted an axis of 'input', which has 2, got 5", graph.trace, nn.ReLU(), rows(1), {batch=batch}) end
	fails('batch: wanted one axis for each of 1 inputs, got 2', graph.trace, nn.ReLU(), rows(1), {batch={1, 2}})
	fails('wanted a plain tensor, or affine codes under one scale', graph.trace, nn.ReLU(), rows(1):quantize 'int8/1')
	fails("no field or method 'runs'", function() return graph.trace(nn.ReLU(), rows(1)).runs end)
	fails('wanted at most 8 positions', graph.trace, nn.Transformer{vocab=5, d=4, heads=1, layers=1, context=8}, tensor.ones{1, 9, dtype='int32'})
	print(graph.trace(nn.ReLU(), tensor.zeros(0, 3)):run(tensor.zeros(0, 3)):size())  --> 0 3
end)

it('wants tensors from the forward, and what is none to be the same for every batch', function()
	for text, run in pairs {
		['the model: wanted a forward that returns a tensor, got nothing'] = function() end,
		['returns a tensor, got nil'] = function() return nil end,
		['returns a tensor, got 3'] = function() return 3 end,
		['returns a tensor, got a table'] = function() return {4, {}} end,
		['output 2: wanted a value that is the same for every batch, got 1 2 3'] = function(_, x) return x, x:size(1) end,
		['output 1.n: wanted a value that is the same for every batch, got 1 2 3'] = function(_, x) return {x, n=x:size(1)} end,
		['output 2: wanted the same value for every batch, got different ones'] = function(_, x)
			local y = x:relu()
			return x, x:size(1) == 3 and x or y
		end,
		['output 3: wanted the same for every batch, got a tensor with 1 row and nil with 2'] = function(_, x)
			return x, x, x:size(1) == 1 and x or nil
		end,
	} do fails(text:gsub('%.', '%%.'), graph.trace, nn.module(run, {}), rows(2)) end
	local g = graph.trace(nn.module(function(_, x) return {x:relu(), rate=0.5, none=0 / 0}, 7, nil end, {}), rows(2))
	local first, second = g:run(rows(3))
	print(first[1]:size(1), first.rate, second)  --> 3 0.5 7
end)

it('takes an input without axes', function()
	local g = graph.trace(nn.module(function(_, x, gain) return x * gain end, {}), {rows(2), tensor{3}:sum()})
	print(g:node('input2').shape, g:run{tensor.ones(2, 6), tensor{5}:sum()}:sum():item())  --> () 60.0
	print(graph.trace(nn.ReLU(), tensor{-2}:sum()):run(tensor{4}:sum()):item())  --> 4.0
	print(graph.trace(nn.ReLU(), tensor{-2}:sum():to 'int32').order[1])  --> input
end)

it('what the library loads while a model is traced for the first time is no part of it', function()
	local function traced(body)
		local pipe = io.popen(([["/proc/$PPID/exe" -e 'm = nn.module(function(_, x) %s end, {})
			print(#graph.trace(m, tensor.ones(2, 5)).order)' 2>&1]]):format(body))
		local answer = pipe:read 'a'
		pipe:close()
		return tonumber(answer) or answer
	end
	print(traced 'return x[":, 1:2"]')  --> 2
	print(traced 'assert(quant.search) return x:relu()')  --> 2
	print(traced 'assert(x.error) return x:relu()')  --> 2
end)
