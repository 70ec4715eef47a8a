-- SPDX-License-Identifier: MIT
-- A value in the forms in which a notebook, a page or a Jupyter client can show it: mime.bundle(value) gives a table
-- from mime types to text. 'text/plain' is always there and is what the prompt would show; pictures are in base64, as in
-- .ipynb files. A class gives forms of its own by the metafield __mime(value), which returns such a table; bytes of
-- pictures may be raw there.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local show = internal.import 'interp/prelude/show'

local mime = {}

---------------------------------------------------------------- text

local ENTITIES = {['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;', ["'"] = '&#39;'}

-- Text of any origin as HTML text or as the value of a quoted attribute: markup becomes entities, what is no
-- character of XML or no UTF-8 becomes the replacement character, so that the text is valid in SVG, too.
function mime.escape(text)
	return (mime.clean(text):gsub('[&<>"\']', ENTITIES))
end

-- UTF-8 without the control characters that XML does not have.
function mime.clean(text)
	text = mime.utf8(text)
	return (text:gsub('[%z\1-\8\11\12\14-\31\127]', '\u{FFFD}'))
end

-- The text with each byte that is no part of a character replaced.
function mime.utf8(text)
	local parts, from = {}, 1
	while true do
		local length, bad = utf8.len(text, from)
		if length then break end
		parts[#parts + 1] = text:sub(from, bad - 1) .. '\u{FFFD}'
		from = bad + 1
	end
	return table.concat(parts) .. text:sub(from)
end

local ALPHABET = {}
for c in ('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'):gmatch '.' do
	ALPHABET[#ALPHABET + 1] = c
end

function mime.base64(bytes)
	local out, n = {}, #bytes
	for at = 1, n - n % 3, 3 do
		local a, b, c = bytes:byte(at, at + 2)
		local word = a << 16 | b << 8 | c
		out[#out + 1] = ALPHABET[(word >> 18) + 1] .. ALPHABET[(word >> 12 & 63) + 1] .. ALPHABET[(word >> 6 & 63) + 1] ..
			ALPHABET[(word & 63) + 1]
	end
	if n % 3 > 0 then
		local a, b = bytes:byte(n - n % 3 + 1, n)
		local word = a << 16 | (b or 0) << 8
		out[#out + 1] = ALPHABET[(word >> 18) + 1] .. ALPHABET[(word >> 12 & 63) + 1] ..
			(b and ALPHABET[(word >> 6 & 63) + 1] or '=') .. '='
	end
	return table.concat(out)
end

local VALUES = {}
for i, c in ipairs(ALPHABET) do VALUES[c:byte()] = i - 1 end

-- The bytes, or nil when the text is no base64. Line breaks are allowed.
function mime.from_base64(text)
	text = text:gsub('%s', '')
	local digits, padding = text:match '^([%w+/]*)(=?=?)$'
	if not digits or (#digits + #padding) % 4 ~= 0 then return nil end
	local out = {}
	for at = 1, #digits, 4 do
		local a, b, c, d = digits:byte(at, at + 3)
		if not b then return nil end
		local word = VALUES[a] << 18 | VALUES[b] << 12 | (c and VALUES[c] << 6 or 0) | (d and VALUES[d] or 0)
		out[#out + 1] = string.char(word >> 16, word >> 8 & 255, word & 255):sub(1, d and 3 or c and 2 or 1)
	end
	return table.concat(out)
end

---------------------------------------------------------------- tensors

local EDGE = 6 -- cells shown at both ends of a long row, rows at both ends of a long column

-- The list with only its ends and an ellipsis when it is long.
local function ends(list)
	if #list <= 2 * EDGE + 1 then return list end
	local some = table.move(list, 1, EDGE, 1, {})
	some[#some + 1] = '…'
	return table.move(list, #list - EDGE + 1, #list, #some + 1, some)
end

-- What tostring wrote, cut into blocks {name=, rows of cells}. A row of one ellipsis stands for rows left out.
local function blocks_of(body, flat)
	local blocks = {{}}
	for line in (body .. '\n'):gmatch '(.-)\n' do
		local name, cells = line:match '^%[.*%]$', {}
		for cell in line:gmatch '%S+' do cells[#cells + 1] = cell end
		local block = blocks[#blocks]
		if name then
			if #block > 0 or block.name then blocks[#blocks + 1] = {} end
			blocks[#blocks].name = name
		elseif flat and block[1] then
			table.move(cells, 1, #cells, #block[1] + 1, block[1])
		elseif #cells > 0 then
			block[#block + 1] = cells
		end
	end
	return blocks
end

local function row_html(cells, width)
	if cells == '…' or #cells == 1 and cells[1] == '…' then
		return ('<tr><td colspan="%d">…</td></tr>'):format(width)
	end
	local parts = {}
	for i, cell in ipairs(ends(cells)) do parts[i] = '<td>' .. mime.escape(cell) .. '</td>' end
	return '<tr>' .. table.concat(parts) .. '</tr>'
end

-- A table with the facts (dtype, shape, how it is quantized, bytes) as its caption and the decoded values.
local function tensor_html(text, rank)
	local head, body = text:match '^([^\n]-)\n(.*)$'
	if not head then head, body = text:match '^(.-)  (.*)$' end
	if not head then return nil end
	local parts, width = {}, 1
	local blocks = blocks_of(body, rank == 1)
	for _, block in ipairs(blocks) do
		for _, row in ipairs(block) do width = math.max(width, #ends(row)) end
	end
	for _, block in ipairs(blocks) do
		if block.name then
			parts[#parts + 1] = ('<tr><th colspan="%d">%s</th></tr>'):format(width, mime.escape(block.name))
		end
		for _, row in ipairs(ends(block)) do parts[#parts + 1] = row_html(row, width) end
	end
	return ('<table class="tensor"><caption>%s</caption><tbody>%s</tbody></table>'):format(mime.escape(head),
		table.concat(parts))
end

---------------------------------------------------------------- figures

-- Whether the text is the SVG of a figure of ours: interp/plot/svg.c writes the colour of its text into the first tag.
function mime.is_figure(svg)
	return type(svg) == 'string' and svg:match '<svg [^>]*>' ~= nil and svg:match '<svg [^>]*>':find(' color="#262626"', 1, true) ~= nil
end

-- PNG where it is wanted, it takes longer; SVG unless `wanted.png` is 'only'. Without plplot: the figure drawn with
-- characters.
local function figure(value, wanted)
	local forms = {['text/plain'] = tostring(value)}
	local made, png
	local only = wanted.png == 'only' or forms['text/plain']:find '^image figure' -- as SVG its pixels would be one box each
	if wanted.png or only then made, png = pcall(value.png, value) end
	forms['image/png'] = made and png or nil
	if only and made then return forms end
	local good, svg = pcall(value.svg, value)
	forms['image/svg+xml'] = good and svg or nil
	if not made and not good then
		local drawn, text = pcall(value.text, value)
		forms['text/plain'] = drawn and text:gsub('\n$', '') or forms['text/plain']
	end
	return forms
end

---------------------------------------------------------------- any value

local PICTURES = {'^\137PNG\r\n\26\n', '^\255\216\255', '^GIF8', '^RIFF....WEBP'}

local function in_base64(text)
	for _, pattern in ipairs(PICTURES) do
		if text:find(pattern) then return mime.base64(text) end
	end
	return text
end

-- What a class says of itself; nil and why when that fails.
local function own_forms(value, wanted)
	local meta = debug.getmetatable(value)
	local own = type(meta) == 'table' and rawget(meta, '__mime')
	if not own then return nil end
	local good, forms = pcall(own, value, wanted)
	if not good then return nil, tostring(forms) end
	if type(forms) ~= 'table' then return nil, 'wanted a table, got ' .. type(forms) end
	local checked = {}
	for kind, text in next, forms do
		if type(kind) ~= 'string' or not kind:find '^[%w.+-]+/[%w.+-]+$' or type(text) ~= 'string' then
			return nil, 'wanted texts by mime type, got ' .. base.describe(kind) .. ' = ' .. base.describe(text)
		end
		checked[kind] = kind:find '^image/' and in_base64(text) or text
	end
	return checked
end

local function plain(value)
	local good, text = pcall(show, value)
	return good and text or ('<%s that cannot be shown: %s>'):format(type(value), tostring(text))
end

-- The forms of a value. `wanted`: {png = true} for figures the picture as PNG, too, {png = 'only'} instead of SVG. A class whose __mime fails is shown
-- as text, with the message below.
function mime.bundle(value, wanted)
	local forms, problem = own_forms(value, wanted or {})
	if not forms then
		local meta = debug.getmetatable(value)
		forms = type(meta) == 'table' and rawget(meta, '__name') == 'quoll.figure' and figure(value, wanted or {}) or {}
		for kind, text in next, forms do
			if kind:find '^image/' then forms[kind] = in_base64(text) end
		end
	end
	forms['text/plain'] = mime.utf8(forms['text/plain'] or plain(value))
	if base.is_tensor(value) then forms['text/html'] = tensor_html(forms['text/plain'], value:dim()) end
	if problem then forms['text/plain'] = forms['text/plain'] .. '\n__mime failed: ' .. problem end
	return forms
end

return mime
