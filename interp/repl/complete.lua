-- SPDX-License-Identifier: MIT
-- complete(text, position) -> {from =, to =, matches = {{text =, kind =, doc =}, …}}: how the input may go on at
-- `position` (bytes before the cursor). The bytes from+1 to `to` are to be replaced by a match. Used by the line editor
-- and by Jupyter.
--
-- The text before the cursor is cut into tokens and read backwards: what precedes a dot or colon, which call a
-- brace or a string belongs to. Nothing of the user runs: tables are read raw, objects are known by their metatables'
-- names, and what a call would return is guessed from the documentation (interp/repl/complete_guess.lua).
local _, internal = ...
local guess = internal.import 'interp/repl/complete_guess'
local sources = internal.import 'interp/repl/complete_sources'

local MOST = 1000 -- matches that are handed out

---------------------------------------------------------------- where the cursor is

-- Tokens before the cursor; `word` is the name that the cursor is after, `inside` the string it is in.
local function look(text)
	local at = {text = text, tokens = internal.nested_tokens(text), word = ''}
	local last = at.tokens[#at.tokens]
	if not last then return at end
	if last[1] == 'comment' and (last[4] or last[3] == #text) then at.comment = true end
	if last[1] == 'string' and last[4] then
		at.inside = last
	elseif (last[1] == 'name' or last[1] == 'keyword') and last[3] == #text then
		at.word = text:sub(last[2], last[3])
	elseif last[1] == 'number' and last[3] == #text then
		at.comment = true -- nothing fits after a digit
	end
	if at.inside or at.word ~= '' then at.tokens[#at.tokens] = nil end
	for _, token in ipairs(at.tokens) do token.text = text:sub(token[2], token[3]) end
	return at
end

local CLOSED = {['('] = ')', ['{'] = '}', ['['] = ']'}
local OPENED = {[')'] = '(', ['}'] = '{', [']'] = '['}

-- The brackets that are open at the end, the innermost first: {token index, text}.
local function enclosing(tokens)
	local open, depth = {}, 0
	for i = #tokens, 1, -1 do
		local text = tokens[i][1] == 'op' and tokens[i].text
		if OPENED[text] then
			depth = depth + 1
		elseif CLOSED[text] then
			if depth == 0 then open[#open + 1] = {i, text} else depth = depth - 1 end
		end
	end
	return open
end

-- `key =` before the cursor: the key.
local function key_before(tokens)
	local n = #tokens
	if n >= 3 and tokens[n].text == '=' and tokens[n - 1][1] == 'name' and (tokens[n - 2].text == '{' or
		tokens[n - 2].text == ',' or tokens[n - 2].text == ';') then
		return tokens[n - 1].text
	end
end

-- The entries of the calls around the cursor, the innermost first.
local function calls_around(tokens)
	local calls = {}
	for _, open in ipairs(enclosing(tokens)) do
		local entry = open[2] ~= '[' and guess.callee(tokens, open[1] - 1)
		if entry then calls[#calls + 1] = {entry = entry} end
	end
	return calls
end

local SEPARATOR = {['{'] = true, [','] = true, [';'] = true}

local role

-- What the table is that belongs to `key =` inside a table of that role.
local function role_of_key(outer, key)
	for _, option in ipairs(outer and outer.options or {}) do
		if option[1] == key then
			if sources.is_spec(option) then return {options = sources.spec_fields} end
			return sources.list_of(key)
		end
	end
end

-- What the k-th open bracket is, when it is a brace: {options = that it takes by name, items = the role of tables in it,
-- specs = the strings in it are specs, from which position on, strings() = what the strings in it may be}; nil: some table.
function role(tokens, open, k)
	local i, bracket, outer = open[k][1], open[k][2], open[k + 1]
	if bracket ~= '{' then return nil end
	local before = i > 1 and tokens[i - 1].text
	local entry = guess.callee(tokens, i - 1)
	if not entry and before and outer and outer[2] == '(' and (outer[1] == i - 1 or before == ',') then
		entry = guess.callee(tokens, outer[1] - 1)
	end
	if entry then return sources.table_of(entry) end
	local within = outer and outer[2] == '{' and role(tokens, open, k + 1)
	if before == '=' and i > 3 and tokens[i - 2][1] == 'name' and SEPARATOR[tokens[i - 3].text] then
		return role_of_key(within, tokens[i - 2].text)
	end
	return within and SEPARATOR[before] and within.items or nil
end

-- The role of the innermost bracket, and where that is.
local function role_here(tokens)
	local open = enclosing(tokens)
	if open[1] then return role(tokens, open, 1), open[1][1] end
end

-- Names of the fields, and the number of other items, after the brace at `first`.
local function given_in(tokens, first)
	local given, depth, items = {}, 0, 0
	for i = first + 1, #tokens do
		local text = tokens[i][1] == 'op' and tokens[i].text
		depth = depth + (CLOSED[text] and 1 or OPENED[text] and -1 or 0)
		if depth == 0 and tokens[i][1] == 'name' and tokens[i + 1] and tokens[i + 1].text == '=' then given[tokens[i].text] = true end
		if depth == 0 and (text == ',' or text == ';') then items = items + 1 end
	end
	return given, items
end

---------------------------------------------------------------- what fits there

local function finish(from, to, found, word)
	local result, seen = {from = from, to = to, matches = {}}, {}
	local folded
	local function take(fold)
		for _, match in ipairs(found) do
			local text = match.text
			local fits = fold and text:sub(1, #word):lower() == folded or text:sub(1, #word) == word
			if fits and not seen[text] and (text:sub(1, 1) ~= '_' or word:sub(1, 1) == '_') and #result.matches < MOST then
				seen[text] = true
				result.matches[#result.matches + 1] = match
			end
		end
	end
	take(false)
	if #result.matches == 0 and word ~= '' then
		folded = word:lower()
		take(true)
	end
	return result
end

local RANK = {option = 1, value = 2, ['local'] = 3, name = 3, keyword = 5}

local function sorted(list)
	table.sort(list, function(a, b)
		local ra, rb = RANK[a.kind] or 4, RANK[b.kind] or 4
		if ra ~= rb then return ra < rb end
		if a.text ~= b.text then return a.text < b.text end
		return a.kind < b.kind
	end)
	return list
end

-- Options that the braces at the cursor do not have yet.
local function add_options(list, tokens)
	local here, first = role_here(tokens)
	if not here or not SEPARATOR[tokens[#tokens].text] then return end
	local given = given_in(tokens, first)
	for _, option in ipairs(here.options or {}) do
		if not given[option[1]] then
			list[#list + 1] = {text = option[1] .. '=', kind = 'option', doc = ('%s, %s'):format(option[2], option[3] or '')}
		end
	end
end

local function value_option(tokens)
	local key, here = key_before(tokens), role_here(tokens)
	for _, option in ipairs(key and here and here.options or {}) do
		if option[1] == key then return option end
	end
	local call = key and calls_around(tokens)[1]
	return call and sources.namesake(call.entry, key) or key and {key, '', ''}
end

-- Values of `key =` outside of quotes: 'relu', true.
local function add_values(list, tokens)
	local option = value_option(tokens)
	if not option then return end
	for _, match in ipairs(sources.values(option)) do
		list[#list + 1] = {text = "'" .. match.text .. "'", kind = 'value', doc = match.doc}
	end
end

local function complete_name(at)
	local list, tokens = {}, at.tokens
	local last = tokens[#tokens]
	if last and last[1] == 'op' and (last.text == '.' or last.text == ':') and #tokens > 1 then
		list = guess.members(tokens, #tokens - 1, last.text == ':')
	elseif last and (last.text == 'goto' or last.text == '::' or last.text == 'function' or last.text == 'local') then
		list = {}
	else
		add_options(list, tokens)
		if at.word == '' then add_values(list, tokens) end
		if at.word ~= '' or #list == 0 then sources.names(list, at.tokens) end
	end
	return finish(#at.text - #at.word, #at.text, sorted(list), at.word)
end

-- What a string at the cursor is for: a list of matches and where they begin in it.
local function inside_string(at, content)
	local tokens = at.tokens
	local option = value_option(tokens)
	if option then
		local values = sources.values(option)
		if #values > 0 then return values, 0 end
		if sources.is_spec(option) then return sources.specs(content) end
	end
	local here, first = role_here(tokens)
	if here and here.strings and SEPARATOR[tokens[#tokens].text] then return here.strings(), 0 end
	if here and here.specs and SEPARATOR[tokens[#tokens].text] then
		local _, items = given_in(tokens, first)
		if items + 1 >= here.specs then return sources.specs(content) end
	end
	if #tokens > 1 and tokens[#tokens].text == '[' then
		local keys = guess.keys(tokens, #tokens - 1)
		if #keys > 0 then return keys, 0 end
	end
	local direct = #tokens > 0 and guess.callee(tokens, #tokens) -- f 'text'
	local calls = calls_around(tokens)
	if direct then table.insert(calls, 1, {entry = direct}) end
	for _, call in ipairs(calls) do
		local list, skip = sources.argument(call.entry, content)
		if list then return list, skip end
	end
	return sources.files(content)
end

local function complete_string(at)
	local begin = at.inside[2]
	local head = at.text:match('^%[=*%[', begin) or at.text:sub(begin, begin)
	local content = at.text:sub(begin + #head)
	if content:find '[\\\n]' then return {from = #at.text, to = #at.text, matches = {}} end
	local list, skip = inside_string(at, content)
	return finish(begin + #head - 1 + skip, #at.text, list, content:sub(skip + 1))
end

---------------------------------------------------------------- inputs that are not Lua

local function complete_magic(text)
	local word = text:match '^%s*%%%%?(%a*)$'
	if not word then return end
	local list = {}
	for _, magic in ipairs(internal.magics()) do
		list[#list + 1] = {text = magic[1], kind = 'magic', doc = magic[3]}
	end
	return finish(#text - #word, #text, sorted(list), word)
end

local WITH_FILE = {run = true, edit = true, save = true, load = true}
local WITH_PATH = {cd = true, ls = true} -- the rest of the line is one name, blanks and all
local WITH_COMMAND = {sh = true, bash = true}

local function complete_command(text)
	local word = text:match "[^%s'\"]*$"
	local list, skip = sources.files(word)
	return finish(#text - #word + skip, #text, list, word:sub(skip + 1))
end

local function complete_path(text, word, folders_only)
	local list, skip = sources.files(word)
	local fitting = {}
	for _, item in ipairs(list) do fitting[#fitting + 1] = (item.kind == 'folder' or not folders_only) and item or nil end
	return finish(#text - #word + skip, #text, fitting, word:sub(skip + 1))
end

-- After a %word that takes no code: a file, a setting, help.
local function complete_argument(text)
	local magic, rest = text:match '^%s*%%%%?(%a+)%s+(.*)$'
	local word = rest and rest:match '%S*$'
	if magic == 'set' then
		return finish(#text - #word, #text, sources.settings(rest:match '^(%S+)%s'), word)
	elseif WITH_COMMAND[magic] then
		return complete_command(text)
	elseif WITH_PATH[magic] then
		return complete_path(text, (rest:gsub('^["\']', '')), magic == 'cd')
	elseif WITH_FILE[magic] and (word == rest or magic == 'run' or magic == 'edit') or magic == 'history' and rest:find '%-f%s+%S*$' then
		local list, skip = sources.files(word)
		if magic == 'run' and word == rest and skip == 0 then
			list[#list + 1] = {text = 'above', kind = 'value', doc = 'all inputs before this one'}
			list[#list + 1] = {text = 'stale', kind = 'value', doc = 'inputs whose variables changed'}
		end
		return finish(#text - #word + skip, #text, sorted(list), word:sub(skip + 1))
	elseif magic == 'save' or magic == 'forget' then
		local list = {}
		sources.names(list, {})
		return finish(#text - #word, #text, sorted(list), word)
	end
end

local function complete_other(text)
	local mark = text:match '^%s*([?!$])'
	if mark == '?' then
		local word = text:match '[%w_.:]*$'
		return finish(#text - #word, #text, sources.titles(), word)
	elseif mark == '!' or mark == '$' then
		return complete_command(text)
	end
end

return function(text, position)
	text = text:sub(1, position)
	local special = complete_magic(text) or complete_argument(text) or complete_other(text)
	if special then return special end
	text = text:gsub('^(%s*)(%%%%?%a+)', function(blanks, magic) return blanks .. (' '):rep(#magic) end)
	local at = look(text)
	if at.comment then return {from = #text, to = #text, matches = {}} end
	return at.inside and complete_string(at) or complete_name(at)
end
