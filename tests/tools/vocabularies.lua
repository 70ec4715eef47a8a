-- SPDX-License-Identifier: MIT
-- The vocabularies of llama.cpp among the data (models/tokenizers) with 46 texts and their numbers each. A tool for texts has replaced the
-- bytes above 127 of these .gguf files that are no UTF-8, so numbers in them are lost: texts of pieces and their kinds are read here, and
-- a file of the same contents is written.
local vocabularies = {}

local function read(name)
	local path = data.find('models/tokenizers/' .. name)
	if not path then return nil end
	local handle = assert(io.open(path, 'rb'))
	local text = handle:read 'a'
	handle:close()
	return text
end

-- The texts of the list after a key. A length above 127 has lost its first byte.
local function texts(file, key)
	local _, at = file:find(key, 1, true)
	local list = {}
	at = at + 4 + 4 + 1
	at = file:find('%z%z%z%z', at) -- the last bytes of their number, which may be of any length
	while file:byte(at) == 0 do at = at + 1 end
	while true do
		local n, size = file:byte(at), 8
		local piece = file:sub(at + size, at + size + n - 1)
		if piece:find '^tokenizer%.ggml%.' then return list end
		list[#list + 1] = piece
		at = at + size + n
	end
end

local function kinds(file, n)
	local _, at = file:find('tokenizer.ggml.token_type', 1, true)
	local list = {}
	for i = 1, n do list[i] = string.unpack('<i4', file, at + 4 + 4 + 8 + 1 + 4 * (i - 1)) end
	return list
end

-- The path of a whole file of the vocabulary 'phi-3' or 'bert-bge'; nil without data.
function vocabularies.gguf(name)
	local file = read('ggml-vocab-' .. name .. '.gguf')
	if not file then return nil end
	local tokens = texts(file, 'tokenizer.ggml.tokens')
	local scores = {dtype = 'float32'}
	for i, token in ipairs(tokens) do -- Llama's, by the bytes that are left; BERT has none
		local blanks = #token > 3 and token:gsub('\u{2581}', '') == ''
		scores[i] = blanks and -1e9 or i > 32000 and -1000.0 or math.min(0, 260 - i) + 0.0
	end
	local types = kinds(file, #tokens)
	types.dtype = 'int32'
	local m = {['general.architecture'] = 'test', ['tokenizer.ggml.tokens'] = tokens, ['tokenizer.ggml.token_type'] = tensor(types)}
	if name == 'bert-bge' then
		m['tokenizer.ggml.model'], m['tokenizer.ggml.unknown_token_id'] = 'bert', 100
		m['tokenizer.ggml.cls_token_id'], m['tokenizer.ggml.seperator_token_id'] = 101, 102
	else
		m['tokenizer.ggml.model'], m['tokenizer.ggml.scores'] = 'llama', tensor(scores)
		m['tokenizer.ggml.bos_token_id'], m['tokenizer.ggml.eos_token_id'], m['tokenizer.ggml.unknown_token_id'] = 1, 32000, 0
	end
	local path = os.tmpname() .. '.gguf'
	tensor.save(path, {}, {metadata = m})
	return path
end

-- The texts and the numbers of each, as the file has them, from 0.
function vocabularies.cases(name)
	local inputs, outputs, list = read('ggml-vocab-' .. name .. '.gguf.inp'), read('ggml-vocab-' .. name .. '.gguf.out'), {}
	local at = 1
	for line in outputs:gmatch '([^\n]*)\n' do
		local first, last = inputs:find('\n__ggml_vocab_test__\n', at, true)
		list[#list + 1] = {inputs:sub(at, (first or #inputs + 1) - 1), (line:gsub('^ ', ''))}
		at = (last or #inputs) + 1
	end
	return list
end

-- Compares all; gives their number.
function vocabularies.check(name, t)
	local cases = vocabularies.cases(name)
	for i, case in ipairs(cases) do
		local ids = t:encode(case[1], {bos = false, eos = false, special = false}):totable()
		for k, id in ipairs(ids) do ids[k] = id - 1 end
		assert(table.concat(ids, ' ') == case[2], ('%d: %q: %s, wanted %s'):format(i, case[1], table.concat(ids, ' '), case[2]))
	end
	return #cases
end

return vocabularies
