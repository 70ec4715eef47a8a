-- SPDX-License-Identifier: MIT
-- quant.methods: its numbers are those of m:quantize, its ranking, sizes, chains that cannot be done.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true) and not message:find '\n', message)
end
tensor.seed(7)
local m = nn.Sequential {nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)}
local mix = tensor.randn(4, 16)
local function batch(n)
	local x = tensor.randn(n, 4):matmul(mix) + 0.1 * tensor.randn(n, 16)
	return {x, m(x):detach()}
end
local data, test = {batch(40), batch(40), batch(40)}, {batch(100)}
local function try(list, o)
	o.data, o.log, o.weight = o.data or data, false, o.weight or 'int3:8'
	return quant.methods(m, list, o)
end

it('has the numbers of m:quantize and the metric', function()
	local r = try({'rtn', {'mse', {'gptq', act = true}}, {'int4:8', method = 'gptq'}}, {test = test, metric = 'mse'})
	assert(#r == 3)
	for method, options in pairs {rtn = {method = 'rtn'}, ['mse, gptq act'] = {method = {'mse', {'gptq', act = true}}}, ['gptq int4:8'] = {method = 'gptq', weight = 'int4:8'}} do
		options.mode, options.data, options.log, options.weight = 'weight_only', data, false, options.weight or 'int3:8'
		local q, rows = m:quantize(options)
		local row = r:where {method = method}[1]
		local value = q:evaluate(test, {metric = 'mse', log = false}).value
		assert(row.mse == value and row.drop == value - m:evaluate(test, {metric = 'mse', log = false}).value and row.bytes == q:nbytes())
		assert(row.error == rows[#rows].block and row.weight == options.weight and row.seconds >= 0 and row.peak > 0)
	end
	for i = 2, 3 do assert(r[i - 1].drop <= r[i].drop) end
	print(r[1].method, r[3].method)  --> gptq int4:8	rtn
	print(#r.layers, r:plot(), r.layers:plot())  --> 6	bar figure, 1 series	line figure, 3 series
end)
it('ranks by the error without a metric, and reads data once', function()
	local passes = 0
	local r = try({'rtn', 'gptq'}, {data = function()
		passes = passes + 1
		local i = 0
		return function()
			i = i + 1
			if data[i] then return data[i][1] end
		end
	end})
	print(passes, r[1].method, r[1].error > r[2].error)  --> 1	gptq	true
	local flattered = try({'gptq'}, {metric = 'mse'})
	local q = m:quantize {mode = 'weight_only', weight = 'int3:8', method = 'gptq', data = data, log = false}
	assert(flattered[1].mse == q:evaluate(data, {metric = 'mse', log = false}).value)
end)
it('repeats with fewer batches', function()
	local r = try({'rtn', 'gptq'}, {test = test, metric = 'mse', sizes = {1, 3}})
	assert(#r == 4 and #r.layers == 8)
	local one = m:quantize {mode = 'weight_only', weight = 'int3:8', method = 'gptq', data = data, batches = 1, log = false}
	assert(r:where {method = 'gptq', batches = 1}[1].mse == one:evaluate(test, {metric = 'mse', log = false}).value)
	print(r:plot())  --> line figure, 2 series
end)
it('says why a chain cannot be done', function()
	local r = try({'rtn', {'nf4', method = 'gptq'}}, {mode = 'dynamic', weight = 'int4:8'})
	assert(#r == 2 and r[2].why:find 'wanted affine codes' and r[2].error == nil and r[1].why == nil)
	refused('methods: quantize: ', try, {{'nf4', method = 'rtn'}}, {mode = 'dynamic'})
end)
it('refuses', function()
	refused('wanted a list of methods', try, {}, {})
	refused('wanted a list of methods', try, 'gptq', {})
	refused("did you mean 'gptq'", try, {'gtpq'}, {})
	refused('data: wanted a loader', quant.methods, m, {'rtn'}, {})
	refused('wanted a model', quant.methods, 3, {'rtn'}, {data = data})
	refused("unknown field 'bits'", try, {{'int4', method = 'rtn', bits = 3}}, {})
	refused('sizes: item 2: wanted a positive integer', try, {'rtn'}, {sizes = {1, 0}})
	refused('sizes: wanted at most 3 batches', try, {'rtn'}, {sizes = {1, 4}})
	refused('wanted it or sizes=, got both', try, {'rtn'}, {sizes = {1}, batches = 2})
	refused('metric: wanted', try, {'rtn'}, {metric = 'accurcy'})
	refused('mode: wanted', try, {'rtn'}, {mode = 'qat'})
	refused('a spec of codes', try, {'rtn'}, {weight = 'float32'})
end)
