-- SPDX-License-Identifier: MIT
-- data.tokenizer: tokenizers of language models. What files say about them is in nn/tokenizers; here texts are divided at tokens of their
-- own, and numbers are put around them.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local sources = internal.import 'nn/tokenizers/sources'
local steps = internal.import 'nn/tokenizers/steps'
local text = internal.import 'nn/data/dataset_text'
local fail, doc, describe = base.fail, base.doc, base.describe

local kinds = {}
for _, file in ipairs(internal.registry 'nn/tokenizers') do
	local kind = internal.import(file)
	kinds[kind.name] = kind
end

local methods, meta = {}, {__name = 'quoll.tokenizer'}
meta.methods = methods
meta.__index = methods
debug.getregistry()[meta.__name] = meta

doc {name = 'data.tokenizer', usage = "data.tokenizer 'tok512.bin'  data.tokenizer 'm.gguf'  data.tokenizer 'folder/'",
	text = [[A tokenizer: t:encode(text) and t:decode(ids) (see `tokenizer:encode`), t.vocab, the list of its pieces, and #t.vocab. Numbers count
from 1, so that they fit `embedding`: each is one more than in the file.

Files: those of llama2.c (.bin); .gguf with a vocabulary of the kinds gpt2, llama, t5 and bert; tokenizer.json of Hugging Face with a model
BPE, Unigram or WordPiece; a folder with tokenizer.json, with vocab.json and merges.txt, or with encoder.json and vocab.bpe. The file is
looked for as it is named, then in `data.folders`. Words are divided by PCRE2, normal forms are made by utf8proc; a tokenizer that needs
one of these libraries says so where it is missing.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then assert(#data.tokenizer(file).vocab == 512) end]]}

doc {name = 'tokenizer:encode', usage = "t:encode 'Once upon'  t:encode(text, {bos=false, eos=true, special=false})",
	text = [[The numbers of a text, int32 (n). bos and eos say whether the tokens that begin and end a text are there; by default as the file has
it (llama2.c: bos alone). Where special tokens such as <|im_start|> are written in the text, they become their numbers, unless special=false,
which texts of others should have.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then assert(data.tokenizer(file):encode 'Once upon a time':nelem() == 5) end]],
	options = {{'bos', 'true or false', 'begin with the token for it'}, {'eos', 'true or false', 'end with the token for it'},
		{'special', 'true or false', 'special tokens that are written in the text count as such (default true)'}}}
local encode_entry = base.docs[#base.docs]

doc {name = 'tokenizer:decode', usage = 't:decode(ids)', text = [[The text of a tensor or list of numbers. Special tokens have no text, and a blank
that the tokenizer has put in front is left out.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then
  t = data.tokenizer(file)
  assert(t:decode(t:encode 'Once upon') == 'Once upon')
end]]}

function meta.__tostring(t) return ('tokenizer: %d pieces'):format(#t.vocab) end

---------------------------------------------------------------- tokens of their own

-- The first of the tokens in the text from `at` on, of those that begin there the longest. places: token -> where it was found last.
local function next_token(tokens, given, at, places)
	local first, found
	for token in pairs(tokens) do
		if (places[token] or 0) < at then places[token] = given:find(token, at, true) or math.huge end
		local place = places[token]
		if place < math.huge and (not first or place < first or place == first and #token > #found) then first, found = place, token end
	end
	return first, found
end

-- Appends the numbers of a text: tokens of `lists` as they are, what is between them by the model.
local function encode_parts(t, given, lists, out)
	local tokens, places, at = {}, {}, 1
	for _, list in ipairs(lists) do
		for token, id in pairs(list) do tokens[token] = id end
	end
	local function between(stop)
		local part = steps.normalize(t.normalizers, given:sub(at, stop))
		if part ~= '' then t.model:encode(part, out, true) end
	end
	while true do
		local place, token = next_token(tokens, given, at, places)
		if not place then break end
		between(place - 1)
		out[#out + 1] = tokens[token]
		at = place + #token
	end
	between(#given)
end

local function append(out, ids)
	for _, id in ipairs(ids or {}) do out[#out + 1] = id end
end

function methods.encode(t, given, options)
	if getmetatable(t) ~= meta then fail('encode: wanted a tokenizer, as in t:encode(text), got %s', describe(t)) end
	if type(given) ~= 'string' then fail('encode: wanted text, got %s', describe(given)) end
	options = base.options(encode_entry, options)
	if not t.bytes and not utf8.len(given) then fail 'encode: wanted text in UTF-8, got other bytes' end
	local bos, eos, ids = options.bos, options.eos, {}
	if bos == nil then bos = t.bos end
	if eos == nil then eos = t.eos end
	if bos and not t.before or eos and not t.after then fail('encode: %s: wanted false, as the tokenizer has no such token, got true', bos and not t.before and 'bos' or 'eos') end
	if bos then append(ids, t.before) end
	encode_parts(t, given, {t.own, options.special ~= false and t.named or nil}, ids)
	if eos then append(ids, t.after) end
	ids.dtype = 'int32'
	return #ids > 0 and tensor(ids) or tensor.zeros {0, dtype = 'int32'}
end

function methods.decode(t, ids)
	if getmetatable(t) ~= meta then fail('decode: wanted a tokenizer, as in t:decode(ids), got %s', describe(t)) end
	local parts, run, first = {}, {}, not t.mark -- llama2.c leaves out a blank after its mark of the beginning only
	local function flush(following)
		if #run > 0 then parts[#parts + 1] = t.model:decode(run, first) end
		run, first = {}, following
	end
	for _, id in ipairs(text.numbers(ids)) do
		local piece = math.type(id) == 'integer' and t.vocab[id]
		if not piece then fail('decode: wanted numbers from 1 to %d, got %s', #t.vocab, describe(id)) end
		if t.own[piece] == id then
			flush(false)
			parts[#parts + 1] = piece
		elseif not t.control[id] then
			run[#run + 1] = id
		elseif t.mark then
			flush(true)
		end
	end
	flush()
	return table.concat(parts)
end

---------------------------------------------------------------- files

local FOLDER = {{'tokenizer.json'}, {'vocab.json', 'merges.txt'}, {'encoder.json', 'vocab.bpe'}}

local function read(path)
	if not internal.list_folder(path) then
		if path:find '%.[gG][gG][uU][fF]$' then return sources.gguf(path) end
		if path:find '%.json$' then return sources.tokenizer_json(path) end
		return sources.llama2c(path)
	end
	local folder, names = path:gsub('(.)/+$', '%1') .. '/', {}
	for _, files in ipairs(FOLDER) do
		if internal.exists(folder .. files[1]) and (not files[2] or internal.exists(folder .. files[2])) then
			if not files[2] then return sources.tokenizer_json(folder .. files[1]) end
			return sources.vocab_and_merges(folder .. files[1], folder .. files[2])
		end
		names[#names + 1] = table.concat(files, ' and ')
	end
	fail('data.tokenizer: %s: wanted a folder with %s, there are none', path, table.concat(names, ', or '))
end

return function(path)
	if type(path) ~= 'string' or path == '' then fail('tokenizer: wanted a file name, got %s', describe(path)) end
	local found, why = internal.exists(path) and path or nil, nil
	if not found then found, why = data.find(path) end
	if not found then fail('tokenizer: %s', why) end
	local s = read(found)
	s.normalizers, s.dividers = s.normalizers or {}, s.dividers or {}
	return setmetatable({vocab = s.vocab, scores = s.scores, number = s.number, control = s.control, own = s.own, named = s.named, before = s.before,
		after = s.after, bos = s.bos or false, eos = s.eos or false, mark = s.mark, normalizers = s.normalizers, bytes = s.kind == 'sentencepiece',
		model = kinds[s.kind].new(s)}, meta)
end
