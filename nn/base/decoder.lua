-- SPDX-License-Identifier: MIT
-- How a language model goes on with rows of tokens, step by step: decoder.new(m, rows, most, o) gives an object with
--   begin()        the logits after the rows, (rows, V)
--   step(tokens)   the same after one more token for each row
--   keep(list)     from now on only these rows, by number; false: rows that have ended stay and are not looked at
-- Close it (<close>). A Transformer has a cache of keys and values, in which rows may differ in length: positions behind the end of a row are written over.
-- Recurrent layers carry their state; any other model processes the whole text at every step.
local _, internal = ...
local kvcache = internal.import 'nn/base/kvcache'
local module = internal.import 'nn/base/module'
local decoder = {}

local function lengths(rows)
	local least, most = math.huge, 0
	for _, ids in ipairs(rows) do least, most = math.min(least, #ids), math.max(most, #ids) end
	return least, most
end

-- Tokens first .. of each row as (B, T); rows that end before are filled with the first token.
local function block(rows, first, device)
	local list, _, most = {}, lengths(rows)
	for i, ids in ipairs(rows) do
		local row = table.move(ids, first, #ids, 1, {})
		for k = #row + 1, most - first + 1 do row[k] = 1 end
		list[i] = row
	end
	list.dtype = 'int64'
	return module.moved(tensor(list), device)
end

local function numbers(list, device) return module.moved(tensor {dtype = 'int64', table.unpack(list)}, device) end

---------------------------------------------------------------- a cache of keys and values

local cached = {}
cached.__index = cached
cached.__close = function() end

-- A function that picks the last position of each row, whose numbers count from `first`.
local function last_of(rows, first, device)
	local least, most = lengths(rows)
	if least == most then return function(x) return x:narrow(2, x:size(2), 1) end end
	local places = {}
	for i, ids in ipairs(rows) do places[i] = (i - 1) * (most - first + 1) + #ids - first + 1 end
	return function(x)
		local b, t, d = x:size()
		return x:reshape(b * t, d):indexselect(1, numbers(places, device)):unsqueeze(2)
	end
end

local function place_of(rows, device)
	local n, least, most = {}, lengths(rows)
	for i, ids in ipairs(rows) do n[i] = #ids end
	return {n = most, starts = numbers(n, device), ragged = least ~= most}
end

-- The logits of rows whose first `have` tokens are in the caches.
local function fill(m, caches, rows, have, device)
	caches.wanted = last_of(rows, have + 1, device)
	local y = module.real(m(block(rows, have + 1, device), caches)):select(2, 1)
	caches.wanted = nil
	return y
end

-- The rows as the model sees them: of a text that is too long, the last half of a context.
local function within(m, ids)
	if #ids <= m.context then return ids end
	return table.move(ids, #ids - math.max(1, m.context // 2) + 1, #ids, 1, {})
end

local function rows_of(caches, first, count, at)
	local part = {at = at}
	for i, cache in ipairs(caches) do part[i] = kvcache.rows(cache, first, count, at) end
	return part
end

-- The same for rows that may differ in length: where blocks of positions become codes, rows that differ are filled alone, as what fills a
-- short row must not be coded with it.
local function fill_all(self, rows, have)
	local least, most = lengths(rows)
	if least == most or not self.caches[1].late then return fill(self.m, self.caches, rows, have, self.device) end
	local list = {}
	for r, ids in ipairs(rows) do
		local at = {n = have, starts = numbers({have}, self.device), ragged = false}
		list[r] = fill(self.m, rows_of(self.caches, r, 1, at), {ids}, have, self.device)
	end
	return tensor.cat(list, {axis = 1})
end

function cached.begin(self)
	local rows, have = self.rows, self.have
	self.caches = self.m:cache(#rows, self.room, self.kv)
	local at = self.caches.at
	if have > 0 then
		for i, from in ipairs(self.prompt.caches) do
			for r = 1, #rows do kvcache.put(self.caches[i], r, from, 1, have) end
		end
		kvcache.advance(at, have)
	end
	local y = fill_all(self, rows, have)
	local now = place_of(rows, self.device)
	at.n, at.starts, at.ragged = now.n, now.starts, now.ragged
	return y
end

-- One row alone, which has no room for another token: it goes on with the last half of its tokens.
local function step_row(self, r)
	local ids, m = self.rows[r], self.m
	local have = #ids - 1
	if #ids > m.context then
		ids, have = within(m, ids), 0
		self.rows[r] = ids
	end
	local at = {n = have, starts = numbers({have}, self.device), ragged = false}
	return fill(m, rows_of(self.caches, r, 1, at), {ids}, have, self.device)
end

local WORTH = 32 -- steps for which a program is made
decoder.WORTH = WORTH

-- One token for each row; the ops as a program, where there is one (nn/graph/stepwise.lua).
local function step_all(self, ids)
	local at, program = self.caches.at, self.program
	self.left, self.since = self.left - 1, self.since + 1
	if program == nil and self.left >= WORTH and self.since >= WORTH then
		program = decoder.compile and decoder.compile(self.m, self.caches, #self.rows) or false
		self.program, self.since = program, 0
	end
	if not program then return module.real(self.m(ids, self.caches)):select(2, 1) end
	local y = program(ids, at.starts)
	kvcache.advance(at, 1)
	return module.real(y):select(2, 1)
end

function cached.step(self, tokens)
	local full = false
	for i, ids in ipairs(self.rows) do
		ids[#ids + 1] = tokens[i]
		full = full or #ids > self.m.context
	end
	if not full then
		tokens.dtype = 'int64'
		return step_all(self, module.moved(tensor(tokens):unsqueeze(2), self.device))
	end
	local list = {}
	for r = 1, #self.rows do list[r] = step_row(self, r) end
	local at, now = self.caches.at, place_of(self.rows, self.device)
	at.n, at.starts, at.ragged = now.n, now.starts, now.ragged
	return tensor.cat(list, {axis = 1})
end

function cached.keep(self, list)
	local rows = {}
	for i, r in ipairs(list) do rows[i] = self.rows[r] end
	local caches = {at = place_of(rows, self.device)}
	for i, cache in ipairs(self.caches) do caches[i] = kvcache.copy(cache, list, self.room, caches.at) end
	self.rows, self.caches, self.program = rows, caches, nil
	return true
end

-- How many tokens all rows share with a prompt that has been computed; the last one of each row is computed again.
local function shared(prompt, rows)
	local n = #prompt.ids
	for _, ids in ipairs(rows) do
		local same = 0
		while same < math.min(n, #ids - 1) and prompt.ids[same + 1] == ids[same + 1] do same = same + 1 end
		n = same
	end
	for _, cache in ipairs(prompt.caches) do
		if not kvcache.reaches(cache, #prompt.ids, n) then return 0 end
	end
	return n
end

local function new_cached(m, rows, most, o)
	local self = setmetatable({m = m, rows = {}, kv = o.kv, prompt = o.prompt, device = module.device(m), have = 0, left = most, since = WORTH},
		cached)
	for i, ids in ipairs(rows) do self.rows[i] = table.move(ids, 1, #ids, 1, {}) end
	for i, ids in ipairs(self.rows) do self.rows[i] = within(m, ids) end
	if o.prompt then self.have = shared(o.prompt, self.rows) end
	local _, longest = lengths(self.rows)
	self.room = math.min(longest + most, m.context)
	return self
end

---------------------------------------------------------------- other models

local whole = {}
whole.__index = whole

-- Sets whether recurrent layers keep their state from call to call.
local function carry(m, on)
	module.walk(m, function(_, inner)
		if module.class_of(inner).carry then module.class_of(inner).carry(inner, on) end
	end)
end

whole.__close = function(self) carry(self.m, false) end

local function logits_of(self, ids) return module.real(self.m(ids)):select(2, -1) end

function whole.begin(self)
	carry(self.m, true)
	self.all = block(self.rows, 1, self.device)
	return logits_of(self, self.all)
end

function whole.step(self, tokens)
	local new = numbers(tokens, self.device):unsqueeze(2)
	if self.carries then return logits_of(self, new) end
	self.all = tensor.cat({self.all, new}, {axis = 2})
	return logits_of(self, self.all)
end

function whole.keep(self, list)
	if self.carries then return false end
	self.all = self.all:indexselect(1, numbers(list, self.device))
	return true
end

local function has_carry(m)
	local found = false
	module.walk(m, function(_, inner) found = found or module.class_of(inner).carry ~= nil end)
	return found
end

-- Whether rows of different lengths can be one batch.
function decoder.takes_lengths(m) return module.class_of(m).cache ~= nil end

-- rows: lists of tokens; most: new ones at most; o: kv=, prompt=
function decoder.new(m, rows, most, o)
	if module.class_of(m).cache then return new_cached(m, rows, most, o) end
	return setmetatable({m = m, rows = rows, carries = has_carry(m), device = module.device(m)}, whole)
end

return decoder
