-- SPDX-License-Identifier: MIT
-- The report of m:quantize{method=}: a row a layer, also of layers with several weights, and its figure.
tensor.seed(2)
local function quantize(m, data, o)
	o = o or {}
	o.mode, o.data, o.log, o.weight, o.method = 'weight_only', data, false, o.weight or 'int4:8', o.method or 'gptq'
	return m:quantize(o)
end

it('has errors, seconds, bytes of each layer, and none of layers without codes', function()
	local m = nn.Sequential {nn.Linear(16, 24), nn.RMSNorm(24), nn.Linear(24, 8)}
	local x = tensor.randn(64, 4):matmul(tensor.randn(4, 16))
	local _, r = quantize(m, {{x}})
	assert(r[1].error > r[1].rtn and r[1].block >= r[1].block_rtn and r[1].peak > 8 * 16 * 16 and r[1].seconds >= 0)
	print(r[2].error, r[2].method, r[2].peak, r[1].bits > 4)  --> nil	-	nil	true
	for _, name in ipairs {'method', 'rtn', 'error', 'block_rtn', 'block', 'seconds', 'peak', 'why'} do r:column(name) end
	local total = 0
	for _, row in ipairs(r) do total = total + (row.seconds or 0) end
	assert(total < 30)
end)
it('has one row for the matrices of a recurrent layer, whose errors are of their sums', function()
	local m = nn.LSTM(8, 16)
	local _, r = m:quantize {mode = 'weight_only', weight = 'int4:8', method = 'rtn'}
	local signal, noise = 0, 0
	for _, field in ipairs {'weight_ih1', 'weight_hh1'} do
		local w = m[field]:detach()
		noise = noise + (w - w:quantize 'int4:8':dequantize()):to 'float64':square():sum():item()
		signal = signal + w:to 'float64':square():sum():item()
	end
	assert(#r == 1)
	assert(r[1].why:find 'not judged on data' and math.abs(r[1].rtn - 10 * math.log(signal / noise, 10)) < 1e-3, r[1].rtn)
	assert(r[1].error == r[1].rtn)
end)
it('draws its errors beside those of rounding', function()
	local m = nn.Sequential {nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8)}
	local file = os.tmpname() .. '.svg'
	local _, r = quantize(m, {{tensor.randn(64, 16)}})
	r:plot {file = file}
	local handle = assert(io.open(file))
	local text = handle:read 'a'
	handle:close()
	os.remove(file)
	text = text:gsub('&#x(%x+);', function(code) return utf8.char(tonumber(code, 16)) end)
	assert(text:find 'rounding alone' and text:find 'with the method' and text:find 'linear2' and not text:find 'relu')
	r:where {name = 'linear1'}:plot {kind = 'bar'}
	r:plot {x = 'name', y = 'bytes'}
	local exact = nn.Sequential {nn.Linear(8, 2)}
	exact.linear1.weight = tensor.ones(2, 8)
	local _, other = quantize(exact, {{tensor.randn(9, 8)}}, {weight = 'int8/1'})
	print(other[1].error)  --> inf
	other:plot()
end)
it('refuses options that would do nothing', function()
	local m = nn.Sequential {nn.Linear(8, 8)}
	local function refused(text, o)
		o.mode, o.weight = 'weight_only', 'int4:8'
		local good, message = pcall(m.quantize, m, o)
		assert(not good and message:find(text, 1, true), message)
	end
	refused('quantize: batches: wanted method= with it, got none', {batches = 3})
	refused('quantize: shared: wanted method= with it, got none', {shared = 'once'})
	refused("quantize: shared: wanted apart or once, got 'one'", {method = 'rtn', shared = 'one'})
	refused('quantize: sequential: wanted data= with it, got none', {method = 'mse', sequential = false})
	refused('quantize: memory: wanted data= with it, got none', {method = 'mse', memory = 1 << 20})
end)
