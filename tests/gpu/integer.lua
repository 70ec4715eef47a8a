-- SPDX-License-Identifier: MIT
-- Elementwise ops of codes on a device: the codes and scales of the CPU, by the kernel codes.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'

local function check(name, a, b)
	local found
	for _, row in ipairs(quant.log()) do
		if row.op == name:match '%a+' then
			assert(row.path == 'integer' and row.kernel == 'codes', ('%s: %s %s'):format(name, row.path, tostring(row.reason)))
			found = true
		end
	end
	assert(found, name)
	local p, q = a:qparams(), b:qparams()
	assert(a:dtype() == b:dtype() and same(a:codes(), b:codes()) and same(p.scale, q.scale), name)
	assert(not p.zero_point or same(p.zero_point, q.zero_point), name)
end

it('has the codes of the CPU', function()
	local a, b = tensor.randn(20, 30):quantize 'uint8', tensor.randn(30):quantize 'int8'
	local x, y = a:to(D), b:to(D)
	for _, op in ipairs {'add', 'sub', 'mul'} do
		for _, out in ipairs {'uint8 scale=0.05 zero_point=90', 'int8 scale=0.07', 'int16 scale=0.001'} do
			local want = a[op](a, b, {out = out})
			quant.log 'reset'
			local got = x[op](x, y, {out = out})
			check(op .. ' ' .. out, want, got)
		end
	end
	local want = a:add(b, {out = 'uint8 scale=0.05 zero_point=90', act = 'relu'})
	quant.log 'reset'
	check('add relu', want, x:add(y, {out = 'uint8 scale=0.05 zero_point=90', act = 'relu'}))
	want = a:relu()
	quant.log 'reset'
	local r = x:relu()
	check('relu', want, r)
	print(r:device() == D, r:quantized())  --> true	true
end)

it('leaves to the host what it does not take', function()
	local a = tensor.randn(4, 8):quantize 'int8'
	local x = a:to(D)
	assert(same(a:add(a, {out = 'int8'}):codes(), x:add(x, {out = 'int8'}):codes())) -- the host finds the scale
	assert(same(a:relu {out = 'int8 scale=0.1'}:codes(), x:relu {out = 'int8 scale=0.1'}:codes()))
	assert(same(a:exp {out = 'uint8 scale=0.1'}:codes(), x:exp {out = 'uint8 scale=0.1'}:codes()))
	assert(same(a:add(a, {out = {dtype = 'int8', scale = 0.1, rounding = 'single'}}):codes(),
		x:add(x, {out = {dtype = 'int8', scale = 0.1, rounding = 'single'}}):codes()))
end)
