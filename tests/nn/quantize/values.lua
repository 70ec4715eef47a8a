-- SPDX-License-Identifier: MIT
-- memory= of m:quantize{method=}: the same bits with values in files, of which none is left; moments that do not fit are refused.
local internal = debug.getregistry()['quoll.internal']
local values = internal.import 'nn/quantize/values'

it('keeps what fits in memory, the rest in files without a name', function()
	local pool, list = values.pool(40000), {}
	local x = {}
	for i = 1, 4 do
		x[i] = tensor.randn(16, 256)
		values.put(pool, list, i, x[i])
	end
	print(pool.used, pool.spilled)  --> 32768	32768
	for i = 1, 4 do assert(list[i]:eq(x[i]):all():item()) end
	assert(rawequal(list[2], x[2]) and not rawequal(list[3], x[3]))
	values.drop(pool, list, 1)
	print(pool.used, list[1])  --> 16384	false
	values.put(pool, list, 1, {x[1], {x[2]}})
	assert(list[1][2][1]:eq(x[2]):all():item() and rawequal(list[1][1], x[1]))
	values.release(pool, list)
	print(pool.used)  --> 0
	local small = {}
	values.put(values.pool(1), small, 1, tensor{1, 2})
	print(small[1]:totable()[2])  --> 2.0
end)

tensor.seed(6)
local m = nn.Sequential {nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 4)}
local data = {}
for i = 1, 6 do data[i] = {tensor.randn(200, 4):matmul(tensor.randn(4, 16))} end
local function quantize(o)
	local all = {mode = 'weight_only', weight = 'int4:8', method = {'awq', 'gptq', 'biascorrect'}, data = data, log = false}
	for key, value in pairs(o) do all[key] = value end
	return m:quantize(all)
end

-- Runs f with each(pool, list, i) after each value; the number of bytes in files.
local function watched(f, each)
	local before, spilled = values.put, 0
	values.put = function(pool, list, i, x)
		before(pool, list, i, x)
		assert(not pool.limit or pool.used <= pool.limit)
		spilled = math.max(spilled, pool.spilled)
		if each then each(pool) end
	end
	local result = table.pack(pcall(f))
	values.put = before
	return spilled, table.unpack(result)
end
local function files()
	local pipe = io.popen(('ls %s | grep -c safetensors'):format(os.tmpname():match '^(.*)/'))
	local n = pipe:read 'n'
	pipe:close()
	return n
end

it('gives the same bits', function()
	local before = files()
	for _, o in ipairs {{}, {sequential = false}, {method = 'gptq'}} do
		local plain = quantize(o)
		o.memory = 50000
		local spilled, good, q = watched(function() return quantize(o) end)
		assert(good, q)
		assert(spilled > 100000, spilled)
		for name, value in pairs(plain:state()) do
			local other = q:state()[name]
			if value:quantized() then value, other = value:dequantize(), other:dequantize() end
			assert(value:eq(other):all():item(), name)
		end
	end
	assert(files() == before)
end)
it('leaves no file, also after an error', function()
	local before = files()
	local spilled, good, why = watched(function() return quantize {memory = 50000} end, function(pool)
		if pool.spilled > 60000 then error 'stop' end
	end)
	assert(spilled > 60000 and not good and why:find 'stop' and files() == before)
end)
it('refuses moments that do not fit, before it computes', function()
	local wide = nn.Sequential {nn.Linear(16, 8), nn.Linear(8, 4000), nn.Linear(4000, 2)}
	local good, why = pcall(wide.quantize, wide, {mode = 'weight_only', weight = 'int4:8', method = 'gptq', memory = 100 << 20, log = false,
		data = function() error 'read' end})
	assert(not good and why:find("quantize: memory: linear3: wanted at most 104857600 bytes for the second moments of its inputs, got 4000 x 4000 of float64, 128000000 bytes", 1, true), why)
	local c = nn.Sequential {nn.Conv2d(8, 8, 3, {groups = 4})}
	good, why = pcall(c.quantize, c, {mode = 'weight_only', weight = 'int4/1', method = 'gptq', memory = 10000, log = false, data = {{tensor.randn(1, 8, 4, 4)}}})
	assert(not good and why:find('got 4 times 18 x 18 of float64, 10368 bytes', 1, true), why)
	good, why = pcall(m.quantize, m, {mode = 'weight_only', memory = 100})
	assert(not good and why:find('memory: wanted method= with it', 1, true), why)
end)
