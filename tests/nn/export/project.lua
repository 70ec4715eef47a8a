-- SPDX-License-Identifier: MIT
-- g:export{project=, cc=, max_ram=, max_flash=}: files for build systems, sizes on a device; and what nn/export/INTEGRATION.md claims.
-- labels: once
local exported = dofile 'tests/tools/exported.lua'
exported.skip()

local refused, new_folder, text_of, put, run = exported.refused, exported.new_folder, exported.text_of, exported.put, exported.run
local function is_here(command) return os.execute(command .. ' >/dev/null 2>&1') == true end

tensor.seed(61)
local x = tensor.randn(12, 3, 8, 8)
local net = nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 5)}
net:calibrate({{x, x}}, {log=false})
local g = graph.trace(net, x[{{1, 1}}]):quantize {mode='static', rounding='double'}
local function options(more)
	local o = {name='net', samples=x, input='int8', output='int8', layout='nhwc', dir=new_folder()}
	for key, value in next, more do o[key] = value end
	return o
end

it('sizes: the note has flash and stack of a compiler', function()
	local o = options {cc='cc -Os'}
	local r = tostring(g:export(o))
	local constants, arena = tonumber(r:match 'constants (%d+) bytes'), tonumber(r:match 'arena (%d+) bytes')
	local flash, code = r:match 'flash%s+(%d+)%s+bytes,%s+of%s+which%s+(%d+)'
	assert(flash and tonumber(flash) == constants + tonumber(code) and tonumber(code) > 500 and tonumber(code) < 20000, r)
	if is_here 'cc --version | grep "Free Software"' then
		local stack = tonumber(r:match 'stack%s+(%d+)%s+bytes')
		assert(stack and stack > 50 and stack < 2000, r)
	end
	assert(is_here('make -s -C ' .. o.dir .. ' test') and arena > 0)
	os.execute('rm -r ' .. o.dir)
end)
it('limits: refused before anything is written', function()
	local o = options {max_ram=300}
	refused("export: max_ram: wanted at most 300 bytes, got ", g.export, g, o)
	refused("; node 'maxpool1' alone uses 640", g.export, g, o)
	assert(not io.open(o.dir .. '/net.c'))
	refused('export: max_flash: wanted at most 500 bytes, got 948', g.export, g, options {max_flash=500})
	refused('; with cc= the code counts, too', g.export, g, options {max_flash=500})
	refused(', code ', g.export, g, options {max_flash=1500, cc='cc -Os'})
	refused("export: cc: wanted a command that compiles net.c, got 'false'", g.export, g, options {cc='false'})
	refused("export: project: wanted make cmake zephyr arduino, got 'cmak'; did you mean 'cmake'?", g.export, g, options {project='cmak'})
	o = options {max_ram=100000, max_flash=100000, cc='cc -Os'}
	g:export(o)
	os.execute('rm -r ' .. o.dir)
end)
it('CMake: a library, and the self-test by ctest', function()
	if not is_here 'cmake --version' then skip 'cmake is not here' end
	local o = options {project='cmake'}
	g:export(o)
	local good, output = run(('cd %s && cmake -S . -B build && cmake --build build && ctest --test-dir build'):format(o.dir))
	assert(good and output:find '100%% tests passed', output)
	os.execute(('mkdir %s/app'):format(o.dir))
	put(o.dir .. '/app/app.c', '#include "net.h"\nint main(void) { return NET_LAYERS == 0; }\n')
	put(o.dir .. '/app/CMakeLists.txt', 'cmake_minimum_required(VERSION 3.13)\nproject(app C)\nadd_subdirectory(.. net)\nadd_executable(app app.c)\n\z
		target_link_libraries(app PRIVATE net)\n')
	good, output = run(('cd %s/app && cmake -S . -B build && cmake --build build && ./build/app'):format(o.dir))
	assert(good, output)
	g:export(o) -- over its own, with a build beside it
	os.execute('rm -r ' .. o.dir)
end)
it('Zephyr: a module', function()
	local o = options {project='zephyr'}
	g:export(o)
	local module, cmake = text_of(o.dir .. '/zephyr/module.yml'), text_of(o.dir .. '/zephyr/CMakeLists.txt')
	assert(module:find '\nname: net\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n' and text_of(o.dir .. '/zephyr/Kconfig'):find '\nconfig NET\n')
	assert(cmake:find 'if%(CONFIG_NET%)')
	if is_here 'cmake --version' then -- by functions of Zephyr's names
		put(o.dir .. '/try.cmake', [[
set(CONFIG_NET y)
function(zephyr_library_named name)
	message(STATUS "library ${name}")
endfunction()
function(zephyr_library_sources file)
	if(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/${file})
		message(FATAL_ERROR "no ${file}")
	endif()
endfunction()
function(zephyr_library_compile_options)
endfunction()
function(zephyr_include_directories)
endfunction()
include(${CMAKE_CURRENT_LIST_DIR}/zephyr/CMakeLists.txt)
]])
		local good, output = run(('cd %s && cmake -P try.cmake'):format(o.dir))
		assert(good and output:find 'library net', output)
	end
	os.execute('rm -r ' .. o.dir)
end)
it('Arduino: a library with its sources in src', function()
	local o = options {project='arduino'}
	g:export(o)
	local properties = text_of(o.dir .. '/library.properties')
	for _, field in ipairs {'name', 'version', 'author', 'maintainer', 'sentence', 'paragraph', 'category', 'url', 'architectures'} do
		assert(('\n' .. properties):find('\n' .. field .. '=%S'), field)
	end
	put(o.dir .. '/sketch.cpp', '#include <net.h>\nstatic int8_t in[NET_INPUT_COUNT], out[NET_OUTPUT_COUNT];\nint main() { net_forward(in, out); return 0; }\n')
	if is_here 'g++ --version' then
		local good, output = run(('cd %s && gcc -Os -c src/net.c -o net.o && g++ -Isrc -o sketch sketch.cpp net.o && ./sketch'):format(o.dir))
		assert(good, output)
	end
	local good, output = run(('cd %s && cc -std=c99 -Isrc -o test extras/main.c src/net.c && ./test --selftest'):format(o.dir))
	assert(good and output:find '2 passed, 0 failed', output)
	g:export(o)
	os.execute('rm -r ' .. o.dir)
end)
it('the C of INTEGRATION.md compiles, and counts the layers', function()
	local o, list = options {}, {}
	g:export(o)
	for block in text_of 'nn/export/INTEGRATION.md':gmatch '```c\n(.-)```' do list[#list + 1] = block end
	assert(#list == 3 and list[2]:find '^/%* net_config')
	put(o.dir .. '/pass.c', list[1])
	put(o.dir .. '/net_config.h', list[2])
	put(o.dir .. '/profile.c', list[3] .. [[
uint32_t read_cycles(void)
{
	static uint32_t n;

	return n += 5;
}
float first_result(const float *values);
static float values[NET_INPUT_COUNT];
int main(void)
{
	float y = first_result(values);
	int i;

	for (i = 0; i < NET_LAYERS; i++)
		if (cycles[i] != 5)
			return 1;
	return y != y;
}
]])
	local good, output = run(([[cd %s && cc -std=c99 -Wall -Wextra -Werror -DNET_CONFIG='"net_config.h"' -o try pass.c profile.c net.c && ./try]]):format(o.dir))
	assert(good, output)
	os.execute('rm -r ' .. o.dir)
end)
