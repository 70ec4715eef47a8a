-- SPDX-License-Identifier: MIT
-- What the prompt, files, plots, reports and sweeps do with a huge view: a list of {name, function(x)}.
local internal = debug.getregistry()['quoll.internal']
local import = internal.import

local function silently(f, ...)
	local old <const> = print
	local _ <close> = setmetatable({}, {__close = function() print = old end})
	print = function(...) for i = 1, select('#', ...) do assert(#tostring((select(i, ...))) < 200000, 'prints all') end end
	return f(...)
end

local function short(text)
	assert(#tostring(text) < 2000000, 'prints all')
end

return function(values)
	local choose = values.choose
	local list = {}
	local function add(name, f) list[#list + 1] = {name, f} end

	add('show', function(x) short(import 'interp/prelude/show'(choose {x, {x}, {a = {x, x}}})) end)
	add('describe', function(x) short(internal.describe(x)) end)
	add('mime', function(x) for _, text in pairs(import 'interp/prelude/mime'.bundle(x)) do short(text) end end)
	add('who', function(x)
		X = x
		silently(import 'interp/repl/who')
	end)
	add('inspect', function(x) silently(import 'interp/help/inspect', 'X', x) end)
	add('complete', function(x)
		X = x
		return import 'interp/repl/complete'(choose {'X:', 'X.', 'X[', 'X:sum('}, choose {2, 3})
	end)
	add('fingerprint', function(x)
		X = {x}
		return import 'interp/input/stale'.fingerprint 'X'
	end)
	add('traceback', function(x)
		short(select(2, xpcall(function()
			local y = x
			error(y .. 1)
		end, internal.traceback)))
	end)
	add('bench', function(x)
		local r = bench.time(function() return x[choose {'neg', 'sum', 't', 'nelem', 'contiguous'}](x) end, {runs = 1, calls = 1})
		short(r)
	end)
	add('report', function(x)
		local r = report {{a = x:nelem() == 1 and x or x:nelem(), b = 1}, {a = 2, b = x:nbytes()}}
		short(r)
		short(r:text {width = choose {20, 1 << 40, 200}})
		for _, ending in ipairs {'csv', 'json', 'html', 'md'} do r:save(os.tmpname() .. '.' .. ending) end
		r:group('b', {a = 'mean'})
	end)
	add('sweep', function(x)
		local file = os.tmpname()
		local _ <close> = setmetatable({}, {__close = function() os.remove(file) end})
		local r = sweep.run {name = 's', db = file, jobs = 0, log = false, grid = {n = choose {{x:nelem()}, {x}, {x:size()}, values.numbers(2)}},
			run = function(_, log)
				log('a', choose {x, x:nelem(), x:nbytes()}, choose {1, x:nelem()})
				return choose {{y = x:nelem()}, {y = x}, x, {x = tostring(x)}, {y = x:nbytes()}}
			end}
		short(r)
		short(sweep.steps(file))
	end)
	add('plot', function(x)
		local kind = choose {'line', 'bar', 'hist', 'scatter', 'heat', 'box', 'image'}
		local figure = plot[kind](choose {{x}, {x, x}, {y = x}, {x = x, y = x}, {x, bins = choose {5, 1 << 40, 1 << 62}}, {counts = x}, {x, width = 1 << 31}})
		short(figure)
		short(figure:text())
		return figure:svg()
	end)
	add('save', function(x)
		local file = os.tmpname() .. choose {'.npy', '.npz', '.safetensors', '.png'}
		local _ <close> = setmetatable({}, {__close = function() os.remove(file) end})
		tensor.save(file, choose {x, {a = x}})
		return tensor.load(file)
	end)
	add('data', function(x)
		local set = data.tensors(x, choose {x, tensor.ones(3), x:t()})
		for a, b in data.loader(set, {batch = choose {1, 1 << 31, 1 << 62}, shuffle = choose {true, false}, prefetch = choose {true, false}})() do
			short(a)
			short(b)
			break
		end
	end)
	add('compare', function(x) short(quant.compare(x, {'int8', 'int4:32', 'int8/1@mse'})) end)
	add('observer', function(x)
		local o = quant.observer(choose {'int8', 'int8/1', 'uint8@percentile', 'int8@mse', 'int8/2@entropy'})
		o:update(x)
		short(o)
		return o:params()
	end)
	add('module', function(x)
		local m = choose {nn.Linear(3, 2), nn.Conv2d(1, 1, 1), nn.LSTM(3, 2), nn.Embedding(4, 2), nn.ReLU(), nn.BatchNorm2d(1), nn.MaxPool2d(2)}
		return choose {m, function(y) return m:summary(y) end, function(y) return graph.trace(m, y) end, function(y) return m:evaluate({{y, y}}, {log = false}) end,
			function(y) return m:calibrate({y}, {log = false}) end, function(y) return m:load {weight = y} end}(x)
	end)
	add('optim', function(x) return choose {optim.norm, function(list) return optim.clip(list, {clip = 1}) end} {x, x} end)
	add('loop', function(x)
		local n = 0
		for _, row in choose {ipairs, pairs}(x) do
			short(row)
			n = n + 1
			if n == 3 then break end
		end
	end)
	add('string', function(x) short(('%s'):format(x) .. x) end)
	return list
end
