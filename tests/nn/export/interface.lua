-- SPDX-License-Identifier: MIT
-- The borders of exported C: codes in and out, channels first or last, memory of the caller, a hook at each layer.
-- labels: once
local exported = dofile 'tests/tools/exported.lua'
exported.skip()

local refused, new_folder, text_of, put, run = exported.refused, exported.new_folder, exported.text_of, exported.put, exported.run
local function bytes(t, format) return string.pack('<' .. format:rep(t:nelem()), table.unpack(t:contiguous():view(t:nelem()):totable())) end

tensor.seed(31)
local x = tensor.randn(12, 3, 8, 8)
local net = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, {pad=1}), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)}
net:calibrate({{x, x}}, {log=false})
local float = graph.trace(net, x[{{1, 1}}])
local fixed = float:quantize {mode='static', rounding='double'}

-- What the program gives for the bytes.
local function passes(folder, given)
	put(folder .. '/in', given)
	assert(run(('make -s -C %s test CFLAGS=-O1'):format(folder)))
	local good, output = run(('%s/net --run < %s/in > %s/out'):format(folder, folder, folder))
	assert(good, output)
	return text_of(folder .. '/out')
end

it('codes in and out, in both layouts: those of the graph', function()
	local spec = fixed:node('conv1.quantize').attrs.spec
	local image = x[{{3, 3}}]
	local wanted
	for _, layout in ipairs {'nchw', 'nhwc'} do
		for _, type in ipairs {'int8', 'uint8'} do
			local folder = new_folder()
			fixed:export {dir=folder, name='net', samples=x, input=type, output=type, layout=layout}
			local h = text_of(folder .. '/net.h')
			local zero = tonumber(h:match 'NET_INPUT_ZERO_POINT %((%-?%d+)%)')
			assert(zero == spec.zero_point - (type == 'int8' and 128 or 0), zero)
			assert(math.abs(tonumber(h:match 'NET_INPUT_SCALE ([%d.e-]+)f') - spec.scale) < 1e-9)
			local codes = image:quantize(spec):codes():to 'int64' - (type == 'int8' and 128 or 0)
			if layout == 'nhwc' then codes = codes:permute(1, 3, 4, 2) end
			local out = passes(folder, bytes(codes, type == 'int8' and 'b' or 'B'))
			local scale, first = tonumber(h:match 'NET_OUTPUT_SCALE ([%d.e-]+)f'), tonumber(h:match 'NET_OUTPUT_ZERO_POINT %((%-?%d+)%)')
			local values = {}
			for i = 1, 5 do
				values[i] = string.unpack(type == 'int8' and 'b' or 'B', out, i) - first
				assert(math.abs(values[i] * scale - fixed:run(image)[{1, i}]:item()) <= 0.51 * scale, i)
			end
			values = table.concat(values, ' ')
			wanted = wanted or values
			assert(values == wanted, values)
			assert(not text_of(folder .. '/net.c'):find 'q_quantize')
			os.execute('rm -r ' .. folder)
		end
	end
end)
it('images come out with the channels last, too', function()
	local folder = new_folder()
	local m = nn.Sequential {nn.Conv2d(3, 4, 3, {pad=1})}
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x[{{1, 1}}]):quantize {mode='static'}
	g:export {dir=folder, name='net', samples=x, layout='nhwc'}
	local image = x[{{2, 2}}]
	local out = passes(folder, bytes(image:permute(1, 3, 4, 2):to 'float64', 'f'))
	assert(out == bytes(g:run(image):permute(1, 3, 4, 2):to 'float64', 'f'))
	os.execute('rm -r ' .. folder)
end)
it('a graph of codes: trace takes a quantized example', function()
	local q = net:quantize {mode='static'}
	local codes = x:quantize(fixed:node('conv1.quantize').attrs.spec)
	local g = graph.trace(q, codes[{{1, 1}}])
	assert(g:run(codes):error(q(x)).max == 0 and g:node('conv1').inputs[1] == 'input')
	local folder = new_folder()
	g:export {dir=folder, name='net', samples=x} -- floats are quantized
	local out = passes(folder, bytes(codes[{{5, 5}}]:codes():to 'int64', 'B'))
	assert(out == bytes(q(x[{{5, 5}}]):to 'float64', 'f'))
	os.execute('rm -r ' .. folder)
end)
it('softmax gives codes of 1 / 256', function()
	local folder, rows = new_folder(), tensor.randn(9, 6)
	local m = nn.Sequential {nn.Linear(6, 4), nn.Softmax()}
	m:calibrate({{rows, rows}}, {log=false})
	graph.trace(m, rows[{{1, 1}}]):quantize({mode='static'}):export {dir=folder, name='net', samples=rows, output='int8'}
	assert(text_of(folder .. '/net.h'):find('NET_OUTPUT_SCALE 0.00390625f\n#define NET_OUTPUT_ZERO_POINT (-128)', 1, true))
	assert(run(('make -s -C %s test CFLAGS=-O1'):format(folder)))
	os.execute('rm -r ' .. folder)
end)
it('what cannot be is refused', function()
	local o = {dir='/proc/none', samples=x}
	local function wants(text, g, options)
		for name, value in next, o do options[name] = value end
		refused(text, g.export, g, options)
	end
	wants("export: input: wanted float int8 uint8, got 'int16'", fixed, {input='int16'})
	wants("export: layout: wanted nchw (channels first) or nhwc (channels last), got 'hwc'; did you mean 'nhwc'?", fixed, {layout='hwc'})
	wants("export: input: wanted an input that is quantized once, with a scale that is known, got 'input', which 'conv1' takes as floats", float,
		{input='int8'})
	wants('or one that is found at run time', float:quantize {mode='dynamic'}, {input='int8'})
	local blind = nn.Sequential {nn.Linear(4, 3)}
	local g = graph.trace(blind, tensor.ones(1, 4)):quantize {mode='static', input={dtype='uint8', scale=0.1, zero_point=3}}
	refused("export: output: wanted a result whose range is known, got 'linear1', which returns floats: call m:calibrate(data)", g.export, g,
		{dir='/proc/none', output='int8'})
end)

local two = [[
#include <stdio.h>
#include <string.h>
#include "net.h"
static struct net_state a, b;
static int8_t in[2][NET_INPUT_COUNT], out[2][NET_OUTPUT_COUNT], alone[2][NET_OUTPUT_COUNT];
static int depth, seen;
void on_layer(int index, const char *name)
{
	if (index != seen || (name == 0) != (index == NET_LAYERS))
		printf("wrong layer %d\n", index);
	if (depth == 0 && index == 2) { /* another pass in the middle of this one */
		depth = 1;
		seen = 0;
		net_run(&b, in[1], out[1]);
		depth = 0;
		seen = 2;
	}
	seen = index == NET_LAYERS ? 0 : index + 1;
	if (name && depth == 0)
		printf("%s ", name);
}
int main(void)
{
	int i;

	for (i = 0; i < NET_INPUT_COUNT; i++) {
		in[0][i] = (int8_t)(i * 7 % 256 - 128);
		in[1][i] = (int8_t)(i * 11 % 256 - 128);
	}
	memset(&a, 0x55, sizeof(a));
	depth = 2;
	net_run(&a, in[0], alone[0]);
	net_run(&a, in[1], alone[1]);
	depth = 0;
	net_run(&a, in[0], out[0]);
	printf("%d %d\n", memcmp(out, alone, sizeof(out)), sizeof(a) == NET_ARENA_BYTES);
	return 0;
}
]]
it('is reentrant: two passes at once, a hook at each layer, no memory of its own', function()
	local folder = new_folder()
	fixed:export {dir=folder, name='net', samples=x, input='int8', output='int8', layout='nhwc'}
	put(folder .. '/config.h', 'void on_layer(int index, const char *name);\n#define NET_LAYER(index, name) on_layer(index, name)\n#define NET_NO_ARENA\n')
	put(folder .. '/two.c', two)
	local good, output = run(([[cd %s && cc -std=c99 -Wall -Wextra -Werror -DNET_CONFIG='"config.h"' -o two two.c net.c && ./two]]):format(folder))
	assert(good and output == 'conv1 maxpool1 conv2 flatten1 linear1 0 1\n', output)
	local _, symbols = run(([[cd %s && cc -std=c99 -DNET_NO_ARENA -c net.c && nm net.o]]):format(folder))
	assert(symbols:find ' T net_run' and not symbols:find 'net_forward' and not symbols:find ' [bBdDC] ', symbols)
	good, output = run(([[cd %s && cc -std=c99 '-DNET_ARENA_ATTRIBUTE=__attribute__((section(".sram2")))' -c net.c && objdump -h net.o]]):format(folder))
	assert(good and output:find '%.sram2', output)
	os.execute('rm -r ' .. folder)
end)
it('has no float in the path for a processor without', function()
	if not os.execute 'arm-none-eabi-gcc --version >/dev/null 2>&1' then skip 'arm-none-eabi-gcc is not here' end
	local folder = new_folder()
	fixed:export {dir=folder, name='net', samples=x, input='int8', output='int8', layout='nhwc'}
	local good, symbols = run(('cd %s && arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb -mfloat-abi=soft -Os -c net.c && arm-none-eabi-nm -u net.o'):format(folder))
	assert(good, symbols)
	for symbol in symbols:gmatch 'U (%S+)' do -- moves and integers of 64 bits
		assert(symbol == 'memcpy' or symbol == 'memset' or symbol:find '^__aeabi_l' and not symbol:find '2[fd]', symbol)
	end
	os.execute('rm -r ' .. folder)
end)
it('the file of functions has those that are called, and no others', function()
	local folder = new_folder()
	fixed:export {dir=folder, name='net', samples=x}
	local ops, c = text_of(folder .. '/net_ops.h'), text_of(folder .. '/net.c')
	local calls = {}
	for body in (ops .. c):gmatch '\n{\n(.-)\n}' do
		for name in body:gmatch '(q_[%w_]+)%(' do calls[name] = true end
	end
	local count = 0
	for name in ops:gmatch '\nstatic [^\n(]-(q_[%w_]+)%(' do
		assert(calls[name], name .. ' is not called')
		calls[name] = nil
		count = count + 1
	end
	assert(count > 5 and next(calls) == nil, next(calls))
	os.execute('rm -r ' .. folder)
end)
