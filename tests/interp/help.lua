-- SPDX-License-Identifier: MIT
-- Every public name has help: usage, a text and an example that runs and prints what is written beside it. The names
-- are found by walking the modules and the methods of all objects, so a new one without help fails here by name.
local internal = debug.getregistry()['quoll.internal']
local index = internal.import 'help_index'

-- Globals that are not ours.
local stock = {}
for name in ([[_G _VERSION assert collectgarbage coroutine debug dofile error getmetatable io ipairs load loadfile math next
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
	index.each_member(function(title)
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
	local file = os.tmpname()
	local owner = write_examples(file)
	local pipe = io.popen('exec "/proc/$PPID/exe" test ' .. file .. ' 2>&1')
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
	os.remove(file)
	assert(failed == 0 and passed >= 50, ('%d of %d\n%s'):format(failed, passed + failed, table.concat(report, '\n')))
end)
