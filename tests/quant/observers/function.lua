-- SPDX-License-Identifier: MIT
-- Functions as observers: what they get, what they may return, how long they live, and errors in them.
local seen
local function half(h, s)
	seen = {h = h, s = s}
	return h.lo / 2, h.hi / 2
end
local x = tensor{-4, 0, 1, 2}
print(x:quantize{dtype = 'int8', observer = half}:qparams().scale:item() * 127)  --> 2.0
assert(#seen.h.counts == 2048 and #seen.h.edges == 2049 and seen.h.edges[1] == -4 and seen.h.edges[2049] == 2)
local sum = 0
for _, c in ipairs(seen.h.counts) do sum = sum + c end
assert(math.abs(sum - 4) < 1e-9 and seen.h.count == 4 and seen.h.mean == -0.25 and seen.s.dtype == 'int8')

local calls = 0
local q = tensor{{1, 2}, {3, 40}}:quantize{dtype = 'int8', axis = 1, observer = function(h) calls = calls + 1; return 0, h.hi end}
print(calls, (q:qparams().scale[2] * 127):item())  --> 2 40.0

local o = quant.observer{dtype = 'uint8', observer = function(h) return h.lo, h.hi / 4 end}
collectgarbage()
collectgarbage()
print(o:update(tensor{0, 8}):update(tensor{-1}):range())  --> -1.0 2.0
print(o)  --> observer uint8@function: 3 values in 2 batches
print(type(quant.spec(o.spec).observer))  --> function

local function refused(f) return select(2, pcall(x.quantize, x, {dtype = 'int8', observer = f})) end
print(refused(function() return 1 end))  --> ...observer: function: wanted two numbers lo, hi, got number and nil
print(refused(function() return 2, 1 end))  --> ...wanted two finite numbers lo <= hi, got 2 and 1
print(refused(function() return 0, 1 / 0 end))  --> ...wanted two finite numbers lo <= hi, got 0 and inf
print(refused(function() error 'my own' end))  --> ...observer: function: ...my own
print(refused(function(h) return h.nothing.at end))  --> ...attempt to index a nil value...
print(pcall(quant.spec, 'int8@function'))  --> false ...observer: wanted the function itself...
it('may quantize itself, also in a coroutine', function()
	local inner = function(h) return h.lo, h.hi end
	local outer = function(h)
		return h.lo, coroutine.wrap(function() return tensor{h.hi}:quantize{dtype = 'int8', observer = inner}:dequantize():item() end)()
	end
	assert(math.abs(x:quantize{dtype = 'uint8', observer = outer}:qparams().scale:item() * 255 - 6) < 1e-5)
end)
