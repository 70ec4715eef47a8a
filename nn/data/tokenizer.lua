-- SPDX-License-Identifier: MIT
-- data.tokenizer: the byte pair tokenizers of llama2.c (A. Karpathy, run.c: build_tokenizer, encode, decode). The file
-- is the length of the longest piece (int32), then for each piece its score (float32), length (int32) and bytes.
-- Pieces 0, 1 and 2 of the file are <unk>, <s> and </s>, the next 256 are the bytes; in Quoll all numbers are larger
-- by one.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local text = internal.import 'nn/data/dataset_text'
local fail, doc, describe = base.fail, base.doc, base.describe

local BEGIN, END, BYTES = 2, 3, 3 -- <s>, </s>, and the number before that of byte 0
local MOST = 64 << 20             -- bytes of a file

local methods, meta = {}, {__name = 'quoll.tokenizer'}
meta.methods = methods
meta.__index = methods
debug.getregistry()[meta.__name] = meta

local function parse(path, file)
	local function bad(...) fail('data.tokenizer: %s: ' .. select(1, ...), path, select(2, ...)) end
	if #file < 4 then bad('wanted a tokenizer of llama2.c, got %d bytes', #file) end
	local longest, at, vocab, scores = string.unpack('<i4', file), 5, {}, {}
	while at <= #file do
		if #file - at < 7 then bad('the end of piece %d is missing', #vocab + 1) end
		local score, n = string.unpack('<fi4', file, at)
		if n < 0 or n > longest or n > #file - at - 7 then
			bad('piece %d: wanted a length of at most %d, got %d', #vocab + 1, math.min(longest, #file - at - 7), n)
		end
		vocab[#vocab + 1], scores[#scores + 1] = file:sub(at + 8, at + 7 + n), score
		at = at + 8 + n
	end
	if #vocab < BYTES + 256 then bad('wanted 3 marks and 256 bytes first, got %d pieces in all', #vocab) end
	return vocab, scores
end

doc {name = 'data.tokenizer', usage = "data.tokenizer 'tok512.bin'",
	text = [[The tokenizer of a llama2.c model: t:encode(text) and t:decode(ids) (see `tokenizer:encode`), t.vocab,
the list of its pieces, and #t.vocab. Numbers count from 1, so that they fit `embedding`: each is one more than in the
file, <s> is 2. The file is looked for as it is named, then in `data.folders`.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then assert(#data.tokenizer(file).vocab == 512) end]]}

doc {name = 'tokenizer:encode', usage = "t:encode 'Once upon'  t:encode(text, {bos=false, eos=true})",
	text = [[The numbers of a text, int32 (n): characters and, where the vocabulary has no such character, bytes, of
which the pair whose piece has the best score is merged, again and again. A blank is put in front of the text, and <s>
in front of that unless bos=false; eos=true ends it with </s>.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then assert(data.tokenizer(file):encode 'Once upon a time':nelem() == 5) end]],
	options = {{'bos', 'true or false', 'begin with <s> (default true)'},
		{'eos', 'true or false', 'end with </s> (default false)'}}}
local encode_entry = base.docs[#base.docs]

doc {name = 'tokenizer:decode', usage = 't:decode(ids)', text = [[The text of a tensor or list of numbers. <s> and
</s> have no text, and a blank at the beginning of what follows <s> is left out.]],
	example = [[file = data.find 'weights/tok512.bin'
if file then
  t = data.tokenizer(file)
  assert(t:decode(t:encode 'Once upon') == 'Once upon')
end]]}

function meta.__tostring(t) return ('tokenizer: %d pieces'):format(#t.vocab) end

-- A character is at most four bytes; as run.c has it, any byte that is none of 0x80 to 0xbf begins one.
local function characters(t, given)
	local ids, at = {}, 1
	while at <= #given do
		local stop = at
		while stop < #given and stop - at < 3 and given:byte(stop + 1) & 0xc0 == 0x80 do stop = stop + 1 end
		local id = t.number[given:sub(at, stop)]
		if id then
			ids[#ids + 1] = id
		else
			for i = at, stop do ids[#ids + 1] = given:byte(i) + BYTES + 1 end
		end
		at = stop + 1
	end
	return ids
end

-- pair[i] is the number of the piece that ids i and i + 1 make, or false.
local function merge(t, ids)
	local vocab, scores, pair = t.vocab, t.scores, {}
	local function look(i) pair[i] = ids[i + 1] and t.number[vocab[ids[i]] .. vocab[ids[i + 1]]] or false end
	for i = 1, #ids do look(i) end
	while true do
		local best, at = -1e10, nil
		for i = 1, #ids - 1 do
			local id = pair[i]
			if id and scores[id] > best then best, at = scores[id], i end
		end
		if not at then return ids end
		ids[at] = pair[at]
		table.remove(ids, at + 1)
		table.remove(pair, at + 1)
		look(at)
		if at > 1 then look(at - 1) end
	end
end

function methods.encode(t, given, options)
	if getmetatable(t) ~= meta then fail('encode: wanted a tokenizer, as in t:encode(text), got %s', describe(t)) end
	if type(given) ~= 'string' then fail('encode: wanted text, got %s', describe(given)) end
	options = base.options(encode_entry, options)
	local ids = given == '' and {} or characters(t, given)
	if given ~= '' then table.insert(ids, 1, t.number[' ']) end
	merge(t, ids)
	if options.bos ~= false then table.insert(ids, 1, BEGIN) end
	if options.eos then ids[#ids + 1] = END end
	ids.dtype = 'int32'
	return #ids > 0 and tensor(ids) or tensor.zeros {0, dtype = 'int32'}
end

function methods.decode(t, ids)
	if getmetatable(t) ~= meta then fail('decode: wanted a tokenizer, as in t:decode(ids), got %s', describe(t)) end
	local parts, before = {}, nil
	for _, id in ipairs(text.numbers(ids)) do
		local piece = math.type(id) == 'integer' and t.vocab[id]
		if not piece then fail('decode: wanted numbers from 1 to %d, got %s', #t.vocab, describe(id)) end
		local byte = piece:match '^<0x(%x%x)>$'
		if byte then
			piece = string.char(tonumber(byte, 16))
		elseif id == BEGIN or id == END then
			piece = ''
		elseif before == BEGIN and piece:sub(1, 1) == ' ' then
			piece = piece:sub(2)
		end
		parts[#parts + 1], before = piece, id
	end
	return table.concat(parts)
end

return function(path)
	if type(path) ~= 'string' or path == '' then fail('tokenizer: wanted a file name, got %s', describe(path)) end
	local found, why = internal.exists(path) and path or nil, nil
	if not found then found, why = data.find(path) end
	if not found then fail('tokenizer: %s', why) end
	local bytes, message = internal.read_bytes(found, MOST, false)
	if not bytes then fail('data.tokenizer: %s', message) end
	local vocab, scores = parse(found, internal.bytes_text(bytes))
	local number = {}
	for id = #vocab, 1, -1 do number[vocab[id]] = id end
	if not number[' '] then fail('data.tokenizer: %s: wanted a piece of one blank, got none', found) end
	return setmetatable({vocab = vocab, scores = scores, number = number}, meta)
end
