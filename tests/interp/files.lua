-- SPDX-License-Identifier: MIT
-- tensor.load and tensor.save as Lua sees them; the formats have tests of their own in tests/tensor/io.
local file = os.tmpname()
local x, q = tensor{{1, 2}, {3, 4}}, tensor{1, -0.5}:quantize 'int8'

it('keeps one tensor and several by name', function()
	tensor.save(file .. '.npy', x)
	assert(tensor.load(file .. '.npy'):error(x).max == 0)
	for _, ending in ipairs {'.npz', '.safetensors'} do
		tensor.save(file .. ending, {x = x, y = x:t()})
		local t = tensor.load(file .. ending)
		assert(t.x:error(x).max == 0 and t.y:error(x:t()).max == 0 and t.z == nil)
		tensor.save(file .. ending, {})
		assert(next(tensor.load(file .. ending)) == nil)
		tensor.save(file .. ending, x)
		local _, only = next(tensor.load(file .. ending))
		assert(only:error(x).max == 0)
	end
	tensor.save(file .. '.safetensors', {q = q})
	local back = tensor.load(file .. '.safetensors').q
	assert(back:qparams().scale:item() == q:qparams().scale:item() and back:error(q).max == 0)
end)

it('writes the same bytes whatever the order of the table', function()
	local function bytes(names)
		local t = {}
		for name in names:gmatch '%S' do t[name] = x end
		tensor.save(file .. '.safetensors', t)
		local handle = io.open(file .. '.safetensors', 'rb')
		local text = handle:read 'a'
		handle:close()
		return text
	end
	assert(bytes 'a b c d e f g h' == bytes 'h g f e d c b a')
end)

it('deflates on request', function()
	local function size_of(options)
		tensor.save(file .. '.npz', {x = tensor.zeros(10000)}, options)
		local handle = io.open(file .. '.npz', 'rb')
		local n = handle:seek 'end'
		handle:close()
		return n
	end
	assert(size_of() > 40000 and size_of{compress = true} < 2000 and size_of{compress = false} > 40000)
	assert(tensor.load(file .. '.npz').x:nelem() == 10000)
end)

it('follows the order of a file', function()
	local t = {}
	for _, name in ipairs {'c', 'a', 'b'} do t[name] = x end
	tensor.save(file .. '.npz', t)
	local back = tensor.load(file .. '.npz')
	local function order(list)
		local names = {}
		for name, value in pairs(list) do
			assert(list[name] == value)
			names[#names + 1] = name
		end
		return table.concat(names, ' ')
	end
	assert(order(back) == 'a b c' and #back == 3)
	back.b, back.z, back.k = nil, x, x
	assert(order(back) == 'a c k z' and #back == 4)
	tensor.save(file .. '.safetensors', back)
	assert(order(tensor.load(file .. '.safetensors')) == 'a c k z')
	for name in pairs(back) do back[name] = nil end
	assert(#back == 0 and next(back) == nil)
end)

it('prints what a file holds', function()
	tensor.save(file .. '.safetensors', {weight = x, ['layer.bias'] = q})
	local text = tostring(tensor.load(file .. '.safetensors'))
	assert(text:find '^2 tensors, 22 bytes\n' and text:find('  weight      float32(2, 2)', 1, true), text)
	local many = {}
	for i = 1, 100 do many['t' .. i] = x end
	tensor.save(file .. '.npz', many)
	assert(tostring(tensor.load(file .. '.npz')):find '… %(40 more%)$')
end)

-- The published files; figures by NumPy and Pillow.
local sums = {
	{'mnist/train-images-idx3-ubyte.gz', 1567298545, 60000}, {'mnist/train-labels-idx1-ubyte.gz', 267236, 60000},
	{'mnist/t10k-images-idx3-ubyte.gz', 264923200, 10000}, {'mnist/t10k-labels-idx1-ubyte.gz', 44434, 10000},
	{'images/camera.png', 33832495, 512}, {'images/chelsea.png', 46802357, 300},
}
for _, entry in ipairs(sums) do
	it('loads ' .. entry[1], function()
		local path, why = data.find(entry[1])
		if not path then skip(why) end
		local t = tensor.load(path)
		assert(t:dtype() == 'uint8' and t:size(1) == entry[3])
		assert(t:sum():item() == entry[2], t:sum():item())
	end)
end

local weights = {
	{'resnet20-cifar10', 97, 271098, 139.78264955982075}, {'resnet8-cifar10-mlperf-tiny', 48, 78666, 42286.801465312004},
	{'resnet8-int8-tflite-params', 94, 79097, 571824.0269555614},
}
for _, entry in ipairs(weights) do
	it('loads ' .. entry[1], function()
		local path, why = data.find('weights/' .. entry[1] .. '.safetensors')
		if not path then skip(why) end
		local t, n, sum = tensor.load(path), 0, 0
		for _, w in pairs(t) do
			n = n + w:nelem()
			sum = sum + w:to('float64'):sum():item()
		end
		assert(#t == entry[2] and n == entry[3])
		assert(math.abs(sum - entry[4]) < 1e-9 * entry[4], sum)
	end)
end

it('writes the data of a published file as they were', function()
	local path, why = data.find 'weights/resnet20-cifar10.safetensors'
	if not path then skip(why) end
	local t = tensor.load(path)
	tensor.save(file .. '.safetensors', t)
	local a, b = assert(io.open(path, 'rb')), assert(io.open(file .. '.safetensors', 'rb'))
	local function tensors(handle) -- the bytes behind the header
		local n = ('<I8'):unpack(handle:read(8))
		handle:seek('set', 8 + n)
		local text = handle:read 'a'
		handle:close()
		return text
	end
	assert(tensors(a) == tensors(b)) -- both lie in the order of the names, all float32
end)

tensor.load()                              --> error: load: file: wanted a file name, got nil
tensor.load ''                             --> error: load: file: wanted a file name, got ''
tensor.load 'a\0.npy'                      --> error: load: file: wanted a file name, got one with a zero byte
tensor.load 'none.npy'                     --> error: load: 'none.npy': cannot open: No such file or directory
tensor.load 'tests/interp/files.lua'       --> error: wanted a file name that ends in one of .npy .npz .safetensors .idx
tensor.save('x.npy')                       --> error: save: wanted a tensor or a table of named tensors, got nil
tensor.save(3, x)                          --> error: save: file: wanted a file name, got 3
tensor.save('x.npz', {x})                  --> error: save: wanted names as keys, as in {w=x}, got 1
tensor.save('x.npz', {a = 3})              --> error: save: a: wanted a tensor, got 3
tensor.save('x.npz', {a = x}, {comp = 1})  --> error: save: unknown option 'comp'; did you mean 'compress'?; known: compress
tensor.save('x.npy', {a = x, b = x})       --> error: wanted one tensor without a name, got 2 named ones
tensor.save('x.npy', q)                    --> error: use .safetensors
tensor.save('x.jpg', x)                    --> error: wanted a file name that ends in one of .npy .npz .safetensors .png
tensor.save('/none/x.npy', x)              --> error: cannot open the directory: No such file or directory
os.execute('rm -f ' .. file .. '*')

it('saves pictures as .png, which load as they were', function()
	local file = os.tmpname() .. '.png'
	for _, dtype in ipairs {'uint8', 'uint16'} do
		for _, size in ipairs {{3, 5}, {3, 5, 2}, {7, 4, 3}, {3, 5, 4}, {1, 1}, {2, 300, 3}} do
			local n = 1
			for _, k in ipairs(size) do n = n * k end
			local x = (tensor.arange(0, n - 1) * (dtype == 'uint8' and 3 or 997)):view(size)
			x = (x % (dtype == 'uint8' and 256 or 65536)):to(dtype)
			tensor.save(file, x)
			local y = tensor.load(file)
			assert(y:dtype() == dtype and y:eq(x):all():item() and table.concat({y:size()}, ' ') == table.concat(size, ' '))
		end
	end
	local x = tensor.randint {5, 4, 3, high = 255}:to 'uint8'
	tensor.save(file, x:permute(2, 1, 3):narrow(1, 2, 2))
	assert(tensor.load(file):eq(x:permute(2, 1, 3):narrow(1, 2, 2)):all():item())
	local function refused(t)
		local ok, message = pcall(tensor.save, file, t)
		assert(not ok)
		return message:gsub('^.-: png: ', '')
	end
	print((refused(tensor.rand(3, 3))))  --> wanted uint8 or uint16, got float32(3, 3); of values from 0 to 1: (x * 255):to 'uint8'
	print((refused(tensor.ones(3, 8, 8):to 'uint8')))  --> wanted an image (h, w) or (h, w, channels) with 2 to 4 channels and sides of 1 to 1000000, got (3, 8, 8); channels come last: x:permute(2, 3, 1)
	print((refused(tensor.zeros(0, 4):to 'uint8')))  --> wanted an image...got (0, 4)
	print((refused(tensor.ones(2, 2):quantize 'uint8')))  --> wanted uint8 or uint16, got uint8(2, 2) quantized; save :codes() or :dequantize()
	assert(tensor.load(file):size(1) == 2, 'what was there stays')
	os.remove(file)
end)
