-- SPDX-License-Identifier: MIT
-- Fashion-MNIST: read from files made here, in the published layout.
-- labels: once
local with_data = dofile 'tests/tools/scratch.lua'.with_data
local function run(folder, code) return (with_data(folder, code):gsub('\n$', '')) end

it('reports which files are not there', function()
	local text = run('/nowhere', "print(select(2, pcall(data.fashion, {split='test'})))")
	assert(text:find 'data.fashion: 2 of 2 files not there' and text:find '4,422,102 bytes' and text:find 'put into /nowhere', text)
end)

it('reads the files of the published layout', function()
	local folder = os.tmpname()
	os.execute(('rm %s && mkdir -p %s/fashion'):format(folder, folder))
	local images = assert(io.open(folder .. '/fashion/t10k-images-idx3-ubyte', 'wb'))
	images:write(string.pack('>I4I4I4I4', 0x803, 10000, 28, 28), ('\255'):rep(784), ('\0'):rep(9999 * 784))
	images:close()
	local labels = assert(io.open(folder .. '/fashion/t10k-labels-idx1-ubyte', 'wb'))
	labels:write(string.pack('>I4I4', 0x801, 10000), '\9', ('\0'):rep(9999))
	labels:close()
	local text = run(folder, "ds = data.fashion{split='test'} " ..
		[[print(#ds, ds.classes[ds.y[1]:item()], ds.classes[ds.y[2]:item()], ds.x[1]:mean():item(), ds.x[2]:mean():item(), ds.name)]])
	os.execute('rm -r ' .. folder)
	assert(text == '10000\tboot\tT-shirt\t1.0\t0.0\tFashion-MNIST test', text)
end)

if not data.find 'fashion/train-images-idx3-ubyte.gz' then skip 'fashion: its files are not here' end
print(#data.fashion(), #data.fashion {split = 'validation'}, #data.fashion {split = 'test'})  --> 55000 5000 10000
