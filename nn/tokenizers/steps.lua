-- SPDX-License-Identifier: MIT
-- What happens to a text before its pieces are looked up: steps that change it (normalizers), and steps that divide it. Those of
-- tokenizer.json by their names there.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local steps = {}

-- f(text) is called for each match; what it gives takes the place of the match.
local function replace(re, text, f)
	local at, parts, last = internal.regex_split(re, text), {}, 0
	for i = 1, #at, 2 do
		parts[#parts + 1] = text:sub(last + 1, at[i] - 1)
		parts[#parts + 1] = f(text:sub(at[i], at[i + 1]))
		last = at[i + 1]
	end
	parts[#parts + 1] = text:sub(last + 1)
	return table.concat(parts)
end

-- A pattern that is compiled when it is first needed.
local function lazy(pattern)
	local re
	return function()
		re = re or internal.regex(pattern)
		return re
	end
end

-- Divides every fragment: matches and what is between them. keep(text, is_match) says which remain.
function steps.divide(re, fragments, keep)
	local out = {}
	local function add(text, is_match)
		if text ~= '' and (not keep or keep(is_match)) then out[#out + 1] = text end
	end
	for _, text in ipairs(fragments) do
		local at, last = internal.regex_split(re, text), 0
		for i = 1, #at, 2 do
			add(text:sub(last + 1, at[i] - 1), false)
			add(text:sub(at[i], at[i + 1]), true)
			last = at[i + 1]
		end
		add(text:sub(last + 1), false)
	end
	return out
end

---------------------------------------------------------------- changing

local CONTROL, SPACE = lazy '[\\p{Cc}\\p{Cf}\\p{Co}]|\\x{FFFD}', lazy '\\s'
local CHINESE = lazy('[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{20000}-\\x{2A6DF}\\x{2A700}-\\x{2B73F}\\x{2B740}-\\x{2B81F}\\x{2B820}-\\x{2CEAF}'
	.. '\\x{F900}-\\x{FAFF}\\x{2F800}-\\x{2FA1F}]')

local function blank() return ' ' end
local function nothing() return '' end

-- BERT's: no control characters, blanks around Chinese characters, no accents, lower case.
function steps.bert(o)
	return function(text)
		if o.clean then text = replace(CONTROL(), replace(SPACE(), text, blank), nothing) end
		if o.chinese then text = replace(CHINESE(), text, function(c) return ' ' .. c .. ' ' end) end
		if o.strip then text = internal.unicode(internal.unicode(text, 'nfd'), 'unmarked') end
		return o.lower and internal.unicode(text, 'lower') or text
	end
end

-- The plain text or regular expression of a field.
local function pattern_of(what, p)
	if type(p) == 'table' and type(p.Regex) == 'string' then return internal.regex(p.Regex) end
	if type(p) == 'table' and type(p.String) == 'string' then return internal.regex((p.String:gsub('[^%w\x80-\xff]', '\\%0'))) end
	base.fail('data.tokenizer: %s: pattern: wanted String or Regex, got %s', what, base.describe(p))
end

local function text_of(what, object, field)
	if type(object[field]) ~= 'string' then base.fail('data.tokenizer: %s: %s: wanted text, got %s', what, field, base.describe(object[field])) end
	return object[field]
end

local function form(name) return function() return function(text) return internal.unicode(text, name) end end end

local normalizers = {
	NFC = form 'nfc', NFD = form 'nfd', NFKC = form 'nfkc', NFKD = form 'nfkd', Lowercase = form 'lower', StripAccents = form 'unmarked',
	Prepend = function(n)
		local prefix = text_of('Prepend', n, 'prepend')
		return function(text) return text == '' and '' or prefix .. text end
	end,
	Replace = function(n)
		local re, content = pattern_of('Replace', n.pattern), text_of('Replace', n, 'content')
		return function(text) return replace(re, text, function() return content end) end
	end,
	Strip = function(n)
		local left, right = lazy '^\\s+', lazy '\\s+\\z'
		return function(text)
			if n.strip_left then text = replace(left(), text, nothing) end
			return n.strip_right and replace(right(), text, nothing) or text
		end
	end,
	BertNormalizer = function(n)
		local strip = n.strip_accents
		if strip == nil then strip = n.lowercase end
		return steps.bert {clean = n.clean_text, chinese = n.handle_chinese_chars, strip = strip, lower = n.lowercase}
	end,
}

---------------------------------------------------------------- dividing

local PUNCTUATION = '\\p{P}$+<=>^`|~'
steps.GPT2 = "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

local function only(wanted) return function(is_match) return is_match == wanted end end

-- A step that divides by a pattern.
function steps.by(pattern, keep)
	local re = lazy(pattern)
	return function(fragments) return steps.divide(re(), fragments, keep) end
end

-- Words between blanks; punctuation alone.
function steps.bert_words() return steps.by(('[%s]|[^\\s%s]+'):format(PUNCTUATION, PUNCTUATION), only(true)) end

local dividers = {
	BertPreTokenizer = steps.bert_words,
	Whitespace = function() return steps.by('\\w+|[^\\w\\s]+', only(true)) end,
	WhitespaceSplit = function() return steps.by('\\S+', only(true)) end,
	Punctuation = function(p)
		if p.behavior and p.behavior ~= 'Isolated' then base.fail("data.tokenizer: Punctuation: behavior: wanted 'Isolated', got %s", base.describe(p.behavior)) end
		return steps.by(('[%s]'):format(PUNCTUATION))
	end,
	Digits = function(p) return steps.by(p.individual_digits and '\\p{N}' or '\\p{N}+') end,
	ByteLevel = function(p)
		local re = p.use_regex ~= false and lazy(steps.GPT2)
		return function(fragments)
			for i, text in ipairs(p.add_prefix_space and fragments or {}) do
				if not text:find '^ ' then fragments[i] = ' ' .. text end
			end
			return re and steps.divide(re(), fragments) or fragments
		end
	end,
	Split = function(p)
		local re, removed = pattern_of('Split', p.pattern), p.behavior == 'Removed'
		if p.behavior ~= 'Isolated' and not removed then
			base.fail("data.tokenizer: Split: behavior: wanted 'Isolated' or 'Removed', got %s", base.describe(p.behavior))
		end
		return function(fragments) return steps.divide(re, fragments, removed and only(p.invert or false)) end
	end,
}

---------------------------------------------------------------- lists of tokenizer.json

-- The steps of an object of tokenizer.json, one after the other; Sequence is a list of them, which may not be nested.
local function list_of(what, object, known, key)
	if object == nil then return {} end
	local items, made = {object}, {}
	if object.type == 'Sequence' then items = object[key] or {} end
	for _, item in ipairs(items) do
		local make = type(item) == 'table' and type(item.type) == 'string' and known[item.type]
		if not make then
			local names = {}
			for name in pairs(known) do names[#names + 1] = name end
			table.sort(names)
			base.fail('data.tokenizer: %s: wanted one of %s, got %s', what, table.concat(names, ' '),
				type(item) == 'table' and base.describe(item.type) or base.describe(item))
		end
		made[#made + 1] = make(item)
	end
	return made
end

-- more: other normalizers by their names.
function steps.normalizers(object, more)
	return list_of('normalizer', object, setmetatable(more, {__index = normalizers, __pairs = function() return pairs(normalizers) end}), 'normalizers')
end

function steps.dividers(object, more)
	return list_of('pre_tokenizer', object, setmetatable(more, {__index = dividers, __pairs = function() return pairs(dividers) end}), 'pretokenizers')
end

function steps.normalize(list, text)
	for _, step in ipairs(list) do text = step(text) end
	return text
end

function steps.fragments(list, text)
	local fragments = text == '' and {} or {text}
	for _, step in ipairs(list) do fragments = step(fragments) end
	return fragments
end

return steps
