-- SPDX-License-Identifier: MIT
-- A coroutine that died in resume leaves no memory behind, and its error may be any value.
local function count() collectgarbage() collectgarbage() return collectgarbage 'count' end

describe('dead coroutines', function()
	it('are collected with what is kept of them', function()
		local before
		for i = 1, 3000 do
			local co
			co = coroutine.create(function() local own = co error({own}) end)
			assert(not coroutine.resume(co))
			if i == 1000 then before = count() end
		end
		assert(count() - before < 100)
	end)
	it('keep any error for coroutine.close', function()
		for _, e in ipairs{false, 1, 'text', {}, print, tensor{1}} do
			local co = coroutine.create(error)
			local ok, got = coroutine.resume(co, e)
			assert(not ok and rawequal(got, e))
			ok, got = coroutine.close(co)
			assert(ok == false and rawequal(got, e))
		end
		local co = coroutine.create(error)
		coroutine.resume(co, nil)
		assert(coroutine.status(co) == 'dead' and debug.traceback(co):find "'error'")
	end)
	it('may have died of a stack overflow', function()
		local function f() return 1 + f() end
		local co = coroutine.create(f)
		local ok, e = coroutine.resume(co)
		assert(not ok and e:find 'stack overflow' and debug.traceback(co):find 'dead_thread.lua:%d+: in ')
	end)
end)
