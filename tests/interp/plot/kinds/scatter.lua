-- SPDX-License-Identifier: MIT
-- Points: where they are, groups, labels that cover neither each other nor points, many points.
local function text(fig) return (fig:text{width = 40, height = 10}:gsub('\n$', '')) end
local pictures = pcall(function() return plot.scatter{{1, 2}}:svg() end)

-- Middles of the marks of a colour.
local function marks(svg, colour)
	local all = {}
	for points in svg:gmatch('fill="' .. colour .. '"[^>]- points="([^"]*)"') do
		local x0, x1, y0, y1 = math.huge, -math.huge, math.huge, -math.huge
		for x, y in points:gmatch '([%d.-]+),([%d.-]+)' do
			x, y = tonumber(x), tonumber(y)
			x0, x1, y0, y1 = math.min(x0, x), math.max(x1, x), math.min(y0, y), math.max(y1, y)
		end
		all[#all + 1] = {(x0 + x1) / 2, (y0 + y1) / 2}
	end
	return all
end

-- Texts with their place: the transform holds the left end and the middle.
local function labels(svg, size)
	local all = {}
	for x, y, anchor, spans in svg:gmatch('font%-size="' .. size ..
		'" transform="matrix%(1.0+ 0.0+ 0.0+ %-1.0+ ([%d.]+) ([%d.]+)%)" text%-anchor="(%a+)".->(<tspan.-</tspan>)') do
		local bytes = {}
		for code in spans:gmatch '&#x(%x+);' do bytes[#bytes + 1] = utf8.char(tonumber(code, 16)) end
		all[#all + 1] = {x = tonumber(x), y = tonumber(y), anchor = anchor, text = table.concat(bytes)}
	end
	return all
end

describe('text', function()
	it('has marks and labels beside them', function()
		assert(text(plot.scatter{x = {1, 2, 3}, y = {5, 3, 4}, label = {'one', 'two', 'three'}}) == [[
5 ┤  ● one
  │
  │                                three
4 ┤                                  ●
  │
  │
  │
3 ┤                  ● two
  └──┬───────────────┬───────────────┬──
     1               2               3]])
	end)
	it('has a mark per group', function()
		assert(text(plot.scatter{x = {1, 2, 3}, y = {5, 3, 4}, group = {'a', 'b', 'a'}}) == [[
                             ●  a   ■  b
5 ┤  ●
  │
  │
4 ┤                                  ●
  │
  │
3 ┤                  ■
  └──┬───────────────┬───────────────┬──
     1               2               3]])
	end)
	it('takes groups and labels that are numbers or tensors', function()
		local by_text = text(plot.scatter{x = {1, 2, 3}, y = {5, 3, 4}, group = {'1', '2', '1'}})
		assert(text(plot.scatter{x = {1, 2, 3}, y = {5, 3, 4}, group = {1, 2, 1}}) == by_text)
		assert(text(plot.scatter{x = {1, 2, 3}, y = {5, 3, 4}, group = tensor({1, 2, 1}):to 'int64'}) == by_text)
		assert(text(plot.scatter{x = {1, 2}, y = {1, 2}, label = {1, 2.5}}):find '2.5')
	end)
end)

describe('the picture', function()
	if not pictures then skip 'plplot is not installed' end
	it('puts marks where the points are', function()
		local m = marks(plot.scatter{x = {1, 2, 4}, y = {1, 3, 2}}:svg(), '#0072B2')
		assert(#m == 3)
		assert(math.abs((m[3][1] - m[1][1]) / (m[2][1] - m[1][1]) - 3) < 0.01)
		assert(math.abs((m[2][2] - m[1][2]) / (m[3][2] - m[1][2]) - 2) < 0.01)
	end)
	it('has labels that do not cover each other', function()
		local x, y, label = {}, {}, {}
		for i = 1, 60 do
			x[i], y[i], label[i] = (i % 13) * 1.3 + math.sin(i), math.cos(i * 1.7) * i, 'point ' .. i
		end
		local svg = plot.scatter{x = x, y = y, label = label}:svg()
		local all, seen = labels(svg, '1[23]'), {}
		for i = #all, 1, -1 do
			if not all[i].text:find '^point' then table.remove(all, i) end
		end
		assert(#all >= 57, #all) -- of 60; what has no room is counted in the picture
		for i, a in ipairs(all) do
			assert(not seen[a.text], a.text)
			seen[a.text] = true
			for k = i + 1, #all do
				local b = all[k]
				local apart = a.x + #a.text * 5 <= b.x or b.x + #b.text * 5 <= a.x or math.abs(a.y - b.y) >= 12
				assert(apart, a.text .. ' covers ' .. b.text)
			end
		end
		if #all < 60 then assert(svg:find 'l' and labels(svg, '12')[1]) end
	end)
	it('puts the 10 specs of a comparison apart', function()
		local specs = {'int16', 'int8', 'uint8', 'int8/1', 'int4', 'int4/1', 'int4:32', 'int4:64', 'binary/1'}
		local fig = plot.scatter{x = {2, 1, 1, 1, 0.5, 0.5, 0.56, 0.53, 0.13}, label = specs,
			y = {90.1, 42.2, 41.8, 43.5, 17.3, 19.1, 20.3, 19.9, 4.4}}
		local found = {}
		for _, l in ipairs(labels(fig:svg(), '1[23]')) do found[l.text] = true end
		for _, spec in ipairs(specs) do assert(found[spec], spec) end
	end)
	it('draws many points in bounded time and size', function()
		local x, y, t = {}, {}, os.clock()
		for i = 1, 100000 do x[i], y[i] = math.sin(i), math.cos(i * 1.618) end
		local svg = plot.scatter{x = x, y = y}:svg()
		assert(#svg < 40e6 and os.clock() - t < 10, #svg)
	end)
end)

local function refused(data) return select(2, pcall(plot.scatter, data)) end
print(refused{x = {1, 2}, y = {1, 2}, label = {'a'}})  --> plot.scatter: label: wanted 2 texts, one per point, got 1
print(refused{x = {1, 2}, y = {1, 2}, group = {'a'}})  --> plot.scatter: group: wanted 2 texts, one per value, got 1
print(refused{{1, 2}, {2, 1, 3}, label = {'a', 'b'}})  --> plot.scatter: label: wanted with one series, got 2
print(refused{x = {1, 2}, y = {1, 2}, label = {'a', {}}})  --> plot.scatter: label: wanted a text, got table
