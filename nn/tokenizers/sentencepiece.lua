-- SPDX-License-Identifier: MIT
-- Byte pair encoding of SentencePiece (Llama 2, Mistral, llama2.c): characters, of whole texts, joined by the scores of pieces, or by
-- the order of pairs; a character that is no piece becomes its bytes. Blanks are a character of their own.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local merge = internal.import 'nn/tokenizers/merge'

local model = {}
model.__index = model

-- A character is at most four bytes; as in llama2.c, any byte that is none of 0x80 to 0xbf begins one.
local function characters(text)
	local list, at = {}, 1
	while at <= #text do
		local stop = at
		while stop < #text and stop - at < 3 and text:byte(stop + 1) & 0xc0 == 0x80 do stop = stop + 1 end
		list[#list + 1] = text:sub(at, stop)
		at = stop + 1
	end
	return list
end

-- By scores: a pair makes the piece of its text.
local function by_scores(m, scores, number)
	return function(a, b)
		local joined = number[m.vocab[a] .. m.vocab[b]]
		if joined and not m.apart[joined] and scores[joined] > -1e10 then return -scores[joined], joined end
	end
end

-- By the list of pairs.
local function by_merges(merges, number)
	local ranks = {}
	for rank, pair in ipairs(merges) do
		local a, b
		if type(pair) == 'string' then a, b = pair:match '^(.-) (.*)$' elseif type(pair) == 'table' then a, b = pair[1], pair[2] end
		local left, right = number[a], number[b]
		local joined = left and right and number[a .. b]
		if not joined then
			base.fail('data.tokenizer: merges: wanted pairs whose parts and whole are pieces, got %s as number %d', base.describe(pair), rank)
		end
		ranks[left] = ranks[left] or {}
		ranks[left][right] = ranks[left][right] or {rank, joined}
	end
	return function(a, b)
		local found = ranks[a] and ranks[a][b]
		if found then return found[1], found[2] end
	end
end

-- spec: vocab, number, control (id -> true), scores or merges, blank (what a blank is written as), prefix (a blank is put in front of the
-- text; 'missing': if none is there), lead (such a blank is left out of decoded texts; default: prefix), unknown (an id, or nil)
local function new(spec)
	local m = setmetatable({vocab = spec.vocab, number = spec.number, blank = spec.blank, prefix = spec.prefix, unknown = spec.unknown, byte = {},
		apart = spec.control}, model)
	m.lead = spec.lead == nil and spec.prefix or spec.lead
	for byte = 0, 255 do m.byte[byte] = spec.number[('<0x%02X>'):format(byte)] end
	m.pair = spec.merges and by_merges(spec.merges, spec.number) or by_scores(m, spec.scores, spec.number)
	return m
end

-- `first`: nothing is in front of the text, or a token of its own.
function model:encode(text, out, first)
	if text == '' then return end
	local ids, prefix = {}, self.prefix and first and not (self.prefix == 'missing' and text:find '^ ')
	if self.blank ~= ' ' then text = text:gsub(' ', self.blank) end
	local list = characters(text)
	if prefix then table.insert(list, 1, self.blank) end
	for _, c in ipairs(list) do
		local id = self.number[c]
		if id and not self.apart[id] then
			ids[#ids + 1] = id
		else
			for i = 1, #c do
				local byte = self.byte[c:byte(i)]
				if byte or self.unknown and i == 1 then
					ids[#ids + 1] = byte or self.unknown
				elseif not self.unknown then
					base.fail("encode: wanted characters of the vocabulary, got '%s'", c)
				end
			end
		end
	end
	for _, id in ipairs(merge(ids, self.pair)) do out[#out + 1] = id end
end

-- `first`: whether a token of its own is before the ids.
function model:decode(ids, first)
	local parts = {}
	for i, id in ipairs(ids) do
		local piece = self.vocab[id]
		local byte = piece:match '^<0x(%x%x)>$'
		if byte then piece = string.char(tonumber(byte, 16)) elseif self.blank ~= ' ' then piece = piece:gsub(self.blank, ' ') end
		if i == 1 and first and self.lead then piece = piece:gsub('^ ', '') end
		parts[i] = piece
	end
	return table.concat(parts)
end

return {name = 'sentencepiece', new = new, by_merges = by_merges}
