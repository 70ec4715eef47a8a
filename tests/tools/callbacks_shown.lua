-- SPDX-License-Identifier: MIT
-- Adds to the calls of tests/tools/callbacks.lua what the prompt, notebooks and sweeps do with the user's values and functions, in
-- this process: showing, completing, listing, cells, trials.
local internal = debug.getregistry()['quoll.internal']
local import = internal.import
local show, mime, complete, inspect, who = import 'interp/prelude/show', import 'interp/prelude/mime', import 'interp/repl/complete', import 'interp/help/inspect', import 'interp/repl/who'
local notebook, runner = import 'interp/notebook/notebook', import 'interp/notebook/run'
local random = math.random

-- Calls f with its output in no place.
local function silently(f, ...)
	local old, out = print, io.output()
	local _ <close> = setmetatable({}, {__close = function()
		print = old
		io.output(out)
	end})
	print = function(...) for i = 1, select('#', ...) do local _ = tostring((select(i, ...))) end end
	return f(...)
end

return function(callbacks)
	local evil, one_of, chance, thing = callbacks.evil, callbacks.one_of, callbacks.chance, callbacks.thing
	local calls = callbacks.calls

	local function parameter() return one_of{1, 2.5, 'text', true, callbacks.value} end

	-- What stands in it begins its own random numbers, so a trial does not make the rounds alike.
	local function sweep_here()
		local again, name = random(1 << 40), os.tmpname()
		local _ <close> = setmetatable({}, {__close = function()
			math.randomseed(again)
			os.remove(name)
		end})
		local options = {name = 's', db = name, jobs = 0, log = false, grid = callbacks.lazy{x = callbacks.lazy{1, random(9)}, y = {parameter()}},
			seeds = {random(1 << 20)}, random = chance(20) and 2 or nil, retry = chance(20) and 1 or nil,
			run = function(_, log)
				evil()
				log('a', one_of{1, callbacks.tensor(), callbacks.hostile()}, chance(50) and 1 or nil)
				if chance(50) then callbacks.call() end
				return one_of{1, {a = 1, b = 'x'}, {a = callbacks.tensor()}, callbacks.hostile(), report{{a = callbacks.speaking 's'}}, callbacks.lazy{c = 1}}
			end}
		local r = sweep.run(options)
		r = r:where(function(row) evil() return row.x ~= 3 end)
		return tostring(r), sweep.load(name), tostring(sweep.steps(name))
	end

	local CELLS = {'C.evil()', 'C.call()', 'C.thing()', 'print(C.thing())', 'local z <close> = C.hostile()', 'x = C.thing()', 'x', 'x, C.tensor()', 'error(C.hostile())',
		'display(C.thing())', 'f = function() C.evil() return C.call() end', 'f()', '%time f()', '%who', '%explain', 'coroutine.wrap(C.call)()', 'tensor.nograd(C.evil)'}

	local function cells()
		local name, list = os.tmpname() .. '.lua', {}
		local _ <close> = setmetatable({}, {__close = function()
			os.remove(name)
			C = nil
		end})
		C = callbacks
		for i = 1, random(6) do list[i] = '-- %% tags=["raises-exception"]\n' .. one_of(CELLS) .. '\n' end
		local file <close> = assert(io.open(name, 'w'))
		file:write(table.concat(list))
		file:close()
		local nb = notebook.open(name)
		silently(function() runner.new(nb, {quiet = true, png = chance(30)}):begin():all() end)
		return nb
	end

	for _, f in ipairs {
		function() return show(thing()) end,
		function() return mime.bundle(thing(), {png = chance(20)}) end,
		function()
			X = thing()
			local text = one_of{'X.', 'X:', 'X[', 'X.a.b', 'X.name.', 'print(X.', 'X{', 'X:call('}
			return complete(text, #text)
		end,
		function()
			X, Y = thing(), callbacks.tensor()
			silently(who)
		end,
		function() silently(inspect, 'X', thing()) end,
		function() return silently(help, callbacks.hostile()) end,
		function() return internal.describe(thing()) end,
		function() return internal.traceback(callbacks.hostile()) end,
		function()
			return xpcall(function()
				local a, b = thing(), callbacks.tensor()
				error(a .. b)
			end, internal.traceback)
		end,
		function() return bench.time(function() return callbacks.call() end, {runs = 1, calls = 1}) end,
		function() return report{callbacks.hostile(), {a = callbacks.hostile()}} end,
		function() return report(callbacks.lazy{callbacks.lazy{a = 2}, {a = 1}}):text(callbacks.lazy{width = 40}) end,
		function() return tostring(report{{a = 1}, {a = callbacks.value()}}:sort 'a') end,
		function() return report{{a = 1, b = 4}, {a = 2, b = 3}}:plot(callbacks.lazy{x = 'a', y = 'b', title = 't'}) end,
		function() silently(function() print(thing(), thing()) end) end,
		function() return string.format('%s %q', thing(), callbacks.value()) end,
		function() return load('return ' .. tostring(thing()), 'c', 't', callbacks.hostile()) end,
		function() return chance(15) and sweep_here() end,
		function() return chance(50) and cells() end,
	} do
		calls[#calls + 1] = f
	end
end
