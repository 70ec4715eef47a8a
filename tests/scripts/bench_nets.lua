-- SPDX-License-Identifier: MIT
-- labels: quick
-- scripts/bench_nets.lua: the graph of a network for other programs: nodes whose operands are there, and all tensors.
it('writes a network', function()
	local folder = os.tmpname()
	os.remove(folder)
	os.execute('mkdir ' .. folder)
	assert(os.execute('exec "/proc/$PPID/exe" scripts/bench_nets.lua resnet8 2 ' .. folder))
	local tensors = tensor.load(folder .. '/resnet8.safetensors')
	local text = io.open(folder .. '/resnet8.json'):read 'a'
	os.execute('rm -r ' .. folder)
	print(#tensors['.input'], #tensors['.output'], #tensors['.calibration'])  --> 2 2 64
	local known, count = {}, 0
	for name in pairs(tensors) do known[name] = true end
	for name in text:gmatch '"name": "([^"]+)"' do known[name] = true end
	for inputs in text:gmatch '"inputs": %[(.-)%]' do
		for name in inputs:gmatch '"([^"]+)"' do
			assert(known[name], name)
			count = count + 1
		end
	end
	assert(count > 40 and text:find '"op": "conv2d"', count)
	print(select(3, os.execute 'exec "/proc/$PPID/exe" scripts/bench_nets.lua resnet8 2>/dev/null'))  --> 2
end)

it('calls a network as a module and as a graph, with the same bits', function()
	local nets = dofile 'scripts/bench_nets.lua'
	for _, way in ipairs {'float32', 'int8'} do
		local y, z = nets.call('resnet8', way, 2)(), nets.call('resnet8', way, 2, true)()
		assert(y:size(1) == 2 and (y - z):abs():max():item() == 0, way)
	end
end)
