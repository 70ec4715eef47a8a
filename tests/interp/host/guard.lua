-- SPDX-License-Identifier: MIT
-- Text-only chunks at every door, with everything else about these functions as in plain Lua.
local bytecode = string.dump(function() return 5 end)
local binary = "attempt to load a binary chunk (mode is 't')"

local function file_with(text)
	local name = os.tmpname()
	local f = assert(io.open(name, 'wb'))

	f:write(text)
	f:close()
	return name
end

describe('load', function()
	it('refuses bytecode, in one piece or many', function()
		assert(select(2, load(bytecode)) == binary)
		assert(select(2, load(bytecode, 'x', 'bt')) == binary)
		assert(select(2, load(bytecode, 'x', 'b')) == "attempt to load a binary chunk (mode is '')")
		local at = 0
		assert(select(2, load(function() at = at + 1 return bytecode:sub(at, at) end)) == binary)
	end)
	it('takes text as before', function()
		assert(load 'return 1'() == 1)
		assert(load('return ...', '=x', 't')(2) == 2)
		assert(load('return y', 'x', 't', { y = 3 })() == 3)
		assert(not pcall(load('return y', 'x', 't', nil))) -- an env of nil is not the globals
		assert(load(function() return nil end)() == nil)
		assert(select(2, load('x', '=chunk')) == 'chunk:1: syntax error near <eof>')
		assert(select(2, load('return 1', 'x', 'b')) == "attempt to load a text chunk (mode is '')")
	end)
	it('names itself in errors', function()
		assert(select(2, pcall(load)) == "bad argument #1 to 'load' (function expected, got no value)")
		assert(select(2, pcall(load, 'x', {})) == "bad argument #2 to 'load' (string expected, got table)")
	end)
end)

describe('files', function()
	local compiled, text = file_with(bytecode), file_with '#!shebang\nreturn ...'

	it('loadfile refuses bytecode and takes text', function()
		assert(select(2, loadfile(compiled)) == binary)
		assert(loadfile(text)(4) == 4)
		assert(select(2, loadfile 'no_such_file'):find 'cannot open no_such_file')
	end)
	it('dofile refuses bytecode, takes text, can yield', function()
		assert(select(2, pcall(dofile, compiled)) == binary)
		local yields = file_with 'return coroutine.yield(1) + 1'
		local co = coroutine.wrap(dofile)

		assert(co(yields) == 1 and co(6) == 7)
		os.remove(yields)
	end)
	it('require refuses bytecode and gives the file name', function()
		local name = compiled:match '[^/]+$'
		local path = package.path

		package.path = compiled:match '^(.*/)' .. '?'
		local _, message = pcall(require, name)
		assert(message:find(binary, 1, true) and message:find("error loading module '" .. name, 1, true))
		local loaded, file = require(text:match '[^/]+$')
		assert(loaded == text:match '[^/]+$' and file == text)
		package.path = path
		os.remove(compiled)
		os.remove(text)
	end)
	it('require keeps its searchers and their order', function()
		assert(#package.searchers == 4)
		local _, message = pcall(require, 'no.such.module')
		local preload, lua, c = message:find('no field package.preload', 1, true),
			message:find('no/such/module.lua', 1, true), message:find('no/such/module.so', 1, true)
		assert(preload < lua and lua < c)
		local saved = package.path
		package.path = 1
		assert(select(2, pcall(require, 'x')):find "'package.path' must be a string")
		package.path = saved
	end)
end)

describe('with --bytecode', function()
	local function output(code)
		local pipe = io.popen('"/proc/$PPID/exe" --bytecode -e \'' .. code .. "' 2>&1")
		local text, good = pipe:read 'a', pipe:close()

		return text, good
	end
	it('bytecode runs', function()
		assert(output 'print(load(string.dump(function() return 5 end))())' == '5\n')
	end)
	it('a stripped function has no lines, where Lua 5.4.4 may crash', function()
		for _, text in ipairs{'function(...) return ... end', 'function(a) return a end', 'load "return 1"'} do
			local stripped = ('local f = load(string.dump(%s, true)) '):format(text)
			assert(output(stripped .. 'local i = debug.getinfo(f, "SL") print(i.source, i.what, next(i.activelines))'):find '^=%?\t%a+\tnil\n$')
		end
		assert(output('local g = function() local i = debug.getinfo(2, "L") return next(i.activelines), i.func end '
			.. 'local f = load(string.dump(load "local g = ... return (g())", true)) print(f(g))') == 'nil\n')
		assert(output('local co = coroutine.create(load(string.dump(load "coroutine.yield()", true))) '
			.. 'coroutine.resume(co) print(next(debug.getinfo(co, 1, "L").activelines))') == 'nil\n')
	end)
	it('text that is named as a stripped function has lines', function()
		local info = debug.getinfo(load('return 1', '=?'), 'SL')
		assert(info.source == '=?' and info.activelines[1])
		assert(select(2, pcall(debug.getinfo, load('return 1', '=?'), 'X')):find 'invalid option')
	end)
end)

describe('debug.getinfo', function()
	it('counts levels as plain Lua does', function()
		local function f() return debug.getinfo(1, 'f').func, debug.getinfo(2, 'l').currentline end
		local func, line = f()

		assert(func == f and line == debug.getinfo(1, 'l').currentline - 2)
		assert(debug.getinfo(0, 'f').func == debug.getinfo)
		assert(debug.getinfo(1000) == nil and debug.getinfo(math.maxinteger // 2) == nil)
		assert(select(2, pcall(debug.getinfo, 1, '>')):find "to 'debug.getinfo' %(invalid option")
		assert( not pcall(debug.getinfo, 'x') and not pcall(debug.getinfo))
	end)
	it('takes functions and threads', function()
		local co = coroutine.create(function() coroutine.yield() end)

		coroutine.resume(co)
		assert(debug.getinfo(co, 0, 'S').what == 'C' and debug.getinfo(co, 1, 'S').what == 'Lua')
		assert(next(debug.getinfo(function() end, 'L').activelines))
		assert(debug.getinfo(math.sin).what == 'C')
	end)
end)
