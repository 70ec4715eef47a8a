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

tensor.load()                              --> error: load: file: wanted a name, got no value
tensor.load(nil)                           --> error: load: file: wanted a name, got nil
tensor.save('x.npy')                       --> error: save: wanted a tensor or a table of tensors by name, got no value
tensor.save('x.npz', {x})                  --> error: save: wanted tensors by name, as in {weight=t}, got a list
tensor.save('x.npz', {a = 3})              --> error: save: a: wanted a tensor, got number
tensor.save('x.npz', {a = x}, {comp = 1})  --> error: save: unknown option 'comp'; known: compress
tensor.save('x.npy', {a = x, b = x})       --> error: wanted one tensor without a name, got 2 named ones
tensor.save('x.npy', q)                    --> error: use .safetensors
os.execute('rm -f ' .. file .. '*')
