-- SPDX-License-Identifier: MIT
-- Exported C with codes of every packed width: weights as streams of bits in rows of no whole group, with and without zero
-- points, decoded and in integer products; activations of as many bits. float8 is refused.
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

it('float8 is refused', function()
	local q = exported.quantized(mlp, line, {mode='weight_only', weight='float8_e4m3'})
	exported.refused('got float8_e4m3', q.export, q, {dir=exported.new_folder(), name='net'})
end)
