-- SPDX-License-Identifier: MIT
-- compressed-tensors: w = (q - zero) * scale of the package (0.20.1), bit for bit: groups and channels, symmetric or not, packed and int8, an order.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/packings.lua')
local CONFIG = [[{"quant_method": "compressed-tensors", "format": "%s", "ignore": ["lm_head"], "config_groups": {"group_0": {"targets": ["Linear"],
	"input_activations": %s, "weights": {"num_bits": %d, "type": "int", "symmetric": true, "strategy": "%s", "group_size": %s}}}}]]

local function config(bits, group, format, activations)
	return CONFIG:format(format or 'pack-quantized', activations or 'null', bits, group and 'group' or 'channel', group or 'null')
end

-- o: group, zeros, shuffled, plain (int8), dtype
local function layer(bits, o)
	local half, group = 1 << (bits - 1), o.group or 32
	local groups = (32 + group - 1) // group
	local q, zero, scale = tools.codes(32, 32, 1 << bits, 1), tools.codes(32, groups, 1 << bits, 2), tools.scales(32, groups, o.dtype)
	local s, list, g, signed, zeros = scale:to('float32'):totable(), {}, {dtype = 'int32'}, {dtype = 'int8'}, {dtype = 'int8'}
	for k = 1, 32 do g[k] = (o.shuffled and (k * 13) % 32 or k - 1) // group end
	for n = 1, 32 do
		for k = 1, 32 do
			list[#list + 1] = (q[n][k] - half - (o.zeros and zero[n][g[k] + 1] - half or 0)) * s[n][g[k] + 1]
			signed[#signed + 1] = q[n][k] - half
		end
		for i = 1, groups do zeros[#zeros + 1] = zero[n][i] - half end
	end
	local all = {weight_scale = scale, weight_g_idx = o.shuffled and tensor(g) or nil}
	if o.plain then
		all.weight, all.weight_zero_point = tensor(signed):view(32, 32), o.zeros and tensor(zeros):view(32, groups) or nil
	else
		all.weight_packed, all.weight_shape = tools.words(q, bits, 2), tensor{32, 32, dtype = 'int64'}
		all.weight_zero_point = o.zeros and tools.words(zero, bits, 1) or nil
	end
	return all, tensor(list):view(32, 32)
end

local function load(bits, o)
	local all, want = layer(bits, o)
	local folder = tools.folder(config(bits, o.group, o.plain and 'int-quantized'), all)
	local m = nn.load(folder)
	tools.same(m, folder)
	assert(tools.saved(m):eq(want):all():item())
	return tostring(m[1].attention.query.weight:spec())
end

it('4 and 8 bits, groups and channels, symmetric and not', function()
	print(load(4, {group = 8}), load(4, {}), load(8, {group = 16}), load(8, {}))  --> int4:8 int4/1 int8:16 int8/1
	print(load(4, {group = 8, zeros = true}), load(4, {zeros = true}), load(8, {zeros = true}))  --> uint4:8 uint4/1 uint8/1
	load(4, {group = 8, zeros = true, shuffled = true, dtype = 'bfloat16'})
	load(8, {group = 12, dtype = 'float32'})
end)

it('other bits, and codes that are not packed', function()
	print(load(3, {group = 8}), load(5, {zeros = true}), load(6, {}), load(2, {group = 16}), load(7, {group = 16}))  --> int3:8 uint5/1 int6/1 int2:16 int8:16
	print(load(8, {plain = true}), load(8, {plain = true, zeros = true, group = 8}))  --> int8/1 uint8:8
end)

---------------------------------------------------------------- inputs of 8 bits

local function activations(dynamic, symmetric, strategy)
	return ('{"num_bits": 8, "type": "int", "dynamic": %s, "symmetric": %s, "strategy": "%s"}'):format(dynamic, symmetric, strategy)
end

local function rounded(x) -- halves to even
	local low = math.floor(x)
	local rest = x - low
	return rest > 0.5 and low + 1 or rest < 0.5 and low or low % 2 == 0 and low or low + 1
end
local function clamp(x) return math.max(-128, math.min(127, x)) end
local function single(x) return (string.unpack('<f', string.pack('<f', x))) end

-- What fake_quantize of the package makes of a row, with the range low … high, in float32.
local function fake(row, low, high, symmetric)
	local scale, zero
	low, high = math.min(low, 0), math.max(high, 0)
	if symmetric then
		scale, zero = single(math.max(-low, high) / 127.5), 0
	else
		scale = single(single(high - low) / 255)
		zero = rounded(clamp(single(-128 - single(low / scale))))
	end
	if scale == 0 then scale = 2.0 ^ -23 end
	local list = {}
	for i, x in ipairs(row) do list[i] = (rounded(clamp(single(single(x / scale) + zero))) - zero) * scale end
	return list
end

local function range_of(row)
	return math.min(table.unpack(row)), math.max(table.unpack(row))
end

it('w8a8: inputs by token and by tensor, found at each call', function()
	local all = layer(8, {plain = true})
	tensor.seed(2)
	local x = tensor.randn(2, 3, 32)
	x[2][1]:fill_(0)
	for _, symmetric in ipairs {true, false} do
		for _, strategy in ipairs {'token', 'tensor'} do
			local folder = tools.folder(config(8, nil, 'int-quantized', activations(true, symmetric, strategy)), all)
			local m = nn.load(folder)
			local query, list = m[1].attention.query, {}
			for _, row in ipairs(x:view(6, 32):totable()) do
				local low, high = range_of(strategy == 'token' and row or x:view(-1):totable())
				for _, v in ipairs(fake(row, low, high, symmetric)) do list[#list + 1] = v end
			end
			local weight = query.weight:dequantize():to 'float64'
			local y = tensor(list):to('float64'):view(6, 32):matmul(weight:t()):view(2, 3, 32)
			assert((query(x) - y):abs():max():item() < 2e-5 * y:abs():max():item())
			quant.log 'reset'
			query(x)
			assert(tostring(quant.log()):find('int8', 1, true))
			assert(query(x:narrow(1, 1, 0)):nelem() == 0 and query(x:to 'float16'):dtype() == 'float16')
			local g = graph.trace(query, x)
			assert((g:run(x) - y):abs():max():item() < 2e-5 * y:abs():max():item())
			assert(tostring(query):find('dynamic, weight int8/1, input int8', 1, true) and m:clone()[1].attention.query(x):eq(query(x)):all():item())
			tools.same(m, folder)
			assert(not rawget(m[1].attention.key, 'quantized') and not rawget(m:dequantize()[1].attention.query, 'quantized'))
		end
	end
end)

it('w8a8: inputs with the scales of the file', function()
	tensor.seed(3)
	local x = tensor.randn(2, 3, 32)
	for _, zero in ipairs {false, 0, -7} do
		local all = layer(8, {plain = true})
		all.input_scale, all.input_zero_point = tensor {0.013}, zero and tensor({zero}):to 'int8' or nil
		local folder = tools.folder(config(8, nil, 'int-quantized', activations(false, zero ~= -7, 'tensor')), all)
		local m, list = nn.load(folder), {}
		local query, scale, point = m[1].attention.query, single(0.013), zero or 0
		for i, v in ipairs(x:view(-1):totable()) do list[i] = (clamp(rounded(single(v / scale)) + point) - point) * scale end
		local y = tensor(list):to('float64'):view(6, 32):matmul(query.weight:dequantize():to('float64'):t()):view(2, 3, 32)
		assert((query(x) - y):abs():max():item() < 2e-5 * y:abs():max():item())
		assert((graph.trace(query, x):run(x) - query(x)):abs():max():item() < 1e-5)
		tools.same(m, folder)
	end
	local function wrong(want, change, symmetric)
		local all = layer(8, {plain = true})
		all.input_scale, all.input_zero_point = tensor {0.5}, tensor({0}):to 'int8'
		change(all)
		tools.refused(want, config(8, nil, 'int-quantized', activations(false, symmetric ~= false, 'tensor')), all)
	end
	wrong('input_scale: wanted one number, got none', function(t) t.input_scale = nil end)
	wrong('input_scale: wanted one number, got float32(2)', function(t) t.input_scale = tensor {1, 2} end)
	wrong('input_scale: wanted a finite number above 0, got -1', function(t) t.input_scale = tensor {-1} end)
	wrong('input_zero_point: wanted 0, got 5', function(t) t.input_zero_point = tensor({5}):to 'int8' end)
	wrong('input_zero_point: wanted -128 to 127, got 300', function(t) t.input_zero_point = tensor({300}):to 'int32' end, false)
	wrong('input_zero_point: wanted one integer, got none', function(t) t.input_zero_point = nil end, false)
	local all = layer(8, {plain = true})
	local function refused(want, text) tools.refused(want, config(8, nil, 'int-quantized', text), all) end
	refused('input_activations: type: wanted int, got', '{"num_bits": 8, "type": "float"}')
	refused('input_activations: num_bits: wanted 8, got 4', '{"num_bits": 4}')
	refused("input_activations: strategy: wanted tensor or token, got 'group'", activations(true, true, 'group'))
	refused("input_activations: strategy: wanted tensor, got 'token'", activations(false, true, 'token'))
	refused('input_activations: wanted the same for all groups, got others',
		'null, "weights": {"num_bits": 8}}, "group_1": {"targets": ["x"], "input_activations": ' .. activations(true, true, 'token'))
end)

it('wrong files', function()
	local function wrong(want, kind, change, quantization)
		local all = layer(4, {group = 8, zeros = true, shuffled = true})
		if kind then all[kind] = change(all[kind]) end
		tools.refused(want, quantization or config(4, 8), all)
	end
	wrong('weight_packed: wanted words of 4 bits for 32 inputs, got 3', 'weight_packed', function(x) return x:narrow(2, 1, 3) end)
	wrong('weight_shape: wanted the sizes of the weight', 'weight_packed', function(x) return x:narrow(1, 1, 3) end)
	wrong('weight_shape: wanted the sizes of the weight', 'weight_shape', function() return tensor{32, 1 << 61, dtype = 'int64'} end)
	wrong('weight_shape: wanted the sizes of the weight', 'weight_shape', function() return tensor{32, -1, dtype = 'int64'} end)
	wrong('weight_shape: wanted 2 integers, got', 'weight_shape', function() return tensor{32, dtype = 'int64'} end)
	wrong("weight_shape', there is none", 'weight_shape', function() return nil end)
	wrong('weight_scale: wanted shape (32, 4), got', 'weight_scale', function(x) return x:narrow(1, 1, 31) end)
	wrong('weight_scale: wanted a scale for each output or for groups of 8 inputs, got 3 for 32', 'weight_scale', function(x) return x:narrow(2, 1, 3) end)
	wrong('weight_zero_point: wanted words of 32 codes of 4 bits along axis 1, got 3', 'weight_zero_point', function(x) return x:narrow(1, 1, 3) end)
	wrong('weight_zero_point: wanted shape (32, 4), got', 'weight_zero_point', function(x) return x:narrow(2, 1, 3) end)
	wrong('weight_zero_point: wanted integers of 2 axes, got', 'weight_zero_point', function(x) return x:view(-1) end)
	wrong('weight_g_idx: wanted groups from 0 to 3, got 99', 'weight_g_idx', function(x) local y = x:clone() y[3] = 99 return y end)
	wrong("format: wanted int-quantized or naive-quantized or pack-quantized, got 'marlin-24'", nil, nil, config(4, 8, 'marlin-24'))
	wrong('output_activations: wanted none, got some', nil, nil, config(4, 8, nil, 'null, "output_activations": {"num_bits": 8}'))
	wrong('num_bits: wanted 2 to 8, got 9', nil, nil, config(9, 8))
	wrong('config_groups: wanted an object, got', nil, nil, [[{"quant_method": "compressed-tensors", "format": "pack-quantized"}]])
end)
