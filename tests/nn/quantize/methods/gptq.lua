-- SPDX-License-Identifier: MIT
-- method='gptq' of m:quantize: its objective by tensors, identities, layers that it does not apply to.
tensor.seed(4)
local m = nn.Sequential {nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 8)}
local x = tensor.randn(300, 6):matmul(tensor.randn(6, 24)) + tensor.randn(300, 24) * 0.1
local data = {{x:narrow(1, 1, 100)}, {x:narrow(1, 101, 200)}}
local function quantize(model, spec, method, given)
	return model:quantize {mode = 'weight_only', weight = spec, method = method, data = given or data, log = false}
end
local function same(a, b) return a:codes():eq(b:codes()):all():item() end
local function squares(y) return y:to 'float64':square():sum():item() end

it('is better than rounding in the outputs of the layer', function()
	for _, method in ipairs {'gptq', {'gptq', act = true}, {'gptq', static = true}, {'mse', 'gptq'}} do
		local q, r = quantize(m, 'int4:8', method)
		local w = m.linear1.weight:detach()
		local loss = squares(x:matmul((w - q.linear1.weight:dequantize()):t()))
		local plain = squares(x:matmul((w - w:quantize 'int4:8':dequantize()):t()))
		assert(loss < 0.7 * plain, loss / plain)
		local signal = squares(x:matmul(w:t()))
		assert(math.abs(r[1].error - 10 * math.log(signal / loss, 10)) < 0.01 and math.abs(r[1].rtn - 10 * math.log(signal / plain, 10)) < 0.01)
	end
end)
it('is w:gptq of the moments', function()
	local q = quantize(m, 'int4:8', 'gptq')
	local d = x:to 'float64'
	local h = d:t():matmul(d)
	local u = (h + tensor.eye(24):to 'float64' * (0.01 * h:diag():mean():item())):inversefactor()
	assert(same(q.linear1.weight, m.linear1.weight:detach():gptq(u, 'int4:8')))
end)
it('finds ranges by another observer', function()
	local one, two = quantize(m, 'int4:8', {'gptq', range = 'mse'}), quantize(m, 'int4:8', {'mse', 'gptq'})
	assert(same(one.linear1.weight, two.linear1.weight) and not same(one.linear1.weight, quantize(m, 'int4:8', 'gptq').linear1.weight))
end)
it('rounds under damping without end, and where inputs are never there', function()
	assert(same(quantize(m, 'int4:8', {'gptq', damp = 1e12}).linear1.weight, m.linear1.weight:detach():quantize 'int4:8'))
	local dead = x:clone()
	dead:narrow(2, 3, 1):fill_(0)
	local q = quantize(m, 'int4:8', {'gptq', act = true}, {{dead}})
	assert(q.linear1.weight:dequantize():isfinite():all():item())
	print(q.linear1.weight:codes():narrow(2, 3, 1):eq(0):all():item())  --> true
end)
it('convolutions, with groups', function()
	local c = nn.Sequential {nn.Conv2d(4, 8, 3, {pad = 1, groups = 2}), nn.ReLU(), nn.Conv2d(8, 8, 3, {groups = 8, stride = 2, bias = false}), nn.ReLU(),
		nn.Conv2d(8, 6, {2, 3}, {dilation = {1, 1}, pad = {0, 1, 1, 0}})}
	local images = tensor.randn(20, 1, 12, 12):repeatinterleave(4, {axis = 2}) + tensor.randn(20, 4, 12, 12) * 0.1
	for _, spec in ipairs {'int3/1', 'int4:9'} do
		local q, r = quantize(c, spec, {'gptq', act = spec == 'int3/1'}, {{images}})
		assert(r[1].error > r[1].rtn + 1 and r[2].error >= r[2].rtn and r[3].error > r[3].rtn)
		local better = squares(q(images) - c(images):detach()) / squares(c:quantize {mode = 'weight_only', weight = spec}(images) - c(images):detach())
		assert(better < 0.8, better)
	end
end)
it('the same codes in every mode', function()
	local one, two = quantize(m, 'int4:8', 'gptq'), m:quantize {mode = 'dynamic', weight = 'int4:8', method = 'gptq', data = data, log = false}
	assert(same(one.linear1.weight, two.linear1.weight) and same(one.linear2.weight, two.linear2.weight))
	m:calibrate(data, {log = false})
	local q, r = m:quantize {mode = 'static', weight = 'int4/1', method = 'gptq', data = data, log = false}
	print(r[1].mode, r[1].method, q.linear1.weight:dtype())  --> static	gptq	int4
end)
it('recurrent layers, by x and by h before each step', function()
	for _, o in ipairs {{kind = 'LSTM'}, {kind = 'GRU'}, {kind = 'RNN', batchfirst = false}, {kind = 'LSTM', reverse = true}} do
		local net = nn[o.kind](12, 16, {batchfirst = o.batchfirst, reverse = o.reverse})
		local s = tensor.randn(9, 7, 12)
		local q, r = quantize(net, 'int4/1', 'gptq', {{s}})
		local axis = o.batchfirst == false and 1 or 2
		local y = (net(s)):detach()
		local none = tensor.zeros(axis == 1 and 7 or 9, 16):unsqueeze(axis)
		local before = o.reverse and tensor.cat({y:narrow(axis, 2, y:size(axis) - 1), none}, axis) or tensor.cat({none, y:narrow(axis, 1, y:size(axis) - 1)}, axis)
		for field, rows in pairs {weight_ih1 = s:reshape(63, 12), weight_hh1 = before:reshape(63, 16)} do
			local d = rows:to 'float64'
			local h = d:t():matmul(d)
			local u = (h + tensor.eye(h:size(1)):to 'float64' * (0.01 * h:diag():mean():item())):inversefactor()
			local off = q[field]:codes():to 'int32' - net[field]:detach():gptq(u, 'int4/1'):codes():to 'int32'
			assert(off:ne(0):to 'float32':mean():item() < 0.02, o.kind .. ' ' .. field .. ' ' .. off:ne(0):to 'float32':mean():item()) -- sums of products in another order
		end
		assert(r[1].error > r[1].rtn and r[1].why == '')
	end
	local net = nn.Sequential {nn.Embedding(20, 16), nn.GRU(16, 16, {layers = 2, bidirectional = true, resetafter = false}), nn.Linear(32, 20)}
	local _, r = quantize(net, 'int4/1', 'gptq', {{tensor.randint {4, 9, low = 1, high = 20}}})
	print(r[2].why:find('so it is rounded', 1, true) ~= nil, r[2].error >= r[2].rtn)  --> true	true
end)
it('layers without columns are rounded', function()
	local t = nn.Transformer {vocab = 20, d = 16, layers = 1, heads = 2, context = 12}
	local _, r = quantize(t, 'int4:8', 'gptq', {{tensor.randint {4, 12, low = 1, high = 20}}})
	for _, row in ipairs(r) do
		if row.kind == 'Embedding' then print(row.why:find('so it is rounded', 1, true) ~= nil) end  --> true
	end
end)
