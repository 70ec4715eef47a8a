-- SPDX-License-Identifier: MIT
-- Byte pairs of bytes: numbers of the library tokenizers for small vocabularies (tokenizer.json, vocab.json with merges.txt, .gguf), and of
-- llama.cpp for GPT-2's, where there is data.
local FILE = os.tmpname()
local vocabularies = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/vocabularies.lua')

local function write(name, text)
	local handle <close> = assert(io.open(FILE .. name, 'wb'))
	handle:write(text)
	return FILE .. name
end

-- Characters of the bytes, as GPT-2 writes them.
local PIECES, MERGES = {}, {'h e', 'l l', 'he ll', 'hell o', 'Ġ hello', '1 2', 'Ã ©', 'a a', 'aa a', 'a aa'}
local code = 256
for byte = 0, 255 do
	local shown = byte > 32 and byte < 127 or byte > 160 and byte ~= 173
	PIECES[byte + 1] = utf8.char(shown and byte or code)
	code = shown and code or code + 1
end
for _, pair in ipairs(MERGES) do PIECES[#PIECES + 1] = pair:gsub(' ', '') end
PIECES[265] = '(none)' -- 'aaa' has a second number
PIECES[#PIECES + 1] = '<|end|>'

local function quoted(text) return '"' .. text:gsub('["\\]', '\\%0') .. '"' end

local function vocab_json()
	local parts = {}
	for i, piece in ipairs(PIECES) do parts[i] = ('%s:%d'):format(quoted(piece), i - 1) end -- with '(none)', which no text has
	return '{' .. table.concat(parts, ',') .. '}'
end

local function json(divider, normalizer, change)
	local merges = {}
	for i, pair in ipairs(MERGES) do merges[i] = quoted(pair) end
	local text = ('{"added_tokens":[{"id":266,"content":"<|end|>","special":true}],"normalizer":%s,"pre_tokenizer":%s,"model":{"type":"BPE","vocab":%s,"merges":[%s]}}')
		:format(normalizer or 'null', divider, vocab_json(), table.concat(merges, ','))
	return write('.json', change and change(text) or text)
end

local function check(t, cases)
	for _, case in ipairs(cases) do
		local ids = t:encode(case[1])
		assert(table.concat(ids:totable(), ' ') == case[2], case[1] .. ': ' .. table.concat(ids:totable(), ' '))
		assert(t:decode(ids) == case[3], t:decode(ids))
	end
end

local PLAIN = {{'hello hello', '260 261', 'hello hello'}, {'hé 1212 aaaaa', '105 263 33 262 262 33 264 266', 'hé 1212 aaaaa'},
	{"don't é", '101 112 111 40 117 33 263', "don't é"}, {'  hello\n\n x', '33 261 11 11 33 121', '  hello\n\n x'}, {'', '', ''}}

it('the steps of tokenizer.json', function()
	local t = data.tokenizer(json '{"type":"ByteLevel","add_prefix_space":false}')
	check(t, PLAIN)
	check(t, {{'  hello\n\n x<|end|>hello', '33 261 11 11 33 121 267 260', '  hello\n\n xhello'}})
	print(table.concat(t:encode('<|end|>', {special = false}):totable(), ' '))  --> 61 125 102 111 101 125 63
	check(data.tokenizer(json('{"type":"ByteLevel","add_prefix_space":true}', '{"type":"NFC"}')), {{'hello', '261', ' hello'},
		{' hello e\u{301}', '261 33 263', ' hello é'}, {'1 <|end|>hello', '33 50 33 267 261', ' 1  hello'}})
	check(data.tokenizer(json [[{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{N}"},"behavior":"Isolated","invert":false},
		{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]}]]), {{'hello 1212 hello', '260 33 50 51 50 51 261', 'hello 1212 hello'},
		{' a1a', '33 98 50 98', ' a1a'}})
	check(data.tokenizer(json('{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}', nil, function(text)
		return (text:gsub('"type":"BPE"', '"type":"BPE","ignore_merges":true'))
	end)), {{'aaa', '266', 'aaa'}})
end)

it('vocab.json and merges.txt in a folder; .gguf', function()
	local folder = FILE .. '.folder'
	assert(os.execute('mkdir ' .. folder))
	write('.folder/vocab.json', vocab_json())
	write('.folder/merges.txt', '#version: 0.2\n' .. table.concat(MERGES, '\n') .. '\n')
	check(data.tokenizer(folder .. '/'), PLAIN)
	local kinds = {dtype = 'int32'}
	for i = 1, #PIECES do kinds[i] = i == #PIECES and 3 or 1 end
	local m = {['tokenizer.ggml.model'] = 'gpt2', ['tokenizer.ggml.pre'] = 'gpt-2', ['tokenizer.ggml.tokens'] = PIECES, ['tokenizer.ggml.merges'] = MERGES,
		['tokenizer.ggml.token_type'] = tensor(kinds), ['tokenizer.ggml.bos_token_id'] = 266}
	tensor.save(FILE .. '.gguf', {}, {metadata = m})
	local t = data.tokenizer(FILE .. '.gguf')
	check(t, PLAIN)
	print(t:encode('hello', {bos = true}), t:encode 'a<|end|>')  --> int32(2)  267 260 int32(2)   98 267
	t:encode('a', {eos = true})  --> error: encode: eos: wanted false
	m['tokenizer.ggml.pre'] = 'other'
	tensor.save(FILE .. '.gguf', {}, {metadata = m})
	data.tokenizer(FILE .. '.gguf')  --> error: tokenizer.ggml.pre: wanted a known division into words, got 'other'
end)

it('refuses patterns and pairs that are wrong, and costly patterns', function()
	local function refused(want, f)
		local ok, message = pcall(f)
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
	end
	local function split(pattern)
		return json(('{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"%s"},"behavior":"Isolated"},{"type":"ByteLevel"}]}'):format(pattern))
	end
	refused('regular expression: wanted one of PCRE2: missing closing parenthesis', function() data.tokenizer(split '(a') end)
	local t = data.tokenizer(split '(a+)+$')
	refused('regular expression: wanted a match within the limits', function() t:encode(('a'):rep(40) .. 'b') end)
	refused('encode: wanted text in UTF-8', function() t:encode '\xff' end)
	refused('merges: wanted pairs', function()
		data.tokenizer(json('{"type":"ByteLevel"}', nil, function(text) return (text:gsub('"1 2"', '"1 3"')) end))
	end)
	refused('vocab: wanted a piece for each byte, got none for 33', function()
		data.tokenizer(json('{"type":"ByteLevel"}', nil, function(text) return (text:gsub('"!":33', '"!!":33', 1)) end))
	end)
end)

it('long words are merged in n log n', function()
	local t = data.tokenizer(json '{"type":"ByteLevel","add_prefix_space":false}')
	assert(t:encode(('a'):rep(60000)):nelem() == 30000)
end)

it('GPT-2 of llama.cpp: 46 texts', function()
	local file = data.find 'models/tokenizers/encoder.json'
	if not file then return skip 'real input: no data folder (QUOLL_DATA, ./data)' end
	local t = data.tokenizer(file:match '^(.*)/')
	assert(#t.vocab == 50257 and vocabularies.check('gpt-2', t) == 46)
end)
