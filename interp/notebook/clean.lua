-- SPDX-License-Identifier: MIT
-- HTML and SVG of any origin made inert: the text is cut into tags and written again, with only the elements and
-- attributes of the lists below, every value escaped, every element closed. What could run, load or navigate is in no
-- list; elements that hide their content from the parser (script, style, …) go with it.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'

local function set(words)
	local s = {}
	for word in words:gmatch '%S+' do s[word] = true end
	return s
end

-- Their content is not markup, or no text for readers.
local DROPPED = set [[script style iframe object embed applet noscript noembed noframes template textarea select option
	xmp plaintext title desc metadata foreignobject math annotation-xml head audio video canvas frameset animate set
	animatemotion animatetransform handler listener]]

local HTML = set [[table thead tbody tfoot tr th td caption p br hr b strong i em u s del code pre kbd samp sub sup small span
	div ul ol li dl dt dd h1 h2 h3 h4 h5 h6 blockquote]]
local EMPTY = set 'br hr'

local SVG = {}
for name in ([[svg g path rect circle ellipse line polyline polygon text tspan defs clipPath linearGradient radialGradient
	stop use pattern marker mask symbol]]):gmatch '%S+' do
	SVG[name:lower()] = name
end
local SVG_ATTRIBUTES = {}
for name in ([[d points x y x1 y1 x2 y2 cx cy r rx ry fx fy dx dy width height viewBox transform fill fill-opacity fill-rule stroke
	stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit font-family
	font-size font-style font-weight text-anchor dominant-baseline alignment-baseline baseline-shift letter-spacing opacity
	clip-path clip-rule mask id offset stop-color stop-opacity gradientUnits gradientTransform spreadMethod patternUnits
	patternTransform patternContentUnits clipPathUnits markerWidth markerHeight refX refY orient marker-start marker-mid
	marker-end preserveAspectRatio rotate textLength lengthAdjust xml:space visibility color]]):gmatch '%S+' do
	SVG_ATTRIBUTES[name:lower()] = name
end

---------------------------------------------------------------- reading markup

local NAMED = {amp = '&', lt = '<', gt = '>', quot = '"', apos = "'", nbsp = '\u{A0}'}

-- Character references to characters.
local function decode(text)
	return (text:gsub('&(#?%w+);?', function(name)
		local digits = name:match '^#(%d+)$'
		local code = digits and tonumber(digits) or tonumber(name:match '^#[xX](%x+)$' or '', 16)
		if code then return code < 0x110000 and (code < 0xD800 or code > 0xDFFF) and utf8.char(code) or '\u{FFFD}' end
		return NAMED[name]
	end))
end

-- Attributes of a tag: names in lower case, the first of each.
local function attributes_of(text)
	local found, at = {}, 1
	while true do
		local name, stop = text:match('^[%s/]*([^%s=/>"\']+)%s*()', at)
		if not name then
			at = text:find('[%s/]', at + 1)
			if not at then return found end
		else
			local value, behind = text:match('^=%s*"([^"]*)"()', stop)
			if not value then value, behind = text:match("^=%s*'([^']*)'()", stop) end
			if not value then value, behind = text:match('^=%s*([^%s"\'>]*)()', stop) end
			name = name:lower()
			if not found[name] then found[name] = decode(value or '') end
			at = math.max(behind or stop, at + 1)
		end
	end
end

-- Where the tag that begins at `at` ends: a > outside of quotes.
local function tag_end(text, at)
	while true do
		local stop = text:find('[>"\']', at)
		if not stop then return nil end
		local c = text:sub(stop, stop)
		if c == '>' then return stop end
		at = text:find(c, stop + 1, true)
		if not at then return nil end
		at = at + 1
	end
end

-- Calls on(kind, name or text, attributes text) for 'text', 'open', 'close' in order.
local function each_piece(text, on)
	local at = 1
	while at <= #text do
		local from = text:find('<[%a/!?]', at)
		if not from then break end
		if from > at then on('text', text:sub(at, from - 1)) end
		local stop
		if text:find('^<!%-%-', from) then
			local _, close = text:find('-->', from + 4, true)
			stop = close
		elseif text:find('^<[!?]', from) then
			stop = text:find('>', from, true)
		else
			stop = tag_end(text, from + 1)
			local slash, name, rest = text:sub(from + 1, (stop or #text + 1) - 1):match '^(/?)([%a][^%s/>]*)(.*)$'
			if stop and name then on(slash == '/' and 'close' or 'open', name:lower(), rest) end
		end
		if not stop then return end -- the rest is an unfinished tag
		at = stop + 1
	end
	on('text', text:sub(at))
end

---------------------------------------------------------------- writing again

-- An attribute's value in SVG: references only into the picture itself.
local function svg_value(name, value)
	if value:find '[%z\1-\8\11\12\14-\31\\]' then return nil end
	local lower = value:lower()
	if lower:find('url', 1, true) and not lower:find '^url%(#[%w_.:-]+%)$' then return nil end
	if lower:find 'expression' or lower:find 'javascript' or lower:find '@' then return nil end
	if name == 'id' and not value:find '^[%w_.:-]+$' then return nil end
	return value
end

local function svg_attributes(name, given)
	local parts = {}
	for attribute, value in pairs(given) do
		local known = SVG_ATTRIBUTES[attribute]
		local kept = known and svg_value(known, value)
		if kept then parts[#parts + 1] = (' %s="%s"'):format(known, mime.escape(kept)) end
	end
	local target = name == 'use' and (given['href'] or given['xlink:href'])
	if target and target:find '^#[%w_.:-]+$' then parts[#parts + 1] = (' href="%s"'):format(target) end
	-- of a style only plain properties: as attributes they are in the list
	for property, value in (given.style or ''):gmatch '([%a-]+)%s*:%s*([^;]+)' do
		local known = SVG_ATTRIBUTES[property:lower()]
		local kept = known and not given[known:lower()] and svg_value(known, value)
		if kept and known ~= 'id' then parts[#parts + 1] = (' %s="%s"'):format(known, mime.escape(kept:gsub('%s+$', ''))) end
	end
	table.sort(parts)
	if name == 'svg' then table.insert(parts, 1, ' xmlns="http://www.w3.org/2000/svg"') end
	return table.concat(parts)
end

local function html_attributes(_, given)
	local parts = {}
	for _, name in ipairs {'colspan', 'rowspan'} do
		local value = given[name]
		if value and value:find '^%d%d?%d?%d?$' then parts[#parts + 1] = (' %s="%s"'):format(name, value) end
	end
	if given.class == 'n' or given.class == 'tensor' then parts[#parts + 1] = (' class="%s"'):format(given.class) end
	return table.concat(parts)
end

-- `tag_of(name)` gives the element as it is written, or nil.
local function rewrite(text, tag_of, attributes, empty)
	local out, open, dropping = {}, {}, nil
	each_piece(mime.clean(text), function(kind, name, rest)
		if kind == 'text' then
			if not dropping then out[#out + 1] = mime.escape(decode(name)) end
		elseif dropping then
			if kind == 'close' and name == dropping then dropping = nil end
		elseif kind == 'open' and DROPPED[name] then
			if not rest:find '/%s*$' then dropping = name end
		elseif kind == 'open' and tag_of(name) then
			local tag = tag_of(name)
			out[#out + 1] = '<' .. tag .. attributes(tag, attributes_of(rest)) .. '>'
			if empty[name] then return end
			if rest:find '/%s*$' then
				out[#out + 1] = '</' .. tag .. '>'
			else
				open[#open + 1] = tag
			end
		elseif kind == 'close' and tag_of(name) then
			for i = #open, 1, -1 do
				if open[i] == tag_of(name) then
					while #open >= i do out[#out + 1] = '</' .. table.remove(open) .. '>' end
					break
				end
			end
		end
	end)
	while #open > 0 do out[#out + 1] = '</' .. table.remove(open) .. '>' end
	return table.concat(out)
end

local clean = {}

function clean.html(text)
	return rewrite(text, function(name) return HTML[name] and name end, html_attributes, EMPTY)
end

-- The first <svg> of the text; nil when there is none.
function clean.svg(text)
	local at = text:lower():find '<svg[%s>]'
	if not at then return nil end
	local depth, inside = 0, false
	local written = rewrite(text:sub(at), function(name) return SVG[name] end, svg_attributes, {})
	-- what follows the picture's own end is none of it
	for from, slash, stop in written:gmatch '()<(/?)svg[^>]*>()' do
		depth = depth + (slash == '' and 1 or -1)
		inside = inside or from == 1
		if depth == 0 then return inside and written:sub(1, stop - 1) or nil end
	end
	return nil
end

return clean
