-- SPDX-License-Identifier: MIT
-- Histograms: counts against numpy.histogram, bins for integers, several sets, ready counts.
local function text(fig) return (fig:text{width = 40, height = 10}:gsub('\n$', '')) end
local data = {0.3, 1.7, 2.2, 2.9, 3.1, 3.3, 4.0, 4.8, 5.0, 7.5}

-- Heights of the bars of one set from left to right, in units of the lowest, and their widths.
local function bars(fig)
	local all = {}
	for points in fig:svg():gmatch '<polyline stroke="none" fill="#0072B2" fill%-opacity="0.9[0-9]*" points="([^"]*)"' do
		local b = {x0 = math.huge, x1 = -math.huge, y0 = math.huge, y1 = -math.huge}
		for x, y in points:gmatch '([%d.-]+),([%d.-]+)' do
			x, y = tonumber(x), tonumber(y)
			b.x0, b.x1, b.y0, b.y1 = math.min(b.x0, x), math.max(b.x1, x), math.min(b.y0, y), math.max(b.y1, y)
		end
		all[#all + 1] = b
	end
	return all
end

local function counts(fig)
	local all, lowest, list = bars(fig), math.huge, {}
	for _, b in ipairs(all) do lowest = math.min(lowest, b.y1 - b.y0) end
	for i, b in ipairs(all) do list[i] = ('%.2f'):format((b.y1 - b.y0) / lowest) end
	return table.concat(list, ' ')
end

describe('text', function()
	it('shows whole numbers in bins around them', function()
		assert(text(plot.hist{1, 2, 2, 3, 3, 3, 4, 4, 5}) == [[
count
  │               ▅▅▅▅▅▅▅
  │               ███████
2 ┤        ▃▃▃▃▃▃▃███████▃▃▃▃▃▃▃
  │        █████████████████████
  │ ▂▂▂▂▂▂▂█████████████████████▂▂▂▂▂▂▂
  │ ███████████████████████████████████
0 ┤ ███████████████████████████████████
  └───────────┬─────────────┬───────────
              2             4]])
	end)
	it('shows several sets as outlines', function()
		assert(text(plot.hist{{0, 1, 1, 2}, {2, 3, 3, 4}, names = {'a', 'b'}}) == [[
count                       ███ a  ▓▓▓ b
2 ┤       ⢰⠒⠒⠒⠒⠒⠒⢲       ⡖⠒⠒⠒⠒⠒⠒⡆
  │       ⢸      ⢸       ⡇      ⡇
  │       ⢸      ⢸       ⡇      ⡇
1 ┤⢠⠤⠤⠤⠤⠤⠤⠼      ⢸⠤⠤⠤⠤⠤⠤⠤⡇      ⠧⠤⠤⠤⠤⠤⠤⡄
  │⢸             ⢸       ⡇             ⡇
  │⢸             ⢸       ⡇             ⡇
0 ┤⢸⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣸       ⣇⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⡇
  └────┬─────────────┬─────────────┬────
       0             2             4]])
	end)
	it('takes tensors of any shape and groups', function()
		assert(text(plot.hist(tensor{{1, 2, 2}, {3, 3, 3}})) == text(plot.hist{{1, 2, 2, 3, 3, 3}}))
		assert(text(plot.hist{x = {0, 2, 1, 3, 1, 3, 2, 4}, group = {'a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'}}) ==
			text(plot.hist{{0, 1, 1, 2}, {2, 3, 3, 4}, names = {'a', 'b'}}))
	end)
	it('has an empty frame for nothing, and notes what it leaves out', function()
		assert(text(plot.hist{}):find 'no data')
		assert(plot.hist{{1, 2, 0 / 0}}:text():find('1 of 3 values not shown (outside the range or not finite)', 1, true))
		assert(plot.hist{{1, 2, 30}, range = {0, 3}}:text():find('1 of 3 values not shown', 1, true))
		assert(plot.hist{{7, 7, 7}}:text():find '7')
	end)
end)

describe('counts', function()
	if not pcall(function() return plot.hist{data}:svg() end) then skip 'plplot is not installed' end
	it('are those of numpy', function()
		-- numpy.histogram(data, 5) = 2 3 2 2 1 over 0.3..7.5; (data, 4, (2, 6)) = 2 2 2 1
		assert(counts(plot.hist{data, bins = 5}) == '2.00 3.00 2.00 2.00 1.00')
		assert(counts(plot.hist{data, bins = 4, range = {2, 6}}) == '2.00 2.00 2.00 1.00')
		assert(counts(plot.hist{data, bins = 4, range = {2, 6}, density = true}) == '2.00 2.00 2.00 1.00')
	end)
	it('may come ready', function()
		assert(counts(plot.hist{counts = {1, 2, 3, 2}, range = {-1, 1}}) == '1.00 2.00 3.00 2.00')
		assert(counts(plot.hist{counts = tensor{4, 1}, range = {0, 2}}) == '4.00 1.00')
	end)
	it('have bins as Freedman and Diaconis say', function()
		local x = {}
		for i = 1, 1000 do x[i] = (i - 0.5) / 1000 end -- quartile distance 0.5, so the width is 2 * 0.5 / 10
		assert(#bars(plot.hist{x}) == 11)
	end)
	it('fill the range', function()
		local b = bars(plot.hist{counts = {1, 1, 1, 1}, range = {0, 4}})
		for i = 2, 4 do assert(math.abs(b[i].x0 - b[i - 1].x1) < 0.1) end
	end)
end)

local function refused(data) return select(2, pcall(plot.hist, data)) end
print(refused{{1}, bins = 0})  --> plot.hist: bins: wanted 1 to 4096, got 0
print(refused{{1}, range = {1, 1}})  --> plot.hist: range: wanted {lo, hi}, finite and lo < hi...
print(refused{counts = {1, 2}})  --> plot.hist: counts: wanted range={lo, hi} of the bins too, got none
print(refused{{1, 2}, counts = {1, 2}, range = {0, 1}})  --> plot.hist: counts: wanted no samples beside ready counts, got both
print(refused{{1, {}}})  --> plot.hist: x: element 2: wanted a number, got table
