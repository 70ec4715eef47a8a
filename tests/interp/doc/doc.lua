-- SPDX-License-Identifier: MIT
-- quoll doc: every name is in the manual and in the definitions, these are Lua, and .luacheckrc knows the globals that the
-- program has. Judges from outside run where they are installed.
local internal = debug.getregistry()['quoll.internal']
local index = internal.import 'interp/help/help_index'
local titles = internal.import 'interp/prelude/titles'
local folder = os.tmpname()
os.execute(('rm %s && mkdir %s'):format(folder, folder))

local function quoll(arguments)
	local pipe = io.popen(('cd %s && exec "/proc/$PPID/exe" %s 2>&1'):format(folder, arguments))
	local out = pipe:read 'a'
	local _, _, code = pipe:close()
	return out, code
end

local function doc(form)
	local text, code = quoll('doc --' .. form)
	assert(code == 0 and #text > 100, text)
	local f = assert(io.open(folder .. '/quoll.' .. form, 'wb'))
	f:write(text)
	f:close()
	return text
end

-- Runs a tool on a file when the tool is there; it must print nothing and return 0.
local function judge(tool, arguments)
	if not os.execute('command -v ' .. tool .. ' >/dev/null') then skip('no ' .. tool) end
	local pipe = io.popen(('cd %s && %s %s 2>&1'):format(folder, tool, arguments))
	local said = pipe:read 'a'
	assert(pipe:close() and said == '', said)
end

local KEYWORDS = {['and'] = true, ['or'] = true, ['not'] = true, ['end'] = true, ['repeat'] = true}

it('defines every name for the language server', function()
	local text = doc 'luals'
	assert(load(text, '=quoll.lua', 't', {}))
	local missing, count = {}, 0
	local classes = {x = 'quoll_Tensor', report = 'quoll_Report', figure = 'quoll_Figure', module = 'quoll_Module'}
	local function check(title)
		local owner, sign, name = title:match '^([%a_][%w_]*)([.:])([%a_][%w_]*)$'
		if not owner or KEYWORDS[name] then return end
		if sign == ':' then owner = classes[owner] or 'quoll_' .. owner:sub(1, 1):upper() .. owner:sub(2) end
		count = count + 1
		if not text:find(('\nfunction %s%s%s('):format(owner, sign, name), 1, true) then missing[#missing + 1] = title end
	end
	titles.each_member(function(title, value)
		if type(value) == 'function' then check(title) end
	end)
	for _, entry in ipairs(index.list) do
		if entry.kind == 'function' or entry.kind == 'method' then check(entry.title) end
	end
	assert(count > 200 and #missing == 0, count .. ' ' .. table.concat(missing, ' '))
	-- each is a function when the file runs
	local names = {}
	assert(load(text, '=quoll.lua', 't', names))()
	assert(type(names.tensor.zeros) == 'function' and type(names.help) == 'function' and type(names.quant.compare) == 'function')
	assert(text:find '%-%-%-@operator add%(quoll.Tensor|number%): quoll.Tensor' and text:find '%-%-%-@return quoll.Report')
end)
it('writes every entry into the manual, with links that lead somewhere', function()
	local html, md = doc 'html', doc 'md'
	local escape = internal.import 'interp/prelude/mime'.escape
	for _, entry in ipairs(index.list) do
		assert(html:find('">' .. escape(entry.title) .. '</h3>', 1, true), entry.title)
		assert(md:find('### ' .. entry.title:gsub('[\\*_%[%]<>|#~$]', '\\%0') .. '\n', 1, true), entry.title)
		if entry.example then assert(md:find(entry.example, 1, true), entry.title) end
	end
	local anchors, links = {}, 0
	for id in html:gmatch ' id="([%w]+)"' do
		assert(not anchors[id], id)
		anchors[id] = true
	end
	for target in html:gmatch 'href="#(%w+)"' do
		assert(anchors[target], target)
		links = links + 1
	end
	for target in html:gmatch 'href="([^"]*)"' do assert(target:find '^#', target) end
	for target in md:gmatch '%]%(#(%w+)%)' do assert(md:find('<a id="' .. target .. '">', 1, true), target) end
	assert(links > #index.list and not html:find '<script')
end)
it('has a .luacheckrc with the globals of the program', function()
	local handle = assert(io.open '.luacheckrc')
	local checked_in = handle:read 'a'
	handle:close()
	assert(checked_in == doc 'luacheck', 'write it anew: quoll doc --luacheck .luacheckrc')
end)
it('reports the shells all commands and options', function()
	local bash, zsh, fish, man = doc 'bash', doc 'zsh', doc 'fish', doc 'man'
	local help = quoll '--help'
	for name in help:match 'commands.-\n(.*)':gmatch '\n  (%l+) ' do
		assert(bash:find("' " .. name .. "'", 1, true) and zsh:find("'" .. name .. ':', 1, true) and fish:find('-a ' .. name .. ' ', 1, true) and
			man:find('\n.It Sy ' .. name .. '\n', 1, true) or man:find('\n.It Sy ' .. name .. ' ', 1, true), name)
	end
	for name in help:gmatch '\n  %-%-(%l+)' do
		assert(bash:find('--' .. name, 1, true) and zsh:find("'--" .. name, 1, true) and fish:find('-l ' .. name, 1, true) and
			man:find('\\-\\-' .. name, 1, true), name)
	end
	assert(bash:find "' run'%) words='%-%-html %-%-ipynb" and zsh:find "'%-%-html%[writes[^%]]*%]:F:_files'")
end)
it('writes bash that bash reads', function() judge('bash', '-n quoll.bash') end)
it('completes in bash', function()
	if not os.execute 'command -v bash >/dev/null' then skip 'no bash' end
	local f = assert(io.open(folder .. '/try.bash', 'w'))
	f:write [[source quoll.bash
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _quoll; echo "${COMPREPLY[*]}"; }
try quoll ru
try quoll run --ht
try quoll --thr
try quoll doc --lua
try quoll sweep rep
try quoll sweep report --h
try quoll sweep merge --
try quoll sweep x.lua --dr
try quoll kernel un
try quoll kernel install --pr
try quoll --plot ki
try quoll --plot = ki
try quoll --plot =
try quoll --kernel avx
try quoll test --kernel avx51
try quoll run --html tr
try quoll doctor --
]]
	f:close()
	local pipe = io.popen(('cd %s && bash try.bash'):format(folder))
	local said = pipe:read 'a'
	assert(said == 'run\n--html\n--threads\n--luals --luacheck\n' ..
		'report\n--html --help\n--into --help\n--dry-run\nuninstall\n--prefix\nkitty\nkitty\nkitty iterm sixel text none\n' ..
		'avx2 avxvnni avx512vnni\navx512vnni\ntry.bash\n--help\n', said)
	pipe:close()
end)
it('completes file names with blanks in bash', function()
	if not os.execute 'command -v bash >/dev/null' then skip 'no bash' end
	local f = assert(io.open(folder .. '/blanks.bash', 'w'))
	f:write [[source quoll.bash
touch 'two words.lua' 'two more words.lua'
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _quoll; printf '<%s>' "${COMPREPLY[@]}" | sort; }
try quoll run two
try quoll run --html 'two w'
try quoll 'two m'
]]
	f:close()
	local pipe = io.popen(('cd %s && bash blanks.bash'):format(folder))
	local said = pipe:read 'a':gsub('\n', '')
	pipe:close()
	assert(said == '<two more words.lua><two words.lua><two words.lua><two more words.lua>' or
		said == '<two words.lua><two more words.lua><two words.lua><two more words.lua>', said)
end)
it('writes zsh that zsh reads', function() judge('zsh', '-n quoll.zsh') end)
it('completes in zsh', function()
	if not os.execute 'command -v zsh >/dev/null && command -v timeout >/dev/null' then skip 'no zsh' end
	os.execute(('mkdir %s/zsh && cp %s/quoll.zsh %s/zsh/_quoll'):format(folder, folder, folder))
	local f = assert(io.open(folder .. '/try.zsh', 'w'))
	f:write [[
zmodload zsh/zpty
zpty z 'TERM=dumb zsh -f -i'
zpty -w z 'fpath=($PWD/zsh $fpath); autoload -U compinit; compinit -u -D; echo rea''dy'
zpty -r z out '*ready*'
try() { zpty -w -n z "$1"$'\t\t'; zpty -r z out "*$2*"; print -r -- "$out"; zpty -w -n z $'\C-u'; }
try 'quoll sweep ' 'diff*merge*report'
try 'quoll kernel ins' 'kernel install'
try 'quoll sweep rep' 'sweep report'
zpty -d z
]]
	f:close()
	local pipe = io.popen(('cd %s && timeout 20 zsh -f try.zsh 2>&1'):format(folder))
	local said = pipe:read 'a'
	assert(pipe:close() and not said:find 'bad option' and said:find 'sweep report', said)
end)
it('writes fish that fish reads', function() judge('fish', '-n quoll.fish') end)
it('writes a manual page without a fault', function() judge('mandoc', '-T lint quoll.man') end)
it('chooses the form by the name, and says what is wrong', function()
	assert(quoll 'doc a.lua' == '' and assert(loadfile(folder .. '/a.lua')))
	assert(quoll 'doc m.html' == '' and io.open(folder .. '/m.html'):read(15) == '<!doctype html>')
	for arguments, message in pairs {['a.txt'] = 'does not say which form',
		['--html --md'] = 'wanted one form, got --html and --md', ['a.md b.md'] = "wanted one file, got 'a.md' and 'b.md'", ['no/such/a.md'] = 'no/such/a.md'} do
		local out, code = quoll('doc ' .. arguments)
		assert(code == 1 and out:find(message, 1, true) and not out:find 'traceback', out)
	end
	assert(quoll 'doc --help':find 'usage: quoll doc')
end)
os.execute('rm -r ' .. folder)
