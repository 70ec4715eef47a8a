-- SPDX-License-Identifier: MIT
-- AWQ: w = scale * (q - zero) of AutoAWQ 0.2.9 (dequantize_gemm), bit for bit.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/packings.lua')
local CONFIG = [[{"quant_method": "awq", "bits": 4, "group_size": %d, "zero_point": true, "version": "gemm"%s}]]
local GEMV = CONFIG:gsub('gemm', 'gemv')
local FIELD = {0, 4, 1, 5, 2, 6, 3, 7} -- of each of eight outputs (AWQ_REVERSE_ORDER)

local function layer(group)
	local groups = 32 // group
	local q, zero, scale, list = tools.codes(32, 32, 16, 1), tools.codes(groups, 32, 16, 2), tools.scales(groups, 32), {}
	local s = scale:to('float32'):totable()
	for n = 1, 32 do
		for k = 1, 32 do
			local g = (k - 1) // group + 1
			list[#list + 1] = s[g][n] * (q[k][n] - zero[g][n])
		end
	end
	return {qweight = tools.words(q, 4, 2, FIELD), qzeros = tools.words(zero, 4, 2, FIELD), scales = scale}, tensor(list):view(32, 32)
end

it('groups and one group', function()
	for group, wanted in pairs {[8] = 8, [16] = 16, [32] = -1} do
		local all, want = layer(group)
		local folder = tools.folder(CONFIG:format(wanted, ''), all)
		local m = nn.load(folder)
		tools.same(m, folder)
		assert(tools.saved(m):eq(want):all():item())
		assert(tostring(m[1].attention.query.weight:spec()) == (group == 32 and 'uint4/1' or 'uint4:' .. group))
	end
end)

-- WQLinear_GEMV.from_linear: scales and zero points of a row, behind which are zeros up to `words` words of zero points.
local function gemv(group, words)
	local groups = 32 // group
	local q, zero, scale, list = tools.codes(32, 32, 16, 1), tools.codes(32, 8 * words, 16, 2), tools.scales(32, groups), {}
	local s = scale:to('float32'):totable()
	for n = 1, 32 do
		for g = groups + 1, 8 * words do zero[n][g] = 0 end
		for k = 1, 32 do
			local g = (k - 1) // group + 1
			list[#list + 1] = s[n][g] * (q[n][k] - zero[n][g])
		end
	end
	return {qweight = tools.words(q, 4, 2), qzeros = tools.words(zero, 4, 2),
		scales = tensor.cat({scale, tensor.zeros {32, 8 * words - groups, dtype = 'float16'}}, {axis = 2})}, tensor(list):view(32, 32)
end

it('version gemv', function()
	for group, wanted in pairs {[8] = 8, [16] = 16, [32] = -1} do -- fewer than 64 inputs of a group: words by four
		local all, want = gemv(group, 4)
		local folder = tools.folder(GEMV:format(wanted, ''), all)
		local m = nn.load(folder)
		tools.same(m, folder)
		assert(tools.saved(m):eq(want):all():item())
		assert(tostring(m[1].attention.query.weight:spec()) == (group == 32 and 'uint4/1' or 'uint4:' .. group))
	end
	local all = gemv(8, 4)
	all.scales = all.scales:narrow(2, 1, 31)
	tools.refused('scales: wanted shape (32, 32), got', GEMV:format(8, ''), all)
	all = gemv(8, 4)
	all.qzeros = all.qzeros:narrow(2, 1, 3)
	tools.refused('qzeros: wanted shape (32, 4), got', GEMV:format(8, ''), all)
	all.qzeros = nil
	tools.refused("qzeros', there is none", GEMV:format(8, ''), all)
end)

it('wrong files', function()
	local function wrong(want, kind, change, config)
		local all = layer(8)
		if kind then all[kind] = change(all[kind]) end
		tools.refused(want, config or CONFIG:format(8, ''), all)
	end
	wrong('qweight: wanted words of 32 codes of 4 bits along axis 2, got 3', 'qweight', function(x) return x:narrow(2, 1, 3) end)
	wrong('scales: wanted shape (2, 32), got', 'qweight', function(x) return x:narrow(1, 1, 16) end)
	wrong('scales: wanted shape (4, 31), got', 'scales', function(x) return x:narrow(2, 1, 31):narrow(1, 1, 3) end)
	wrong('qweight: wanted words (rows, columns) in int32', 'qweight', function(x) return x:to 'int64' end)
	wrong('qzeros: wanted shape (32, 4), got', 'qzeros', function(x) return x:narrow(1, 1, 2) end)
	wrong("qzeros', there is none", 'qzeros', function() return nil end)
	wrong('bits: wanted 4, got 8', nil, nil, [[{"quant_method": "awq", "bits": 8}]])
	wrong("version: wanted GEMM or GEMV or gemm or gemv, got 'marlin'", nil, nil, [[{"quant_method": "awq", "bits": 4, "version": "marlin"}]])
	wrong('zero_point: wanted true, got false', nil, nil, [[{"quant_method": "awq", "w_bit": 4, "q_group_size": 8, "zero_point": false}]])
end)
