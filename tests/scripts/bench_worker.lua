-- SPDX-License-Identifier: MIT
-- scripts/bench_worker.lua: one answer per request, whatever the request.
local function number(text, key) return tonumber(text:match('"' .. key .. '":([-%d.e]+)')) end

local function ask(...)
	local name = os.tmpname()
	local file = assert(io.open(name, 'w'))
	file:write(table.concat({...}, '\n'), '\n')
	file:close()
	local pipe = io.popen('exec "/proc/$PPID/exe" scripts/bench_worker.lua < ' .. name)
	local answers = {}
	for line in pipe:lines() do answers[#answers + 1] = line end
	local good = pipe:close()
	os.remove(name)
	assert(good)
	return answers
end

it('times an item and says which it does not have', function()
	local a = ask('{"case":"overhead","item":"add8","args":{},"threads":1,"budget":0.02}',
		'{"case":"overhead","item":"add8","args":{},"threads":1,"budget":0.0}',
		'{"case":"overhead","item":"nothing","args":{},"threads":1,"budget":0.02}',
		'{"case":"gemm_f32","item":"8x8x8","args":{"M":8,"N":8,"K":8},"threads":2,"budget":0.001}', 'no json', '[1]')
	assert(#a == 6)
	for _, i in ipairs{1, 2, 4} do
		local median, cpu = number(a[i], 'med'), number(a[i], 'cpu')
		assert(a[i]:find '^{"t":%[[%d.e,-]+%],"med":' and median > 1e-9 and median < 0.1 and cpu >= 0, a[i])
		local low = tonumber(a[i]:match '%[([%d.e-]+)')
		assert(low <= median)
	end
	assert(select(2, a[2]:match '%[.*%]':gsub(',', '')) >= 1, 'two calls at least')
	assert(a[3] == '{"skip":"n/a"}')
	assert(a[5]:find '^{"skip":"wanted a value at byte 1' and a[6]:find '^{"skip":')
end)

it('goes on after an item that fails', function()
	local a = ask('{"case":"gemm_f32","item":"x","args":{"M":-1,"N":8,"K":8},"threads":1,"budget":0}',
		'{"case":"overhead","item":"loop_add","args":{},"threads":1,"budget":0}')
	assert(a[1]:find '^{"skip":".*wanted 0 or more, got %-1"}$' and number(a[2], 'med') > 0, a[1])
end)

it('times products, convolutions and networks as users write them', function()
	local requests = {}
	for _, case in ipairs {'gemm_i8', 'gemm_i8_matmul', 'gemm_i8_dynamic', 'w4_float'} do
		requests[#requests + 1] = ('{"case":"%s","item":"8x32x32","args":{"M":8,"N":32,"K":32},"threads":1,"budget":0}'):format(case)
	end
	requests[#requests + 1] = '{"case":"gemm_f32","item":"cold","args":{"M":1,"N":8,"K":8,"cold":1},"threads":1,"budget":0}'
	requests[#requests + 1] = '{"case":"format","item":"nf4","args":{"M":1,"N":8,"K":64,"spec":"nf4:64","way":"weight_only"},"threads":1,"budget":0}'
	for _, case in ipairs {'conv', 'conv_i8'} do
		requests[#requests + 1] = ('{"case":"%s","item":"x","args":{"B":2,"I":3,"O":8,"H":8},"threads":2,"budget":0}'):format(case)
	end
	requests[#requests + 1] = '{"case":"quantize","item":"quant_block32","args":{"n":8192},"threads":2,"budget":0}'
	for _, way in ipairs {'float32', 'int8'} do
		requests[#requests + 1] = ('{"case":"nets","item":"%s","args":{"net":"resnet8","way":"%s","batch":1},"threads":1,"budget":0}'):format(way, way)
	end
	for i, answer in ipairs(ask(table.unpack(requests))) do assert(number(answer, 'med') > 0, requests[i] .. answer) end
	assert(number(ask '{"case":"limit","item":"fma","args":{},"threads":1,"budget":0}'[1], 'rate') > 0.05)
	assert(ask '{"case":"version"}'[1]:find '^{"version":"Quoll [%d.]+')
end)
