-- SPDX-License-Identifier: MIT
-- data.synth: synthetic data (nn/synth_images.c, nn/synth_markov.c), for use without files.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local dataset = internal.import 'nn/base/dataset'
local text = internal.import 'nn/data/dataset_text'
local fail = base.fail

local KINDS = {'digits', 'shapes', 'markov'}
local CLASSES = {digits = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'},
	shapes = {'disc', 'ring', 'square', 'frame', 'triangle', 'plus', 'cross', 'lying', 'standing', 'board'}}
local SPLITS = {train = 0, validation = 1, test = 2, all = 0}
local STATES = 27 -- a blank and the letters

local entry = base.doc {name = 'data.synth', usage = "data.synth{kind='digits', n=1000, seed=1}",
	text = [[Data that needs no file; the same n, seed and split give the same bits everywhere, whatever tensor.seed
says.

digits: a `dataset` of the digits 0 to 9 (1, 28, 28), a bitmap font turned, stretched, shifted, with noise. shapes:
disc, ring, square, frame, triangle, plus, cross, lying and standing bars, board, in random colours (3, 32, 32).
Classes are equally likely; split='validation' and 'test' give others than 'train', from the same distribution.

markov: a text of n characters, a blank and the letters, each drawn by the one before it, with d.train (90 %),
d.valid, d.test (5 % each), d.vocab, encode and decode as `data.text` has. d.entropy is its entropy rate in nats a
token, the loss that no model falls below on average; d.matrix holds the probabilities of the next token.]],
	example = [[d = data.synth{kind='markov', n=1000, seed=7}
print(#d.vocab, d.train:nelem(), d.entropy < math.log(27))  --> 27 900 true]],
	options = {{'kind', 'text', "'digits' (default), 'shapes' or 'markov'"},
		{'n', 'integer', 'images (default 1000) or tokens (default 100000)'},
		{'seed', 'integer', 'which of the data sets (default 1)'},
		{'split', 'text', "images: 'train' (default), 'validation', 'test'"},
		{'steps', 'integer', 'markov: tokens of a row for data.loader'}}}

local function markov(n, seed, steps)
	if n < 20 then fail('synth: n: wanted at least 20 tokens, got %d', n) end
	local tokens, matrix, entropy = internal.synth_markov(n, seed, seed + 1)
	local vocab = {' '}
	for i = 2, STATES do vocab[i] = string.char(95 + i) end
	local train, valid = n * 9 // 10, n // 20
	return text.new {name = 'synth markov', level = 'char', vocab = vocab, steps = steps, entropy = entropy,
		matrix = matrix, train = tokens:narrow(1, 1, train), valid = tokens:narrow(1, train + 1, valid),
		test = tokens:narrow(1, train + valid + 1, n - train - valid)}
end

return function(options)
	options = base.options(entry, options)
	local kind, seed = options.kind or 'digits', math.tointeger(options.seed or 1)
	if kind == 'markov' then
		if options.split then fail "synth: split: a text has d.train, d.valid and d.test, not split=" end
		return markov(math.tointeger(options.n or 100000), seed, options.steps)
	elseif not CLASSES[kind] then
		fail('synth: kind: wanted digits, shapes or markov, got %s%s', base.describe(kind), base.near(kind, KINDS))
	elseif options.steps then
		fail("synth: steps: wanted kind='markov', got %s", kind)
	end
	local split = dataset.check_split('synth', options.split)
	local n = math.tointeger(options.n or 1000)
	if n < 1 then fail('synth: n: wanted 1 or more, got %d', n) end
	local x, y = internal.synth_images(kind, n, seed * 4 + SPLITS[split])
	return dataset.new {name = ('synth %s %s'):format(kind, split), x = dataset.pixels(x), y = y, classes = CLASSES[kind]}
end
