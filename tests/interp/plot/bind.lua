-- SPDX-License-Identifier: MIT
-- Figures as objects: files, bytes, terminals, hostile texts, wrong calls, what happens without plplot.
local function run(code, environment, shell)
	local file = os.tmpname()
	local handle = assert(io.open(file, 'w'))
	handle:write(code)
	handle:close()
	local line = (environment or '') .. ' "/proc/$PPID/exe" ' .. file .. ' 2>&1'
	local pipe = io.popen(shell and shell:format(line) or 'exec env ' .. line)
	local output = pipe:read 'a'
	local good = pipe:close()
	os.remove(file)
	return output, good
end
local function read(file)
	local handle = assert(io.open(file, 'rb'))
	local bytes = handle:read 'a'
	handle:close()
	return bytes
end
local pictures = pcall(function() return plot.line{{1, 2}}:png() end)
local kinds = {
	line = {{1, 4, 2}, {2, 3, 4}, names = {'a', 'b'}}, bar = {x = {'a', 'b'}, y = {1, 2}}, hist = {{1, 2, 2, 3.5}},
	scatter = {x = {1, 2}, y = {2, 1}, label = {'a', 'b'}}, heat = {{1, 2}, {3, 4}}, box = {{1, 2, 3, 9}, {2, 3}},
}

describe('a figure', function()
	it('describes itself', function()
		assert(tostring(plot.line{{1, 2}, {3, 4}, names = {'a', 'b'}, title = 'x'}) == "line figure, 2 series, 'x'")
		assert(tostring(plot.heat{{1, 2}, {3, 4}, {5, 6}}) == 'heat figure, 3 x 2')
	end)
	it('can be closed, once and for all', function()
		local fig <const> = plot.line{{1, 2}}
		do local _ <close> = fig end
		assert(select(2, pcall(fig.text, fig)):find('already closed', 1, true))
	end)
	it('frees its memory', function()
		collectgarbage()
		local before = tensor.memory().now
		for _ = 1, 50 do
			for kind, data in pairs(kinds) do plot[kind](data):text() end
		end
		collectgarbage()
		collectgarbage()
		assert(tensor.memory().now == before, tensor.memory().now - before)
	end)
	it('is written as text of the size asked for', function()
		for kind, data in pairs(kinds) do
			for _, size in ipairs{{20, 6}, {40, 10}, {80, 22}, {200, 60}} do
				local plain, rows = plot[kind](data):text{width = size[1], height = size[2]}, 0
				for line in plain:gmatch '([^\n]*)\n' do
					rows = rows + 1
					assert(utf8.len(line) <= size[1] and not line:find ' $' and not line:find '\27', kind)
				end
				assert(rows == size[2], kind)
			end
		end
	end)
	it('goes to a display when the program has one', function()
		local registry, shown = debug.getregistry()
		local _ <close> = registry['quoll.internal'].listen(function(kind, _, fig) shown = kind == 'display' and fig end, true)
		local fig = plot.line{{1, 2}}
		assert(fig:show() == fig and shown == fig)
	end)
end)

describe('pictures', function()
	if not pictures then skip 'plplot or its cairo driver is not installed' end
	it('exist for every kind and format, of the size asked for', function()
		for kind, data in pairs(kinds) do
			data.width, data.height = 480, 300
			local fig = plot[kind](data)
			local png, svg, pdf = fig:png(), fig:svg(), fig:pdf()
			assert(png:sub(1, 8) == '\137PNG\r\n\26\n' and select(1, string.unpack('>I4', png, 17)) == 480)
			assert(select(1, string.unpack('>I4', png, 21)) == 300 and #png > 2000, kind)
			assert(svg:find('^<%?xml') and svg:find('width="480" height="300"', 1, true) and svg:find '</svg>%s*$')
			assert(pdf:sub(1, 5) == '%PDF-' and pdf:find '%%%%EOF%s*$')
			data.width, data.height = nil, nil
		end
	end)
	it('are the same bytes every time', function()
		for kind, data in pairs(kinds) do
			assert(plot[kind](data):png() == plot[kind](data):png(), kind)
			assert(plot[kind](data):svg() == plot[kind](data):svg(), kind)
		end
		local code = "io.write(plot.line{{1, 4, 2}, title='a'}:png())"
		local first = run(code)
		assert(#first > 2000 and first == run(code))
	end)
	it('of several figures can stand in one page', function()
		local a, b = plot.line{{1, 2}}:svg():match 'id="(%w+)"', plot.line{{2, 1}}:svg():match 'id="(%w+)"'
		assert(a and b and a ~= b)
	end)
	it('show any text', function()
		for _, title in ipairs{'#1 #b #- ##', '<b>&amp;"\'</text><script>', 'β µ ± − ½ 日本', '\0\1\27[31m\127', '\xff\xc0\x80\xed\xa0\x80',
			'a\nb\tc', '\u{202e}abc', ('x'):rep(5000), ('#'):rep(3000), ''} do
			local data = {x = {title, 'b'}, y = {1, 2}, title = title, xlabel = title, ylabel = title}
			local fig = plot.bar(data)
			local svg = fig:svg()
			assert(#fig:png() > 1000 and not svg:find '[%z\1-\8\11-\31]' and not svg:find '<script' and utf8.len(svg))
			local plain = fig:text()
			assert(utf8.len(plain) and not plain:find '[%z\1-\9\11-\31\127]')
			local line = plot.scatter{{x = {1, 2}, y = {1, 2}, label = {title, title}, name = title}, {1, 2}}
			assert(#line:svg() > 1000)
		end
	end)
	it('keep # as it is', function()
		local function decoded(title)
			local list = {}
			for code in plot.line{{1, 2}, title = title}:svg():match('font%-weight="bold">(.-)<'):gmatch '&#x(%x+);' do
				list[#list + 1] = utf8.char(tonumber(code, 16))
			end
			return table.concat(list)
		end
		assert(decoded 'run #1 #b <i>' == 'run #1 #b <i>' and decoded '##' == '##')
	end)
	it('do not grow the process', function()
		if read '/proc/self/maps':find 'libasan' then skip 'AddressSanitizer keeps freed blocks' end
		local function resident()
			return tonumber(read '/proc/self/status':match 'VmRSS:%s*(%d+) kB')
		end
		for _ = 1, 10 do plot.line{{1, 4, 2}}:png() end
		local before = resident()
		for i = 1, 150 do plot.line{{1, 4, 2}, title = 'figure ' .. i}:png() end
		assert(resident() - before < 6000, resident() - before)
	end)
	it('of 100 000 points take moments', function()
		local y = {}
		for i = 1, 100000 do y[i] = math.sin(i / 1000) + math.sin(i * i) / 9 end
		local start = os.clock()
		assert(#plot.line{y}:png() > 10000)
		assert(os.clock() - start < 3, os.clock() - start)
	end)
	it('come out at the extremes of size', function()
		assert(#plot.line{{1, 2}, width = 100, height = 100, title = 'a long title', xlabel = 'x', ylabel = 'y'}:png() > 300)
		assert(#plot.bar{x = {'a'}, y = {1}, width = 3000, height = 200}:png() > 1000)
	end)
end)

describe('files', function()
	local base = os.tmpname()
	it('have their format from the name', function()
		plot.line{{1, 2}, file = base .. '.txt'}
		assert(read(base .. '.txt') == plot.line{{1, 2}}:text())
		assert(plot.line{{1, 2}}:save(base .. '.TXT'):text() == read(base .. '.TXT'))
		if not pictures then skip 'plplot is not installed' end
		local fig = plot.line{{1, 2}, file = base .. '.png'}
		assert(read(base .. '.png') == fig:png())
		fig:save(base .. '.svg'):save(base .. '.pdf')
		assert(read(base .. '.svg') == fig:svg() and read(base .. '.pdf'):sub(1, 5) == '%PDF-')
	end)
	it('are refused in one line', function()
		local function refused(file) return select(2, pcall(plot.line, {{1, 2}, file = file})) end
		assert(refused 'x.jpg':find("wanted a name ending in .png, .svg, .pdf or .txt, got 'x.jpg'", 1, true))
		assert(refused 'png':find('wanted a name ending in', 1, true) and refused 'a.png/b':find('wanted a name', 1, true))
		assert(refused '/nonexistent/x.txt':find "/nonexistent/x.txt': .*No such file")
		assert(refused(base .. '.dir/x.txt'):find 'No such file')
		assert(select(2, pcall(plot.line{{1, 2}}.save, plot.line{{1, 2}}, 5)):find 'wanted a name ending in')
	end)
	for _, ending in ipairs{'.txt', '.TXT', '.png', '.svg', '.pdf', ''} do os.remove(base .. ending) end
end)

describe('without plplot', function()
	local code = [[
print(pcall(function() return plot.line{{1, 2}}:png() end))
print(pcall(plot.line, {{1, 2}, file = os.tmpname() .. '.svg'}))
io.write(plot.line{{1, 2}}:text{width = 20, height = 6})
plot.line{{1, 2}}:show()]]
	local hint = 'apt%-get install %-%-no%-install%-recommends libplplot17 plplot%-driver%-cairo'
	it('there are text plots, and pictures fail in one line that says what to install', function()
		local output, good = run(code, 'QUOLL_PLPLOT=/nonexistent/libplplot.so')
		local first, second = output:match '^([^\n]*)\n([^\n]*)\n'
		assert(good and first:find('false.*PNG: the plotting library plplot was not found.*' .. hint), first)
		assert(second:find('false.*SVG: the plotting library plplot was not found.*' .. hint), second)
		assert(output:find '└')
	end)
	it('as well when the library is another one', function()
		local output = run(code, 'QUOLL_PLPLOT=libc.so.6')
		assert(output:find '^false[^\n]*was not found' and output:find '└', output)
	end)
	it('and without its drivers', function()
		if not pictures then skip 'plplot is not installed' end
		local folder = os.tmpname()
		os.remove(folder)
		os.execute('mkdir ' .. folder)
		local output, good = run(code, 'PLPLOT_DRV_DIR=' .. folder)
		assert(good and output:find('^false[^\n]*PNG: [^\n]*' .. hint), output)
		output = run(code, 'PLPLOT_DRV_DIR=/nonexistent')
		assert(output:find('^false[^\n]*' .. hint) and output:find '└', output)
		-- the drivers of the core package alone: SVG works, PNG does not
		os.execute('cp /usr/lib/*/plplot*/drivers/svg.* ' .. folder)
		output = run("print(#plot.line{{1, 2}}:svg() > 1000) print(pcall(function() plot.line{{1, 2}}:png() end))",
			'PLPLOT_DRV_DIR=' .. folder)
		assert(output:find '^true\nfalse[^\n]*plplot has no driver pngcairo', output)
		os.execute('rm -r ' .. folder)
	end)
	it('nothing is opened before the first picture', function()
		local maps = run "plot.line{{1, 2}}:text() io.write(io.open('/proc/self/maps'):read 'a')"
		assert(maps:find 'libc' and not maps:find 'plplot')
	end)
end)

local function refused(...) return select(2, pcall(plot.line, ...)) end
print(refused{{1, 2}, xlabl = 'a'})  --> plot.line: unknown option 'xlabl'; did you mean 'xlabel'?; known: title ...
print(refused{{1, 2}, legend = 'tpright'})  --> plot.line: legend: wanted one of auto none right ... got 'tpright'; did you mean 'topright'?
print(refused{{1, 2}, xlog = 1})  --> plot.line: xlog: wanted true or false, got number
print(refused{{1, 2}, title = {}})  --> plot.line: title: wanted a text, got table
print(refused{{1, 2}, width = 99})  --> plot.line: width: wanted 100 to 10000 pixels, got 99
print(refused{{1, 2}, width = 1.5})  --> plot.line: width: wanted an integer, got 1.5
print(refused{{1, 2}, xlim = {3, 3}})  --> plot.line: xlim: wanted {lo, hi}, two different finite numbers...
print(refused{{1, 2}, ylim = {0, 3}, ylog = true})  --> plot.line: ylim: wanted {lo, hi}, two different finite numbers above 0...
print(refused{{1, 2}, ylim = {1}})  --> plot.line: ylim: wanted {lo, hi}...
print(refused{{1, 2}, vlines = {a = 'x'}})  --> plot.line: vlines: wanted a number, got string
print(refused{{1, 2}, names = {'a', 'b'}})  --> plot.line: names: wanted 1, one per series, got 2
print(refused{{1, 2}, [true] = 1})  --> plot.line: wanted data by position and options by name, got a key of type boolean
print(refused())  --> plot.line: wanted data, as in plot.line{y, …}...
print(refused(5))  --> plot.line: argument 1: wanted a list or a tensor, got number
print(refused{'x'})  --> plot.line: y: wanted a list or a tensor, got string
print(refused{{1, 2, 'x'}})  --> plot.line: y: element 3: wanted a number, got string
print(refused{{1, 2}, 5})  --> plot.line: y: element 2: wanted a number, a list or a tensor, got number
print(refused{y = 5})  --> plot.line: y: wanted a list or a tensor, got number
print(refused{x = {1}, y = {1, 2}})  --> plot.line: x: wanted 2 values as in y, got 1
print(refused{tensor{{1, 2, 3}, {4, 5, 6}}})  --> plot.line: y: wanted ... or a tensor of shape (n) or (n, 2), got a tensor of rank 2
print(select(2, pcall(plot.line{{1, 2}}.encode, plot.line{{1, 2}}, 'kity')))  --> ...protocol: wanted one of kitty iterm sixel, got 'kity'; did you mean 'kitty'?
print(select(2, pcall(plot.line{{1, 2}}.text, plot.line{{1, 2}}, {width = 5})))  --> fig:text: wanted width 20 to 1000 and height 6 to 1000, got 5 and 22

it('says in scripts how a figure is shown', function()
	local pipe = io.popen '"/proc/$PPID/exe" -e "print(plot.line{1, 2})"'
	assert(pipe:read 'a' == "line figure, 1 series; fig:show() shows it, fig:save 'file.png' writes it\n")
	pipe:close()
end)
