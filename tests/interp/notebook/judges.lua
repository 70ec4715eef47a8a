-- SPDX-License-Identifier: MIT
-- labels: full
-- Notebooks before judges from outside: nbformat and Jupytext on all tutorials and on a file with everything in it, Python's
-- html.parser and lxml on the hostile pages of tests/interp/notebook/html.lua and tests/interp/sweep/report.lua. They come from PyPI (tests/tools/venv.sh).
local internal = debug.getregistry()['quoll.internal']
local folder = os.tmpname()
os.execute(('rm %s && mkdir -p %s/pages'):format(folder, folder))
local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. folder) end})

local function command(text)
	local pipe = io.popen(text .. ' 2>&1')
	local said = pipe:read 'a'
	return pipe:close(), said
end

local program = dofile 'tests/tools/scratch.lua'.program
local made, python = command('sh tests/tools/venv.sh ' .. program)
if not made then skip 'PyPI cannot be reached, or this python3 makes no venv' end
python = python:match '[^\n]+'

local function judge(files)
	local good, said = command(('%s tests/tools/notebook_judge.py %s %s %s'):format(python, program, folder, files))
	local judged, faults = said:match '(%d+) judged, (%d+) faults\n$'
	assert(good and judged and tonumber(judged) > 0 and faults == '0', said)
	return tonumber(judged)
end

it('agrees with Jupytext and nbformat', function()
	local f = assert(io.open(folder .. '/all.lua', 'w'))
	f:write [=[
-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # Title
--
-- text *a*
--no blank

-- %% First one tags=["skip", "b"] key="v\"alue" n=3
x = 1


y = 2

-- %% [raw] fmt="html"
-- <b>raw</b>


-- %% [md]
-- md
-- %%
print(x)
-- %time x
--- doc
-- %%% sub title
z = 3
-- %% active="ipynb"
-- %who
]=]
	f:close()
	assert(judge(folder .. '/all.lua tutorials/*.lua') >= 6)
end)
it('finds no active node in hostile pages', function()
	assert(command(('QUOLL_KEEP=%s/pages %s test tests/interp/notebook/html.lua'):format(folder, program)))
	assert(judge(folder .. '/pages/hostile*.html') >= 60)
	assert(judge(folder .. '/pages/ipynb*.html') >= 60)
end)
it('finds none in hostile reports of a sweep', function()
	assert(command(('QUOLL_KEEP=%s/pages %s test tests/interp/sweep/report.lua'):format(folder, program)))
	assert(judge(folder .. '/pages/sweep*.html') >= 60)
end)
it('finds what is put into such a page', function()
	for _, bad in ipairs {'<script>1</script>', '<img src=http://a.example/x>', '<b onclick=1>', '<svg><animate></svg>'} do
		local text = io.open(folder .. '/pages/sweep1.html', 'rb'):read 'a'
		internal.write_file(folder .. '/bad.html', (text:gsub('</body>', function() return bad .. '</body>' end)))
		local _, said = command(('%s tests/tools/notebook_judge.py %s %s %s/bad.html'):format(python, program, folder, folder))
		assert(said:find '1 judged, [1-9]%d* faults', said)
	end
end)
it('finds none in the manual', function()
	assert(command(('%s doc %s/manual.html'):format(program, folder)))
	judge(folder .. '/manual.html')
end)
