-- SPDX-License-Identifier: MIT
-- MNIST: counts, labels and mean of the published set, splits, and what absent and damaged files say.
-- labels: once
local have = data.find 'mnist/train-images-idx3-ubyte.gz' and data.find 'mnist/t10k-images-idx3-ubyte.gz'

local function refused(pattern, f, ...)
	local ok, message = pcall(f, ...)
	assert(not ok and tostring(message):find(pattern), message)
	return message
end

local with_data = dofile 'tests/tools/scratch.lua'.with_data

it('reports which files are not there, their size, where they are from and where to put them', function()
	local text = with_data('/nowhere', "print(select(2, pcall(data.mnist)))")
	for _, word in ipairs {'data.mnist: 2 of 2 files not there; nothing is downloaded; put into /nowhere:',
		'mnist/train%-images%-idx3%-ubyte.gz  %(9,912,422 bytes%)  https://', 'mnist/train%-labels%-idx1%-ubyte.gz  %(28,881 bytes%)'} do
		assert(text:find(word), text)
	end
end)

it('refuses files that are not MNIST', function()
	local folder = os.tmpname()
	os.execute(('rm %s && mkdir -p %s/mnist'):format(folder, folder))
	local function write(name, text)
		local f <close> = assert(io.open(folder .. '/mnist/' .. name, 'wb'))
		f:write(text)
	end
	local function try() return with_data(folder, "print(select(2, pcall(data.mnist, {split='test'})))") end
	write('t10k-labels-idx1-ubyte', string.pack('>I4I4', 0x801, 10000) .. ('\1'):rep(10000))
	write('t10k-images-idx3-ubyte', string.pack('>I4I4I4I4', 0x803, 2, 28, 28) .. ('\0'):rep(2 * 784))
	assert(try():find 'wanted 10000 images of 28 x 28, got uint8%(2, 28, 28%)', try())
	write('t10k-images-idx3-ubyte', string.pack('>I4I4I4I4', 0x803, 10000, 28, 28) .. ('\0'):rep(10000 * 784 - 1))
	assert(try():find 'wanted 7840000 bytes for shape %(10000, 28, 28%), got 7839999', try())
	write('t10k-images-idx3-ubyte', string.pack('>I4I4I4I4', 0x803, 10000, 28, 28) .. ('\0'):rep(10000 * 784))
	write('t10k-labels-idx1-ubyte', string.pack('>I4I4', 0x801, 10000) .. ('\1'):rep(9999) .. '\12')
	assert(try():find 'wanted labels from 0 to 9, got 12', try())
	os.execute('rm -r ' .. folder)
end)

refused("mnist: split: wanted 'train', 'validation', 'test' or 'all', got 'tests'; did you mean 'test'", data.mnist, {split = 'tests'})
refused("unknown option 'splt'", data.mnist, {splt = 'test'})

if not have then skip 'mnist: its files are not here' end

refused('limit: wanted 1 or more', data.mnist, {split = 'test', limit = 0})
local test, all = data.mnist {split = 'test'}, data.mnist {split = 'all'}
local train, validation = data.mnist(), data.mnist {split = 'validation'}
print(#test, #all, #train, #validation)    --> 10000 60000 55000 5000
print(test.x:dtype(), test.x[1]:size())    --> uint8 1 28 28
print(test.x:qparams().scale:item() * 255) --> 1.0
print(test.x:qparams().zero_point:item(), test.y:dtype()) --> 0 int64

-- label counts as published, of all 60000 and of the tests
local function counts(ds)
	local list = {}
	for class = 1, 10 do list[class] = ds.y:eq(class):sum():item() end
	return table.concat(list, ' ')
end
print(counts(all))  --> 5923 6742 5958 6131 5842 5421 5918 6265 5851 5949
print(counts(test)) --> 980 1135 1032 1010 982 892 958 1028 974 1009
print(('%.4f'):format(all.x:dequantize():mean():item()))  --> 0.1307

it('cuts validation off the end of the training images', function()
	local whole, first, last = all.x:codes(), train.x:codes(), validation.x:codes()
	assert(first:eq(whole:narrow(1, 1, 55000)):all():item() and last:eq(whole:narrow(1, 55001, 5000)):all():item())
	assert(validation.y:eq(all.y:narrow(1, 55001, 5000)):all():item())
end)

print(test)  --> MNIST test: 10000 samples
             -->   x  uint8(10000, 1, 28, 28) asymmetric
             -->   y  int64(10000)
             -->   10 classes: 0 1 2 3 4 5 6 7 8 9
print(#data.mnist {split = 'test', limit = 7})  --> 7
