-- SPDX-License-Identifier: MIT
-- Section time: seconds on 2 threads, and the peak of the bytes of tensors.
local _, tools = ...

local function seconds(f)
	collectgarbage()
	local start = hw.clock()
	f()
	return hw.clock() - start
end

local function large(t)
	local n, h, u = 4096, nil, nil
	tensor.seed(1)
	local x = tensor.randn(4096, n)
	t:add {what = 'moments of 4096 inputs, 16384 tokens', goal = 30, once = true, of = function()
		return seconds(function()
			for _ = 1, 4 do
				local p = x:t():matmul(x):to 'float64'
				h = h and h:add_(p) or p
			end
		end)
	end}
	h = h + tensor.eye(n):to 'float64' * (0.01 * h:diag():mean():item())
	local w = tensor.randn(n, n)
	t:add {what = 'GPTQ 4096 x 4096, int4:128, from moments', goal = 10, once = true, of = function()
		return seconds(function()
			u = h:inversefactor()
			w:gptq(u, 'int4:128')
		end)
	end}
end

return function()
	local before <const> = tensor.threads()
	tensor.threads(2)
	local t = tools.table {unit = 'seconds'}
	local m = tools.stories()
	local texts = tools.own_texts(m, 1, 32)
	for _, one in ipairs {{'gptq', 3}, {{'mse', {'gptq', act = true}}}, {{'autoround', steps = 200}, 60}} do
		t:add {what = 'stories260K, int4:32, 32 texts', method = one[1], goal = one[2], once = true, of = function()
			collectgarbage()
			tensor.memory 'reset'
			local start = tensor.memory().now
			local took = seconds(function() m:quantize {mode = 'weight_only', weight = 'int4:32', method = one[1], data = texts, log = false} end)
			return took, ('peak %.1f MB'):format((tensor.memory().peak - start) / 1e6)
		end}
	end
	local good, r20, _, calibration = pcall(tools.images, 'resnet20')
	if good then
		t:add {what = 'ResNet20, int4/1, 256 images', method = 'gptq', goal = 10, once = true, of = function()
			return seconds(function() r20:quantize {mode = 'weight_only', weight = 'int4/1', method = 'gptq', data = calibration(1), log = false} end)
		end}
	end
	large(t)
	t:print()
	tensor.threads(before)
end
