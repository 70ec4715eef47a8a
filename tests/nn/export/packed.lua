-- SPDX-License-Identifier: MIT
-- Exported C with codes of every packed width: weights as streams of bits in rows of no whole group, with and without zero
-- points, decoded and in integer products; activations of as many bits. Weights in floats of 16 and 8 bits.
-- labels: once
local exported = dofile 'tests/tools/exported.lua'

tensor.seed(3)
local image, line = tensor.randn(5, 3, 6, 6), tensor.randn(4, 13)
local conv = nn.Sequential {nn.Conv2d(3, 5, 3, {pad=1}), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.Flatten(), nn.Linear(64, 7)}
local mlp = nn.Sequential {nn.Linear(13, 11), nn.ReLU(), nn.Linear(11, 3)}

for _, name in ipairs(quant.dtype()) do
	local d = quant.dtype(name)
	if d.bits < 8 then
		it(name .. ' in integer products', function()
			exported.skip()
			exported.check('static', exported.quantized(conv, image, {mode='static', weight=name .. '/1', rounding='single'}), image)
			exported.check('dynamic', exported.quantized(mlp, line, {mode='dynamic', weight=name, input='int8'}), line)
			if d.kind ~= 'binary' then
				exported.check('activations', exported.quantized(mlp, line, {mode='static', weight='int8/1', input=name}), line)
			end
		end)
		it(name .. ' decoded', function()
			exported.skip()
			for _, grain in ipairs {'/1', ':5'} do
				exported.check('decoded' .. grain, exported.quantized(conv, image, {mode='weight_only', weight=name .. grain}), image)
			end
		end)
	end
end

-- Every number of 16 and 8 bits: subnormal ones, infinities, NaN.
local function all_floats(dtype)
	local list = {}
	for e = -26, 17 do
		for _, m in ipairs {1, 1.125, 1.25, 1.5, 1.99} do
			list[#list + 1], list[#list + 2] = m * 2.0 ^ e, -m * 2.0 ^ e
		end
	end
	for _, x in ipairs {0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1e-38, 1e-40, 3e38} do list[#list + 1] = x end
	return tensor(list):to(dtype)
end

for _, name in ipairs(quant.dtype()) do
	local d = quant.dtype(name)
	if d.float and d.bits < 32 and name ~= 'float8_e8m0' then -- that one is for scales
		it(name .. ' weights', function()
			exported.skip()
			exported.check('convolutions', exported.quantized(conv, image, {mode='weight_only', weight=name}), image)
			exported.check('linear', exported.quantized(mlp, line, {mode='weight_only', weight=name}), line)
			exported.check('lstm', exported.quantized(nn.Sequential {nn.LSTM(5, 3)}, tensor.randn(2, 4, 5), {mode='weight_only', weight=name}), tensor.randn(2, 4, 5))
			local all = all_floats(name)
			local m = nn.Sequential {nn.Linear(1, all:nelem(), {bias=false})}
			tensor.nograd(function() m:parameters()[1]:copy_(all:to 'float32':view(all:nelem(), 1)) end)
			exported.check('all', exported.quantized(m, tensor {{1}, {-0.5}}, {mode='weight_only', weight=name}), tensor {{1}, {-0.5}})
		end)
	end
end
