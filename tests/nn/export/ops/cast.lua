-- SPDX-License-Identifier: MIT
-- labels: full
-- Casts in exported C: half to even, saturating, nan is 0.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
local x = tensor {0.5, 1.5, -0.5, -2.5, 126.5, 127.5, -128.5, 255.5, 32767.5, -32768.5, 65535.5, 2147483520, 2147483648, -2147483648, 9.3e18, -9.3e18,
	-9.223372e18, 1 / 0, -1 / 0, 0 / 0, -0.0, 1e-45, 8388607.5, 16777217}:view(1, 24)
local list = {}
for _, dtype in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'bool'} do
	list['float to ' .. dtype] = function(_, a) return a:to(dtype) end
	list[dtype .. ' to float'] = function(_, a) return a:to(dtype):to 'float32' end
	for _, other in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'bool'} do
		list[dtype .. ' to ' .. other] = function(_, a) return a:to(dtype):to(other) end
	end
end
list['codes to floats'] = function(_, a) return a:quantize {dtype='int16', scale=0.5}:to 'float32' * 2 end
for _, spec in ipairs {{dtype='int4', scale=0.5}, {dtype='uint4', scale=0.5, zero_point=7}, {dtype='binary', scale=1}} do
	list['codes of ' .. spec.dtype .. ' to int32'] = function(_, a) return a:quantize(spec):codes():to 'int32' end
end
list['nothing to do'] = function(_, a) return a:to('float32'):to 'cpu' * 2 end
exported.functions(list, x)
it('packed types are refused', function()
	local g = exported.of(function(_, a) return a:to 'int4' end, x)
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...wanted a type of whole bytes, got float32 to int4
end)
