-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized forms of linear and matmul in graphs: paths, codes out, weights that are activations, multiplications.
tensor.seed(20)

local function paths(g, x, op)
	quant.log 'reset'
	local y = g:run(x, {check=true})
	return quant.log():where{op=op}[1].path, #quant.log():where{path='fallback'}, y
end

it('every dtype of weights and inputs runs in integers', function()
	local m = nn.Sequential{nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8)}
	local x = tensor.randn(20, 32)
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x)
	for _, o in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'uint8'}, {'int16/1', 'int16'}, {'int8/1', 'int16'}, {'uint8/1', 'int8'}, {'int8', 'int4'}} do
		local q = g:quantize{mode='static', weight=o[1], input=o[2]}
		local path, falls, y = paths(q, x, 'linear')
		assert(path:find '^int' and falls == 0, o[1] .. ' ' .. o[2] .. ' ' .. path)
		assert(y:error(m:quantize{mode='static', weight=o[1], input=o[2]}(x)).max == 0)
	end
end)

it('a matrix that the graph holds is a weight of matmul, any other an activation', function()
	local w = tensor.randn(8, 5)
	local m = nn.module(function(_, v) return v:matmul(w) end)
	local x = tensor.randn(4, 8)
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static', weight='int8/2'}
	print(r[1].op, r[1].weight, r[1].bytes, q:node('const1').dtype, (paths(q, x, 'matmul')))  --> matmul int8/2 60 int8 int8
	assert(q:run(x):error(m(x)).sqnr > 30)
	local both = graph.trace(nn.module(function(_, v) return v:matmul(v:t()) end), x)
	local s = both:quantize{mode='dynamic', input='int8'}
	print((paths(s, x, 'matmul')), s:node('matmul1').mode, both:node('matmul1').macs)  --> int8 dynamic 8
	print(both:quantize{mode='weight_only', rules={}}:node('matmul1').mode)  --> nil
	print(pcall(both.quantize, both, {mode='weight_only'}))  --> false ...wanted a graph with nodes that can be quantized, got none
end)

it('scales that change along the sum, and codes of logarithms, are refused in m:quantize as here, but for weight_only', function()
	local x = tensor.randn(16, 8)
	local m = nn.Sequential{nn.Linear(8, 5)}
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x)
	for _, spec in ipairs {'int8/2', 'int8:4', 'nf4:8', 'binary:8', {dtype='int8', scheme='log'}, {dtype='int4', scheme='log', axis=1}} do
		for _, mode in ipairs {'static', 'dynamic'} do
			local good, message = pcall(g.quantize, g, {mode=mode, weight=spec})
			assert(not good and message:find('linear1: linear has integer versions for affine codes with one scale for each output (axis 1), or by inputs of 8 bits with scales in blocks of 8, 16, … of them, minimums or tables of small integers (mxfp4), only', 1, true), message)
			good, message = pcall(m.quantize, m, {mode=mode, weight=spec})
			assert(not good and message:find('linear1: weight: wanted affine codes with one scale per output', 1, true), message)
		end
		assert(g:quantize{mode='weight_only', weight=spec}:run(x):error(m:quantize{mode='weight_only', weight=spec}(x)).max == 0)
	end
end)

it('scales in blocks of 8, 16, … inputs and minimums have integer sums beside inputs of 8 bits, as in m:quantize', function()
	local x = tensor.randn(16, 256)
	local m = nn.Sequential{nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 5, {bias=false})}
	m:calibrate({{x, x}}, {log=false})
	local g = graph.trace(m, x)
	for i, spec in ipairs {'int4:32', 'uint4:8', 'int8:16', 'int8:8:16', 'int2:40', 'mxint8', 'uint4:32+min', 'uint5/1+min', 'q8_0', 'q4_k', 'q6_k', 'tq2_0'} do
		local input = i % 2 == 0 and 'int8' or 'uint8'
		for _, mode in ipairs {'static', 'dynamic'} do
			local o = {mode=mode, weight=spec, input=input}
			local q, r = g:quantize(o)
			local path, falls, y = paths(q, x, 'linear')
			assert(path == 'int8' and falls == 0 and r[1].mode == mode and r[#r].mode == mode, spec)
			assert(y:error(m:quantize(o)(x)).max == 0, spec)
			assert(mode == 'dynamic' or q:node('linear1').dtype == input, spec)
			assert(g:quantize{mode=mode, weight=spec, input=input, rounding='double'}:run(x):error(y).max == 0, spec)
		end
		local good, message = pcall(g.quantize, g, {mode='dynamic', weight=spec, input='int16'})
		assert(not good and message:find('inputs of 8 bits with scales in blocks', 1, true), message)
		assert(not pcall(m.quantize, m, {mode='dynamic', weight=spec, input='int16'}), spec)
	end
	local wide = graph.trace(nn.Sequential{nn.Linear(16392, 2)}, tensor.ones(1, 16392))
	assert(not pcall(wide.quantize, wide, {mode='dynamic', weight='uint4/1+min'}), 'sums of more than 32 bits')
	assert(pcall(wide.quantize, wide, {mode='dynamic', weight='uint4:16384+min'}))
end)

it('a matrix of matmul has a scale for each column by default; a rule is taken literally', function()
	local w, x = tensor.randn(8, 5), tensor.randn(16, 8)
	local g = graph.trace(nn.module(function(_, v) return v:matmul(w) end), x)
	for _, o in ipairs {{mode='dynamic'}, {mode='dynamic', weight='int8/1'}, {mode='dynamic', weight='int4/1'}} do
		local q, r = g:quantize(o)
		print(r[1].weight:match '/.', (paths(q, x, 'matmul')))  --> /2 int8
		--> /2 int8
		--> /2 int8
	end
	print(pcall(g.quantize, g, {mode='dynamic', rules={{'matmul.*', 'int8/1'}}}))  --> false ...matmul has integer versions for ...(axis 2) only...
end)

it('counts multiplications', function()
	local g = graph.trace(nn.Linear(32, 16), tensor.randn(2, 5, 32))
	print(g:node('linear1').macs)  --> 2560
end)
