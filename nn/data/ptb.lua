-- SPDX-License-Identifier: MIT
-- data.ptb: Penn Treebank (Marcus, Santorini, Marcinkiewicz, 1993) by words, as preprocessed by Mikolov (2010).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local text = internal.import 'nn/data/dataset_text'
local fail = base.fail

local URL = 'http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz (LDC: ask for the terms of LDC99T42)'
local PARTS = { -- name, bytes, bytes as text, tokens
	{'train', 5101618, '5,101,618', 929589}, {'valid', 399782, '399,782', 73760}, {'test', 449945, '449,945', 82430}}
local WORDS = 10000

local function wanted(part, bytes)
	local stem = ('ptb/ptb.%s.txt'):format(part)
	return {names = {stem .. '.xz', stem, stem .. '.gz', ('simple-examples/data/ptb.%s.txt'):format(part)},
		bytes = bytes .. ' bytes unpacked', url = URL}
end

local entry = base.doc {name = 'data.ptb', usage = 'data.ptb{}',
	text = [[The Penn Treebank by words, Mikolov's version: d.train (929589 tokens), d.valid (73760) and d.test
(82430), int32 (n) from 1; d.vocab, the list of its 10000 words in the order of their first occurrence, with <unk> and
one <eos> for each end of a line; `text:encode` and `text:decode`. steps= gives `data.loader` its steps.]],
	example = [[if data.find 'ptb/ptb.train.txt.xz' then
  d = data.ptb{}
  assert(#d.vocab == 10000 and d:decode(d.train:narrow(1, 1, 2)) == 'aer banknote')
end]],
	options = {{'steps', 'integer', 'tokens of a row for data.loader (default: its option)'}}}

return function(options)
	options = base.options(entry, options)
	local files, d, words = {}, {}, internal.vocab()
	for i, part in ipairs(PARTS) do files[i] = wanted(part[1], part[3]) end
	local paths = dataset.files('data.ptb', files)
	for i, part in ipairs(PARTS) do
		local bytes = dataset.read('data.ptb', paths[i], part[2])
		local ids = internal.vocab_encode(words, bytes, 'word', part[1] == 'train', internal.vocab_find(words, '<unk>'))
		if ids:nelem() ~= part[4] then
			fail('data.ptb: %s: wanted %d tokens, got %d', paths[i], part[4], ids:nelem())
		end
		d[part[1]] = ids
	end
	d.vocab = internal.vocab_words(words)
	if #d.vocab ~= WORDS then fail('data.ptb: %s: wanted %d different words, got %d', paths[1], WORDS, #d.vocab) end
	d.name, d.level, d.words, d.steps = 'Penn Treebank', 'word', words, options.steps
	return text.new(d)
end
