-- SPDX-License-Identifier: MIT
-- quant_min, quant_max: fewer codes than the bits have; scale='pow2': the least power of two that clips nothing.
local x = tensor{-1, -0.5, 0.25, 1}
print(x:quantize{dtype = 'int8', quant_min = -63, quant_max = 63}:codes())  --> int8(4)  -63  -31   16   63
print(x:quantize 'int8 quant_max=15':spec(), x:quantize 'int8 quant_max=15':codes():max():item())  --> int8 quant_max=15 15
print(quant.spec('int8 quant_min=-128').min, quant.spec 'int8 quant_min=-127' == quant.spec 'int8')  --> -128 true
print(x:quantize 'uint8 quant_min=16 quant_max=235':codes())  --> uint8(4)   16   71  153  235
print(x:quantize 'uint8 symmetric quant_max=192':qparams().scale:item() == 1 / 64)  --> true
print(x:quantize 'int8 scale=pow2':qparams().scale:item(), quant.spec{dtype = 'int8', scale = 'pow2'})  --> 0.015625 int8 scaling=pow2
print((x * 1.1):quantize 'uint8 scale=pow2':qparams().scale:item(), (x * 1.1):quantize 'int4:2 scaling=pow2':qparams().scale:totable()[1])  --> 0.015625 0.25

it('bounds stay with the tensor: views, files, spec, params', function()
	local r = tensor.randn(16, 32)
	for _, s in ipairs {'int8/1 quant_min=-63 quant_max=63', 'uint8 quant_min=16 quant_max=235', 'int4:16 quant_max=5', 'int16 quant_min=-1000'} do
		local q = r:quantize(s)
		assert(tostring(q:spec()) == s, tostring(q:spec()))
		assert(r:quantize(q:spec()):codes():error(q:codes()).max == 0)
		local p = q:qparams()
		p.scale, p.zero_point = nil, nil
		assert(tostring(quant.spec(p)):gsub('^int4/2', 'int4') == s, tostring(quant.spec(p)))
		local path = os.tmpname() .. '.safetensors'
		tensor.save(path, {q = q})
		assert(tensor.load(path).q:spec() == q:spec())
		os.remove(path)
		local lo, hi = q:codes():min():item(), q:codes():max():item()
		assert(lo >= q:spec().min and hi <= q:spec().max, s)
	end
end)

it('integer results and the mse observer keep them', function()
	local a, w = tensor.randn(4, 32):quantize 'int8', tensor.randn(8, 32):quantize 'int8/1 quant_min=-31 quant_max=31'
	local y = a:linear(w, {out = 'int8 scale=0.25 quant_min=-8 quant_max=7'})
	assert(y:codes():min():item() >= -8 and y:codes():max():item() <= 7 and y:codes():max():item() > 4)
	local best = tensor.randn(1000):pow(3):quantize 'int8@mse quant_min=-7 quant_max=7'
	assert(best:codes():max():item() == 7)
end)

it('what has no meaning is refused', function()
	local function refused(s) return select(2, pcall(quant.spec, s)) end
	assert(refused 'int8 quant_max=200':find 'wanted %-128 <= quant_min < quant_max <= 127')
	assert(refused 'int8 quant_max=0':find 'around the zero point, got %-128 and 0')
	assert(refused 'int8 quant_min=5 quant_max=5':find 'got 5 and 5')
	assert(refused 'nf4 quant_max=3':find 'got nf4' and refused 'int8 log quant_max=3':find 'got log')
	assert(refused 'int8 scale=pow3':find "scale: wanted a number or a list, got 'pow3'")
	assert(refused 'uint8 scaling=floor':find 'wanted exact or pow2')
end)
