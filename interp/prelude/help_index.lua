-- SPDX-License-Identifier: MIT
-- Everything that has documentation, as one list of entries, and how a name finds its entry. Sources: C (help.c), the
-- doc calls of the prelude's files, the concepts. An entry is as given to base.doc, with
--   title     how it is written: 'x:relu', 'tensor.zeros', 'bench.time', 'report:sort', 'int8', 'spec'
--   bare      the last part of it: 'relu'
--   aliases   other titles of the same thing: 'tensor.relu', 'x:relu_'
local _, internal = ...
local base = internal.import 'base'

local MODULES = {'tensor', 'quant', 'nn', 'optim', 'data', 'graph', 'hw', 'gpu', 'bench', 'plot', 'sweep', 'jupyter'}
local FUNCTIONS = {'report', 'help', 'source', 'who'} -- files of the prelude that return a global function

local index = {list = {}, by_title = {}, by_bare = {}}

---------------------------------------------------------------- collecting

-- Two entries may share a title when they are of different kinds: the op, and the kernels of the same name.
local function add(entry, title, aliases)
	local known = index.by_title[title]
	if known and known.kind == entry.kind then return end
	entry.title, entry.aliases = title, aliases or {}
	entry.bare = title:match '[^.:]+$'
	index.list[#index.list + 1] = entry
	index.by_title[title] = known or entry
	for _, alias in ipairs(entry.aliases) do index.by_title[alias] = index.by_title[alias] or entry end
	index.by_bare[entry.bare] = index.by_bare[entry.bare] or {}
	table.insert(index.by_bare[entry.bare], entry)
end

local function is_module(name) return type(_G[name]) == 'table' end

-- Where an entry of C belongs: its module is a global table, "x" for tensors, or the name of another object.
local function place(entry)
	local module, name = entry.module, entry.name
	if not module or module == '' then return name end
	if module == name then
		entry.kind = 'module'
		return name
	end
	if module ~= 'x' and is_module(module) then return module .. '.' .. name end
	entry.kind = 'method'
	return module .. ':' .. name
end

local function add_from_c(entry)
	local aliases = {}
	if entry.both then aliases[1] = 'tensor.' .. entry.name end
	if entry.inplace then aliases[#aliases + 1] = 'x:' .. entry.name .. '_' end
	add(entry, place(entry), aliases)
end

-- Files of the prelude register what they document when they run.
local function load_all()
	for _, name in ipairs(MODULES) do
		if is_module(name) then pairs(_G[name]) end -- runs the file behind a module that is not loaded yet
	end
	for _, name in ipairs(FUNCTIONS) do
		if internal.source('=prelude/' .. name .. '.lua') then internal.import(name) end
	end
	internal.import 'concepts'
	internal.import 'concepts_prompt'
end

---------------------------------------------------------------- functions and their names

-- Calls each(title, value) for what the modules and the objects hold.
function index.each_member(each)
	for _, name in ipairs(MODULES) do
		local module = _G[name]
		if type(module) == 'table' then
			for field, value in pairs(module) do each(name .. '.' .. field, value) end
		end
	end
	for _, name in ipairs(FUNCTIONS) do
		if _G[name] ~= nil then each(name, _G[name]) end
	end
	for name, meta in pairs(debug.getregistry()) do
		local object = type(name) == 'string' and type(meta) == 'table' and name:match '^quoll%.(%l+)$'
		local methods = object and (rawget(meta, 'methods') or rawget(meta, '__index'))
		if type(methods) == 'table' then
			for field, value in next, methods do
				if type(field) == 'string' and not field:find '^__' then
					each((object == 'tensor' and 'x' or object) .. ':' .. field, value)
				end
			end
		end
	end
end

-- The title under which a function is reached, or nil.
function index.title_of(value)
	local found
	index.each_member(function(title, member)
		if rawequal(member, value) and (not found or index.by_title[title]) then found = title end
	end)
	return found
end

---------------------------------------------------------------- finding

-- What is before the colon is some variable; its first letter tells which object comes first.
local OBJECTS = {'x', 'report', 'spec', 'observer', 'figure'}
local function variants(text)
	local name = text:gsub('%s', ''):gsub('[({].*$', '')
	local list, variable, method = {name}, name:match '^([%a_]+):([%w_]+)$'
	for _, object in ipairs(method and OBJECTS or {}) do
		local title = object .. ':' .. method
		table.insert(list, variable:sub(1, 1) == object:sub(1, 1) and 2 or #list + 1, title)
	end
	return list
end

-- Where an entry stands among those of the same name.
local RANK = {concept = 1, module = 1, ['function'] = 4, method = 3}
local function rank(entry)
	if entry.title:sub(1, 2) == 'x:' then return 2 end
	return entry.title == entry.bare and entry.kind == 'function' and 1 or RANK[entry.kind] or 5
end

-- Entries that a name may mean, the likeliest first; an empty list when there is none.
function index.find(text)
	local found = {}
	if text:find '[.:]' then
		for _, title in ipairs(variants(text)) do
			if index.by_title[title] then return {index.by_title[title]} end
		end
	end
	text = text:gsub('%(.*$', '')
	for _, entry in ipairs(index.by_bare[text] or {}) do found[#found + 1] = entry end
	table.sort(found, function(a, b)
		local ra, rb = rank(a), rank(b)
		if ra ~= rb then return ra < rb end
		return a.title < b.title
	end)
	if #found == 0 and text:find '._$' then return index.find(text:sub(1, -2)) end
	return found
end

-- Entries whose title fits a pattern with `*`, in alphabetical order; case counts when the pattern has a capital letter.
function index.glob(pattern)
	local exact = pattern:find '%u'
	local lua = '^' .. pattern:gsub('[%-%.%+%[%]%(%)%$%^%%%?]', '%%%0'):gsub('%*', '.*') .. '$'
	local found = {}
	for _, entry in ipairs(index.list) do
		if (exact and entry.title or entry.title:lower()):find(lua) then found[#found + 1] = entry end
	end
	table.sort(found, function(a, b) return a.title < b.title end)
	return found
end

-- Entries whose name, usage or text holds the word, those with it in the name first.
function index.search(word)
	local named, told = {}, {}
	word = word:lower()
	for _, entry in ipairs(index.list) do
		if entry.title:lower():find(word, 1, true) then
			named[#named + 1] = entry
		elseif ((entry.usage or '') .. ' ' .. (entry.text or '')):lower():find(word, 1, true) then
			told[#told + 1] = entry
		end
	end
	local function by_title(a, b) return a.title < b.title end
	table.sort(named, by_title)
	table.sort(told, by_title)
	return table.move(told, 1, #told, #named + 1, named)
end

---------------------------------------------------------------- see also

-- Names that are also words of English: a mention counts only when it is written as code.
local WORDS = {}
for word in ([[keys state empty all any abs add and are at both bits block both check codes column copy data device dim division dot error
exp expand fill flat flip full item linear list load log max mean median memory min mode mul mod neg norm not or order pad
pow range round rows sample save scatter seed select sign sin size sort source split square stack std sub sum tensor text
tile time to type unit value values var view where zeros file line hist bar box heat step stride]]):gmatch '%S+' do
	WORDS[word] = true
end

-- Entries that a text mentions, in order.
local function mentions(text)
	local found, seen = {}, {}
	local function take(entry)
		if entry and not seen[entry] then
			seen[entry] = true
			found[#found + 1] = entry
		end
	end
	for token in text:gmatch '[%a_][%w_]*[.:]?[%w_]*' do
		token = token:gsub('[.:]$', '')
		if token:find '[.:]' then
			take(index.find(token)[1])
		elseif #token > 3 and not WORDS[token] then
			take(index.find(token)[1])
		end
	end
	return found
end

local cited -- entry -> list of the entries that mention it

local function citations()
	if cited then return cited end
	cited = {}
	for _, entry in ipairs(index.list) do
		for _, other in ipairs(mentions(entry.text or '')) do
			cited[other] = cited[other] or {}
			table.insert(cited[other], entry)
		end
	end
	return cited
end

-- Titles of up to eight related entries: those it mentions, then those that mention it.
function index.related(entry)
	local titles, seen = {}, {[entry] = true}
	local function take(list)
		for _, other in ipairs(list or {}) do
			if not seen[other] and #titles < 8 then
				seen[other] = true
				titles[#titles + 1] = other.title
			end
		end
	end
	take(mentions(entry.text or ''))
	take(citations()[entry])
	return titles
end

load_all()
for _, entry in ipairs(internal.docs()) do add_from_c(entry) end
for _, entry in ipairs(base.docs) do add(entry, entry.name) end

return index
