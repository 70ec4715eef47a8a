-- SPDX-License-Identifier: MIT
-- Reports: making, reading, printing, the methods, files that come back equal.
local r = report{columns = {'spec', 'bits', 'sqnr'}, {'int8', 8, 38.9}, {'int4', 4, 13.8123}, {spec = 'int4:32', bits = 4,
	sqnr = 20.3}}

---------------------------------------------------------------- making and reading
print(#r, r[1].spec, r[-1].sqnr, r[4], r[0])  --> 3 int8 20.3 nil nil
print(table.concat(r:columns(), ' '))         --> spec bits sqnr
print(table.concat(report{{z = 1, b = 2, name = 'x'}, {a = 3, kind = 'y'}}:columns(), ' '))  --> kind name a b z
print(table.concat(report{columns = {'b'}, {a = 1, b = 2}}:columns(), ' '))                   --> b a
local seen = 0
for i, row in ipairs(r) do seen = seen + i * row.bits end
for _, row in pairs(r) do seen = seen + row.bits end
print(seen)  --> 44
local order = {}
for name, value in pairs(r[1]) do order[#order + 1] = name .. '=' .. value end
print(table.concat(order, ' '), r[1])  --> spec=int8 bits=8 sqnr=38.9 {spec=int8, bits=8, sqnr=38.9}
print(report{{sqnr = 1.5}}.sqnr)       --> 1.5
print(#report(), #report{}, report{}.spec == nil)  --> error: no column or method 'spec'
print(report{{x = tensor{2.5}, s = quant.spec 'int8/1'}}[1])  --> {s=int8/1, x=2.5}
print(#report{r, r}, table.concat(report{r}:columns(), ' '))   --> 6 spec bits sqnr
print(report{r[2], {spec = 'float32'}}[2])                     --> {spec=float32}
r[1].bits = 7
print(r[1].bits, report(r)[1].bits)  --> 7 7
r[1].bits = 8

---------------------------------------------------------------- wrong use, each with one clear line
r.sqnr = 1                        --> error: wanted r[i].column = value or r:add(row), got r.sqnr
print(r.sqnr)                     --> error: wanted r[i].sqnr or r:column 'sqnr' of a report with 3 rows
print(r.sqnrr)                    --> error: no column or method 'sqnrr'; did you mean 'sqnr'?
print(r[1].sqnrr)                 --> error: wanted one of the columns spec bits sqnr, got 'sqnrr'; did you mean 'sqnr'?
r[1].other = 1                    --> error: got 'other'
report{{1, 2}}                    --> error: row 1: wanted 0 values for the columns
report{columns = {'a', 'a'}}      --> error: columns: wanted distinct names, got 'a'
report{colums = {'a'}}            --> error: unknown option 'colums'; did you mean 'columns'?
report{{a = {}}}                  --> error: row 1: column 'a': wanted a number, text or boolean, got table
report{{a = tensor{1, 2}}}        --> error: row 1: column 'a': wanted one number, got a tensor of 2
report(7)                         --> error: wanted a table of options, got 7
report{columns = {'a'}, 3}        --> error: row 1: wanted a table, got 3
r:sort 'bit'                      --> error: sort: wanted one of the columns spec bits sqnr, got 'bit'; did you mean 'bits'?
r:sort()                          --> error: sort: wanted one of the columns
r:best 'spec'                     --> error: best: wanted a number in column 'spec', got none in 3 rows
r:best('bits', 'maximum')         --> error: best: wanted 'min' or 'max', got 'maximum'
r:where{bit = 1}                  --> error: where: wanted one of the columns
r.where{bits = 4}                 --> error: where: wanted a report, as in r:where(…), got table
report{{a = 1}}[1].b = 2          --> error: got 'b'
(function() local t = report{{a = 1}} t[1].a = {} t:save '/tmp/x.csv' end)()  --> error: row 1: column 'a': wanted a number
r:save 'x.xls'                    --> error: save: wanted a name ending in .csv .html .json .md, got 'x.xls'
r:save '/no/such/folder/x.csv'    --> error: save: /no/such/folder/x.csv:

it('points at the line of the caller', function()
	local _, message = pcall(function() return r.nothing end)
	assert(message:find '^tests/interp/prelude/report.lua:%d+: report: no column', message)
	_, message = pcall(function() r:select{'nothing'} end)
	assert(message:find '^tests/interp/prelude/report.lua:%d+: select:', message)
end)

---------------------------------------------------------------- methods
print(table.concat(r:sort('sqnr'):column 'spec', ' '))                --> int4 int4:32 int8
print(table.concat(r:sort('sqnr', true):column 'spec', ' '))          --> int8 int4:32 int4
print(table.concat(r:sort{'bits', 'sqnr'}:column 'spec', ' '))        --> int4 int4:32 int8
print(table.concat(r:column 'spec', ' '))                             --> int8 int4 int4:32
print(r:best('sqnr').spec, r:best('sqnr', 'min').spec, r:best('bits').spec)  --> int8 int4 int4
print(#r:where{bits = 4}, #r:where{spec = {'int8', 'int4'}}, #r:where{})      --> 2 2 3
print(r:where(function(row) return row.sqnr > 30 end).spec)                  --> int8
print(r:select{'sqnr', 'spec'}[1], r:select('bits')[2])                       --> {sqnr=38.9, spec=int8} {bits=4}
print(#report():add{a = 1}:add{2}:add{b = 3}, #r)                             --> 3 3

it('sorts what has no order last, either way, and keeps equal rows in place', function()
	local mixed = report{{v = 2, i = 1}, {i = 2}, {v = 0 / 0, i = 3}, {v = 'text', i = 4}, {v = 1, i = 5}, {v = true, i = 6},
		{v = 2, i = 7}}
	assert(table.concat(mixed:sort('v'):column 'i', ' ') == '5 1 7 4 6 3 2')
	assert(table.concat(mixed:sort('v', true):column 'i', ' ') == '6 4 1 7 5 3 2')
end)

---------------------------------------------------------------- text
print(r)  --> spec     bits   sqnr
          --> ────────────────────
          --> int8        8  38.90
          --> int4        4  13.81
          --> int4:32     4  20.30
local t = report{columns = {'ms', 'n'}, {250.25, 1}, {0.0123456, -20}, {1.5, 3}, {3, 4}, {0 / 0, 5}, {n = 7}}
print(t)  -->      ms    n
          --> ────────────
          --> 250.250    1
          -->   0.012  -20
          -->   1.500    3
          -->   3.000    4
          --> nan        5
          -->   -        7
t = report{columns = {'tiny', 'big'}, {1.23456e-9, 1.5e12}, {math.huge, 12345678.9}}
print(t)  -->      tiny            big
          --> ────────────────────────
          --> 1.235e-09  1500000000000
          -->       inf       12345679
t = report{columns = {'text'}, {'a\nb\tc'}, {('x'):rep(60)}, {'\255'}}
print(t)  --> text
          --> ────────────────────────────────────────────────────────────
          --> a b c
          --> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          --> ?
print(report{columns = {'a'}, note = 'a: apples', {1}})  --> a
          --> ─
          --> 1
          --> a: apples
print(report())  --> report of 0 rows without columns

it('never is wider than 80 columns', function()
	local wide = {columns = {}}
	for i = 1, 4 do wide[i] = {} end
	for k = 1, 12 do
		local name = ('column_%02d'):format(k)
		wide.columns[k] = name
		for i = 1, 4 do wide[i][name] = k % 3 == 0 and 'the same' or i * k + 0.5 end
	end
	local text = tostring(report(wide))
	for line in text:gmatch '[^\n]+' do assert(utf8.len(line) <= 80, line) end
	assert(text:find('all rows: column_03 the same', 1, true), text)
	for k = 1, 12 do assert(text:find(('column_%02d'):format(k), 1, true), text) end
	local one = tostring(report{wide[1]})
	assert(one:find '\ncolumn_02  2.5', one)
end)
	it('folds copies of a column and empty ones, only where there is no room', function()
		local rows = {}
		for i = 1, 3 do rows[i] = {model = 'm' .. i, accuracy = i / 2, value = i / 2, why = '', filler = ('x'):rep(40) .. i, rest = ('y'):rep(30) .. i} end
		rows.columns = {'model', 'accuracy', 'value', 'why', 'filler', 'rest'}
		local text = tostring(report(rows))
		assert(text:find('all rows: value as accuracy$') and not text:find 'why', text)
		for _, row in ipairs(rows) do row.filler, row.rest = nil, nil end
		rows.columns = {'model', 'accuracy', 'value', 'why'}
		text = tostring(report(rows))
		assert(text:find 'value' and text:find 'why' and not text:find 'all rows', text)
	end)

-- One format for the numbers of a column, decided over all of them.
local function cells(values)
	local rows = {columns = {'x'}}
	for i, value in ipairs(values) do rows[i] = {value} end
	local list = {}
	for line in tostring(report(rows)):gmatch '[^\n]+' do list[#list + 1] = line:match '^%s*(.-)$' end
	return table.concat(list, ' ', 3)
end
print(cells{91.4000004529953, 91.5, 100})       --> 91.4 91.5 100.0
print(cells{100, 98.00, 0, -0.10000})           --> 100.0 98.0 0.0 -0.1
print(cells{100.0, 98.0})                       --> 100 98
print(cells{0.5, 1e-17, -1e-17})                --> 0.5 0.0 0.0
print(cells{0.75, 1e-5})                        --> 0.75000 0.00001
print(cells{1e-5, 2.5e-6, 0.0})                 --> 1.000e-05 2.500e-06 0.000e+00
print(cells{1 / 3, 2 / 3, 12345.678})           --> 0.33 0.67 12345.68
print(cells{1e6 + 0.5, 1e-6})                   --> 1.000e+06 1.000e-06
print(cells{3, 4.0, 2 ^ 49})                    --> 3 4 562949953421312
print(cells{3, math.maxinteger})                --> 3 9223372036854775807
print(cells{-math.huge, 1.25})                  --> -inf 1.25
print(cells{5e-324, 1.0})                       --> 0 1

it('wraps text between words and loses none of it', function()
	local why = '99 % of the weights use 0.21 of the range, the largest is 17.3 times the rms'
	local rules = {}
	for i = 1, 30 do rules[i] = ('layer%d=int%d/1'):format(i, i % 2 == 0 and 4 or 8) end
	rules = table.concat(rules, ' ')
	local long = report{columns = {'layer', 'drop', 'why', 'rules', 'file'}, {'a', 1.5, why, rules, ('p/'):rep(60)}, {'b', 2.25, 'none', '', 'f'}}
	for _, width in ipairs {40, 60, 80, 120, 400} do
		local text = long:text{width = width}
		for line in text:gmatch '[^\n]+' do assert(utf8.len(line) <= width, width .. line) end
		for _, word in ipairs {'rms', 'layer30=int4/1', 'layer1=int8/1', '17.3'} do assert(text:find(word, 1, true), width .. ' ' .. word) end
		assert(select(2, text:gsub('/', '')) >= 60 and not text:find '…')
	end
	assert(select(2, long:text{width = 800}:gsub('\n', '')) == 3) -- where there is room nothing is wrapped
	local one = report{long[1]}:text{width = 60}
	assert(one:find '\nwhy%s+99 %%' and one:find 'the\n%s+largest is 17.3 times' or one:find 'largest', one)
	for line in one:gmatch '[^\n]+' do assert(utf8.len(line) <= 60, line) end
end)
print(report{{a = 1, b = 'x y'}}:show{width = 20} ~= nil)  --> b    a
                                                            --> ──────
                                                            --> x y  1
                                                            --> true
report{{a = 1}}:show{width = 3}     --> error: show: width: wanted 20 columns or more, got 3
report{{a = 1}}:text{widht = 30}    --> error: unknown option 'widht'; did you mean 'width'?

it('shows both ends of a long report', function()
	local long = {columns = {'i'}}
	for i = 1, 1000 do long[i] = {i} end
	local text = tostring(report(long))
	assert(text:find '\n%s*1\n' and text:find '\n1000\n' and text:find '…' and text:find '1000 rows')
	assert(select(2, text:gsub('\n', '')) < 100)
end)

---------------------------------------------------------------- files
local all = report{columns = {'text', 'n', 'x', 'flag'}, note = 'what <b>&amp;</b> says',
	{'plain', 1, 0.1, true}, {'with, comma', -5, 1 / 3, false}, {'"quoted"', 9007199254740993, 1e300},
	{'two\nlines', 0, 0 / 0}, {'12', 2, 3.0}, {'', 3, math.huge}, {'true', 4, -math.huge}, {' padded ', 5, -0.0},
	{'nan', 6, 5e-324}, {n = 7}, {'ümläut €', 8, 123456789.125}, {'\1\127', 9, 2 ^ 53}, {'1e5', 10, 1e22}}

local function name_of(ending)
	local name = os.tmpname()
	os.remove(name)
	return name .. ending
end

local function read(file)
	local handle = assert(io.open(file, 'rb'))
	local text = handle:read 'a'
	handle:close()
	return text
end

it('comes back equal from .csv and .json, with every type', function()
	for _, ending in ipairs {'.csv', '.json', '.CSV'} do
		local file = name_of(ending)
		assert(all:save(file) == all)
		local back = bench.load(file)
		assert(back == all, ending .. '\n' .. tostring(back))
		assert(math.type(back[1].n) == 'integer' and math.type(back[5].x) == 'float' and back[5].text == '12')
		os.remove(file)
	end
	assert(report{{a = 1}} ~= report{{a = 1.0}} and report{{a = 1}} ~= report{{b = 1}} and report{{a = 1}} == report{{a = 1}})
end)

it('reads what others write', function()
	local file = name_of '.csv'
	local handle = io.open(file, 'w')
	handle:write('\239\187\191a,b\r\n1,"x\r\ny"\r\n\r\n2.5,\r\n')
	handle:close()
	local back = bench.load(file)
	assert(#back == 2 and back[1].a == 1 and back[1].b == 'x\r\ny' and back[2].a == 2.5 and back[2].b == nil)
	os.remove(file)
	file = name_of '.json'
	handle = io.open(file, 'w')
	handle:write('[{"name": "a\\u00e9\\ud83d\\ude00", "v": 1.5e3, "n": -12}, {"name": null, "v": true}]')
	handle:close()
	back = bench.load(file)
	assert(back[1].name == 'aé😀' and back[1].v == 1500.0 and back[1].n == -12 and back[2].v == true and back[2].name == nil)
	os.remove(file)
end)

it('refuses damaged files in one line', function()
	local function refused(ending, text, wanted)
		local file = name_of(ending)
		local handle = io.open(file, 'w')
		handle:write(text)
		handle:close()
		local good, message = pcall(bench.load, file)
		os.remove(file)
		assert(not good and message:find(wanted, 1, true) and not message:find '\n', tostring(message))
	end
	refused('.csv', '', 'got an empty file')
	refused('.csv', 'a,b\n1,2,3\n', 'row 1: wanted 2 fields, got 3')
	refused('.csv', 'a\n"open\n', 'wanted a closing quote')
	refused('.csv', 'a\n"x"y\n', "wanted a comma or the end of the line at byte 6, got 'y'")
	refused('.csv', 'a,a\n1,2\n', 'columns: wanted distinct names')
	refused('.json', '{"rows": [', 'wanted a value at byte 11, got the end')
	refused('.json', '[1, 2]', 'row 1: wanted an object, got 1')
	refused('.json', '[{"a": [1]}]', 'row 1: wanted numbers, text and booleans')
	refused('.json', '[{"a": 1}] x', "wanted the end at byte 12, got 'x'")
	refused('.json', ('['):rep(1000), 'wanted at most 64 levels')
	refused('.json', '[{"a": 01}]', 'wanted a value')
	refused('.json', '[{"a": "\\ud800\\u0041"}]', 'wanted both halves of a surrogate pair')
	refused('.json', '7', 'wanted a list of rows')
	local good, message = pcall(bench.load, '/no/such/file.csv')
	assert(not good and message:find 'No such file')
end)

it('replaces a file as a whole or not at all', function()
	local file = name_of '.csv'
	r:save(file)
	local before = read(file)
	os.execute('chmod 444 ' .. file)
	pcall(function() all:save(file) end)
	local after = read(file)
	assert(after == before or bench.load(file) == all)
	os.remove(file)
end)

-- Everything that could act in a page, in every place where text can stand.
it('writes pages and Markdown in which nothing acts', function()
	local payloads = {'<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '"><svg/onload=alert(1)>', "'-alert(1)-'",
		'</td></table><script>', '</style><script>', '<!--', ']]>', 'javascript:alert(1)', '[x](javascript:alert(1))',
		'![x](http://example.org/x)', '+ADw-script+AD4-', 'a\0b<script>', '&lt;script&gt;', '<iframe srcdoc="x">', '|a|b|',
		'`code`', 'http://example.org'}
	local bad = {columns = {'name'}, note = payloads[1]}
	for i, text in ipairs(payloads) do bad[i] = {name = text} end
	bad[1]['<b>column</b>'] = 1
	for _, ending in ipairs {'.html', '.md'} do
		local file = name_of(ending)
		report(bad):save(file)
		local text = read(file)
		os.remove(file)
		local allowed = {['!doctype'] = 1, html = 1, head = 1, meta = 1, title = 1, style = 1, body = 1, table = 1, tr = 1,
			th = 1, td = 1, p = 1, div = 1, thead = 1, tbody = 1}
		for tag in text:gmatch '</?([%w!]*)' do
			assert(ending == '.html' and (tag == '' or allowed[tag]), ending .. ' <' .. tag)
		end
		assert(not text:find '%z' and not text:find '%son%w+%s*=[^&]*>' and not text:find '<[^>]*href')
		if ending == '.html' then
			assert(text:find("default-src 'none'", 1, true) and text:find 'charset="utf%-8"')
			assert(select(2, text:gsub('<tr>', '')) == #payloads + 1)
		else
			assert(not text:find '[^\\]%[x' and not text:find '[^\\]`')
			for line in text:gmatch '\n(|[^\n]*)' do
				assert(select(2, line:gsub('\\|', ''):gsub('|', '')) == 3, line)
			end
		end
	end
end)
