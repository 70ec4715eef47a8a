-- SPDX-License-Identifier: MIT
-- Specs: string and table form, defaults, round trip, what is refused.
-- labels: once
for _, text in ipairs{'int8', 'uint8', 'int8/1', 'int4:32', 'int4/2:16', 'binary/1', 'int16', 'uint4', 'float16', 'int3', 'uint2/1', 'int6:32',
	'uint5', 'float8_e4m3', 'float8_e5m2'} do
	assert(tostring(quant.spec(text)) == text, text)
	assert(quant.spec(tostring(quant.spec(text))) == quant.spec(text), text)
end
print(quant.spec{bits = 4}, quant.spec{bits = 5}, quant.spec{bits = 8}, quant.spec{bits = 12})  --> int4 int8 bits=5 int8 int16 bits=12
print(quant.spec('int8').scheme, quant.spec('uint8').scheme, quant.spec('binary').scheme)  --> symmetric asymmetric binary
print(quant.spec{dtype = 'int8', block = false, axis = 1})  --> int8/1

local function refused(spec) return select(2, pcall(quant.spec, spec)) end
print(refused 'int9')  --> ...dtype: wanted a dtype like int8...got 'int9'; did you mean 'int8'?
print(refused 'int7')  --> ...got 'int7'; did you mean 'int6'?
print(refused 'unit8')  --> ...got 'unit8'; did you mean 'uint8'?
print(refused 'int8@minmx')  --> ...observer: wanted one of minmax..., got 'minmx'; did you mean 'minmax'?
print(refused{scheme = 'symetric'})  --> ...scheme: wanted one of symmetric...got 'symetric'; did you mean 'symmetric'?
print(refused{bits = 8, observer = 'entrpy'})  --> ...got 'entrpy'; did you mean 'entropy'?
print(refused{dtype = 'int8', rounding = 'singel'})  --> spec: rounding: wanted one of float single double exact stochastic, got 'singel'; did you mean 'single'?
print(refused 'nothing')  --> spec: dtype: wanted a dtype like int8...or a format like nf4...got 'nothing'
print(pcall(tensor.quantize, tensor{1}, 'int9'))  --> false quantize: spec: dtype: wanted...
print(refused 'int8/')  --> ...wanted dtype[/axis][:block[:outer]][+min][@observer]...
print(refused 'int8/x')  --> ...got 'int8/x'
print(refused 'int8:0')  --> ...block: wanted 1 or more elements, got 0
print(refused 'int8/99')  --> ...axis: wanted 1 to 8...got 99
print(refused{dtyp = 'int8'})  --> ...unknown field 'dtyp'; did you mean 'dtype'?...
print(refused{bits = 17})  --> ...bits: wanted 2 to 16...
print(refused{bits = 1})  --> ...
print(refused{dtype = 'int8', bits = 9})  --> ...bits: wanted 2 to 8 for int8, got 9
print(refused{dtype = 'int8', scheme = 'symetric'})  --> ...scheme: wanted one of symmetric asymmetric log binary...
print(refused{dtype = 'int8', scale = -1})  --> ...scale: wanted a finite number > 0, got -1
print(refused{dtype = 'int8', zero_point = 3})  --> ...zero_point: wanted together with scale...
print(refused{dtype = 'uint8', scale = 1, zero_point = 300})  --> ...zero_point: wanted 0 to 255 for uint8, got 300
print(refused{dtype = 'int8', octaves = 3})  --> ...octaves: ...with the scheme log...
print(refused{dtype = 'float16', axis = 1})  --> ...nothing beside the dtype float16...
print(refused(7))  --> ...wanted a spec like...
print(refused{})  --> ...wanted a dtype or bits, got neither
it('priority fills in what is not given', function()
	local function text(dtype, o)
		o = o or {}
		o.dtype, o.priority = dtype, o.priority or 'accuracy'
		return tostring(quant.spec(o))
	end
	print(text 'int8', text 'uint8', text 'int16', text 'int4', text 'uint4', text 'binary')  --> int8/1@mse uint8/1@mse int16/1@mse int4:32@mse uint4:32@mse binary/1
	print(text('int4', {axis=1}), text('int8', {observer='entropy'}), text('int8', {block=64}))  --> int4/1@mse int8/1@entropy int8:64@mse
	print(text('int8', {scale=0.5, axis=false}):find '/1')  --> nil
	for _, dtype in ipairs{'int8', 'uint8', 'int16', 'int4', 'uint4', 'binary'} do
		assert(text(dtype, {priority='speed'}) == dtype)
		assert(quant.spec{dtype=dtype, priority='speed'} == quant.spec(dtype))
	end
	print(refused{dtype='int8', priority='acuracy'})  --> ...spec: priority: wanted one of accuracy speed, got 'acuracy'; did you mean 'accuracy'?
	print(refused{dtype='float16', priority='speed'})  --> ...priority: wanted none beside the dtype float16...
	print(refused{dtype='int8', priority=1})  --> ...priority...
end)
it('accuracy is more accurate: measured', function()
	tensor.seed(71)
	local uneven = tensor.randn(64, 256) * (tensor.randn(64, 1)):exp()
	for _, x in ipairs{tensor.randn(64, 256), uneven} do
		for _, scheme in ipairs{false, 'log'} do
			for _, dtype in ipairs(scheme and {'int8', 'int4'} or {'int8', 'uint8', 'int4', 'uint4'}) do
				local function sqnr(priority) return x:error(x:quantize{dtype=dtype, scheme=scheme or nil, priority=priority}).sqnr end
				assert(sqnr 'accuracy' > sqnr 'speed' + 0.05, dtype .. ' ' .. sqnr 'accuracy' .. ' ' .. sqnr 'speed')
			end
		end
	end
end)
it('keeps explicit tensors, whatever becomes of the table', function()
	local t = {dtype = 'int8', axis = 1, scale = tensor.full{3, value = 0.5}}
	local s = quant.spec(t)
	assert(s.scale:size(1) == 3)
	t.scale = nil
	collectgarbage()
	collectgarbage()
	local again = quant.spec(s)
	s = nil -- luacheck: ignore 311
	collectgarbage()
	local _ = tensor.full{3, value = 7}
	assert(again.scale[2]:item() == 0.5 and tensor.ones(3, 2):quantize(again):codes():eq(2):all():item())
end)

-- what codes can do
local function abilities(text)
	local s = quant.spec(text)
	print(s.affine, s.monotone, s.zero_code, s.offset, s.min, s.max)
end
abilities 'int8'                           --> true true true false -127 127
abilities 'int8 scale=0.5'                 --> true true true false -128 127
abilities 'uint8'                          --> true true true true 0 255
abilities 'uint8 symmetric'                --> true true true false 1 255
abilities 'int8 log'                       --> false true true false -127 127
abilities 'uint4 log bits=3'               --> false true true false 0 7
abilities 'binary'                         --> true true false false -1 1
abilities 'float16'                        --> false false false false nil nil
print(quant.spec{bits = {8, 4}, axis = 1}.min)  --> -127
