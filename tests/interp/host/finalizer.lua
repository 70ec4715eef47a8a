-- SPDX-License-Identifier: MIT
-- Ctrl-C ends a finalizer that does not end, and then what ran when the collector called it; otherwise finalizers are those of plain Lua
-- (sections 2.5.3 and 6.1 of the manual).
local scratch = dofile 'tests/tools/scratch.lua'
local read, program = scratch.output, scratch.program

-- Runs code in which signal() is Ctrl-C, in a process of its own, which has 20 seconds.
local function run(code)
	local file = os.tmpname()
	local handle = assert(io.open(file, 'w'))
	handle:write("local function signal() io.popen('kill -INT $PPID'):close() end\n", code)
	handle:close()
	return read(('env --default-signal=INT timeout -s KILL 20 %s %s 2>&1; echo "status $?"'):format(program, file))
end

describe('an endless finalizer', function()
	local endless = "local function endless() signal() while true do end end\nlocal n = 0\n"
	for name, code in pairs {
		['in a full collection'] = [[setmetatable({}, {__gc = endless}) collectgarbage() print('went', 'on')]],
		['in a step of the collector'] = [[setmetatable({}, {__gc = endless}) while true do local t = {} end]],
		['at the end of the program'] = [[setmetatable({}, {__gc = endless})]],
		['by debug.setmetatable'] = [[debug.setmetatable({}, {__gc = endless}) collectgarbage() print('went', 'on')]],
		['in a coroutine'] = [[coroutine.wrap(function() setmetatable({}, {__gc = endless}) collectgarbage() print('went', 'on') end)() print('went', 'on')]],
		['that catches errors'] = [[setmetatable({}, {__gc = function() pcall(endless) while true do pcall(error) end end}) collectgarbage() print('went', 'on')]],
		['of several objects'] = [[for i = 1, 5 do setmetatable({}, {__gc = endless}) end collectgarbage() print('went', 'on')]],
		['in a pcall'] = [[setmetatable({}, {__gc = endless}) pcall(collectgarbage) while true do end]],
	} do
		it(name, function()
			local text = run(endless .. code)
			assert(text:find 'status 130\n$' and not text:find 'went\ton' and not text:find 'warning', text)
			assert(name:find 'end of the program' or text:find 'interrupted', text)
		end)
	end
end)

it('is otherwise as in plain Lua', function()
	local seen = {}
	local function collect(f)
		setmetatable({}, {__gc = f})
		collectgarbage()
	end
	collect(function(o) seen[1] = type(o) end)
	collect(function() seen[2] = debug.getinfo(1).namewhat .. ' ' .. debug.getinfo(1, 'n').name end)
	collect(function() seen[3] = coroutine.isyieldable() end)
	collect(function()
		local _ <close> = setmetatable({}, {__close = function() seen[4] = 'closed' end})
		tensor.nograd(function() error 'x' end)
	end)
	local hooked = 0
	debug.sethook(function() hooked = hooked + 1 end, 'c')
	collect(function() local before = hooked; string.len(''); seen[5] = hooked - before end)
	debug.sethook()
	print(table.unpack(seen)) --> table metamethod __gc false closed 0
	print((tensor.ones(2):requires_grad_() * 2):requires_grad()) --> true
	-- called by hand it is the function itself
	local meta = {__gc = function(...) return coroutine.yield(...) end}
	setmetatable({}, meta)
	local wrapped = coroutine.wrap(meta.__gc)
	print(wrapped(1, 2)) --> 1 2
	print(wrapped(3)) --> 3
	meta.__gc = nil
	print(debug.getinfo(1, 'n').name) --> nil
end)

it('setmetatable checks what it is given', function()
	for wanted, given in pairs {
		["bad argument #1 to 'setmetatable' (table expected, got number)"] = {1, {}},
		["bad argument #2 to 'setmetatable' (nil or table expected, got no value)"] = {{}},
		['cannot change a protected metatable'] = {setmetatable({}, {__metatable = 1}), {}},
	} do
		local ok, message = pcall(setmetatable, table.unpack(given))
		assert(not ok and message == wanted, message)
	end
	local t, meta = {}, {__gc = true}
	assert(setmetatable(t, meta) == t and getmetatable(t) == meta and meta.__gc == true and not getmetatable(setmetatable(t, nil)))
end)
