-- SPDX-License-Identifier: MIT
-- A notebook as one HTML page that needs nothing else and does nothing: no script, no address that is loaded (a policy in
-- the page forbids both), all text escaped, pictures inside. Light or dark as the reader's system is.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'
local highlight = internal.import 'interp/notebook/highlight'
local notebook = internal.import 'interp/notebook/notebook'
local plain = internal.import 'interp/notebook/plain'
local text_html = internal.import 'interp/notebook/text'
local escape = mime.escape

local LONG = 40    -- an output of more lines or rows is shown folded
local FIRST = 60   -- characters of its first line that are shown then
local CONTENTS = 4 -- headings from which on there is a table of contents

local PAGE = internal.import 'interp/prelude/page'

---------------------------------------------------------------- outputs

local IMAGES = {'image/png', 'image/jpeg', 'image/gif', 'image/webp'}

-- A long output is folded; how long it is and its first line tell what it is.
local function folded(block, count, what, first)
	if count <= LONG then return block end
	first = first:match '^%s*(.-)%s*$'
	if (utf8.len(first) or #first) > FIRST then first = first:sub(1, (utf8.offset(first, FIRST) or FIRST) - 1) .. '…' end
	return ('<details><summary>%d %s%s</summary>%s</details>'):format(count, what, first ~= '' and ': ' .. escape(first) or '', block)
end

local function text_block(text, class)
	text = text:gsub('\n+$', '')
	local block = ('<pre%s>%s</pre>'):format(class and (' class="%s"'):format(class) or '', escape(text))
	return folded(block, select(2, text:gsub('\n', '')) + 1, 'lines', text:match '[^\n]*')
end

-- A table of many rows is folded, too; the first line of its form as text says what it is.
local function html_block(html, text)
	local rows = select(2, html:gsub('<tr[ >]', '')) - select(2, html:gsub('<thead', ''))
	return folded('<div>' .. html .. '</div>', rows, 'rows', type(text) == 'string' and text:match '[^\n]*' or '')
end

local function picture(data, kind, base64)
	return ('<div class="fig"><img alt="%s" src="data:%s;base64,%s"></div>'):format(
		escape(type(data['text/plain']) == 'string' and data['text/plain'] or 'picture'), kind, base64)
end

-- SVG of others is a picture of its own: browsers run and load nothing in those. It needs the name space there.
local function foreign_svg(data, text)
	local at = text:find '<svg[%s>]'
	if not at then return nil end
	text = mime.clean(text:sub(at))
	if not text:match '^[^>]*':find 'xmlns=' then text = text:gsub('^<svg', '%0 xmlns="http://www.w3.org/2000/svg"') end
	return picture(data, 'image/svg+xml', mime.base64(text))
end

-- HTML of others is shown as text: what it says of itself as text, else its source.
local function foreign_html(data, html)
	local text = type(data['text/plain']) == 'string' and data['text/plain']:find '%S' and data['text/plain'] or html
	return text_block(text) .. '<pre class="note">(HTML, shown as text)</pre>'
end

-- The richest form that can be shown inertly.
local function bundle(data, context)
	local svg = type(data['image/svg+xml']) == 'string' and data['image/svg+xml']
	local own = svg and plain.svg(mime.clean(svg))
	if own then return '<div class="fig">' .. own .. '</div>' end
	for _, kind in ipairs(IMAGES) do
		local bytes = type(data[kind]) == 'string' and mime.from_base64(data[kind])
		if bytes then return picture(data, kind, mime.base64(bytes)) end
	end
	local drawn = svg and foreign_svg(data, svg)
	if drawn then return drawn end
	local html = type(data['text/html']) == 'string' and data['text/html']:find '%S' and mime.clean(data['text/html'])
	if html and plain.is_html(html) then return html_block(html, data['text/plain']) end
	if type(data['text/markdown']) == 'string' then
		return '<div class="text">' .. text_html(data['text/markdown'], context) .. '</div>'
	end
	if html then return foreign_html(data, html) end
	for _, kind in ipairs {'text/latex', 'text/plain'} do
		if type(data[kind]) == 'string' then return text_block(data[kind]) end
	end
	return '<pre class="note">(an output of a kind that is not shown)</pre>'
end

local OUTPUTS = {
	stream = function(o) return text_block(o.text, o.name == 'stderr' and 'warn' or nil) end,
	note = function(o) return text_block(o.text, 'note') end,
	error = function(o)
		local lines = table.concat(o.traceback, '\n')
		return text_block(lines ~= '' and lines or o.ename .. ': ' .. o.evalue, 'err')
	end,
	display_data = function(o, context) return bundle(o.data, context) end,
	execute_result = function(o, context) return bundle(o.data, context) end,
}

---------------------------------------------------------------- cells

local function seconds_text(seconds)
	if not seconds or seconds < 0.1 then return '' end
	if seconds < 60 then return ('%.1f s'):format(seconds) end
	return ('%d min %d s'):format(seconds // 60, seconds // 1 % 60)
end

local function code_cell(cell, context)
	local title = cell.metadata.title
	local parts = {('[%s]'):format(cell.execution_count or ' ')}
	if type(title) == 'string' then parts[#parts + 1] = ('<span class="t">%s</span>'):format(escape(title)) end
	local right = {}
	if cell.tags.skip then right[#right + 1] = 'skipped' end
	if cell.failed and not cell.tags.raises then right[#right + 1] = 'failed' end
	right[#right + 1] = seconds_text(cell.seconds)
	parts[#parts + 1] = ('<span class="r">%s</span>'):format(table.concat(right, ' '))
	local out = {('<div class="cell"><details%s><summary>%s</summary><pre><code>%s</code></pre></details>'):format(
		cell.tags.fold and '' or ' open', table.concat(parts), highlight(mime.clean(cell.source)))}
	for _, o in ipairs(cell.outputs or {}) do
		out[#out + 1] = ('<div class="out%s">%s</div>'):format(o.output_type == 'error' and ' bad' or '',
			OUTPUTS[o.output_type](o, context))
	end
	out[#out + 1] = '</div>'
	return table.concat(out, '\n')
end

-- A first cell of nothing but comments (the licence) and the header are no part of the document.
local function is_hidden(cell, index)
	return cell.front or index == 1 and cell.kind == 'code' and not notebook.runs(cell) and not cell.tags.skip or
		cell.kind == 'raw' or cell.tags.hide or cell.source == '' and not (cell.outputs and cell.outputs[1])
end

local function contents(headings)
	local shown = {}
	for i, heading in ipairs(headings) do
		if heading.level <= 3 then
			shown[#shown + 1] = ('<li class="l%d"><a href="#s%d">%s</a></li>'):format(heading.level, i,
				heading.html:gsub('</?a[^>]*>', ''):gsub('<img[^>]*>', ''))
		end
	end
	if #shown < CONTENTS then return '' end
	return ('<nav><details><summary>Contents</summary><ul>%s</ul></details></nav>\n'):format(table.concat(shown, '\n'))
end

local function source_link(nb)
	local name = nb.file:match '[^/]*$'
	local good, text = pcall(notebook.read_file, nb.file)
	if not good then return '' end
	return ('<a download="%s" href="data:application/octet-stream;base64,%s">%s</a>, '):format(escape(name), mime.base64(text),
		escape(name))
end

return function(nb)
	local out, headings = {}, {}
	for i, cell in ipairs(nb.cells) do
		if not is_hidden(cell, i) then
			local context = {headings = headings, folder = nb.file:match '^(.*/)' or '', attachments = cell.attachments}
			if cell.kind == 'code' then
				out[#out + 1] = code_cell(cell, context)
			else
				out[#out + 1] = '<div class="text">' .. text_html(cell.source, context) .. '</div>'
			end
		end
	end
	return PAGE:format(escape(notebook.title(nb))) .. contents(headings) .. '<main>\n' .. table.concat(out, '\n') ..
		'\n</main>\n<footer>' .. source_link(nb) .. 'made with Quoll</footer>\n</body></html>\n'
end
