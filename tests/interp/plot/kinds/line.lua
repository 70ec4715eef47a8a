-- SPDX-License-Identifier: MIT
-- Lines: the data's forms, what is drawn where (read back from the SVG), gaps, thinning, the text plot.
local function text(fig) return (fig:text{width = 40, height = 10}:gsub('\n$', '')) end

-- Points of each line of data, as {x, y}, in the order drawn.
local function lines(fig)
	local all = {}
	for colour, points in fig:svg():gmatch '<polyline stroke%-width="2.2[0e+]*" stroke="(#%x+)" fill="none" points="([^"]*)"' do
		local line = {colour = colour}
		for x, y in points:gmatch '([%d.-]+),([%d.-]+)' do line[#line + 1] = {tonumber(x), tonumber(y)} end
		all[#all + 1] = line
	end
	return all
end

local pictures = pcall(function() return plot.line{{1, 2}}:svg() end)

describe('data', function()
	local wanted = [[
                squares
ms
   │                               ⣀⡠⠔⠒●
   │                         ⢀⣀⠤⠔⠒⠉
10 ┤                  ⢀⣀⡠⠤⠔●⠊⠁
   │          ⢀⣀●⠤⠤⠒⠒⠉⠁
   │●⠤⠤⠤⠔⠒⠒⠉⠉⠉⠁
   └┬───────────┬──────────┬───────────┬
    1           2          3           4
                      n]]
	local options = {xlabel = 'n', ylabel = 'ms', title = 'squares'}
	local function with(data)
		for name, value in pairs(options) do data[name] = value end
		return text(plot.line(data))
	end
	it('is y by position, a list, pairs or a tensor', function()
		assert(with{{1, 4, 9, 16}} == wanted)
		assert(with{1, 4, 9, 16} == wanted)
		assert(with{y = {1, 4, 9, 16}} == wanted)
		assert(with{x = {1, 2, 3, 4}, y = {1, 4, 9, 16}} == wanted)
		assert(with{{{1, 1}, {2, 4}, {3, 9}, {4, 16}}} == wanted)
		assert(with{{1, 1}, {2, 4}, {3, 9}, {4, 16}} == wanted)
		assert(with{tensor{1, 4, 9, 16}} == wanted)
		assert(with{tensor{{1, 1}, {2, 4}, {3, 9}, {4, 16}}} == wanted)
		assert(with{x = tensor{1, 2, 3, 4}, y = tensor{1, 4, 9, 16}} == wanted)
		assert(with{{x = {1, 2, 3, 4}, y = {1, 4, 9, 16}}} == wanted)
		assert(text(plot.line({1, 4, 9, 16}, options)) == wanted)
		assert(text(plot.line(tensor{1, 4, 9, 16}, options)) == wanted)
	end)
	it('of a quantized tensor is what it stands for', function()
		local q = tensor{0, 50, 127}:quantize{dtype = 'int8', scale = 0.5}
		assert(text(plot.line{q}) == text(plot.line{{0, 50, 63.5}}))
	end)
	it('may be several series', function()
		local two = [[
                        ⠒●⠒ up  ⠒■⠒ down
3 ┤■⠒⠤⣀⡀                           ⢀⣀⠤⠒●
  │    ⠈⠉⠒⠢⠤⣀⡀               ⢀⣀⠤⠔⠒⠉⠁
  │          ⠈⠑⠒⠤⢄⣀     ⣀⡠⠤⠒⠊⠁
2 ┤                ⣉⡱■⢎⣉
  │          ⢀⡠⠤⠒⠊⠉     ⠉⠑⠒⠤⢄⡀
  │    ⢀⣀⠤⠔⠒⠉⠁               ⠈⠉⠒⠢⠤⣀⡀
1 ┤●⠤⠒⠉⠁                           ⠈⠉⠒⠤■
  └┬─────────────────┬─────────────────┬
   1                 2                 3]]
		local up, down, names = {1, 2, 3}, {3, 2, 1}, {'up', 'down'}
		assert(text(plot.line{up, down, names = names}) == two)
		assert(text(plot.line{x = {1, 2, 3}, y = {up, down}, names = names}) == two)
		assert(text(plot.line{y = {up, tensor(down)}, names = names}) == two)
		assert(text(plot.line{{y = up, name = 'up'}, {x = {1, 2, 3}, y = down, name = 'down'}}) == two)
		assert(text(plot.line{x = {1, 1, 2, 2, 3, 3}, y = {1, 3, 2, 2, 3, 1}, group = {'up', 'down', 'up', 'down', 'up', 'down'}}) == two)
	end)
	it('over texts has categories', function()
		assert(text(plot.line{x = {'int8', 'int4', 'int2'}, y = {3, 2, 1}}) == [[
3 ┤      ●⢄⡀
  │        ⠈⠑⠤⣀
  │            ⠑⠢⢄⡀
2 ┤               ⠈⠒⠤●
  │                  ⠈⠒⠤⡀
  │                     ⠈⠑⠢⢄
  │                         ⠉⠒⢄⡀
1 ┤                            ⠈⠑●
  └──────┬───────────┬───────────┬──────
       int8         int4        int2]])
	end)
end)

describe('axes', function()
	it('may be logarithmic', function()
		assert(text(plot.line{x = {1, 10, 100}, y = {0.01, 1, 100}, xlog = true, ylog = true}) == [[
 100 ┤                              ⢀⡠⠔●
     │                          ⣀⠤⠒⠉⠁
     │                     ⢀⡠⠔⠊⠉
   1 ┤                 ●⠤⠒⠉⠁
     │            ⢀⣀⠤⠒⠉
     │        ⣀⡠⠔⠊⠁
     │   ⢀⣀⠤⠒⠉
0.01 ┤●⠔⠊⠁
     └┬────────────────┬───────────────┬
      1               10             100]])
	end)
	it('show constant data in the middle and nothing as nothing', function()
		assert(text(plot.line{{5, 5, 5}}):find '\n5 ┤●')
		assert(text(plot.line{}):find 'no data')
		assert(text(plot.line{y = {}}):find 'no data')
	end)
	it('leave out what cannot be shown and say so', function()
		assert(text(plot.line{{0 / 0, 1, 2, 0 / 0, 3, 1 / 0}}):find('3 of 6 values not shown (not finite)', 1, true))
		local log = text(plot.line{{-1, 0, 1, 10}, ylog = true, width = 960})
		assert(log:find('2 of 4 values not shown (not finite, or', 1, true))
	end)
	it('hold what xlim and ylim say', function()
		local plain = text(plot.line{{1, 2, 3}, ylim = {0, 10}})
		assert(plain:find '10 ┤' and plain:find '\n 0 ┤')
		assert(text(plot.line{{1, 2, 3}, ylim = {10, 0}}):match '^ *(%d+) ┤' == '0')
	end)
	it('have reference lines with names', function()
		local plain = text(plot.line{{1, 2, 3}, vlines = {mid = 2}, hlines = 2.5})
		assert(plain:find 'mid' and plain:find '⠉ ⠉')
		plain = text(plot.line{{1, 2, 3}, hlines = {low = 1.5, 2.5, high = 2}})
		assert(plain:find 'low' and plain:find 'high')
	end)
end)

describe('the picture', function()
	if not pictures then skip 'plplot is not installed' end
	it('puts points where they belong', function()
		local line = lines(plot.line{{1, 4, 9, 16}})[1]
		assert(#line == 4 and line.colour == '#0072B2')
		local dy, dx = line[2][2] - line[1][2], line[2][1] - line[1][1]
		assert(math.abs((line[3][2] - line[1][2]) / dy - 8 / 3) < 0.01)
		assert(math.abs((line[4][2] - line[1][2]) / dy - 15 / 3) < 0.01)
		assert(math.abs((line[4][1] - line[1][1]) / dx - 3) < 0.01)
	end)
	it('is straight for a power law on two logarithmic axes', function()
		local x, y = {}, {}
		for i = 1, 20 do x[i], y[i] = 2.0 ^ i, 3 * 2.0 ^ (1.5 * i) end
		local line = lines(plot.line{x = x, y = y, xlog = true, ylog = true})[1]
		local slope = (line[20][2] - line[1][2]) / (line[20][1] - line[1][1])
		for i = 2, 20 do assert(math.abs((line[i][2] - line[1][2]) / (line[i][1] - line[1][1]) - slope) < 0.005) end
	end)
	it('leaves gaps', function()
		local all = lines(plot.line{{1, 2, 0 / 0, 4, 5, 1 / 0, 7, 0 / 0, 9, 3}})
		assert(#all == 3 and #all[1] == 2 and #all[2] == 2 and #all[3] == 2) -- 7 stands alone: a mark
	end)
	it('has a colour per series', function()
		local all = lines(plot.line{{1, 2}, {2, 3}, {3, 1}, names = {'a', 'b', 'c'}, legend = 'none'})
		assert(#all == 3 and all[1].colour ~= all[2].colour and all[2].colour ~= all[3].colour)
	end)
	it('thins long lines and keeps their extremes', function()
		local y = {}
		for i = 1, 100000 do y[i] = math.sin(i / 300) end
		y[77777], y[33333] = 9, -9
		local n, lo, hi = 0, math.huge, -math.huge
		for _, line in ipairs(lines(plot.line{y})) do -- plplot writes long ones in pieces
			n = n + #line
			for _, p in ipairs(line) do lo, hi = math.min(lo, p[2]), math.max(hi, p[2]) end
		end
		assert(n < 4000 and n > 1500, n)
		assert(hi - lo > 450) -- of 540 pixels: both spikes are there
	end)
end)
