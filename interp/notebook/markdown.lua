-- SPDX-License-Identifier: MIT
-- A notebook as a Markdown file: text cells as they are, code in fences, outputs in fences below it; pictures become
-- files in the folder <name>_files beside it.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'
local notebook = internal.import 'interp/notebook/notebook'

-- A fence longer than any run of its sign in the text.
local function fenced(text, language)
	local longest = 2
	for run in text:gmatch '`+' do longest = math.max(longest, #run) end
	local fence = ('`'):rep(longest + 1)
	return fence .. (language or '') .. '\n' .. text:gsub('\n+$', '') .. '\n' .. fence
end

local KINDS = {{'image/svg+xml', 'svg'}, {'image/png', 'png'}, {'image/jpeg', 'jpg'}, {'image/gif', 'gif'}}

-- `add_file(ending, bytes)` writes a picture and returns its name as it is linked.
local function bundle(data, add_file)
	for _, kind in ipairs(KINDS) do
		local text = data[kind[1]]
		local bytes = type(text) == 'string' and (kind[2] == 'svg' and text or mime.from_base64(text))
		if bytes then
			local words = type(data['text/plain']) == 'string' and data['text/plain'] or 'figure'
			return ('![%s](%s)'):format(mime.clean(words):gsub('[%[%]\n\\`]', ' '), add_file(kind[2], bytes))
		end
	end
	if type(data['text/markdown']) == 'string' then return data['text/markdown'] end
	return type(data['text/plain']) == 'string' and fenced(mime.clean(data['text/plain']), 'text') or nil
end

local function output(o, add_file)
	if o.data then return bundle(o.data, add_file) end
	if o.output_type == 'error' then return fenced(mime.clean(table.concat(o.traceback, '\n')), 'text') end
	return fenced(mime.clean(o.text), 'text')
end

local function link(text)
	return (text:gsub('[^%w_./-]', function(c) return ('%%%02X'):format(c:byte()) end))
end

return function(nb, file)
	local out, n = {}, 0
	local folder = file:gsub('%.%w+$', '') .. '_files'
	local function add_file(ending, bytes)
		if n == 0 then internal.make_folder(folder) end
		n = n + 1
		local name = ('%s/%d.%s'):format(folder, n, ending)
		internal.write_file(name, bytes)
		return link(name:match '[^/]*/[^/]*$')
	end
	for i, cell in ipairs(nb.cells) do
		if cell.kind == 'markdown' then
			out[#out + 1] = cell.source
		elseif cell.kind == 'code' and cell.source ~= '' and not (i == 1 and not notebook.runs(cell)) and not cell.tags.hide then
			out[#out + 1] = fenced(cell.source, 'lua')
			for _, o in ipairs(cell.outputs or {}) do out[#out + 1] = output(o, add_file) end
		end
	end
	internal.write_file(file, table.concat(out, '\n\n') .. '\n')
end
