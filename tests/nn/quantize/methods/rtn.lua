-- SPDX-License-Identifier: MIT
-- method='rtn' of m:quantize, and what the report of a method says, against the same by tensors.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
local function db(signal, noise) return 10 * math.log(signal:to 'float64':square():sum():item() / noise:to 'float64':square():sum():item(), 10) end
tensor.seed(3)
local m = nn.Sequential {nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)}
local x = tensor.randn(40, 16)
local batches = {{x:narrow(1, 1, 20)}, {x:narrow(1, 21, 20)}}

it('codes are those of rounding', function()
	local plain = m:quantize {mode = 'weight_only', weight = 'int4:8'}
	for _, data in ipairs {batches, false} do
		local q, r = m:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = data or nil, log = false}
		for i = 1, 3 do assert(q['linear' .. i].weight:codes():eq(plain['linear' .. i].weight:codes()):all():item()) end
		assert(#r == 3 and r[1].method == 'rtn' and r[1].why == (data and '' or 'not judged on data'))
	end
end)
it('says the errors of layers and blocks', function()
	local q, r = m:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = batches, log = false}
	local f = tensor.nograd(function()
		local y, z, rows = x, x, {} -- float, and behind quantized layers
		for i = 1, 3 do
			local layer, coded = m['linear' .. i], q['linear' .. i]
			local w, c = layer.weight:detach(), coded.weight:dequantize()
			rows[i] = {error = db(z:matmul(w:t()), z:matmul((w - c):t()))}
			y, z = y:linear(w, layer.bias), z:linear(c, layer.bias)
			rows[i].block = db(y, z - y)
			if i < 3 then y, z = y:relu(), z:relu() end
		end
		return rows
	end)
	for i = 1, 3 do
		assert(math.abs(r[i].error - f[i].error) < 1e-3 and r[i].rtn == r[i].error, r[i].error .. ' ' .. f[i].error)
		assert(i < 3 or math.abs(r[i].block - f[i].block) < 1e-3)
		assert(r[i].seconds >= 0)
	end
	assert(math.abs(r[3].block - db(m(x):detach(), q(x) - m(x):detach())) < 0.01)
end)
it('float inputs for every block', function()
	local _, r = m:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = batches, sequential = false, log = false}
	local y = tensor.nograd(function() return m[1](x):relu() end)
	local w = m.linear2.weight:detach()
	assert(math.abs(r[2].error - db(y:matmul(w:t()), y:matmul((w - w:quantize 'int4:8':dequantize()):t()))) < 1e-3)
end)
it('batches of other sizes, several inputs, and models that cannot be traced', function()
	local _, r = m:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = {{x:narrow(1, 1, 3)}, {x}}, log = false}
	assert(#r == 3 and r[1].block < 60)
	local two = nn.module(function(self, p) return self.a(p[1]) + self.b(p[2]) end, {a = nn.Linear(8, 8), b = nn.Linear(8, 8)})
	local p, s = tensor.randn(5, 8), tensor.randn(5, 8)
	local q
	q, r = two:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = {{{p, s}}}, log = false}
	assert(math.abs(r[1].block - db(two {p, s}:detach(), q {p, s} - two {p, s}:detach())) < 0.01)
	local lua = nn.module(function(self, y)
		if y:sum():item() > 1e9 then return y end
		return self.b(self.a(y):relu())
	end, {a = nn.Linear(8, 8), b = nn.Linear(8, 8)})
	q, r = lua:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = {{p}}, log = false}
	assert(math.abs(r[2].block - db(lua(p):detach(), q(p) - lua(p):detach())) < 0.01)
end)
it('refuses', function()
	refused("wanted one of", m.quantize, m, {method = 'gtpq'})
	refused("did you mean 'gptq'", m.quantize, m, {method = 'gtpq'})
	refused("wanted data= for", m.quantize, m, {mode = 'weight_only', method = 'awq'})
	refused("unknown option 'clp'", m.quantize, m, {mode = 'weight_only', method = {'awq', clp = true}})
	refused("wanted 'awq' before 'gptq', which decides codes", m.quantize, m, {mode = 'weight_only', method = {'gptq', 'awq'}})
	refused('wanted one method that decides codes', m.quantize, m, {mode = 'weight_only', method = {'gptq', 'rtn'}})
	refused('wanted a mode without training', m.quantize, m, {mode = 'qat', method = 'rtn'})
	refused('wanted method= with it', m.quantize, m, {mode = 'weight_only', data = batches})
	refused('wanted at least one batch', m.quantize, m, {mode = 'weight_only', method = 'rtn', data = function() return function() end end})
	refused('wanted a name', m.quantize, m, {mode = 'weight_only', method = 3})
end)
it('rules choose methods', function()
	local q, r = m:quantize {mode = 'weight_only', weight = 'int4:8', data = batches, log = false,
		rules = {{'linear2', method = 'mse'}, {'linear3', 'int8/1'}}}
	print(r[1].method, r[2].method, r[3].method)  --> -	mse rtn	-
	assert(q.linear2.weight:codes():eq(m.linear2.weight:quantize 'int4:8@mse':codes()):all():item())
end)
it('weights of convolutions and shared ones', function()
	local c = nn.Sequential {nn.Conv2d(3, 8, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups = 4, stride = 2}), nn.Flatten(), nn.Linear(8 * 9, 5)}
	local images = tensor.randn(6, 3, 8, 8)
	for _, spec in ipairs {'int4/1', 'int4:8', 'uint4/1', 'int8'} do
		local plain = c:quantize {mode = 'weight_only', weight = spec}
		local q, r = c:quantize {mode = 'weight_only', weight = spec, method = 'rtn', data = {{images}}, log = false}
		assert(q(images):sub(plain(images)):abs():max():item() == 0, spec)
		local w = c.conv1.weight:detach()
		local e = w - (spec:find ':' and w:view(8, 27):quantize(spec):dequantize():view(8, 3, 3, 3) or w:quantize(spec):dequantize())
		assert(math.abs(r[1].error - db(images:conv2d(w, {pad = 1}), images:conv2d(e, {pad = 1}))) < 1e-3, spec)
	end
	local t = nn.Transformer {vocab = 20, d = 16, layers = 1, heads = 2, context = 8}
	local ids = tensor.randint {2, 8, low = 1, high = 20}
	local apart = t:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = {{ids}}, log = false}
	local once, r = t:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn', data = {{ids}}, shared = 'once', log = false}
	if rawequal(t.head.weight, t.embedding.weight) then
		assert(once:nbytes() < apart:nbytes())
		for _, row in ipairs(r) do assert(row.name ~= 'head' or row.why:find "its codes are those of 'embedding'") end
	end
end)
