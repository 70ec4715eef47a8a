-- SPDX-License-Identifier: MIT
-- The memory of an export on a device: g:export{cc=} compiles it and reads the object's sections and gcc's call
-- graph; max_ram= and max_flash= are checked before writing.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail = base.fail
local measure = {}

local function text_of(path)
	local file = io.open(path, 'rb')
	if not file then return end
	local opened <close> = file
	return opened:read 'a'
end

---------------------------------------------------------------- the object

-- Bytes of the loaded sections of an ELF object: read-only, initialized, zero-initialized; nil if it is not ELF.
local function sections(object)
	if not object or object:sub(1, 4) ~= '\x7fELF' then return end
	local wide, order = object:byte(5) == 2, object:byte(6) == 1 and '<' or '>'
	local start = string.unpack(order .. (wide and 'I8' or 'I4'), object, wide and 0x29 or 0x21)
	local size, count = string.unpack(order .. 'I2I2', object, wide and 0x3b or 0x2f)
	local read, data, zeros = 0, 0, 0
	for i = 0, count - 1 do
		local at = start + i * size + 1
		local kind = string.unpack(order .. 'I4', object, at + 4)
		local flags = string.unpack(order .. (wide and 'I8' or 'I4'), object, at + 8)
		local bytes = string.unpack(order .. (wide and 'I8' or 'I4'), object, at + (wide and 32 or 20))
		if flags & 2 ~= 0 and kind == 8 then zeros = zeros + bytes
		elseif flags & 3 == 3 then data = data + bytes
		elseif flags & 2 ~= 0 then read = read + bytes end
	end
	return read, data, zeros
end

-- Stack size of the deepest call chain from the forward passes, by gcc's -fcallgraph-info=su; nil if not available.
local function stack_of(graph, id)
	if not graph then return end
	local frame, calls, depth = {}, {}, {}
	for title, label in graph:gmatch 'node: { title: "([^"]*)" label: "([^"]*)"' do frame[title] = tonumber(label:match '(%d+) bytes') or 0 end
	for from, to in graph:gmatch 'edge: { sourcename: "([^"]*)" targetname: "([^"]*)"' do
		calls[from] = calls[from] or {}
		table.insert(calls[from], to)
	end
	local function deepest(name)
		if depth[name] then return depth[name] end
		depth[name] = 0 -- there is no recursion
		local most = 0
		for _, inner in ipairs(calls[name] or {}) do most = math.max(most, deepest(inner)) end
		depth[name] = (frame[name] or 0) + most
		return depth[name]
	end
	local most
	for name in next, frame do
		local word = name:match '[^:]*$'
		if word:find('^' .. id .. '_run') or word:find('^' .. id .. '_forward') then most = math.max(most or 0, deepest(name)) end
	end
	return most
end

-- Compiles the files and returns {flash=, stack=}.
function measure.compiled(texts, id, cc)
	local folder = os.tmpname()
	os.remove(folder)
	assert(os.execute(("mkdir '%s'"):format(folder)))
	local _ <close> = setmetatable({}, {__close = function() os.execute(("rm -rf '%s'"):format(folder)) end})
	for name, text in next, texts do
		if name:match '[^/]*$' ~= 'main.c' and name:find '%.[ch]$' then internal.write_file(folder .. '/' .. name:match '[^/]*$', text) end
	end
	local command = ("cd '%s' && %s -std=c99 -ffp-contract=off -fno-strict-aliasing -fno-delete-null-pointer-checks %%s -c %s.c -o net.o 2>&1"):format(folder,
		cc, id)
	local function run(flags)
		local pipe <close> = io.popen(command:format(flags))
		local output = pipe:read 'a'
		return pipe:close() == true, output
	end
	local good, output = run '-fcallgraph-info=su'
	if not good then good, output = run '' end
	if not good then fail("export: cc: wanted a command that compiles %s.c, got '%.99s': %s", id, cc, output:match '[^\n]*' or '') end
	local read, data = sections(text_of(folder .. '/net.o'))
	if not read then fail("export: cc: wanted a compiler that writes ELF objects, got '%.99s'", cc) end
	local graph = text_of(folder .. '/net.ci') or text_of(folder .. '/' .. id .. '.ci')
	return {flash = read + data, stack = stack_of(graph, id)}
end

---------------------------------------------------------------- limits

-- The node with the largest use of the arena.
local function largest(bundle)
	local most
	for _, e in ipairs(bundle.variants) do
		for _, c in ipairs(e.costs) do
			if c.last >= c.first and (not most or c.memory > most.memory) then most = c end
		end
	end
	return most
end

-- made: the result of measure.compiled, or nil: then only arena and constants are checked.
function measure.check(bundle, o, arena, constants, made)
	local stack = made and made.stack or 0
	if o.max_ram and arena + stack > o.max_ram then
		local node = largest(bundle)
		fail("export: max_ram: wanted at most %d bytes, got %d: arena %d%s; node '%s' alone uses %d", o.max_ram, arena + stack, arena,
			made and made.stack and (', stack %d'):format(stack) or '', node and node.node or '-', node and node.memory or 0)
	end
	local flash = made and made.flash or constants
	if o.max_flash and flash > o.max_flash then
		fail('export: max_flash: wanted at most %d bytes, got %d: constants %d%s', o.max_flash, flash, constants,
			made and (', code %d'):format(flash - constants) or '; with cc= the code counts, too')
	end
end

return measure
