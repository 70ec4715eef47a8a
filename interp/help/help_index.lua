-- SPDX-License-Identifier: MIT
-- Everything that has documentation, as one list of entries, and how a name finds its entry. Sources: C (interp/bind/help.c), the
-- doc calls of the prelude's files, the concepts. An entry is as given to base.doc, with
--   title     how it is written: 'x:relu', 'tensor.zeros', 'bench.time', 'report:sort', 'int8', 'spec'
--   bare      the last part of it: 'relu'
--   aliases   other titles of the same thing: 'tensor.relu', 'x:relu_'
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local titles = internal.import 'interp/prelude/titles'
local MODULES, FUNCTIONS = titles.MODULES, titles.FUNCTIONS

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
		local file = internal.global_file(name)
		if file then internal.import(file) end
	end
	internal.import 'interp/help/concepts'
	internal.import 'interp/help/concepts_methods'
	internal.import 'interp/help/concepts_prompt'
end

---------------------------------------------------------------- functions and their names

-- The title under which a function is reached, one with documentation if there is one, or nil.
function index.title_of(value) return titles.title_of(value, index.by_title) end

---------------------------------------------------------------- finding

-- The name before the colon is a variable. These are the names of objects in the texts; for any other name the objects with the
-- same first letter come first, then tensors.
local VARIABLES = {m = 'module', o = 'optimizer', g = 'graph', r = 'report', d = 'text', t = 'tokenizer', s = 'spec', ds = 'dataset', train = 'dataset',
	test = 'dataset', q = 'x', y = 'x', w = 'x', loss = 'x', net = 'module', model = 'module', opt = 'optimizer', fig = 'figure'}

local function place_of(object, variable)
	if object == variable or object == VARIABLES[variable] then return 1 end
	if not VARIABLES[variable] and object:sub(1, 1) == variable:sub(1, 1) then return 2 end
	return object == 'x' and 3 or 4
end

-- The titles that 'o:step' may mean, the likeliest first.
local function variants(text)
	local name = text:gsub('%s', ''):gsub('[({].*$', '')
	local list, variable, method = {}, name:match '^([%a_][%w_]*):([%w_]+)$'
	for title in next, method and index.by_title or {} do
		local object, own = title:match '^(%l+):(.*)$'
		if own == method then list[#list + 1] = {title = title, at = place_of(object, variable)} end
	end
	table.sort(list, function(a, b)
		if a.at ~= b.at then return a.at < b.at end
		return a.title < b.title
	end)
	for i, item in ipairs(list) do list[i] = item.title end
	table.insert(list, 1, name)
	return list
end

-- 'module:fit' for 'm:fti': the nearest method of the variable's kind of object, or of any; nil: none is near.
function index.near_method(text)
	local variable, method = text:gsub('[({].*$', ''):match '^([%a_][%w_]*):([%w_]+)$'
	for at = 1, method and 4 or 0 do
		local names, title_of = {}, {}
		for title in next, index.by_title do
			local object, own = title:match '^(%l+):([%w_]+)$'
			if own and place_of(object, variable) == at then names[#names + 1], title_of[own] = own, title end
		end
		local near = base.near(method, names):match "'(.*)'"
		if near then return title_of[near] end
	end
end

-- Where an entry is among those of the same name.
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
		if (a.title == text) ~= (b.title == text) then return a.title == text end -- mxfp4 before gguf.mxfp4
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

local MOST = 6        -- related entries that are named
local LIKE = 0.14     -- least likeness of two texts; 1: the same words

-- Concepts and functions whose names are also words of English: a mention counts only when it is written as code, or after "see".
local WORDS = {}
for word in ([[keys state files memory errors options views display figure prompt stale journal function error notebook
random settings help source who]]):gmatch '%S+' do
	WORDS[word] = true
end

-- Is the name at first..last of the text written as code, `name`, or after "see"? (name(…) is part of a formula mostly.)
local function as_code(text, first, last)
	local before, behind = text:sub(math.max(1, first - 5), first - 1), text:sub(last + 1, last + 1)
	return before:sub(-1) == '`' and behind == '`' or before:find '[Ss]ee $' ~= nil
end

-- Entries that a text mentions, in order: names with a dot or colon, names written as code, and concepts.
local function mentions(text)
	local found, seen = {}, {}
	local function take(entry)
		if entry and not seen[entry] then
			seen[entry] = true
			found[#found + 1] = entry
		end
	end
	for first, token, last in text:gmatch '()([%a_][%w_]*[.:]?[%w_]*)()' do
		token = token:gsub('[.:]$', '')
		local entry = index.find(token)[1]
		if token:find '[.:]' or as_code(text, first, last - 1) then
			take(entry)
		elseif entry and (entry.kind == 'concept' or entry.kind == 'function' and entry.title == entry.bare) and not WORDS[token] then
			take(entry)
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

-- How often each word is in name, text and options; the name's count more.
local function words_of(entry)
	local counts = {}
	for _, option in ipairs(entry.options or {}) do counts['=' .. option[1]] = 1 end
	for word in ((entry.text or '') .. ' ' .. (entry.usage or '') .. (' ' .. entry.bare):rep(3)):lower():gmatch '%a%a%a+' do counts[word] = (counts[word] or 0) + 1 end
	return counts
end

local vectors -- entry -> {word -> weight}, of length 1

-- Words count the more, the fewer entries have them.
local function weighted()
	if vectors then return vectors end
	local holders, n = {}, #index.list
	vectors = {}
	for _, entry in ipairs(index.list) do
		vectors[entry] = words_of(entry)
		for word in next, vectors[entry] do holders[word] = (holders[word] or 0) + 1 end
	end
	for _, vector in next, vectors do
		local sum = 0
		for word, count in next, vector do
			vector[word] = (1 + math.log(count)) * math.log(n / holders[word])
			sum = sum + vector[word] ^ 2
		end
		for word, weight in next, vector do vector[word] = weight / math.max(sum, 1e-9) ^ 0.5 end
	end
	return vectors
end

-- cumsum and sum: a name within the other makes likely what the texts leave open.
local function likeness(a, b)
	local short, long = a.bare:lower(), b.bare:lower()
	if #short > #long then short, long = long, short end
	local sum = #short > 2 and long:find(short, 1, true) and LIKE or 0
	for word, weight in next, weighted()[a] do sum = sum + weight * (weighted()[b][word] or 0) end
	return sum
end

-- Of one family: the same kind of thing in the same module, or x:relu and nn.ReLU.
local function family(a, b)
	return a.kind == b.kind and a.title:match '^(.*)[.:]' == b.title:match '^(.*)[.:]'
end

-- Entries of its family with a text like its own, and those that mention it, the likest first. Of short texts, which are like
-- none, the three that come nearest.
local function likest(entry)
	local list, how, citing = {}, {}, {}
	for _, other in ipairs(citations()[entry] or {}) do citing[other] = true end
	for _, other in ipairs(index.list) do
		local sum = (family(entry, other) or citing[other]) and likeness(entry, other) or 0
		how[other] = sum
		if sum >= LIKE / 4 then list[#list + 1] = other end
	end
	table.sort(list, function(a, b)
		if how[a] ~= how[b] then return how[a] > how[b] end
		return a.title < b.title
	end)
	while #list > 3 and how[list[#list]] < (citing[list[#list]] and LIKE / 2 or LIKE) do list[#list] = nil end
	return list
end

-- Titles of up to six related entries: what it is in another module, what it mentions, what is like it. Those of the same name
-- are told elsewhere.
function index.related(entry)
	local others, seen = {}, {[entry] = true}
	local function take(list)
		for _, other in ipairs(list) do
			if not seen[other] and #others < MOST and other.bare ~= entry.bare and (other.kind ~= 'dtype' or entry.kind == 'dtype') then
				seen[other] = true
				others[#others + 1] = other.title
			end
		end
	end
	local twins = {}
	for _, other in ipairs(index.list) do
		if other.bare ~= entry.bare and other.bare:lower() == entry.bare:lower() then twins[#twins + 1] = other end
	end
	take(twins)
	take(mentions(entry.text or ''))
	take(likest(entry))
	return others
end

load_all()
for _, entry in ipairs(internal.docs()) do add_from_c(entry) end
for _, entry in ipairs(base.docs) do add(entry, entry.name) end

return index
