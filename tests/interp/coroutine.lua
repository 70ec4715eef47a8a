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
			local v <close> = setmetatable({}, { __close = function(_, e) closed = e end })

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
			local v <close> = setmetatable({}, { __close = function() error 'in close' end })

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
				local v <close> = setmetatable({}, { __close = function()
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
