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
	wrong('input_activations: wanted none, got some', nil, nil, config(4, 8, nil, '{"num_bits": 8}'))
	wrong('num_bits: wanted 2 to 8, got 9', nil, nil, config(9, 8))
	wrong('config_groups: wanted an object, got', nil, nil, [[{"quant_method": "compressed-tensors", "format": "pack-quantized"}]])
end)
