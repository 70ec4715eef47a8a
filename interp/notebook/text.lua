-- SPDX-License-Identifier: MIT
-- Text cells: a subset of Markdown (CommonMark's headings, paragraphs, lists, fenced code, quotations, rules, emphasis, code,
-- links, images; tables; $formulas$) as HTML. Raw HTML is shown as text. Links go to http, https and relative addresses
-- only; pictures are taken into the page when they lie beside the notebook, any other becomes a link.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'
local math_of = internal.import 'interp/notebook/math'
local highlight = internal.import 'interp/notebook/highlight'
local escape = mime.escape

local DEEPEST = 20 -- of lists and quotations
local MOST = 1e7   -- bytes that are looked at after the marks of one page; then marks are letters, so that no text takes long

---------------------------------------------------------------- addresses

-- The address when it may be linked to, else nil.
local function link_target(address)
	if address:find '[%c%s\\]' or address:find '^//' or #address > 2000 then return nil end
	local scheme = address:match '^([^/?#]*):'
	if scheme and not (scheme:lower() == 'http' or scheme:lower() == 'https') then return nil end
	return address ~= '' and address or nil
end

local PICTURES = {{'^\137PNG\r\n\26\n', 'image/png'}, {'^\255\216\255', 'image/jpeg'}, {'^GIF8[79]a', 'image/gif'},
	{'^RIFF....WEBP', 'image/webp'}}

local function picture_type(bytes)
	for _, known in ipairs(PICTURES) do
		if bytes:find(known[1]) then return known[2] end
	end
end

-- The picture as a data address; nil when it is none that may be taken.
local function picture_data(address, context)
	local kind, data = address:match '^data:(image/%a+);base64,([%w+/=]+)$'
	if kind and picture_type(mime.from_base64(data) or '') == kind then return address end
	local attached = address:match '^attachment:(.+)$'
	for known, text in pairs(attached and (context.attachments or {})[attached] or {}) do
		local bytes = type(text) == 'string' and mime.from_base64(text)
		if bytes and picture_type(bytes) == known then return ('data:%s;base64,%s'):format(known, mime.base64(bytes)) end
	end
	if attached or not context.folder or address:find '^[/~]' or address:find ':' or ('/' .. address .. '/'):find '/%.%./' then
		return nil
	end
	local handle = io.open(context.folder .. address:gsub('%%20', ' '), 'rb')
	local bytes = handle and handle:read(16 << 20)
	if handle then handle:close() end
	kind = bytes and picture_type(bytes)
	return kind and ('data:%s;base64,%s'):format(kind, mime.base64(bytes)) or nil
end

---------------------------------------------------------------- within a line

local inline

-- The pieces at `at` that are more than letters: each rule returns HTML and where it ends, or nil.
local RULES = {
	['\\'] = function(text, at)
		local c = text:match('^\\(%p)', at)
		if c then return escape(c), at + 2 end
		if text:find('^\\\n', at) then return '<br>', at + 2 end
	end,
	['`'] = function(text, at)
		local ticks = text:match('^`+', at)
		local from = at + #ticks
		local stop = from
		local last
		repeat
			stop, last = text:find('`+', stop)
			if stop and last - stop + 1 == #ticks then
				local code = text:sub(from, stop - 1):gsub('\n', ' ')
				if code:find '^ .* $' and code:find '[^ ]' then code = code:sub(2, -2) end
				return '<code>' .. escape(code) .. '</code>', last + 1
			end
			stop = last and last + 1
		until not stop
		return escape(ticks), from
	end,
	['$'] = function(text, at)
		local tex, stop = text:match('^%$%$(.-)%$%$()', at)
		if tex and tex:find '%S' then return math_of(tex, true), stop end
		tex, stop = text:match('^%$([^%s$][^$]*)%$()', at)
		if tex and not tex:find '%s$' and not text:find('^%d', stop) then return math_of(tex, false), stop end
	end,
	['!'] = function(text, at, context)
		local alt, target, stop = text:match('^!%[([^%]]*)%]%(%s*<?([^%s<>()]*)>?[^)]*%)()', at)
		if not alt then return nil end
		local data = picture_data(target, context)
		if data then return ('<img alt="%s" src="%s">'):format(escape(alt), escape(data)), stop end
		local link = link_target(target)
		local words = escape(alt ~= '' and alt or target)
		return link and ('<a href="%s">%s</a>'):format(escape(link), words) or words, stop
	end,
	['['] = function(text, at, context)
		local words, stop = text:match('^(%b[])()', at)
		local target, behind = text:match('^%(%s*([^%s<>()]*%([^%s<>()]*%)[^%s<>()]*)%s*["\']?[^)]*%)()', stop or 1)
		if not target then target, behind = text:match('^%(%s*<?([^%s<>()]*)>?%s*["\']?[^)]*%)()', stop or 1) end
		if not words or not target or not behind then return nil end
		local inner = inline(words:sub(2, -2), context, true)
		local link = not context.linked and link_target(target)
		return link and ('<a href="%s">%s</a>'):format(escape(link), inner) or inner, behind
	end,
	['<'] = function(text, at, context)
		local address, stop = text:match('^<(https?://[^%s<>]+)>()', at)
		if not address or not link_target(address) or context.linked then return nil end
		return ('<a href="%s">%s</a>'):format(escape(address), escape(address)), stop
	end,
	['~'] = function(text, at, context)
		local inner, stop = text:match('^~~([^~]+)~~()', at)
		if inner then return '<del>' .. inline(inner, context) .. '</del>', stop end
	end,
}

local function emphasis(text, at, context)
	local sign = text:sub(at, at)
	local before = at > 1 and text:sub(at - 1, at - 1) or ' '
	if sign == '_' and before:find '[%w]' then return nil end
	local double = sign .. sign
	local pattern = '%' .. sign
	if text:sub(at, at + 1) == double then
		local inner, stop = text:match('^' .. pattern .. pattern .. '(%S.-)' .. pattern .. pattern .. '()', at)
		if inner and not inner:find '%s$' then return '<strong>' .. inline(inner, context) .. '</strong>', stop end
		return nil
	end
	local inner, stop = text:match('^' .. pattern .. '([^%s' .. pattern .. '][^' .. pattern .. ']*)' .. pattern .. '()', at)
	if inner and not inner:find '%s$' and not (sign == '_' and text:find('^%w', stop)) then
		return '<em>' .. inline(inner, context) .. '</em>', stop
	end
end
RULES['*'], RULES['_'] = emphasis, emphasis

-- Text with its marks as HTML. `linked`: within a link.
function inline(text, context, linked)
	local inner = setmetatable({linked = linked or context.linked, nesting = (context.nesting or 0) + 1}, {__index = context})
	local out, at = {}, 1
	if inner.nesting > DEEPEST then return escape(text) end
	while at <= #text do
		local next_mark = text:find('[\\`$!%[<~*_]', at) or #text + 1
		if next_mark > at then out[#out + 1] = escape(text:sub(at, next_mark - 1)):gsub('  +\n', '<br>\n') end
		at = next_mark
		if at <= #text then
			local c = text:sub(at, at)
			local work = (context.headings.work or 0) + #text - at
			local html, stop
			context.headings.work = work
			if work < MOST then html, stop = RULES[c](text, at, inner) end
			out[#out + 1] = html or escape(c)
			at = html and stop or at + 1
		end
	end
	return table.concat(out)
end

---------------------------------------------------------------- blocks

local blocks

local function row_cells(line)
	local cells, kept = {}, {}
	line = line:gsub('\\|', function() return '\1' end):gsub('^%s*|?', ''):gsub('|?%s*$', '')
	line = line:gsub('`[^`]*`', function(code)
		kept[#kept + 1] = code
		return '\2' .. #kept .. '\2'
	end)
	for cell in (line .. '|'):gmatch '(.-)|' do
		cell = cell:gsub('\2(%d+)\2', function(i) return kept[tonumber(i)] end)
		cells[#cells + 1] = cell:match '^%s*(.-)%s*$':gsub('\1', '|')
	end
	return cells
end

local function table_at(lines, i, out, context)
	if not (lines[i]:find('|', 1, true) and (lines[i + 1] or ''):find '^%s*|?%s*:?%-+:?%s*[|:%-%s]*$' and
		lines[i + 1]:find('|', 1, true)) then
		return nil
	end
	local marks, head = row_cells(lines[i + 1]), row_cells(lines[i])
	local function row(cells, tag)
		local parts = {}
		for k = 1, #head do
			local right = (marks[k] or ''):find ':$' and ' class="n"' or ''
			parts[k] = ('<%s%s>%s</%s>'):format(tag, right, inline(cells[k] or '', context), tag)
		end
		return '<tr>' .. table.concat(parts) .. '</tr>'
	end
	out[#out + 1] = '<table>' .. row(head, 'th')
	i = i + 2
	while lines[i] and lines[i]:find('|', 1, true) and lines[i]:find '%S' do
		out[#out + 1] = row(row_cells(lines[i]), 'td')
		i = i + 1
	end
	out[#out + 1] = '</table>'
	return i
end

local function fence_at(lines, i, out)
	local indent, fence, language = lines[i]:match '^(%s*)(```+)%s*([%w_+-]*)'
	if not fence then indent, fence, language = lines[i]:match '^(%s*)(~~~+)%s*([%w_+-]*)' end
	if not fence then return nil end
	local code = {}
	i = i + 1
	while lines[i] and not lines[i]:find('^%s*' .. fence:sub(1, 1):rep(#fence)) do
		code[#code + 1] = lines[i]:sub(1, #indent):find '^%s*$' and lines[i]:sub(#indent + 1) or lines[i]
		i = i + 1
	end
	local text = table.concat(code, '\n')
	out[#out + 1] = '<pre><code>' .. (language:lower() == 'lua' and highlight(text) or escape(text)) .. '</code></pre>'
	return i + 1
end

local function item_of(line)
	local indent, mark, text = line:match '^(%s*)([-*+])%s+(.*)$'
	if not mark then indent, mark, text = line:match '^(%s*)(%d+[.)])%s+(.*)$' end
	if mark then return #indent, mark:find '%d' and 'ol' or 'ul', text, #line - #text, mark end
end

local function list_at(lines, i, out, context)
	local indent, kind, _, _, mark = item_of(lines[i])
	if not kind or lines[i]:find '^%s*[-*_]%s*[-*_]%s*[-*_][-*_%s]*$' then return nil end
	local first = math.tointeger(tonumber(mark:match '%d+'))
	out[#out + 1] = '<' .. kind .. (first and first ~= 1 and (' start="%d"'):format(first) or '') .. '>'
	while lines[i] do
		local depth, other, text, column = item_of(lines[i])
		if not depth or depth ~= indent or other ~= kind then break end
		local inner = {text}
		i = i + 1
		while lines[i] do
			local deeper = #lines[i]:match '^%s*'
			local blank = not lines[i]:find '%S'
			local next_line = blank and lines[i + 1]
			if blank and not (next_line and next_line:find '%S' and #next_line:match '^%s*' > indent) then break end
			if not blank and deeper <= indent and (item_of(lines[i]) or lines[i - 1] and not lines[i - 1]:find '%S') then break end
			inner[#inner + 1] = blank and '' or lines[i]:sub(math.min(deeper, column) + 1)
			i = i + 1
		end
		local html = blocks(inner, context)
		local only = html:match '^<p>(.*)</p>$'
		if only and not only:find('<p>', 1, true) then html = only end
		html = html:gsub('^<p>(.-)</p>\n?(<[uo]l)', '%1%2')
		out[#out + 1] = '<li>' .. html .. '</li>'
		while lines[i] and not lines[i]:find '%S' and lines[i + 1] and item_of(lines[i + 1]) == indent do i = i + 1 end
	end
	out[#out + 1] = '</' .. kind .. '>'
	return i
end

local function heading_at(lines, i, out, context)
	local signs, text = lines[i]:match '^%s?%s?%s?(#+)%s+(.-)%s*#*%s*$'
	if not signs or #signs > 6 then return nil end
	local html = inline(text, context)
	context.headings[#context.headings + 1] = {level = #signs, html = html}
	local id = 's' .. #context.headings
	out[#out + 1] = ('<h%d id="%s">%s</h%d>'):format(#signs, id, html, #signs)
	return i + 1
end

local function quotation_at(lines, i, out, context)
	if not lines[i]:find '^%s?%s?%s?>' then return nil end
	local inner = {}
	while lines[i] and lines[i]:find '^%s?%s?%s?>' do
		inner[#inner + 1] = lines[i]:gsub('^%s*> ?', '', 1)
		i = i + 1
	end
	out[#out + 1] = '<blockquote>' .. blocks(inner, context) .. '</blockquote>'
	return i
end

local function formula_at(lines, i, out)
	if not lines[i]:find '^%s*%$%$' then return nil end
	local text, from = lines[i], i
	while not text:find '^%s*%$%$.-%$%$' and lines[i + 1] do
		i = i + 1
		text = text .. '\n' .. lines[i]
	end
	local tex, rest = text:match '^%s*%$%$(.-)%$%$%s*(.-)%s*$'
	if not tex or rest ~= '' then
		return nil, from
	end
	out[#out + 1] = math_of(tex, true)
	return i + 1
end

local function rule_at(lines, i, out)
	local signs = lines[i]:gsub('%s', '')
	if #signs < 3 or not (signs:find '^%-+$' or signs:find '^%*+$' or signs:find '^_+$') then return nil end
	out[#out + 1] = '<hr>'
	return i + 1
end

local BLOCKS = {fence_at, heading_at, formula_at, rule_at, table_at, list_at, quotation_at}

local function begins_block(lines, i)
	return lines[i]:find '^%s*```' or lines[i]:find '^%s*~~~' or lines[i]:find '^%s?%s?%s?#+%s' or lines[i]:find '^%s*%$%$' or
		lines[i]:find '^%s?%s?%s?>' or item_of(lines[i]) ~= nil and not lines[i]:find '^%s*%d+[.)]'
end

function blocks(lines, context)
	local out, i = {}, 1
	local inner = setmetatable({depth = (context.depth or 0) + 1}, {__index = context})
	if inner.depth > DEEPEST then return '<p>' .. escape(table.concat(lines, '\n')) .. '</p>' end
	while lines[i] do
		local stop
		if not lines[i]:find '%S' then stop = i + 1 end
		for _, rule in ipairs(BLOCKS) do
			stop = stop or rule(lines, i, out, inner)
		end
		if not stop then
			local paragraph = {lines[i]:match '^%s*(.*)$'}
			stop = i + 1
			while lines[stop] and lines[stop]:find '%S' and not begins_block(lines, stop) do
				paragraph[#paragraph + 1] = lines[stop]:match '^%s*(.*)$'
				stop = stop + 1
			end
			out[#out + 1] = '<p>' .. inline(table.concat(paragraph, '\n'), inner) .. '</p>'
		end
		i = stop
	end
	return table.concat(out, '\n')
end

-- context: headings (a list that grows), folder (of the notebook, with its slash), attachments.
return function(text, context)
	local lines = {}
	for line in (mime.clean(text) .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line:gsub('\t', '    ') end
	return blocks(lines, context)
end
