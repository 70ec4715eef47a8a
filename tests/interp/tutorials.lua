-- SPDX-License-Identifier: MIT
-- labels: full
-- Every tutorial runs with --quick as a user runs it, here without data; with it, as a test, it is an entry of the suite of its own
-- (tests/tools/tutorial.sh). Two are exported as pages and notebooks.
local program = '"/proc/$PPID/exe"'
local folder = os.tmpname()
os.remove(folder)
os.execute('mkdir ' .. folder)
local here = io.popen('pwd'):read 'l'

local function run(command)
	local pipe = io.popen(('cd %s && exec %s %s 2>&1'):format(folder, program, command))
	local output = pipe:read 'a'
	return output, pipe:close()
end

for file in io.popen('ls tutorials/*.lua'):lines() do
	it(file .. ' runs without data', function()
		local output, good = run('--data /nonexistent ' .. here .. '/' .. file .. ' --quick')
		assert(good and not output:find 'input: real', output)
	end)
end
for _, name in ipairs {'01_first_steps', '02_mixed_precision'} do
	it('exports ' .. name, function()
		local file = ('%s/tutorials/%s.lua'):format(here, name)
		local output, good = run(('run %s --out o.json --html o.html --ipynb o.ipynb --md o.md -- --quick'):format(file))
		assert(good, output)
		for _, to in ipairs {'o.html', 'o.ipynb', 'o.md', 'o.json'} do
			local f = assert(io.open(folder .. '/' .. to, 'rb'))
			local text = f:read 'a'
			f:close()
			assert(#text > 5000 and not text:find '"output_type": "error"', to)
		end
		local again = run(('run %s --out o.json --cached'):format(file))
		assert(#again > 1000, again)
	end)
end
os.execute('rm -r ' .. folder)
