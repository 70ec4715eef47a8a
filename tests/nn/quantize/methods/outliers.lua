-- SPDX-License-Identifier: MIT
-- method='outliers': columns with large inputs stay float, the others have codes; both are computed by the formula.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(15)
local m = nn.Sequential {nn.RMSNorm(32), nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 24), nn.Sigmoid(), nn.Linear(24, 4)}
tensor.nograd(function() -- channels whose inputs are large, of the usual weight in the result
	for channel, factor in pairs {[5] = 64, [20] = 30} do
		m[1].weight:narrow(1, channel, 1):mul_(factor)
		m[2].weight:narrow(2, channel, 1):div_(factor)
	end
end)
local x = tensor.randn(200, 32)
local data = {{x:narrow(1, 1, 80)}, {x:narrow(1, 81, 120)}}
local function quantize(mode, method, o)
	o = o or {}
	return m:quantize {mode = mode, weight = o.weight, method = method, data = method and data, log = false}
end
local function off(q) return m(x):detach():error(q(x)).sqnr end

it('chooses columns by the threshold', function()
	local q, r = quantize('dynamic', 'outliers')
	assert(table.concat(q[2].outliers:totable(), ' ') == '5 20' and not q.linear2.outliers)
	print(r[2].why)  --> 2 of 32 columns float
	local largest, wanted = m[1](x):detach():abs():max {axis = 1}:totable(), {}
	for i, value in ipairs(largest) do
		if value >= 2.5 then wanted[#wanted + 1] = i end
	end
	q = quantize('dynamic', {'outliers', threshold = 2.5})
	assert(table.concat(q[2].outliers:totable(), ' ') == table.concat(wanted, ' ') and #wanted > 4)
	q, r = quantize('dynamic', {'outliers', threshold = 2.5, most = 0.05})
	assert(q[2].outliers:size(1) == 1 and q[2].outliers:totable()[1] == 5 and r[2].why:find('1 of 32 columns float, of %d+ outliers'))
end)
it('is the sum of both parts', function()
	local q = quantize('dynamic', 'outliers')
	local inner, w = m[1](x):detach(), m[2].weight:detach()
	local rest = inner:clone()
	for _, channel in ipairs {5, 20} do rest:narrow(2, channel, 1):fill_(0) end
	local y = rest:quantize('uint8'):dequantize():matmul(q[2].weight:dequantize():t()) + m[2].bias:detach()
	for _, channel in ipairs {5, 20} do y = y + inner:narrow(2, channel, 1):matmul(w:narrow(2, channel, 1):t()) end
	assert(q[2](q[1](x)):error(y:relu()).max < 1e-4)
end)
it('outliers no longer count', function()
	for _, weight in ipairs {'int8/1', 'int4:32'} do
		for _, mode in ipairs {'dynamic', 'weight_only'} do
			local q, r = quantize(mode, 'outliers', {weight = weight})
			local plain, r2 = quantize(mode, nil, {weight = weight})
			assert(off(q) > off(plain) + (weight == 'int8/1' and mode == 'dynamic' and 10 or 0), ('%s %s %g %g'):format(weight, mode, off(q), off(plain)))
			assert(r[2].bits > r2[2].bits and r[2].bytes == r2[2].bytes + 2 * 48 * 4 + 2 * 4)
		end
	end
end)
it('with gptq, which leaves the float columns alone', function()
	local q, r = quantize('weight_only', {'outliers', {'gptq', act = true}}, {weight = 'int4:32'})
	assert(off(q) > off(quantize('weight_only', 'outliers', {weight = 'int4:32'})) + 3)
	assert(r[2].error > r[2].rtn)
	assert(q[2].weight:dequantize():narrow(2, 5, 1):abs():max():item() == 0)
end)
it('is saved, loaded, traced, decoded, exported', function()
	for _, mode in ipairs {'dynamic', 'weight_only'} do
		local q = quantize(mode, 'outliers')
		local y, file = q(x), os.tmpname() .. '.safetensors'
		q:save(file)
		local copy = q:clone()
		copy[2].floats:fill_(0)
		assert(copy(x):error(y).max > 0)
		copy:load(file)
		assert(copy(x):error(y).max == 0)
		local g = graph.trace(q, x:narrow(1, 1, 1))
		assert(g:run(x):error(y).max == 0)
		local d = q:dequantize()
		assert(not d[2].outliers and d[2].weight:narrow(2, 5, 1):error(m[2].weight:narrow(2, 5, 1)).max == 0)
		assert(d(x):error(y).sqnr > 25 and d:quantize {mode = mode}[2].weight:quantized())
	end
	print(tostring(quantize('dynamic', 'outliers')[2]):match '^[^)]*.')  --> Linear(32, 48, act=relu, 2 float columns)
end)
it('is kept with finished blocks, and joins other methods', function()
	local file, all = os.tmpname() .. '.run', {}
	for i = 1, 2 do
		all[i] = m:quantize {mode = 'dynamic', method = 'outliers', data = data, file = file, log = false}
	end
	assert(all[1](x):error(all[2](x)).max == 0 and #all[1]:parameters() == #all[2]:parameters() and all[2][2].outliers:size(1) == 2)
	for _, chain in ipairs {{'awq', 'outliers', 'biascorrect'}, {'outliers', {'autoround', steps = 5}}} do
		local q = quantize('weight_only', chain, {weight = 'int4:32'})
		assert(off(q) >= off(quantize('weight_only', nil, {weight = 'int4:32'})) - 0.5, chain[1])
	end
end)
it('in a language model that generates', function()
	local t = nn.Transformer {vocab = 20, d = 32, layers = 1, heads = 2, context = 12, norm = 'rmsnorm', act = 'swiglu'}
	tensor.nograd(function() t[1].norm1.weight:narrow(1, 3, 1):mul_(20) end)
	local ids = tensor.randint {6, 12, low = 1, high = 20}
	local q = t:quantize {mode = 'dynamic', method = 'outliers', data = {{ids}}, log = false}
	assert(q[1].attention.query.outliers:totable()[1] == 3 and t(ids):detach():error(q(ids)).sqnr > 25)
	local g = q:generate(ids:narrow(1, 1, 1):narrow(2, 1, 3), {steps = 5})
	assert(g:nelem() == 8 or g:nelem() == 5, g:nelem())
end)
it('refuses what has no float columns', function()
	refused("method 'outliers': linear1: wanted mode 'dynamic' or 'weight_only', got 'static'", function()
		m:clone():calibrate(data, {log = false}):quantize {mode = 'static', method = 'outliers', data = data, log = false}
	end)
	refused("method 'outliers': conv1: wanted nn.Linear, got Conv2d, which has no float columns", function()
		nn.Sequential {{'conv1', nn.Conv2d(2, 3, 3)}}:quantize {mode = 'weight_only', method = 'outliers', data = {{tensor.randn(1, 2, 5, 5)}}, log = false}
	end)
	refused('wanted threshold= of at least 0, got -1', quantize, 'dynamic', {'outliers', threshold = -1})
	refused('wanted most= of 0 to 1, got 2', quantize, 'dynamic', {'outliers', most = 2})
end)
