-- SPDX-License-Identifier: MIT
-- Quantized tensors in .safetensors: every format comes back as it was, and a crafted file is refused in one line.
-- labels: once
local FOLDER = os.tmpname()
os.remove(FOLDER)
local FILE = FOLDER .. '.safetensors'

local SPECS = {'int8', 'uint8/1', 'int4:32', 'binary/1', 'int8 log', 'int8/1 bits=8,4,2,8,4,2', 'int4:32+min', 'uint3:16+min', 'int8:32+min', 'uint8:32 bits=7',
	'int8 scaling=pow2', 'mxfp4 scaling=even', 'fp8_e4m3 saturate=false', 'fp6_e2m3/1', 'fp6_e3m2:32', 'nf4:32', 'mxfp4/1', 'int2', 'uint3', 'int5', 'uint6/1',
	'float8_e4m3', 'float8_e5m2', 'float16',
	'nf4:64:4', 'int4:32:4', 'fp8_e4m3:16:256', {bits = 7}, 'int8/1 bits=7', 'uint8:32+min bits=7', 'int2:32:2'}
for _, f in ipairs(quant.formats()) do SPECS[#SPECS + 1] = f.name end

local function same(a, b, what)
	assert(a:dtype() == b:dtype() and tostring(a:spec()) == tostring(b:spec()), what)
	local x, y = a:to 'float32', b:to 'float32'
	if a:quantized() then
		x, y = a:dequantize(), b:dequantize()
		assert(a:codes():eq(b:codes()):all():item(), what .. ': codes')
		assert(tostring(a:qparams()) == tostring(b:qparams()), what .. ': params')
		b:check()
	end
	assert(x:eq(y):all():item(), what .. ': values')
end

local function try(list, name, f)
	local good, view = pcall(f)
	if good then list[name] = view end
end

it('every format and its views come back', function()
	local x = tensor.randn(6, 256)
	local views = 0
	for _, spec in ipairs(SPECS) do
		local q = x:quantize(spec)
		local list = {q = q, ['w::scales'] = q}
		try(list, 'rows', function() return q:narrow(1, 2, 3) end)
		try(list, 'row', function() return q[4] end)
		try(list, 't', function() return q:t() end)
		try(list, 'columns', function() return q:narrow(2, 65, 64) end)
		try(list, 'three', function() return q:view(3, 2, 256) end)
		tensor.save(FILE, list)
		local back = tensor.load(FILE)
		for name, view in pairs(list) do
			same(view, back[name], ('%s %s'):format(q:quantized() and q:spec() or spec, name))
			views = views + 1
		end
		for name in pairs(back) do assert(list[name], name) end
	end
	assert(views > 4 * #SPECS)
end)

-- Rows of packed codes end with bits of other elements in a view.
it('views of packed rows that end within a byte', function()
	for _, spec in ipairs {'binary', 'int2', 'uint3', 'int4', 'uint5', 'fp6_e2m3'} do
		local q, tried = tensor.randn(3, 40):quantize(spec), 0
		for n = 33, 39 do
			local list = {}
			try(list, 'rows', function() return q:narrow(2, 1, n) end)
			try(list, 'row', function() return q[2]:narrow(1, 1, n) end)
			list.whole = q
			tensor.save(FILE, list)
			local back = tensor.load(FILE)
			for name, view in pairs(list) do
				same(view, back[name], ('%s %s of %d'):format(spec, name, n))
				tried = tried + 1
			end
		end
		assert(tried > 7, spec)
	end
end)

it('a file of one tensor, a model, and the other formats', function()
	local q = tensor.randn(4, 64):quantize 'nvfp4'
	tensor.save(FILE, q)
	same(q, tensor.load(FILE).tensor, 'one')
	local ok, why = pcall(tensor.save, FOLDER .. '.npz', {q = q})
	assert(not ok and why:find 'wanted a plain tensor, got a quantized one', why)
	os.remove(FOLDER .. '.npz')
end)

---------------------------------------------------------------- files of this test

local function read() return io.open(FILE, 'rb'):read 'a' end

local function write(text)
	local file = io.open(FILE, 'wb')
	file:write(text)
	file:close()
end

local function header_of(text)
	local n = string.unpack('<I8', text)
	return text:sub(9, 8 + n), text:sub(9 + n)
end

-- The file of q with other text in its header, or other data; the reason of its refusal.
local function refused(q, from, to, change)
	tensor.save(FILE, {w = q})
	local header, data = header_of(read())
	local new, n = header, 1
	if from then
		local at, stop = header:find(from, 1, true)
		n, new = at and 1 or 0, at and header:sub(1, at - 1) .. to .. header:sub(stop + 1)
	end
	assert(n == 1, from)
	new = new .. (' '):rep(-#new % 8)
	write(string.pack('<I8', #new) .. new .. (change and change(data) or data))
	local good, why = pcall(function() return tensor.load(FILE).w end) -- other tensors of the file may be read
	if good then return 'loaded' end
	assert(not why:find '\n', why)
	return why:match "tensor '.-': (.*)" or why
end

local function expect(why, wanted) assert(why:find(wanted, 1, true), ('wanted %s, got %s'):format(wanted, why)) end

it('unknown words, versions and formats', function()
	local q = tensor.randn(4, 64):quantize 'nvfp4'
	expect(refused(q, 'version=2', 'version=4'), 'version 2 or 3 (a newer Quoll may have written it), got \'4\'')
	expect(refused(q, 'version=2', 'version=3'), 'all 18 words of version 3, one is missing')
	expect(refused(q, 'overflow=0', 'overflow=0 rows=channels'), 'all 17 words of version 2, one is not one of them')
	expect(refused(q, 'version=2', 'version=x'), "got 'x'")
	expect(refused(q, 'version=2 ', ''), 'one is missing')
	expect(refused(q, 'version=2', 'version=2 version=2'), 'every word once')
	expect(refused(q, 'overflow=0', 'overflow=0 colour=1'), "a newer Quoll may have written it), got 'colour'")
	expect(refused(q, 'overflow=0', 'overflow=2'), 'a whole number from 0 to 1')
	expect(refused(q, 'overflow=0', 'overflow=1'), 'wanted overflow=0')
	expect(refused(q, ' overflow=0', ''), 'all 17 words of version 2')
	expect(refused(q, 'format=nvfp4', 'format=nvfp5'), "a known format (a newer Quoll may have written it), got 'nvfp5'")
	expect(refused(q, 'format=nvfp4', 'format=-'), 'wanted a format beside the scheme grid')
	expect(refused(q, 'format=nvfp4', 'format=nf4'), 'scale: wanted float32, got quantized uint8')
	expect(refused(q, 'format=nvfp4', 'format=mxfp4'), 'wanted blocks of 32 for the format mxfp4')
	expect(refused(q, 'format=nvfp4', 'format=fp8_e4m3'), 'wanted the scheme grid in uint8 for the format fp8_e4m3')
	expect(refused(q, 'format=nvfp4', 'format=ternary'), 'wanted the scheme absmean in int2')
	expect(refused(q, 'scaling=exact', 'scaling=best'), "a known rule of scales (a newer Quoll may have written it), got 'best'")
	expect(refused(tensor.randn(4):quantize 'int8', 'inf=0', 'inf=0 version=2 format=- scaling=exact overflow=1'), 'wanted overflow=0')
	expect(refused(tensor.randn(4):quantize 'int8', 'inf=0', 'inf=0 version=2 format=- scaling=exact overflow=0'), 'loaded')
end)

it('ranges and numbers that no quantizer makes', function()
	local q = tensor.randn(4, 64):quantize 'nvfp4'
	expect(refused(q, 'hi=15', 'hi=255'), 'wanted the codes of scheme grid')
	expect(refused(q, 'bits=4', 'bits=3'), 'with 3 bits')
	expect(refused(q, 'lo=0', 'lo=-1'), 'wanted the codes of scheme grid')
	expect(refused(q, '"w::scale":', '"v::scale":'), "the note of a tensor in the file, there is none")
	expect(refused(q, '"w::scale::scale"', '"w::scale::other"'), "wanted a tensor 'w::scale::scale', the file has none")
	-- the outer scale is the first of the data, as it has the largest elements
	for _, bad in ipairs {-1, 0 / 0, 1 / 0, -1 / 0} do
		expect(refused(q, nil, nil, function(data) return string.pack('<f', bad) .. data:sub(5) end), 'scale: wanted finite numbers')
	end
	-- codes of FP8 scales: 0x7f is NaN, 0xb8 is -1; packed codes follow them
	for _, bad in ipairs {'\x7f', '\xb8'} do
		expect(refused(q, nil, nil, function(data) return data:sub(1, -2) .. bad end), 'scale: wanted finite numbers')
	end
	local e8 = tensor.randn(4, 64):quantize 'mxfp4'
	expect(refused(e8, nil, nil, function(data) return data:sub(1, -2) .. '\xff' end), 'scale: wanted finite numbers above 0, got nan')
	expect(refused(e8, '"F8_E8M0"', '"F8_E5M2"'), 'scale: wanted float8_e8m0, got float8_e5m2')
	expect(refused(e8, '"F8_E8M0"', '"U8"'), 'scale: wanted float8_e8m0, got uint8')
	local m = tensor.randn(4, 64):quantize 'int4:32+min'
	expect(refused(m, '"w::minimum"', '"w::maximum"'), 'minimum: wanted one per scale for the scheme minimum, got none')
	expect(refused(m, nil, nil, function(data) return data:sub(1, 30) .. '\x00\x7e' .. data:sub(33) end), 'minimum: wanted finite numbers, got nan')
	expect(refused(m, 'scheme=minimum', 'scheme=asymmetric'), 'minimum: wanted none for the scheme asymmetric')
	local nf = tensor.randn(4, 64):quantize 'nf4:16:4'
	expect(refused(nf, 'format=nf4', 'format=fp4_e2m1'), 'loaded') -- the same storage and scales
	expect(refused(nf, 'block=4 ', 'block=2 '), 'scale: wanted shape (4, 2), got (4, 1)')
	expect(refused(nf, 'format=dynamic8', 'format=fp8_e4m3'), 'minimum: wanted none for the scheme grid, got some')
	expect(refused(tensor.randn(4, 64):quantize 'ternary', nil, nil, function(data) return data:sub(1, -2) .. '\xaa' end), 'codes: wanted -1 to 1, got -2')
end)

it('codebooks', function()
	local q = tensor.randn(4, 64):quantize 'kmeans4'
	expect(refused(q), 'loaded')
	expect(refused(q, '"w::values"', '"w::other"'), 'values: wanted 16 numbers in float32, got none')
	expect(refused(q, 'format=kmeans4', 'format=nf4'), 'values: wanted none for the scheme grid, got some')
	expect(refused(tensor.randn(4, 64):quantize 'nf4', 'format=nf4', 'format=kmeans4'), 'values: wanted 16 numbers in float32, got none')
	expect(refused(q, '[16]', '[4,4]'), 'values: wanted 16 numbers in float32, got others')
	for _, bad in ipairs {0 / 0, 1 / 0, -1 / 0} do -- the values are the first of the data
		expect(refused(q, nil, nil, function(data) return string.pack('<f', bad) .. data:sub(5) end), 'values: wanted finite numbers')
	end
	expect(refused(q, nil, nil, function(data) return string.pack('<f', 0.5):rep(16) .. data:sub(65) end), 'values: wanted two different finite numbers')
end)

it('formats of GGUF', function()
	local x = tensor.randn(2, 256)
	for _, name in ipairs {'q4_0', 'q4_1', 'q8_0', 'iq4_nl', 'tq2_0', 'gguf.mxfp4', 'q2_k', 'q3_k', 'q4_k', 'q5_k', 'q6_k'} do
		local q = x:quantize(name)
		expect(refused(q), 'loaded')
		expect(refused(q, 'block=' .. q:qparams().block, 'block=64'), 'wanted blocks of')
		expect(refused(q, 'format=' .. name, 'format=q9_0'), 'a known format')
		expect(refused(q, 'scaling=', 'scaling=even scaling='), 'every word once')
	end
	local k = x:quantize 'q4_k'
	expect(refused(k, 'format=q4_k', 'format=q5_k'), 'wanted the scheme minimum in uint5 for the format q5_k')
	expect(refused(k, 'format=q4_k', 'format=q4_1'), 'wanted numbers of the format q4_1, got others')
	expect(refused(x:quantize 'q4_1', 'format=q4_1', 'format=q4_k'), 'wanted numbers of the format q4_k, got others')
	expect(refused(k, '"w::minimum"', '"w::maximum"'), 'the note of a tensor in the file, there is none')
	expect(refused(x:quantize 'q4_1', '"w::minimum"', '"w::maximum"'), 'minimum: wanted one per scale for the scheme minimum, got none')
	expect(refused(x:quantize 'q4_0', nil, nil, function(data) return '\x00\x7e' .. data:sub(3) end), 'scale: wanted finite numbers')
end)

it('scales of scales of scales', function()
	local q = tensor.randn(4, 64):quantize 'nvfp4'
	tensor.save(FILE, {w = q, ['w::scale::scale::x'] = q:qparams().scale})
	assert(tensor.load(FILE).w)
	-- a scale in place of the number under the scale of the scale
	local header, data = header_of(read())
	header = header:gsub('"w::scale::scale":', '"w::scale::number":'):gsub('w::scale::scale::x', 'w::scale::scale')
	header = header .. (' '):rep(-#header % 8)
	write(string.pack('<I8', #header) .. header .. data)
	expect(select(2, pcall(function() return tensor.load(FILE).w end)), 'scale: wanted plain numbers, got a quantized tensor')
end)

it('changed bytes are refused or give a tensor that checks', function()
	local loaded, other = 0, 0
	for _, spec in ipairs {'nvfp4', 'mxfp4', 'int4:32+min', 'nf4', 'kmeans4', 'ternary', 'fp8_e4m3/1', 'q8_0'} do
		tensor.save(FILE, {w = tensor.randn(4, 64):quantize(spec)})
		local text = read()
		for _ = 1, 100 do
			local at = math.random(9, #text)
			write(text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1))
			local good, list = pcall(tensor.load, FILE)
			if good then
				for _, t in pairs(list) do
					if type(t) == 'userdata' and t:quantized() then
						t:check()
						t:dequantize()
					end
				end
				loaded = loaded + 1
			else
				assert(not list:find '\n', list)
				other = other + 1
			end
		end
	end
	assert(loaded > 40 and other > 40, ('%d loaded, %d refused'):format(loaded, other))
	os.remove(FILE)
	os.remove(FOLDER)
end)
