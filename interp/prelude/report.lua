-- SPDX-License-Identifier: MIT
-- The report: rows with named columns in a fixed order, what every measuring call returns. How it looks as text is
-- in report_text.lua, files are in report_files.lua, plots in report_plot.lua.
--
-- A report is a table with one hidden field, its state {columns, has, rows, meta, note}; reading anything else goes
-- to rows (numbers), methods, or the columns of the only row.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, near, doc, describe = base.fail, base.near, base.doc, base.describe

local STATE = {}
local methods, meta = {}, {__name = 'quoll.report'}
meta.methods = methods -- for completion and help
debug.getregistry()[meta.__name] = meta

local function state_of(r, name)
	local s = type(r) == 'table' and rawget(r, STATE)
	if not s then fail("%s: wanted a report, as in r:%s(…), got %s", name, name, describe(r)) end
	return s
end

local function is_report(value)
	return type(value) == 'table' and rawget(value, STATE) ~= nil
end

local function unknown(s, name, column)
	fail("%s: wanted one of the columns %s, got '%.40s'%s", name, #s.columns > 0 and table.concat(s.columns, ' ') or
		'(none)', tostring(column), near(column, s.columns))
end

---------------------------------------------------------------- rows

-- Rows are plain tables; their metatable, one per report, makes a mistyped column an error and pairs() follow the
-- order of the columns.
local function row_index(row, key)
	local s = getmetatable(row).state
	if not s.has[key] then unknown(s, 'report', key) end
end

local function row_newindex(row, key, value)
	row_index(row, key)
	rawset(row, key, value)
end

local function row_pairs(row)
	local columns, at = getmetatable(row).state.columns, 0
	return function()
		local name, value
		repeat
			at = at + 1
			name = columns[at]
			value = rawget(row, name or 0)
		until not name or value ~= nil
		return name, value
	end
end

local function row_tostring(row)
	local parts = {}
	for name, value in pairs(row) do parts[#parts + 1] = name .. '=' .. tostring(value) end
	return '{' .. table.concat(parts, ', ') .. '}'
end

local function row_meta(s)
	return {__name = 'quoll.row', state = s, __index = row_index, __newindex = row_newindex, __pairs = row_pairs,
		__tostring = row_tostring}
end

local function is_row(value)
	local m = getmetatable(value)
	return type(m) == 'table' and m.__name == 'quoll.row'
end

local function new(note)
	local s = {columns = {}, has = {}, rows = {}, facts = {}, note = note}
	s.meta = row_meta(s)
	return setmetatable({[STATE] = s}, meta), s
end

local function add_column(s, name)
	if s.has[name] then return end
	s.has[name] = true
	s.columns[#s.columns + 1] = name
end

-- What a cell may hold; tensors of one element become numbers, other objects (specs) their text.
local function cell(value, row, column)
	local kind = type(value)
	if kind == 'number' or kind == 'string' or kind == 'boolean' then return value end
	if base.is_tensor(value) then
		if value:nelem() == 1 then return value:item() end
		fail("report: row %d: column '%s': wanted one number, got a tensor of %d", row, column, value:nelem())
	end
	if kind == 'userdata' then return tostring(value) end
	fail("report: row %d: column '%s': wanted a number, text or boolean, got %s", row, column, kind)
end

-- Names of plain tables have no order in Lua: columns of text first, then by the alphabet.
local function order_of(rows)
	local names, text = {}, {}
	for _, row in ipairs(rows) do
		for name, value in next, row do
			if text[name] == nil then
				names[#names + 1] = name
				text[name] = type(value) == 'string'
			end
		end
	end
	table.sort(names, function(a, b)
		if text[a] ~= text[b] then return text[a] end
		return a < b
	end)
	return names
end

-- The list of values in column order, or a table by names, as a table by names.
local function by_name(s, given, number)
	if type(given) ~= 'table' then fail('report: row %d: wanted a table, got %s', number, describe(given)) end
	if is_row(given) or rawget(given, 1) == nil then
		for name in next, given do
			if type(name) ~= 'string' then
				fail('report: row %d: wanted columns by name, got %s', number, describe(name))
			end
		end
		return given
	end
	local row = {}
	for i, value in next, given do
		local name = s.columns[i]
		if not name then
			fail('report: row %d: wanted %d values for the columns %s, got item %s', number, #s.columns,
				table.concat(s.columns, ' '), tostring(i))
		end
		row[name] = value
	end
	return row
end

local function add_rows(s, list)
	local named = {}
	for _, given in ipairs(list) do
		if is_report(given) then
			for _, row in ipairs(given[STATE].rows) do named[#named + 1] = row end
			for _, name in ipairs(given[STATE].columns) do add_column(s, name) end
		else
			if is_row(given) then
				for name in pairs(given) do add_column(s, name) end
			end
			named[#named + 1] = by_name(s, given, #s.rows + #named + 1)
		end
	end
	for _, name in ipairs(order_of(named)) do add_column(s, name) end
	for _, row in ipairs(named) do
		local copy, number = {}, #s.rows + 1
		for name, value in next, row do copy[name] = cell(value, number, name) end
		s.rows[number] = setmetatable(copy, s.meta)
	end
end

-- A report with the same columns and other rows.
local function like(s, rows)
	local r, t = new(s.note)
	t.figure = s.figure
	for _, name in ipairs(s.columns) do add_column(t, name) end
	add_rows(t, rows)
	return r
end

---------------------------------------------------------------- making

local make = doc {name = 'report', kind = 'function', usage = "report(rows)  report{columns={'spec','ms'}, {'int8', 0.2}}",
	text = [[A table of results: rows with named columns. Every measuring call returns one, and report makes one of a list
of rows. A row is a table by names, a list of values in the order of `columns`, a row of a report, or a report whose
rows are taken. Without `columns` those of text come first, then by the alphabet. r[i] is row i (negative: from the
end), #r the number of rows, ipairs(r) goes over them, row.name is a cell; a report of one row answers its columns by
name: x:error(q).sqnr (a method of the same name comes first, except mean, group, pivot, text and show). Where it also has a column `x ±`, x
is printed as 91.2 ± 0.3. It prints as a table; see also report:sort, report:where, report:best, report:group, report:pivot, report:column,
report:select, report:add, report:show, report:plot, report:save, bench.load.]],
	options = {{'columns', 'list', 'names of the columns in their order; more may follow from the rows'},
		{'note', 'text', 'a line below the table, e.g. for units'},
		{'facts', 'list', 'values by name that r.name gives beside the table, e.g. what its rows say together'},
		{'figure', 'list', 'options of r:plot() without any'}},
	example = [[r = report{columns={'spec','sqnr'}, {'int8', 38.9}, {'int4', 13.8}}
print(r)  --> spec  sqnr
          --> ──────────
          --> int8  38.9
          --> int4  13.8
print(#r, r[1].spec, r:best('sqnr').spec)  --> 2 int8 int8]]}

local function report(list)
	if is_report(list) then return like(list[STATE], list[STATE].rows) end
	base.options(make, list, true)
	list = list or {}
	local r, s = new(list.note)
	s.facts, s.figure = list.facts or {}, list.figure
	for _, name in ipairs(list.columns and base.list('report: columns', list.columns) or {}) do
		if type(name) ~= 'string' or s.has[name] then
			fail('report: columns: wanted distinct names, got %s', describe(name))
		end
		add_column(s, name)
	end
	add_rows(s, list)
	return r
end

---------------------------------------------------------------- reading

local function names_of(table)
	local names = {}
	for name in next, table do names[#names + 1] = name end
	return names
end

-- Methods that are also likely names of columns: x:error(q).mean is the cell.
local CELL_FIRST = {group = true, mean = true, pivot = true, show = true, text = true}

function meta.__index(r, key)
	local s = r[STATE]
	if math.type(key) == 'integer' then return s.rows[key < 0 and #s.rows + 1 + key or key] end
	if methods[key] and not (CELL_FIRST[key] and s.has[key] and #s.rows == 1) then return methods[key] end
	if s.has[key] then
		if #s.rows == 1 then return s.rows[1][key] end
		fail("report: wanted r[i].%s or r:column '%s' of a report with %d rows, got r.%s", key, key, #s.rows, key)
	end
	if s.facts[key] ~= nil then return s.facts[key] end
	local names = names_of(methods)
	table.move(s.columns, 1, #s.columns, #names + 1, names)
	for name in pairs(s.facts) do names[#names + 1] = name end
	fail("report: no column or method '%.40s'%s; columns: %s", tostring(key), near(key, names), table.concat(s.columns, ' '))
end

function meta.__newindex(_, key)
	fail("report: wanted r[i].column = value or r:add(row), got r.%s = …", tostring(key))
end

function meta.__len(r) return #r[STATE].rows end

function meta.__pairs(r) return ipairs(r[STATE].rows) end

function meta.__tostring(r)
	return internal.import 'interp/prelude/report_text'.table(r[STATE])
end

function meta.__brief(r)
	local s = r[STATE]
	return ('report, %d row%s: %s'):format(#s.rows, #s.rows == 1 and '' or 's', table.concat(s.columns, ' '))
end

function meta.__mime(r)
	return internal.import 'interp/prelude/report_files'.forms(r[STATE])
end

local function same(a, b)
	return a == b and math.type(a) == math.type(b) or a ~= a and b ~= b
end

-- Equal columns and equal cells; the note does not count.
function meta.__eq(a, b)
	if not (is_report(a) and is_report(b)) then return false end
	local s, t = a[STATE], b[STATE]
	if #s.columns ~= #t.columns or #s.rows ~= #t.rows then return false end
	for i, name in ipairs(s.columns) do
		if t.columns[i] ~= name then return false end
		for k, row in ipairs(s.rows) do
			if not same(row[name], t.rows[k][name]) then return false end
		end
	end
	return true
end

---------------------------------------------------------------- methods

local example = "r = report{columns={'spec','bits','ms'}, {'int8',8,0.2}, {'int4',4,0.3}, {'int4:32',4,0.1}}\n"

doc {name = 'report:column', usage = "r:column(name)",
	text = [[The cells of one column as a list, nil where a row has none.]],
	example = example .. "print(table.concat(r:column 'ms', ' '))  --> 0.2 0.3 0.1"}
function methods.column(r, name)
	local s, list = state_of(r, 'column'), {}
	if not s.has[name] then unknown(s, 'column', name) end
	for i, row in ipairs(s.rows) do list[i] = row[name] end
	return list
end

doc {name = 'report:columns', usage = 'r:columns()', text = [[The names of the columns in their order.]],
	example = example .. "print(table.concat(r:columns(), ' '))  --> spec bits ms"}
function methods.columns(r)
	local columns = state_of(r, 'columns').columns
	return table.move(columns, 1, #columns, 1, {})
end

doc {name = 'report:select', usage = "r:select{'spec', 'ms'}",
	text = [[A new report with these columns in this order.]],
	example = example .. "print(r:select{'ms','spec'}[1])  --> {ms=0.2, spec=int8}"}
function methods.select(r, ...)
	local s, names = state_of(r, 'select'), ...
	if type(names) == 'table' and select('#', ...) > 1 then base.surplus('select', 2, select(2, ...)) end
	if type(names) ~= 'table' then names = {...} end
	local list = {columns = names, note = s.note}
	for _, name in ipairs(names) do
		if not s.has[name] then unknown(s, 'select', name) end
	end
	for i, row in ipairs(s.rows) do
		list[i] = {}
		for _, name in ipairs(names) do list[i][name] = row[name] end
	end
	return report(list)
end

doc {name = 'report:add', usage = 'r:add(row)',
	text = [[Appends a row (a table by names, a list in the order of the columns, a row or a report) and returns r. Columns
that r has not yet are added on the right.]],
	example = "r = report()\nfor bits = 8, 4, -4 do r:add{bits=bits, bytes=bits*128} end\nprint(#r, r[-1].bytes)  --> 2 512"}
function methods.add(r, row)
	add_rows(state_of(r, 'add'), {row})
	return r
end

-- Numbers, then text, then booleans; NaN and missing cells last in either direction.
local function class_of(value)
	if value == nil then return 5 end
	if value ~= value then return 4 end
	return ({number = 1, string = 2, boolean = 3})[type(value)]
end

-- < 0, 0 or > 0
local function compare(a, b, descending)
	local ka, kb = class_of(a), class_of(b)
	if ka ~= kb then
		local order = ka - kb
		return (descending and ka <= 3 and kb <= 3) and -order or order
	end
	if a == b or ka >= 4 then return 0 end
	local less
	if ka == 3 then less = not a else less = a < b end
	return (less ~= descending) and -1 or 1
end

doc {name = 'report:sort', usage = "r:sort(column, descending)  r:sort{'bits','ms'}",
	text = [[A new report with the rows sorted by a column, or by several, the first one first; equal rows keep their order.
Numbers come before text; cells without a value come last.]],
	example = example .. "print(table.concat(r:sort('ms', true):column 'spec', ' '))  --> int4 int8 int4:32\n" ..
		"print(table.concat(r:sort{'bits','ms'}:column 'spec', ' '))  --> int4:32 int4 int8"}
function methods.sort(r, columns, descending)
	local s = state_of(r, 'sort')
	columns = type(columns) == 'table' and base.list('sort: columns', columns) or {columns}
	for i = 1, math.max(#columns, 1) do
		if not s.has[columns[i]] then unknown(s, 'sort', columns[i]) end
	end
	if descending ~= nil and type(descending) ~= 'boolean' and descending ~= 'descending' then
		fail("sort: descending: wanted true or false, got %s", describe(descending))
	end
	local order, down = {}, descending and true or false
	for i = 1, #s.rows do order[i] = i end
	table.sort(order, function(i, k)
		for _, name in ipairs(columns) do
			local c = compare(s.rows[i][name], s.rows[k][name], down)
			if c ~= 0 then return c < 0 end
		end
		return i < k
	end)
	for i = 1, #order do order[i] = s.rows[order[i]] end
	return like(s, order)
end

local HIGHER = {accuracy = true, cosine = true, gbs = true, gflops = true, gops = true, ratio = true, saving = true,
	speedup = true, sqnr = true}
base.higher_is_better = HIGHER

doc {name = 'report:best', usage = "r:best(column)  r:best(column, 'max')",
	text = [[The row with the best cell of a column, as a report of one row. Best is the smallest, or with 'max' the largest;
without a second argument it is the largest for accuracy, cosine, gbs, gflops, gops, ratio, saving, speedup and sqnr, and
the smallest for all others. Of equal ones the first.]],
	example = example .. "print(r:best('ms').spec, r:best('ms', 'max').spec)  --> int4:32 int4"}
function methods.best(r, column, way)
	local s, best = state_of(r, 'best'), nil
	if not s.has[column] then unknown(s, 'best', column) end
	if way ~= nil and way ~= 'min' and way ~= 'max' then fail("best: wanted 'min' or 'max', got %s", describe(way)) end
	local largest = way == 'max' or not way and HIGHER[column] or false
	for _, row in ipairs(s.rows) do
		local value = row[column]
		if type(value) == 'number' and value == value and
			(not best or compare(value, best[column], largest) < 0) then
			best = row
		end
	end
	if not best then fail("best: wanted a number in column '%s', got none in %d rows", column, #s.rows) end
	return like(s, {best})
end

local function accepts(wanted, value, row)
	if type(wanted) == 'function' then return wanted(value, row) end
	if type(wanted) ~= 'table' then return value == wanted end
	for _, one in ipairs(wanted) do
		if one == value then return true end
	end
	return false
end

doc {name = 'report:where', usage = "r:where{bits=4}  r:where{spec={'int8','int4'}}  r:where(function(row) … end)",
	text = [[A new report with the rows that fit: each named column equals the value, is one of a list, or is accepted by a
function of the cell; or a function of the row says so.]],
	example = example .. "print(#r:where{bits=4}, #r:where{bits=4, ms=function(ms) return ms < 0.2 end})  --> 2 1\n" ..
		"print(r:where(function(row) return row.bits == 8 end).spec)  --> int8"}
function methods.where(r, wanted)
	local s, rows = state_of(r, 'where'), {}
	if type(wanted) ~= 'table' and type(wanted) ~= 'function' then
		fail('where: wanted a table like {bits=4} or a function, got %s', describe(wanted))
	end
	for name in next, type(wanted) == 'table' and wanted or {} do
		if not s.has[name] then unknown(s, 'where', name) end
	end
	for _, row in ipairs(s.rows) do
		local keep = true
		if type(wanted) == 'function' then
			keep = wanted(row)
		else
			for name, value in next, wanted do keep = keep and accepts(value, row[name], row) end
		end
		if keep then rows[#rows + 1] = row end
	end
	return like(s, rows)
end

---------------------------------------------------------------- rows put together

local function is_numeric(s)
	return function(column)
		local found = false
		for _, row in ipairs(s.rows) do
			if row[column] ~= nil and type(row[column]) ~= 'number' then return false end
			found = found or row[column] ~= nil
		end
		return found
	end
end

local function parts_of(s) return {columns = s.columns, has = s.has, rows = s.rows, numeric = is_numeric(s)} end

local STATISTICS = [[Statistics: mean, interval (the mean with its confidence interval, printed as 91.2 ± 0.3: half its width is in
the column with ` ±` after the name), std (of n - 1), min, max, median, sum, count, or a function of the list of numbers. Cells without
a value are left out; nan is not.]]
local seeds = "r = report{columns={'bits','seed','accuracy'}, {8,1,91.4}, {8,2,91.0}, {4,1,85.0}, {4,2,86.0}}\n"

local group = doc {name = 'report:group', usage = "r:group('bits', {accuracy='interval', ms='median'})",
	text = [[One row for each combination of cells in a column, or a list of them, with statistics of other columns, and count, the
number of rows. Without statistics: the mean of each column of numbers. ]] .. STATISTICS .. [[ A list of statistics gives
columns as accuracy_min. r:plot draws intervals as error bars.]],
	options = {{'confidence', 'number', 'of intervals (default 0.95; Student t)'}},
	example = seeds .. [[print(r:group('bits', {accuracy='interval'}, {confidence=0.9}))  --> bits    accuracy  count
--> ───────────────────────
-->    8  91.2 ± 1.3      2
-->    4  85.5 ± 3.2      2
--> ±: 90 % confidence interval of the mean (Student t)
print(r:group('bits', {accuracy={'min', 'max'}})[1])  --> {bits=8, accuracy_min=91.0, accuracy_max=91.4, count=2}]]}
function methods.group(r, columns, statistics, options)
	local s = state_of(r, 'group')
	options = base.options(group, options)
	return report(internal.import 'interp/prelude/report_group'.group(parts_of(s), columns, statistics, options.confidence))
end

local pivot = doc {name = 'report:pivot', usage = "r:pivot{rows='observer', columns='bits', values='accuracy', by='mean'}",
	text = [[A table with a row for each cell of the column rows= (or combination of several), a column for each cell of columns=, and in it
a statistic (by=, default mean) of values=. ]] .. STATISTICS,
	options = {{'rows', 'text or list', 'column or columns whose cells make the rows'}, {'columns', 'text', 'column whose cells make the columns'},
		{'values', 'text', 'column of numbers'}, {'by', 'any', 'statistic (default mean)'}, {'confidence', 'number', 'of intervals (default 0.95)'}},
	example = "r = report{columns={'scheme','bits','sqnr'}, {'log',8,30}, {'log',4,20}, {'symmetric',8,38}, {'symmetric',8,40}}\n" .. [[
print(r:pivot{rows='scheme', columns='bits', values='sqnr'})  --> scheme      8   4
--> ─────────────────
--> log        30  20
--> symmetric  39   -
--> mean of sqnr for each bits]]}
function methods.pivot(r, options)
	local s = state_of(r, 'pivot')
	return report(internal.import 'interp/prelude/report_group'.pivot(parts_of(s), base.options(pivot, options)))
end

local mean = doc {name = 'report:mean', usage = "r:mean 'accuracy'  r:mean('accuracy', 'bits')",
	text = [[The mean of a column, half the width of its confidence interval (nil for a single value) and how many cells there are; with a column
or a list of them as the second argument the report r:group(by, {column='interval'}).]],
	options = {{'confidence', 'number', 'of the interval (default 0.95; Student t)'}},
	example = seeds .. "print((r:where{bits=4}:mean 'accuracy'), r:mean('accuracy', 'bits')[2].accuracy)  --> 85.5 85.5"}
function methods.mean(r, column, by, options)
	local s, files = state_of(r, 'mean'), internal.import 'interp/prelude/report_group'
	options = base.options(mean, options)
	if type(column) ~= 'string' then fail('mean: wanted the name of a column, got %s', describe(column)) end
	if by ~= nil then return methods.group(r, by, {[column] = 'interval'}, options) end
	return files.mean(parts_of(s), column, options.confidence)
end

---------------------------------------------------------------- looking

local function check_width(what, width)
	if width and width < 20 then fail('%s: width: wanted 20 columns or more, got %d', what, width) end
	return width
end

local WIDTH = {{'width', 'integer', 'columns of a line, from 20 on (default: of the terminal; in scripts COLUMNS, or 80)'}}
local text = doc {name = 'report:text', usage = 'r:text{width=120}',
	text = [[The table as text, as tostring(r) makes it, for lines of so many columns. Where they do not suffice, columns with one value go
to a line below the table, text is wrapped between words, and then the table is cut into blocks that repeat the first columns.]],
	options = WIDTH, example = example .. "print(#r:text{width=200} > 0)  --> true"}
function methods.text(r, options)
	local s = state_of(r, 'text')
	return internal.import 'interp/prelude/report_text'.table(s, check_width('text', base.options(text, options).width))
end

local show = doc {name = 'report:show', usage = 'r:show{width=200}', text = [[Prints the table for lines of so many columns (see report:text) and
returns r.]], options = WIDTH, example = example .. [[r:select{'spec', 'ms'}:show{width=40}  --> spec     ms
--> ────────────
--> int8    0.2
--> int4    0.3
--> int4:32 0.1]]}
function methods.show(r, options)
	local s = state_of(r, 'show')
	print(internal.import 'interp/prelude/report_text'.table(s, check_width('show', base.options(show, options).width)))
	return r
end

doc {name = 'report:save', usage = "r:save 'results.csv'",
	text = [[Writes the rows by the ending of the name: .csv and .json with every digit (bench.load reads them back), .md and
.html to be looked at. The file is replaced as a whole or not at all. Returns r.]],
	example = example .. "r:save 'results.csv'\nprint(bench.load 'results.csv' == r)  --> true\nos.remove 'results.csv'"}
function methods.save(r, file)
	internal.import 'interp/prelude/report_files'.save(state_of(r, 'save'), file)
	return r
end

local plot = doc {name = 'report:plot', usage = "r:plot{x='bits', y='sqnr', group='scheme', label='spec', file='f.png'}",
	text = [[A figure of columns of this report, as plot.<kind> makes it. Without a kind: bars when x is text, points when a
label is asked for, else lines. Several columns in y, or a group column, give one series each. Several rows for one bar, or for one x of a
line, are drawn as their mean with its 95 % confidence interval, and the axis says so; the intervals of r:group (columns ` ±`) are drawn
as error bars. Without x and y the figure that the report was made for, as of m:quantize{method=}, if there is one; rows without its
numbers are left out.]],
	options = {{'kind', 'text', 'name of a kind of plot: line bar scatter hist box'},
		{'x', 'text', 'column of the x axis'}, {'y', 'text or list', 'one column or several'},
		{'group', 'text', 'column whose values make the series'}, {'label', 'text', 'column written at the points'},
		{'yerr', 'text', 'column with half the lengths of error bars'}, {'low', 'text', 'column with their lower ends'}, {'high', 'text', 'and with the upper ones'},
		{'file', 'text', 'where to write the picture: .png .svg .pdf'}},
	example = example .. "figure = r:plot{x='spec', y='ms'}"}
function methods.plot(r, options)
	return internal.import 'interp/prelude/report_plot'(state_of(r, 'plot'), options, plot)
end

return report
