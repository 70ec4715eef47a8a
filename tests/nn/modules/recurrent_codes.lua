-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Recurrent layers whose weights are read as codes: the bits of the layer with decoded weights, for one step, whose product reads w_hh, and for
-- several, for which it is decoded into panels; the ledger says so.
local left_out = dofile 'tests/tools/sanitizers.lua'.left_out
tensor.seed(3)
local FORMATS = {'int4', 'int8/1', 'int4:32', 'uint4:16+min', 'int3/1', 'nf4', 'fp8_e4m3', 'mxfp4', 'q4_k'}

local function same(a, b) return not a:ne(b):any():item() end

local function decoded(m, kind, n, options)
	local w = nn[kind](n, n, options)
	for layer = 1, m.layers do
		for _, field in ipairs {'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'} do
			local t = m[field .. layer]
			w[field .. layer] = t:quantized() and t:dequantize() or t
		end
	end
	return w
end

local function check(m, w, x)
	for _ = 1, 3 do -- codes may move at a call
		local y, states = m(x)
		local wanted, last = w(x)
		assert(same(y, wanted), 'y')
		for layer, inner in ipairs(last) do
			for i, t in ipairs(inner) do assert(same(states[layer][i], t), 'state') end
		end
	end
end

for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
	for i, format in ipairs(FORMATS) do
		it(('%s of %s'):format(kind, format), function()
			local n = format == 'q4_k' and 256 or 96
			for _, first in ipairs {true, false} do
				local options = {layers = 2, batchfirst = first}
				local m = nn[kind](n, n, options):eval():quantize{weight = format, mode = 'weight_only'}
				assert(m.weight_ih1:quantized() and m.weight_hh2:quantized())
				local w = decoded(m, kind, n, options)
				for j, steps in ipairs {1, 4, 1} do
					for l, batch in ipairs {1, 3, 40} do
						if not left_out(i + j + l, 3) then check(m, w, first and tensor.randn(batch, steps, n) or tensor.randn(steps, batch, n)) end
					end
				end
			end
		end)
	end
end

it('computes one step as the first of several', function()
	for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
		for _, n in ipairs {5, 96, 300} do
			local m = nn[kind](7, n):eval()
			for _, batch in ipairs {1, 3, 40} do
				local x = tensor.randn(batch, 3, 7)
				local y = m(x)
				assert(same((m(x[{{}, {1, 1}}])), y[{{}, {1, 1}}]), kind)
			end
		end
	end
end)

it('is in the ledger', function()
	local w_ih, w_hh = tensor.randn(9, 8):quantize 'int4', tensor.randn(9, 3):quantize 'int8'
	local function origin(steps, w, states) return nn.gru(tensor.randn(2, steps, 8), tensor.randn(2, 3), w_ih, w, {states = states}):origin() end
	assert(origin(1, w_hh).path == 'weight_only' and origin(1, w_hh).kernel:find '^gemm_coded', origin(1, w_hh).path)
	assert(origin(4, w_hh).path == 'weight_only' and origin(4, w_hh).kernel:find '^gemm_coded', origin(4, w_hh).path)
	assert(origin(4, w_hh, 'int8').path == 'mixed', origin(4, w_hh, 'int8').path)
	assert(origin(4, w_hh:dequantize()).path == 'weight_only')
end)

it('has gradients of x and of the states', function()
	local q, r = tensor.randn(12, 8):quantize 'int4/1', tensor.randn(12, 3):quantize 'int4/1'
	local function slopes(w_ih, w_hh)
		tensor.seed(5)
		local x, h, c = tensor.randn(2, 1, 8), tensor.randn(2, 3), tensor.randn(2, 3)
		x:requires_grad_()
		h:requires_grad_()
		nn.lstm(x, h, c, w_ih, w_hh):sum():backward()
		return x:grad(), h:grad()
	end
	local a, b = slopes(q, r)
	local c, d = slopes(q:dequantize(), r:dequantize())
	assert(same(a, c) and same(b, d))
end)
