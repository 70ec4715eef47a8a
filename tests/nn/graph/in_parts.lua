-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Graphs whose weights are codes: products read them in parts, and no memory holds the decoded matrix. Values are those of the nodes one
-- by one, which decode it.
local left_out = dofile 'tests/tools/sanitizers.lua'.left_out
tensor.seed(3)

local function conv(i, o, k) return nn.Conv2d(i, o, k or 3, {pad = (k or 3) // 2}) end
local nets = {
	conv = function() return nn.Sequential {conv(8, 16), nn.BatchNorm2d(16), nn.ReLU(), conv(16, 8), nn.Flatten(), nn.Linear(8 * 64, 10)}, {8, 8, 8} end,
	residual = function() return nn.Sequential {conv(8, 8), nn.Residual {conv(8, 8), nn.ReLU(), conv(8, 8)}, nn.ReLU()}, {8, 8, 8} end,
	mlp = function() return nn.Sequential {nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 33)}, {64} end,
	lstm = function() return nn.LSTM(32, 64), {5, 32} end,
	step = function() return nn.GRU(32, 64), {1, 32} end,
}
local FORMATS = {'int8/1', 'int4', 'int4:32', 'nf4:16', 'fp8_e4m3', 'mxfp4', 'int3/1', 'uint8:16+min'}

local function equal(a, b) return not a:ne(b):any():item() end

local function paths()
	local found = {}
	for _, row in ipairs(quant.ledger(true)) do
		local key = row.op .. ' ' .. row.path
		found[key] = (found[key] or 0) + row.count
	end
	return found
end

local function check(g, x, label)
	for _, ordered in ipairs {false, true} do
		local y = g:run(x, {ordered = ordered})
		local whole = g:run(x, {keep = g.order[#g.order], ordered = ordered}) -- names of values: node by node
		assert(equal(type(y) == 'table' and y[1] or y, type(whole) == 'table' and whole[1] or whole), label)
	end
end

local i = 0
for name, make in pairs(nets) do
	it(name .. ' has the values of decoded weights', function()
		for _, format in ipairs(FORMATS) do
			local net, shape = make()
			local x = tensor.randn(3, table.unpack(shape))
			i = i + 1
			if not left_out(i, 3) then
				local q = net:eval():quantize {mode = 'weight_only', weight = format}
				local g = graph.trace(q, x)
				check(g, x, format)
				assert(equal((g:run(x)), (q(x))), format)
				check(graph.trace(net, x):quantize {mode = 'weight_only', weight = format}, x, format)
			end
		end
	end)
end

it('is in the ledger and in explanations', function()
	local net = nn.Sequential {nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32)}:eval():quantize {mode = 'weight_only', weight = 'int4:32'}
	local g = graph.trace(net, tensor.randn(1, 64))
	quant.ledger(true)
	g:run(tensor.randn(5, 64))
	local found = paths()
	assert(found['linear weight_only'] == 2 and not found['dequantize convert'])
	for key in pairs(found) do assert(not key:find '^dequantize', key) end
end)

it('needs no memory for decoded weights', function()
	local net = nn.Linear(2048, 2048, {bias = false}):eval():quantize {mode = 'weight_only', weight = 'int4:32'}
	local x = tensor.randn(1, 2048)
	local g = graph.trace(net, x)
	for _ = 1, 3 do g:run(x) end -- codes move into strips
	collectgarbage()
	tensor.memory 'reset'
	local before = tensor.memory().now
	g:run(x)
	assert(tensor.memory().peak - before < 1 << 20, tensor.memory().peak - before)
end)

-- A matrix that is also a result, or that another op reads, is decoded.
local function graph_of(f, w, x)
	local m = nn.module(function(self, t) return f(t, self.w) end)
	m.w = w
	return graph.trace(m, x)
end

it('decodes what others read', function()
	local x = tensor.randn(4, 32)
	for format, w in pairs {['int4:32'] = tensor.randn(16, 32):quantize 'int4:32', ['int8/1'] = tensor.randn(16, 32):quantize 'int8/1'} do
		local function two(t, q)
			local d = q:dequantize()
			return {t:linear(d), d}
		end
		local function sum(t, q)
			local d = q:dequantize()
			return t:linear(d) + d:sum()
		end
		local function both(t, q)
			local d = q:dequantize()
			return t:linear(d) + t:matmul(d:t())
		end
		local function view(t, q)
			local d = q:dequantize()
			return t:view(-1, 2, 4, 4):conv2d(d:view(16, 2, 4, 4)):view(-1, 16) + t:linear(d)
		end
		local function activation(t, q) return t:linear(q:dequantize()):linear(t:narrow(1, 1, 1):linear(q:dequantize()):view(1, 16)) end
		for i, f in ipairs {sum, both, view, two, activation} do
			local g = graph_of(f, w, x)
			check(g, x, ('%s %d'):format(format, i))
			local y = g:run(x)
			local wanted = f(x, w)
			if i == 4 then
				assert(y[2]:error(w:dequantize()).max == 0)
				y, wanted = y[1], wanted[1]
			end
			assert(y:error(wanted).max < 1e-4)
		end
	end
end)

it('decodes what products do not take in parts', function()
	local w = tensor.randn(1, 32, 8):quantize 'int8' -- a list of matrices
	local x = tensor.randn(2, 4, 32)
	local g = graph_of(function(t, q) return t:matmul(q:dequantize()) end, w, x)
	quant.fallback 'error'
	local y = g:run(x)
	quant.fallback 'silent'
	assert(equal(y, x:matmul(w:dequantize())))
end)

it('leaves integers alone', function()
	local w = tensor.randn(16, 32):quantize 'int8/1'
	local x = tensor.randn(4, 32)
	local g = graph_of(function(t, q) return t:quantize('uint8'):linear(q:dequantize()) end, w, x)
	check(g, x, 'codes')
end)
