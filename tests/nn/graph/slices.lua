-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Many rows run some at a time: values, the ledger and explanations are those of one run.
local nets = {}
local function conv(i, o, k, s) return nn.Conv2d(i, o, k or 3, {pad = (k or 3) // 2, stride = s or 1}) end
local function head(...)
	local list = {...}
	for _, layer in ipairs {nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 3)} do list[#list + 1] = layer end
	return nn.Sequential(list)
end
tensor.seed(3)
nets.plain = head(conv(3, 8), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), conv(8, 8), nn.GELU())
nets.residual = head(conv(3, 8), nn.Residual {conv(8, 8), nn.ReLU(), conv(8, 8)}, nn.ReLU(), nn.Residual {conv(8, 8, 3, 2), shortcut = conv(8, 8, 1, 2)})
nets.small = head(conv(3, 8, 3, 2), conv(8, 8)) -- 4 x 4: many images are computed in another way
local function module(f) return nn.module(function(_, x) return f(x) end) end
nets.pad = module(function(x) return x:pad(0, 0, 0, 0, 2, 3) * 2 end)
nets.two = module(function(x) return {x:relu(), x * 2 + x:relu()} end)

local function rows_of_ledger()
	local counts = {}
	for _, row in ipairs(quant.ledger(true)) do
		local key = row.op .. ' ' .. row.operands .. ' ' .. row.path
		counts[key] = (counts[key] or 0) + row.count
	end
	return counts
end

local function equal(a, b)
	if type(a) == 'table' then return equal(a[1], b[1]) and equal(a[2], b[2]) end
	return a:reshape(-1):eq(b:reshape(-1)):all():item() and table.concat({a:size()}, ' ') == table.concat({b:size()}, ' ')
end

local function peak(f)
	collectgarbage()
	tensor.memory 'reset'
	local before = tensor.memory().now
	local y = f()
	return tensor.memory().peak - before, y
end

describe('graphs of floats with many rows', function()
	it('have the values and rows of the ledger of one run', function()
		for name, net in pairs(nets) do
			local g = graph.trace(net.eval and net:eval() or net, tensor.randn(2, 3, 8, 8)):pass {'fold', 'fuse'}
			for _, rows in ipairs {1, 63, 64, 95, 130} do
				local x = tensor.randn(rows, 3, 8, 8)
				for _, ordered in ipairs {false, true} do
					quant.ledger(true)
					local whole = g:run(x, {keep = g.order[#g.order], ordered = ordered}) -- names of values: never by slices
					local counts = rows_of_ledger()
					local y = g:run(x, {ordered = ordered})
					local again = rows_of_ledger()
					assert(equal(whole, y), name)
					for key, n in pairs(counts) do assert(again[key] == n, key) end
					for key, n in pairs(again) do assert(counts[key] == n, key) end
				end
			end
		end
	end)
	it('count a node once for each path that a slice took', function()
		local internal = debug.getregistry()['quoll.internal']
		local g, x = graph.trace(module(function(v) return v:relu() end), tensor.randn(2, 3)), tensor.randn(99, 3)
		quant.ledger(true)
		local get = internal.import('nn/graph/slices').run(g, {x = x}, 99, 3, function(given)
			local y = given.x:relu()
			if given.x:size(1) == 33 and equal(given.x, x[{{34, 66}}]) then given.x:abs() end
			return function() return y end
		end)
		assert(equal(get(g.outputs[1].ref), x:relu()))
		local counts = {}
		for _, row in ipairs(quant.ledger()) do counts[row.op] = row.count end
		assert(counts.relu == 1 + 1 and counts.abs == 1, 'x:relu() above is one more')
	end)
	it('hold less at a time', function()
		local g = graph.trace(nets.plain:eval(), tensor.randn(2, 3, 8, 8))
		local x = tensor.randn(320, 3, 8, 8)
		g:run(x)
		local sliced = peak(function() return g:run(x) end)
		local whole = peak(function() return g:run(x, {keep = 'relu1'}) end)
		assert(sliced < whole / 4, ('%d bytes, %d at once'):format(sliced, whole))
		local wide = graph.trace(nn.Sequential {nn.Linear(50, 400), nn.ReLU()}, tensor.randn(2, 50)) -- large weights: at once
		local v = tensor.randn(320, 50)
		wide:run(v)
		assert(peak(function() return wide:run(v) end) >= 320 * 400 * 4)
	end)
	it('are explained as before', function()
		local g = graph.trace(nets.plain:eval(), tensor.randn(2, 3, 8, 8))
		local x = tensor.randn(64, 3, 8, 8)
		assert(g:run(x):explain() == g:run(x[{{1, 3}}]):explain())
	end)
	it('run at once where rows depend on each other, and where the recorder listens', function()
		for _, f in ipairs {function(x) return x - x:mean {axis = 1, keep = true} end, function(x) return x:permute(2, 1, 3, 4) end,
			function(x) return x:reshape(3, -1, 8, 8) end, function(x) return x:to 'float64' end} do
			local g = graph.trace(module(f), tensor.randn(2, 3, 8, 8))
			local x = tensor.randn(70, 3, 8, 8)
			assert(equal(g:run(x), f(x)))
		end
		local g = graph.trace(nets.plain:eval(), tensor.randn(2, 3, 8, 8))
		local x = tensor.randn(64, 3, 8, 8)
		local outer = graph.trace(module(function(v) return g:run(v) end), x, {batch = false})
		for _, name in ipairs(outer.order) do assert(outer.nodes[name].op ~= 'cat', name) end
		assert(equal(outer:run(x), g:run(x)))
	end)
	it('fail at the same node', function()
		local g = graph.trace(module(function(x) return x:relu() + 1 end), tensor.randn(2, 3))
		local good, message = pcall(g.run, g, tensor.randn(70, 4))
		assert(not good and message:find('wanted float32(B, 3)', 1, true), message)
	end)
end)
