-- SPDX-License-Identifier: MIT
-- Small versions of the nets of the tutorials train on the device as on the CPU: the losses of five steps are those of the CPU, the same
-- bits where products are ordered (QUOLL_KERNEL=ref), and quantized nets give its results.
local D = os.getenv 'QUOLL_TEST_DEVICE'
if not D then skip 'cudaemu: the emulation is not built' end
local nets = dofile 'tests/tools/gpu_nets.lua'
local sanitizers = dofile 'tests/tools/sanitizers.lua'
local STEPS = sanitizers.under and 2 or 5 -- the second one uses what the first one made

-- The losses of some steps; batches and dropout are the same at each call.
local function losses(net, mode, device)
	local m, list = nets.trained(net, mode):to(device), {}
	local function loss(y, target)
		local value = nn.crossentropy(y, target)
		list[#list + 1] = value:item()
		return value
	end
	local data = net.batches(STEPS)
	tensor.seed(9)
	m:fit(data, {opt = net.opt(m), loss = loss, log = false})
	assert(#list == STEPS)
	return list
end

local before = hw.force 'ref'
for k, net in ipairs(nets) do
	for j, mode in ipairs {'float', 'train', 'qat'} do
		if not sanitizers.left_out(k + j, 2) then it(('%s in mode %s: the losses of the CPU'):format(net.name, mode), function()
			local wanted, got = losses(net, mode, 'cpu'), losses(net, mode, D)
			for i, value in ipairs(wanted) do
				assert(value == got[i], ('step %d: %.9g, on the CPU %.9g'):format(i, got[i], value))
			end
		end) end
	end
end
hw.force(before)

for _, net in ipairs(nets) do
	it(net.name .. ' with the fast products: nearly those', function()
		local wanted, got = losses(net, 'float', 'cpu'), losses(net, 'float', D)
		for i, value in ipairs(wanted) do
			assert(math.abs(value - got[i]) <= 2e-4 * value, ('step %d: %.9g, on the CPU %.9g'):format(i, got[i], value))
		end
	end)
end

-- Products of floats are ordered in dynamic and static models and graphs; those of weight_only are not.
for _, net in ipairs(nets) do
	for _, mode in ipairs {'dynamic', 'static', 'weight_only'} do
		it(('%s %s: the results of the CPU'):format(net.name, mode), function()
			local q, x = nets.quantized(net, mode), net.batches(1)[1][1]
			local wanted, wanted_there = q(x), graph.trace(q, x):run(x)
			q:to(D)
			x = x:to(D)
			for i, got in ipairs {q(x), graph.trace(q, x):run(x)} do
				local error = (i == 1 and wanted or wanted_there):error(got:to 'cpu').max
				assert(error == 0 or mode == 'weight_only' and error < 1e-4, ('%s: %g'):format(i == 1 and 'module' or 'graph', error))
			end
		end)
	end
end
