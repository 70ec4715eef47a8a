-- SPDX-License-Identifier: MIT
-- Images: layouts, colours of single pixels, ranges, grids with titles, every output, and what is refused.
local function text(fig, o) return (fig:text(o or {width = 40, height = 12}):gsub('\n+$', '')) end
local pictures = pcall(function() return plot.line{1, 2}:svg() end)

-- Colours of a text plot by lines: {{top, bottom}, …} of the half blocks.
local function colours(fig, width, height)
	local rows = {}
	for line in fig:text{width = width, height = height, colour = true}:gmatch '[^\n]*' do
		local front, back, row = nil, nil, {}
		for code, rest in line:gmatch '\27%[([%d;]*)m([^\27]*)' do
			local ground, r, g, b = code:match '^(%d)8;2;(%d+);(%d+);(%d+)'
			if ground == '3' then front = ('%d,%d,%d'):format(r, g, b) elseif ground then back = ('%d,%d,%d'):format(r, g, b) end
			for _ in rest:gmatch '▀' do row[#row + 1] = {front, back} end
		end
		if #row > 0 then rows[#rows + 1] = row end
	end
	return rows
end

local rgb = tensor{{{255, 0, 0}, {0, 255, 0}}, {{0, 0, 255}, {255, 255, 255}}, dtype = 'uint8'} -- (H, W, 3)

it('shows the colours of the pixels, whatever the layout', function()
	for name, x in pairs {hwc = rgb, chw = rgb:permute(3, 1, 2), nchw = rgb:permute(3, 1, 2):unsqueeze(1), nhwc = rgb:unsqueeze(1)} do
		local rows = colours(plot.image{x, layout = name}, 40, 20)
		assert(rows[1][1][1] == '255,0,0' and rows[1][#rows[1]][1] == '0,255,0', name)
		local last = rows[#rows]
		assert(last[1][2] == '0,0,255' and last[#last][2] == '255,255,255', name)
	end
	local wide = tensor.zeros{2, 5, 3, dtype = 'uint8'}
	assert(tostring(plot.image(wide)) == 'image figure, 1 of 2 x 5 RGB')
	assert(tostring(plot.image(wide:permute(3, 1, 2))) == 'image figure, 1 of 2 x 5 RGB')
	assert(tostring(plot.image(tensor.zeros(7, 2, 5))) == 'image figure, 7 of 2 x 5')
	assert(tostring(plot.image(tensor.zeros(7, 1, 2, 5))) == 'image figure, 7 of 2 x 5')
	assert(tostring(plot.image(tensor.zeros(4, 2, 5, 3))) == 'image figure, 4 of 2 x 5 RGB')
	assert(tostring(plot.image(tensor.zeros(1, 2, 5))) == 'image figure, 1 of 2 x 5')
	assert(tostring(plot.image(tensor.zeros(6, 5, 2))) == 'image figure, 6 of 5 x 2')
	assert(tostring(plot.image(tensor.zeros{6, 5, 2, dtype = 'uint8'})) == 'image figure, 1 of 6 x 5')
end)
it('blends alpha over white', function()
	local x = tensor{{{0, 255}, {0, 0}, {200, 51}}, dtype = 'uint8'} -- gray with alpha: black, clear, 0.2 of 200
	local row = colours(plot.image{x, layout = 'hwc'}, 60, 12)[1]
	assert(row[1][1] == '0,0,0' and row[#row // 2 + 1][1] == '255,255,255' and row[#row][1] == '244,244,244', row[#row][1])
end)
it('spans what the dtype or the values say', function()
	local function ends(x, o)
		local options = {x}
		for k, v in pairs(o or {}) do options[k] = v end
		local rows = colours(plot.image(options), 40, 12)
		return rows[1][1][1] .. ' ' .. rows[1][#rows[1]][1]
	end
	assert(ends(tensor{{0, 128}, dtype = 'uint8'}) == '0,0,0 128,128,128')
	assert(ends(tensor{{0, 0.5}}) == '0,0,0 128,128,128')
	assert(ends(tensor{{1, 3}}) == '0,0,0 255,255,255')
	assert(text(plot.image{tensor{{1, 3}}}):find 'black is 1, white 3')
	assert(ends(tensor{{0, 1}, dtype = 'bool'}) == '0,0,0 255,255,255')
	assert(ends(tensor{{0, 128}, dtype = 'uint8'}, {range = {0, 128}}) == '0,0,0 255,255,255')
	assert(ends(tensor{{0, 0 / 0}}):find ' 221,221,221$' and text(plot.image{tensor{{0, 0 / 0}}}):find '1 of 2 values are not finite')
end)
it('shows codes and errors as colours with a colour bar', function()
	local x = tensor{{-1, 0.5}, {0.25, 1}}
	local q = x:quantize 'int8'
	assert(text(plot.image{q}) == text(plot.image{q:codes(), colours = 'viridis'}))
	assert(text(plot.image{q}):find '100' and not text(plot.image{q, codes = false}):find '100')
	local shown = text(plot.image{x - q:dequantize()})
	assert(shown:find(' 0.002', 1, true) and shown:find('−0.002', 1, true), shown) -- labels of the bar
	local rows = colours(plot.image{tensor{{-2, 2}}}, 40, 12)
	local found = {}
	for _, row in ipairs(rows) do
		for i, cell in ipairs(row) do found[cell[1]] = i < #row - 1 or found[cell[1]] end -- left of the bar
	end
	assert(found['43,92,176'] and found['178,24,43'])
	assert(not text(plot.image{tensor{{0, 1}}}):find '%d')
end)
it('makes a grid of a batch, with titles', function()
	local names = {}
	for i = 1, 6 do names[i] = 'cat ' .. i end
	local shown = text(plot.image{tensor.rand(6, 4, 4), titles = names, title = 'all'}, {width = 80, height = 22})
	for _, name in ipairs(names) do assert(shown:find(name, 1, true), shown) end
	assert(shown:find 'all' and shown:find 'cat 1 +cat 2 +cat 3')
	assert(text(plot.image{tensor.rand(6, 4, 4), titles = names, columns = 2}, {width = 80, height = 40}):find 'cat 1 +cat 2\n')
	assert(text(plot.image(tensor.rand(100, 2, 2))):find 'the first 64 of 100 images')
end)
it('shades without colours: bright is full', function()
	local shown = text(plot.image{tensor{{0, 1}}})
	assert(shown:find '  +██' and not shown:find '░')
end)
if pictures then
	it('as PNG, SVG and PDF, and in terminals', function()
		local fig = plot.image{rgb, file = os.tmpname() .. '.png'}
		assert(fig:png():sub(2, 4) == 'PNG' and fig:pdf():sub(1, 4) == '%PDF')
		local svg = fig:svg()
		for _, colour in ipairs {'#ff0000', '#00ff00', '#0000ff'} do assert(svg:lower():find(colour, 1, true), colour) end
		for _, protocol in ipairs {'kitty', 'iterm', 'sixel'} do assert(#fig:encode(protocol) > 100) end
	end)
	it('averages what is finer than a picture, and says so', function()
		local svg = plot.image{tensor.rand(1500, 1500)}:svg()
		assert(#svg < 8e6 and svg:gsub('&#x(%x+);', function(c) return utf8.char(tonumber(c, 16)) end):find 'mean of %d+ x %d+ pixels')
	end)
	it('has the pixels in a PNG', function()
		local file = os.tmpname() .. '.png'
		plot.image{rgb, file = file, width = 400, height = 400}
		local back = tensor.load(file)
		os.remove(file)
		assert(back[{100, 100, 1}]:item() == 255 and back[{100, 100, 2}]:item() == 0 and back[{100, 300, 2}]:item() == 255)
		assert(back[{300, 100, 3}]:item() == 255 and back[{300, 300, 1}]:item() == 255)
	end)
end
it('refuses', function()
	local function refused(wanted, options)
		local good, message = pcall(plot.image, options)
		assert(not good and message:find(wanted, 1, true), message)
	end
	refused('got table', {{1, 2}})
	refused('got one of another rank', {tensor{1, 2}})
	refused('got several', {tensor.zeros(2, 2), tensor.zeros(2, 2)})
	refused("layout='chw' or 'hwc' says which", {tensor.zeros(3, 5, 3)})
	refused("wanted a tensor of rank 3 for layout='chw', got one of rank 2", {tensor.zeros(3, 5), layout = 'chw'})
	refused('wanted 1 (gray) or 3 (RGB) channels, 2 or 4 with alpha, got 5', {tensor.zeros(5, 8, 8), layout = 'chw'})
	refused('got an empty tensor', {tensor.zeros(0, 5)})
	refused('titles: wanted 3 texts, got 1', {tensor.zeros(3, 8, 8), layout = 'nhw', titles = {'a'}})
	refused('colours: wanted images of one channel, got RGB', {rgb, layout = 'hwc', colours = 'viridis'})
	refused('range: wanted {lo, hi}, finite and lo < hi, got {2, 1}', {tensor.zeros(8, 8), range = {2, 1}})
	local text = plot.image {tensor{{-1, 1}}, range = {-1.7e308, 1.7e308}}:text() -- hi - lo is no float64
	assert(text:find '×10³⁰⁷' and not text:find 'nan', text)
	refused('codes: wanted a quantized tensor of one channel, got a plain one', {tensor.zeros(8, 8), codes = true})
	refused("unknown option 'xlog'", {tensor.zeros(8, 8), xlog = true})
	refused('columns: wanted 1 or more, got 0', {tensor.zeros(8, 8), columns = 0})
end)
