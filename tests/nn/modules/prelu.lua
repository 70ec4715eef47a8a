-- SPDX-License-Identifier: MIT
-- nn.PReLU: the weight is trained, saved, printed; in graphs and quantized models.
tensor.seed(9)
local x = tensor.randn(4, 3, 5, 5)
local m = nn.PReLU(3)
print(m, nn.PReLU(), nn.PReLU(2, 0.5).weight:detach())  --> PReLU(3)...PReLU(1)...float32(2) 0.5000 0.5000
assert(m(x):eq(x:leakyrelu(0.25)):all():item())
m.weight:detach():copy_(tensor{0.1, 0, -2})
assert(m(x):eq(tensor.where(x:gt(0), x, x * tensor{0.1, 0, -2}:view(3, 1, 1))):all():item())
assert(nn.PReLU(1, 0.1)(x):eq(x:leakyrelu(0.1)):all():item())

it('learns', function() -- the slope of |x| is -1
	local p = nn.PReLU(3)
	local o = optim.sgd(p, 0.5)
	for _ = 1, 60 do
		o:zero()
		local loss = nn.mse(p(x), x:abs())
		loss:backward()
		o:step()
	end
	for _, v in ipairs(p.weight:detach():totable()) do assert(math.abs(v + 1) < 1e-3, v) end
end)

it('files, graphs, quantization', function()
	local whole = nn.Sequential {nn.Conv2d(3, 4, 3), nn.PReLU(4), nn.Flatten(), nn.Linear(36, 2)}:eval()
	whole.prelu1.weight:detach():copy_(tensor{0.1, -0.5, 2, 0.25})
	local file = os.tmpname() .. '.safetensors'
	whole:save(file)
	local other = nn.Sequential {nn.Conv2d(3, 4, 3), nn.PReLU(4), nn.Flatten(), nn.Linear(36, 2)}:eval():load(file)
	os.remove(file)
	assert(other(x):error(whole(x)).max == 0)
	local g = graph.trace(whole, x)
	assert(g:run(x):error(whole(x)).max == 0)
	whole:calibrate({{x, x}}, {log=false})
	local q = whole:quantize {mode='static'}
	assert(q(x):error(whole(x)).sqnr > 20 and q(x):error(graph.trace(whole, x):quantize {mode='static'}:run(x)).max == 0)
end)

print(pcall(nn.PReLU, 0))  --> false ...PReLU: channels: wanted an integer of at least 1, got 0
print(pcall(nn.PReLU, 2, 'a'))  --> false ...PReLU: init: wanted number, got 'a'
print(pcall(m, tensor.ones(2, 4)))  --> false ...prelu: slope: wanted 4 numbers, one for each channel along axis 2 of (2, 4), got 3
