-- SPDX-License-Identifier: MIT
-- pcall, xpcall and the coroutine functions are Quoll's own: they behave as those of plain Lua.
describe('pcall', function()
	it('returns what the function returns, or false and the error', function()
		assert(select('#', pcall(function() end)) == 1)
		assert(table.concat({ select(2, pcall(function(...) return ... end, 1, 2, 3)) }, ',') == '1,2,3')
		local t = {}
		assert(select(2, pcall(error, t)) == t and select('#', pcall(error)) == 2)
		assert(select(2, pcall(pcall)) == "bad argument #1 to 'pcall' (value expected)")
		assert(select(2, pcall(nil)) == 'attempt to call a nil value')
	end)
	it('can be yielded across, also when an error follows', function()
		local co = coroutine.wrap(function()
			return pcall(function(x)
				local y = coroutine.yield(x + 1)

				error { y }
			end, 1)
		end)

		assert(co() == 2)
		local ok, e = co 'late'
		assert(not ok and e[1] == 'late')
	end)
end)

describe('xpcall', function()
	it('calls the handler where the error is', function()
		local function handler(m) return m .. '!' .. debug.getinfo(2, 'n').name end
		local ok, m = xpcall(function() local function inner() error('x', 0) end inner() end, handler)

		assert(not ok and m == 'x!error')
		assert(select('#', xpcall(function(...) return ... end, handler, nil, nil)) == 3)
		assert(not pcall(xpcall, print) and not pcall(xpcall, print, 1))
	end)
	it('can be yielded across', function()
		local co = coroutine.wrap(function()
			return xpcall(function(x) coroutine.yield(x) error('y', 0) end, function(m) return m .. m end, 5)
		end)

		assert(co() == 5)
		local ok, m = co()
		assert(not ok and m == 'yy')
	end)
end)

describe('coroutines', function()
	it('resume and yield pass values', function()
		local co = coroutine.create(function(a, b)
			local c = coroutine.yield(a + b)

			return c, nil, nil
		end)

		assert(select(2, coroutine.resume(co, 1, 2)) == 3)
		assert(select('#', coroutine.resume(co, 9)) == 4 and coroutine.status(co) == 'dead')
		assert(select(2, coroutine.resume(co)) == 'cannot resume dead coroutine')
		assert(select(2, coroutine.resume(coroutine.running())) == 'cannot resume non-suspended coroutine')
		assert(not pcall(coroutine.resume, 1))
		assert(select(2, pcall(coroutine.resume, 1)):find 'thread expected, got number')
	end)
	it('errors keep their value, and their traceback is readable', function()
		local t = {}
		local co = coroutine.create(function() error(t) end)
		local ok, e = coroutine.resume(co)

		assert(not ok and e == t and debug.traceback(co):find 'error')
	end)
	it('wrap closes variables and adds the position to a message', function()
		local closed
		local f = coroutine.wrap(function()
			local _ <close> = setmetatable({}, { __close = function(_, e) closed = e end })

			error('bad', 0)
		end)
		local _, m = pcall(function() f() end)

		assert(closed == 'bad' and m:find ':%d+: bad$')
		assert(select(2, pcall(f)):find 'cannot resume dead coroutine')
		local g = coroutine.wrap(function() error {} end)
		assert(type(select(2, pcall(g))) == 'table')
	end)
	it('wrap works as an iterator', function()
		local s = 0

		for i in coroutine.wrap(function() for i = 1, 4 do coroutine.yield(i) end end) do s = s + i end
		assert(s == 10)
	end)
	it('many values', function()
		local n = 200000
		local co = coroutine.create(function(...) return select('#', ...) end)
		local t = table.move({}, 1, n, 1, {})

		assert(select(2, coroutine.resume(co, table.unpack(t, 1, n))) == n)
	end)
end)

describe('close', function()
	it('closes suspended and dead ones, and tells the error', function()
		local co = coroutine.create(function()
			local _ <close> = setmetatable({}, { __close = function() error 'in close' end })

			coroutine.yield()
		end)

		coroutine.resume(co)
		local ok, m = coroutine.close(co)
		assert(ok == false and m:find 'in close' and coroutine.status(co) == 'dead')
		assert(coroutine.close(co) == true)
		assert(coroutine.close(coroutine.create(print)) == true)
	end)
	it('refuses running and normal ones', function()
		assert(select(2, pcall(coroutine.close, (coroutine.running()))):find 'cannot close a running coroutine')
		local main = coroutine.running()
		coroutine.wrap(function()
			assert(select(2, pcall(coroutine.close, main)):find 'cannot close a normal coroutine')
		end)()
		assert(not pcall(coroutine.close))
	end)
	it('nested 20000 deep is an error, not a crash (Lua 5.4.4 overflows the C stack)', function()
		local inner, deepest = nil, 0
		for i = 1, 20000 do
			local next_one = inner
			inner = coroutine.create(function()
				local _ <close> = setmetatable({}, { __close = function()
					deepest = i
					if next_one then assert(coroutine.close(next_one)) end
				end })

				coroutine.yield()
			end)
			coroutine.resume(inner)
		end
		local ok, m = coroutine.close(inner)
		assert(not ok and m:find 'nested more than 100 deep')
		assert(deepest == 20000 - 99)
		assert(coroutine.close(coroutine.create(print)))
	end)
end)

describe('a coroutine that dies in resume', function()
	local function closed(list, name, failing)
		return setmetatable({}, {__close = function()
			list[#list + 1] = name
			if failing then error(failing, 0) end
		end})
	end
	it('has its variables closed, and the error stays what it was', function()
		local list, e = {}, {}
		local co = coroutine.create(function()
			local _ <close> = closed(list, 'a')
			local _ <close> = closed(list, 'b')
			error(e)
		end)
		local ok, got = coroutine.resume(co)
		assert(not ok and got == e and table.concat(list) == 'ba')
		assert(coroutine.status(co) == 'dead')
		assert(select(2, coroutine.resume(co)) == 'cannot resume dead coroutine')
		ok, got = coroutine.close(co)
		assert(ok == false and got == e)
		assert(coroutine.close(co) == true)
	end)
	it('gives the first error to resume, the last one to close', function()
		local list = {}
		local co = coroutine.create(function()
			local _ <close> = closed(list, 'a', 'second')
			error('first', 0)
		end)
		assert(select(2, coroutine.resume(co)) == 'first')
		assert(select(2, coroutine.close(co)) == 'second')
	end)
	it('still has its traceback', function()
		local function inner() error 'here' end
		local co = coroutine.create(function() inner() end)
		coroutine.resume(co)
		local text = debug.traceback(co, 'message')
		assert(text:find "^message\nstack traceback:\n\t%[C%]: in function 'error'\n\t[^\n]*coroutine.lua:%d+: in upvalue 'inner'\n", text)
		assert(debug.traceback(co) == text:sub(9))
		assert(not debug.traceback(co, nil, 1):find "'error'" and debug.traceback(co, nil, 1):find "'inner'")
		assert(debug.traceback(co, nil, 99) == 'stack traceback:')
		local t = {}
		assert(debug.traceback(co, t) == t and debug.traceback(t) == t)
		local function deep(n) if n > 0 then deep(n - 1) end error 'deep' end
		co = coroutine.create(deep)
		coroutine.resume(co, 100)
		assert(select(2, debug.traceback(co):gsub('\n', '')) == 23)
	end)
	it('leaves debug.traceback of others alone', function()
		local co = coroutine.create(function() coroutine.yield() end)
		coroutine.resume(co)
		assert(debug.traceback(co):find "in function 'coroutine.yield'")
		assert(debug.traceback('m', 1):find '^m\nstack traceback:\n\t[^\n]*coroutine.lua:%d+: in ')
	end)
end)

describe('what is switched off for a while', function()
	local w = tensor.ones(2):requires_grad_()
	local function records() return (w * 2):requires_grad() end
	it('ends with the coroutine that dies inside', function()
		local co = coroutine.create(function() tensor.nograd(function() error 'x' end) end)
		coroutine.resume(co)
		assert(records())
		pcall(coroutine.wrap(function() tensor.nograd(function() error 'x' end) end))
		assert(records())
	end)
	it('is the own of a coroutine that yields inside', function()
		local co = coroutine.wrap(function()
			tensor.nograd(function()
				coroutine.yield(records())
				coroutine.yield(records())
			end)
			coroutine.yield(records())
		end)
		assert(co() == false and records())
		assert(co() == false and records())
		assert(co() == true and records())
	end)
	it('holds for a coroutine that is resumed inside, while it runs', function()
		local co = coroutine.wrap(function()
			coroutine.yield(records())
			tensor.nograd(function() coroutine.yield(records()) end)
			coroutine.yield(records())
		end)
		assert(tensor.nograd(co) == false)
		assert(co() == false)
		assert(tensor.nograd(co) == false and records())
	end)
	it('survives coroutines that are closed or collected inside', function()
		local function inside() tensor.nograd(function() coroutine.yield() end) end
		local a, b = coroutine.create(inside), coroutine.create(inside)
		coroutine.resume(a)
		coroutine.resume(b)
		tensor.nograd(function()
			assert(coroutine.close(a) and not records())
			b = nil -- luacheck: ignore 311
			collectgarbage()
			assert(not records())
		end)
		assert(records())
	end)
	it('is counted apart from the other kind when a coroutine closes what another one opened', function()
		local ordered = debug.getregistry()['quoll.internal'].ordered
		coroutine.wrap(function()
			local guard = ordered()
			local co = coroutine.wrap(function()
				do local _ <close> = guard end
				for _ = 1, 3 do coroutine.yield(records()) end
			end)
			assert(co() and co() and co())
		end)()
		assert(records())
	end)
	it('is so for many coroutines in any order', function()
		local list, state = {}, 1
		for i = 1, 20 do
			list[i] = coroutine.wrap(function()
				for depth = 1, math.huge do
					if depth % 3 == i % 3 then
						tensor.nograd(function() for _ = 0, i % 4 do coroutine.yield(records() == false) end end)
					else
						coroutine.yield(records())
					end
				end
			end)
		end
		for _ = 1, 500 do
			state = state * 48271 % 2147483647
			assert(list[state % 20 + 1]() ~= false)
			assert(records())
		end
	end)
	it('covers evaluate and quantized models', function()
		local m = nn.Sequential{nn.Linear(2, 2)}
		local co = coroutine.create(function()
			m:evaluate({{tensor.ones(1, 2), tensor.ones(1)}}, {metric = function() error 'x' end})
		end)
		assert(not coroutine.resume(co) and records())
		local q = nn.Sequential{nn.Linear(2, 2)}:quantize{mode = 'weight_only', weight = 'int8'}
		co = coroutine.create(function() q(setmetatable({}, {})) end)
		coroutine.resume(co)
		assert(records())
	end)
end)

it('a module that is traced may not yield', function()
	local m = nn.module(function(m, x) coroutine.yield() return m.fc(x) end, {fc = nn.Linear(2, 2)})
	local co = coroutine.create(function() return graph.trace(m, tensor.ones(2, 2)) end)
	local ok, message = coroutine.resume(co)
	assert(not ok and message:find 'attempt to yield across a C%-call boundary', message)
	assert(#graph.trace(nn.Linear(2, 2), tensor.ones(2, 2)).inputs == 1)
end)

it('internal.interruptible ends with Ctrl-C, and the program goes on', function()
	local tools = dofile 'tests/tools/scratch.lua'
	local script = os.tmpname()
	local handle = assert(io.open(script, 'w'))
	handle:write [[
		local internal = debug.getregistry()['quoll.internal']
		print(internal.interruptible(function(a) return a, 2 end, 1))
		print(pcall(internal.interruptible, error, 'other'))
		local closed = false
		print(internal.interruptible(function()
			local _ <close> = setmetatable({}, {__close = function() closed = true end})
			io.popen('kill -INT $PPID'):close()
			while true do end
		end))
		print(closed, pcall(error, 'later'))
	]]
	handle:close()
	local out = tools.output(('env --default-signal=INT timeout 20 %s %s 2>&1; echo "status $?"'):format(tools.program, script))
	assert(out == 'true\t1\t2\nfalse\tother\nfalse\ntrue\tfalse\tlater\nstatus 0\n', out)
end)
