-- SPDX-License-Identifier: MIT
-- Tokenized texts: an object with the int32 tensors train, valid and test, the list vocab, encode and decode.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local loader = internal.import 'nn/data/loader'
local fail, doc, describe, is_tensor = base.fail, base.doc, base.describe, base.is_tensor

local methods, meta = {}, {__name = 'quoll.text'}
meta.methods = methods
meta.__index = methods
debug.getregistry()[meta.__name] = meta
local text = {}

local PARTS = {'train', 'valid', 'test'}

-- fields: name, level ('char' or 'word'), vocab (list), train, valid, test; perhaps words (the vocabulary in C), steps,
-- note, entropy
function text.new(fields)
	fields.words = fields.words or internal.vocab(fields.vocab)
	for _, part in ipairs(PARTS) do
		if fields.steps then loader.set_steps(fields[part], fields.steps) end
	end
	return setmetatable(fields, meta)
end

function meta.__tostring(d)
	local lines = {('%s: %d tokens (%ss), vocabulary %d'):format(d.name, d.train:nelem() + d.valid:nelem() +
		d.test:nelem(), d.level, #d.vocab)}
	for _, part in ipairs(PARTS) do
		lines[#lines + 1] = ('  %-5s  %s'):format(part, internal.describe(d[part]))
	end
	if d.steps then lines[#lines + 1] = ('  steps  %d'):format(d.steps) end
	if d.entropy then lines[#lines + 1] = ('  entropy  %.4f nats a token'):format(d.entropy) end
	if d.note then lines[#lines + 1] = '  ' .. d.note end
	return table.concat(lines, '\n')
end

local function check_self(d, name)
	if getmetatable(d) ~= meta then fail('%s: wanted a text, as in d:%s(…), got %s', name, name, describe(d)) end
end

doc {name = 'text:encode', usage = "d:encode 'some text'", text = [[The ids of the characters or words of a text,
int32 (n). Unknown ones become <unk> if the vocabulary has it; otherwise they are an error.]],
	example = [[d = data.synth{kind='markov', n=100}
print(d:encode 'ab c')  --> int32(4)  2 3 1 4]]}

function methods.encode(d, given)
	check_self(d, 'encode')
	if type(given) ~= 'string' then fail('encode: wanted text, got %s', describe(given)) end
	local ok, ids = pcall(internal.vocab_encode, d.words, given, d.level, false, internal.vocab_find(d.words, '<unk>'))
	if not ok then fail('%s', (tostring(ids):gsub('^[^:]*:%d+: ', ''))) end
	return ids
end

-- Numbers of a tensor (n) or (1, n), one number or a list.
local function numbers(ids)
	if is_tensor(ids) then
		if ids:dim() > 2 or ids:dim() == 2 and ids:size(1) ~= 1 then
			fail('decode: wanted the numbers of one text, got %s', internal.describe(ids))
		end
		return ids:dim() == 0 and {ids:item()} or ids:reshape(ids:nelem()):totable()
	end
	return type(ids) == 'table' and ids or {ids}
end
text.numbers = numbers

doc {name = 'text:decode', usage = 'd:decode(ids)', text = [[The text of a tensor or list of ids: characters,
or words separated by blanks, where <eos> ends a line.]],
	example = [[d = data.synth{kind='markov', n=100}
print(d:decode(d:encode 'a cab'))  --> a cab]]}

function methods.decode(d, ids)
	check_self(d, 'decode')
	local parts, vocab = {}, d.vocab
	for i, id in ipairs(numbers(ids)) do
		local word = math.type(id) == 'integer' and vocab[id]
		if not word then fail('decode: wanted numbers from 1 to %d, got %s', #vocab, describe(id)) end
		if d.level == 'char' then
			parts[i] = word
		else
			parts[#parts + 1] = word == '<eos>' and '\n' or (#parts > 0 and parts[#parts] ~= '\n' and ' ' or '') .. word
		end
	end
	return table.concat(parts)
end

return text
