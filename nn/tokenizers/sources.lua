-- SPDX-License-Identifier: MIT
-- Descriptions of tokenizers in files: .gguf, tokenizer.json, vocab.json with merges.txt, and those of llama2.c. Each becomes a table:
--   kind, and the fields that nn/tokenizers/<kind>.lua takes; vocab (pieces), number (piece -> id), ids from 1
--   control (id -> true): marks that have no text; own (piece -> id): tokens that are found in texts as they are; named (piece -> id): such
--     that are found with special=true only
--   before, after: ids around a text; bos, eos: whether they are there by default
--   normalizers, dividers (nn/tokenizers/steps.lua)
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local json = internal.import 'interp/prelude/json'
local steps = internal.import 'nn/tokenizers/steps'
local sources = {}

local MOST = 256 << 20 -- bytes of a file
local SPACE = '\u{2581}' -- what SentencePiece writes for a blank

local function fail(...) base.fail('data.tokenizer: ' .. select(1, ...), select(2, ...)) end

function sources.read(path)
	local bytes, message = internal.read_bytes(path, MOST, false)
	if not bytes then fail('%s', message) end
	return internal.bytes_text(bytes)
end

function sources.json(path)
	local ok, value = pcall(json, sources.read(path))
	if not ok then fail('%s: %s', path, value) end
	if type(value) ~= 'table' then fail('%s: wanted an object, got another value', path) end
	return value
end

-- piece -> id, the first of equal ones.
local function numbers(vocab)
	local number = {}
	for id = #vocab, 1, -1 do number[vocab[id]] = id end
	return number
end

-- The list of pieces of an object piece -> number from 0.
local function listed(path, object)
	local vocab, count = {}, 0
	if type(object) ~= 'table' then fail('%s: vocab: wanted an object, got %s', path, base.describe(object)) end
	for piece, id in pairs(object) do
		if type(piece) ~= 'string' or math.type(id) ~= 'integer' or id < 0 or id >= 1 << 24 or vocab[id + 1] then
			fail('%s: vocab: wanted a number of its own below 2^24 for each piece, got %s for %s', path, base.describe(id), base.describe(piece))
		end
		vocab[id + 1], count = piece, count + 1
	end
	return vocab, count
end

---------------------------------------------------------------- GGUF

local WORDS = "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
local SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
-- Patterns by tokenizer.ggml.pre, as in llama.cpp (llama-vocab.cpp).
local PATTERNS = {
	['gpt-2'] = {steps.GPT2},
	default = {'[\\p{P}$+<=>^~|]+', steps.GPT2, '\\p{N}+', '[0-9][0-9][0-9]'},
	['llama-bpe'] = {SHORT .. WORDS:format '\\p{N}{1,3}', whole = true},
	qwen2 = {SHORT .. WORDS:format '\\p{N}'},
	starcoder = {'\\p{N}', steps.GPT2},
}
for name, same in pairs {['phi-2'] = 'gpt-2', mpt = 'gpt-2', olmo = 'gpt-2', jais = 'gpt-2', ['jina-es'] = 'gpt-2', llama3 = 'llama-bpe', ['llama-v3'] = 'llama-bpe',
	['deepseek-r1-qwen'] = 'qwen2', smollm = 'starcoder', refact = 'starcoder', ['command-r'] = 'starcoder', codeshell = 'starcoder'} do
	PATTERNS[name] = PATTERNS[same]
end

local UNKNOWN, CONTROL, USER = 2, 3, 4 -- of tokenizer.ggml.token_type

local function text_list(path, m, key)
	local list = m['tokenizer.ggml.' .. key]
	if type(list) ~= 'table' then fail('%s: tokenizer.ggml.%s: wanted a list of texts, got %s', path, key, list == nil and 'none' or base.describe(list)) end
	return list
end

-- Numbers of a list, as many as pieces.
local function number_list(path, m, key, n)
	local list = m['tokenizer.ggml.' .. key]
	if not base.is_tensor(list) or list:dim() ~= 1 or list:size(1) ~= n then
		fail('%s: tokenizer.ggml.%s: wanted %d numbers, got %s', path, key, n, list == nil and 'none' or base.describe(list))
	end
	return list:totable()
end

local of_gguf = {}

function of_gguf.gpt2(path, m, s)
	local pre = m['tokenizer.ggml.pre'] or 'default'
	local patterns = type(pre) == 'string' and PATTERNS[pre]
	if not patterns then fail('%s: tokenizer.ggml.pre: wanted a known division into words, got %s', path, base.describe(pre)) end
	s.kind, s.merges, s.dividers, s.whole = 'bytebpe', text_list(path, m, 'merges'), {}, patterns.whole
	for i, pattern in ipairs(patterns) do s.dividers[i] = steps.by(pattern) end
end

function of_gguf.llama(path, m, s)
	s.kind, s.scores, s.blank = 'sentencepiece', number_list(path, m, 'scores', #s.vocab), SPACE
	s.prefix = m['tokenizer.ggml.add_space_prefix'] ~= false
	if s.bos == nil then s.bos = true end
end

function of_gguf.t5(path, m, s)
	if m['tokenizer.ggml.precompiled_charsmap'] then
		s.normalizers = {sources.charsmap(path, m['tokenizer.ggml.precompiled_charsmap'])}
	end
	if m['tokenizer.ggml.remove_extra_whitespaces'] then
		s.normalizers = s.normalizers or {}
		table.insert(s.normalizers, function(text) return (text:gsub('^ +', ''):gsub(' +$', ''):gsub('  +', ' ')) end)
	end
	s.kind, s.scores, s.blank, s.prefix = 'unigram', number_list(path, m, 'scores', #s.vocab), SPACE, m['tokenizer.ggml.add_space_prefix'] ~= false
	if s.eos == nil then s.eos = true end
end

function of_gguf.bert(_, m, s)
	s.kind, s.outer = 'wordpiece', SPACE
	s.normalizers, s.dividers = {steps.bert {clean = true, chinese = true, strip = true, lower = true}}, {steps.bert_words()}
	if s.bos == nil then s.bos = true end
	if s.eos == nil then s.eos = true end
	local separator = m['tokenizer.ggml.seperator_token_id'] or m['tokenizer.ggml.separator_token_id']
	if separator then s.after = {separator} end
	if m['tokenizer.ggml.cls_token_id'] then s.before = {m['tokenizer.ggml.cls_token_id']} end
end

-- An id from 0 in a key as a list of one from 1; nil without it.
local function one(path, m, key, n)
	local id = m['tokenizer.ggml.' .. key]
	if id == nil then return nil end
	if math.type(id) ~= 'integer' or id < 0 or id >= n then fail('%s: tokenizer.ggml.%s: wanted a token, got %s', path, key, base.describe(id)) end
	return {id}
end

function sources.gguf(path)
	local _, m = tensor.load(path, {metadata = true})
	local make = type(m['tokenizer.ggml.model']) == 'string' and of_gguf[m['tokenizer.ggml.model']]
	if not make then fail('%s: tokenizer.ggml.model: wanted gpt2, llama, t5 or bert, got %s', path, base.describe(m['tokenizer.ggml.model'])) end
	local vocab = text_list(path, m, 'tokens')
	local n = #vocab
	local s = {vocab = vocab, number = numbers(vocab), control = {}, own = {}, named = {}, bos = m['tokenizer.ggml.add_bos_token'],
		eos = m['tokenizer.ggml.add_eos_token'], before = one(path, m, 'bos_token_id', n), after = one(path, m, 'eos_token_id', n)}
	local kinds = m['tokenizer.ggml.token_type'] and number_list(path, m, 'token_type', n) or {}
	for id, kind in ipairs(kinds) do
		if kind == CONTROL then s.control[id], s.named[vocab[id]] = true, id end
		if kind == UNKNOWN then s.control[id] = true end
		if kind == USER and vocab[id] ~= '' then s.own[vocab[id]] = id end
	end
	local unknown = one(path, m, 'unknown_token_id', n)
	s.unknown = unknown and unknown[1] + 1
	make(path, m, s)
	for _, list in ipairs {'before', 'after'} do
		for i, id in ipairs(s[list] or {}) do
			if math.type(id) ~= 'integer' or id < 0 or id >= n then fail('%s: wanted tokens around a text, got %s', path, base.describe(id)) end
			s[list][i], s.control[id + 1] = id + 1, true
		end
	end
	return s
end

---------------------------------------------------------------- tokenizer.json

-- What fields are wherever they are, but in tables whose keys are pieces.
local FIELDS = {type = 'text', content = 'text', prepend = 'text', replacement = 'text', prepend_scheme = 'text', unk_token = 'text', precompiled_charsmap = 'text',
	continuing_subword_prefix = 'text', String = 'text', Regex = 'text', normalizer = 'object', pre_tokenizer = 'object', post_processor = 'object', decoder = 'object',
	model = 'object', SpecialToken = 'object', normalizers = 'objects', pretokenizers = 'objects', processors = 'objects', decoders = 'objects', single = 'objects',
	added_tokens = 'objects', merges = 'list', cls = 'list', sep = 'list'}
local IS = {}
function IS.text(value) return type(value) == 'string' end
function IS.object(value) return type(value) == 'table' and #value == 0 end
function IS.list(value) return type(value) == 'table' and (#value > 0 or next(value) == nil) end
function IS.objects(value)
	if not IS.list(value) then return false end
	for _, item in ipairs(value) do
		if not IS.object(item) then return false end
	end
	return true
end

local function check_fields(path, object)
	for key, value in pairs(object) do
		local kind = FIELDS[key]
		if kind and not IS[kind](value) then
			fail('%s: %s: wanted %s, got %s', path, key, kind == 'objects' and 'a list of objects' or kind == 'text' and kind or 'a' .. (kind == 'object' and 'n ' or ' ') .. kind,
				base.describe(value))
		end
		if type(value) == 'table' and key ~= 'vocab' and key ~= 'merges' and key ~= 'special_tokens' then check_fields(path, value) end
	end
end

-- SentencePiece's blanks: a step of tokenizer.json in either list.
local function metaspace(s)
	return function(step)
		if (step.replacement or SPACE) ~= SPACE then fail("Metaspace: replacement: wanted '%s', got %s", SPACE, base.describe(step.replacement)) end
		local scheme = step.prepend_scheme or (step.add_prefix_space == false and 'never' or 'always')
		s.blank, s.prefix = SPACE, scheme ~= 'never' and 'missing'
		if step.split == false then return function(fragments) return fragments end end
		return steps.by(SPACE .. '[^' .. SPACE .. ']*')
	end
end

local of_json = {}

local function merges_of(path, m)
	if type(m.merges) ~= 'table' then fail('%s: model: merges: wanted a list, got %s', path, base.describe(m.merges)) end
	return m.merges
end

-- Whether one of the steps is of the type.
local function has(object, kind)
	if type(object) ~= 'table' then return false end
	if object.type == kind then return true end
	for _, item in ipairs(object.pretokenizers or object.decoders or object.normalizers or {}) do
		if type(item) == 'table' and item.type == kind then return true end
	end
	return false
end

function of_json.BPE(path, file, s)
	local m = file.model
	s.merges, s.whole = merges_of(path, m), m.ignore_merges
	if has(file.pre_tokenizer, 'ByteLevel') then
		s.kind = 'bytebpe'
		return
	end
	s.kind, s.blank, s.prefix, s.lead = 'sentencepiece', SPACE, s.prefix or false, s.prefix or has(file.normalizer, 'Prepend')
	if not m.byte_fallback and not s.unknown then fail('%s: model: wanted bytes or an unknown token for other characters, got neither', path) end
end

function of_json.WordPiece(_, file, s)
	s.kind, s.inner, s.most = 'wordpiece', file.model.continuing_subword_prefix or '##', math.tointeger(file.model.max_input_chars_per_word)
	s.close = has(file.decoder, 'WordPiece') and file.decoder.cleanup
end

function of_json.Unigram(path, file, s)
	s.kind, s.scores, s.bytes, s.blank, s.prefix = 'unigram', {}, file.model.byte_fallback, s.blank or ' ', s.prefix or false
	if not IS.list(file.model.vocab) then fail('%s: vocab: wanted a list, got %s', path, base.describe(file.model.vocab)) end
	for id, row in ipairs(file.model.vocab) do
		if type(row) ~= 'table' or type(row[1]) ~= 'string' or type(row[2]) ~= 'number' then fail('%s: vocab: wanted pairs of text and score, got another', path) end
		s.vocab[id], s.scores[id] = row[1], row[2] + 0.0
	end
	local unknown = math.tointeger(file.model.unk_id)
	if not unknown or not s.vocab[unknown + 1] then fail('%s: unk_id: wanted a token, got %s', path, base.describe(file.model.unk_id)) end
	s.unknown = unknown + 1
end

local function token_of(path, s, piece)
	return piece ~= nil and s.number[piece] or fail('%s: post_processor: wanted a token, got %s', path, base.describe(piece))
end

-- Tokens around a text, of the template for one text.
local function template(path, post, s)
	local items = post and (post.type == 'Sequence' and post.processors or {post}) or {}
	for _, item in ipairs(items) do
		if item.type == 'TemplateProcessing' then
			local list = {}
			s.before = list
			for _, part in ipairs(item.single or {}) do
				if part.Sequence then
					list = {}
					s.after = list
				elseif part.SpecialToken then
					list[#list + 1] = token_of(path, s, part.SpecialToken.id)
				end
			end
		elseif item.type == 'BertProcessing' or item.type == 'RobertaProcessing' then
			s.before, s.after = {token_of(path, s, item.cls and item.cls[1])}, {token_of(path, s, item.sep and item.sep[1])}
		elseif item.type ~= 'ByteLevel' then
			fail('%s: post_processor: wanted TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel, got %s', path, base.describe(item.type))
		end
	end
	s.bos, s.eos = s.before ~= nil and #s.before > 0, s.after ~= nil and #s.after > 0
end

local function add_tokens(path, file, s)
	for _, token in ipairs(file.added_tokens or {}) do
		local id = type(token) == 'table' and math.tointeger(token.id)
		if not id or id < 0 or id >= 1 << 24 or type(token.content) ~= 'string' or token.content == '' then
			fail('%s: added_tokens: wanted id and content, got others', path)
		end
		s.vocab[id + 1], s.number[token.content] = token.content, id + 1
		if token.special then s.control[id + 1], s.named[token.content] = true, id + 1 else s.own[token.content] = id + 1 end
	end
end

-- Numbers that no piece has get an empty one without text.
local function fill_gaps(path, s)
	local most, count = 0, 0
	for id in pairs(s.vocab) do most, count = math.max(most, id), count + 1 end
	if most > 2 * count + 65536 then fail('%s: vocab: wanted numbers with few gaps, got %d pieces up to %d', path, count, most - 1) end
	for id = 1, most do
		if not s.vocab[id] then s.vocab[id], s.control[id] = '', true end
	end
end

function sources.tokenizer_json(path)
	local file = sources.json(path)
	check_fields(path, file)
	local model = file.model or fail('%s: model: wanted an object, got nil', path)
	local kind = model.type or model.merges and 'BPE'
	local make = type(kind) == 'string' and of_json[kind]
	if not make then fail('%s: model: wanted BPE, Unigram or WordPiece, got %s', path, base.describe(kind)) end
	local s = {vocab = {}, control = {}, own = {}, named = {}}
	if kind ~= 'Unigram' then s.vocab = listed(path, model.vocab) end
	s.number = {}
	for id, piece in pairs(s.vocab) do s.number[piece] = id end
	s.unknown = model.unk_token and s.number[model.unk_token] or nil
	s.normalizers = steps.normalizers(file.normalizer, {Precompiled = function(n) return sources.charsmap(path, n.precompiled_charsmap) end})
	s.dividers = steps.dividers(file.pre_tokenizer, {Metaspace = metaspace(s)})
	make(path, file, s)
	if kind == 'Unigram' then s.number = numbers(s.vocab) end
	add_tokens(path, file, s)
	fill_gaps(path, s)
	template(path, file.post_processor, s)
	return s
end

---------------------------------------------------------------- vocab and merges

-- The two files of GPT-2, under either name.
function sources.vocab_and_merges(vocab_path, merges_path)
	local vocab, count = listed(vocab_path, sources.json(vocab_path))
	for id = 1, count do
		if not vocab[id] then fail('%s: wanted numbers without gaps, got some', vocab_path) end
	end
	local merges, text = {}, sources.read(merges_path)
	for line in text:gmatch '[^\n]+' do
		line = line:gsub('\r$', '')
		if not line:find '^#version' then merges[#merges + 1] = line end
	end
	local s = {kind = 'bytebpe', vocab = vocab, number = numbers(vocab), control = {}, own = {}, named = {}, merges = merges, dividers = {steps.by(steps.GPT2)}}
	local mark = s.number['<|endoftext|>']
	if mark then s.control[mark], s.named['<|endoftext|>'], s.before, s.after = true, mark, {mark}, {mark} end
	s.bos, s.eos = false, false
	return s
end

---------------------------------------------------------------- llama2.c

-- The length of the longest piece (int32), then for each piece its score (float32), length (int32) and bytes. Pieces 0, 1 and 2 are
-- <unk>, <s> and </s>, the next 256 are the bytes.
function sources.llama2c(path)
	local file, marks = sources.read(path), 3
	local function bad(...) fail('%s: ' .. select(1, ...), path, select(2, ...)) end
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
	if #vocab < marks + 256 then bad('wanted 3 marks and 256 bytes first, got %d pieces in all', #vocab) end
	local s = {kind = 'sentencepiece', vocab = vocab, scores = scores, number = numbers(vocab), control = {true, true, true}, own = {}, named = {},
		before = {2}, after = {3}, bos = true, eos = false, blank = ' ', prefix = true, bytes = true, mark = true}
	if not s.number[' '] then bad 'wanted a piece of one blank, got none' end
	return s
end

---------------------------------------------------------------- replacements of SentencePiece

local BASE64 = {}
for i, c in ipairs {('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'):byte(1, -1)} do BASE64[c] = i - 1 end

local function base64(text)
	local out, word, bits = {}, 0, 0
	for i = 1, #text do
		local value = BASE64[text:byte(i)]
		if value then
			word, bits = (word << 6 | value) & 0xffffff, bits + 6
			if bits >= 8 then
				bits = bits - 8
				out[#out + 1] = string.char(word >> bits & 255)
			end
		end
	end
	return table.concat(out)
end

-- The step of a table of replacements: a double array of 32-bit units (darts-clone), after its length, then texts that end with a zero
-- byte. The longest key that begins at a character is replaced.
function sources.charsmap(path, data)
	if base.is_tensor(data) then data = internal.bytes_text(data:to 'uint8') elseif type(data) == 'string' then data = base64(data) end
	local size = type(data) == 'string' and #data >= 4 and string.unpack('<I4', data) or -1
	if size < 4 or size % 4 ~= 0 or size + 4 > #data then fail('%s: precompiled_charsmap: wanted a table of replacements, got another', path) end
	local texts = data:sub(size + 5)
	local function unit(i) return i * 4 < size and string.unpack('<I4', data, 5 + 4 * i) or 0 end
	local function offset(u) return (u >> 10) << ((u & 1 << 9) >> 6) end
	local function longest(text, at)
		local node, found, length = offset(unit(0)), nil, 0
		for i = at, #text do
			local c = text:byte(i)
			node = node ~ c
			local u = unit(node)
			if u & (1 << 31 | 255) ~= c then break end
			node = node ~ offset(u)
			if u >> 8 & 1 == 1 then found, length = unit(node) & ~(1 << 31), i - at + 1 end
		end
		return found and texts:match('^[^\0]*', found + 1), length
	end
	return function(text)
		local parts, at = {}, 1
		while at <= #text do
			local new, length = longest(text, at)
			if not new then
				length = (utf8.offset(text, 2, at) or #text + 1) - at
				new = text:sub(at, at + length - 1)
			end
			parts[#parts + 1], at = new, at + length
		end
		return table.concat(parts)
	end
end

return sources
