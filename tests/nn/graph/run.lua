-- SPDX-License-Identifier: MIT
-- g:run with options, g:node, g:print and g:dot.
tensor.seed(2)
local m = nn.Sequential{nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)}
local x = tensor.randn(5, 3)
local g = graph.trace(m, x)

local function fails(pattern, fn, ...)
	local good, message = pcall(fn, ...)
	assert(not good and message:find(pattern), message)
end

it('keeps inner values by name', function()
	local y, inner = g:run(x, {keep='linear1'})
	print(inner.linear1:error(m[1](x)).max, y:error(m(x)).max)  --> 0.0 0.0
	local _, both = g:run(x, {keep={'relu1', 'linear2'}})
	print(both.relu1:error(m[2](m[1](x))).max, both.linear2:error(y).max)  --> 0.0 0.0
	local _, moved = g:run(x, {keep={'linear1', 'relu1'}, arena=true}) -- relu1 writes over linear1
	print(moved.linear1:error(m[1](x)).max, moved.relu1:error(both.relu1).max)  --> 0.0 0.0
	fails("wanted the name of a node, got 'linear3'; did you mean 'linear[12]'", g.run, g, x, {keep='linear3'})
	fails("unknown option 'kep'", g.run, g, x, {kep='a'})
end)

it('checks dtypes and sizes of the inputs, and names the node whose op fails', function()
	fails('input: wanted float32%(B, 3%), got float32%(5, 4%)', g.run, g, tensor.randn(5, 4))
	fails('input: wanted float32%(B, 3%), got float64', g.run, g, x:to 'float64')
	local e = graph.trace(nn.Sequential{nn.Embedding(4, 2)}, tensor.ones{1, 2, dtype='int32'})
	fails("node 'embedding1': embedding", e.run, e, tensor{{1, 9}, dtype='int32'})
end)

it('shares tensors with the module: a trained weight is seen', function()
	tensor.nograd(function() m[1].weight:mul_(2) end)
	print(g:run(x):error(m(x)).max)  --> 0.0
end)

it('g:node gives a copy', function()
	local n = g:node 'linear1'
	n.inputs[1] = 'nothing'
	n.users[1] = 'nobody'
	print(g:node('linear1').inputs[1], g:node('linear1').users[1], g:node('linear1').bytes)  --> input relu1 16
	fails("wanted the name of a node, got 'linear9'", g.node, g, 'linear9')
	fails("wanted the name of a node, got 'linear1:2'", g.node, g, 'linear1:2')
end)

it('g:dot writes a file that names with quotes do not break', function()
	local text = g:dot()
	print(text:match 'digraph[^\n]*', select(2, text:gsub('%->', '')))  --> digraph graph_ { 4
	local file = os.tmpname()
	g:dot(file)
	local handle = io.open(file)
	assert(handle:read 'a' == text)
	handle:close()
	os.remove(file)
	fails('no/such', g.dot, g, 'no/such/folder/net.dot')
	fails('wanted the name of a file, got one with a zero byte', g.dot, g, file .. '\0.dot')
	assert(not io.open(file))
end)

it('g:dot tells outputs apart', function()
	local two = nn.module(function(self, v) return self.a(v), self.a(v):relu() end, {a=nn.Linear(6, 2)})
	local text = graph.trace(two, tensor.ones(1, 6)):dot()
	print(text:match '"a" %-> "output1"', text:match '"a_2" %-> "output', text:match '"relu1" %-> "output2"')  --> "a" -> "output1" nil "relu1" -> "output2"
	print(text:find '"output"')  --> nil
end)

-- Of the memory and the kernels of the host.
local host_it = tensor.zeros(1):device() == 'cpu' and it or function() end

host_it('releases values after their last use, but no input, constant, output, nor what shares its memory with one', function()
	local big = nn.module(function(_, v)
		local a = v * 2
		local b = a + 1
		return {a:view(a:nelem()), b:relu(), v, a}
	end)
	local v = tensor.randn(1, 50000)
	local e = graph.trace(big, v)
	e:run(v)
	collectgarbage()
	collectgarbage 'stop'
	local before, values = tensor.memory().now, nil
	for _ = 1, 20 do values = e:run(v) end
	local used = (tensor.memory().now - before) / 50000 / 4
	collectgarbage 'restart'
	assert(used <= 41 and used > 2, used) -- a and the relu of each run, not b
	assert(values[1]:error((v * 2):view(50000)).max == 0 and values[2]:error((v * 2 + 1):relu()).max == 0)
	assert(values[3]:error(v).max == 0 and values[4]:error(v * 2).max == 0)
	local third = graph.trace(nn.module(function(_, w) return {w, w:view(w:nelem())} end), v)
	values = third:run(v)
	values = third:run(values[1])
	assert(values[2]:error(v:view(50000)).max == 0)
end)

-- A convolution and the sum that is its only user run in one call, and give the same as the two (which keep= asks for), in values, spec
-- and ledger.
local function rows_of_log()
	local counts = {}
	for _, row in ipairs(quant.ledger(true)) do
		local key = row.op .. ' ' .. row.operands .. ' ' .. row.path
		counts[key] = (counts[key] or 0) + row.count
	end
	return counts
end

local function check_join(net, v, joined, o)
	local kernel = o and o.kernel or '^conv_i8'
	net:calibrate({{v, v}}, {log=false})
	o = o or {}
	local q = graph.trace(net:eval(), v):quantize{mode='static', weight='int8/1', rules=o.rules, rounding=o.rounding}
	local inner = q.order[#q.order - 1]
	quant.log 'reset'
	local y = q:run(v)
	local found = false
	for _, row in ipairs(quant.ledger()) do found = found or row.op == 'add' and row.kernel:find(kernel) ~= nil end
	local one = rows_of_log()
	local z = q:run(v, {keep=inner})
	local two = rows_of_log()
	assert(y:eq(z):all():item() and y:quantized() == z:quantized())
	assert(found == joined)
	for key, n in pairs(one) do assert(two[key] == n, key) end
	for key, n in pairs(two) do assert(one[key] == n, key) end
	return q
end

host_it('runs a convolution and a sum in one call', function()
	tensor.seed(8)
	local function conv(i, o, k, s) return nn.Conv2d(i, o, k or 3, {pad=(k or 3) // 2, stride=s or 1, bias=s ~= 2}) end
	for _, channels in ipairs {4, 16, 37} do
		local v = tensor.randn(3, channels, 7, 9)
		local function net(n, ...)
			local list = {conv(channels, channels), nn.ReLU(), ...}
			for _, layer in ipairs {nn.AvgPool2d(), nn.Flatten(), nn.Linear(n, 2)} do list[#list + 1] = layer end
			return nn.Sequential(list)
		end
		check_join(net(channels, nn.Residual{conv(channels, channels), nn.ReLU(), conv(channels, channels)}, nn.ReLU()), v, true)
		check_join(net(channels, nn.Residual{conv(channels, channels)}), v, true)
		check_join(net(20, nn.Residual{conv(channels, 20, 3, 2), shortcut=conv(channels, 20, 1, 2)}), v, true)
		check_join(net(channels, nn.Residual{conv(channels, channels), nn.Residual{conv(channels, channels, 1)}}), v, true)
		check_join(net(channels, nn.Residual{conv(channels, channels)}), v, true, {rules={{'.*', input='int8'}}})
		check_join(net(channels, nn.Residual{conv(channels, channels)}), v, false, {rounding='double'})
		if channels >= 8 then
			local function depth(o) return nn.Conv2d(channels, channels, 3, {pad=1, groups=channels, bias=o}) end
			check_join(net(channels, nn.Residual{conv(channels, channels, 1), nn.ReLU(), depth(true)}, nn.ReLU()), v, true, {kernel='^depth_i8'})
			check_join(net(channels, nn.Residual{depth(false)}), v, true, {kernel='^depth_i8', rules={{'.*', input='int8'}}})
		end
		check_join(net(channels, nn.Residual{conv(channels, channels), nn.MaxPool2d(3, {stride=1, pad=1})}), v, false)
	end
end)

-- The same for floats, and with the relu behind the sum.
local function check_floats(f, v, joined, relus)
	local g = graph.trace(f, v)
	local inner = {}
	for _, name in ipairs(g.order) do
		if g.nodes[name].op == 'add' then inner[#inner + 1] = name end
	end
	for _, ordered in ipairs {false, true} do
		quant.log 'reset'
		local y, counts = g:run(v, {ordered=ordered}), {add = 0, relu = 0}
		for _, row in ipairs(quant.ledger()) do
			if counts[row.op] and row.kernel:find '^gemm_f32' then counts[row.op] = counts[row.op] + row.count end
		end
		local one = rows_of_log()
		local z = g:run(v, {keep=inner, ordered=ordered})
		local two = rows_of_log()
		assert(y:view(-1):eq(z:view(-1)):all():item(), g)
		assert(counts.add == joined and counts.relu == (relus or 0), ('%d sums, %d relus'):format(counts.add, counts.relu))
		for key, n in pairs(one) do assert(two[key] == n, key) end
		for key, n in pairs(two) do assert(one[key] == n, key) end
	end
end

host_it('runs a convolution of floats, a sum and its relu in one call', function()
	tensor.seed(9)
	local function weights(o, i, k) return tensor.randn(o, i, k, k), tensor.randn(o) end
	for _, channels in ipairs {3, 16, 40} do
		local v = tensor.randn(2, channels, 7, 9)
		local w, b = weights(channels, channels, 3)
		local deep = weights(channels, 1, 3)
		local function conv(x, o)
			o = o or {}
			o.pad = 1
			return x:conv2d(w, b, o)
		end
		local function module(f) return nn.module(function(_, x) return f(x) end) end
		check_floats(module(function(x) return (conv(x) + x):relu() end), v, 1, 1)
		check_floats(module(function(x) return (x + conv(x)):relu():tanh() end), v, 1, 1)
		check_floats(module(function(x) return (x:conv2d(w, {pad=1}) + x:relu()):relu() end), v, 1, 1)
		check_floats(module(function(x) return conv(x) + x end), v, 1)
		check_floats(module(function(x) return (conv(x) + conv(x, {dilation=1})):relu() end), v, 1, 1)
		check_floats(module(function(x) return (conv(x, {stride=2}) + x:maxpool2d(2, {pad={0, 1, 0, 1}})):relu() end), v, 1, 1)
		check_floats(module(function(x) return (conv(x, {act='relu'}) + x):relu() end), v, 0) -- another order
		check_floats(module(function(x) return (conv(x) + x:mean{axis=1, keep=true}):relu() end), v, 0) -- broadcast
		check_floats(module(function(x) return (conv(x) + x:permute(1, 2, 4, 3):contiguous():permute(1, 2, 4, 3)):relu() end), v, 0)
		check_floats(module(function(x) return (x:conv2d(deep, {pad=1, groups=channels}) + x):relu() end), v, 0)
		check_floats(module(function(x)
			local y = conv(x) + x
			return y:relu() * y -- the sum has another user
		end), v, 1)
		check_floats(module(function(x)
			local y = conv(x)
			return (y + x):relu() - y -- the convolution has
		end), v, 0)
		check_floats(module(function(x) return (conv(x) + x):relu():to 'float16' end), v:to 'float16', 0)
	end
	local many = tensor.randn(70, 5, 4, 4) -- many small images are computed in another way
	local w = tensor.randn(5, 5, 3, 3)
	local g = graph.trace(nn.module(function(_, x) return (x:conv2d(w, {pad=1}) + x):relu() end), many)
	assert(g:run(many):eq((many:conv2d(w, {pad=1}) + many):relu()):all():item())
end)

host_it('runs chains of elementwise nodes in one pass', function()
	local f = function(_, x) return (x * 2 + 1):tanh() * x - 1 end
	local g = graph.trace(nn.module(f), tensor.randn(2, 10000))
	local x = tensor.randn(3, 10000)
	quant.log 'reset'
	local y, waited = g:run(x), 0
	for _, row in ipairs(quant.log()) do waited = waited + (row.kernel == 'chain' and row.count or 0) end
	assert(waited == 5 and y:eq(f(nil, x)):all():item())
end)

-- Programs (interp/bind/program.c) beside the nodes one by one, which check= asks for.
local function same(f, v, o)
	local e = graph.trace(f, v, o)
	for _ = 1, 2 do
		local one, each = table.pack(e:run(v)), table.pack(e:run(v, {check=true}))
		assert(one.n == each.n and one.n > 0)
		for i = 1, one.n do assert(one[i]:dtype() == each[i]:dtype() and one[i]:error(each[i]).max == 0, i) end
	end
	return e
end

it('runs ops with lists, numbers, several results and sizes that depend on the batch', function()
	local v = tensor.randn(4, 6)
	same(nn.module(function(_, a) return tensor.cat({a, a * 2, a:relu()}, 2) end), v)
	same(nn.module(function(_, a)
		local parts = a:split(2, {axis=2})
		return parts[1] + parts[3], 1 - parts[2], parts[1] // 2.5
	end), v)
	local e = same(nn.module(function(_, a) return (a:view(a:size(1) * 2, 3) + 1):view(a:size(1), 6) end), v)
	for n = 1, 20 do -- more batches than are kept
		local w = tensor.randn(n, 6)
		assert(e:run(w):error(w + 1).max == 0)
	end
	local y, z = graph.trace(nn.module(function(_, a)
		local b = a + 1
		return b, {b, a}
	end), v):run(v)
	assert(rawequal(y, z[1]) and rawequal(z[2], v))
end)

it('runs a graph while it runs, by a scheme of the user, and in a module that is traced', function()
	local v, e, inner = tensor.randn(2, 8), nil, 0
	quant.scheme{name='again', bits=4, signed=true, encode=function(t, scale)
		inner = inner + 1
		if e and inner < 4 then e:run(v) end
		return (t / scale * 7):round()
	end, decode=function(codes, scale) return codes * scale / 7 end}
	local f = nn.module(function(_, a) return (a * 2):quantize('again'):dequantize() + a end)
	local z = f(v)
	e, inner = graph.trace(f, v), 0
	print(e:run(v):error(z).max, inner)  --> 0.0 4
	local outer = graph.trace(nn.module(function(_, a) return g:run(a):relu() end), x)
	print(#outer.order > 4, outer:run(x):error(m(x):relu()).max)  --> true 0.0
end)

it('names the node that fails, frees what a run had, and shows every call to a hook', function()
	local v = tensor.randn(1, 40000)
	local e = graph.trace(nn.module(function(_, a, i) return (a * 2 + 1):narrow(2, 1, 3):embedding(i) end), {tensor.randn(1, 40000), tensor.ones{1, dtype='int64'}}, {batch=false})
	local good, message = pcall(e.run, e, {v, tensor{9, dtype='int64'}})
	assert(not good and message:find "run: node '[%w]+': embedding", message)
	collectgarbage()
	local before = tensor.memory().now
	for _ = 1, 20 do assert(not pcall(e.run, e, {v, tensor{9, dtype='int64'}})) end
	collectgarbage()
	assert(tensor.memory().now - before < 40000 * 8, tensor.memory().now - before)
	local calls = 0
	debug.sethook(function() calls = calls + 1 end, 'c')
	g:run(x)
	local many = calls
	debug.sethook()
	assert(many > 50, many)
end)

it('wants constants that are not closed', function()
	local c = tensor.ones(3)
	local e = graph.trace(nn.module(function(_, a) return a + c end), tensor.randn(2, 3))
	e:run(tensor.randn(2, 3))
	for _, name in ipairs(e.order) do
		local _ <close> = e.nodes[name].value -- luacheck: ignore 211
	end
	fails('wanted live constants', e.run, e, tensor.randn(2, 3))
end)

it('plain integers are codes of an input that has them, and saturate at its bounds', function()
	local spec = {dtype = 'int8', scale = 0.1, zero_point = 4, quant_min = -100, quant_max = 90}
	local x = (tensor.randn(2, 6) * 4):quantize(spec)
	local g = graph.trace(nn.module(function(_, a) return a:sigmoid {out = {dtype = 'uint8', scale = 1 / 256, zero_point = 0}} end, {}), x)
	assert(g:run(x:codes()):codes():eq(g:run(x):codes()):all():item())
	local wide = tensor {{-128, 127, 0, 90, -100, 91}, dtype = 'int8'}
	local y = g:run(wide):codes()
	assert(y:eq(g:run(wide:clamp(-100, 90)):codes()):all():item() and y:select(2, 1):eq(y:select(2, 5)):all():item())
	assert(wide:select(2, 1):sum():item() == -128) -- the input stays
end)
