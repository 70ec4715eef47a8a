-- SPDX-License-Identifier: MIT
-- GPTQ: w = scale * (q - zero) of AutoGPTQ 0.7.1, bit for bit, for 2, 3, 4 and 8 bits, groups and one group, with and without an order of inputs.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/packings.lua')
local CONFIG = [[{"quant_method": "gptq", "bits": %d, "group_size": %d, "desc_act": true, "sym": false%s}]]

-- A layer 32 x 32, and its weight by the formula. zeros: one of all, or nil.
local function layer(bits, group, o)
	o = o or {}
	local size = group > 0 and group or 32
	local groups = (32 + size - 1) // size
	local q, stored = tools.codes(32, 32, 1 << bits, 1), tools.codes(groups, 32, 1 << bits, 2)
	local scale, g, list = tools.scales(groups, 32, o.dtype), {dtype = 'int32'}, {}
	for k = 1, 32 do
		local at = o.shuffled and (k * 13) % 32 or k - 1
		g[k] = at // size
	end
	if o.zero then
		for _, row in ipairs(stored) do
			for n = 1, 32 do row[n] = o.zero - 1 end
		end
	end
	local s = scale:to('float32'):totable()
	for n = 1, 32 do
		for k = 1, 32 do
			local zero = stored[g[k] + 1][n] + (o.v2 and 0 or 1)
			if bits ~= 3 and not o.v2 then zero = zero & (1 << bits) - 1 end
			list[#list + 1] = s[g[k] + 1][n] * (q[k][n] - zero)
		end
	end
	return {qweight = tools.words(q, bits, 1), qzeros = tools.words(stored, bits, 2), scales = scale, g_idx = tensor(g)}, tensor(list):view(32, 32)
end

local function load(bits, group, o)
	local all, want = layer(bits, group, o)
	if o and o.plain then all.g_idx = nil end
	local folder = tools.folder(CONFIG:format(bits, group, o and o.v2 and ', "checkpoint_format": "gptq_v2"' or ''), all)
	local m = nn.load(folder)
	assert(tools.saved(m):eq(want):all():item())
	tools.same(m, folder)
	return m[1].attention.query
end

it('2, 3, 4 and 8 bits', function()
	for _, bits in ipairs {2, 3, 4, 8} do
		assert(load(bits, 16, {shuffled = true}).order:nelem() == 32)
		assert(load(bits, 16, {plain = true}).order == false)
	end
end)

it('one group, groups that do not divide the inputs, scales of other floats', function()
	print(load(4, -1).weight:spec(), load(4, 64).weight:spec(), load(4, 12, {shuffled = true}).weight:spec())  --> uint4/1 uint4/1 uint4:12
	load(4, 8, {dtype = 'bfloat16', shuffled = true})
	load(4, 8, {dtype = 'float32'})
end)

it('zero points in the middle are signed codes; those of gptq_v2 are as they are', function()
	print(load(4, 16, {zero = 8}).weight:spec(), load(8, 16, {zero = 128}).weight:spec(), load(4, 16, {zero = 3}).weight:spec())  --> int4:16 int8:16 uint4:16
	load(4, 16, {v2 = true})
	load(3, 16, {v2 = true})
end)

it('scales of 0', function()
	for _, zero in ipairs {false, 8} do
		local all, want = layer(4, 8, {shuffled = true, zero = zero})
		all.scales[{2, 5}] = 0
		local group = all.g_idx:eq(1):view(1, 32)
		want[{{5, 5}, {}}] = tensor.where(group, 0, want[{{5, 5}, {}}])
		local m = nn.load((tools.folder(CONFIG:format(4, 8, ''), all)))
		assert(tools.saved(m):eq(want):all():item())
	end
end)

it('biases of zeros that the model has not', function()
	local all = layer(4, 8)
	all.bias = tensor.zeros(32)
	local folder = tools.folder(CONFIG:format(4, 8, ''), all)
	local m = nn.load(folder)
	assert(m[1].attention.query.bias == nil or m[1].attention.query.bias == false)
	tools.same(m, folder)
	all.bias = tensor.ones(32)
	tools.refused('1 extra: model.layers.0.self_attn.q_proj.bias', CONFIG:format(4, 8, ''), all)
end)

it('a model with an order of inputs: graphs, C, files, no second quantization', function()
	local m = nn.load((tools.folder(CONFIG:format(4, 8, ''), (layer(4, 8, {shuffled = true})))))
	local ids = tensor{{1, 5, 20}, {3, 3, 9}, dtype = 'int32'}
	local g = graph.trace(m, ids)
	assert(g:run(ids):eq(m(ids)):all():item())
	local file = os.tmpname() .. '.safetensors'
	m:save(file)
	assert(nn.load((tools.folder(CONFIG:format(4, 8, ''), (layer(4, 8, {shuffled = true, zero = 5}))))):load(file)(ids):eq(m(ids)):all():item())
	assert((m:dequantize():quantize {mode = 'dynamic'})(ids):error(m(ids)).sqnr > 15)
	local ok, message = pcall(m.quantize, m, {mode = 'dynamic'})
	assert(not ok and message:find('attention.query: wanted a float layer, got one that is quantized already', 1, true), message)
	m[1].attention.query.weight = tensor.ones(32, 32):quantize 'int4:16'
	ok, message = pcall(m.save, m, os.tmpname() .. '/')
	assert(not ok and message:find('q_proj: wanted a weight with 4 bits as it was read, got int4(32, 32)', 1, true), message)
	m[1].attention.key.weight = tensor.ones(32, 32):quantize 'int4:16'
	m[1].attention.query.weight = tensor.ones(32, 32)
	ok, message = pcall(m.save, m, os.tmpname() .. '/')
	assert(not ok and message:find('k_proj.weight: wanted floats, as in m:dequantize(), or a weight that was packed', 1, true), message)
end)

it('wrong files', function()
	local function wrong(want, change, config)
		local all = layer(4, 8, {shuffled = true})
		tools.refused(want, config or CONFIG:format(4, 8, ''), all, function(t)
			change(setmetatable({}, {__index = function(_, kind) return t[tools.NAME .. '.' .. kind] end,
				__newindex = function(_, kind, value) t[tools.NAME .. '.' .. kind] = value end}))
		end)
	end
	local function index(f)
		return function(t)
			local list = t.g_idx:totable()
			f(list)
			list.dtype = 'int32'
			t.g_idx = tensor(list)
		end
	end
	wrong('g_idx: wanted groups from 0 to 3, got 4', index(function(g) g[5] = 4 end))
	wrong('g_idx: wanted groups from 0 to 3, got -1', index(function(g) g[5] = -1 end))
	wrong('inputs in group', index(function(g) g[5] = g[5] == 0 and 1 or 0 end))
	wrong('g_idx: wanted 32 integers, got', index(function(g) g[32] = nil end))
	wrong('g_idx: wanted 32 integers, got', function(t) t.g_idx = tensor.zeros(32) end)
	wrong("wanted a tensor 'model.layers.0.self_attn.q_proj.scales', there is none", function(t) t.scales = nil end)
	wrong("qzeros', there is none", function(t) t.qzeros = nil end)
	wrong('qzeros: wanted words of 32 codes of 4 bits along axis 2, got 3', function(t) t.qzeros = t.qzeros:narrow(2, 1, 3) end)
	wrong('qzeros: wanted shape (32, 4), got', function(t) t.qzeros = t.qzeros:narrow(1, 1, 3) end)
	wrong('scales: wanted shape (3, 32), got', function(t) t.qweight = t.qweight:narrow(1, 1, 3) end)
	wrong('qweight: wanted shape (4, 32), got', function(t) t.qweight = t.qweight:narrow(2, 1, 16) end)
	wrong('qweight: wanted words (rows, columns) in int32, got', function(t) t.qweight = t.qweight:to 'float32' end)
	wrong('qweight: wanted a tensor of 2 axes, got', function(t) t.qweight = t.qweight:view(-1) end)
	wrong('q_proj: scales: wanted finite numbers that are not below 0', function(t) t.scales = t.scales * (0 / 0) end)
	wrong('q_proj: scales: wanted finite numbers that are not below 0', function(t) t.scales = t.scales * -1 end)
	wrong('q_proj: scales: wanted finite numbers that are not below 0', function(t) t.scales[{2, 3}] = math.huge end)
	wrong("once, as codes or floats, got both", function(t) t.weight = tensor.ones(32, 32) end)
	local function none() end
	wrong('bits: wanted 2, 3, 4 or 8, got 5', none, CONFIG:format(5, 8, ''))
	wrong('bits: wanted an integer', none, [[{"quant_method": "gptq", "group_size": 8}]])
	wrong("checkpoint_format: wanted gptq or gptq_v2, got 'marlin'", none, CONFIG:format(4, 8, ', "checkpoint_format": "marlin"'))
	wrong('dynamic: wanted the same options', none, CONFIG:format(4, 8, ', "dynamic": {"-:lm_head": {}}'))
	wrong('scales: wanted shape (2, 32), got', none, CONFIG:format(4, 16, ''))
	wrong("quant_method: wanted awq or compressed-tensors or gptq, got 'bitsandbytes'", none, [[{"quant_method": "bitsandbytes"}]])
	wrong('quantization_config: wanted an object, got', none, '5')
end)

it('changed bytes of description and header are refused in one line, or load', function()
	tensor.seed(4)
	local loaded, other = 0, 0
	for _, name in ipairs {'/config.json', '/model.safetensors'} do
		local folder = tools.folder(CONFIG:format(4, 8, ''), (layer(4, 8, {shuffled = true})))
		local handle = assert(io.open(folder .. name, 'rb'))
		local text = handle:read 'a'
		handle:close()
		local last = name == '/config.json' and #text or 8 + string.unpack('<I8', text)
		for _ = 1, 150 do
			local at, byte = tensor.randint({1, low = 1, high = last}):item(), tensor.randint({1, low = 32, high = 126}):item()
			handle = assert(io.open(folder .. name, 'wb'))
			handle:write(text:sub(1, at - 1), string.char(byte), text:sub(at + 1))
			handle:close()
			local ok, message = pcall(nn.load, folder)
			assert(ok or not message:find '\n' and message:find 'load', message)
			if ok then loaded = loaded + 1 else other = other + 1 end
		end
	end
	assert(loaded > 5 and other > 50, loaded .. ' ' .. other)
end)
