-- SPDX-License-Identifier: MIT
-- Views: shapes, what they share, quant params that follow, what is refused.
local x = tensor{{1, 2, 3}, {4, 5, 6}}
print(x:view(3, 2)[3])  --> float32(2) 5 6
print(x:view(-1):size(), x:view(1, -1, 2):size())  --> 6 1 3 2
print(x:t():size())  --> 3 2
print(x:t():reshape(6))  --> float32(6) 1 4 2 5 3 6
print(pcall(function() return x:t():view(6) end))  --> false ...without a copy, got a view of shape (3, 2)...
print(pcall(function() return x:view(4) end))  --> false ...hold the 6 elements of (2, 3), got (4)
print(pcall(function() return x:view(-1, -1) end))  --> false ...one -1...
print(x:permute(2, 1):stride())  --> 1 3
print(pcall(function() return x:permute(1, 1) end))  --> false ...each axis once...
print(x:narrow(2, 2, 2)[1])  --> float32(2) 2 3
print(pcall(function() return x:narrow(2, 2, 3) end))  --> false ...length: wanted 0 to 2, got 3
print(x:select(-1, -1))  --> float32(2) 3 6
print(x:unsqueeze(1):size(), x:unsqueeze(-1):size())  --> 1 2 3 1
print(tensor.zeros(1, 3, 1):squeeze(1):size())  --> 3 1
print(pcall(function() return x:squeeze(1) end))  --> false ...size 1, got size 2
print(tensor{{1}, {2}}:expand(2, 3))  --> float32(2, 3)
                                      -->  1 1 1
                                      -->  2 2 2
print(pcall(function() tensor{1}:expand(3):add_(1) end))  --> false ...all distinct, got an expanded view
local parts = x:split(2, {axis = 2})
print(#parts, parts[1]:size(), parts[2]:size())  --> 2 2 2 1
x:view(6)[1] = 9
print(x[1][1]:item(), parts[1][1][1]:item())  --> 9.0 9.0

describe('quant params', function()
	local q = tensor{{1, 2, 3, 4}, {-50, 60, -70, 80}}:quantize 'int8/1'
	local function same(view, copy) assert(view:dequantize():metrics(copy).max == 0) end
	it('follow the axis', function()
		local d = q:dequantize()
		same(q:t(), d:t())
		same(q:unsqueeze(1), d:unsqueeze(1))
		same(q[2], d[2])
		same(q['1:2, 2:3'], d['1:2, 2:3'])
		same(q:view(2, 2, 2), d:view(2, 2, 2))
		same(q:t()['1:2, 2'], d:t()['1:2, 2'])
		same(q:unsqueeze(1):expand(3, 2, 4), d:unsqueeze(1):expand(3, 2, 4))
		assert(q:t():qparams().axis == 2 and q:unsqueeze(1):qparams().axis == 2 and q[2]:qparams().axis == nil)
		assert(q['2:2, :']:qparams().scale:size(1) == 1)
	end)
	it('follow blocks', function()
		local b = tensor{{1, 2, 3, 4, 5}, {-50, 60, -70, 80, 1}}:quantize 'int8:2'
		local d = b:dequantize()
		same(b:t(), d:t())
		same(b[2], d[2])
		same(b['1:2, 3:5'], d['1:2, 3:5'])
		same(b:view(2, 1, 5), d:view(2, 1, 5))
		assert(not pcall(function() return b['1:2, 2:3'] end))
		assert(select(2, pcall(function() return b['1:2, 1:3'] end)):find ':dequantize')
		assert(not pcall(b.select, b, 2, 1))
	end)
	it('refuse a shape that mixes the axis', function()
		local ok, message = pcall(q.view, q, 8)
		assert(not ok and message:find 'quantized axis 1' and message:find ':dequantize', message)
		assert(not pcall(q.view, q, 4, 2))
	end)
	it('stay with packed types in whole bytes', function()
		local p = tensor{{1, 2, 3, 4}, {5, 6, 7, -8}}:quantize 'int4'
		local d = p:dequantize()
		same(p:t(), d:t())
		same(p['1:2, 3:4'], d['1:2, 3:4'])
		same(p[2], d[2])
		assert(not pcall(function() return p['1:2, 2:3'] end))
		same(p:t():clone(), d:t())
	end)
end)
print(tensor.zeros(0, 3):narrow(1, 1, 0):size(), tensor.zeros(3):narrow(1, 4, 0):size())  --> 0 0
print(pcall(function() return tensor.zeros(3):narrow(1, 5, 0) end))  --> false ...narrow: start: wanted an index from 1 to 3...
it('reshape packs rows of another length anew', function()
	for _, dtype in ipairs{'int4', 'uint4', 'binary'} do
		local q = tensor.randn(2, 3, 5, 5):quantize{dtype = dtype}
		local plain = q:dequantize()
		for _, shape in ipairs{{2, 75}, {150}, {5, 30}, {50, 3}, {1, 150, 1}} do
			local r = q:reshape(table.unpack(shape))
			assert(r:dtype() == dtype and r:dequantize():eq(plain:reshape(table.unpack(shape))):all():item(), dtype)
			assert(q:permute(2, 1, 3, 4):reshape(table.unpack(shape)):dequantize():eq(plain:permute(2, 1, 3, 4):reshape(table.unpack(shape))):all():item())
		end
	end
	assert(tensor.zeros(0, 5):quantize 'int4':reshape(5, 0):nelem() == 0)
end)
