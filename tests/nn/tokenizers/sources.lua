-- SPDX-License-Identifier: MIT
-- labels: quick
-- Descriptions of tokenizers with values of another kind are refused by name.
local folder = os.tmpname()
os.remove(folder)
assert(os.execute('mkdir ' .. folder))
local function write(name, text)
	local f <close> = assert(io.open(folder .. '/' .. name, 'wb'))
	f:write(text)
end

local PARTS = {normalizer = '{"type":"Prepend","prepend":"a"}', pre_tokenizer = '{"type":"BertPreTokenizer"}', decoder = '{"type":"WordPiece"}',
	post_processor = '{"type":"BertProcessing","cls":["a",0],"sep":["b",1]}', added_tokens = '[{"id":0,"content":"a","special":true}]',
	model = '{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":1}}'}
local function load(changed)
	local list = {}
	for key, value in pairs(PARTS) do list[#list + 1] = ('"%s":%s'):format(key, changed[key] or value) end
	write('tokenizer.json', '{' .. table.concat(list, ',') .. '}')
	return data.tokenizer(folder)
end
local function refused(changed, wanted)
	local ok, message = pcall(load, changed)
	assert(not ok and message:find(wanted, 1, true) and message:find '^[^\n]*data%.tokenizer: [^\n]*$' and not message:find '^quoll/', message)
end

it('reads the whole one', function() assert(load {}:encode 'b':nelem() == 3) end)

it('names fields of another kind', function()
	for key in pairs(PARTS) do
		local list = key == 'added_tokens'
		refused({[key] = '3'}, key .. (list and ': wanted a list of objects, got 3' or ': wanted an object, got 3'))
	end
	refused({normalizer = '{"type":"Sequence","normalizers":[3]}'}, 'normalizers: wanted a list of objects, got table')
	refused({normalizer = '{"type":"Prepend"}'}, 'Prepend: prepend: wanted text, got nil')
	refused({normalizer = '{"type":"Prepend","prepend":[1]}'}, 'prepend: wanted text, got table')
	refused({normalizer = '{"type":"Replace","pattern":{"String":"b"}}'}, 'Replace: content: wanted text, got nil')
	refused({pre_tokenizer = '{"type":"Split","pattern":{"Regex":1},"behavior":"Isolated"}'}, 'Regex: wanted text, got 1')
	refused({post_processor = '{"type":"BertProcessing"}'}, 'post_processor: wanted a token, got nil')
	refused({post_processor = '{"type":"BertProcessing","cls":"a","sep":["b",1]}'}, "cls: wanted a list, got 'a'")
	refused({post_processor = '{"type":"BertProcessing","cls":["a",0],"sep":["x",1]}'}, "post_processor: wanted a token, got 'x'")
	refused({post_processor = '{"type":"TemplateProcessing","single":[3]}'}, 'single: wanted a list of objects, got table')
	refused({post_processor = '{"type":"TemplateProcessing","single":[{"SpecialToken":{"type_id":0}}]}'}, 'post_processor: wanted a token, got nil')
	refused({model = '{"type":"Unigram","unk_id":0}'}, 'vocab: wanted a list, got nil')
	refused({model = '{"type":"BPE","vocab":{"a":0},"merges":{"a":1}}'}, 'merges: wanted a list, got table')
end)

it('takes pieces with the names of fields', function()
	assert(#load {model = '{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":1,"type":2,"merges":3}}'}.vocab == 4)
end)

it('refuses numbers with gaps', function()
	os.remove(folder .. '/tokenizer.json')
	write('merges.txt', '')
	write('vocab.json', '{"a":0,"b":1,"c":3,"d":4}')
	local ok, message = pcall(data.tokenizer, folder)
	assert(not ok and message:find('vocab.json: wanted numbers without gaps, got some', 1, true), message)
end)
os.execute('rm -r ' .. folder)
