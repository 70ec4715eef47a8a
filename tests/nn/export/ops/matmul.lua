-- SPDX-License-Identifier: MIT
-- labels: full
-- matmul in exported C: codes by codes in batches, codes by a matrix that the graph holds, floats; every rounding.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(44)
local x = tensor.randn(1000, 2, 5, 6)
local A, B = {dtype='int8', scale=0.03, zero_point=4}, {dtype='uint8', scale=0.02, zero_point=100}
local OUT = {dtype='int8', scale=0.2, zero_point=-9}
local w, three = tensor.randn(6, 7), tensor.randn(2, 6, 3):quantize {dtype='int8', scale=0.02}
local columns, shifted = w:quantize 'int8/2', w:quantize 'uint8/2'
local list = {
	['to floats'] = function(_, a) return a:quantize(A):matmul(a:transpose(3, 4):quantize(B)) end,
	['16 bits'] = function(_, a) return a:quantize {dtype='int16', scale=1e-4}:matmul(a:transpose(3, 4):quantize(B), {out={dtype='int16', scale=1e-3}}) end,
	['by columns'] = function(_, a) return a:quantize(A):matmul(columns, {out=OUT}) end,
	['by columns with zero points'] = function(_, a) return a:quantize(B):matmul(shifted) end,
	['broadcast'] = function(_, a) return a:quantize(A):matmul(three, {out=OUT}) end,
	['a row'] = function(_, a) return a:select(3, 1):unsqueeze(3):quantize(A):matmul(a:transpose(3, 4):quantize(B), {out=OUT}) end,
}
for _, rule in ipairs {'float', 'single', 'double', 'exact'} do
	local out = {dtype='int8', scale=0.2, zero_point=-9, rounding=rule}
	list['to codes, ' .. rule] = function(_, a) return a:quantize(A):matmul(a:transpose(3, 4):quantize(B), {out=out}) end
end
exported.functions(list, x)
local one, columns_of, found = x:narrow(1, 1, 40), tensor.randn(6, 7), {} -- ranges that are found at run time
for _, input in ipairs {'uint8', 'int8', 'int16'} do
	local function add(name, f, parts)
		found[#found + 1] = {name=('range found, %s, %s'):format(name, input), x=one, single=true, graph=function()
			return (exported.of(f, one, parts):quantize {mode='dynamic', input=input})
		end}
	end
	add('both operands', function(_, a) return a:matmul(a:transpose(3, 4)) end)
	add('beside a matrix', function(self, a) return a:matmul(self.w) end, {w=columns_of})
end
exported.together(found, {alone=true})
exported.functions({floats = function(_, a) return a:matmul(a:transpose(3, 4)) end, ['floats by a matrix'] = function(_, a) return a:matmul(w) end}, x)

-- Of plain integers and of mixed operands: as einsum.
tensor.seed(48)
local mixed = {i=tensor.randint {4, 5, low=-9, high=9}:to 'int32', f=tensor.randn(4, 5)}
exported.functions({
	integers = function(self, a) return (a * 9):to('int32'):matmul(self.i) end,
	['small integers'] = function(_, a) return (a * 20):to('int8'):matmul((a * 20):to('int8'):transpose(2, 3)) end,
	vector = function(self, a) return (a * 9):to('int64'):matmul(self.i:select(2, 1)) end,
}, tensor.randn(20, 3, 4), mixed)
exported.functions({['codes and floats'] = function(self, a) return a:quantize {dtype='int8', scale=0.03}:matmul(self.f) end,
	['integers and floats'] = function(self, a) return a:matmul(self.i) end}, tensor.randn(20, 3, 4), mixed)
