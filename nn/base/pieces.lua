-- SPDX-License-Identifier: MIT
-- Text of tokens as they come: pieces.new(tokenizer, before, stops) makes an object; add(id) gives the new text, of whole characters,
-- and true where one of the texts `stops` is complete, which is left out. What may still become such a text or a character is held back
-- until `finish`. before: the tokens of the prompt. Bytes that are no UTF-8 become U+FFFD.
local pieces = {}
local methods = {}
methods.__index = methods

function pieces.new(tokenizer, before, stops)
	local self = setmetatable({tokenizer = tokenizer, stops = stops, held = '', last = nil}, methods)
	for i = #before, 1, -1 do
		if not tokenizer.control[before[i]] then
			self.last = before[i]
			break
		end
	end
	return self
end

-- What a token adds to the text: a tokenizer leaves out a blank at the beginning only, so it sees the token before.
local function text_of(self, id)
	local t = self.tokenizer
	if t.control[id] or not t.vocab[id] then return '' end
	local before = self.last and t:decode {self.last} or ''
	local both = t:decode(self.last and {self.last, id} or {id})
	self.last = id
	return both:sub(#before + 1)
end

-- Valid UTF-8.
local function clean(text)
	local parts, at = {}, 1
	while at <= #text do
		local good, bad = utf8.len(text, at)
		parts[#parts + 1] = text:sub(at, good and #text or bad - 1)
		if good then break end
		parts[#parts + 1], at = '\u{FFFD}', bad + 1
	end
	return table.concat(parts)
end

-- How many bytes at the end begin a character that is not complete.
local function unfinished(text)
	for back = 1, math.min(3, #text) do
		local byte = text:byte(#text - back + 1)
		if byte >= 0xC0 then
			local need = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
			return need > back and back or 0
		elseif byte < 0x80 then
			return 0
		end
	end
	return 0
end

-- How many bytes at the end may be the beginning of one of the texts.
local function beginning(text, stops)
	local most = 0
	for _, stop in ipairs(stops) do
		for n = math.min(#stop - 1, #text), most + 1, -1 do
			if text:sub(-n) == stop:sub(1, n) then
				most = n
				break
			end
		end
	end
	return most
end

function methods:add(id)
	local text = self.held .. text_of(self, id)
	local first
	for _, stop in ipairs(self.stops) do
		local at = text:find(stop, 1, true)
		if at and (not first or at < first) then first = at end
	end
	if first then
		self.held = ''
		return clean(text:sub(1, first - 1)), true
	end
	local keep = math.max(unfinished(text), beginning(text, self.stops))
	self.held = text:sub(#text - keep + 1)
	return clean(text:sub(1, #text - keep)), false
end

-- What is left.
function methods:finish()
	local text = clean(self.held)
	self.held = ''
	return text
end

return pieces
