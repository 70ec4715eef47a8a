-- SPDX-License-Identifier: MIT
-- labels: quick
-- scripts/peers.py without any peer: its rows, Quoll's answers to them, and the table of results.
local python = io.popen 'command -v python3':read 'l'
if not python then
	skip('real input: no python3')
	return
end

local function run(arguments)
	local pipe = io.popen(('%s -B scripts/peers.py %s 2>&1'):format(python, arguments))
	local text = pipe:read 'a'
	return text, pipe:close()
end

it('lists rows, each once, and refuses what is none', function()
	local text, good = run '--list'
	assert(good, text)
	local seen, cases = {}, {}
	for row, peers in text:gmatch '([^\n]-): ([^\n]*)' do
		assert(not seen[row] and peers:find '^quoll', row)
		seen[row] = true
		cases[row:match '^[^/]+'] = true
	end
	for _, case in ipairs {'gemm_i8', 'gemm_f32', 'w4', 'w4_float', 'conv_i8', 'quantize', 'nnops', 'train', 'nets', 'format', 'overhead'} do assert(cases[case], case) end
	for _, net in ipairs {'resnet8', 'resnet20', 'resnet9'} do
		for _, way in ipairs {'float32', 'int8'} do assert(seen[('nets/%s_%s_b200'):format(net, way)] and seen[('nets/%s_%s_b1_graph'):format(net, way)]) end
	end
	text, good = run 'nothing'
	assert(not good and text:find 'unknown row nothing', text)
end)

it('measures Quoll alone, and makes a table of the last results', function()
	local file = os.tmpname()
	local text, good = run(('overhead/add8 gemm_f32/256x256x256 --peers none --rounds 1 --budget 0.001 --threads 1 --quoll /proc/%d/exe --out %s'):format(
		io.open '/proc/self/stat':read 'n', file))
	assert(good and text:find 'overhead/add8, 1 thread\n  quoll +%d+%.%d+ +%d' and text:find 'gemm_f32/256x256x256', text)
	local handle = io.open(file, 'a')
	handle:write('{"case":"gemm_f32","item":"256x256x256","threads":1,"date":"2026-01-02","machine":"M","rounds":5,',
		'"times":{"quoll":[0.002,0.003],"torch":[0.004,0.005],"ort":[0.001,0.006]},"versions":{"quoll":"Quoll X","torch":"torch 1"},',
		'"skipped":{"blis":"absent"},"limit":{"name":"fma","rate":100,"seconds":0.0015}}\n')
	handle:close()
	text, good = run('--table ' .. file)
	os.remove(file)
	assert(good, text)
	assert(text:find('| gemm_f32/256x256x256, 1 | 2 | 75 % fma | 2.00 of ort (1) | ort 1, torch 4 |', 1, true), text)
	assert(text:find 'torch 1' and text:find 'blis %(absent%)' and text:find '| overhead/add8, 1 | %d', text)
	assert(select(2, text:gsub('| gemm_f32/', '')) == 1)
end)
