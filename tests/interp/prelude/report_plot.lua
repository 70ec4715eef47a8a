-- SPDX-License-Identifier: MIT
-- r:plot: which kind it takes, what becomes series, labels and axes.
local r = report{columns = {'spec', 'bits', 'sqnr', 'ms', 'group'}, {'int16', 16, 87.5, 0.5, 'b'}, {'int8', 8, 38.9, 0.2, 'a'},
	{'int4', 4, 13.8, 0.3, 'a'}, {'int4:32', 4.5, 20.3, 0.25, 'b'}}

print(r:plot{x = 'bits', y = 'sqnr'})                    --> line figure, 1 series
print(r:plot{x = 'spec', y = 'sqnr'})                    --> bar figure, 1 series
print(r:plot{x = 'ms', y = 'sqnr', label = 'spec'})      --> scatter figure, 1 series
print(r:plot{x = 'bits', y = {'sqnr', 'ms'}})            --> line figure, 2 series
print(r:plot{x = 'bits', y = 'sqnr', group = 'group'})   --> line figure, 2 series
print(r:plot{kind = 'bar', x = 'spec', y = {'sqnr', 'bits'}, title = 'both'})  --> bar figure, 2 series, 'both'
print(r:plot{kind = 'hist', y = 'sqnr'})                 --> hist figure, 1 series
print(r:plot{kind = 'box', y = 'sqnr', group = 'group'}) --> box figure, 2 series
print(r:plot{y = 'sqnr'})                                --> line figure, 1 series

local function text(options) return r:plot(options):text{width = 76, height = 16} end
it('writes names of columns at the axes, of series and of points', function()
	local lines = text{x = 'bits', y = 'sqnr'}
	assert(lines:find 'bits' and lines:find '^%s*sqnr')
	assert(text{x = 'bits', y = 'sqnr', xlabel = 'width', ylabel = 'dB'}:find 'width')
	local two = text{x = 'bits', y = {'sqnr', 'ms'}}
	assert(two:find 'sqnr' and two:find ' ms')
	assert(text{x = 'bits', y = {'sqnr', 'ms'}, names = {'one', 'other'}}:find 'other')
	local points = text{x = 'ms', y = 'sqnr', label = 'spec'}
	for _, row in ipairs(r) do assert(points:find(row.spec, 1, true), row.spec) end
	local bars = text{x = 'spec', y = 'sqnr'}
	for _, row in ipairs(r) do assert(bars:find(row.spec, 1, true), row.spec) end
	assert(text{kind = 'hist', y = 'sqnr'}:find 'sqnr' and text{kind = 'box', y = 'sqnr', group = 'group'}:find '%sb%s.*%sa%s')
end)

it('draws a line from left to right whatever the order of the rows', function()
	assert(text{x = 'bits', y = 'sqnr'} == r:sort('bits'):plot{x = 'bits', y = 'sqnr'}:text{width = 76, height = 16})
end)

it('leaves out what is missing', function()
	local holes = report{{a = 1, b = 2}, {a = 2}, {a = 3, b = 0 / 0}, {a = 4, b = 5}}
	assert(tostring(holes:plot{x = 'a', y = 'b'}) == 'line figure, 1 series')
end)

it('saves where file= says', function()
	local name = os.tmpname()
	local file = name .. '.svg'
	r:plot{x = 'bits', y = 'sqnr', file = file}
	local handle = assert(io.open(file))
	assert(handle:read 'a':find '<svg')
	handle:close()
	os.remove(file)
	os.remove(name)
end)

it('goes on when the user calls something `plot`', function()
	local module = plot
	plot = r:plot{x = 'bits', y = 'sqnr'}
	assert(tostring(r:plot{x = 'bits', y = 'sqnr'}) == 'line figure, 1 series')
	plot = module
end)

r:plot()                                          --> error: plot: wanted options like {x='bits', y='sqnr'}, got nil
r:plot{x = 'bits'}                                --> error: plot: y: wanted a column or a list of columns, got nothing
r:plot{x = 'bit', y = 'sqnr'}                     --> error: plot: x: wanted one of the columns spec bits sqnr ms group, got 'bit'; did you mean 'bits'?
r:plot{x = 'bits', y = {'sqnr', 'mss'}}           --> error: plot: y: wanted one of the columns
r:plot{x = 'bits', y = {'sqnr', 'ms'}, group = 'group'}  --> error: plot: y: wanted one column together with group, got 2
r:plot{x = 'bits', y = 'spec'}                    --> error: plot: column 'spec': wanted numbers, got 'int16' in row 1
r:plot{kind = 'lines', x = 'bits', y = 'sqnr'}    --> error: plot: kind: wanted one of bar box heat hist image line scatter, got 'lines'; did you mean 'line'?
r:plot{x = 'bits', y = 'sqnr', titel = 'x'}       --> error: titel
report():plot{x = 'bits', y = 'sqnr'}             --> error: plot: y: wanted one of the columns
r:where{bits = 0}:plot{x = 'bits', y = 'sqnr'}    --> error: plot: wanted a report with rows, got none

it('draws several rows of a bar as their mean, and says so', function()
	local all = report{columns = {'bits', 'seed', 'accuracy'}, {4, 1, 80}, {4, 2, 82}, {4, 3, 84}, {8, 1, 90}, {8, 2, 91}, {8, 3, 92}}
	local text = all:plot{kind = 'bar', x = 'bits', y = 'accuracy'}:text()
	assert(text:find('accuracy (mean ± 95 % interval)', 1, true), text)
	-- t(0.975, 2) = 4.303: 4.303 * 2 / sqrt(3) and 4.303 / sqrt(3)
	assert(text:find('82 ±4.968', 1, true) and text:find('91 ±2.484', 1, true), text)
	local means = all:group('bits', {accuracy = 'interval'})
	assert(means:plot{kind = 'bar', x = 'bits', y = 'accuracy', ylabel = 'accuracy (mean ± 95 % interval)'}:text() == text)
	assert(all:plot{x = 'bits', y = 'accuracy'}:text():find('(mean ± 95 % interval)', 1, true))
	assert(not all:where{seed = 1}:plot{kind = 'bar', x = 'bits', y = 'accuracy'}:text():find '±')
	assert(not all:plot{kind = 'scatter', x = 'bits', y = 'accuracy'}:text():find '±') -- all points are shown
	assert(all:plot{kind = 'bar', x = 'bits', y = {'accuracy', 'seed'}, panels = false}:text():find('mean ± 95 % interval', 1, true))
	local two = means:plot{kind = 'bar', x = 'bits', y = {'accuracy', 'count'}, panels = false}:text()
	assert(two:find '±4.968' and two:find '[^±%d]3[^%d]', two)
end)
it('takes error bars from columns', function()
	local r = report{columns = {'x', 'y', 'std', 'from', 'to'}, {1, 2, 1, 1, 3}, {2, 4, 1, 3, 5}}
	assert(r:plot{x = 'x', y = 'y', yerr = 'std'}:text() == r:plot{x = 'x', y = 'y', low = 'from', high = 'to'}:text())
	local function refused(wanted, options)
		local good, message = pcall(r.plot, r, options)
		assert(not good and message:find(wanted, 1, true), message)
	end
	refused("yerr: wanted one of the columns x y std from to, got 'st'", {x = 'x', y = 'y', yerr = 'st'})
	refused("yerr: wanted kind='line', 'bar' or 'scatter', got 'hist'", {kind = 'hist', y = 'y', yerr = 'std'})
	refused('wanted one column together with low, got 2', {x = 'x', y = {'y', 'std'}, low = 'from', high = 'to'})
	r:add{1, 3, 1, 1, 3}
	refused('yerr: wanted one row for each x, got several', {x = 'x', y = 'y', yerr = 'std'})
end)

it('draws what a report was made for, of the rows with its numbers', function()
	local f = report {columns = {'name', 'a', 'b'}, {'one', 1, 2}, {'two'}, {'three', 3, 4}, figure = {kind = 'bar', x = 'name', y = {'a', 'b'}}}
	print(f:plot())                            --> bar figure, 2 series
	print(f:plot {kind = 'line'})              --> line figure, 2 series
	print(f:where {name = 'one'}:plot())       --> bar figure, 2 series
	print(f:plot {x = 'name', y = 'a'})        --> bar figure, 1 series
	print(select(2, pcall(f.plot, f:where {name = 'two'})):match 'plot: wanted a report with rows, got none' ~= nil)  --> true
end)
