-- SPDX-License-Identifier: MIT
-- labels: quick
-- The bytes of a model, taken apart by the wire format of protobuf.
local out = dofile 'tests/tools/onnx_out.lua'
local exported = dofile 'tests/tools/exported.lua'

local function varint(s, at)
	local n, shift = 0, 0
	while true do
		local byte = s:byte(at)
		n, shift, at = n | (byte & 0x7f) << shift, shift + 7, at + 1
		if byte < 0x80 then return n, at end
	end
end

-- field number -> list of values: integers, texts, and the four bytes of floats.
local function fields(s)
	local made, at = {}, 1
	while at <= #s do
		local key, value
		key, at = varint(s, at)
		if key & 7 == 0 then
			value, at = varint(s, at)
		elseif key & 7 == 2 then
			local n
			n, at = varint(s, at)
			value, at = s:sub(at, at + n - 1), at + n
			assert(#value == n)
		else
			assert(key & 7 == 5)
			value, at = s:sub(at, at + 3), at + 4
		end
		local list = made[key >> 3] or {}
		list[#list + 1], made[key >> 3] = value, list
	end
	return made
end

local w = tensor {{1.5, -2}, {0.25, 3}, {4, 5}}
local function f(self, a) return a:matmul(self.w:t()):leakyrelu(0.5) end
local g = out.graph(f, tensor.zeros(1, 2), {parts = {w = w}})

local function attributes(node)
	local list = {}
	for i, text in ipairs(node[5] or {}) do list[i] = fields(text) end
	return list
end

it('writes model, graph, nodes and values', function()
	local model = fields(out.bytes(g))
	print(model[1][1], model[2][1], #model[8], fields(model[8][1])[2][1])  --> 8 quoll 1 17
	local graph = fields(model[7][1])
	local names = {}
	for i, text in ipairs(graph[1]) do
		local n = fields(text)
		names[i] = n[4][1] .. ':' .. n[2][1] .. ':' .. n[3][1]
	end
	print(table.concat(names, ' '))  --> Transpose:t1:t1 MatMul:matmul1:matmul1 LeakyRelu:leakyrelu1:leakyrelu1
	local act = fields(graph[1][3])
	print(table.concat(act[1], ' '), attributes(act)[1][1][1], ('<f'):unpack(attributes(act)[1][2][1]), attributes(act)[1][20][1])  --> matmul1 alpha 0.5 1
	local perm = attributes(fields(graph[1][1]))[1]
	print(perm[1][1], table.concat(perm[8], ' '), perm[20][1])  --> perm 1 0 7
	local value = fields(graph[11][1])
	local type = fields(fields(value[2][1])[1][1])
	local dims = fields(type[2][1])[1]
	print(value[1][1], type[1][1], fields(dims[1])[2][1], fields(dims[2])[1][1], fields(graph[12][1])[1][1])  --> input 1 batch 2 leakyrelu1
end)

it('writes tensors as raw data, little-endian', function()
	local graph = fields(fields(out.bytes(g))[7][1])
	local t = fields(graph[5][1])
	print(table.concat(t[1], ' '), t[2][1], t[8][1], ('<ffffff'):unpack(t[9][1]))  --> 3 2 1 w 1.5 -2.0 0.25 3.0 4.0 5.0 25
end)

it('puts large tensors into a file beside the model', function()
	local big = tensor.arange(1, 512):to 'float32':view(2, 256)
	local two = out.graph(function(self, a) return a:linear(self.w):linear(self.v) + self.s end, tensor.zeros(1, 256),
		{parts = {w = big:view(2, 256), v = tensor.ones(300, 2), s = tensor.ones(300)}})
	local path, r = out.file(two, {external = true})
	local graph, list = fields(fields(exported.text_of(path))[7][1]), {}
	for _, text in ipairs(graph[5]) do
		local t = fields(text)
		local place = {}
		for _, pair in ipairs(t[13] or {}) do place[fields(pair)[1][1]] = fields(pair)[2][1] end
		assert(not t[9] and t[14][1] == 1)
		assert(place.location == path:match '[^/]+$' .. '.data')
		list[#list + 1] = place.offset .. '+' .. place.length
	end
	print(table.concat(list, ' '))  --> 0+2048 2048+2400 4480+1200
	local data = exported.text_of(path .. '.data')
	print(#data, ('<f'):unpack(data, 5))  --> 5680 2.0 9
	assert(tostring(r):find 'external data')
	local y = _G.graph.load(path):run(tensor.ones(1, 256))
	assert((y - two:run(tensor.ones(1, 256))):abs():max():item() == 0)
	os.remove(path)
	os.remove(path .. '.data')
end)

it('writes empty tensors and those without axes', function()
	local h = out.graph(function(self, a) return a * self.s, self.e end, tensor.zeros(1, 2), {parts = {s = tensor {2.5}:select(1, 1), e = tensor.zeros(0, 3)}})
	local graph = fields(fields(out.bytes(h))[7][1])
	local sizes = {}
	for _, text in ipairs(graph[5]) do
		local t = fields(text)
		sizes[#sizes + 1] = t[8][1] .. ' ' .. table.concat(t[1] or {}, ',') .. ' ' .. #t[9][1]
	end
	table.sort(sizes)
	print(table.concat(sizes, '; '))  --> e 0,3 0; s  4
end)
