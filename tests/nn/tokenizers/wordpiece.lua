-- SPDX-License-Identifier: MIT
-- WordPiece: numbers of the library tokenizers for a small tokenizer.json, and of llama.cpp for BERT's vocabulary, where there is data.
local FILE = os.tmpname() .. '.json'
local vocabularies = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/vocabularies.lua')

local function write(text)
	local handle <close> = assert(io.open(FILE, 'wb'))
	handle:write(text)
	return FILE
end

local JSON = [==[
{"added_tokens":[{"id":0,"content":"[PAD]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"[UNK]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"[CLS]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":3,"content":"[SEP]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],"pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":8,"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"un":4,"##aff":5,"##able":6,"cafe":7,"!":8,"日":9,"本":10,"##s":11,",":12}}}]==]

it('numbers and texts of the library tokenizers', function()
	local t = data.tokenizer(write(JSON))
	for _, case in ipairs {
		{'Unaffable, CAFÉ!', '3 2 13 8 9 4', ', cafe!'}, {'日本s\tun unaffables', '3 10 11 2 5 2 4', '日 本 un'},
		{'unx [SEP] un\u{200b}s', '3 2 4 5 12 4', 'uns'}, {'unaffableable', '3 2 4', ''}, {'', '3 4', ''}} do
		local ids = t:encode(case[1])
		assert(table.concat(ids:totable(), ' ') == case[2], case[1] .. ': ' .. table.concat(ids:totable(), ' '))
		assert(t:decode(ids) == case[3], t:decode(ids))
	end
	print(t:encode('un', {bos = false, eos = false}), t:encode('un [SEP]', {special = false}):nelem())  --> int32(1)  5	6
end)

it('BERT of llama.cpp: 46 texts', function()
	local file = vocabularies.gguf 'bert-bge'
	if not file then return skip 'real input: no data folder (QUOLL_DATA, ./data)' end
	local t = data.tokenizer(file)
	assert(#t.vocab == 30522 and vocabularies.check('bert-bge', t) == 46)
	local ids = t:encode 'Hello world'
	assert(table.concat(ids:totable(), ' ') == '102 7593 2089 103' and t:decode(ids) == 'hello world')
end)

it('refuses what it does not know', function()
	for from, want in pairs {['"type":"WordPiece","unk_token"'] = 'wanted BPE, Unigram or WordPiece', ['"unk_token":"[UNK]"'] = 'wanted a piece for unknown words',
		['"type":"BertPreTokenizer"'] = 'pre_tokenizer: wanted one of BertPreTokenizer', ['"un":4'] = 'vocab: wanted a number', ['"type":"BertNormalizer"'] = 'normalizer: wanted one of'} do
		local at, stop = JSON:find(from, 1, true)
		local ok, message = pcall(data.tokenizer, write(JSON:sub(1, at - 1) .. from:gsub('"[^"]*"', '"none"', 1):gsub('"type":"[^"]*"', '"type":"none"')
			:gsub(':4', ':-1'):gsub('"none":"WordPiece","', '"type":"x","'):gsub('^"none":"Bert%a+"', '"type":"x"') .. JSON:sub(stop + 1)))
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
	end
end)
