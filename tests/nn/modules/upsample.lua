-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.Upsample: x:resize by the names of PyTorch; tests/tensor/ops/resize.lua has the values.
local x = tensor.randn(2, 3, 4, 5)
print(nn.Upsample(7)(x):size())  --> 2 3 7 7
print(nn.Upsample({8, 3}, {mode='bilinear', aligncorners=true}))  --> Upsample({8,3}, mode=bilinear, aligncorners=true)  0 parameters
print(nn.Upsample(nil, 1.5, 'bicubic')(x):size())  --> 2 3 6 7
assert(nn.Upsample {scale=2}(x):eq(x:resize {size={8, 10}, mode='nearest'}):all():item())
assert(nn.Upsample({6, 9}, nil, 'bicubic', true)(x):eq(x:resize {size={6, 9}, mode='bicubic', coords='align_corners'}):all():item())
assert(nn.Upsample({6, 9}, {mode='nearest-exact'})(x):eq(x:resize {size={6, 9}, mode='nearest', coords='half_pixel', rounding='round_prefer_ceil'}):all():item())
assert(nn.Upsample(9, {mode='linear'})(x[1]):eq(x[1]:unsqueeze(3):resize {size={1, 9}}:squeeze(3)):all():item())
assert(nn.Upsample {scale=2}(x[1]):eq(x[1]:unsqueeze(3):resize {size={1, 10}, mode='nearest'}:squeeze(3)):all():item())

it('codes stay codes to the nearest, in modules and graphs', function()
	tensor.seed(4)
	local m = nn.Sequential {nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.Upsample {scale=2}, nn.Conv2d(4, 2, 3)}
	m:calibrate({{x, x}}, {log=false})
	local o = {mode='static', weight='int8/1', input='uint8'}
	local q, g = m:quantize(o), graph.trace(m, x):calibrate({{x, x}}, {log=false}):quantize(o)
	quant.log 'reset'
	local y = q(x)
	local row = quant.log():where {op='resize'}[1]
	assert(row.path == 'integer' and #quant.log():where {path='fallback'} == 0 and g:run(x, {check=true}):eq(y):all():item())
	local n = nn.Sequential {nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.Upsample {scale=2, mode='bilinear'}, nn.Conv2d(4, 2, 3)}
	n:calibrate({{x, x}}, {log=false})
	assert(graph.trace(n, x):calibrate({{x, x}}, {log=false}):quantize(o):run(x, {check=true}):eq(n:quantize(o)(x)):all():item())
	assert(n:quantize(o)(x):error(n(x):detach()).sqnr > 30)
end)

local function refused(pattern, ...)
	local ok, message = pcall(nn.Upsample, ...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('Upsample: wanted size or scale, got none of them')
refused('Upsample: wanted size or scale, got both', 4, 2)
refused("Upsample: mode: wanted nearest, nearest-exact, bilinear, bicubic or area, got 'lanczos'", 4, nil, 'lanczos')
refused('Upsample: aligncorners: wanted mode bilinear or bicubic, got nearest', {scale=2, aligncorners=true})
