-- SPDX-License-Identifier: MIT
-- Byte pair encoding of bytes (GPT-2, Llama 3, Qwen): words by a regular expression, pairs by the order in which they were learned. The
-- vocabulary writes each byte as a printable character.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local merge = internal.import 'nn/tokenizers/merge'
local steps = internal.import 'nn/tokenizers/steps'
local CACHE = 1 << 14 -- words

-- character -> byte: printable ones of Latin-1 stand for themselves, the others for 256, 257, ... (GPT-2: bytes_to_unicode)
local BYTE = {}
do
	local next_code = 256
	for byte = 0, 255 do
		local printable = byte >= 33 and byte <= 126 or byte >= 161 and byte <= 172 or byte >= 174
		BYTE[utf8.char(printable and byte or next_code)] = string.char(byte)
		if not printable then next_code = next_code + 1 end
	end
end

-- The bytes of a piece; one with other characters stands for itself.
local function bytes_of(piece)
	local good = utf8.len(piece) ~= nil
	local bytes = good and piece:gsub(utf8.charpattern, function(c)
		good = good and BYTE[c] ~= nil
		return BYTE[c]
	end)
	return good and bytes or piece
end

local function wanted(...) base.fail('data.tokenizer: ' .. select(1, ...), select(2, ...)) end

-- merges: list of 'a b' or {a, b}. Gives left -> right -> {rank, piece}.
local function ranks_of(merges, number)
	local ranks = {}
	for rank, pair in ipairs(merges) do
		local a, b
		if type(pair) == 'string' then
			a, b = pair:match '^(.-) (.*)$'
		elseif type(pair) == 'table' then
			a, b = pair[1], pair[2]
		end
		local left, right = number[a], number[b]
		local joined = left and right and number[a .. b]
		if not joined then wanted('merges: wanted pairs whose parts and whole are pieces, got %s as number %d', base.describe(pair), rank) end
		ranks[left] = ranks[left] or {}
		if not ranks[left][right] then ranks[left][right] = {rank, joined} end
	end
	return ranks
end

local model = {}
model.__index = model

-- spec: vocab, number (piece -> id), control (id -> true), merges, dividers, whole (a word that is a piece is not merged)
local function new(spec)
	local m = setmetatable({bytes = {}, single = {}, dividers = spec.dividers, whole = {}, cache = {}, cached = 0}, model)
	for id, piece in ipairs(spec.vocab) do
		m.bytes[id] = spec.control[id] and piece or bytes_of(piece)
		if not spec.control[id] then
			if #m.bytes[id] == 1 then m.single[m.bytes[id]] = id end
			if spec.whole then m.whole[m.bytes[id]] = id end
		end
	end
	for byte = 0, 255 do
		if not m.single[string.char(byte)] then wanted('vocab: wanted a piece for each byte, got none for %d', byte) end
	end
	m.ranks = ranks_of(spec.merges, spec.number)
	return m
end

local function pieces(m, word)
	local known = m.cache[word]
	if known then return known end
	local ids = m.whole[word] and {m.whole[word]}
	if not ids then
		ids = {}
		for i = 1, #word do ids[i] = m.single[word:sub(i, i)] end
		ids = merge(ids, function(a, b)
			local found = m.ranks[a] and m.ranks[a][b]
			if found then return found[1], found[2] end
		end)
	end
	if m.cached == CACHE then m.cache, m.cached = {}, 0 end
	m.cache[word], m.cached = ids, m.cached + 1
	return ids
end

function model:encode(text, out)
	for _, word in ipairs(steps.fragments(self.dividers, text)) do
		for _, id in ipairs(pieces(self, word)) do out[#out + 1] = id end
	end
end

function model:decode(ids)
	local parts = {}
	for i, id in ipairs(ids) do parts[i] = self.bytes[id] end
	return table.concat(parts)
end

return {name = 'bytebpe', new = new}
