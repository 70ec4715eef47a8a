-- SPDX-License-Identifier: MIT
-- method='seqmse': the chosen range of each row is the best of those that are tried, by tr(E H E') of the row.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(14)
local m = nn.Sequential {nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 4)}
local x = tensor.randn(200, 5):matmul(tensor.randn(5, 24)) + tensor.randn(200, 24) * 0.2
local data = {{x:narrow(1, 1, 90)}, {x:narrow(1, 91, 110)}}
local function weight() return m.linear1.weight:detach() end
local function quantize(spec, method) return m:quantize {mode = 'weight_only', weight = spec, method = method or 'seqmse', data = data, log = false} end
-- The squared error of each output.
local function errors(q) return (weight() - q:dequantize()):matmul(x:t()):to 'float64':square():sum {axis = 2} end
local function same(a, b) return a:codes():eq(b:codes()):all():item() end

it('one range: the codes of rounding', function()
	for _, spec in ipairs {'int4:8', 'int4/1', 'uint4:8+min', 'int3'} do
		assert(same(quantize(spec, {'seqmse', steps = 1}).linear1.weight, weight():quantize(spec)), spec)
	end
end)
it('one scale a row: none of the ranges is better', function()
	local got, p = errors(quantize 'int3/1'.linear1.weight), weight():quantize 'int3/1':qparams()
	local best
	for i = 0, 19 do
		local e = errors(weight():quantize {dtype = 'int3', axis = 1, scale = p.scale * (1 - i / 40)})
		best = best and best:minimum(e) or e
	end
	assert((got / best - 1):abs():max():item() < 1e-4)
	assert(got:sum():item() < 0.9 * errors(weight():quantize 'int3/1'):sum():item())
end)
it('blocks: no output is worse than by rounding, and most are better', function()
	for _, spec in ipairs {'int4:8', 'int3:16', 'uint4:8', 'uint4:8+min', 'nf4:8', 'mxfp4', 'nvfp4'} do
		local plain, got = errors(weight():quantize(spec)), errors(quantize(spec).linear1.weight)
		if spec ~= 'nvfp4' then assert(got:le(plain * 1.001):all():item(), spec) end
		assert(got:sum():item() < (spec == 'mxfp4' and 1 or 0.9) * plain:sum():item() + 1e-9, spec)
	end
end)
it('one scale a tensor; convolutions with groups', function()
	assert(errors(quantize 'int3'.linear1.weight):sum():item() < errors(weight():quantize 'int3'):sum():item())
	local c = nn.Sequential {nn.Conv2d(4, 8, 3, {groups = 2})}
	for _, spec in ipairs {'int3/1', 'int3:9', 'int3'} do
		local _, r = c:quantize {mode = 'weight_only', weight = spec, method = 'seqmse', data = {{tensor.randn(6, 4, 8, 8)}}, log = false}
		assert(r[1].error > r[1].rtn, spec)
	end
end)
it('refuses blocks along the outputs', function()
	refused("wanted blocks along the inputs, got 'int4/1:8'", quantize, 'int4/1:8')
end)
