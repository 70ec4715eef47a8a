-- SPDX-License-Identifier: MIT
-- data.text: any file of text by characters or words; without a file, tiny Shakespeare (Karpathy, char-rnn, 2015).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local text = internal.import 'nn/data/dataset_text'
local fail = base.fail

local SHAKESPEARE = 1115394
local MOST = 1 << 30 -- bytes of a text, unpacked
local TRAIN, VALID = 0.9, 0.05

local entry = base.doc {name = 'data.text', usage = "data.text{file='book.txt', level='char'}",
	text = [[A text by characters (UTF-8) or by words (separated by blanks; <eos> ends each line): d.train, the
first 90 % of its tokens, d.valid, 5 %, and d.test, the rest, int32 (n) from 1; d.vocab, the list of all characters in
order, or of all words by their first occurrence; `text:encode` and `text:decode`. steps= gives `data.loader` its
steps. The file may be packed (.xz, .gz) and is looked for as it is named, then in `data.folders`; by default it is
tiny Shakespeare, text/tinyshakespeare.txt.]],
	example = [[if data.find 'text/tinyshakespeare.txt.xz' then
  d = data.text{level='char', steps=128}
  assert(#d.vocab == 65 and d:decode(d.train:narrow(1, 1, 13)) == 'First Citizen')
end]],
	options = {{'file', 'text', 'the file (default tiny Shakespeare)'}, {'level', 'text', "'char' (default) or 'word'"},
		{'steps', 'integer', 'tokens of a row for data.loader (default: its option)'}}}

local function read_shakespeare()
	local stem = 'text/tinyshakespeare.txt'
	local path = dataset.files('data.text', {{names = {stem .. '.xz', stem, stem .. '.gz'},
		bytes = '1,115,394 bytes unpacked', url = 'https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt'}})[1]
	return dataset.read('data.text', path, SHAKESPEARE)
end

local function read_file(file)
	local path, why = internal.exists(file) and file or nil, nil
	if not path then path, why = data.find(file) end
	if not path then fail('text: file: %s', why) end
	local bytes, message = internal.read_bytes(path, MOST, false)
	if not bytes then fail('data.text: %s', message) end
	return bytes
end

-- Characters are numbered in order, so the vocabulary is sorted before the text is turned into numbers.
local function encode(bytes, level)
	local words = internal.vocab()
	local ids = internal.vocab_encode(words, bytes, level, true)
	if level == 'char' then
		local list = internal.vocab_words(words)
		table.sort(list)
		words = internal.vocab(list)
		ids = internal.vocab_encode(words, bytes, level, false)
	end
	return words, ids
end

return function(options)
	options = base.options(entry, options)
	local level, steps = options.level or 'char', options.steps
	if level ~= 'char' and level ~= 'word' then
		fail("text: level: wanted 'char' or 'word', got %s%s", base.describe(level), base.near(level, {'char', 'word'}))
	end
	if steps and steps < 1 then fail('text: steps: wanted 1 or more, got %d', steps) end
	local bytes = options.file and read_file(options.file) or read_shakespeare()
	local words, ids = encode(bytes, level)
	local n = ids:nelem()
	if n < 3 then fail('text: file: wanted a text of at least 3 tokens, got %d', n) end
	local train, valid = math.max(1, math.floor(TRAIN * n)), math.max(1, math.floor(VALID * n))
	train = math.min(train, n - 2)
	return text.new {name = options.file and options.file:match '[^/]*$' or 'tiny Shakespeare', level = level,
		words = words, vocab = internal.vocab_words(words), steps = steps, train = ids:narrow(1, 1, train),
		valid = ids:narrow(1, train + 1, valid), test = ids:narrow(1, train + valid + 1, n - train - valid)}
end
