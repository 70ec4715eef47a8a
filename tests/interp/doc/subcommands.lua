-- SPDX-License-Identifier: MIT
-- --help and unknown options of the subcommands; the table behind them, and the completions of shells.
local subcommands = debug.getregistry()['quoll.internal'].import 'interp/doc/subcommands'
local program = '"/proc/$PPID/exe"'

local function run(arguments)
	local file = os.tmpname()
	local pipe = io.popen(('%s %s 2>%s </dev/null'):format(program, arguments, file))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	local handle = io.open(file)
	local err = handle:read 'a'
	handle:close()
	os.remove(file)
	return out, err, code
end

it('every command of the program is in the table', function()
	local n = 0
	for name in run '--help':match 'commands.-(\n.*)':gmatch '\n  (%l+) ' do
		assert(subcommands[name], name)
		n = n + 1
	end
	assert(n >= 7, n)
end)

for _, entry in ipairs(subcommands.list) do
	it(entry.name .. ' --help: usage, every option, an example; to stdout, exit code 0', function()
		for _, word in ipairs {'--help', '-h'} do
			local out, err, code = run(entry.name .. ' ' .. word)
			assert(code == 0 and err == '', err)
			assert(out:find('usage: quoll ' .. entry.name, 1, true) == 1 and out:find('\nexample:\n  ' .. entry.example, 1, true), out)
			for _, o in ipairs(entry.options) do assert(out:find('\n  ' .. o[1], 1, true), o[1]) end
			for line in out:gmatch '[^\n]+' do assert(utf8.len(line) <= 110, line) end
		end
	end)
	it(entry.name .. ' --hlep: did you mean, exit code 2', function()
		local out, err, code = run(entry.name .. ' --hlep')
		assert(out == '' and code == 2, code)
		assert(err == ("quoll: %s: --hlep: no such option; did you mean '--help'? (quoll %s --help lists them)\n"):format(entry.name,
			entry.name), err)
	end)
end

it('options that a command takes are those of its table', function()
	-- each is accepted: what it complains of is something else
	for _, arguments in ipairs {'run --html a.html --ipynb a.ipynb --md a.md --param a=1 --watch --cached --out b.json',
		'sweep report --study a --html a.html --csv a.csv --md a.md --x a --y b --env --all', 'sweep merge --into a.db',
		'sweep diff --study a --level 0.9', 'kernel install --user --name q --prefix /dev/null', 'kernel uninstall --user --name q --prefix /dev/null',
		'test --kernel ref /nowhere.lua'} do
		local out, err, code = run(arguments)
		assert(code == 1 and not err:find 'no such option' and not out:find 'no such option', arguments .. ': ' .. err .. out)
		local name = arguments:match '^%l+ %l+' or ''
		local entry = subcommands[name] or subcommands[arguments:match '^%l+']
		for option in arguments:gmatch '%-%-%l+' do
			local known = false
			for _, o in ipairs(entry.options) do known = known or o[1] == option end
			assert(known, option)
		end
	end
	local _, err, code = run 'run --cached=1 a.lua'
	assert(code == 2 and err:find '%-%-cached=1: no such option', err)
end)

it('what stands behind a script, or behind --, is not read', function()
	local file = os.tmpname() .. '.lua'
	local handle = io.open(file, 'w')
	handle:write "print((...), select(2, ...))"
	handle:close()
	local out = run('sweep ' .. file .. ' --help --mine')
	assert(out:find '^%-%-help\t%-%-mine\n', out)
	out = run('test ' .. file .. ' -- --mine')
	assert(out:find '%-%-mine', out)
	os.remove(file)
end)
