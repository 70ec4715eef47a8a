-- SPDX-License-Identifier: MIT
-- The peak of the bytes of tensors while something runs; that of what is around it holds.
local watch = debug.getregistry()['quoll.internal'].import 'interp/prelude/peak'
local function hold(n)
	local x <close> = tensor.zeros(n)
	return x:nelem()
end

tensor.memory 'reset'
local before = tensor.memory().now
hold(100000)
do
	local peak <close> = watch()
	hold(1000)
	print(peak:bytes() >= 4000 and peak:bytes() < 100000)  --> true
end
assert(tensor.memory().peak >= before + 400000)
pcall(function()
	local _ <close> = watch()
	hold(200000)
	error 'stop'
end)
assert(tensor.memory().peak >= before + 800000)
local from <close> = watch(before - 1000)
print(from:bytes() >= 1000)  --> true
