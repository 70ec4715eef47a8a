-- SPDX-License-Identifier: MIT
-- labels: full
-- Each target of exported C: the same bits as g:run, with its instructions where they are here (or emulated), and by its plain loops.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(62)
local tiles = dofile 'tests/tools/export_tiles.lua'
local refused = exported.refused

-- How the instructions of a target are compiled and run here, where probe defines the macro: all ways of its #if. Those of the Makefile's
-- default are compiled at -O3; at the other ways only the loops by instructions are new, and those hardly depend on the level.
local AARCH64 = 'aarch64-linux-gnu-gcc'
local RUN = {
	avx512vnni = {{name='vpdpbusd', cc='cc -O3 -march=native', macro='__AVX512VNNI__', probe='gcc -march=native'}},
	avx2 = {{name='vpmaddwd', cc='cc -O2 -mavx2', macro='__AVX2__', probe='gcc -march=native'},
		{name='vpdpbusd', cc='cc -O2 -mavx2 -mavxvnni', macro='__AVXVNNI__', probe='gcc -march=native'}},
	neon = {{name='smull', cc=AARCH64 .. ' -O2 -static', macro='__ARM_NEON', probe=AARCH64, run='qemu-aarch64 -cpu cortex-a53'},
		{name='sdot', cc=AARCH64 .. ' -O2 -static -march=armv8.2-a+dotprod', macro='__ARM_FEATURE_DOTPROD',
			probe=AARCH64 .. ' -march=armv8.2-a+dotprod', run='qemu-aarch64 -cpu max'}},
	['armv7e-m'] = {{name='smlad', cc='arm-linux-gnueabihf-gcc -O2 -static -mcpu=cortex-a7', macro='__ARM_FEATURE_SIMD32',
		probe='arm-linux-gnueabihf-gcc -mcpu=cortex-a7', run='qemu-arm'}},
}

local function is_here(t)
	return exported.run(("echo '#include <string.h>' | %s -E -dM - | grep -q %s"):format(t.probe, t.macro)) and
		(not t.run or exported.run(t.run .. ' --version'))
end

local internal = debug.getregistry()['quoll.internal']
local x = tensor.randn(3, 4, 9, 9)
local net = nn.Sequential {nn.Conv2d(4, 20, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(20, 20, 3, {groups=20, pad=1}), nn.Conv2d(20, 20, 1)},
	nn.AvgPool2d(3), nn.Flatten(), nn.Linear(180, 7)}

-- What each target has to give: shapes around the edges of its tiles; sums, depthwise convolutions, ranges found at run time, packed and wide
-- weights; the largest codes, whose sums must not overflow; ResNet8 with images, where the data folder is.
local cases = {}
local function add(list, options)
	list = tiles.graphs(list, options)
	table.move(list, 1, #list, #cases + 1, cases)
end
add(tiles.cases, {mode='static', weight='int8/1', input='uint8'})
add(tiles.cases, {mode='static', weight='int8/1', input='int8', rounding='double'})
add({{'net', net, x}}, {mode='static', weight='int8/1'})
add({{'net', net, x}}, {mode='static', weight='int4/1', input='int8', rounding='double'})
add({{'net', net, x}}, {mode='dynamic', weight='int8/1'})
add({{'net', net, x}}, {mode='static', weight='int16/1', input='int16'})
for _, v in ipairs {-1, 1} do
	local m, most = nn.Sequential {nn.Linear(8191, 3, {bias=false})}, tensor.full {1, 8191, value=2 * v}
	tensor.nograd(function() m.linear1.weight:copy_(tensor.full {3, 8191, value=-128}) end)
	add({{'sums of ' .. v, m, most}}, {mode='static', weight={dtype='int8', scale=1}, input='int8'})
end
if data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors' and data.find 'cifar10/test_batch_first1000.bin.xz' then
	local m, names = dofile 'tutorials/models/resnet8.lua'
	m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=names}):eval()
	for images in data.loader(data.cifar10 {split='test'}, {batch=4, normalize={mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}})() do
		add({{'ResNet8', m, images}}, {mode='static', weight='int8/1', input='int8'})
		break
	end
else
	it('ResNet8', function() skip('real input: no data folder (QUOLL_DATA, ./data)') end)
end

for _, entry in ipairs(internal.import 'nn/export/targets'.list) do
	local target, program = entry.name, exported.program(cases, entry.name)
	for _, t in ipairs {{name='plain loops', cc='cc -O1'}, table.unpack(RUN[target])} do
		it(('%s: %s'):format(target, t.name), function()
			if t.probe and not is_here(t) then skip(t.probe .. (t.run and ' with ' .. t.run or '') .. ' is not here') end
			local _, wrong = exported.differing(program, t)
			assert(wrong == '', wrong)
		end)
	end
	os.execute('rm -r ' .. program.folder)
end
for _, target in ipairs {'avx512vnni', 'avx2'} do
	describe(target .. ' reads no byte behind its memory', function()
		if not is_here(RUN[target][1]) then return skip(RUN[target][1].probe .. ' is not here') end
		exported.together(tiles.graphs(tiles.cases, {mode='static', weight='int8/1'}),
			{target=target, compilers={'cc -O1 -march=native -fsanitize=address,undefined -fno-sanitize-recover=all'}})
	end)
end
it('bad names', function()
	local g = exported.static(nn.Sequential {nn.Linear(4, 3)}, tensor.randn(5, 4))
	refused("export: target: wanted avx512vnni avx2 neon armv7e-m or none for plain C, got 'avx51vnni'; did you mean 'avx512vnni'?", g.export, g,
		{dir='/nowhere', target='avx51vnni'})
end)
