-- SPDX-License-Identifier: MIT
-- labels: quick
-- Text of tokens as they come: whole characters, blanks, stop texts over several tokens.
local internal = debug.getregistry()['quoll.internal']
local pieces = internal.import 'nn/base/pieces'

-- A tokenizer whose tokens are these texts; number 1 is a mark without text.
local function tokenizer(list)
	local t = {vocab = {'<s>', table.unpack(list)}, control = {true}}
	function t.decode(_, ids)
		local parts = {}
		for i, id in ipairs(ids) do parts[i] = t.control[id] and '' or t.vocab[id] end
		return (table.concat(parts):gsub('^ ', '')) -- as SentencePiece: no blank in front
	end
	return t
end

local function run(list, stops, before)
	local p, got = pieces.new(tokenizer(list), before or {1}, stops or {}), {}
	for id = 2, #list + 1 do
		local piece, stop = p:add(id)
		got[#got + 1] = piece
		if stop then
			got[#got + 1] = 'STOP'
			return table.concat(got, '|')
		end
	end
	got[#got + 1] = p:finish()
	return table.concat(got, '|')
end

it('blanks in front of later pieces stay', function()
	assert(run {' a', ' b', 'c'} == 'a| b|c|')
	assert(run({' a', ' b'}, {}, {1, 3}) == ' a| b|')
end)

it('whole characters only', function()
	assert(run {'\xC3', '\xA4', 'x\xE2\x82', '\xAC', '\xF0\x9F', '\x98', '\x80!'} == '|\u{E4}|x|\u{20AC}|||\u{1F600}!|')
	assert(run {'a\xE2\x82'} == 'a|\u{FFFD}\u{FFFD}') -- what never was a character
	assert(run {'a\xFFb'} == 'a\u{FFFD}b|')
	assert(run {'\xA4\xA4\xA4\xA4'} == '\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}|')
end)

it('stop texts', function()
	assert(run({'on', 'ce', ' up', 'on'}, {'ce u'}) == 'on|||STOP')
	assert(run({'abc', 'abd', 'x'}, {'abx', 'bd'}) == 'abc|a|STOP')
	assert(run({'ab', 'ab', 'c', 'a'}, {'abc'}) == '|ab||STOP') -- held back, then not it, then it
	assert(run({'x', 'y'}, {'yz'}) == 'x||y')
	assert(run({'xx'}, {'x'}) == '|STOP')
end)
