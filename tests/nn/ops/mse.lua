-- SPDX-License-Identifier: MIT
-- The mean squared error and its gradient; expected values by hand.
local y, t = tensor{1, 2, 5, grad=true}, tensor{1, 4, 4}
local loss = nn.mse(y, t)
print(loss:item() * 3)  --> 5.0
loss:backward()
print(y:grad() * 3)  --> float32(3)  0 -4 2
print(nn.mse(tensor{1, 2, dtype='int32'}, tensor{1, 3, dtype='int32'}))  --> 0.5000

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
refused('mse: wanted y and target of the same shape, got (3) and (2)', nn.mse, y, tensor{1, 2})
refused('mse: wanted at least one element, got shape (0)', nn.mse, tensor.zeros(0), tensor.zeros(0))
