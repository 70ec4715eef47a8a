-- SPDX-License-Identifier: MIT
-- Every public name has help: usage, a text and an example that runs and prints what is written beside it. The names
-- are found by walking the modules and the methods of all objects, so a new one without help fails here by name.
local internal = debug.getregistry()['quoll.internal']
local index = internal.import 'interp/help/help_index'
local titles = internal.import 'interp/prelude/titles'

-- Globals that are not ours.
local stock = {}
for name in ([[_G _VERSION assert coroutine debug dofile error getmetatable io ipairs load loadfile math next
os package pairs pcall print rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type
utf8 warn xpcall arg skip pending describe it __fails]]):gmatch '%S+' do
	stock[name] = true
end

it('every global of ours has help', function()
	local missing = {}
	for name in pairs(_G) do
		if not stock[name] and not name:find '^_' and not index.by_title[name] then missing[#missing + 1] = name end
	end
	table.sort(missing)
	assert(#missing == 0, 'no help for: ' .. table.concat(missing, ' '))
end)

it('every function of a module and every method has help', function()
	local missing, members = {}, 0
	titles.each_member(function(title)
		members = members + 1
		if not index.by_title[title] then missing[#missing + 1] = title end
	end)
	table.sort(missing)
	assert(members > 80, 'the walk found only ' .. members)
	assert(#missing == 0, ('no help for %d of %d: %s'):format(#missing, members, table.concat(missing, ' ')))
end)

it('every entry has usage, text and, unless it is a page of a module, an example', function()
	local missing = {}
	for _, entry in ipairs(index.list) do
		local page = entry.kind == 'module'
		for _, field in ipairs {'usage', 'text', 'example'} do
			local needed = not (field == 'usage' and entry.kind == 'concept') and not (page and field == 'example')
			if needed and not (entry[field] and entry[field]:find '%S') then
				missing[#missing + 1] = entry.title .. ' (' .. field .. ')'
			end
		end
		for _, option in ipairs(entry.options) do
			if not (option[3] and option[3]:find '%S') then missing[#missing + 1] = entry.title .. ' (' .. option[1] .. '=)' end
		end
	end
	assert(#missing == 0, 'missing: ' .. table.concat(missing, ', '))
end)

-- All examples as one test file, so that `quoll test` compares them; each is a case with globals of its own.
local function write_examples(file)
	local lines, owner = {}, {}
	for _, entry in ipairs(index.list) do
		if entry.example then
			local first = #lines + 1
			local text = ('it(%q, function() local _ENV = setmetatable({}, {__index = _G})\n%s\nend)\n'):format(entry.title,
				entry.example)
			for line in text:gmatch '(.-)\n' do lines[#lines + 1] = line end
			for i = first, #lines do owner[i] = entry.title end
		end
	end
	local handle = assert(io.open(file, 'w'))
	handle:write(table.concat(lines, '\n'), '\n')
	handle:close()
	return owner
end

it('every example runs and prints what it says', function()
	local folder = os.tmpname()
	os.execute(('rm %s && mkdir %s'):format(folder, folder)) -- some examples write files
	local file = folder .. '/examples.lua'
	local owner = write_examples(file)
	local pipe = io.popen(('cd %s && exec "/proc/$PPID/exe" test %s 2>&1'):format(folder, file))
	local report, passed, failed = {}, 0, -1
	for line in pipe:lines() do
		local number = line:match('^' .. file:gsub('%p', '%%%0') .. ':(%d+): ')
		if number then line = ('%s: %s'):format(owner[tonumber(number)], line:match ': (.*)') end
		local p, f = line:match '^(%d+) passed, (%d+) failed'
		if p then
			passed, failed = tonumber(p), tonumber(f)
		else
			report[#report + 1] = line
		end
	end
	pipe:close()
	os.execute('rm -r ' .. folder)
	assert(failed == 0 and passed >= 50, ('%d of %d\n%s'):format(failed, passed + failed, table.concat(report, '\n')))
end)

-- What help prints for these arguments.
local function page(...)
	local before, text = print, {}
	print = function(line) text[#text + 1] = line end
	local good, message = pcall(help, ...)
	print = before
	assert(good, message)
	return table.concat(text, '\n')
end

it('prints every page in at most 80 columns', function()
	for _, entry in ipairs(index.list) do
		local text = page(entry.title)
		assert(text:find(entry.title, 1, true), entry.title)
		for line in text:gmatch '[^\n]+' do
			assert(utf8.len(line) <= 80 or line:find '^  %S+ ?[=%(]' or text:find('Example.*' .. line:sub(1, 20):gsub('%p', '%%%0')),
				entry.title .. ': ' .. line)
		end
	end
end)

it('finds things by every way of writing them', function()
	local relu = page 'x:relu'
	for _, name in ipairs {'relu', 'relu_', 'tensor.relu', 'q:relu()', ' relu ', 'y:relu_'} do
		assert(page(name) == relu or page(name):find('^x:relu, '), name)
	end
	assert(page(bench.time) == page 'bench.time' and page(report) == page 'report')
	assert(page(bench) == page 'bench' and page(tensor{1}) == page 'tensor' and page(report{{a = 1}}) == page 'report')
	assert(page(report{{a = 1}}[1]) == page 'report' and page(quant.spec 'int8') == page 'spec')
	assert(page 'r:sort' == page 'report:sort' and page(tensor{1}.relu):find '^x:relu')
end)

it('finds methods by the variables of the texts, and the nearest one', function()
	for name, title in pairs {['m:fit'] = 'module:fit', ['m:quantize'] = 'module:quantize', ['o:step'] = 'optimizer:step', ['g:run'] = 'graph:run', ['q:codes'] = 'x:codes',
		['model:evaluate'] = 'module:evaluate', ['ds:split'] = 'dataset:split', ['o:update'] = 'observer:update', ['loss:backward'] = 'x:backward', ['abc:fit'] = 'module:fit'} do
		assert(page(name) == page(title), name)
	end
	assert(page 'm:fti':find "^No name 'm:fti': did you mean 'module:fit'%?" and page 'o:stpe':find "did you mean 'optimizer:step'")
end)

it('writes long texts in paragraphs', function()
	for _, entry in ipairs(index.list) do
		for paragraph in ((entry.text or '') .. '\n\n'):gmatch '(.-)\n\n+' do
			assert(paragraph:find '^%s' or utf8.len(paragraph) <= 1500, ('%s: %d characters'):format(entry.title, utf8.len(paragraph)))
		end
	end
end)

it('names at most six related entries, which belong to it', function()
	local index = debug.getregistry()['quoll.internal'].import 'interp/help/help_index'
	local function has(title, ...)
		local list = ' ' .. table.concat(index.related(index.by_title[title]), ' ') .. ' '
		for _, other in ipairs {...} do assert(list:find(' ' .. other .. ' ', 1, true), title .. ': ' .. other .. ' is not in' .. list) end
	end
	local function lacks(title, other)
		for _, name in ipairs(index.related(index.by_title[title])) do assert(name ~= other, title .. ': ' .. other) end
	end
	has('x:relu', 'nn.ReLU', 'x:relu6')
	has('nn.ReLU', 'x:relu')
	has('tensor.zeros', 'tensor.ones')
	has('x:sum', 'x:mean', 'x:cumsum')
	has('x:quantize', 'spec', 'x:dequantize', 'x:requantize')
	has('nn.Linear', 'x:linear')
	has('optim.adam', 'optim.adamw', 'optim.sgd')
	has('plot.line', 'plot.bar', 'plot.scatter')
	has('int8', 'uint8', 'int16')
	has('data.mnist', 'data.fashion', 'data.cifar10')
	lacks('x:relu', 'optimizer:zero')
	lacks('x:quantize', 'optimizer:zero')
	lacks('nn.Linear', 'x:sqrt')
	lacks('x:matmul', 'float32')
	lacks('sweep.run', 'x:log')
	for _, entry in ipairs(index.list) do assert(#index.related(entry) <= 6, entry.title) end
end)
it('reports what belongs together', function()
	assert(page 'quantize':find 'Of the same name: .*quantize' and page 'int8':find '^int8, a dtype')
	assert(page 'symmetric':find "scheme='symmetric'")
	assert(page 'bench.time':find 'See also .*report' and page 'tensor':find '\nFunctions\n' and page 'tensor':find '\nMethods\n')
	local all = page 'bench.*'
	for name, value in pairs(bench) do
		assert(type(value) ~= 'function' or all:find('bench.' .. name, 1, true), name)
	end
	assert(page 'x:re*':find 'x:relu' and not page 'x:re*':find 'bench')
end)

it('helps with what it does not know', function()
	assert(page 'quantiza':find "No name 'quantiza': did you mean 'quantize'%?")
	assert(page 'saturat':find '^Entries with')
	assert(page 'qqqqqqq' == "No help for 'qqqqqqq'; help() lists all topics.")
	assert(page(nil):find 'The value is nil' and page(3):find 'No help for a number' and page(print):find 'has no help')
	assert(page(function() end):find 'has no help')
end)

it('begins with an overview of all modules and concepts', function()
	local text = page()
	for _, entry in ipairs(index.list) do
		if entry.kind == 'concept' or entry.kind == 'module' or entry.kind == 'scheme' or entry.kind == 'dtype' then
			assert(text:find(entry.bare, 1, true), entry.title)
		end
	end
end)

tensor{1}:eror(2)        --> error: no method 'eror'; did you mean 'error'?
tensor{1}:quantise()     --> error: no method 'quantise'; did you mean 'quantize'?
tensor{1}:explian()      --> error: no method 'explian'; did you mean 'explain'?
