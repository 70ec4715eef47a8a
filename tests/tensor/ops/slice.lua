-- SPDX-License-Identifier: MIT
-- Ranges with steps: x:slice and x['a:b:c'], by plain Lua; empty ranges; assignment; codes.
local x = tensor{1, 2, 3, 4, 5}
print(x['1:5:2'], x['2::2'], x[':4:3'], x['::7'])  --> float32(3) 1 3 5 float32(2) 2 4 float32(2) 1 4 float32(1) 1
print(x['::-1'], x['-1:1:-2'], x['4:2:-1'], x[{{4, 2, -2}}])  --> float32(5) 5 4 3 2 1 float32(3) 5 3 1 float32(3) 4 3 2 float32(2) 4 2
print(x['3:2']:size(), x['6:5']:size(), x['1:0']:size(), x['2:3:-1']:size(), x['1:-6']:size())  --> 0 0 0 0 0
print(x:slice(1, 2), x:slice(1, -1, 1, -4), x:slice{axis=1, last=2})  --> float32(4) 2 3 4 5 float32(2) 5 1 float32(2) 1 2
print(tensor.zeros(0)['::2']:size(), tensor.zeros(0, 3)['::-1']:size())  --> 0 0 3

it('takes the indices of a loop, in every order', function()
	local y = tensor.arange(1, 7 * 5):view(7, 5):to 'float32'
	for _, v in ipairs{y, y:t():clone():t(), y:unsqueeze(3):expand(7, 5, 2):select(3, 2)} do
		for first = -7, 7 do
			for last = -7, 7 do
				for _, step in ipairs{1, 2, 3, 9, -1, -2, -8} do
					if first ~= 0 and last ~= 0 then
						local a, b, want = first < 0 and first + 8 or first, last < 0 and last + 8 or last, {}
						for i = a, b, step do want[#want + 1] = v[i] end
						local got = v[{{first, last, step}}]
						assert(got:size(1) == #want and got:dim() == 2)
						if #want > 0 then assert(got:eq(tensor.stack(want)):all():item()) end
					end
				end
			end
		end
	end
end)

it('is a view with a positive step', function()
	local y = tensor.zeros(5)
	y['1::2']:add_(1)
	y:slice(1, 2, 4, 2):add_(2)
	print(y)  --> float32(5) 1 2 1 2 1
end)

it('assigns', function()
	local y = tensor.zeros(3, 4)
	y['::2, ::-3'] = tensor{{1, 2}, {3, 4}}
	print(y)  --> float32(3, 4)
	          --> 2 0 0 1
	          --> 0 0 0 0
	          --> 4 0 0 3
	y['::-1'] = tensor{5, 6, 7, 8}
	print(y[1])  --> float32(4) 5 6 7 8
	y['3:1:-1, 1'] = tensor{1, 2, 3}
	print(y['::1, 1'])  --> float32(3) 3 2 1
	y['3:2'] = 9
	y['1:2:-1, ::-1'] = tensor.zeros(0, 4)
	print(y:max():item())  --> 8.0
	local q = tensor{1, 2, 3, 4}:quantize 'int8'
	q['4:1:-1'] = tensor{4, 3, 2, 1}:quantize 'int8'
	print(q:dequantize():round())  --> float32(4) 1 2 3 4
end)

it('every dtype', function()
	for _, dtype in ipairs{'float64', 'float16', 'bfloat16', 'int8', 'uint16', 'int32', 'int64', 'bool', 'int4', 'uint4'} do
		local y = tensor{1, 0, 1, 1, 0, 0, 1}:to(dtype)
		local got = y['::-2']
		assert(got:dtype() == dtype and got:to 'float32':eq(tensor{1, 0, 1, 1}):all():item(), dtype)
	end
end)

it('codes keep their params', function()
	local d = tensor.randn(6, 8)
	for _, spec in ipairs{'int8', 'int8/1', 'uint8/2', 'int4', 'int4/1', 'int8:2', 'nf4:4', 'q4_0'} do
		local good, q = pcall(d.quantize, spec == 'q4_0' and tensor.randn(6, 64) or d, spec)
		assert(good, q)
		for _, index in ipairs{'::2', '5:1:-2', '4:3'} do
			local part = q[index]
			assert(part:quantized() and part:dequantize():eq(q:dequantize()[index]):all():item(), spec .. ' ' .. index)
		end
	end
	local q = d:quantize 'int8/2'
	assert(q['::1, 7:2:-2']:dequantize():eq(q:dequantize()['::1, 7:2:-2']):all():item())
	print(q['::1, 7:2:-2']:qparams().scale:size())  --> 3
	local b = d:quantize 'int8:2'
	print(pcall(function() return b['::1, ::2'] end))  --> false ...index: wanted a view that keeps the blocks of 2 along axis 2 whole, got one that cuts them; use :dequantize() first
	print(pcall(function() return d:quantize 'int4'['::1, ::3'] end))  --> false ...index: wanted a view that keeps whole bytes of int4 together...
end)

it('graphs', function()
	local m = nn.module(function(_, a) local y = a['::1, ::-2'] * 2 y['::1, 1:3:2'] = a['::1, 2:1'] :sum(2, {keep=true}) return y end)
	local g = graph.trace(m, tensor.randn(2, 6))
	local v = tensor.randn(4, 6)
	assert(g:run(v):eq(m(v)):all():item())
	local turned = graph.trace(nn.module(function(_, a) return a['::-1'] end), tensor.randn(2, 6))
	assert(turned:run(v):eq(v:flip(1)):all():item())
end)

print(pcall(function() return x['0:3'] end))  --> false ...index: wanted an index from 1 to 5 (or negative, from the end), got 0
print(pcall(function() return x['1:6'] end))  --> false ...got 6
print(pcall(function() return x['1:5:0'] end))  --> false ...index: step: wanted a number other than 0, got 0
print(pcall(function() return x['1:5:2:1'] end))  --> false ...index: wanted a form like '1:10, :, 3, 9:1:-2', got '1:5:2:1'
print(pcall(function() return x[{{1, 2, 3, 4}}] end))  --> false ...index: wanted a range {first, last}, {first, last, step} or {}, got a list of 4
print(pcall(function() return x:slice(2) end))  --> false ...slice: axis: wanted an axis from 1 to 1...
print(pcall(function() return x:slice(1, 7, 9) end))  --> false ...slice: wanted an index from 1 to 5...got 7
