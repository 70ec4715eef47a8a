-- SPDX-License-Identifier: MIT
-- What a cell that has not run would read and write: variables that it and the functions in it mention; of these, those that it
-- assigns, of whose fields or items it assigns one, or of which it calls a method that may change them. It is compiled, not run
-- (interp/prelude/uses.lua). What it changes through another variable, or in a function that it calls, is not seen.
local _, internal = ...
local stale = internal.import 'interp/input/stale'
local uses = internal.import 'interp/prelude/uses'

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
		if tokens[i] ~= 'comment' then words[#words + 1] = {kind = tokens[i], text = text:sub(tokens[i + 1], tokens[i + 2])} end
	end
	return words
end

-- Every name in the text, fields too: for what is not compiled, or computes names.
local function add_names(text, set)
	for _, word in ipairs(words_of(text)) do
		if word.kind == 'name' then set[word.text] = true end
	end
end

-- The top-level locals, without the one that ends an input (interp/repl/cell.c), and with those that the compiler folds away.
local function add_locals(text, own, set)
	for name in pairs(own.locals) do
		if text:find(name, 1, true) then set[name] = true end
	end
	local words = words_of(text)
	for i, word in ipairs(words) do
		local constant = word.text == '<' and words[i + 1] and words[i + 1].text == 'const' and words[i + 2] and words[i + 2].text == '>'
		if constant and i > 1 then set[words[i - 1].text] = true end
	end
end

local function only_own(set)
	for name in pairs(set) do
		if (internal.baseline or {})[name] then set[name] = nil end
	end
end

-- {reads =, writes =, assigned =, locals =, first =}, sets of names without those that every session has; assigned: those of writes
-- that it assigns itself, not in a function that is only defined; locals: those of assigned that are local variables; first: those of writes that it certainly
-- assigns before it, or a function that it calls, reads them.
return function(text)
	local facts = {reads = {}, writes = {}, assigned = {}, locals = {}, first = {}}
	local f = internal.input_function(text)
	if not f then
		add_names(text, facts.reads)
		only_own(facts.reads)
		return facts
	end
	local all, own = uses(f), uses(f, true)
	for name in pairs(all.reads) do facts.reads[name] = true end
	if all.whole then add_names(text, facts.reads) end
	add_locals(text, own, facts.locals)
	for _, set in ipairs {own.writes, facts.locals} do
		for name in pairs(set) do facts.assigned[name] = true end
	end
	for _, set in ipairs {all.writes, facts.locals, all.fields} do
		for name in pairs(set) do facts.writes[name] = true end
	end
	for name, methods in pairs(all.methods) do
		for method in pairs(methods) do facts.writes[name] = facts.writes[name] or not is_pure(method) or nil end
	end
	local certain = not own.whole
	for name in pairs(own.reads) do certain = certain and not stale.is_function(name) end
	for name in pairs(facts.writes) do
		facts.first[name] = certain and (own.first[name] or facts.locals[name] and not own.reads[name]) or nil
	end
	for _, set in pairs(facts) do only_own(set) end
	return facts
end
