-- SPDX-License-Identifier: MIT
-- method='equalize': the codes are those of the equalized model; it is left out where it does not help, and says what it needs.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(16)
local m = nn.Sequential {nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)}
tensor.nograd(function() -- channels of very different sizes, of the same weight in the result
	for i = 1, 24 do
		local factor = 10 ^ ((i % 5) - 2)
		m[1].weight[i]:mul_(factor)
		m[1].bias[i]:mul_(factor)
		m[3].weight:narrow(2, i, 1):div_(factor)
	end
end)
local x = tensor.randn(64, 16)
local data = {{x:narrow(1, 1, 30)}, {x:narrow(1, 31, 34)}}
local function quantize(o)
	o.log = false
	return m:quantize(o)
end
local function off(q) return m(x):detach():error(q(x)).sqnr end
local function same(a, b) return a:codes():eq(b:codes()):all():item() end

it('has the codes of m:equalize', function()
	local wanted = m:equalize():quantize {mode = 'weight_only', weight = 'int8'}
	for _, d in ipairs {data, false} do
		local q, r = quantize {mode = 'weight_only', weight = 'int8', method = 'equalize', data = d or nil}
		for i = 1, 3 do assert(same(q['linear' .. i].weight, wanted['linear' .. i].weight)) end
		assert(r[1].method == 'equalize rtn' and off(q) > off(m:quantize {mode = 'weight_only', weight = 'int8'}) + 6)
	end
end)
it('before other methods', function()
	local q, r = quantize {mode = 'weight_only', weight = 'int4/1', method = {'equalize', 'gptq', 'biascorrect'}, data = data}
	print(r[1].method)  --> equalize gptq biascorrect
	assert(off(q) > off(m:quantize {mode = 'weight_only', weight = 'int4/1'}))
end)
it('observes ranges again', function()
	m:calibrate(data, {log = false})
	local plain = m:quantize {mode = 'static', weight = 'int8'}
	local q = quantize {mode = 'static', weight = 'int8', method = 'equalize', data = data}
	assert(q.linear2.quantized.mode == 'static' and off(q) > off(plain) + 6)
	refused("quantize: method: wanted data= to observe the ranges of inputs again, which 'equalize' changes, got none", quantize,
		{mode = 'static', weight = 'int8', method = 'equalize'})
	assert(off(quantize {mode = 'dynamic', weight = 'int8', method = 'equalize'}) > off(quantize {mode = 'dynamic', weight = 'int8'}) + 3)
end)
it('is left out of a model that it makes worse', function()
	local t = nn.Sequential {nn.Linear(4, 4, false), nn.ReLU(), nn.Linear(4, 4, false)}
	tensor.nograd(function() -- both are codes of int4 already
		for i = 1, 4 do
			t[1].weight[i]:copy_(tensor {7, -7, 3, 1} * 2.0 ^ (i % 2))
			t[3].weight[i]:copy_(tensor {7, 5, -2, 1})
		end
	end)
	local y = tensor.randn(20, 4)
	local q, r = t:quantize {mode = 'weight_only', weight = 'int4/1', method = 'equalize', data = {{y}}, log = false}
	print(r[1].why)  --> methods of the whole model made it worse: left out
	assert(q(y):error(t(y):detach()).max < 1e-4)
end)
it('says that there is nothing to equalize, and what has become of the options', function()
	local one = nn.Sequential {nn.Linear(4, 4)}
	local _, r = one:quantize {mode = 'weight_only', method = 'equalize'}
	print(r[1].why)  --> nothing to equalize: no layers that follow each other; not judged on data
	refused("quantize: equalize: wanted m:quantize{method='equalize'}, got the option of an earlier version", m.quantize, m, {equalize = true})
	refused("quantize: biascorrect: wanted m:quantize{method='biascorrect', data=…}, got", m.quantize, m, {biascorrect = data})
	refused("quantize: method: wanted 'equalize' before 'gptq'", m.quantize, m, {method = {'gptq', 'equalize'}, data = data})
	refused("quantize: method: wanted a mode without training, got 'qat'", m.quantize, m, {mode = 'qat', method = 'equalize'})
end)
