-- SPDX-License-Identifier: MIT
-- Byte pairs of SentencePiece: numbers of the library tokenizers for a small tokenizer.json, the same by scores in a .gguf file, and of
-- llama.cpp for the vocabulary of Phi-3, where there is data.
local FILE = os.tmpname()
local vocabularies = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/vocabularies.lua')

local PIECES, MERGES, BLANK = {'<unk>', '<s>', '</s>'}, {'_ a', 'a b', '_ ab', '_a b', 'b _'}, '\u{2581}'
for byte = 0, 255 do PIECES[#PIECES + 1] = ('<0x%02X>'):format(byte) end
for _, piece in ipairs {'_', 'a', 'b', '_a', 'ab', '_ab', 'b_'} do PIECES[#PIECES + 1] = piece:gsub('_', BLANK) end

local function json()
	local vocab, merges, marks = {}, {}, {}
	for i, piece in ipairs(PIECES) do vocab[i] = ('"%s":%d'):format(piece, i - 1) end
	for i, pair in ipairs(MERGES) do merges[i] = ('"%s"'):format(pair:gsub('_', BLANK)) end
	for i = 1, 3 do marks[i] = ('{"id":%d,"content":"%s","special":true}'):format(i - 1, PIECES[i]) end
	local handle <close> = assert(io.open(FILE .. '.json', 'wb'))
	handle:write(([[{"added_tokens":[%s],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"%s"},
		{"type":"Replace","pattern":{"String":" "},"content":"%s"}]},"pre_tokenizer":null,"post_processor":{"type":"TemplateProcessing",
		"single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}]},"model":{"type":"BPE","unk_token":"<unk>",
		"byte_fallback":true,"vocab":{%s},"merges":[%s]}}]]):format(table.concat(marks, ','), BLANK, BLANK, table.concat(vocab, ','), table.concat(merges, ',')))
	return FILE .. '.json'
end

local function check(t, cases)
	for _, case in ipairs(cases) do
		local ids = t:encode(case[1])
		assert(table.concat(ids:totable(), ' ') == case[2], case[1] .. ': ' .. table.concat(ids:totable(), ' '))
		assert(t:decode(ids) == case[3], t:decode(ids))
	end
end

it('by a list of pairs', function()
	check(data.tokenizer(json()), {{'ab ab', '2 265 265', 'ab ab'}, {'ab é  b', '2 265 260 199 173 260 260 262', 'ab é  b'}, {'', '2', ''},
		{'b </s>a', '2 260 266 3 263', 'b  a'}})
end)

local function gguf(more)
	local scores, kinds = {dtype = 'float32'}, {dtype = 'int32'}
	for i = 1, #PIECES do
		scores[i] = i > 259 and -(i - 260) or 0
		kinds[i] = i == 1 and 2 or i <= 3 and 3 or i <= 259 and 6 or 1
	end
	local m = {['tokenizer.ggml.model'] = 'llama', ['tokenizer.ggml.tokens'] = PIECES, ['tokenizer.ggml.scores'] = tensor(scores),
		['tokenizer.ggml.token_type'] = tensor(kinds), ['tokenizer.ggml.bos_token_id'] = 1, ['tokenizer.ggml.eos_token_id'] = 2,
		['tokenizer.ggml.unknown_token_id'] = 0}
	for key, value in pairs(more or {}) do m['tokenizer.ggml.' .. key] = value end
	tensor.save(FILE .. '.gguf', {}, {metadata = m})
	return FILE .. '.gguf'
end

it('by scores', function()
	-- the best pair of '_ab ab' is '_a' (263), twice, then '_ab' (265)
	check(data.tokenizer(gguf()), {{'ab ab', '2 265 265', 'ab ab'}, {'é', '2 260 199 173', 'é'}, {'bb', '2 260 262 262', 'bb'}, {'', '2', ''}})
	check(data.tokenizer(gguf {add_space_prefix = false, add_bos_token = false, add_eos_token = true}), {{'ab ab', '264 265 3', 'ab ab'}})
	local t = data.tokenizer(gguf())
	print(t:encode('a</s>'):totable()[3], t:encode('a</s>', {special = false}):nelem())  --> 3 6
	data.tokenizer(gguf {bos_token_id = 500})  --> error: bos_token_id: wanted a token, got 500
end)

it('Phi-3 of llama.cpp: 46 texts', function()
	local file = vocabularies.gguf 'phi-3'
	if not file then return skip 'real input: no data folder (QUOLL_DATA, ./data)' end
	local t = data.tokenizer(file)
	assert(#t.vocab == 32064 and vocabularies.check('phi-3', t) == 46)
	local text = 'Byte pairs  of 日本 \u{1F600}'
	assert(t:decode(t:encode(text)) == text)
end)
