-- SPDX-License-Identifier: MIT
-- What a cell reads and writes, from its text: variables that it mentions; of these, those that it assigns, of whose
-- fields or items it assigns one, or of which it calls a method that may change them. What it changes through another
-- name, or inside of a function that it calls, the text does not tell.
local _, internal = ...

local NESTING = {['('] = 1, ['['] = 1, ['{'] = 1, [')'] = -1, [']'] = -1, ['}'] = -1}

-- Methods that change nothing: those of tensors, unless their name ends in _, and of reports.
local CHANGING = {add = true, update = true, reset = true, merge = true, backward = true, load = true, to = true}
local function is_pure(name)
	if name:find '_$' or CHANGING[name] then return false end
	local registry = debug.getregistry()
	for _, class in ipairs {'quoll.tensor', 'quoll.report', 'quoll.figure'} do
		local methods = registry[class] and (rawget(registry[class], 'methods') or rawget(registry[class], '__index'))
		if type(methods) == 'table' and methods[name] ~= nil then return true end
	end
	return false
end

local function words_of(text)
	local tokens, words = internal.tokens(text), {}
	for i = 1, #tokens, 3 do
		if tokens[i] ~= 'comment' then
			words[#words + 1] = {kind = tokens[i], text = text:sub(tokens[i + 1], tokens[i + 2])}
		end
	end
	return words
end

-- The index behind the bracket that opens at i.
local function behind(words, i)
	local depth = 0
	repeat
		depth = depth + (words[i].kind == 'operator' and NESTING[words[i].text] or 0)
		i = i + 1
	until depth <= 0 or not words[i]
	return i
end

-- Whether the variable at i is assigned, or changed through a field or method.
local function is_written(words, i)
	local before, at = words[i - 1], i + 1
	if before and before.kind == 'keyword' and (before.text == 'local' or before.text == 'function' or before.text == 'for') then
		return true
	end
	while words[at] do
		local text = words[at].text
		if text == '=' or text == ',' and at == i + 1 and not (before and before.text == '(') then return true end
		if text == '.' then
			at = at + 2
		elseif text == '[' then
			at = behind(words, at)
		elseif text == ':' and words[at + 1] then
			return not is_pure(words[at + 1].text)
		elseif text == '<' and words[at + 2] and words[at + 2].text == '>' then
			at = at + 3 -- local x <const> = …
		else
			return false
		end
	end
	return false
end

-- Names read and names written, each list sorted, without the names that every session has.
return function(text)
	local baseline, words = internal.baseline or {}, words_of(text)
	local reads, writes, r, w = {}, {}, {}, {}
	for i, word in ipairs(words) do
		local before = words[i - 1] and words[i - 1].text
		if word.kind == 'name' and before ~= '.' and before ~= ':' and before ~= 'goto' and not baseline[word.text] then
			r[word.text] = true
			w[word.text] = w[word.text] or is_written(words, i)
		end
	end
	for name in pairs(r) do reads[#reads + 1] = name end
	for name, written in pairs(w) do
		if written then writes[#writes + 1] = name end
	end
	table.sort(reads)
	table.sort(writes)
	return reads, writes
end
