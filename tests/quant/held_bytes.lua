-- SPDX-License-Identifier: MIT
-- labels: quick host once
-- The bytes that a weight of every format holds after products with floats and with int8 codes, in four orders: those of its codes and
-- scales, and less than a tenth more; of recurrent layers; and of modules of every kind.
local sanitizers = dofile 'tests/tools/sanitizers.lua'
tensor.seed(41)
local formats = {'int8', 'uint8', 'int8/1', 'uint8/2', 'int16', 'uint16/1', 'binary', 'int4', 'uint4:8', 'int4:32', 'int4:128', 'int8:32', 'uint8:16',
	'int4/1:8', 'int8:32+min', 'int2:16', 'int3:32', 'uint5/1', 'int6:64', 'nf4', 'af4:64', 'nf4:64:256', 'kmeans4', 'fp8_e4m3', 'fp8_e5m2', 'fp6_e2m3:32', 'fp4_e2m1:16',
	'mxfp8_e4m3', 'mxfp6_e3m2', 'mxfp4', 'mxint8', 'nvfp4', 'ternary', 'dynamic8', {dtype = 'int8', scheme = 'log'}, {dtype = 'int8', scheme = 'asymmetric', axis = 1}}

local function now()
	collectgarbage() collectgarbage()
	return tensor.memory().now
end
local function name_of(spec) return tostring(quant.spec(spec)) end
for _, f in ipairs(quant.formats()) do formats[#formats + 1] = f.name or f end

for i, spec in ipairs(formats) do
	if not sanitizers.left_out(i, 4) then it('codes are held once: ' .. name_of(spec), function()
		local w, x = tensor.randn(512, 1024), tensor.randn(3, 1024)
		local codes = x:quantize 'int8'
		for _, order in ipairs {{x}, {codes}, {x, codes}, {codes, x}} do
			local first = now()
			local q = w:quantize(spec)
			local held = now() - first
			for _ = 1, 4 do
				for _, a in ipairs(order) do a:linear(q) end
			end
			for _ = 1, 4 do order[1]:linear(q) end
			assert(now() - first < 1.1 * held, (now() - first) / held)
		end
	end) end
end

-- Modules of every kind in every mode that takes the format, after calls with batches of 32 and 1. What may come on top of a tenth, for
-- small weights: 128 bytes that describe strips in the place of codes, of each of at most two weights.
local HEADS = 2 * 128
local function ids(n) return tensor.randint {n, 4, low=1, high=200} end
local kinds = {
	{'Linear', function() return nn.Linear(64, 96) end, 64}, {'Linear, large', function() return nn.Linear(256, 256) end, 256},
	{'Conv2d', function() return nn.Conv2d(32, 64, 3, {pad=1}) end, 32, 8, 8}, {'Conv2d, 1x1', function() return nn.Conv2d(64, 64, 1) end, 64, 8, 8},
	{'Conv2d, first layer', function() return nn.Conv2d(3, 64, 3, {pad=1}) end, 3, 8, 8},
	{'Conv2d, groups', function() return nn.Conv2d(32, 64, 3, {pad=1, groups=4}) end, 32, 8, 8},
	{'Conv2d, depthwise', function() return nn.Conv2d(64, 64, 3, {pad=1, groups=64}) end, 64, 8, 8},
	{'Embedding', function() return nn.Embedding(200, 64) end}, {'Attention', function() return nn.Attention(64, 4) end, 4, 64},
	{'LSTM', function() return nn.LSTM(48, 64) end, 4, 48}, {'GRU', function() return nn.GRU(48, 64) end, 4, 48}, {'RNN', function() return nn.RNN(48, 64) end, 4, 48},
}
for i, kind in ipairs(kinds) do
	it('modules hold their codes once: ' .. kind[1], function()
		local large = kind[3] and tensor.randn(32, table.unpack(kind, 3)) or ids(32)
		local small, taken = kind[3] and tensor.randn(1, table.unpack(kind, 3)) or ids(1), 0
		local float = nn.Sequential {kind[2]()}:eval()
		if kind[3] then float:calibrate({{large}, {small}}, {log=false}) end
		for j, mode in ipairs {'weight_only', 'dynamic', 'static'} do
			for k, spec in ipairs(formats) do
				local fine, q = not sanitizers.left_out(i + j + k, 7)
				if fine then fine, q = pcall(float.quantize, float, {mode=mode, weight=spec}) end
				if fine then
					local first = now()
					for _ = 1, 3 do tensor.nograd(function() q(large) q(small) end) end
					local grown = now() - first
					assert(grown < 0.1 * q:nbytes() + HEADS, ('%s, %s: %d of %d bytes'):format(mode, name_of(spec), grown, q:nbytes()))
					taken = taken + 1
				end
			end
		end
		assert(taken >= (sanitizers.under and 6 or 60), taken)
	end)
end

for _, case in ipairs {{'GRU', 200}, {'GRU', 32}, {'GRU', 100}, {'LSTM', 200}, {'LSTM', 64}, {'RNN', 128}} do
	it(('codes of w_hh are held once: %s(%d)'):format(case[1], case[2]), function()
		local x = tensor.randn(2, 5, case[2])
		local m = nn[case[1]](case[2], case[2]):eval():quantize {mode = 'dynamic'}
		local first, want = now(), tensor.nograd(function() return (m(x)) end)
		for _ = 1, 4 do assert(not tensor.nograd(function() return (m(x)) end):ne(want):any():item()) end
		want = nil -- luacheck: ignore 311
		assert(now() - first < 0.1 * m:nbytes(), (now() - first) / m:nbytes())
	end)
end
