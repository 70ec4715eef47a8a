-- SPDX-License-Identifier: MIT
-- Accidental globals: names that functions of a chunk assign, the chunk itself does not, and that are not there yet; mostly a `local`
-- was forgotten. Told before the chunk runs, from its bytecode.
local _, internal = ...
local bytecode = internal.import 'bytecode'

-- Upvalue number of _ENV in an inner function, whose surroundings have it as `outer`.
local function environment_of(inner, outer)
	for i = 0, #inner.upvalues do
		local upvalue = inner.upvalues[i]
		if upvalue and upvalue[1] == 0 and upvalue[2] == outer then return i end
	end
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
	for _, inner in ipairs(f.inner) do
		collect(inner, environment and environment_of(inner, environment), depth + 1, declared, found)
	end
end

-- Warns of those of a chunk that is loaded from a file and not run yet; gives their list.
return function(chunk, name)
	local declared, found, list = {}, {}, {}
	bytecode.read(chunk, function(main)
		for i = 0, #main.upvalues do
			if main.names[i] == '_ENV' then collect(main, i, 0, declared, found) end
		end
	end)
	for global, line in next, found do
		if not declared[global] and rawget(_G, global) == nil then list[#list + 1] = {name = global, line = line} end
	end
	table.sort(list, function(a, b) return a.line < b.line or a.line == b.line and a.name < b.name end)
	for _, entry in ipairs(list) do
		warn(("%s:%d: only a function assigns the global '%s': wanted a local, or an assignment outside of functions (--strict=0: no such warnings)"):format(
			name, entry.line, entry.name))
	end
	return list
end
