-- SPDX-License-Identifier: MIT
-- Box plots: quartiles as numpy.percentile gives them, whiskers, outliers, names.
local data = {2, 7, 1, 9, 4, 4, 12, 30, 5, 6}
local function text(fig) return (fig:text{width = 40, height = 10}:gsub('\n$', '')) end

it('has boxes, whiskers and dots as text', function()
	assert(text(plot.box{{1, 2, 3, 4, 5, 6, 7, 8, 20}, {2, 3, 4}, names = {'a', 'b'}}) == [[
20 ┤         ⠂
   │
   │
   │
10 ┤      ⢀⣀⣀⣀⣀⡀
   │    ⢰⠒⠒⠒⠒⠓⠒⠒⠒⢲
   │    ⢸⣉⣉⣉⣉⣉⣉⣉⣉⣹        ⢠⣤⣴⣶⣶⣶⣶⣦⣤⣤
 0 ┤      ⠠⠤⠤⠧⠤⠄          ⠈⠉⠉⠉⠉⠉⠉⠉⠉⠉
   └─────────┬─────────────────┬────────
            a                 b]])
end)

it('takes lists, tensors and groups', function()
	local wanted = text(plot.box{{1, 2, 3}, {4, 5, 6, 7}, names = {'a', 'b'}})
	assert(text(plot.box{tensor{1, 2, 3}, tensor{{4, 5}, {6, 7}}, names = {'a', 'b'}}) == wanted)
	assert(text(plot.box{y = {1, 4, 2, 5, 3, 6, 7}, group = {'a', 'b', 'a', 'b', 'a', 'b', 'b'}}) == wanted)
	assert(text(plot.box{y = {{1, 2, 3}, {4, 5, 6, 7}}, names = {'a', 'b'}}) == wanted)
	assert(text(plot.box{{1, 2, 0 / 0}}):find('1 of 3 values not shown (not finite)', 1, true))
	assert(text(plot.box{{}, {1, 2}}):find '\n +1 +2$')
end)

it('has the quartiles of numpy and whiskers of Tukey', function()
	local good, svg = pcall(function() return plot.box{data}:svg() end)
	if not good then skip 'plplot is not installed' end
	local ys = {}
	for width, points in svg:gmatch '<polyline stroke%-width="([%d.e+]+)" stroke="#0072B2" fill="none" points="([^"]*)"' do
		local x0, y0, x1, y1 = points:match '([%d.]+),([%d.]+) ([%d.]+),([%d.]+)'
		if y0 == y1 then ys[#ys + 1] = {tonumber(y0), tonumber(x1) - tonumber(x0), tonumber(width)} end
	end
	-- drawn in this order: first and third quartile, median, lower and upper whisker
	assert(#ys == 5, #ys)
	local low, high = ys[4][1], ys[5][1]
	local function value(y) return 1 + (y - low) / (high - low) * 11 end -- whiskers end at 1 and 12; 30 is beyond
	-- numpy.percentile(data, [25, 50, 75]) = 4, 5.5, 8.5
	assert(math.abs(value(ys[1][1]) - 4) < 0.02 and math.abs(value(ys[3][1]) - 5.5) < 0.02)
	assert(math.abs(value(ys[2][1]) - 8.5) < 0.02)
	assert(ys[3][3] > ys[1][3]) -- the median is the bold one
	local dots = 0
	for _ in svg:gmatch 'fill="#0072B2" fill%-opacity="0.6' do dots = dots + 1 end
	assert(dots == 1)
end)

local function refused(data) return select(2, pcall(plot.box, data)) end
print(refused{{1}, {2}, names = {'a'}})  --> plot.box: names: wanted 2, one per series, got 1
print(refused{{1}, {2}, names = {'a', 'a'}})  --> plot.box: names: wanted different names, got 'a' twice
print(refused{{1, 'x'}})  --> plot.box: y: element 2: wanted a number, got string
