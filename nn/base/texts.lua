-- SPDX-License-Identifier: MIT
-- What m:generate and m:prompt are given, as rows of tokens: numbers, texts, lists of them. Texts need a tokenizer: that of the call, or
-- of the file that nn.load has read (m.origin.tokenizer is its name).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local texts = {}

-- The tokenizer of the call, or of the model; nil: there is none.
function texts.tokenizer(what, m, given)
	if given == nil then
		local origin = rawget(m, 'origin')
		given = origin and origin.tokenizer
		if given == nil then return nil end
	end
	if type(given) == 'string' then given = data.tokenizer(given) end
	if type(given) ~= 'table' or (getmetatable(given) or {}).__name ~= 'quoll.tokenizer' then
		fail('%s: tokenizer: wanted a data.tokenizer or the name of its file, got %s', what, describe(given))
	end
	return given
end

local MARKS = { -- a token of the vocabulary -> how a question is written
	['<|im_start|>'] = '<|im_start|>user\\nHello<|im_end|>\\n<|im_start|>assistant\\n',
	['<|start_header_id|>'] = '<|start_header_id|>user<|end_header_id|>\\n\\nHello<|eot_id|><|start_header_id|>assistant<|end_header_id|>\\n\\n',
	['<start_of_turn>'] = '<start_of_turn>user\\nHello<end_of_turn>\\n<start_of_turn>model\\n',
	['[INST]'] = '[INST] Hello [/INST]',
}

-- Templates of chats are programs (Jinja), which are not run.
function texts.refuse_chat(what, m, tokenizer)
	local good, t = pcall(texts.tokenizer, what, m, tokenizer)
	local shown = "'User: Hello\\nAssistant:'"
	for mark, example in pairs(good and t and MARKS or {}) do
		if t.number[mark] then shown = ("'%s'"):format(example) end
	end
	fail("%s: wanted a text, got messages of a chat: templates are not evaluated; write the text with the model's marks, as %s", what, shown)
end

local function check_messages(what, m, given, tokenizer)
	local first = type(given) == 'table' and not getmetatable(given) and (given[1] or given)
	if type(first) == 'table' and (rawget(first, 'role') ~= nil or rawget(first, 'content') ~= nil) then texts.refuse_chat(what, m, tokenizer) end
end

local function encoded(what, t, given)
	local ids = t:encode(given, t.eos and {eos = false} or nil):totable()
	if #ids == 0 then fail('%s: wanted a text with at least one token, got an empty one', what) end
	return ids
end

local function of_texts(what, m, list, tokenizer)
	local t, rows = texts.tokenizer(what, m, tokenizer), {}
	if not t then fail('%s: wanted numbers of tokens, or a tokenizer= for texts, got text without one', what) end
	for i, text in ipairs(list) do
		if type(text) ~= 'string' then fail('%s: item %d: wanted text, got %s', what, i, describe(text)) end
		rows[i] = encoded(what, t, text)
	end
	return rows, t
end

local function of_numbers(what, ids)
	if type(ids) == 'table' and not getmetatable(ids) and #ids > 0 then ids = tensor(ids):to 'int64' end
	if not base.is_tensor(ids) or ids:dim() > 2 or ids:nelem() == 0 then
		fail('%s: ids: wanted at least one number of a token, got %s', what, describe(ids))
	end
	local rows = ids:to 'int64':totable()
	return ids:dim() == 2 and rows or {ids:dim() == 1 and rows or {rows}}, ids:dim() < 2
end

-- {rows= lists of tokens, kind= 'text' or 'ids', one= a single row, list= rows were a list, given= the texts, tokenizer=}
function texts.read(what, m, given, tokenizer)
	check_messages(what, m, given, tokenizer)
	if type(given) == 'string' then
		local rows, t = of_texts(what, m, {given}, tokenizer)
		return {rows = rows, kind = 'text', one = true, given = {given}, tokenizer = t}
	end
	local first = type(given) == 'table' and not getmetatable(given) and given[1]
	if type(first) == 'string' then
		local rows, t = of_texts(what, m, base.list(what, given), tokenizer)
		return {rows = rows, kind = 'text', list = true, given = given, tokenizer = t}
	end
	local read = {kind = 'ids', tokenizer = tokenizer ~= nil and texts.tokenizer(what, m, tokenizer) or nil} -- that of the file when it is needed
	if type(first) == 'table' or base.is_tensor(first) then
		read.rows, read.list = {}, true
		for i, row in ipairs(base.list(what, given)) do
			local rows, one = of_numbers(what, row)
			if not one then fail('%s: item %d: wanted numbers of one text, got %s', what, i, describe(row)) end
			read.rows[i] = rows[1]
		end
	else
		read.rows, read.one = of_numbers(what, given)
	end
	return read
end

return texts
