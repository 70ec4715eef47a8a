-- SPDX-License-Identifier: MIT
-- Which HTML and SVG of an output a page takes as markup: text in which every tag is one of those that Quoll itself writes, with
-- their few attributes, each closed in its turn. No tag or attribute of the lists can run, load or navigate. Nothing is repaired:
-- one other tag, and the page shows HTML as text and SVG as a picture of its own.
local function set(words)
	local s = {}
	for word in words:gmatch '%S+' do s[word] = true end
	return s
end

-- Tables of tensors, reports and models, and words in them.
local HTML = set 'table caption thead tbody tfoot tr th td div p br b i em strong code pre ul ol li'
local EMPTY = set 'br'
local HTML_ATTRIBUTES = {class = '^%l+$', colspan = '^%d%d?%d?%d?$', rowspan = '^%d%d?%d?%d?$'}

-- Figures (interp/plot/svg.c).
local SVG = set 'svg g defs clipPath rect circle ellipse line polyline polygon path text tspan'
local SVG_ATTRIBUTES = {xmlns = '^http://www%.w3%.org/2000/svg$', ['clip-path'] = '^url%(#[%w_-]+%)$'}
for name in pairs(set [[id version width height viewBox x y x1 y1 x2 y2 cx cy r rx ry d points transform fill fill-opacity fill-rule stroke
	stroke-width stroke-opacity stroke-dasharray stroke-linecap stroke-linejoin opacity color font-family font-size font-style font-weight
	text-anchor dominant-baseline xml:space]]) do
	SVG_ATTRIBUTES[name] = '^[%w%s#.,+%%_-]*$'
end
SVG_ATTRIBUTES.transform = '^[%w%s.,()+-]*$'

local function are_known(words, attributes)
	local at = 1
	while true do
		local name, value, stop = words:match('^%s*([%a][%w:-]*)="([^"<>]*)"()', at)
		if not name then return not words:find('%S', at) end
		if not attributes[name] or not value:find(attributes[name]) then return false end
		at = stop
	end
end

-- `empty`: elements without an end; nil: those whose tag says so, as in XML.
local function is_plain(text, tags, attributes, empty)
	local open = {}
	local rest = text:gsub('<(/?)(%a+)([^<>]-)(/?)>', function(slash, name, words, closed)
		if not tags[name] then return nil end
		if slash == '/' then return words == '' and closed == '' and table.remove(open) == name and '' or nil end
		if empty and closed ~= '' or not are_known(words, attributes) then return nil end
		if closed == '' and not (empty and empty[name]) then open[#open + 1] = name end
		return ''
	end)
	return not rest:find '[<>]' and #open == 0
end

local plain = {}

function plain.is_html(text) return is_plain(text, HTML, HTML_ATTRIBUTES, EMPTY) end

-- The picture of the text, without what precedes it; nil: there is none, or it has other markup.
function plain.svg(text)
	local at = text:find '<svg[%s>]'
	local picture = at and text:sub(at)
	return picture and picture:find '</svg>%s*$' and is_plain(picture, SVG, SVG_ATTRIBUTES) and picture or nil
end

return plain
