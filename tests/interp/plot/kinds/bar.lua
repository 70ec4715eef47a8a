-- SPDX-License-Identifier: MIT
-- Bars: heights from 0, groups and stacks, side ways, what the text plot looks like.
local function text(fig, height) return (fig:text{width = 40, height = height or 10}:gsub('\n$', '')) end

-- Filled boxes of the first two colours, as {x0=, y0=, x1=, y1=, colour=}.
local function boxes(fig)
	local all = {}
	for colour, points in fig:svg():gmatch '<polyline fill="(#%x+)" points="([^"]*)"' do
		local b = {x0 = math.huge, y0 = math.huge, x1 = -math.huge, y1 = -math.huge, colour = colour}
		for x, y in points:gmatch '([%d.-]+),([%d.-]+)' do
			x, y = tonumber(x), tonumber(y)
			b.x0, b.x1, b.y0, b.y1 = math.min(b.x0, x), math.max(b.x1, x), math.min(b.y0, y), math.max(b.y1, y)
		end
		if colour == '#0072B2' or colour == '#D55E00' then all[#all + 1] = b end
	end
	return all
end

local pictures = pcall(function() return plot.bar{{1, 2}}:svg() end)

describe('text', function()
	it('has bars in eighths and their values', function()
		assert(text(plot.bar{x = {'int8', 'int4'}, y = {42.1, 20.3}, ylabel = 'dB'}) == [[
dB
50 ┤       42.1
   │  ▃▃▃▃▃▃▃▃▃▃▃▃▃▃
   │  ██████████████
25 ┤  ██████████████         20.3
   │  ██████████████    ▅▅▅▅▅▅▅▅▅▅▅▅▅▅
   │  ██████████████    ██████████████
 0 ┤  ██████████████    ██████████████
   └─────────┬─────────────────┬────────
           int8              int4]])
	end)
	it('distinguishes series by shades', function()
		assert(text(plot.bar{x = {'a', 'b'}, y = {{3, 2}, {1, 4}}, names = {'p', 'q'}, stacked = true}) == [[
                            ███ p  ▓▓▓ q
  │
  │                     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓
5 ┤                     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓
  │  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓
  │  ▆▆▆▆▆▆▆▆▆▆▆▆▆▆     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓
  │  ██████████████     ▆▆▆▆▆▆▆▆▆▆▆▆▆▆
0 ┤  ██████████████     ██████████████
  └─────────┬─────────────────┬─────────
            a                 b]])
	end)
	it('lies on its side when names are long', function()
		assert(text(plot.bar{x = {'a long name', 'another one'}, y = {4, 2}, horizontal = true}, 8) == [[
            │██████████████████▍
a long name ┤██████████████████▍ 4
            │
            │█████████▏
another one ┤█████████▏ 2
            │
            └┬────────┬────────┬────────
            0         2        4]])
		assert(text(plot.bar{x = {'a long name of it', 'another one'}, y = {4, 2}}, 8):find 'another one ┤█+')
	end)
	it('takes categories in many forms', function()
		local wanted = text(plot.bar{x = {'a', 'b'}, y = {1, 2}})
		assert(text(plot.bar{{'a', 1}, {'b', 2}}) == wanted)
		assert(text(plot.bar{{{'a', 1}, {'b', 2}}}) == wanted)
		assert(text(plot.bar{{1, 2}, x = {'a', 'b'}}) == wanted)
		assert(text(plot.bar{{1, 2}, x = {'a', 'b'}, horizontal = false}) == wanted)
		assert(text(plot.bar{x = {2, 4.5}, y = {1, 2}}):find ' 2 +4.5')
		assert(text(plot.bar{tensor{3, 1, 2}}):find ' 1 +2 +3$')
		assert(text(plot.bar{{'only', 5}}):find 'only')
	end)
	it('has panels', function()
		local plain = plot.bar{x = {'a', 'b'}, y = {{1, 2}, {1000, 2000}}, names = {'p', 'q'}, panels = true}:text()
		assert(plain:find '^ +p +q\n' and plain:find '\n2 ┤' and plain:find '2000 ┤')
	end)
end)

describe('the picture', function()
	if not pictures then skip 'plplot is not installed' end
	it('has heights in proportion, from 0', function()
		local b = boxes(plot.bar{x = {'a', 'b', 'c', 'd'}, y = {1, 2, 4, -1}})
		assert(#b == 4)
		local unit = b[1].y1 - b[1].y0
		assert(math.abs((b[2].y1 - b[2].y0) / unit - 2) < 0.01 and math.abs((b[3].y1 - b[3].y0) / unit - 4) < 0.01)
		assert(math.abs((b[4].y1 - b[4].y0) / unit - 1) < 0.01 and math.abs(b[4].y1 - b[1].y0) < 0.1)
		for i = 1, 3 do assert(b[i].y0 == b[1].y0 and b[i].x1 < b[i + 1].x0) end
	end)
	it('puts groups side by side and stacks on top', function()
		local side = boxes(plot.bar{x = {'a', 'b'}, y = {{3, 2}, {1, 4}}, legend = false})
		assert(#side == 4 and side[1].x1 <= side[3].x0 and side[3].x1 < side[2].x0 and side[1].y0 == side[3].y0)
		local stack = boxes(plot.bar{x = {'a', 'b'}, y = {{3, 2}, {1, 4}}, stacked = true, legend = false})
		assert(stack[1].x0 == stack[3].x0 and math.abs(stack[1].y1 - stack[3].y0) < 0.1)
	end)
	it('lies on its side', function()
		local b = boxes(plot.bar{x = {'a', 'b'}, y = {1, 2}, horizontal = true})
		assert(b[1].x0 == b[2].x0 and math.abs((b[2].x1 - b[2].x0) / (b[1].x1 - b[1].x0) - 2) < 0.01)
		assert(b[1].y0 > b[2].y1) -- the first one on top
	end)
	it('starts at the end of a logarithmic axis', function()
		local b = boxes(plot.bar{x = {'a', 'b', 'c'}, y = {1, 10, 100}, ylog = true})
		assert(math.abs((b[3].y1 - b[2].y1) / (b[2].y1 - b[1].y1) - 1) < 0.01 and b[1].y0 == b[3].y0)
	end)
end)

local function refused(data) return select(2, pcall(plot.bar, data)) end
print(refused{x = {'a'}, y = {1, 2}})  --> plot.bar: x: wanted 2 values as in y, got 1
print(refused{y = {1, 2}, {3}})  --> plot.bar: y: wanted y= or data by position, got both
print(refused{x = {'a'}})  --> plot.bar: y: wanted values for x, got none
print(refused{{1, 2}, horizontal = 1})  --> plot.bar: horizontal: wanted true or false, got number
