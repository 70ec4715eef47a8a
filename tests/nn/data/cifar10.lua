-- SPDX-License-Identifier: MIT
-- CIFAR-10: partial sets, splits by place, damaged files; with files made here, and with the real ones.
-- labels: once
local with_data = dofile 'tests/tools/scratch.lua'.with_data
local function run(folder, code) return (with_data(folder, code):gsub('\n$', '')) end

local folder = os.tmpname()
os.execute(('rm %s && mkdir -p %s/cifar10'):format(folder, folder))
local function write(name, records, record)
	local f <close> = assert(io.open(('%s/cifar10/%s.bin'):format(folder, name), 'wb'))
	f:write(record:rep(records))
end
-- a record of class c whose planes are 10, 20, 30
local function record(c) return string.char(c) .. ('\10'):rep(1024) .. ('\20'):rep(1024) .. ('\30'):rep(1024) end

it('reports all files that are not there', function()
	local text = run(folder, 'print(select(2, pcall(data.cifar10)))')
	assert(text:find 'data.cifar10: 5 of 5 files not there' and text:find 'data_batch_5.bin.xz  %(30,730,000 bytes unpacked%)', text)
	text = run(folder, "print(select(2, pcall(data.cifar10, {split='test'})))")
	assert(text:find '1 of 1 files not there' and text:find 'cifar10/test_batch.bin.xz', text)
end)

it('takes a part of the batches and says so', function()
	write('data_batch_2', 10000, record(3))
	local text = run(folder, "ds = data.cifar10() print(#ds, ds.classes[ds.y[1]:item()], ds.x[1]:codes():view(3, 1024):max{axis=2}:totable()[3], ds.note)")
	assert(text == '10000\tcat\t30\tpartial: training batch 1, 3, 4, 5 of 5 not there', text)
	text = run(folder, "print(select(2, pcall(data.cifar10, {split='validation'})))")
	assert(text:find '1 of 1 files not there' and text:find 'data_batch_5', text)
	write('data_batch_5', 10000, record(7))
	text = run(folder, "print(#data.cifar10(), #data.cifar10{split='validation'}, #data.cifar10{split='all'}, " ..
		"data.cifar10{split='validation'}.note, #data.cifar10{limit=12})")
	assert(text == '15000\t5000\t20000\tnil\t12', text)
	write('test_batch_first1000', 1000, record(0))
	text = run(folder, "ds = data.cifar10{split='test'} print(#ds, ds.note)")
	assert(text == '1000\tpartial: the first 1000 of the 10000 test images', text)
end)

it('refuses damaged files', function()
	write('data_batch_2', 9999, record(3))
	local text = run(folder, 'print(select(2, pcall(data.cifar10)))')
	assert(text:find 'data_batch_2.bin' and text:find 'wanted 30730000 bytes', text)
	write('data_batch_2', 10001, record(3))
	text = run(folder, 'print(select(2, pcall(data.cifar10)))')
	assert(text:find 'more' and text:find 'data_batch_2.bin', text)
	write('data_batch_2', 10000, record(10))
	text = run(folder, 'print(select(2, pcall(data.cifar10)))')
	assert(text:find 'wanted labels from 0 to 9, got 10', text)
end)
os.execute('rm -r ' .. folder)

if not (data.find 'cifar10/data_batch_5.bin.xz' and data.find 'cifar10/test_batch_first1000.bin.xz') then
	skip 'cifar10: its files are not here'
end

it('reads the first test images', function()
	local ds = data.cifar10 {split = 'test', limit = 1000}
	assert(#ds == 1000 and ds.classes[ds.y[1]:item()] == 'cat' and ds.classes[ds.y[4]:item()] == 'airplane')
	-- pixels of image 1 as NumPy reads them: the sum of each plane
	local sums = ds.x[1]:codes():view(3, 1024):to 'int64':sum {axis = 2}:totable()
	assert(table.concat(sums, ' ') == '112665 113426 106871', table.concat(sums, ' '))
end)

it('takes validation from the end of the last batch', function()
	local validation = data.cifar10 {split = 'validation'}
	assert(#validation == 5000)
	local counts = {}
	for c = 1, 10 do counts[c] = validation.y:eq(c):sum():item() end
	assert(table.concat(counts, ' ') == '493 488 479 519 475 529 488 485 532 512', table.concat(counts, ' '))
end)
