-- SPDX-License-Identifier: MIT
-- Lua code as HTML with a class for each kind of token: k keyword, s string, n number, c comment, e what a line is
-- expected to print (-->), g a name that every session has.
local _, internal = ...
local escape = internal.import 'interp/prelude/mime'.escape

local CLASSES = {keyword = 'k', string = 's', number = 'n', comment = 'c'}

return function(text)
	local tokens, out, at = internal.tokens(text), {}, 1
	local baseline, before = internal.baseline or {}, ''
	for i = 1, #tokens, 3 do
		local kind, from, to = tokens[i], tokens[i + 1], tokens[i + 2]
		local word = text:sub(from, to)
		local class = CLASSES[kind]
		if kind == 'comment' and word:find '^%-%->' then class = 'e' end
		if kind == 'name' and before ~= '.' and before ~= ':' and baseline[word] then class = 'g' end
		out[#out + 1] = escape(text:sub(at, from - 1))
		out[#out + 1] = class and ('<span class="%s">%s</span>'):format(class, escape(word)) or escape(word)
		at, before = to + 1, word
	end
	out[#out + 1] = escape(text:sub(at))
	return table.concat(out)
end
