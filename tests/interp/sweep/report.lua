-- SPDX-License-Identifier: MIT
-- quoll sweep report, merge and diff; hostile text on its way through the results file into all of them.
local internal = debug.getregistry()['quoll.internal']
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write, read_file = scratch.folder()
local function read(name) return read_file(name) or '' end
local function run(arguments) return scratch.shell(folder, '$exe ' .. arguments) end

local function fresh(name, text)
	os.execute(('rm -f %s/*'):format(folder))
	write(name, text)
end

local STUDY = [[return {name='s', grid={bits={8,4,2}}, seeds=3, run=function(c)
	if c.bits == 2 and c.seed == 2 then print '<b>deep</b>' error 'no luck' end
	return {accuracy=c.bits / 10 + c.seed / 100 + (OFFSET or 0), bytes=c.bits * 100}
end}]]

it('prints the rows, the best trade-offs and what failed', function()
	fresh('s.lua', STUDY)
	local text, code = run 'sweep s.lua'
	assert(code == 1 and text:find '8 of 9 trials are done, 1 failed', text)
	text, code = run 'sweep report s.db'
	assert(code == 0 and text:find '^s\nbits  seed  accuracy  bytes\n', text)
	assert(text:find 'best trade%-offs of bytes and accuracy: 3 of 8\n.-\n   2     3      0.23    200\n   4     3      0.43    400\n   8     3      0.83    800\n', text)
	assert(text:find '\nFAILED  bits=2 seed=2: s.lua:2: no luck\n    | <b>deep</b>\n', text)
	assert(not run 'sweep report s.db --x accuracy --y accuracy':find 'trade%-offs')
end)

it('the column value holds what the column metric says: fronts by model and metric', function()
	write('v.lua', [[return {name='v', grid={bits={8,4}, model={'a','b'}}, run=function(c)
	return report {columns={'metric', 'value', 'bytes'},
		{c.model == 'a' and 'accuracy' or 'perplexity', c.model == 'a' and 10 * c.bits or c.bits, c.bits}}
end}]])
	run 'sweep v.lua'
	local text, code = run 'sweep report v.db'
	assert(code == 0, text)
	assert(text:find 'best trade%-offs of bytes and accuracy of a: 2 of 2\n', text)          -- more bytes, more accuracy
	assert(text:find 'best trade%-offs of bytes and perplexity of b: 1 of 2\nbits .-\n   4 ', text) -- less is better in both
	run 'sweep report v.db --html v.html'
	local page = read 'v.html'
	assert(page:find '<h2>Best trade%-offs of bytes and accuracy of a</h2>' and page:find 'perplexity of b</h2>', page)
	os.remove(folder .. '/v.db')
end)

it('writes CSV that reads back equal, Markdown and HTML', function()
	local text, code = run 'sweep report s.db --csv o.csv --md o.md --html o.html'
	assert(code == 0 and text == '', text)
	local r = bench.load(folder .. '/o.csv')
	assert(r == sweep.load(folder .. '/s.db') and #r == 8)
	assert(read 'o.md':find '| bits | seed | accuracy | bytes |\n| %-%-%-: |')
	local page = read 'o.html'
	for _, part in ipairs {'<title>s</title>', '<h1>s</h1>', "default%-src 'none'", '<svg ', '<td class="n">0.83</td>',
		'<h2>Failed</h2>\n<p>bits=2 seed=2: s.lua:2: no luck</p>\n<pre>&#60;b&#62;deep&#60;/b&#62;', '9 trials: 8 done, 1 failed, 0 missing'} do
		assert(page:find(part) or part == '<svg ' and page:find 'No figure: .*plplot', part)
	end
	assert(not page:gsub('xmlns:?%w*="[^"]*"', ''):find 'https?:', 'nothing from elsewhere')
end)

it('colours by parameters, can be sorted, and says where it comes from', function()
	write('c.lua', [[return {name='c', grid={bits={8,4,2}, way={'a','b'}, one={1}}, run=function(c) return {accuracy=c.bits, bytes=c.bits * 2} end}]])
	assert(select(2, run 'sweep c.lua') == 0)
	run 'sweep report c.db --html c.html --y accuracy'
	local page = read 'c.html'
	assert(page:find('<dt>command</dt><dd>quoll sweep report c.db --html c.html --y accuracy</dd>', 1, true) and page:find '<dt>version</dt><dd>Quoll %d' and
		page:find '<dt>date</dt><dd>%d%d%d%d%-%d%d%-%d%d %d%d:%d%d UTC</dd>' and page:find('<dt>script</dt><dd>c.lua</dd>', 1, true), page)
	assert(page:find '<table class="sort">')
	local plain = page:gsub('&#x(%x+);', function(code) return utf8.char(tonumber(code, 16)) end)
	if plain:find '<svg' then
		assert(plain:find 'coloured by bits' and plain:find 'coloured by way' and not plain:find 'coloured by one')
	end
	os.remove(folder .. '/c.db')
end)

it('says what is wrong with a call', function()
	local function refused(arguments)
		local text, code = run(arguments)
		assert(code == (text:find 'no such option' and 2 or 1), arguments)
		return (text:match '^[^\n]*')
	end
	print(refused 'sweep report')                       --> quoll: sweep report: wanted one results file, got 0
	print(refused 'sweep report no.db')                 --> quoll: sweep: no.db: there is no such results file
	print(refused 'sweep report s.db --study t')        --> quoll: sweep: study: wanted one of s of s.db, got 't'; did you mean 's'?
	print(refused 'sweep report s.db --htm x')          --> quoll: sweep report: --htm: no such option; did you mean '--html'? (quoll sweep report --help lists them)
	print(refused 'sweep report s.db --html')           --> quoll: sweep report: --html: wanted a value, got none
	print(refused 'sweep report s.db --html x.txt')     --> quoll: sweep report: --html: wanted a name ending in .html, got 'x.txt'
	print(refused 'sweep report s.db --csv x.txt')      --> quoll: sweep report: --csv: wanted a name ending in .csv, got 'x.txt'
	print(refused 'sweep report s.db --x nothing')      --> quoll: sweep report: --x: wanted one of the columns bits seed accuracy bytes, got 'nothing'
	print(refused 'sweep merge')                        --> quoll: sweep merge: wanted results files, got none
	print(refused 'sweep merge no.db')                  --> quoll: sweep merge: no.db: there is no such file
	print(refused 'sweep merge a.1of2.db b.1of2.db')    --> quoll: sweep merge: --into: wanted the name of a file, because these are of a.db and b.db
	print(refused 'sweep diff s.db')                    --> quoll: sweep diff: wanted two results files, got 1
	print(refused 'sweep diff s.db s.db --level 2')     --> quoll: sweep: diff: level: wanted a number between 0 and 1, got 2
	print(refused 'sweep raport')                       --> quoll: sweep: raport: no such script, and no report, merge or diff; did you mean 'report'?
	print(refused 'sweep')                              --> usage: quoll sweep file.lua ...
	write('none.lua', 'print "nothing"')
	print(refused 'sweep none.lua')                     --> nothing
	assert(run 'sweep none.lua':find 'wanted a script that calls sweep.run or returns a table')
	write('broken.lua', 'x = = 1')
	assert(refused 'sweep broken.lua':find 'broken.lua:1: unexpected symbol')
	assert(select(2, run 'sweep --help') == 0)
end)

it('writes nothing when it only reads', function()
	local before = internal.sha256_file(folder .. '/s.db')
	run 'sweep report s.db'
	run 'sweep diff s.db s.db'
	run '-e "sweep.load \'s\'"'
	assert(internal.sha256_file(folder .. '/s.db') == before)
end)

it('reports how many trials of earlier versions of the script are left out', function()
	local text = [[return {name='e', grid={a={%s}}, run=function(c) return {b=%s * c.a} end}]]
	fresh('e.lua', text:format('1,2,3', '1'))
	run 'sweep e.lua'
	assert(not run 'sweep report e.db':find 'earlier')
	write('e.lua', text:format('1,2', '10'))
	run 'sweep e.lua'
	local note = '3 finished trials of earlier versions of the script are left out; '
	local out = run 'sweep report e.db':gsub('%s+', ' ')
	assert(out:find(' 1 10 2 20 ' .. note .. '--all shows them ', 1, true), out)
	out = run 'sweep report e.db --all'
	assert(out:find '\n3 +3\n' and out:find '\n2 +20\n' and not out:find 'left out', out)
	assert(tostring(sweep.load(folder .. '/e.db')):gsub('%s+', ' '):find(note .. '{all=true} shows them', 1, true))
	assert(#sweep.load(folder .. '/e.db', {all = true}) == 5)
	run 'sweep report e.db --html e.html --md e.md'
	assert(read 'e.html':find(note .. '--all shows them', 1, true))
	assert(run 'sweep report --help':find 'also trials of earlier versions of the script')
end)

---------------------------------------------------------------- merge

it('merges shards into the table of the whole', function()
	fresh('s.lua', STUDY)
	for i = 1, 3 do run(('sweep s.lua --shard %d/3'):format(i)) end
	local text, code = run 'sweep merge s.1of3.db s.2of3.db s.3of3.db'
	assert(code == 0 and text == 's.db: 9 trials from 3 files, 8 done, 9 new here, 0 conflicts\n', text)
	run 'sweep s.lua --db whole.db'
	assert(run 'sweep report s.db' == run 'sweep report whole.db')
	assert(run 'sweep merge s.1of3.db s.2of3.db s.3of3.db':find 's.db: 9 trials from 3 files, 8 done, 0 new here, 0 conflicts')
	text = run 'sweep s.lua'
	assert(text:find 's: 8 of 9 trials were done before\n%[9/9%] FAILED', text)
end)

it('makes no results file when a merge cannot read one of its files', function()
	fresh('bad.db', 'no database, although it is long enough for the header of one: ' .. ('x'):rep(100))
	write('s.lua', STUDY)
	run 'sweep s.lua --db good.db'
	for _, files in ipairs {'bad.db', 'good.db bad.db', 'bad.db good.db'} do
		local text, code = run('sweep merge --into z.db ' .. files)
		assert(code == 1 and text:find '^quoll: sweep: bad.db: [^\n]*\n$', text)
		assert(not io.open(folder .. '/z.db'), files)
	end
	local before = internal.sha256_file(folder .. '/good.db')
	assert(select(2, run 'sweep merge --into good.db bad.db') == 1 and internal.sha256_file(folder .. '/good.db') == before)
end)

it('takes what is missing in an unfinished shard as missing', function()
	fresh('s.lua', STUDY)
	run 'sweep s.lua --shard 1/3'
	run 'sweep s.lua --shard 2/3 --fail-fast'
	run 'sweep merge s.1of3.db s.2of3.db'
	assert(#sweep.load(folder .. '/s.db') >= 3)
	local text = run 'sweep s.lua'
	assert(text:find '8 of 9 trials are done, 1 failed', text)
end)

it('names what contradicts, and keeps what was there', function()
	fresh('s.lua', [[sweep.run{name='s', grid={x={1,2,3}}, run=function(c)
		local f = io.open 'value.txt' return {v=c.x == 2 and f and f:read 'n' or c.x} end}]])
	run 's.lua --db a.db'
	write('value.txt', '77')
	run 's.lua --db b.db'
	local text, code = run 'sweep merge a.db b.db --into all.db'
	assert(code == 1 and text:find '^conflict: s: x=2: v is 77 in b.db, and 2 here\nall.db: 3 trials from 2 files, 3 done, 3 new here, 1 conflicts', text)
	assert(sweep.load(folder .. '/all.db'):where{x=2}.v == 2)
end)

---------------------------------------------------------------- diff

it('gives confidence intervals over seeds', function()
	fresh('s.lua', [[sweep.run{name='s', grid={x={1}}, seeds=3, run=function(c)
		local f = io.open 'shift.txt'
		return {v=({1.0, 2.0, 3.0})[c.seed] + (f and f:read 'n' or 0), w=1, t='text'} end}]])
	run 's.lua --db a.db'
	write('shift.txt', '5')
	run 's.lua --db b.db'
	local diff = internal.import 'interp/sweep/diff'
	local r = diff(folder .. '/a.db', folder .. '/b.db', {})
	local v = r:where{result='v'}[1]
	print(#r, v.a, v.b, v.difference, v.na, v.nb, v.verdict)  --> 2 2.0 7.0 5.0 3 3 b is higher
	-- four degrees of freedom: t 2.776445105 (Fisher's table), standard error (2/3)^0.5
	print(('%.6f %.6f'):format(v.lo, v.hi))  --> 2.733042 7.266958
	print(r:where{result='w'}[1].verdict)    --> equal
	v = diff(folder .. '/a.db', folder .. '/b.db', {level=0.99}):where{result='v'}[1]
	print(('%.5f'):format(v.hi - 5))         --> 3.75923
	assert(v.lo > 0)
	v = diff(folder .. '/a.db', folder .. '/b.db', {level=0.999}):where{result='v'}[1]
	print(v.verdict)                         --> may be equal
	local text, code = run 'sweep diff a.db b.db'
	assert(code == 0 and text:find 'x=1 ' and text:find '95 %%\nconfidence interval', text)
end)

it('warns when the circumstances differ', function()
	run 's.lua --db c.db --jobs 2'
	local text = run 'sweep diff a.db c.db'
	assert(text:find 'warning: jobs differs: 1 and 2\n' and text:find 'do not compare times', text)
	run 's.lua --db d.db seed=1'
	text = run 'sweep diff a.db d.db'
	assert(text:find 'v' and not text:find 'equal' , text) -- one sample has no interval
end)

---------------------------------------------------------------- hostile text

local HOSTILE = {'<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", '</title><script>x</script>',
	'</td></table><script>1</script>', '</svg><script>1</script>', '</text><script>1</script>', '<svg onload=alert(1)>', '<svg/onload=alert(1)>',
	'javascript:alert(1)', '<a href="javascript:1">x</a>', '<iframe src="data:text/html,x">', '<object data=x>', '<embed src=x>',
	'<base href="http://x/">', '<meta http-equiv=refresh content="0;url=x">', '<link rel=stylesheet href=x>', '<style>@import "x"</style>',
	'<math><mi xlink:href="data:x">', '<form action=x><input autofocus onfocus=1>', '<details open ontoggle=1>', '<video><source onerror=1>',
	'<body onload=1>', '<!--', '-->', '<![CDATA[', ']]>', '<?xml version="1.0"?>', '&lt;script&gt;', '&#60;script&#62;', '&#x3C;b', '&amp;',
	'</style><script>1</script>', '</pre><script>1</script>', '</h1><script>1</script>', '${alert(1)}', '{{7*7}}', '%s%d%n', '%1', '\\', '\\u003cscript',
	"'; DROP TABLE trial; --", '"; DELETE FROM result; --', "' OR 1=1 --", 'NULL', 'nan', '-0', '1e999', '=cmd|"/c calc"!A0', '@SUM(1)', '../../etc/x',
	'\27[2J\27[31mred', '\27]0;title\7', '\r\n<b>', 'a\0b', '\226\128\174rtl', '\240\159\146\169', '\226\128\168', '#<sub>#d', ('<b>'):rep(300),
	'seed\t', ' '}
print(#HOSTILE >= 60)  --> true

-- The page without the script that sorts, which must be the only one and the only one that its policy allows.
local function without_sort(page)
	local policy = page:match '<meta http%-equiv="Content%-Security%-Policy" content="([^"]*)">'
	local hash = policy and policy:match "^default%-src 'none'; script%-src 'sha256%-([%w+/]+=*)'; img%-src data:; style%-src 'unsafe%-inline'$"
	assert(hash, policy)
	local rest, n = page:gsub('<script>(.-)</script>\n</body></html>\n$', function(text)
		local bytes = internal.sha256(text):gsub('%x%x', function(two) return string.char(tonumber(two, 16)) end)
		assert(internal.import 'interp/prelude/mime'.base64(bytes) == hash, 'the hash is that of the script')
		return '</body></html>\n'
	end)
	assert(n == 1 and select(2, page:gsub('Content%-Security%-Policy', '')) == 1)
	return rest
end

local TAGS = {}
for tag in ([[html head meta title style body h1 h2 dl dt dd p pre div table thead tbody tr th td svg rect g polyline polygon text tspan path
	clipPath defs use]]):gmatch '%S+' do TAGS[tag] = true end

-- Tags, attributes and addresses of a page that could be active; what is left of the text must have no bracket.
local function active_nodes(page)
	local found = {}
	page = page:gsub('^<!doctype html>', '')
	local style = select(2, page:gsub('<style>', ''))
	for close, tag, attributes, stop in page:gmatch '<(/?)([%w]*)([^<>]*)(.?)' do
		if not TAGS[tag] or stop ~= '>' then found[#found + 1] = '<' .. close .. tag .. attributes end
		for name, value in attributes:gmatch '([%w:%-]+)%s*=%s*"([^"]*)"' do
			local bad = name:find '^on' or name == 'src' or name == 'style' or name:find 'href$' and not value:find '^#' or
				value:lower():find 'javascript' or name == 'http-equiv' and value ~= 'Content-Security-Policy'
			if bad then found[#found + 1] = name .. '=' .. value end
		end
	end
	assert(style == 2, 'styles of our own only')
	return found
end

it('finds what is active (the judge itself)', function()
	local two = '<style></style><style></style>'
	for _, text in ipairs {'<script>', '<p onclick="1">', '<svg><a href="javascript:1">', '<img src="x">', '<b', '<meta http-equiv="refresh">'} do
		assert(#active_nodes(two .. text) > 0, text)
	end
	assert(#active_nodes(two .. '<p class="n">x</p>') == 0)
end)

it('has no active node in a page with hostile names, values, results, output and errors', function()
	os.execute(('rm -f %s/*'):format(folder))
	local texts = {}
	for i, text in ipairs(HOSTILE) do texts[i] = ('%q'):format(text) end
	write('s.lua', ([[local H = {%s}
	local all = {}
	for _, h in ipairs(H) do all[h] = {h} end
	all.which = {1, 2, 3}
	sweep.run{name=H[1] .. H[2], grid=all, db='s.db', run=function(c)
		if c.which == 3 then for _, h in ipairs(H) do print(h) end error(table.concat(H)) end
		local r = {accuracy=c.which}
		for _, h in ipairs(H) do assert(c[h] == h) r['r' .. h], r['n' .. h] = h, c.which end
		return r
	end}]]):format(table.concat(texts, ', ')))
	local text, code = run 'sweep s.lua'
	assert(code == 1 and text:find ': 2 of 3 trials are done, 1 failed; results in s.db\n$' and not text:find '[\0-\8\11-\31]', text)
	text = run 'sweep report s.db --html o.html --md o.md --csv o.csv'
	assert(text == '', text)
	text = run 'sweep report s.db'
	assert(not text:find '[\0-\8\11-\31]', 'no control characters on the terminal')
	local r = sweep.load(folder .. '/s.db')
	for _, h in ipairs(HOSTILE) do
		assert(r[1][h] == h and r[1]['r' .. h] == h and r[2]['n' .. h] == 2, ('%q'):format(h))
	end
	local found = active_nodes(without_sort(read 'o.html'))
	assert(#found == 0, table.concat(found, '\n'))
	local store, page, pages = internal.import 'interp/sweep/store', internal.import 'interp/sweep/page', 0
	local db <close> = store.open(folder .. '/s.db', 'read')
	for _, h in ipairs(HOSTILE) do -- each as the name of an axis
		page.save(folder .. '/o.html', db, store.study(db, 's.db'), r, {x='n' .. h, y='accuracy'})
		found = active_nodes(without_sort(read 'o.html'))
		assert(#found == 0 and read 'o.html':find '<svg', ('%q: %s'):format(h, table.concat(found, '\n')))
		pages = pages + 1
		if os.getenv 'QUOLL_KEEP' then internal.write_file(('%s/sweep%d.html'):format(os.getenv 'QUOLL_KEEP', pages), read 'o.html') end
	end
end)
