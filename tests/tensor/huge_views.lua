-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Sizes that overflow are refused, also of empty tensors; views of one element with up to 2^63 - 1 elements work.
local function refused(x, method, ...)
	local ok, message = pcall(x[method], x, ...)
	assert(not ok, 'not refused')
	return message
end
local one, none = tensor.ones(1, 1), tensor.zeros(0)
print(refused(one, 'expand', 1 << 32, 1 << 32))  --> expand: wanted sizes whose product is below 2^63, got (4294967296, 4294967296)
print(refused(one, 'expand', 4, (1 << 62) + 1))  --> expand: wanted sizes whose product is below 2^63, got (4, 4611686018427387905)
print(refused(one, 'expand', (1 << 62) + 1, 4))  --> expand: wanted sizes whose product is below 2^63...
print(refused(one, 'expand', 1 << 31, 1 << 31, 2))  --> expand: wanted sizes whose product is below 2^63...
print(refused(none, 'view', 0, 1 << 62, 1 << 62))  --> view: wanted sizes whose product is below 2^63...
print(refused(none, 'reshape', 1 << 62, 0, 2))  --> reshape: wanted sizes whose product is below 2^63...
print(refused(tensor.zeros(1, 1, 0), 'expand', (1 << 61) + 1, 8, 0))  --> expand: wanted sizes whose product is below 2^63...

-- what ops would make
local wide, tall = one:expand(1, 1 << 40), one:expand(1 << 40, 1)
print(refused(wide, 'add', tall))  --> add: wanted sizes whose product is below 2^63, got (1099511627776, 1099511627776)
print(refused(wide, 'tile', 1 << 22, 2))  --> tile: wanted sizes whose product is below 2^63...
print(refused(wide, 'tile', 1 << 10, 2))  --> ...memory...
print(refused(one:expand(1, math.maxinteger), 'pad', 1 << 60, 1 << 60))  --> tensor: shape (1, 9223372036854775807) of float32...
local top = one:expand(1 << 61, 2)
print(select(2, pcall(tensor.cat, {top, top, top, top})))  --> cat: wanted sizes whose product is below 2^63...
print(refused(wide, 'clone'))  --> clone: out of memory...

-- legal ones
local x = one:expand(1 << 31, 1 << 31)
print(x:nelem(), x:nbytes(), one:expand(1, math.maxinteger):nbytes())  --> 4611686018427387904	9223372036854775807	9223372036854775807
print(x:select(1, -1):narrow(1, 5, 2), x:t():nelem(), x[1 << 30][7]:item())  --> float32(2) 1 1 4611686018427387904 1.0
local lines = select(2, tostring(x):gsub('\n', ''))
print(lines, tostring(x):match '^[^\n]*')  --> 7	float32(2147483648, 2147483648)
local q = tensor{{1}, {2}}:quantize 'uint8/1':expand(2, 1 << 61)
print(select(2, tostring(q):gsub('\n', '')), q[2][1 << 60]:item())  --> 2	2.0
local empty = none:view(0, 1 << 61, 3)
print(empty, empty:sum():item())  --> float32(0, 2305843009213693952, 3) 0.0
print(refused(empty, 'fake', 'int8/2'))  --> fake: out of memory...
print(refused(none:view(0, 1 << 58, 3), 'fake', 'int8/2'))  --> ...memory...

-- one element without axes
print(tensor{5}:reshape(), select('#', tensor{5}:view():size()), tensor.ones(1, 1):reshape{}:item())  --> 5 0 1.0
print(refused(tensor{1, 2}, 'reshape'))  --> reshape: wanted sizes that hold the 2 elements of (2), got ()

-- Of large quantized tensors only what is shown is decoded: the same text.
for _, spec in ipairs{'int8', 'uint8', 'int4/1', 'int8/2', 'uint4:32', 'int16', 'binary', {bits = 4, scheme = 'log'}, 'uint8/1', 'int8:16'} do
	local y = tensor.randn(64, 96):quantize(spec)
	for _, z in ipairs{y, y:t()} do
		assert(tostring(z):match '\n(.*)' == tostring(z:dequantize()):match '\n(.*)', tostring(spec))
	end
end

-- what has no element, or several, is not copied to one without axes
local single = tensor{7}:squeeze()
print(refused(single, 'copy_', tensor.zeros(4, 0)))  --> copy_: wanted one element, got (4, 0)
print(refused(single, 'copy_', tensor{1, 2}))  --> copy_: wanted one element, got (2)
print(single:copy_(tensor{{5}}):item())  --> 5.0
