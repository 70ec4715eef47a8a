-- SPDX-License-Identifier: MIT
-- labels: full
-- Every tutorial runs with --quick, as a user runs it, and says whether its input was real. With the data at hand, procedural
-- input is a failure. (As tests of their own `-->` lines they are entries of the suite.)
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

local has_data = data.find 'images/camera.png' and data.find 'mnist/t10k-images-idx3-ubyte.gz' and
	data.find 'weights/resnet20-cifar10.safetensors'
for file in io.popen('ls tutorials/*.lua'):lines() do
	describe(file, function()
		it('runs with --quick', function()
			local output, good = run(here .. '/' .. file .. ' --quick')
			assert(good, output)
			local real, drawn = select(2, output:gsub('input: real', '')), select(2, output:gsub('input: procedural', ''))
			if real + drawn > 0 then
				io.stderr:write(('%s: data: %s\n'):format(file, drawn == 0 and 'real' or real == 0 and 'procedural' or 'mixed'))
				assert(not has_data or drawn == 0, 'procedural input although the data is here')
			end
			for picture in output:gmatch 'out/[%w_]+%.png' do assert(io.open(folder .. '/' .. picture), picture) end
		end)
		it('runs without data', function()
			local output, good = run('--data /nonexistent ' .. here .. '/' .. file .. ' --quick')
			assert(good and not output:find 'input: real', output)
		end)
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
it('leaves pictures that are PNGs', function()
	local n = 0
	for name in io.popen('cd ' .. folder .. '/out && ls *.png'):lines() do
		local f = io.open(folder .. '/out/' .. name, 'rb')
		assert(f:read(8) == '\137PNG\r\n\26\n', name)
		f:close()
		n = n + 1
	end
	assert(n >= 8, n)
end)
os.execute('rm -r ' .. folder)
