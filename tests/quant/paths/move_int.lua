-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Ops that move elements, on codes: the values are those of the op on the decoded operand, and the codes are not changed.
tensor.seed(9)
local d = tensor.randn(6, 8, 32)
local ids, rows = tensor{5, 1, 1, -1, dtype='int64'}, tensor{{1, 2}, {6, -1}, dtype='int64'}
local ops = {
	gather = function(v) return v:gather(2, ids:view(1, 4, 1):expand(6, 4, 32)) end,
	gathernd = function(v) return v:gathernd(rows) end,
	['indexselect of axis 1'] = function(v) return v[ids] end,
	['indexselect of axis 2'] = function(v) return v[{{}, ids}] end,
	['indexselect by a matrix'] = function(v) return v[rows] end,
	repeatinterleave = function(v) return v:repeatinterleave(3, 2) end,
	['repeatinterleave of all'] = function(v) return v:repeatinterleave(2) end,
	flip = function(v) return v:flip(2, 3) end, roll = function(v) return v:roll(3, 2) end, ['roll of all'] = function(v) return v:roll(-5) end,
	['pad by mirroring'] = function(v) return v:pad{1, 2, 3, 3, mode='reflect'} end,
}

-- spec -> ops that decode
local one = {}
local by_first = {gather=true, gathernd=true, ['indexselect by a matrix']=true, ['repeatinterleave of all']=true, ['roll of all']=true, ['pad by mirroring']=true}
local by_second = {flip=true, roll=true}
for name in next, by_first do by_second[name] = true end
local by_last = {flip=true} -- blocks along the last axis
for name in next, by_first do by_last[name] = true end
for spec, decoded in pairs{int8=one, uint8=one, int16=one, int4=one, binary=one, ternary=one, ['int8 log']=one, ['int8/1']=by_first, ['int4/2']=by_second,
	['int8:2']=by_last, ['q4_0']=by_last, ['nvfp4']=by_last} do
	it(spec, function()
		local q = d:quantize(spec)
		for _, v in ipairs{q, q:permute(2, 1, 3):clone():permute(2, 1, 3)} do
			for name, op in next, ops do
				local got = op(v)
				assert(got:quantized() ~= (decoded[name] or false), spec .. ': ' .. name)
				assert((got:quantized() and got:dequantize() or got):eq(op(q:dequantize())):all():item(), spec .. ': ' .. name)
			end
		end
	end)
end
it('scales move with their axis', function()
	local q = d:quantize 'uint8/2'
	local p, got = q:qparams(), q[{{}, ids}]:qparams()
	assert(got.axis == 2 and got.scale:eq(p.scale[ids]):all():item() and got.zero_point:eq(p.zero_point[ids]):all():item())
	assert(q:repeatinterleave(2, 2):qparams().scale:eq(p.scale:repeatinterleave(2)):all():item())
	local m = d:quantize{dtype='int8', axis=1, bits=tensor{8, 4, 2, 8, 3, 5}}
	assert(m[ids]:dequantize():eq(m:dequantize()[ids]):all():item())
end)
it('the ledger says why an op decodes', function()
	print(d:quantize 'int8:2':flip(3):explain())  --> ...only codes with one scale, or with scales along axes that do not move...
	print(d:quantize 'int8/1'[rows]:explain())  --> ...only codes with one scale, or with scales along one axis that stays an axis...
	print(d:quantize 'int8/1':gathernd(rows):explain())  --> ...only codes with one scale...
end)
it('empty', function()
	local q = tensor.zeros(0, 3):quantize 'int8'
	print(q:flip(1):quantized(), q:roll(1):size(), q:repeatinterleave(2, 1):dtype())  --> true 0 int8
end)
