-- SPDX-License-Identifier: MIT
-- Accidental globals: names that functions of a chunk assign, the chunk itself does not, and that are not there yet; mostly a `local`
-- was forgotten. Told before the chunk runs, from its bytecode.
local _, internal = ...
local bytecode = internal.import 'interp/prelude/bytecode'

-- Upvalue number of _ENV in an inner function, whose surroundings have it as `outer`.
local function environment_of(inner, outer)
	for i = 0, #inner.upvalues do
		local upvalue = inner.upvalues[i]
		if upvalue and upvalue[1] == 0 and upvalue[2] == outer then return i end
	end
end

-- A chunk that speaks of _G may assign by it (_G.name = 1, rawset(_G, 'name', 1)): every text in it may be such a name.
local function declare_by_table(f, declared)
	local speaks = false
	for _, text in next, f.constants do speaks = speaks or text == '_G' end
	for _, text in next, speaks and f.constants or {} do declared[text] = true end
end

-- found[name] = first line on which f, or what is in it, assigns the global; depth: that of the functions that count.
local function collect(f, environment, depth, declared, found)
	for i = 0, environment and f.count - 1 or -1 do
		local op, a, b = bytecode.decode(f, i)
		if op == bytecode.SETTABUP and a == environment then
			local name = f.constants[b]
			if depth == 0 then declared[name] = true else found[name] = found[name] or bytecode.line(f, i) end
		end
	end
	if depth == 0 then declare_by_table(f, declared) end
	for _, inner in ipairs(f.inner) do
		collect(inner, environment and environment_of(inner, environment), depth + 1, declared, found)
	end
end

local strict = {}

-- Warns of those of all chunks, {chunk =, name =, line = before its first} each; none of them has run. declared: names that count as
-- assigned. Gives their list.
function strict.warn(chunks, declared)
	local list = {}
	for _, part in ipairs(chunks) do
		part.found = {}
		bytecode.read(part.chunk, function(main)
			for i = 0, #main.upvalues do
				if main.names[i] == '_ENV' then collect(main, i, 0, declared, part.found) end
			end
		end)
	end
	for _, part in ipairs(chunks) do
		for name, line in next, part.found do
			if not declared[name] and rawget(_G, name) == nil then list[#list + 1] = {name = name, line = part.line + line, file = part.name} end
		end
	end
	table.sort(list, function(a, b) return a.line < b.line or a.line == b.line and a.name < b.name end)
	for _, entry in ipairs(list) do
		warn(("%s:%d: only a function assigns the global '%s': wanted a local, or an assignment outside of functions (--strict=0: no such warnings)"):format(
			entry.file, entry.line, entry.name))
	end
	return list
end

-- As --strict, or the environment, says (interp/host/options.def).
function strict.wanted() return not ({['0'] = 1, no = 1, off = 1, ['false'] = 1})[os.getenv 'QUOLL_STRICT' or '1'] end

function strict.script(chunk, name) return strict.warn({{chunk = chunk, name = name, line = 0}}, {}) end

return strict
