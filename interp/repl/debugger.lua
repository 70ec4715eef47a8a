-- SPDX-License-Identifier: MIT
-- %debug: a look at the frames of the last error (interp/repl/postmortem.c). An expression is evaluated with the
-- locals and
-- upvalues of the chosen frame and the globals; assignments to them change what later expressions see, not the
-- program, which
-- has ended. Frame 1 is where the error was raised.
local _, internal = ...
local debugger = {}
local chosen

local HELP = [[  up [n]       to the caller          down [n]   back
  where        all frames             vars       the variables of this frame
  list         its source             message    the error again
  quit         back to the prompt; so does an empty line
  anything else is evaluated with the variables of the frame]]

local function frames() return internal.postmortem end

-- What the wrapper of an input added (interp/repl/locals.c).
local function is_added(name) return name:find '^save_%d+$' end

-- The variables of a frame: locals, the last of a name first, then upvalues. {name, value, kind}
local function variables(frame)
	local list, seen = {}, {}
	for i = #frame.locals, 1, -1 do
		local name = frame.locals[i][1]
		if not seen[name] and not is_added(name) then
			table.insert(list, 1, {name, frame.locals[i][2], 'local'})
			seen[name] = true
		end
	end
	for i = 1, math.huge do
		local name, value = debug.getupvalue(frame.call, i)
		if not name then break end
		if name ~= '_ENV' and name ~= '' and not seen[name] and not is_added(name) then
			list[#list + 1] = {name, value, 'upvalue'}
			seen[name] = true
		end
	end
	return list
end

local function one_line(value)
	local text = internal.describe(value) or internal.import 'interp/prelude/show'(value)
	text = text:gsub('%s*\n%s*', ' ')
	return #text > 100 and text:sub(1, 99) .. '…' or text
end

local function place(frame)
	return frame.line > 0 and ('%s:%d'):format(frame.place, frame.line) or frame.place
end

local function head(i)
	local frame = frames()[i]
	print(('%s%d  %s  in %s'):format(i == chosen and '> ' or '  ', i, place(frame), frame.name or
		(frame.what == 'main' and 'the main chunk' or 'a function')))
end

local function source_lines(frame)
	local sources = debug.getregistry()['quoll.sources'] or {}
	local text = frame.source:sub(1, 1) == '@' and io.open(frame.source:sub(2), 'rb')
	if text then
		local file = text
		text = file:read 'a'
		file:close()
	else
		text = sources[frame.source] or internal.source(frame.source)
	end
	return text
end

-- The lines around that of the frame, `around` before and after it; false: there are none.
local function show_source(around)
	local frame = frames()[chosen]
	local text, number = source_lines(frame), 0
	if not text or frame.line <= 0 then return false end
	for line in (text:gsub('\n?$', '\n')):gmatch '(.-)\n' do
		number = number + 1
		if math.abs(number - frame.line) <= around then
			print(('%s%4d | %s'):format(number == frame.line and '>' or ' ', number, line))
		end
	end
	return true
end

local function list()
	if not show_source(5) then print 'no source at hand' end
end

local function vars()
	local found = variables(frames()[chosen])
	for _, v in ipairs(found) do
		print(('  %-14s %s%s'):format(v[1], one_line(v[2]), v[3] == 'upvalue' and '  (upvalue)' or ''))
	end
	if #found == 0 then print '  no variables' end
end

---------------------------------------------------------------- evaluation

local function environment(frame)
	local values, known = {}, {}
	for _, v in ipairs(variables(frame)) do values[v[1]], known[v[1]] = v[2], true end
	return setmetatable({}, {
		__index = function(_, name)
			if known[name] then return values[name] end
			return _G[name]
		end,
		__newindex = function(_, name, value)
			if not known[name] then
				_G[name] = value
				return
			end
			values[name] = value
			for i = #frame.locals, 1, -1 do
				if frame.locals[i][1] == name then
					frame.locals[i][2] = value
					return
				end
			end
		end,
	})
end

local function evaluate(text)
	local env = environment(frames()[chosen])
	local code = load('return ' .. text, '=debug', 't', env)
	local reason
	if not code then
		code, reason = load(text, '=debug', 't', env)
		if not code then
			print(reason)
			return
		end
	end
	local results = table.pack(pcall(code))
	if not results[1] then
		print(tostring(results[2]))
	elseif results.n > 1 then
		local show, texts = internal.import 'interp/prelude/show', {}
		for i = 2, results.n do texts[i - 1] = show(results[i]) end
		print(table.concat(texts, '\t'))
	end
end

---------------------------------------------------------------- commands

local function move(by)
	local wanted = chosen + by
	if wanted < 1 or wanted > #frames() then
		print(by > 0 and 'this is the outermost frame' or 'this is where the error was raised')
		return
	end
	chosen = wanted
	head(chosen)
	show_source(0)
end

local commands = {
	where = function()
		for i = 1, #frames() do head(i) end
	end,
	vars = vars,
	list = list,
	message = function() print(frames().message) end,
	help = function() print(HELP) end,
	up = function(n) move(math.tointeger(tonumber(n)) or 1) end,
	down = function(n) move(-(math.tointeger(tonumber(n)) or 1)) end,
}
commands.w, commands.u, commands.d, commands.l = commands.where, commands.up, commands.down, commands.list

-- An input while the debugger is on; false: it ends.
function debugger.step(text)
	local word, rest = text:match '^%s*(%a*)%s*(.-)%s*$'
	if not text:find '%S' or rest == '' and (word == 'quit' or word == 'q' or word == 'exit') then return false end
	if not frames() then return false end
	local command = commands[word]
	if command and (rest == '' or (word == 'up' or word == 'down' or word == 'u' or word == 'd') and rest:find '^%d+$') then
		command(rest)
	else
		evaluate(text)
	end
	return true
end

-- The frame of the user's code that failed; 1 when all is Quoll's own.
local function first_own()
	for i, frame in ipairs(frames()) do
		if frame.what ~= 'C' and not internal.is_own(frame.source) then return i end
	end
	return 1
end

function debugger.begin(text)
	if text:find 'drop' then
		internal.postmortem = nil
		return false
	end
	if not frames() or #frames() == 0 then
		print 'no error has been raised at this prompt'
		return false
	end
	chosen = first_own()
	print(frames().message)
	head(chosen)
	list()
	print "up, down, where, vars, list, quit; help says more"
	return true
end

return debugger
