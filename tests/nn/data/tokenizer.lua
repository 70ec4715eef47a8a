-- SPDX-License-Identifier: MIT
-- The tokenizer of llama2.c. Expected numbers come from a plain transcription of run.c in Python, one added to each.
-- labels: once
local path = os.tmpname()
local function write(text)
	local f <close> = assert(io.open(path, 'wb'))
	f:write(text)
end

-- A file of pieces: marks, bytes, and what is given as {piece, score}.
local function file_of(pieces)
	local parts = {string.pack('<i4', 16)}
	local function add(piece, score) parts[#parts + 1] = string.pack('<fi4', score, #piece) .. piece end
	for _, mark in ipairs {'<unk>', '\n<s>\n', '\n</s>\n'} do add(mark, 0) end
	for byte = 0, 255 do add(('<0x%02X>'):format(byte), 0) end
	for _, piece in ipairs(pieces) do add(piece[1], piece[2]) end
	return table.concat(parts)
end

local good = file_of {{' ', -9}, {'a', -8}, {'b', -7}, {'ab', -1}, {'aba', -3}, {' a', -2}, {'ba', -0.5}}
write(good)
local t = data.tokenizer(path)
print(#t.vocab, t)                            --> 266 tokenizer: 266 pieces
print(t:encode 'aba')                         --> int32(3)    2  265  266
print(t:encode('ab', {bos=false, eos=true}))  --> int32(3)  260  263  3
print(t:encode 'é')                           --> int32(4)    2  260  199  173
print(t:encode '', t:encode('', {bos=false})) --> int32(1)  2 int32(0)
print(t:decode(t:encode 'aba ab€'), t:decode{266, 260, 261})  --> aba ab€ ba a
print(t:decode{2, 260, 261, 3})               --> a
t:decode{267}             --> error: decode: wanted numbers from 1 to 266, got 267
t:encode()                --> error: encode: wanted text, got nil
t:encode('a', {bso=true}) --> error: did you mean 'bos'

it('refuses every cut and changed file with one line, or reads it', function()
	local small = good:sub(1, 120) .. good:sub(-80)
	for n = 0, #small do
		write(small:sub(1, n))
		local ok, message = pcall(data.tokenizer, path)
		assert(not ok and message:find('data.tokenizer: ' .. path, 1, true) and not message:find '\n', message)
	end
	for i = 1, #good, 7 do
		write(good:sub(1, i - 1) .. string.char(good:byte(i) ~ 0xff) .. good:sub(i + 1))
		local ok, message = pcall(data.tokenizer, path)
		assert(ok or message:find 'data.tokenizer', message)
	end
end)

data.tokenizer 'no/such'  --> error: tokenizer: there is no no/such
data.tokenizer()          --> error: tokenizer: wanted a file name, got nil
os.remove(path)

it('reads tok512.bin', function()
	local file = data.find 'weights/tok512.bin'
	if not file then skip 'tokenizer: weights/tok512.bin is not here' end
	local tok = data.tokenizer(file)
	local function ids(text) return table.concat(tok:encode(text):totable(), ' ') end
	assert(#tok.vocab == 512)
	assert(ids 'Once upon a time' == '2 404 408 262 379')
	assert(ids 'Lily\'s mom said, "Hé – 日本 😀!"\n\n' == '2 318 440 420 358 337 433 314 441 486 411 477 411 234 155 169 ' ..
		'234 160 176 411 244 163 156 132 444 437 14 14')
	assert(ids 'zzzz  Qq' == '2 411 452 452 452 452 411 411 474 457' and ids 'the the the' == '2 266 266 266')
	assert(ids '\x80\xff\xc3' == '2 411 132 259 199')
	local expected = data.find 'weights/expected.json'
	if not expected then skip 'tokenizer: weights/expected.json is not here' end
	local f <close> = assert(io.open(expected))
	local text = f:read 'a':match '"stories260K_greedy_256": "(.-[^\\])"':gsub('\\n', '\n'):gsub('\\"', '"')
	local all = tok:encode(text)
	assert(#text == 565 and all:nelem() == 257 and all:to 'int64':sum():item() == 91932)
	assert(tok:decode(all) == text)
end)
