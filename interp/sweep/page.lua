-- SPDX-License-Identifier: MIT
-- A results file for people: as text, or as one HTML page with the front of the best trade-offs drawn (Pareto). The
-- page needs nothing from elsewhere and nothing in it is active but the script that sorts tables, which its policy allows by its hash: all
-- text is escaped, the figure is SVG whose text is escaped by the plot. Names and values of trials may be anything.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local config = internal.import 'interp/sweep/config'
local store = internal.import 'interp/sweep/store'
local files = internal.import 'interp/prelude/report_files'
local report = internal.import 'interp/prelude/report'
local clean = internal.import 'interp/sweep/show'.clean
local cell = internal.import 'interp/prelude/report_format'.cell
local sort = internal.import 'interp/sweep/sort'
local escape = files.html_escape
local fail, describe = base.fail, base.describe
local page = {}

local COLOURS = 8   -- values of a parameter that get colours of their own
local FIGURES = 4   -- for one front
local LABELLED = 12 -- points of a front that are named

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

local function has(r, column)
	for _, name in ipairs(r:columns()) do
		if name == column then return true end
	end
	return false
end

-- What a column holds: the column `value` of bench.models holds what the column `metric` says.
local function meaning(column, rows, r)
	local metric = column == 'value' and has(r, 'metric') and rows[1] and rows[1].metric
	return type(metric) == 'string' and metric or column
end

-- Rows that no other beats in one column without losing in the other, by rising x. `higher`: more is better of y.
local function front_of(rows, x, y, higher)
	local sign_x, sign_y = base.higher_is_better[x] and -1 or 1, higher and -1 or 1
	local list = {}
	for i, row in ipairs(rows) do
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

-- Rows that can be compared: values of one model and one metric. In the order in which they first come; {rows=, of=}.
local function comparable(r, y)
	local list, known = {}, {}
	for _, row in ipairs(r) do
		local of = y == 'value' and has(r, 'model') and tostring(row.model) or ''
		local key = of .. '\0' .. meaning(y, {row}, r)
		if not known[key] then
			known[key] = {rows = {}, of = of}
			list[#list + 1] = known[key]
		end
		table.insert(known[key].rows, row)
	end
	return list
end

-- A list of {x=, y=, meaning= of y, of=, report=, front=, points=}: empty when the results have no two columns for it.
local function paretos(r, o)
	local goals = table.move(GOALS, 1, #GOALS, 1, {})
	if has(r, 'metric') then goals[#goals + 1] = 'value' end
	local x, y = choose(r, 'x', o.x, COSTS), choose(r, 'y', o.y, goals)
	local list = {}
	if not x or not y or x == y then return list end
	for _, part in ipairs(comparable(r, y)) do
		local holds = meaning(y, part.rows, r)
		local front, points = front_of(part.rows, x, y, base.higher_is_better[holds])
		local rows = {columns = r:columns()}
		for i, row in ipairs(front) do rows[i] = row end
		if #points > 1 then
			list[#list + 1] = {x = x, y = y, meaning = holds, of = part.of, report = report(rows), front = front,
				points = points}
		end
	end
	return list
end

-- 'bytes and accuracy', 'bytes and accuracy of lenet'
local function title_of(p)
	return clean(p.x) .. ' and ' .. clean(p.meaning) .. (p.of ~= '' and ' of ' .. clean(p.of) or '')
end

-- Points on the front and others, or with a parameter coloured by its values; the text at a point of the front names it then.
local function figure_of(p, parameter)
	local on, xs, ys, groups, labels = {}, {}, {}, {}, {}
	for _, row in ipairs(p.front) do on[row] = true end
	for _, front in ipairs {false, true} do -- the front is drawn last, over the others
		for _, point in ipairs(p.points) do
			if (on[point.row] or false) == front then
				local i, value = #xs + 1, parameter and point.row[parameter]
				xs[i], ys[i] = point.row[p.x], point.row[p.y]
				groups[i] = parameter and clean(cell(value), 40) or front and 'on the front' or 'others'
				labels[i] = front and #p.front <= LABELLED and 'front' or ''
			end
		end
	end
	return plot.scatter {x = xs, y = ys, group = groups, label = parameter and labels or nil, xlabel = clean(p.x, 60),
		ylabel = clean(p.meaning, 60), title = parameter and 'coloured by ' .. clean(parameter, 60) or nil}
end

-- The parameters whose values are worth a colour: between two and COLOURS of them.
local function coloured(p, parameters)
	local list = {}
	for _, name in ipairs(parameters) do
		local seen, n = {}, 0
		for _, point in ipairs(p.points) do
			local text = cell(point.row[name])
			n = n + (seen[text] and 0 or 1)
			seen[text] = true
		end
		if n >= 2 and n <= COLOURS and name ~= 'seed' and name ~= p.x and name ~= p.y and #list < FIGURES then list[#list + 1] = name end
	end
	return list
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
	local fronts = paretos(r, o) -- before anything is printed: a wrong column is an error
	print(clean(study.name))
	print(r)
	for _, p in ipairs(fronts) do
		print(('\nbest trade-offs of %s: %d of %d'):format(title_of(p), #p.front, #p.points))
		print(p.report)
	end
	for _, one in ipairs(failures_of(db, study, o)) do
		print(('\nFAILED  %s: %s'):format(clean(one.text), clean(one.why)))
		for line in one.tail:gmatch '[^\n]+' do print('    | ' .. clean(line)) end
	end
end

---------------------------------------------------------------- HTML

local STYLE = [[<style>
body { max-width: 90rem; }
pre { background: var(--code); border-radius: 6px; }
.sort th { cursor: pointer; user-select: none; } .sort th:focus-visible { outline: 2px solid var(--link); }
.sort th::after { content: " ↕"; color: var(--line); }
.sort th[aria-sort="ascending"]::after { content: " ↑"; color: inherit; } .sort th[aria-sort="descending"]::after { content: " ↓"; color: inherit; }
.figs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { color: var(--soft); } dd { margin: 0; }
</style>
]]

local function table_of(r)
	local list = {columns = r:columns(), rows = {}}
	for i, row in ipairs(r) do list.rows[i] = row end
	return files.html_table(list, nil, nil, 'sort')
end

-- The figure without the prologue of an SVG file; or why there is none.
local function figure_html(p, parameter)
	local good, svg = pcall(function() return figure_of(p, parameter):svg() end)
	local from = good and svg:find('<svg', 1, true)
	if not from then return '<p>No figure: ' .. escape(tostring(svg)) .. '</p>' end
	return '<div class="fig">' .. svg:sub(from) .. '</div>'
end

local function figures_html(p, parameters)
	local parts = {}
	for i, name in ipairs(coloured(p, parameters)) do parts[i] = figure_html(p, name) end
	return #parts > 0 and '<div class="figs">' .. table.concat(parts, '\n') .. '</div>' or figure_html(p)
end

local function pareto_html(r, o, parameters)
	local parts = {}
	for i, p in ipairs(paretos(r, o)) do
		parts[i] = ('<h2>Best trade-offs of %s</h2>\n%s\n%s\n'):format(escape(title_of(p)), figures_html(p, parameters), table_of(p.report))
	end
	return table.concat(parts)
end

local function failures_html(list)
	if #list == 0 then return '' end
	local lines = {'<h2>Failed</h2>'}
	for _, one in ipairs(list) do
		lines[#lines + 1] = ('<p>%s: %s</p>\n<pre>%s</pre>'):format(escape(one.text), escape(one.why), escape(one.tail))
	end
	return table.concat(lines, '\n') .. '\n'
end

local function summary_html(db, study, r, o)
	local counts = db:rows([[SELECT count(*) AS total, coalesce(sum(state = 'done'), 0) AS done,
		coalesce(sum(state = 'failed'), 0) AS failed
		FROM trial WHERE study = ? AND code = ?]], study.key, study.code)[1]
	local machines = {}
	for _, row in ipairs(db:rows([[SELECT DISTINCT e.value AS value FROM env e JOIN trial t ON t.key = e.trial
		WHERE t.study = ? AND e.name = 'processor']], study.key)) do
		machines[#machines + 1] = tostring(row.value)
	end
	local text = ('<p>%d trials: %d done, %d failed, %d missing; %d rows below. %s</p>\n'):format(counts.total, counts.done,
		counts.failed, counts.total - counts.done - counts.failed, #r, escape(table.concat(machines, ', ')))
	local left_out = not o.all and internal.import 'interp/sweep/rows'.earlier(db, study, '--all')
	return left_out and text .. '<p>' .. escape(left_out) .. '</p>\n' or text
end

-- What was run and what wrote the page.
local function origin_html(db, study, o)
	local scripts = {}
	for _, row in ipairs(db:rows([[SELECT DISTINCT e.name AS name, e.value AS value FROM env e JOIN trial t ON t.key = e.trial
		WHERE t.study = ? AND e.name IN ('script', 'commit') ORDER BY 1 DESC, 2]], study.key)) do
		scripts[#scripts + 1] = ('<dt>%s</dt><dd>%s</dd>'):format(row.name, escape(clean(tostring(row.value))))
	end
	local list = {{'command', o.command or 'quoll sweep report'}, {'version', 'Quoll ' .. internal.version}, {'date', os.date '!%Y-%m-%d %H:%M UTC'}}
	for i, one in ipairs(list) do list[i] = ('<dt>%s</dt><dd>%s</dd>'):format(one[1], escape(clean(one[2]))) end
	return '<dl>' .. table.concat(scripts, '\n') .. table.concat(list, '\n') .. '</dl>\n'
end

-- The head of the page, whose policy allows the script that sorts.
local function head(title)
	local text, n = files.html_head(title):gsub("default%-src 'none'; ", function(policy) return policy .. 'script-src ' .. sort.source .. '; ' end, 1)
	assert(n == 1)
	return text
end

-- Writes the page; o: x, y, all, command of quoll sweep report.
function page.save(file, db, study, r, o)
	if not file:find '%.html?$' then
		fail('sweep report: --html: wanted a name ending in .html, got %s', describe(file))
	end
	local parameters = internal.import 'interp/sweep/rows'.parameters(store.trials(db, study, o.all))
	internal.write_file(file, table.concat {head(study.name), STYLE, '<h1>', escape(study.name), '</h1>\n',
		summary_html(db, study, r, o), origin_html(db, study, o), pareto_html(r, o, parameters), '<h2>All trials</h2>\n', table_of(r), '\n',
		failures_html(failures_of(db, study, o)), sort.element, '</body></html>\n'})
end

return page
