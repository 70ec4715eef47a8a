-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- quant.scheme: number formats that users make of tables.
local values = {-1, -0.5, -0.25, 0, 0.25, 0.5, 1}
local spec = quant.scheme{name = 'p2', table = values, text = 'powers of two'}
print(spec, spec.format, spec.dtype, spec.scheme, #spec.values, spec == quant.spec 'p2')  --> p2 p2 uint3 grid 7 true

it('codes are the nearest value, in a tie the lower one', function()
	local x = tensor{1, -1, 0.4, 0.375, 0.37, -0.125, 0.125, 0, 0 / 0}
	local y = x:quantize{dtype = 'p2', scale = 1}:dequantize():totable()
	local wanted = {1, -1, 0.5, 0.25, 0.25, -0.25, 0, 0, 0}
	for i = 1, #wanted do assert(y[i] == wanted[i], ('%d: %g'):format(i, y[i])) end
	local r = tensor.randn(33, 70)
	for _, s in ipairs {'p2', 'p2/1', 'p2/2', 'p2:32', 'p2:16@mse', 'p2:32:8'} do
		local q = r:quantize(s)
		local scale = q:qparams().scale
		assert(tostring(q:spec()):gsub('@mse', '') == s:gsub('@mse', ''), tostring(q:spec()))
		assert(q:check():codes():max():item() <= 6 and (scale:quantized() or scale:min():item() > 0))
		assert(r:error(q).sqnr > 5, s)
	end
end)

it('each element takes the nearest of the values, by a plain search', function()
	local r = tensor.randn(500)
	local q = r:quantize 'p2'
	local scale, codes, x = q:qparams().scale:item(), q:codes():totable(), r:totable()
	for i = 1, #x do
		local best, least = 0, math.huge
		for k, v in ipairs(values) do
			local d = math.abs(x[i] / scale - v)
			if d < least - 1e-7 then best, least = k - 1, d end
		end
		assert(codes[i] == best or math.abs(math.abs(x[i] / scale - values[codes[i] + 1]) - least) < 1e-6)
	end
end)

it('goes wherever a spec goes', function()
	local r = quant.compare(tensor.randn(64, 64), {'p2', 'p2:32', 'int4:32'})
	assert(r[1].sqnr and r[2].sqnr > r[1].sqnr)
	local m = nn.Sequential{nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)}
	local x = tensor.randn(5, 8)
	local q = m:quantize{weight = 'p2/1', mode = 'weight_only'}
	assert(q:forward(x):error(m:forward(x)).cosine > 0.5)
	assert(tostring(q[1].weight:spec()) == 'p2/1', tostring(q[1].weight:spec()))
	assert(x:fake('p2'):error(x:quantize('p2'):dequantize()).max == 0)
end)

it('256 values, values in any order, units', function()
	local many = {}
	for i = 1, 256 do many[i] = ((i * 77) % 256 - 128) / 128 end
	quant.scheme{name = 'mixed', table = tensor(many), block = 32}
	local x = tensor.randn(16, 64)
	assert(x:error(x:quantize 'mixed').sqnr > 40 and tostring(quant.spec 'mixed') == 'mixed' and quant.spec 'mixed'.block == 32)
	quant.scheme{name = 'wide', table = {-4, -1, 0, 1, 4}, unit = 1}
	assert(tensor{2, 0.1}:quantize 'wide':qparams().scale:item() == 2)
end)

it('a name may be used again; tensors keep their values', function()
	quant.scheme{name = 'again', table = {0, 1}}
	local q = tensor{0.2, 5}:quantize 'again'
	quant.scheme{name = 'again', table = {0, 3, 7}}
	assert(q:dequantize():totable()[2] == 5 and tensor{7}:quantize 'again':qparams().scale:item() == 1)
	assert(q:spec() ~= quant.spec 'again')
end)

it('files know the table, not only its name', function()
	local path = os.tmpname() .. '.safetensors'
	quant.scheme{name = 'kept', table = {-1, 0, 2}}
	local q = tensor.randn(8, 32):quantize 'kept:16'
	tensor.save(path, {q = q})
	local back = tensor.load(path).q
	assert(back:spec() == q:spec() and back:dequantize():error(q:dequantize()).max == 0)
	quant.scheme{name = 'kept', table = {-1, 0, 3}}
	assert(tensor.load(path).q:dequantize():error(q:dequantize()).max == 0)
	os.remove(path)
end)

it('what has no meaning is refused', function()
	local function refused(t) return select(2, pcall(quant.scheme, t)) end
	local long = {}
	for i = 1, 257 do long[i] = i end
	assert(refused{name = 'a', table = long} == 'scheme: table: wanted 2 to 256 values, got 257', refused{name = 'a', table = long})
	assert(refused{name = 'a', table = {1, 0 / 0}}:find 'scheme: table: wanted finite float32 values, got nan as number 2')
	assert(refused{name = 'a', table = {1}}:find 'wanted 2 to 256 values, got 1')
	assert(refused{name = 'a', table = {1, 1}}:find 'wanted two different values')
	assert(refused{name = 'a', table = {0, 1e300}}:find 'finite float32')
	assert(refused{name = 'int8', table = {0, 1}}:find "wanted a new one, got 'int8'")
	assert(refused{name = 'nf4', table = {0, 1}}:find "wanted a new one, got 'nf4'")
	assert(refused{name = 'log', table = {0, 1}}:find "wanted a new one, got 'log'")
	assert(refused{name = 'a b', table = {0, 1}}:find 'wanted a letter')
	assert(refused{name = 'a', tabel = {0, 1}}:find "unknown field 'tabel'; did you mean 'table'")
	assert(refused{name = 'a', table = {0, 'x'}}:find 'wanted numbers, got string as number 2')
	assert(refused{table = {0, 1}}:find 'scheme: name: wanted a string, got nil')
	assert(refused{1, 2}:find 'scheme: wanted fields by name')
	assert(refused 'p2':find 'scheme: wanted a table')
	assert(refused{name = 'a', table = {0, 1}, block = 0}:find 'block: wanted an integer above 0, got 0')
	assert(refused{name = 'a', table = {0, 1}, unit = -1}:find 'unit: wanted a number above 0')
end)

it('searches large tables: infinity, edges and close values', function()
	for _, n in ipairs {34, 100, 255, 256} do
		for _, unit in ipairs {1, 1e-9} do -- close beside 1: too close for an index
			local list, name = {}, ('t%d_%d'):format(n, unit < 1 and 1 or 0)
			for i = 1, n do list[i] = unit < 1 and 1 + (i - n // 2) * 2.0 ^ -22 or (i - n // 2) / 3 end
			quant.scheme {name = name, table = list}
			local x = tensor(list)
			local all = tensor.cat({x, x + 1e-7, x - 1e-7, tensor.randn(5000) * n / 3, tensor {1 / 0, -1 / 0, 1e38, -1e38, 0, -0.0}}, 1)
			local q = all:quantize {dtype = name, scale = 1}
			local codes, values = q:codes():totable(), x:to 'float64':totable()
			assert(codes[all:nelem() - 5] == n - 1 and codes[all:nelem() - 4] == 0)
			for i, v in ipairs(all:to 'float64':totable()) do
				local best = math.huge
				for _, w in ipairs(values) do best = math.min(best, math.abs(v - w)) end
				assert(v == 1 / 0 or v == -1 / 0 or math.abs(v - values[codes[i] + 1]) <= best + 1e-6 * math.abs(v), v)
			end
		end
	end
end)
