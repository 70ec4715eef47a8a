-- SPDX-License-Identifier: MIT
-- The reference manual, from the documentation of help: concepts, then each module with its functions and the methods of
-- its objects, then schemes, number formats, observers, dtypes, file formats, kernels and devices; every entry links to the related ones.
local _, internal = ...
local index = internal.import 'interp/help/help_index'
local mime = internal.import 'interp/prelude/mime'

local manual = {}

-- Chapters: a heading, and which entries are in it.
local MODULES = {{'tensor', 'x'}, {'quant', 'spec', 'observer'}, {'nn', 'module'}, {'optim', 'optimizer'}, {'data', 'dataset', 'loader',
	'vocab', 'tokenizer', 'text'}, {'graph'}, {'report', 'report'}, {'bench'}, {'plot', 'figure'}, {'hw'}, {'gpu'}, {'sweep'}}
local KINDS = {{'scheme', 'Schemes'}, {'number format', 'Number formats'}, {'observer', 'Observers'}, {'dtype', 'Dtypes'}, {'format', 'File formats'},
	{'kernel', 'Kernels'}, {'device', 'Devices'}}

local function by_title(a, b) return a.title:lower() < b.title:lower() end

-- {{heading, intro = entry or nil, entries}, …}; every entry is in exactly one.
local function chapters()
	local list, taken = {}, {}
	local function add(heading, intro, accept)
		local entries = {}
		for _, entry in ipairs(index.list) do
			if not taken[entry] and entry ~= intro and accept(entry) then
				entries[#entries + 1], taken[entry] = entry, true
			end
		end
		if intro then taken[intro] = true end
		table.sort(entries, by_title)
		if intro or #entries > 0 then list[#list + 1] = {heading = heading, intro = intro, entries = entries} end
	end
	add('Concepts', nil, function(entry) return entry.kind == 'concept' end)
	for _, kind in ipairs(KINDS) do
		kind.accept = function(entry) return entry.kind == kind[1] end
	end
	for _, names in ipairs(MODULES) do
		local prefixes = {names[1] .. '.'}
		for i = 2, #names do prefixes[#prefixes + 1] = names[i] .. ':' end
		local intro = index.by_title[names[1]]
		add(names[1], intro and (intro.kind == 'module' or intro.kind == 'function') and intro or nil, function(entry)
			for _, prefix in ipairs(prefixes) do
				if entry.title:sub(1, #prefix) == prefix then return true end
			end
		end)
	end
	add('Functions', nil, function(entry) return entry.kind == 'function' or entry.kind == 'method' or entry.kind == 'module' end)
	for _, kind in ipairs(KINDS) do add(kind[2], nil, kind.accept) end
	add('More', nil, function() return true end)
	return list
end

-- Anchors: a number for each entry in the order of the manual.
local function number(list)
	local anchors, titles, n = {}, {}, 0
	for _, chapter in ipairs(list) do
		local all = chapter.intro and {chapter.intro} or {}
		table.move(chapter.entries, 1, #chapter.entries, #all + 1, all)
		for _, entry in ipairs(all) do
			n = n + 1
			anchors[entry] = ('e%d'):format(n)
			titles[entry.title] = titles[entry.title] or anchors[entry]
		end
	end
	return anchors, titles
end

local function usages(entry)
	local list = {}
	for one in ((entry.usage or ''):gsub('%s%s+', '\n') .. '\n'):gmatch '(.-)\n' do
		if one ~= '' then list[#list + 1] = one end
	end
	return table.concat(list, '\n')
end

local function option_text(o)
	local text = (o[3] or ''):gsub('%s+', ' ')
	if o[4] and not text:find(o[4]:match '%S+', 1, true) then text = text .. ' (' .. o[4] .. ')' end
	return text
end

local function paragraphs(text)
	local list = {}
	for paragraph in (text .. '\n\n'):gmatch '(.-)\n\n+' do
		if paragraph:find '%S' then list[#list + 1] = paragraph end
	end
	return list
end

---------------------------------------------------------------- Markdown

-- Text as Markdown shows it; what is between backticks stays.
local function md_text(text)
	local parts = {}
	for plain, code in (text .. '``'):gmatch '([^`]*)(`[^`]*`)' do
		parts[#parts + 1] = plain:gsub('[\\*_%[%]<>|#~$]', '\\%0') .. (code == '``' and '' or code)
	end
	return table.concat(parts)
end

local function md_entry(out, entry, anchors, titles)
	out[#out + 1] = ('<a id="%s"></a>\n### %s\n'):format(anchors[entry], md_text(entry.title))
	if #entry.aliases > 0 then out[#out + 1] = 'Also `' .. table.concat(entry.aliases, '`, `') .. '`.\n' end
	if entry.usage and entry.kind ~= 'concept' and entry.kind ~= 'module' then
		out[#out + 1] = '```lua\n' .. usages(entry) .. '\n```\n'
	end
	for _, paragraph in ipairs(paragraphs(entry.text or '')) do
		out[#out + 1] = (paragraph:find '^%s%s' and '```text\n' .. paragraph .. '\n```' or md_text(paragraph)) .. '\n'
	end
	if #entry.options > 0 then
		out[#out + 1] = '| option | type | |\n|---|---|---|'
		for _, o in ipairs(entry.options) do
			out[#out + 1] = ('| `%s` | %s | %s |'):format(o[1], o[2], md_text(option_text(o)))
		end
		out[#out + 1] = ''
	end
	if entry.example then out[#out + 1] = '```lua\n' .. entry.example .. '\n```\n' end
	local links = {}
	for _, title in ipairs(index.related(entry)) do
		if titles[title] then links[#links + 1] = ('[%s](#%s)'):format(md_text(title), titles[title]) end
	end
	if #links > 0 then out[#out + 1] = 'See also ' .. table.concat(links, ', ') .. '.\n' end
end

function manual.md(program)
	local list = chapters()
	local anchors, titles = number(list)
	local out = {('# Quoll %s: reference\n'):format(program.version),
		'Everything below is a global name, in scripts and at the prompt, where `help \'name\'` shows the same. Written by ' ..
		'`quoll doc --md`.\n'}
	for i, chapter in ipairs(list) do out[#out + 1] = ('- [%s](#c%d)'):format(chapter.heading, i) end
	for i, chapter in ipairs(list) do
		out[#out + 1] = ('\n<a id="c%d"></a>\n## %s\n'):format(i, chapter.heading)
		if chapter.intro then md_entry(out, chapter.intro, anchors, titles) end
		for _, entry in ipairs(chapter.entries) do md_entry(out, entry, anchors, titles) end
	end
	return table.concat(out, '\n') .. '\n'
end

---------------------------------------------------------------- HTML

local escape = mime.escape

local function html_text(text)
	return (escape(text):gsub('`([^`]*)`', '<code>%1</code>'))
end

local function html_entry(out, entry, anchors, titles, highlight)
	out[#out + 1] = ('<h3 id="%s">%s</h3>'):format(anchors[entry], escape(entry.title))
	if #entry.aliases > 0 then
		out[#out + 1] = '<p class="note">Also <code>' .. escape(table.concat(entry.aliases, ', ')) .. '</code></p>'
	end
	if entry.usage and entry.kind ~= 'concept' and entry.kind ~= 'module' then
		out[#out + 1] = '<pre><code>' .. highlight(usages(entry)) .. '</code></pre>'
	end
	for _, paragraph in ipairs(paragraphs(entry.text or '')) do
		out[#out + 1] = paragraph:find '^%s%s' and '<pre>' .. escape(paragraph) .. '</pre>' or '<p>' .. html_text(paragraph) .. '</p>'
	end
	if #entry.options > 0 then
		out[#out + 1] = '<table><tr><th>option</th><th>type</th><th></th></tr>'
		for _, o in ipairs(entry.options) do
			out[#out + 1] = ('<tr><td><code>%s</code></td><td>%s</td><td>%s</td></tr>'):format(escape(o[1]), escape(o[2]),
				html_text(option_text(o)))
		end
		out[#out + 1] = '</table>'
	end
	if entry.example then out[#out + 1] = '<pre><code>' .. highlight(entry.example) .. '</code></pre>' end
	local links = {}
	for _, title in ipairs(index.related(entry)) do
		if titles[title] then links[#links + 1] = ('<a href="#%s">%s</a>'):format(titles[title], escape(title)) end
	end
	if #links > 0 then out[#out + 1] = '<p class="note">See also ' .. table.concat(links, ', ') .. '</p>' end
end

function manual.html(program)
	local list = chapters()
	local anchors, titles = number(list)
	local highlight = internal.import 'interp/notebook/highlight'
	local out = {internal.import 'interp/prelude/page' :format(('Quoll %s: reference'):format(program.version)),
		('<main class="text"><h1>Quoll %s: reference</h1>'):format(program.version),
		'<p>Everything below is a global name, in scripts and at the prompt, where <code>help \'name\'</code> shows the same.</p><nav>'}
	for i, chapter in ipairs(list) do
		local names = {}
		for k, entry in ipairs(chapter.entries) do
			names[k] = ('<a href="#%s">%s</a>'):format(anchors[entry], escape(entry.title))
		end
		out[#out + 1] = ('<details><summary><a href="#c%d">%s</a></summary>%s</details>'):format(i, escape(chapter.heading),
			table.concat(names, ' '))
	end
	out[#out + 1] = '</nav>'
	for i, chapter in ipairs(list) do
		out[#out + 1] = ('<h2 id="c%d">%s</h2>'):format(i, escape(chapter.heading))
		if chapter.intro then html_entry(out, chapter.intro, anchors, titles, highlight) end
		for _, entry in ipairs(chapter.entries) do html_entry(out, entry, anchors, titles, highlight) end
	end
	return table.concat(out, '\n') .. '\n</main></body></html>\n'
end

return manual
