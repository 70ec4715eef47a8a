-- SPDX-License-Identifier: MIT
-- WordPiece (BERT): each word is taken apart into the longest pieces from the left; a word that cannot be is unknown as a whole. Either
-- pieces within words are marked ('##ing'), or those that begin one ('▁word', in .gguf files).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local steps = internal.import 'nn/tokenizers/steps'

local model = {}
model.__index = model

-- spec: vocab, number, unknown, inner (mark of pieces within a word), outer (mark of pieces that begin one), most (characters of a word), dividers,
-- close (no blank before . , ? and ! in decoded texts)
local function new(spec)
	local m = setmetatable({vocab = spec.vocab, number = spec.number, unknown = spec.unknown, inner = spec.inner or '', outer = spec.outer or '',
		most = spec.most or 100, longest = 1, dividers = spec.dividers, close = spec.close}, model)
	if not m.unknown then base.fail 'data.tokenizer: wanted a piece for unknown words, got none' end
	for _, piece in ipairs(spec.vocab) do m.longest = math.max(m.longest, #piece) end
	return m
end

-- Appends the pieces of a word; false if there is no division.
local function word_pieces(m, word, out)
	local n, at = #out, 1
	while at <= #word do
		local mark, id, stop = at == 1 and m.outer or m.inner, nil, math.min(#word, at + m.longest)
		while stop >= at do
			-- a piece ends before a byte that begins a character
			local following = word:byte(stop + 1)
			id = (not following or following & 0xc0 ~= 0x80) and m.number[mark .. word:sub(at, stop)]
			if id then break end
			stop = stop - 1
		end
		if not id then
			for i = #out, n + 1, -1 do out[i] = nil end
			return false
		end
		out[#out + 1] = id
		at = stop + 1
	end
	return true
end

function model:encode(text, out)
	for _, word in ipairs(steps.fragments(self.dividers, text)) do
		if utf8.len(word) > self.most or not word_pieces(self, word, out) then out[#out + 1] = self.unknown end
	end
end

function model:decode(ids)
	local parts = {}
	for i, id in ipairs(ids) do
		local piece = self.vocab[id]
		local marked = #self.inner > 0 and self.inner or self.outer
		local has = piece:sub(1, #marked) == marked
		if has then piece = piece:sub(#marked + 1) end
		local begins = has == (#self.outer > 0)
		parts[i] = begins and i > 1 and not (self.close and piece:find '^[.,?!]$') and ' ' .. piece or piece
	end
	return table.concat(parts)
end

return {name = 'wordpiece', new = new}
