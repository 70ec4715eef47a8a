-- SPDX-License-Identifier: MIT
-- Files with a few bytes changed: mutations.of(bytes, seed) is the same for the same seed. Of two changes one hits a place that looks like
-- structure (zeros of offsets, text), as most bytes of a model are weights, any of which is right.
local mutations = {}

local WORDS = {0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff}
local BYTES = {0, 1, 2, 8, 0x10, 0x7f, 0x80, 0xf0, 0xff}

local function is_structure(chunk)
	local zeros, texts = 0, 0
	for i = 1, #chunk do
		local b = chunk:byte(i)
		if b == 0 then zeros = zeros + 1 elseif b >= 0x20 and b < 0x7f then texts = texts + 1 end
	end
	return zeros > #chunk // 4 or texts > #chunk * 5 // 8
end

local places = setmetatable({}, {__mode = 'k'})

-- The chunks of 32 bytes of a file that look like structure. A file is a table {bytes=}.
local function places_of(file)
	local list = places[file]
	if list then return list end
	list = {}
	for at = 1, #file.bytes, 32 do
		if is_structure(file.bytes:sub(at, at + 31)) then list[#list + 1] = at end
	end
	places[file] = list
	return list
end

-- Numbers of a generator of its own (xorshift), so that a seed means the same on every machine.
local function generator(seed)
	local s = seed * 0x9e3779b97f4a7c15 ~ 0x2545f4914f6cdd1d
	return function(n)
		s = s ~ s << 13
		s = s ~ s >> 7
		s = s ~ s << 17
		return (s >> 11) % n + 1
	end
end

local function place(file, random)
	local list = places_of(file)
	if #list == 0 or random(2) == 1 then return random(#file.bytes) end
	return math.min(#file.bytes, list[random(#list)] + random(32) - 1)
end

local function with(s, at, new, cut) return s:sub(1, at - 1) .. new .. s:sub(at + (cut or #new)) end

local CHANGES = {
	function(s, at, random) return with(s, at, string.char(random(256) - 1)) end,
	function(s, at, random) return with(s, at, string.char(BYTES[random(#BYTES)])) end,
	function(s, at, random) return with(s, at, string.char(s:byte(at) ~ 1 << random(8) - 1)) end,
	function(s, at, random) return with(s, at, string.char((s:byte(at) + random(17) - 9) % 256)) end,
	function(s, at, random) -- a word at its place
		at = (at - 1) // 4 * 4 + 1
		return with(s, at, ('<I4'):pack(WORDS[random(#WORDS)])):sub(1, #s)
	end,
	function(s, at, random) -- bytes of another place
		local from, n = random(#s), random(16)
		return with(s, at, s:sub(from, from + n - 1)):sub(1, #s)
	end,
	function(s, at, random) return with(s, at, '', random(8)) end,
	function(s, at, random)
		local n = random(8)
		return with(s, at, s:sub(at, at + n - 1) .. s:sub(at, at + n - 1), n)
	end}

function mutations.of(file, seed)
	local random, s = generator(seed), file.bytes
	for _ = 1, random(20) do random(2) end
	for _ = 1, random(4) do
		local change = CHANGES[random(random(4) == 1 and #CHANGES or #CHANGES - 2)]
		s = change(s, math.min(place(file, random), #s), random)
		if #s == 0 then return s end
	end
	if random(50) == 1 then s = s:sub(1, random(#s)) end
	return s
end

local function size_of(size, b) return type(size) == 'table' and size.per * b + size.plus or size end

-- Values for the inputs of a graph; nil: they are larger than `most` elements.
local function inputs_of(g, most)
	local list, all = {}, 0
	for i, name in ipairs(g.inputs) do
		local n, sizes, count = g:node(name), {}, 1
		for k, size in ipairs(n.shape) do
			sizes[k] = size_of(size, 1)
			count = count * math.max(sizes[k], 1)
			if count > most then return nil end
		end
		all = all + count
		local x = #sizes == 0 and tensor {0.5}:sum() or tensor.rand(table.unpack(sizes))
		local float = quant.dtype(n.dtype).float
		list[i] = float and x:to(n.dtype) or (x * 3):to(n.dtype) -- integers are taken for codes
	end
	return all <= most and list or nil
end

local function one_line(message)
	return type(message) == 'string' and not message:find '\n' and #message < 4000 and not message:find 'attempt to '
end

-- Loads the file at `path`, and runs what loads. Errors must be of one line. Returns whether it ran.
function mutations.try(path, most)
	local ok, g = pcall(graph.load, path)
	if not ok then return assert(one_line(g), ('load: %s'):format(g)) and false end
	local inputs = inputs_of(g, most or 1 << 16)
	if not inputs then return false end
	local ran, message = pcall(g.run, g, #inputs == 1 and inputs[1] or inputs)
	return ran or assert(one_line(message), ('run: %s'):format(message)) and false
end

return mutations
