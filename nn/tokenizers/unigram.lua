-- SPDX-License-Identifier: MIT
-- Unigram language model of SentencePiece (T5, ALBERT, XLM-R): the division of a text whose pieces have the greatest sum of scores. A
-- character that no piece covers is unknown, with a score 10 below the least; unknown ones side by side are one token.
local _, internal = ...
local steps = internal.import 'nn/tokenizers/steps'
local PENALTY = 10

local model = {}
model.__index = model

-- spec: vocab, number, scores, control, unknown, blank, prefix (see sentencepiece), dividers, bytes (unknown characters become bytes)
local function new(spec)
	local m = setmetatable({vocab = spec.vocab, scores = spec.scores, unknown = spec.unknown, blank = spec.blank, prefix = spec.prefix, number = {},
		longest = 1, dividers = spec.dividers or {}, byte = {}}, model)
	local least = 0
	for id, piece in ipairs(spec.vocab) do
		if not spec.control[id] and piece ~= '' then
			m.number[piece] = m.number[piece] or id
			m.longest, least = math.max(m.longest, #piece), math.min(least, spec.scores[id])
		end
	end
	for byte = 0, 255 do m.byte[byte] = spec.bytes and spec.number[('<0x%02X>'):format(byte)] or nil end
	m.penalty = least - PENALTY
	return m
end

-- The ids of the best division: best[i] is the score of the first i bytes, from[i] where the last piece of it begins.
local function divide(m, text)
	local best, from, piece, starts = {[0] = 0}, {}, {}, {}
	for at in utf8.codes(text) do starts[#starts + 1] = at end
	starts[#starts + 1] = #text + 1
	for k = 1, #starts - 1 do
		local at, base_score = starts[k], best[starts[k] - 1]
		for j = k + 1, #starts do
			local stop = starts[j] - 1
			if stop - at + 1 > m.longest and j > k + 1 then break end
			local id = m.number[text:sub(at, stop)]
			local score = id and m.scores[id] or j == k + 1 and m.penalty
			if score and (not best[stop] or base_score + score > best[stop]) then
				best[stop], from[stop], piece[stop] = base_score + score, at, id or m.unknown
			end
		end
	end
	local list, stop = {}, #text
	while stop > 0 do
		table.insert(list, {piece[stop], text:sub(from[stop], stop)})
		stop = from[stop] - 1
	end
	return list
end

function model:encode(text, out, first)
	if text == '' then return end
	if self.prefix and first and not (self.prefix == 'missing' and text:find '^ ') then text = ' ' .. text end
	text = text:gsub(' ', self.blank)
	for _, fragment in ipairs(steps.fragments(self.dividers, text)) do
		local list, last = divide(self, fragment), nil
		for i = #list, 1, -1 do
			local id, piece = list[i][1], list[i][2]
			if id == self.unknown and self.byte[0] then
				for k = 1, #piece do out[#out + 1] = self.byte[piece:byte(k)] end
			elseif id ~= self.unknown or last ~= id then
				out[#out + 1] = id
			end
			last = id
		end
	end
end

function model:decode(ids, first)
	local parts = {}
	for i, id in ipairs(ids) do
		local byte = self.byte[0] and self.vocab[id]:match '^<0x(%x%x)>$'
		parts[i] = byte and string.char(tonumber(byte, 16)) or self.vocab[id]:gsub(self.blank, ' ')
	end
	local text = table.concat(parts)
	return first and self.prefix and text:gsub('^ ', '') or text
end

return {name = 'unigram', new = new}
