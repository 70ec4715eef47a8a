-- SPDX-License-Identifier: MIT
-- labels: full
-- Each target of exported C: the same bits as g:run, with its instructions where they are here (or emulated), and by its plain loops.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(62)
local tiles = dofile 'tests/tools/export_tiles.lua'
local refused = exported.refused

-- How the instructions of a target are compiled and run here, where cc defines the macro: all ways of its #if.
local AARCH64 = 'aarch64-linux-gnu-gcc'
local RUN = {
	avx512vnni = {{name='vpdpbusd', make="CFLAGS='-O3 -march=native'", macro='__AVX512VNNI__', cc='gcc -march=native'}},
	avx2 = {{name='vpmaddwd', make="CFLAGS='-O3 -mavx2'", macro='__AVX2__', cc='gcc -march=native'},
		{name='vpdpbusd', make="CFLAGS='-O3 -mavx2 -mavxvnni'", macro='__AVXVNNI__', cc='gcc -march=native'}},
	neon = {{name='smull', make='CC=' .. AARCH64 .. " CFLAGS='-O2 -static'", macro='__ARM_NEON', cc=AARCH64, run='qemu-aarch64 -cpu cortex-a53'},
		{name='sdot', make='CC=' .. AARCH64 .. " CFLAGS='-O3 -static -march=armv8.2-a+dotprod'", macro='__ARM_FEATURE_DOTPROD',
			cc=AARCH64 .. ' -march=armv8.2-a+dotprod', run='qemu-aarch64 -cpu max'}},
	['armv7e-m'] = {{name='smlad', make="CC=arm-linux-gnueabihf-gcc CFLAGS='-O2 -static -mcpu=cortex-a7'", macro='__ARM_FEATURE_SIMD32',
		cc='arm-linux-gnueabihf-gcc -mcpu=cortex-a7', run='qemu-arm'}},
}

local function is_here(t)
	return exported.run(("echo '#include <string.h>' | %s -E -dM - | grep -q %s"):format(t.cc, t.macro)) and
		(not t.run or exported.run(t.run .. ' --version'))
end

local function need(t)
	if not is_here(t) then skip(t.cc .. (t.run and ' with ' .. t.run or '') .. ' is not here') end
end

local internal = debug.getregistry()['quoll.internal']
local x = tensor.randn(3, 4, 9, 9)
local net = nn.Sequential {nn.Conv2d(4, 20, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(20, 20, 3, {groups=20, pad=1}), nn.Conv2d(20, 20, 1)},
	nn.AvgPool2d(3), nn.Flatten(), nn.Linear(180, 7)}

-- ResNet8 and images, where the data folder is.
local function resnet8()
	if not data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors' or not data.find 'cifar10/test_batch_first1000.bin.xz' then
		skip('real input: no data folder (QUOLL_DATA, ./data)')
	end
	local m, names = dofile 'tutorials/models/resnet8.lua'
	m:load(data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors', {rename=names}):eval()
	for images in data.loader(data.cifar10 {split='test'}, {batch=4, normalize={mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}})() do return m, images end
end

for _, entry in ipairs(internal.import 'nn/export/targets'.list) do
	local target, ways = entry.name, RUN[entry.name]
	for _, o in ipairs {{weight='int8/1', input='uint8'}, {weight='int8/1', input='int8', rounding='double'}} do
		o.mode = 'static'
		local how = ('%s, %s rounding'):format(target, o.rounding or 'float')
		it(how .. ': plain loops', function() tiles.check(tiles.cases, o, {'CFLAGS=-O1'}, target) end)
		for _, t in ipairs(ways) do
			it(how .. ': ' .. t.name, function()
				need(t)
				tiles.check(tiles.cases, o, {t.make}, target, t.run)
			end)
		end
	end
	for _, t in ipairs {{name='plain loops', make='CFLAGS=-O2'}, table.unpack(ways)} do
		it(('%s: sums, depthwise convolutions, ranges found at run time, packed weights: %s'):format(target, t.name), function()
			if t.cc then need(t) end
			tiles.check({{'net', net, x}}, {mode='static'}, {t.make}, target, t.run)
			tiles.check({{'net', net, x}}, {mode='static', weight='int4/1', input='int8', rounding='double'}, {t.make}, target, t.run)
			tiles.check({{'net', net, x[{{1, 1}}]}}, {mode='dynamic', weight='int8/1'}, {t.make}, target, t.run)
			tiles.check({{'net', net, x}}, {mode='static', weight='int16/1', input='int16'}, {t.make}, target, t.run)
		end)
		it(('%s: ResNet8: %s'):format(target, t.name), function()
			local m, images = resnet8()
			if t.cc then need(t) end
			tiles.check({{'resnet8', m, images}}, {mode='static', weight='int8/1', input='int8'}, {t.make}, target, t.run)
		end)
		it(('%s: the largest codes do not overflow: %s'):format(target, t.name), function()
			if t.cc then need(t) end
			for _, v in ipairs {-1, 1} do
				local m, most = nn.Sequential {nn.Linear(8191, 3, {bias=false})}, tensor.full {1, 8191, value=2 * v}
				tensor.nograd(function() m.linear1.weight:copy_(tensor.full {3, 8191, value=-128}) end)
				tiles.check({{'long', m, most}}, {mode='static', weight={dtype='int8', scale=1}, input='int8'}, {t.make}, target, t.run)
			end
		end)
	end
end
for _, target in ipairs {'avx512vnni', 'avx2'} do
	it(target .. ' reads no byte behind its memory', function()
		need(RUN[target][1])
		local make = "CFLAGS='-O2 -march=native -fsanitize=address,undefined -fno-sanitize-recover=all'"
		tiles.check(tiles.cases, {mode='static', weight='int8/1'}, {make}, target)
	end)
end
it('bad names', function()
	local g = exported.static(nn.Sequential {nn.Linear(4, 3)}, tensor.randn(5, 4))
	refused("export: target: wanted avx512vnni avx2 neon armv7e-m or none for plain C, got 'avx51vnni'; did you mean 'avx512vnni'?", g.export, g,
		{dir='/nowhere', target='avx51vnni'})
end)
