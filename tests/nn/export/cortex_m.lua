-- SPDX-License-Identifier: MIT
-- Exported C on an emulated Cortex-M4 (qemu-system-arm, board mps2-an386): codes in and out byte for byte, and the instructions that a
-- multiplication takes. Packages: qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi.
-- labels: full
if not os.execute 'arm-none-eabi-gcc --version >/dev/null 2>&1' then return skip 'arm-none-eabi-gcc is not here' end
if not os.execute 'qemu-system-arm --version >/dev/null 2>&1' then return skip 'qemu-system-arm is not here' end
if not os.execute 'echo "#include <string.h>" | arm-none-eabi-gcc -E - >/dev/null 2>&1' then return skip 'newlib for arm-none-eabi is not here' end

local exported = dofile 'tests/tools/exported.lua'
local run = exported.run

-- The bytes of codes as an initializer, channels last.
local function initializer(t)
	local codes = t:codes()
	if codes:dim() == 4 then codes = codes:permute(1, 3, 4, 2) end
	return '{' .. table.concat(codes:contiguous():to('int64'):view(codes:nelem()):totable(), ',') .. '}'
end

local function write_vectors(folder, g, spec, rows)
	local inputs, outputs = {}, {}
	for i = 1, rows:size(1) do
		local codes = rows:narrow(1, i, 1):quantize(spec)
		inputs[i], outputs[i] = initializer(codes), initializer(g:run(codes))
	end
	exported.put(folder .. '/vectors.h',
		('#define VECTORS %d\nstatic const int8_t inputs[VECTORS][NET_INPUT_COUNT] = {%s};\n'):format(#inputs, table.concat(inputs, ',\n')) ..
		('static const int8_t outputs[VECTORS][NET_OUTPUT_COUNT] = {%s};\n'):format(table.concat(outputs, ',\n')))
end

-- Exports the model with int8 in and out and runs it for each list of flags; prints and gives the least that a multiplication takes.
local function check(name, m, x, rows, target)
	local internal = debug.getregistry()['quoll.internal']
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x:narrow(1, 1, 1)):quantize {mode='static', rounding='double'}
	local folder = exported.new_folder()
	local report = g:export {dir=folder, name='net', samples=x, input='int8', output='int8', layout='nhwc', target=target}
	local h = exported.text_of(folder .. '/net.h')
	local coded = internal.import 'nn/export/interface'.apply(g, 'int8', 'int8')
	write_vectors(folder, coded, coded:result_of('input').spec, rows)
	local macs, least = 0, math.huge
	for i = 1, #report do macs = macs + report[i].macs end
	for _, flags in ipairs {'-Os -mcpu=cortex-m4 -mfloat-abi=soft', '-O3 -mcpu=cortex-m4 -mfloat-abi=soft'} do
		local good, output = run(([[arm-none-eabi-gcc -std=c99 -Wall -Wextra -Werror %s -mthumb -ffp-contract=off -DNET_NO_ARENA -nostartfiles \
			-T tests/tools/cortex_m/link.ld -I%s -o %s/net.elf tests/tools/cortex_m/start.c tests/tools/cortex_m/main.c %s/net.c]]):format(flags,
			folder, folder, folder))
		assert(good, output)
		good, output = run(('timeout 250 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none -icount shift=0 \z
			-semihosting-config enable=on,target=native -kernel %s/net.elf'):format(folder))
		local vectors, failed, count, stack = output:match 'vectors (%d+) failed (%d+) instructions (%d+) stack (%d+)'
		assert(good and tonumber(vectors) == rows:size(1) and failed == '0', output)
		least = math.min(least, count / macs)
		io.stderr:write(('%s, %s%s: %.2f instructions a multiplication (%d of %d), %s bytes of stack, %d of memory\n'):format(name,
			target and target .. ', ' or '', flags,
			count / macs, count, macs, stack, tonumber(h:match 'ARENA_BYTES (%d+)')))
	end
	os.execute('rm -r ' .. folder)
	return least
end

tensor.seed(41)
it('convolutions, a sum, pooling, a linear layer', function()
	local x = tensor.randn(12, 3, 8, 8)
	local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.MaxPool2d(2), nn.Residual {nn.Conv2d(8, 8, 3, {pad=1}), nn.ReLU(),
		nn.Conv2d(8, 8, 1)}, nn.ReLU(), nn.Conv2d(8, 8, 3, {pad=1, groups=8}), nn.ReLU6(), nn.AvgPool2d(), nn.Flatten(), nn.Linear(8, 5)}
	for _, target in ipairs {false, 'armv7e-m'} do check('small', m, x, x[{{1, 3}}], target or nil) end
end)
it('ResNet8', function()
	local weights = data.find 'weights/resnet8-cifar10-mlperf-tiny.safetensors'
	if not weights or not data.find 'cifar10/test_batch_first1000.bin.xz' then skip 'real input: no data folder (QUOLL_DATA, ./data)' end
	local m, names = dofile 'tutorials/models/resnet8.lua'
	m:load(weights, {rename=names}):eval()
	for x in data.loader(data.cifar10 {split='test'}, {batch=32, normalize={mean={0, 0, 0}, std={1 / 255, 1 / 255, 1 / 255}}})() do
		local plain, fast = check('ResNet8', m, x, x[{{1, 1}}]), check('ResNet8', m, x, x[{{1, 1}}], 'armv7e-m')
		assert(plain < 4 and fast < 2, ('%.2f and %.2f instructions'):format(plain, fast)) -- both are exact, not measured
		return
	end
end)
