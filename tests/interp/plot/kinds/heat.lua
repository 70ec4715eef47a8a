-- SPDX-License-Identifier: MIT
-- Matrices as colours: which cell has which colour, names, values, blocks of big matrices.
local function text(fig) return (fig:text{width = 40, height = 10}:gsub('\n$', '')) end
local pictures = pcall(function() return plot.heat{{1, 2}, {3, 4}}:svg() end)

-- Filled boxes wider than the colour bar: {colour, middle x, middle y}
local function cells(svg)
	local all = {}
	for colour, points in svg:gmatch '<polyline fill="(#%x+)" points="([^"]*)"' do
		local x0, x1, y0, y1 = math.huge, -math.huge, math.huge, -math.huge
		for x, y in points:gmatch '([%d.-]+),([%d.-]+)' do
			x, y = tonumber(x), tonumber(y)
			x0, x1, y0, y1 = math.min(x0, x), math.max(x1, x), math.min(y0, y), math.max(y1, y)
		end
		if x1 - x0 > 20 then all[#all + 1] = {colour = colour, x = (x0 + x1) / 2, y = (y0 + y1) / 2, width = x1 - x0} end
	end
	return all
end

describe('text', function()
	it('has shades, row 1 on top', function()
		assert(text(plot.heat{{1, 2, 3}, {4, 5, 6}}) == [[
  │           ░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒ ██ 6
1 ┤           ░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒ ██
  │           ░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒ ▓▓
  │           ░░░░░░░░░░▒▒▒▒▒▒▒▒▒▒▒ ▒▒ 4
  │▓▓▓▓▓▓▓▓▓▓▓█████████████████████ ▒▒
2 ┤▓▓▓▓▓▓▓▓▓▓▓█████████████████████ ░░
  │▓▓▓▓▓▓▓▓▓▓▓█████████████████████    2
  │▓▓▓▓▓▓▓▓▓▓▓█████████████████████
  └─────┬──────────┬─────────┬─────
        1         2          3]])
	end)
	it('has names and marks what is missing', function()
		local plain = text(plot.heat{{0, 0.5}, {0 / 0, 1}, xnames = {'p', 'q'}, ynames = {'r', 's'}})
		assert(plain:find '\nr ┤ +▒+' and plain:find '\ns ┤%?+█+' and plain:find ' p +q')
		assert(plain:find('1 of 4 cells are not finite (gray)', 1, true))
	end)
	it('takes a tensor or rows, in any of three ways', function()
		local wanted = text(plot.heat{{1, 2}, {3, 4}})
		assert(text(plot.heat{{{1, 2}, {3, 4}}}) == wanted)
		assert(text(plot.heat{tensor{{1, 2}, {3, 4}}}) == wanted)
		assert(text(plot.heat(tensor{{1, 2}, {3, 4}})) == wanted)
		assert(text(plot.heat({{1, 2}, {3, 4}}, {})) == wanted)
		assert(text(plot.heat{tensor{{1, 3}, {2, 4}}:t()}) == wanted)
	end)
	it('has colours when asked to, two cells in a character', function()
		local plain = plot.heat{{1, 2}, {3, 4}}:text{width = 40, height = 10, colour = true}
		assert(plain:find('\27[38;2;68;1;84m', 1, true) and plain:find('\27[38;2;253;231;37m', 1, true) and plain:find '▀')
	end)
end)

describe('the picture', function()
	if not pictures then skip 'plplot is not installed' end
	it('has the ends of viridis for the least and the greatest value', function()
		local c = cells(plot.heat{{0, 1}, {2, 3}}:svg())
		assert(#c == 4 and c[1].colour == '#440154' and c[4].colour == '#FDE725')
		assert(c[1].x < c[2].x and c[1].y == c[2].y and c[1].y > c[3].y) -- y grows upwards
	end)
	it('takes the range and white for 0 of the diverging colours', function()
		local c = cells(plot.heat{{-1, 0.001}, {0, 1}, colours = 'diverging', range = {-1, 1}}:svg())
		assert(c[1].colour == '#2B5CB0' and c[3].colour == '#F7F6F6', c[3].colour)
		assert(cells(plot.heat{{0, 5}, {7, 9}, range = {0, 5}}:svg())[2].colour == '#FDE725')
	end)
	it('averages what is finer than it can show and says so', function()
		local rows = {}
		for i = 1, 3 do
			rows[i] = {}
			for k = 1, 5000 do rows[i][k] = k % 2 end -- averages to one half everywhere
		end
		local fig = plot.heat{rows}
		assert(fig:text():find('each block is the mean of 1 x 63 cells', 1, true))
		local all = cells(fig:svg())
		assert(#all == 3 and all[1].colour == all[3].colour) -- equal blocks become one box a row
		assert(all[1].colour:find '^#2[12]9[0-3]8[A-F]$', all[1].colour) -- the middle of viridis is 21918C
	end)
	it('shows constants and infinities', function()
		assert(#cells(plot.heat{{1, 1}, {1, 1 / 0}}:svg()) >= 3)
	end)
end)

local function refused(data) return select(2, pcall(plot.heat, data)) end
print(refused{{1, 2}, {3}})  --> plot.heat: matrix: row 2: wanted 2 numbers as in row 1, got 1
print(refused{5})  --> plot.heat: matrix: wanted a tensor of shape (rows, columns) or a list of rows, got number
print(refused{tensor{1, 2}})  --> plot.heat: matrix: wanted a tensor of shape (rows, columns), got one of rank 1
print(refused{{1, 2}, {3, 4}, xnames = {'a'}})  --> plot.heat: xnames: wanted 2 texts, got 1
print(refused{{1, 2}, {3, 4}, colours = 'virdis'})  --> plot.heat: colours: wanted one of viridis diverging gray, got 'virdis'; did you mean 'viridis'?
