-- SPDX-License-Identifier: MIT
-- labels: full
-- What g:export writes: several precisions, weights in a file, names, all files or none.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)

local refused, new_folder, text_of = exported.refused, exported.new_folder, exported.text_of
local function run(command)
	local good, output = exported.run(command)
	return good, (output:gsub('\n$', ''))
end

local small = nn.Sequential {nn.Linear(6, 8, {name='fc1'}), nn.ReLU(), nn.Linear(8, 3), nn.Softmax()}
local rows = tensor.randn(20, 6)
small:calibrate({{rows, rows}}, {log=false})
local float = graph.trace(small, rows[{{1, 1}}])

describe('variants', function()
	it('stand side by side: three symbols, one arena, a main that chooses', function()
			local folder = new_folder()
		local r = float:export {dir=folder, name='net', samples=rows, variants={'int8', 'int16', 'float32'}, profile='fc1'}
		print(r:where{variant='int8', node='fc1'}[1].macs, #r:where{op='linear'}, r[1].variant)  --> 48 6 int8
		local h, c = text_of(folder .. '/net.h'), text_of(folder .. '/net.c')
		for _, name in ipairs {'int8', 'int16', 'float32'} do assert(h:find('void net_forward_' .. name .. '(', 1, true), name) end
		print(select(2, c:gsub('static struct net_state memory', '')), c:find 'q_linear8_u8' ~= nil, c:find 'q_linear_i16_i16_i64' ~= nil)  --> 1 true true
		assert(run('make -C ' .. folder))
		print(select(2, run(folder .. '/net --selftest')))  --> 6 passed, 0 failed
		local input = tensor.ones(1, 6)
		local f = io.open(folder .. '/in', 'wb')
		for _ = 1, 6 do f:write(string.pack('<f', 1)) end
		f:close()
		for name, q in pairs {int8=float:quantize{mode='static'}, int16=float:quantize{mode='static', weight='int16/1', input='int16'}, float32=float} do
			assert(select(2, run(('%s/net %s --selftest'):format(folder, name))) == '2 passed, 0 failed')
			assert(run(('%s/net %s --run < %s/in > %s/out'):format(folder, name, folder, folder)))
			local out, wanted = text_of(folder .. '/out'), q:run(input)
			for i = 1, 3 do assert(math.abs(string.unpack('<f', out, 4 * i - 3) - wanted[{1, i}]:item()) < 1e-6, name) end
		end
		local good, output = run(folder .. '/net int16 --time 10')
		assert(good and output:find 'us a pass' and output:find 'fc1 .* us')
		print(run(folder .. '/net int4 --selftest'))  --> false usage: ... [int8 | int16 | float32] ...
		os.execute('rm -r ' .. folder)
	end)
	it('are specs, options, or graphs by name', function()
			local folder = new_folder()
		float:export {dir=folder, name='net', samples=rows, variants={tiny={mode='static', weight='int4/1'}, ['a "b"']=float:quantize{mode='static'}}}
		assert(run(('make -C %s && %s/net --selftest && %s/net tiny --selftest'):format(folder, folder, folder)))
		assert(text_of(folder .. '/net.h'):find('net_forward_a__b_(', 1, true))
		os.execute('rm -r ' .. folder)
		refused('export: variants: x: wanted a spec, options of g:quantize or a graph, got 3', float.export, float, {dir=folder, variants={x=3}})
		refused('export: variants: wanted at least one, got none', float.export, float, {dir=folder, variants={}})
		refused("wanted names that differ in C, got 'a-b' and 'a_b'", float.export, float, {dir=folder, variants={['a-b']='int8', a_b='int8'}})
		refused('got', float.export, float, {dir=folder, variants={'int9x'}})
		assert(not io.open(folder .. '/Makefile'))
	end)
	it('of a quantized graph are graphs by name only', function()
		local folder = new_folder()
		for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
			local q = float:quantize {mode=mode}
			for _, variants in ipairs {{'int8', 'int4'}, {'float32'}, {tiny={mode='static', weight='int4/1'}}} do
				refused("wanted the float graph, got one in which 'fc1' is quantized already", q.export, q, {dir=folder, variants=variants})
			end
		end
		local traced = graph.trace(small:quantize {mode='static'}, rows[{{1, 1}}])
		refused('export: variants: int4: wanted the float graph', traced.export, traced, {dir=folder, variants={'int4'}})
		local q = float:quantize {mode='static'}
		q:export {dir=folder, name='net', samples=rows, variants={a=q, b=float}}
		assert(run(('make -C %s test'):format(folder)))
		os.execute('rm -r ' .. folder)
	end)
end)
it('a batch whose inputs would make a main.c of hundreds of megabytes is refused', function()
	refused('wanted at most 4194304 numbers in the inputs of the self-test, got 2 inputs of 6000000', float.export, float, {dir=new_folder(), batch=1000000})
end)
it('blob: weights in a file that is read and checked', function()
	local folder = new_folder()
	local net = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3)}
	local x = tensor.randn(20, 3, 6, 6)
	local r = exported.static(net, x):export {dir=folder, name='net', samples=x, blob=true}
	local weights = text_of(folder .. '/net_weights.h')
	assert(#text_of(folder .. '/net.bin') == tonumber(tostring(r):match 'constants (%d+) bytes'))
	assert(weights:find 'static int8_t conv1_weight%[%d+%];' and not weights:find '%d, %d')
	assert(run(('make -C %s CFLAGS="-O1 -fsanitize=undefined,address"'):format(folder)))
	print(run(folder .. '/net --selftest'))  --> true 2 passed, 0 failed
	print(run(('cd / && %s/net --weights %s/net.bin --selftest'):format(folder, folder)))  --> true 2 passed, 0 failed
	local function with(bytes)
		local f = io.open(folder .. '/bad.bin', 'wb')
		f:write(bytes):close()
		local good, output = run(('%s/net --weights %s/bad.bin --selftest'):format(folder, folder))
		assert(not good and output:find 'not the weights of this program', output)
	end
	local blob = text_of(folder .. '/net.bin')
	for _, bytes in ipairs {'', blob:sub(1, -2), blob .. '\0', blob:sub(1, 99) .. string.char(blob:byte(100) ~ 1) .. blob:sub(101)} do with(bytes) end
	print(run(folder .. '/net --weights /proc/none --selftest'))  --> false /proc/none: cannot be read
	local f = io.open(folder .. '/alone.c', 'w')
	f:write [[
#include "net.h"
static float in[108], out[3];
int main(void) { return net_forward(in, out) == 1 && net_load("nothing") == 1 && net_load("net.bin") == 0 && net_forward(in, out) == 0 ? 0 : 1; }
]]
	f:close()
	assert(run(('cd %s && cc -std=c99 -Wall -Werror -o alone alone.c net.c && ./alone'):format(folder)))
	os.execute('rm -r ' .. folder)
end)
it('weights lie as they say: a row for each output with zeros behind it, columns of a convolution, channels last', function()
	local folder = new_folder()
	local net = nn.Sequential {nn.Conv2d(3, 8, 3, {name='conv'}), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5, {name='fc'})}
	local x = tensor.randn(20, 3, 6, 6)
	local g = exported.static(net, x)
	g:export {dir=folder, name='net', samples=x}
	local text = text_of(folder .. '/net_weights.h')
	local function numbers(name)
		local list = {}
		for number in text:match('static const int8_t ' .. name .. '%[%d+%] = {[^\n]*\n(.-)}'):gmatch '-?%d+' do list[#list + 1] = math.tointeger(number) end
		return tensor(list)
	end
	local conv, fc = g:node('conv.weight').value, g:node('fc.weight').value
	assert(text:find("rows of 32 bytes, 27 of them codes, (width, height, channel) of a window", 1, true) and text:find 'rows of 128 bytes')
	local rows_of = numbers('conv_weight'):view(8, 32)
	assert(rows_of:narrow(2, 1, 27):eq(conv:codes():permute(1, 4, 3, 2):contiguous():view(8, 27):to 'int64'):all():item())
	assert(rows_of:narrow(2, 28, 5):eq(0):all():item())
	assert(numbers('fc_weight'):eq(fc:codes():view(-1):to 'int64'):all():item())
	os.execute('rm -r ' .. folder)
end)
it('the arena is hardly larger than what lives at once', function()
	for seed = 1, 6 do
		local parts = {}
		for i = 1, 6 + seed do parts['l' .. i] = nn.Linear(8, (i * seed) % 13 * 80 + 8) end
		local g = graph.trace(nn.module(function(self, a)
			local list = {}
			for i = 1, 6 + seed do list[i] = self['l' .. i](a):exp() end
			local sum = list[1]:sum {axis=2}
			for i = 6 + seed, 2, -1 do sum = sum + list[i]:exp():sum {axis=2} end
			return sum
		end, parts), tensor.randn(1, 8))
		local folder = new_folder()
		local r = g:export {dir=folder}
		local most = 0
		for i = 1, #r do most = math.max(most, r[i].memory) end
		local arena = tonumber(tostring(r):match 'arena (%d+) bytes')
		assert(arena >= most and arena <= 1.1 * (most + 64 * 12), ('%d of at least %d'):format(arena, most))
		os.execute('rm -r ' .. folder)
	end
end)
it('tests with as many inputs as vectors= says, the first rows of samples=', function()
	local folder = new_folder()
	float:export {dir=folder, name='net', samples=rows, vectors=20}
	assert(run('make -C ' .. folder))
	print(select(2, run(folder .. '/net --selftest')))  --> 20 passed, 0 failed
	local _, arrays = text_of(folder .. '/main.c'):gsub('static const float vector_%d+%[6%]', '')
	print(arrays)  --> 20
	float:export {dir=folder, name='net', vectors=3, batch=2}
	assert(run('make -C ' .. folder))
	print(select(2, run(folder .. '/net --selftest')))  --> 3 passed, 0 failed
	os.execute('rm -r ' .. folder)
	local o = {dir='/proc/none', samples=rows, vectors=21}
	refused('export: vectors: wanted at most 20, as many as samples= has rows for, got 21', float.export, float, o)
	o.batch, o.vectors = 4, 6
	refused('export: vectors: wanted at most 5, as many', float.export, float, o)
	o.vectors = 0
	refused('export: vectors: wanted positive integer, got 0', float.export, float, o)
	refused('export: samples: wanted a tensor or a list with one for each of 1 input, got a list of 2', float.export, float,
		{dir='/proc/none', samples={rows, rows}})
end)
it('wants samples of the type and sizes of the inputs, and elements', function()
	refused("export: samples: wanted float32(1, 6) for 'input', got float32(1, 5)", float.export, float, {dir='/proc/none', samples=tensor.randn(2, 5)})
	refused("export: samples: wanted float32(1, 6) for 'input', got int32(1, 6)", float.export, float,
		{dir='/proc/none', samples=tensor.ones {2, 6, dtype='int32'}})
	local g = graph.trace(nn.module(function(_, a) return a:narrow(2, 1, 0) end, {}), rows)
	refused("export: 'narrow1': wanted elements, got none: float32(1, 0)", g.export, g, {dir='/proc/none'})
	refused("export: dir: cannot make '/proc/none': mkdir: cannot create directory", float.export, float, {dir='/proc/none', samples=rows})
end)
it('says which result differs, and that stdin ends within an input', function()
	local folder = new_folder()
	float:export {dir=folder, name='net', samples=rows, variants={'int8', 'float32'}}
	local main = text_of(folder .. '/main.c')
	local changed, n = main:gsub('(static const float vector_2%[%d+%] = {\n\t)%S+', '%19.0f,')
	assert(n == 1)
	local f = io.open(folder .. '/main.c', 'w')
	f:write(changed):close()
	assert(run('make -C ' .. folder))
	local good, output = run(folder .. '/net --selftest')
	assert(not good and output == 'int8: output of vector 1: not what Quoll gave\n3 passed, 1 failed', output)
	print(run(('printf abc | %s/net --run'):format(folder)))  --> false stdin: wanted whole inputs, got a part of one
	print(run(('(printf 012345678901234567890123 | %s/net --run > /dev/full)'):format(folder)))  --> false stdout: cannot be written
	print(run(folder .. '/net --run < /dev/null'))  --> true
	os.execute('rm -r ' .. folder)
end)
it('is read by C++, by a compiler of the environment, by one that knows no -march=native', function()
	local folder = new_folder()
	float:export {dir=folder, name='net', samples=rows, profile='.*'}
	local f = io.open(folder .. '/a.cc', 'w')
	f:write '#include "net.h"\nint main() { static float in[6], out[3]; net_forward(in, out); net_profile(); return 0; }\n'
	f:close()
	if os.execute 'g++ --version >/dev/null 2>&1' then
		assert(run(('cd %s && gcc -std=c99 -c net.c && g++ -Wall -Wextra -Wpedantic -Werror -o a a.cc net.o'):format(folder)))
		local _, output = run(folder .. '/a')
		assert(output:find '^node +processor time +share\n' and output:find '\nfc1 +[%d.]+ us +[%d.]+ %%', output)
	end
	f = io.open(folder .. '/cc', 'w')
	f:write '#!/bin/sh\nfor a; do case $a in -march=native) exit 1;; esac; done\necho used >>cc.txt\nexec cc "$@"\n'
	f:close()
	assert(run(('chmod +x %s/cc && CC=./cc make -C %s test'):format(folder, folder)))
	assert(text_of(folder .. '/cc.txt') == 'used\n')
	assert(run(('make -C %s clean && ! test -e %s/net'):format(folder, folder)))
	os.execute('rm -r ' .. folder)
end)
it('the forward pass reads as a list of nodes, in lines of at most 120 columns', function()
	local folder = new_folder()
	local m = nn.Sequential {nn.LSTM(6, 5), nn.Linear(5, 2)}
	graph.trace(m, tensor.randn(1, 3, 6)):quantize({mode='dynamic', weight='int8/1'}):export {dir=folder, name='net'}
	local c = text_of(folder .. '/net.c')
	local forward = c:match 'void net_run%b().-\n}\n'
	assert(forward:find '\tNET_LAYER%(%d, "linear1"%); /%* linear %*/\n\tq_' and forward:find '\tNET_LAYER%(%d, "lstm1"%); /%* lstm %*/\n\t{\n\t\tint32_t b, t;\n\n\t\tmem', forward)
	local depth = 0 -- in every line as many tabs as braces and loops are open
	for line in forward:gmatch '[^\n]+' do
		local tabs = #line:match '^\t*'
		if line:find '^\t*}' then depth = tabs end
		assert(tabs >= depth and #line + 7 * tabs <= 130, line)
		if line:find '{$' then depth = tabs + 1 end
	end
	os.execute('rm -r ' .. folder)
end)
it('any name is made safe', function()
	for _, name in ipairs {'main', 'test', 'clean', 'int', 'a"b', '*/ int x; /*', '??/', '../up', '9lives', 'q_round', ('long'):rep(60)} do
		local folder = new_folder()
		float:quantize{mode='static'}:export {dir=folder, name=name, samples=rows}
		local good, output = run('make CFLAGS=-O0 -C ' .. folder .. ' test')
		assert(good and output:find '2 passed, 0 failed', name .. ': ' .. output)
		assert(not io.open(folder .. '/../up.c'))
		os.execute('rm -r ' .. folder)
	end
	local words = {'if', 'memory', 'arena', 'memcpy', 'q_round', 'int8_t', 'input', 'output', 'clock', 'remove', 'FILE'}
	local parts = {}
	for _, word in ipairs(words) do parts[word] = tensor.randn(6) end
	local g = graph.trace(nn.module(function(self, a)
		for _, word in ipairs(words) do a = a + self[word] end
		return a
	end, parts), rows[{{1, 1}}])
	exported.check('words', g, rows, {flags=exported.FLAGS})
	for _, o in ipairs {{profile='.*'}, {blob=true, profile='.*'}} do
		local folder = new_folder()
		o.dir = folder
		g:export(o)
		local good, output = run('make CFLAGS=-O0 -C ' .. folder .. ' test')
		assert(good, output)
		os.execute('rm -r ' .. folder)
	end
end)
it('writes all files or none', function()
	local g = float:quantize{mode='static'}
	local folder = new_folder()
	local function list() return select(2, run('ls -A ' .. folder .. ' ' .. folder .. '.part*')) end
	g:export {dir=folder .. '/deep/er/', name='a', samples=rows}
	assert(run('make -C ' .. folder .. '/deep/er test'))
	os.execute('rm -r ' .. folder)
	g:export {dir=folder, name='a', samples=rows}
	os.execute('echo mine > ' .. folder .. '/notes')
	local first = text_of(folder .. '/a_weights.h')
	float:export {dir=folder, name='a', samples=rows} -- takes the places of the files, leaves others
	assert(run('make -B -C ' .. folder .. ' test') and text_of(folder .. '/notes') == 'mine\n' and text_of(folder .. '/a_weights.h') ~= first)
	local f = io.open(folder .. '/a_weights.h', 'w') -- as if a second export had been cut off
	f:write(first):close()
	local good, output = run('make -B -C ' .. folder)
	assert(not good and output:find 'files of two exports', output)
	assert(not list():find 'part%x', list())
	local before = text_of(folder .. '/a.c')
	os.execute(('rm %s/Makefile && mkdir %s/Makefile'):format(folder, folder))
	refused("export: dir: cannot write into '" .. folder .. "': 'Makefile' is a folder", g.export, g, {dir=folder, name='a', samples=rows})
	assert(text_of(folder .. '/a.c') == before and not list():find 'part%x')
	refused('export: dir: cannot make', g.export, g, {dir=folder .. '/notes/x', samples=rows})
	refused('export: dir: cannot make', g.export, g, {dir='/proc/nothing/here', samples=rows})
	for name, value in pairs {dir='', name=''} do
		local o = {dir=folder .. '/new', samples=rows}
		for _, bad in ipairs {value, 'a\0b'} do
			o[name] = bad
			refused(('export: %s: wanted a name, got'):format(name), g.export, g, o)
		end
	end
	for _, samples in ipairs {'x', 3} do
		refused('export: samples: wanted a tensor or a list of them', g.export, g, {dir=folder .. '/new', samples=samples})
	end
	refused("export: samples: wanted a tensor for 'input', got 'x'", g.export, g, {dir=folder .. '/new', samples={'x'}})
	refused("export: samples: wanted names of variants, got 'int16'", g.export, g,
		{dir=folder .. '/new', variants={float32=g}, samples={int16=rows}})
	refused("export: samples: wanted a tensor for 'input', got true", g.export, g, {dir=folder .. '/new', variants={float32=g}, samples={float32=true}})
	refused("export: profile: wanted a pattern that matches a node, got 'zzz'; nodes: ", g.export, g, {dir=folder .. '/new', samples=rows, profile='zzz'})
	assert(not io.open(folder .. '/new'))
	refused('export: dir: cannot write into', g.export, g, {dir=folder .. '/notes', samples=rows})
	assert(text_of(folder .. '/notes') == 'mine\n' and not list():find 'part%x')
	os.execute('rm -r ' .. folder)
end)
it('leaves files alone that no export wrote', function()
	local folder, g = os.tmpname(), graph.trace(nn.Sequential {nn.Linear(3, 2)}, tensor.ones(1, 3))
	os.execute(('rm %s && mkdir %s && printf "all:\n" > %s/Makefile'):format(folder, folder, folder))
	local good, message = pcall(g.export, g, {dir=folder, name='net'})
	assert(not good and message:find("'Makefile' was not written by g:export; nothing was overwritten", 1, true), message)
	assert(io.open(folder .. '/Makefile'):read 'a' == 'all:\n' and not io.open(folder .. '/net.c'))
	os.remove(folder .. '/Makefile')
	for _ = 1, 2 do g:export {dir=folder, name='net', blob=true} end -- over its own
	os.execute('rm -r ' .. folder)
end)
it('a limit to the size of files is an error, and nothing is left', function()
	local folder, program = new_folder(), io.popen('readlink /proc/$PPID/exe'):read 'l'
	os.execute('mkdir ' .. folder)
	local script = ([[
g = graph.trace(nn.Sequential {nn.Linear(300, 300)}, tensor.ones(1, 300))
print(pcall(g.export, g, {dir='%s/net'}))
]]):format(folder)
	local file = io.open(folder .. '/script.lua', 'w')
	file:write(script):close()
	local good, output = run(('ulimit -f 100; "%s" %s/script.lua'):format(program, folder))
	assert(good and output:find 'false.*export: dir: cannot write into.*[Ff]ile too large', output)
	assert(select(2, run('ls ' .. folder)) == 'script.lua')
	os.execute('rm -r ' .. folder)
end)
