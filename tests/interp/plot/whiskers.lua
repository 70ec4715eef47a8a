-- SPDX-License-Identifier: MIT
-- Error bars and bands: where their ends are in the picture, what a text plot shows, and what is refused.
local function text(fig) return (fig:text{width = 40, height = 12}:gsub('\n$', '')) end
local function bars(fig)
	local s = text(fig)
	return s:find('⡇', 1, true) or s:find('⢸', 1, true)
end
local pictures = pcall(function() return plot.line{1, 2}:svg() end)

-- Upright strokes of an SVG by their x: {x=, lo=, hi=} in pixels from the top.
local function strokes(svg)
	local list = {}
	for points in svg:gmatch '<polyline[^>]-points="([^"]*)"' do
		local x1, y1, x2, y2 = points:match '^([%d.]+),([%d.]+) ([%d.]+),([%d.]+)%s*$'
		if x1 and math.abs(x1 - x2) < 0.01 and math.abs(tonumber(y1) - tonumber(y2)) > 8 then
			y1, y2 = tonumber(y1), tonumber(y2)
			list[#list + 1] = {x = tonumber(x1), top = math.min(y1, y2), bottom = math.max(y1, y2)}
		end
	end
	return list
end

if pictures then
	it('draws from low to high, in proportion', function()
		-- the axis is fixed, so pixels are proportional to values: 2 +- 1, 4 +- 2 and one without
		local fig = plot.line{x = {1, 2, 3}, y = {2, 4, 6}, yerr = {1, 2, 0 / 0}, ylim = {0, 10}, xlim = {0, 4}}
		local found = {}
		for _, s in ipairs(strokes(fig:svg())) do
			if s.bottom - s.top < 400 then found[#found + 1] = s end
		end
		assert(#found == 2, #found)
		table.sort(found, function(a, b) return a.x < b.x end)
		local one, two = found[1].bottom - found[1].top, found[2].bottom - found[2].top
		assert(math.abs(two / one - 2) < 0.05, one .. ' ' .. two)
		local same = plot.line{x = {1, 2, 3}, y = {2, 4, 6}, low = {1, 2, 0 / 0}, high = {3, 6, 0 / 0}, ylim = {0, 10}, xlim = {0, 4}}
		assert(same:svg() == fig:svg())
	end)
	it('bands are areas, one for each part without gaps', function()
		local x, y, e = {}, {}, {}
		for i = 1, 40 do x[i], y[i], e[i] = i, i % 7, i == 20 and 0 / 0 or 1 end
		local _, areas = plot.line{x = x, y = y, yerr = e}:svg():gsub('fill%-opacity="0%.1[78]', '')
		local _, none = plot.line{x = x, y = y}:svg():gsub('fill%-opacity="0%.1[78]', '')
		assert(areas == 2 and none == 0, areas)
	end)
	it('every kind of file', function()
		local fig = plot.bar{x = {'a', 'b'}, y = {1, 2}, yerr = {0.5, 1}}
		assert(fig:png():sub(2, 4) == 'PNG' and fig:pdf():sub(1, 4) == '%PDF')
	end)
end
it('the axis holds the whole bar', function()
	assert(text(plot.scatter{x = {1, 2}, y = {5, 6}, yerr = {4, 14}}):find '20', 'up to 20')
	assert(text(plot.line{x = {1, 2}, y = {10, 20}, low = {-30, 1}, high = {11, 21}}):find '−20')
end)
it('text: bars are upright dots, bands have edges, bars of a bar plot are written', function()
	assert(bars(plot.scatter{x = {1, 2, 3}, y = {5, 5, 5}, yerr = {2, 2, 2}}))
	assert(not bars(plot.scatter{x = {1, 2, 3}, y = {5, 5, 5}}))
	local plain = text(plot.bar{x = {'a', 'b'}, y = {91.25, 40}, yerr = {0.5, 0 / 0}})
	assert(plain:find('91.25 ±0.5', 1, true) and not plain:find('40 ±', 1, true), plain)
	local x, y, e = {}, {}, {}
	for i = 1, 30 do x[i], y[i], e[i] = i, 0, 1 end
	local band, plain_line = plot.line{x = x, y = y, yerr = e, ylim = {-2, 2}}, plot.line{x = x, y = y, ylim = {-2, 2}}
	local _, edges = text(band):gsub('⠒', '')
	assert(edges >= 30 and not bars(band), edges)
	assert(not text(plain_line):find('⠒', 1, true))
	assert(bars(plot.line{x = x, y = y, yerr = e, band = false, ylim = {-2, 2}}))
end)
it('groups take their bounds along', function()
	local grouped = plot.scatter{x = {1, 2, 1, 2}, y = {1, 2, 3, 4}, yerr = {1, 0.5, 0.25, 1}, group = {'a', 'b', 'b', 'a'}}
	local apart = plot.scatter{{x = {1, 2}, y = {1, 4}, yerr = {1, 1}, name = 'a'}, {x = {2, 1}, y = {2, 3}, yerr = {0.5, 0.25}, name = 'b'}}
	assert(text(grouped) == text(apart))
	local lists = plot.line{x = {1, 2}, y = {{1, 2}, {3, 4}}, yerr = {{1, 1}, {2, 2}}, names = {'a', 'b'}}
	local tables = plot.line{{x = {1, 2}, y = {1, 2}, yerr = {1, 1}, name = 'a'}, {x = {1, 2}, y = {3, 4}, low = {1, 2}, high = {5, 6}, name = 'b'}}
	assert(text(lists) == text(tables))
end)
it('logarithmic axes take what is not above 0 as their end', function()
	assert(bars(plot.line{x = {1, 2}, y = {1, 100}, yerr = {2, 50}, ylog = true}))
end)
it('refuses', function()
	local function refused(wanted, kind, options)
		local good, message = pcall(plot[kind], options)
		assert(not good and message:find(wanted, 1, true), message)
	end
	for _, kind in ipairs {'line', 'bar', 'scatter'} do
		refused('yerr: wanted 2 values as in y, got 1', kind, {x = {1, 2}, y = {1, 2}, yerr = {1}})
		refused('yerr: element 2: wanted 0 or more, got -1', kind, {x = {1, 2}, y = {1, 2}, yerr = {1, -1}})
		refused('wanted low= and high= together, got one of them', kind, {x = {1, 2}, y = {1, 2}, low = {1, 1}})
		refused('wanted yerr= or low= and high=, got both', kind, {x = {1, 2}, y = {1, 2}, low = {1, 1}, high = {1, 1}, yerr = {1, 1}})
		refused('yerr: wanted a list for each of the 2 series', kind, {x = {1, 2}, y = {{1, 2}, {1, 2}}, yerr = {1, 1}})
	end
	refused("wanted one value for each bar, got 3 for 'a'", 'bar', {x = {'a', 'a', 'b', 'a'}, y = {1, 2, 3, 4}})
	refused("got 2 for 'a' of q", 'bar', {x = {'a', 'a', 'a'}, y = {1, 2, 3}, group = {'p', 'q', 'q'}})
	refused('wanted bars side by side, got stacked=true', 'bar', {x = {'a', 'b'}, y = {1, 2}, yerr = {1, 1}, stacked = true})
	refused("unknown option 'yerr'", 'hist', {{1, 2}, yerr = {1, 1}})
end)
