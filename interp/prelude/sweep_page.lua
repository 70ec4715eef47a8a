-- SPDX-License-Identifier: MIT
-- A results file for people: as text, or as one HTML page with the front of the best trade-offs drawn (Pareto). The
-- page needs nothing from elsewhere and nothing in it is active: all text is escaped, the figure is SVG whose text is
-- escaped by the plot, and its policy allows no script. Names and values of trials may be anything.
local _, internal = ...
local base = internal.import 'base'
local config = internal.import 'sweep_config'
local store = internal.import 'sweep_store'
local files = internal.import 'report_files'
local report = internal.import 'report'
local clean = internal.import 'sweep_show'.clean
local escape = files.html_escape
local fail, describe = base.fail, base.describe
local page = {}

---------------------------------------------------------------- the front

local COSTS = {'bytes', 'weight_bytes', 'ms', 'peak', 'seconds'}
local GOALS = {'accuracy', 'sqnr', 'cosine', 'perplexity', 'loss', 'mse', 'error'}

local function has_numbers(r, column)
	for _, row in ipairs(r) do
		if type(row[column]) == 'number' and row[column] == row[column] then return true end
	end
	return false
end

-- The column asked for, or the first of the usual ones that has numbers; nil: there is none.
local function choose(r, option, asked, usual)
	local known = {}
	for _, name in ipairs(r:columns()) do known[name] = true end
	if asked then
		if not known[asked] then
			fail('sweep report: --%s: wanted one of the columns %s, got %s', option, table.concat(r:columns(), ' '),
				describe(asked))
		end
		if not has_numbers(r, asked) then
			fail('sweep report: --%s: wanted a column with numbers, got %s', option, describe(asked))
		end
		return asked
	end
	for _, name in ipairs(usual) do
		if known[name] and has_numbers(r, name) then return name end
	end
end

local function is_finite(value) return type(value) == 'number' and value == value and math.abs(value) < math.huge end

-- Rows that no other beats in one column without losing in the other, by rising x.
local function front_of(r, x, y)
	local sign_x, sign_y = base.higher_is_better[x] and -1 or 1, base.higher_is_better[y] and -1 or 1
	local list = {}
	for i, row in ipairs(r) do
		if is_finite(row[x]) and is_finite(row[y]) then
			list[#list + 1] = {row = row, x = sign_x * row[x], y = sign_y * row[y], i = i}
		end
	end
	table.sort(list, function(a, b)
		if a.x ~= b.x then return a.x < b.x end
		if a.y ~= b.y then return a.y < b.y end
		return a.i < b.i
	end)
	local front, best = {}, math.huge
	for _, one in ipairs(list) do
		if one.y < best then
			front[#front + 1] = one.row
			best = one.y
		end
	end
	return front, list
end

-- {x=, y=, report=, points=} or nil when the results have no two columns for it.
local function pareto(r, o)
	local x, y = choose(r, 'x', o.x, COSTS), choose(r, 'y', o.y, GOALS)
	if not x or not y or x == y then return nil end
	local front, points = front_of(r, x, y)
	if #points < 2 then return nil end
	local list = {columns = r:columns()}
	for i, row in ipairs(front) do list[i] = row end
	return {x = x, y = y, report = report(list), front = front, points = points}
end

local function figure_of(p)
	local on, xs, ys, groups = {}, {}, {}, {}
	for _, row in ipairs(p.front) do on[row] = true end
	for i, point in ipairs(p.points) do
		xs[i], ys[i], groups[i] = point.row[p.x], point.row[p.y], on[point.row] and 'on the front' or 'others'
	end
	return plot.scatter {x = xs, y = ys, group = groups, xlabel = clean(p.x, 60), ylabel = clean(p.y, 60)}
end

---------------------------------------------------------------- what failed

local function failures_of(db, study, o)
	local list = {}
	for _, one in ipairs(store.trials(db, study, o.all)) do
		if one.state == 'failed' then
			list[#list + 1] = {text = config.text(one.values), why = one.error or 'failed', tail = one.tail or ''}
		end
	end
	return list
end

---------------------------------------------------------------- text

function page.print(db, study, r, o)
	local p = pareto(r, o)
	print(clean(study.name))
	print(r)
	if p then
		print(('\nbest trade-offs of %s and %s: %d of %d'):format(clean(p.x), clean(p.y), #p.front, #p.points))
		print(p.report)
	end
	for _, one in ipairs(failures_of(db, study, o)) do
		print(('\nFAILED  %s: %s'):format(clean(one.text), clean(one.why)))
		for line in one.tail:gmatch '[^\n]+' do print('    | ' .. clean(line)) end
	end
end

---------------------------------------------------------------- HTML

local STYLE = [[<style>
pre { overflow-x: auto; background: color-mix(in srgb, currentColor 7%, transparent); padding: .5rem; }
.wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; background: white; }
</style>
]]

local function table_of(r)
	local list = {columns = r:columns(), rows = {}}
	for i, row in ipairs(r) do list.rows[i] = row end
	return '<div class="wide">' .. files.html_table(list) .. '</div>'
end

-- The figure without the prologue of an SVG file; or why there is none.
local function figure_html(p)
	local good, svg = pcall(function() return figure_of(p):svg() end)
	local from = good and svg:find('<svg', 1, true)
	if not from then return '<p>No figure: ' .. escape(tostring(svg)) .. '</p>' end
	return svg:sub(from)
end

local function pareto_html(r, o)
	local p = pareto(r, o)
	if not p then return '' end
	return ('<h2>Best trade-offs of %s and %s</h2>\n%s\n%s\n'):format(escape(p.x), escape(p.y), figure_html(p),
		table_of(p.report))
end

local function failures_html(list)
	if #list == 0 then return '' end
	local lines = {'<h2>Failed</h2>'}
	for _, one in ipairs(list) do
		lines[#lines + 1] = ('<p>%s: %s</p>\n<pre>%s</pre>'):format(escape(one.text), escape(one.why), escape(one.tail))
	end
	return table.concat(lines, '\n') .. '\n'
end

local function summary_html(db, study, r)
	local counts = db:rows([[SELECT count(*) AS total, coalesce(sum(state = 'done'), 0) AS done,
		coalesce(sum(state = 'failed'), 0) AS failed
		FROM trial WHERE study = ? AND code = ?]], study.key, study.code)[1]
	local machines = {}
	for _, row in ipairs(db:rows([[SELECT DISTINCT e.value AS value FROM env e JOIN trial t ON t.key = e.trial
		WHERE t.study = ? AND e.name = 'processor']], study.key)) do
		machines[#machines + 1] = tostring(row.value)
	end
	return ('<p>%d trials: %d done, %d failed, %d missing; %d rows below. %s</p>\n'):format(counts.total, counts.done,
		counts.failed, counts.total - counts.done - counts.failed, #r, escape(table.concat(machines, ', ')))
end

-- Writes the page; o: x, y, all of quoll sweep report.
function page.save(file, db, study, r, o)
	if not file:find '%.html?$' then
		fail('sweep report: --html: wanted a name ending in .html, got %s', describe(file))
	end
	internal.write_file(file, table.concat {files.html_head(study.name), STYLE, '<h1>', escape(study.name), '</h1>\n',
		summary_html(db, study, r), pareto_html(r, o), '<h2>All trials</h2>\n', table_of(r), '\n',
		failures_html(failures_of(db, study, o)),
		'</body></html>\n'})
end

return page
