-- SPDX-License-Identifier: MIT
-- labels: full
-- Each target of exported C: the same bits as g:run, with its instructions where they are here (or emulated), and by its plain loops.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(62)
local tiles = dofile 'tests/tools/export_tiles.lua'
local refused = exported.refused

-- How the instructions of a target are compiled and run here.
local RUN = {
	avx512vnni = {make="CFLAGS='-O3 -march=native'", macro='__AVX512VNNI__', cc='gcc -march=native'},
	['armv7e-m'] = {make="CC=arm-linux-gnueabihf-gcc CFLAGS='-O2 -static -mcpu=cortex-a7'", macro='__ARM_FEATURE_SIMD32',
		cc='arm-linux-gnueabihf-gcc -mcpu=cortex-a7', run='qemu-arm'},
}

local function is_here(t)
	return exported.run(("echo '#include <string.h>' | %s -E -dM - | grep -q %s"):format(t.cc, t.macro)) and
		(not t.run or exported.run(t.run .. ' --version'))
end

local internal = debug.getregistry()['quoll.internal']
for _, entry in ipairs(internal.import 'nn/export/targets'.list) do
	local target, t = entry.name, RUN[entry.name]
	for _, o in ipairs {{weight='int8/1', input='uint8'}, {weight='int8/1', input='int8', rounding='double'}} do
		o.mode = 'static'
		local how = ('%s, %s rounding'):format(target, o.rounding or 'float')
		it(how .. ': plain loops', function() tiles.check(tiles.cases, o, {'CFLAGS=-O1'}, target) end)
		it(how .. ': instructions', function()
			if not is_here(t) then skip(t.cc .. (t.run and ' with ' .. t.run or '') .. ' is not here') end
			tiles.check(tiles.cases, o, {t.make}, target, t.run)
		end)
	end
	it(target .. ': sums, depthwise convolutions, ranges found at run time, packed weights', function()
		local x = tensor.randn(3, 4, 9, 9)
		local m = nn.Sequential {nn.Conv2d(4, 20, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(20, 20, 3, {groups=20, pad=1}), nn.Conv2d(20, 20, 1)},
			nn.AvgPool2d(3), nn.Flatten(), nn.Linear(180, 7)}
		local make = is_here(t) and t.make or 'CFLAGS=-O2'
		local run = is_here(t) and t.run or nil
		tiles.check({{'net', m, x}}, {mode='static'}, {make}, target, run)
		tiles.check({{'net', m, x}}, {mode='static', weight='int4/1', input='int8', rounding='double'}, {make}, target, run)
		tiles.check({{'net', m, x[{{1, 1}}]}}, {mode='dynamic', weight='int8/1'}, {make}, target, run)
		tiles.check({{'net', m, x}}, {mode='static', weight='int16/1', input='int16'}, {make}, target, run)
	end)
end
it('reads no byte behind its memory', function()
	if not is_here(RUN.avx512vnni) then skip 'no AVX-512 with VNNI here' end
	tiles.check(tiles.cases, {mode='static', weight='int8/1'}, {"CFLAGS='-O2 -march=native -fsanitize=address,undefined -fno-sanitize-recover=all'"},
		'avx512vnni')
end)
it('bad names', function()
	local g = exported.static(nn.Sequential {nn.Linear(4, 3)}, tensor.randn(5, 4))
	refused("export: target: wanted avx512vnni armv7e-m or none for plain C, got 'avx51vnni'; did you mean 'avx512vnni'?", g.export, g,
		{dir='/nowhere', target='avx51vnni'})
end)
