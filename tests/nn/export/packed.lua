-- SPDX-License-Identifier: MIT
-- Exported C with codes of every packed width: weights as streams of bits in rows of no whole group, with and without zero
-- points, decoded and in integer products; activations of as many bits. Weights in floats of 16 and 8 bits.
-- labels: full
local exported = dofile 'tests/tools/exported.lua'
exported.skip()

tensor.seed(3)
local image, line = tensor.randn(5, 3, 6, 6), tensor.randn(4, 13)
local conv = nn.Sequential {nn.Conv2d(3, 5, 3, {pad=1}), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.Flatten(), nn.Linear(64, 7)}
local mlp = nn.Sequential {nn.Linear(13, 11), nn.ReLU(), nn.Linear(11, 3)}

local cases = {}
local function add(name, model, x, options)
	cases[#cases + 1] = {name=name, x=x, graph=function() return exported.quantized(model, x, options) end, single=options.mode == 'dynamic'}
end
for _, name in ipairs(quant.dtype()) do
	local d = quant.dtype(name)
	if d.bits < 8 then
		add(name .. ' in integer products', conv, image, {mode='static', weight=name .. '/1', rounding='single'})
		add(name .. ' in integer products, ranges found', mlp, line, {mode='dynamic', weight=name, input='int8'})
		if d.kind ~= 'binary' then add(name .. ' of activations', mlp, line, {mode='static', weight='int8/1', input=name}) end
		for _, grain in ipairs {'/1', ':5'} do add(name .. grain .. ' decoded', conv, image, {mode='weight_only', weight=name .. grain}) end
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
		add(name .. ' of convolutions', conv, image, {mode='weight_only', weight=name})
		add(name .. ' of linear layers', mlp, line, {mode='weight_only', weight=name})
		add(name .. ' of an LSTM', nn.Sequential {nn.LSTM(5, 3)}, tensor.randn(2, 4, 5), {mode='weight_only', weight=name})
		local all = all_floats(name)
		local m = nn.Sequential {nn.Linear(1, all:nelem(), {bias=false})}
		tensor.nograd(function() m:parameters()[1]:copy_(all:to 'float32':view(all:nelem(), 1)) end)
		add(name .. ', all numbers', m, tensor {{1}, {-0.5}}, {mode='weight_only', weight=name})
	end
end
exported.together(cases, {compilers={'cc -O2'}, alone=true})
