-- SPDX-License-Identifier: MIT
-- Vectors of the self-test: where an op is not the same bits in C, none whose codes hang on its last bit.
-- labels: full
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(5)

-- main.c of the graph, and what its self-test says under each of the compiler's flags.
local function tested(g, samples)
	local folder, said = os.tmpname(), {}
	os.remove(folder)
	g:export {dir=folder, name='net', samples=samples}
	local main <close> = assert(io.open(folder .. '/main.c'))
	for i, compiler in ipairs {'cc -O0', 'cc -O3 -march=native'} do
		local good, output = exported.build(folder, compiler)
		assert(good, output)
		said[i] = select(2, exported.run(('cd %s && ./net --selftest'):format(folder)))
	end
	local text = main:read 'a'
	os.execute('rm -r ' .. folder)
	return text, table.concat(said)
end

-- The tolerance of the floats of each vector.
local function tolerances(main)
	local list = {}
	for share in main:gmatch 'same_floats%([%w_, \n\t]-([%d.e-]+)%)%)' do list[#list + 1] = tonumber(share) end
	return list
end

local function inputs(main, n)
	local list = {}
	for body in main:gmatch(('vector_%%d+%%[%d%%] = {\n(.-)\n};'):format(n)) do
		local row = {}
		for v in body:gmatch '[^%s,]+' do row[#row + 1] = ('%g'):format(tonumber((v:gsub('f$', '')))) end
		list[#list + 1] = table.concat(row, ' ')
	end
	return table.concat(list, '; ')
end

local PASSED = '2 passed, 0 failed\n'
local rounded = function(_, x) return x:norm {p=3, axis=2, keep=true}:quantize {dtype='int8', scale=1}:dequantize() end
local codes = function(_, x) return x:norm {p=3, axis=2, keep=true}:quantize {dtype='int8', scale=1} end
local edges = {{1.5, 0, 0}, {0, 2.5, 0}}
local all = tensor {edges[1], edges[2], {1, 2, 1}, {2, 2.5, 2}, {3, 1, 1}, {2, 1, 2}}
local one = all:narrow(1, 1, 1)

it('rows at the edge between two codes are passed over', function()
	for _, f in ipairs {rounded, codes} do
		local main, said = tested(graph.trace(nn.module(f, {}), one), all)
		assert(inputs(main, 3) == '1 2 1; 2 2.5 2' and said == PASSED .. PASSED)
	end
end)
it('the tolerance is that of floats then', function()
	local list = tolerances((tested(graph.trace(nn.module(rounded, {}), one), all)))
	assert(#list == 2 and list[1] == 2e-5 and list[2] == 2e-5)
end)
it('where there are no other rows it is twice what a code changes', function()
	local list = tolerances((tested(graph.trace(nn.module(rounded, {}), one), tensor(edges))))
	assert(#list == 2 and list[1] >= 0.5 and list[1] <= 2 and list[2] >= 0.5 and list[2] <= 2)
end)
it('graphs whose ops are the same bits take the first rows, sums before codes, too', function()
	local g = graph.trace(nn.module(function(_, x) return (x * 2):quantize {dtype='int8', scale=1}:dequantize() end, {}), one)
	print(inputs(tested(g, all), 3):match '^[^;]+')  --> 1.5 0 0
	g = graph.trace(nn.module(function(_, x) return x:sum {axis=2, keep=true}:quantize {dtype='int8', scale=1} end, {}), one)
	print(inputs(tested(g, all), 3))  --> 1.5 0 0; 0 2.5 0
end)
it('random inputs are the same at each export, and leave the generator as it is', function()
	local g = graph.trace(nn.module(rounded, {}), one)
	tensor.seed(8)
	local wanted = tensor.rand(3)
	tensor.seed(8)
	local main = tested(g)
	assert(tensor.rand(3):error(wanted).max == 0 and tested(g) == main)
end)

---------------------------------------------------------------- models

local images = tensor.randn(40, 3, 16, 16)
local net = nn.Sequential {nn.Conv2d(3, 16, 3, {pad=1}), nn.ReLU(), nn.Conv2d(16, 16, 3, {pad=1}), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, 10)}
net:calibrate({{images, images}}, {log=false})
local ids = tensor.randint(40, 8, {low=1, high=20})
local transformer = nn.Transformer {vocab=20, d=32, heads=2, layers=2, context=8}
for name, case in pairs {
	['weights only before dynamic'] = {net, images, {mode='dynamic', rules={{'conv1', mode='weight_only'}}}},
	['weights only before static'] = {net, images, {mode='static', rules={{'conv1', mode='weight_only'}}}},
	['weights only between'] = {net, images, {mode='static', rules={{'conv2', mode='weight_only'}}}},
	['a dynamic Transformer'] = {transformer, ids, {mode='dynamic'}},
} do
	it(name, function()
		local m, x, o = table.unpack(case)
		local main, said = tested((graph.trace(m, x:narrow(1, 1, 1)):quantize(o)), x)
		assert(said == PASSED .. PASSED, said)
		for _, share in ipairs(tolerances(main)) do assert(share == 0) end
	end)
end
