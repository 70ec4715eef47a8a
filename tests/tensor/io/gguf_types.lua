-- SPDX-License-Identifier: MIT
-- Types of tensors in .gguf: blocks of chosen bytes, whose values gguf-py 0.19 has decoded, come back with every bit; also
-- metadata of every type, and every tensor that is refused.
local FILE = os.tmpname() .. '.gguf'

local function write(bytes)
	local handle = assert(io.open(FILE, 'wb'))
	handle:write(bytes)
	handle:close()
	return FILE
end

local function read()
	local handle = assert(io.open(FILE, 'rb'))
	local bytes = handle:read 'a'
	handle:close()
	return bytes
end

-- A file; tensors are {name, {sizes as in the file}, type, bytes}, keys are packed.
local function gguf(tensors, keys)
	local parts, data = {'GGUF', string.pack('<I4I8I8', 3, #tensors, #keys), table.concat(keys)}, ''
	for _, t in ipairs(tensors) do
		parts[#parts + 1] = string.pack('<s8I4', t[1], #t[2])
		for _, size in ipairs(t[2]) do parts[#parts + 1] = string.pack('<I8', size) end
		parts[#parts + 1] = string.pack('<I4I8', t[3], #data)
		data = data .. t[4] .. ('\0'):rep(-#t[4] % 32)
	end
	local head = table.concat(parts)
	return head .. ('\0'):rep(-#head % 32) .. data
end

-- name, number, bytes, elements, offsets of float16, elements 1, 2, 18, the middle and 4, the last; sum of value i times 1 + i % 13, i from 0
local TYPES = {
	{'Q4_0', 2, 18, 32, {0}, {-0.299926758, 0.199951172, -0.0999755859, -0.699829102, -0.699829102}, -26.8934326171875},
	{'Q4_1', 3, 20, 32, {0, 2}, {1.32458496, 0.224853516, 1.0246582, 0.324829102, 0.924682617}, 292.6380615234375},
	{'Q5_0', 6, 22, 32, {0}, {0.899780273, -0.0999755859, 0, -0.599853516, 0.399902344}, -40.8900146484375},
	{'Q5_1', 7, 24, 32, {0, 2}, {1.82446289, 2.32434082, 0.324829102, 2.92419434, 2.72424316}, 611.060302734375},
	{'Q8_0', 8, 34, 32, {0}, {8.4979248, 12.1970215, -5.19873047, -7.69812012, -6.09851074}, -342.71630859375},
	{'Q2_K', 10, 84, 256, {80, 82}, {1.09973145, 2.19946289, 0.525146484, 0.525146484, 2.64990234}, 8820.205078125},
	{'Q3_K', 11, 110, 256, {108}, {-2.39941406, 3.19921875, -2.89929199, -11.9970703, 4.49890137}, 1338.0732421875},
	{'Q4_K', 12, 144, 256, {0, 2}, {49.3927002, 15.3010254, 21.4995117, 4.60107422, 65.7619629}, 110241.05493164062},
	{'Q5_K', 13, 176, 256, {0, 2}, {61.7896729, 30.7972412, 36.9957275, 114.652588, 51.588501}, 179451.509765625},
	{'Q6_K', 14, 210, 256, {208}, {12.9968262, -0, -32.9919434, -281.931152, 198.85144}, -1983.4156494140625},
	{'IQ4_NL', 20, 18, 32, {0}, {-3.49914551, 2.49938965, -0.999755859, -10.3974609, -10.3974609}, -294.128173828125},
	{'TQ1_0', 34, 54, 256, {52}, {-0.0999755859, -0.0999755859, 0, -0.0999755859, 0.0999755859}, -8.6978759765625},
	{'TQ2_0', 35, 66, 256, {64}, {-0.0999755859, -0.0999755859, 0.0999755859, 0, -0.0999755859}, -104.4744873046875},
	{'MXFP4', 39, 17, 32, {}, {0, 0.0234375, 0.0234375, 0.09375, -0.046875}, -0.1796875},
}
local HALVES = {'\x66\x2e', '\x9a\xb1'} -- 0.1, -0.175

-- Bytes that the type's writers can produce.
local function byte(name, i, within)
	local v = (i * 37 + 11 + i // 7) % 256
	if name == 'Q8_0' then return v == 128 and 1 or v end
	if name == 'TQ1_0' then
		v = v % 243
		return ((within >= 48 and v // 3 * 3 or v) * 256 + 242) // 243
	end
	if name ~= 'TQ2_0' then return v end
	local sum = 0
	for k = 0, 6, 2 do sum = sum | (v >> k & 3) % 3 << k end
	return sum
end

local function blocks_of(name, size, halves)
	local list = {}
	for i = 0, 2 * size - 1 do list[i + 1] = string.char(byte(name, i, i % size)) end
	for block = 0, 1 do
		for k, at in ipairs(halves) do
			for b = 1, 2 do list[block * size + at + b] = HALVES[k]:sub(b, b) end
		end
		if name == 'MXFP4' then list[block * size + 1] = string.char(120 + block) end
	end
	return table.concat(list)
end

for _, row in ipairs(TYPES) do
	it(row[1] .. ' has the values of gguf-py and keeps its bits', function()
		local name, id, size, n, halves, want, sum = table.unpack(row)
		local bytes = gguf({{'w', {2 * n}, id, blocks_of(name, size, halves)}, {'rows', {n, 1, 2}, id, blocks_of(name, size, halves)}}, {})
		local t = tensor.load(write(bytes))
		local x = t.w:dequantize():totable()
		for i, at in ipairs {0, 1, 17, n + 3, 2 * n - 1} do
			assert(math.abs(x[at + 1] - want[i]) <= 1e-6 * math.abs(want[i]), ('%d: %.9g'):format(at, x[at + 1]))
		end
		local found = 0
		for i, v in ipairs(x) do found = found + v * (1 + (i - 1) % 13) end
		assert(math.abs(found - sum) <= 1e-6 * math.abs(sum) + 1e-6, found)
		assert(t.rows:dequantize():view(2 * n):eq(t.w:dequantize()):all():item())
		assert(t.rows:size(1) == 2 and t.rows:size(3) == n)
		tensor.save(FILE, t)
		assert(read() == bytes)
		tensor.save(FILE, {rows = t.rows[2]}) -- a view
		assert(tensor.load(FILE).rows:dequantize():eq(t.rows[2]:dequantize()):all():item())
	end)
end

it('plain types', function()
	local bytes = gguf({{'f32', {2, 1}, 0, string.pack('<ff', 1.5, -2)}, {'f16', {2}, 1, '\0\x3e\0\xc0'}, {'bf16', {1}, 30, '\xc0\x3f'},
		{'f64', {1}, 28, string.pack('<d', 0.1)}, {'i8', {2}, 24, '\x80\x7f'}, {'i16', {1}, 25, '\0\x80'}, {'i32', {1}, 26, '\0\0\0\x80'},
		{'i64', {}, 27, '\0\0\0\0\0\0\0\x80'}, {'none', {0, 3}, 0, ''}}, {})
	local t = tensor.load(write(bytes))
	print(t.f32[1], t.f16, t.bf16)                  --> float32(2)   1.5000  -2.0000	float16(2)   1.5000  -2.0000	bfloat16(1)   1.5000
	print(t.f64:item(), t.i8, t.i16:item(), t.i32:item(), t.i64:item()) --> 0.1 int8(2)  -128 127 -32768 -2147483648 -9223372036854775808
	print(t.none:size(1), t.none:size(2))          --> 3 0
	tensor.save(FILE, t)
	assert(read() == bytes)
end)

local KEYS = {string.pack('<s8I4B', 'u8', 0, 200), string.pack('<s8I4b', 'i8', 1, -5), string.pack('<s8I4I2', 'u16', 2, 65535),
	string.pack('<s8I4i2', 'i16', 3, -300), string.pack('<s8I4I4', 'u32', 4, 4294967295), string.pack('<s8I4i4', 'i32', 5, -70000),
	string.pack('<s8I4f', 'f32', 6, 0.5), string.pack('<s8I4B', 'bool', 7, 1), string.pack('<s8I4s8', 'text', 8, 'a\0b'),
	string.pack('<s8I4I8', 'u64', 10, 1 << 40), string.pack('<s8I4i8', 'i64', 11, -(1 << 40)), string.pack('<s8I4d', 'f64', 12, 0.1),
	string.pack('<s8I4I4I8s8s8', 'texts', 9, 8, 2, '', 'xyz'), string.pack('<s8I4I4I8', 'none', 9, 8, 0),
	string.pack('<s8I4I4I8I4I4', 'u32s', 9, 4, 2, 7, 1 << 31), string.pack('<s8I4I4I8BBB', 'bools', 9, 7, 3, 0, 1, 2),
	string.pack('<s8I4I4I8ff', 'f32s', 9, 6, 2, 1, 2)}

it('metadata of every type', function()
	local _, m = tensor.load(write(gguf({}, KEYS)), {metadata = true})
	local order = {}
	for key in pairs(m) do order[#order + 1] = key end
	assert(table.concat(order, ' ') == 'u8 i8 u16 i16 u32 i32 f32 bool text u64 i64 f64 texts none u32s bools f32s' and #m == 17)
	print(m.u8, m.i8, m.u16, m.i16, m.u32, m.i32, m.f32)  --> 200 -5 65535 -300 4294967295 -70000 0.5
	print(m.bool, #m.text, m.u64, m.i64, m.f64)        --> true 3 1099511627776 -1099511627776 0.1
	print(#m.texts, m.texts[1], m.texts[2], #m.none)   --> 2  xyz 0
	print(m.u32s, m.bools, m.f32s)                      --> int64(2)  7 2147483648 bool(3)  false true true float32(2)  1 2
	tensor.save(FILE, {}, {metadata = m})
	local _, again = tensor.load(FILE, {metadata = true})
	for key, value in pairs(m) do
		if key == 'f64' then
			assert(math.abs(again.f64 - 0.1) < 1e-8) -- written as float32
		elseif type(value) == 'table' then
			assert(table.concat(again[key], '\0') == table.concat(value, '\0'))
		elseif type(value) == 'userdata' then
			assert(tostring(again[key]) == tostring(value), key)
		else
			assert(again[key] == value, key)
		end
	end
end)

local function refused(bytes, ...)
	local ok, message = pcall(tensor.load, write(bytes))
	assert(not ok and not message:find '\n', message)
	for _, part in ipairs {...} do assert(message:find(part, 1, true), message) end
end

it('names every tensor whose type has no format, in one error', function()
	local list = {{'a', {256}, 16, ('\0'):rep(66)}, {'b', {4}, 0, ('\0'):rep(16)}, {'c', {256}, 23, ('\0'):rep(136)}, {'d', {256}, 16, ('\0'):rep(66)},
		{'e', {8}, 77, ''}}
	refused(gguf(list, {}), "IQ2_XXS: 'a', 'd'; IQ4_XS: 'c'; type 77: 'e'")
	for i = 1, 200 do list[#list + 1] = {'blk.' .. i .. '.ffn_down.weight', {256}, 16, ('\0'):rep(66)} end
	refused(gguf(list, {}), "IQ2_XXS: 'a', 'd', 'blk.1.ffn_down.weight', ", 'more')
end)

it('bad data', function()
	refused(gguf({{'w', {32}, 8, '\0\x7e' .. ('\0'):rep(32)}}, {}), "'w': ", 'finite')            -- a NaN scale
	refused(gguf({{'w', {32}, 8, '\0\x3c\x80' .. ('\0'):rep(31)}}, {}), "'w': ", '-128')          -- a code that no writer makes
	refused(gguf({{'w', {256}, 35, '\xff' .. ('\0'):rep(65)}}, {}), "'w': ")
	refused(gguf({{'w', {48}, 8, ('\0'):rep(68)}}, {}), "'w': wanted rows of whole blocks of 32 for Q8_0, got 48 elements")
	refused(gguf({{'w', {8}, 0, ('\0'):rep(32)}, {'w', {8}, 0, ('\0'):rep(32)}}, {}), "'w' twice")
	refused(gguf({}, {KEYS[1], KEYS[2], KEYS[1]}), "'u8' twice")
end)

it('saves what GGUF has, and refuses the rest before a file is there', function()
	os.remove(FILE)
	local function bad(t, want, metadata)
		local ok, message = pcall(tensor.save, FILE, t, {metadata = metadata})
		assert(not ok and message:find(want, 1, true), message)
		assert(not io.open(FILE))
	end
	bad({w = tensor.ones(2, 3):to 'uint8'}, "'w': wanted floats, int8 to int64, or a format of GGUF")
	bad({w = tensor.ones(2, 32):quantize 'int8/1'}, "'w': wanted floats")
	bad({w = tensor.ones(2, 32):quantize('q8_0'):t()}, "'w': wanted floats")
	bad({w = tensor.ones(1, 1, 1, 1, 1)}, 'at most 4 axes')
	bad({[('n'):rep(64)] = tensor.ones(1)}, 'names of 1 to 63 bytes')
	bad({w = tensor.ones(1)}, 'general.alignment: wanted a power of two', {['general.alignment'] = 24})
	bad({w = tensor.ones(1)}, 'metadata: half: wanted integers, float32, float64 or bool', {half = tensor.ones(2):to 'float16'})
	bad({w = tensor.ones(1)}, 'metadata: key: wanted a number', {key = {1, 2}})
	local ok, message = pcall(tensor.save, FILE .. '.npz', {w = tensor.ones(1)}, {metadata = {a = 'b'}})
	assert(not ok and message:find('metadata: wanted a name that ends in', 1, true), message)
	tensor.save(FILE, {w = tensor.ones(2), v = tensor.ones(3)}, {metadata = {['general.alignment'] = 64}})
	assert(tensor.load(FILE).w:sum():item() == 2 and #read() == 64 * ((#read() + 63) // 64))
end)

it('the metadata of .safetensors are texts', function()
	local file = os.tmpname() .. '.safetensors'
	tensor.save(file, {w = tensor.ones(2, 32):quantize 'int8:32'}, {metadata = {format = 'pt', note = 'a "b"'}})
	local t, m = tensor.load(file, {metadata = true})
	print(m)  --> format = "pt"
	--> note = "a \"b\""
	assert(t.w:quantized())
	local ok, message = pcall(tensor.save, file, {w = tensor.ones(1)}, {metadata = {n = 1}})
	assert(not ok and message:find('metadata: n: wanted a text', 1, true), message)
end)

it('map=true: the same values, and writing leaves the file alone', function()
	local file, x = os.tmpname(), tensor.randn(64, 32)
	for _, ending in ipairs {'.gguf', '.safetensors'} do
		tensor.save(file .. ending, {x = x, h = x:to 'bfloat16', q = x:quantize 'q4_0', b = x:gt(0):to 'int8', small = tensor {1, 2}})
		local t, plain = tensor.load(file .. ending, {map = true}), tensor.load(file .. ending)
		for name, value in pairs(plain) do
			assert(t[name]:dtype() == value:dtype() and (t[name] - value):abs():max():item() == 0, name)
		end
		t.x:mul_(2)
		assert(t.x:eq(x * 2):all():item() and tensor.load(file .. ending).x:eq(x):all():item())
		tensor.save(file .. ending, {x = x + 1}) -- replaces the file, not its old bytes
		assert(t.h:eq(x:to 'bfloat16'):all():item())
		local view = t.h[3]
		t = nil -- luacheck: ignore 311
		collectgarbage()
		assert(view:eq(x:to('bfloat16')[3]):all():item())
	end
end)
