-- SPDX-License-Identifier: MIT
-- method='imatrix': the weighted error of each group is the least of those that are tried, and less than that of rounding.
tensor.seed(13)
local m = nn.Sequential {nn.Linear(48, 20), nn.ReLU(), nn.Linear(20, 8)}
local x = tensor.randn(120, 48) * (tensor.randn(48) * 1.5):exp()
local data = {{x:narrow(1, 1, 50)}, {x:narrow(1, 51, 70)}}
local square = x:square():mean {axis = 1}
local function weight() return m.linear1.weight:detach() end
local function quantize(spec, method) return m:quantize {mode = 'weight_only', weight = spec, method = method or 'imatrix', data = data, log = false} end

-- The weighted error of each block of 16 in each row.
local function errors(q) return ((weight() - q:dequantize()):square() * square):view(20, 3, 16):sum {axis = 3} end

it('is the best of all multiples of the scale', function()
	for _, spec in ipairs {'int4:16', 'int3:16', 'uint4:16', 'nf4:16'} do
		local plain = weight():quantize(spec)
		local p, got = plain:qparams(), errors(quantize(spec).linear1.weight)
		assert(got:le(errors(plain) * 1.0001):all():item() and got:sum():item() < 0.9 * errors(plain):sum():item(), spec)
		for r = 1.2, 0.3, -0.02 do
			local s = (p.scale:to 'float32' * r):to(p.scale:dtype())
			local o = spec == 'nf4:16' and {dtype = 'nf4'} or {dtype = spec:match '^u?int%d', zero_point = p.zero_point}
			o.block, o.scale = 16, s
			assert(got:le(errors(weight():quantize(o)) * 1.0001 + 1e-9):all():item(), ('%s %g'):format(spec, r))
		end
	end
end)
it('finds minimums', function()
	local plain, got = errors(weight():quantize 'uint3:16+min'), errors(quantize 'uint3:16+min'.linear1.weight)
	assert(got:le(plain * 1.0001):all():item() and got:sum():item() < 0.8 * plain:sum():item())
end)
it('one scale a row, a tensor; formats with coded scales', function()
	for _, spec in ipairs {'int4/1', 'int4', 'mxfp4', 'nvfp4', 'uint4/1', 'int4/2'} do
		local plain, got = errors(weight():quantize(spec)):sum():item(), errors(quantize(spec).linear1.weight):sum():item()
		assert(got <= plain, spec)
		if spec:find '^int4' then assert(got < plain, spec) end
	end
end)
it("formats of GGUF get the mean squares as importance=", function()
	local one = nn.Sequential {nn.Linear(64, 20)}
	local y = tensor.randn(80, 64) * tensor.randn(64):exp()
	local q = one:quantize {mode = 'weight_only', weight = 'q4_0', method = 'imatrix', data = {{y}}, log = false}
	local w = y:square():mean {axis = 1}
	local same = one.linear1.weight:detach():quantize {dtype = 'q4_0', importance = w}
	print(q.linear1.weight:codes():eq(same:codes()):to 'float32':mean():item() > 0.99)  --> true
	q = one:quantize {mode = 'weight_only', weight = 'q4_0', method = {'imatrix', 'gptq'}, data = {{y}}, log = false}
	print(q.linear1.weight:spec())  --> q4_0
end)
it('layers that read the same input, groups of convolutions, and weights without columns', function()
	local t = nn.Transformer {vocab = 20, d = 32, layers = 1, heads = 2, context = 12}
	local _, r = t:quantize {mode = 'weight_only', weight = 'int4:16', method = 'imatrix', data = {{tensor.randint {4, 12, low = 1, high = 20}}}, log = false}
	for _, row in ipairs(r) do
		if row.name:find 'attention.key' then assert(row.error > row.rtn) end
		if row.kind == 'Embedding' then print(row.why:find('equal weights', 1, true) ~= nil, row.error > row.rtn) end  --> true	true
	end
	local c = nn.Sequential {nn.Conv2d(4, 8, 3, {groups = 2})}
	_, r = c:quantize {mode = 'weight_only', weight = 'int4/1', method = 'imatrix', data = {{tensor.randn(6, 4, 8, 8)}}, log = false}
	assert(r[1].error >= r[1].rtn)
end)
