-- SPDX-License-Identifier: MIT
-- Unigram: numbers of the library tokenizers for a small tokenizer.json; the same pieces as a .gguf vocabulary; a table of replacements.
local FILE = os.tmpname()

local function write(name, text)
	local handle <close> = assert(io.open(FILE .. name, 'wb'))
	handle:write(text)
	return FILE .. name
end

local JSON = [==[
{"added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},
"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[],"special_tokens":{"</s>":{"id":"</s>","ids":[1],"tokens":["</s>"]}}},
"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},
"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["</s>",0.0],["▁",-2.5],["a",-3.0],["b",-3.5],["▁a",-3.1],["ab",-5.0],["▁ab",-6.0],["ba",-5.9],["fi",-4.0]],"byte_fallback":false}}]==]

local function check(t, cases)
	for _, case in ipairs(cases) do
		local ids = t:encode(case[1])
		assert(table.concat(ids:totable(), ' ') == case[2], case[1] .. ': ' .. table.concat(ids:totable(), ' '))
		assert(t:decode(ids) == case[3], t:decode(ids))
	end
end

it('numbers and texts of the library tokenizers', function()
	check(data.tokenizer(write('.json', JSON)), {{'ab ba', '8 3 9 2', 'ab ba'}, {'ﬁ aéé b', '3 10 6 1 3 5 2', 'fi a b'}, {' ab', '8 2', 'ab'},
		{'aab  ', '6 7 3 3 2', 'aab  '}})
end)

local PIECES = {'<unk>', '</s>', '\u{2581}', 'a', 'b', '\u{2581}a', 'ab', '\u{2581}ab', 'ba', 'fi'}
local SCORES = {0, 0, -2.5, -3, -3.5, -3.1, -5, -6, -5.9, -4, dtype = 'float32'}

local function gguf(more)
	local m = {['general.architecture'] = 't5', ['tokenizer.ggml.model'] = 't5', ['tokenizer.ggml.tokens'] = PIECES, ['tokenizer.ggml.scores'] = tensor(SCORES),
		['tokenizer.ggml.token_type'] = tensor {2, 3, 1, 1, 1, 1, 1, 1, 1, 1, dtype = 'int32'}, ['tokenizer.ggml.eos_token_id'] = 1,
		['tokenizer.ggml.unknown_token_id'] = 0}
	for key, value in pairs(more or {}) do m['tokenizer.ggml.' .. key] = value end
	tensor.save(FILE .. '.gguf', {}, {metadata = m})
	return FILE .. '.gguf'
end

it('.gguf', function()
	local t = data.tokenizer(gguf())
	check(t, {{'ab ba', '8 3 9 2', 'ab ba'}, {'xyz', '3 1 2', ''}, {'aab  ', '6 7 3 3 2', 'aab  '}})
	check(data.tokenizer(gguf {remove_extra_whitespaces = true}), {{'  aab  ab ', '6 7 8 2', 'aab ab'}})
	check(data.tokenizer(gguf {add_eos_token = false}), {{'ab', '8', 'ab'}})
end)

-- A double array (darts-clone) of the keys 'x' -> 'a' and 'xy' -> 'ba', laid out by hand: the unit of a key's last byte has the bit of a leaf;
-- the value is in the unit at its offset.
local function replacements()
	local units = {}
	for i = 0, 1023 do units[i] = 0 end
	local function unit(offset, label, leaf) return offset << 10 | (leaf and 1 << 8 or 0) | label end
	units[0] = unit(0x100, 0)                        -- children at 0x100 ~ byte
	local x = 0x100 ~ 0x78
	units[x] = unit(x ~ 0x200, 0x78, true)           -- its value at 0x200, its children at 0x200 ~ byte
	units[0x200] = 1 << 31 | 0                       -- 'a'
	local y = 0x200 ~ 0x79
	units[y] = unit(y ~ 0x300, 0x79, true)
	units[0x300] = 1 << 31 | 2                       -- 'ba'
	local parts = {string.pack('<I4', 4096)}
	for i = 0, 1023 do parts[i + 2] = string.pack('<I4', units[i]) end
	return table.concat(parts) .. 'a\0ba\0'
end

it('a table of replacements: the longest key wins', function()
	local bytes = {replacements():byte(1, -1)}
	bytes.dtype = 'uint8'
	check(data.tokenizer(gguf {precompiled_charsmap = tensor(bytes)}), {{'xyxb', '3 9 7 2', 'baab'}, {'y', '3 1 2', ''}})
	local ok, message = pcall(data.tokenizer, gguf {precompiled_charsmap = tensor {255, 255, 0, 0, dtype = 'uint8'}})
	assert(not ok and message:find('precompiled_charsmap: wanted a table', 1, true), message)
end)

it('bad scores', function()
	local ok, message = pcall(data.tokenizer, gguf {scores = tensor {1, 2}})
	assert(not ok and message:find('tokenizer.ggml.scores: wanted 10 numbers', 1, true), message)
end)
