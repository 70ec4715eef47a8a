-- SPDX-License-Identifier: MIT
-- method= of m:quantize on a device: the codes of the CPU but for few that products round otherwise, and everything stays there. Runs with every
-- device that QUOLL_TEST_DEVICE names (tests/CMakeLists.txt).
local D = os.getenv 'QUOLL_TEST_DEVICE'
if not D then skip 'cudaemu: the emulation is not built' end
tensor.seed(3)
local m = nn.Sequential {nn.RMSNorm(32), nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 16)}
local x = tensor.randn(60, 32) * tensor.randn(32):exp()

local function quantize(device, spec, method, mode)
	local copy, data = m:clone():to(device), {{x:to(device), x:to(device)}}
	if mode == 'static' then copy:calibrate(data, {log = false}) end
	return copy:quantize {mode = mode or 'weight_only', weight = spec, method = method, data = data, log = false}
end

for _, case in ipairs {{'uint4:16+min', 'hqq'}, {'int4:16', 'imatrix'}, {'uint4:16+min', 'imatrix'}, {'int4:16', 'seqmse'}, {'int4/1', 'seqmse'},
	{'mxfp4', 'seqmse'}, {'int8', 'equalize'}, {'int8/1', 'smoothquant', 'dynamic'}, {'int8/1', 'smoothquant', 'static'}, {'int4:16', 'awq'},
	{'int4:16', {'seqmse', 'gptq', 'biascorrect'}}} do
	it(('%s %s'):format(case[1], type(case[2]) == 'table' and case[2][1] or case[2]), function()
		local here, there = quantize('cpu', table.unpack(case, 1, 3)), quantize(D, table.unpack(case, 1, 3))
		assert(there:device() == x:to(D):device())
		for _, name in ipairs {'linear1', 'linear2'} do
			local same = here[name].weight:codes():eq(there[name].weight:codes():to 'cpu'):to 'float32':mean():item()
			assert(same > 0.98, ('%s: %g'):format(name, same))
		end
	end)
end
