-- SPDX-License-Identifier: MIT
-- The text of a spec: whatever a spec is made of, it prints as a text that quant.spec reads back as an equal spec, and both
-- quantize to the same bits.
-- labels: once
local function refused(spec) return select(2, pcall(quant.spec, spec)) end

local seen = 0
local function same(t)
	local ok, s = pcall(quant.spec, t)
	if not ok then return false end
	local text = tostring(s)
	local back = quant.spec(text)
	assert(back == s and tostring(back) == text, text)
	seen = seen + 1
	return s
end

describe('every spec is read back from its text', function()
	local dtypes = {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16', 'binary', 'float16', false}
	local schemes = {false, 'symmetric', 'asymmetric', 'log', 'binary'}
	local grains = {{}, {axis=1}, {axis=-1}, {block=32}, {axis=2, block=7}}
	local observers = {{}, {observer='minmax'}, {observer='percentile', p=99.5}, {observer='average', momentum=0.1},
		{observer='entropy', bins=1024}, {observer='mse'}, {observer='adaptive', bins=4096}, {observer='percentile', p=99.99}}
	local bits = {false, 2, 3, 7, 12, {8, 4, 2}}
	local more = {{}, {octaves=7.25}, {rounding='single'}, {rounding='double'}, {rounding='exact'}, {priority='accuracy'}, {priority='speed'}}
	local numbers = {{}, {scale=0.1}, {scale=1e-30}, {scale=2}, {scale=0.1, zero_point=0}, {scale=0.25, zero_point=3},
		{scale=0x1.fffffep127}, {scale=tensor{0.1, 0.2, 1/3}}, {scale=tensor{0.5, 0.25, 3}, zero_point=tensor{0, 1, 2, dtype='int32'}},
		{scale=tensor{0.7}, zero_point=tensor{1}}, {scale=tensor{{0.1, 3}, {1e-9, 1e9}}},
		{scale=tensor{0.7}[1], zero_point=tensor{2, dtype='int8'}[1]}}
	local function both(...)
		local t = {}
		for _, part in ipairs {...} do for k, v in pairs(part) do t[k] = v end end
		return t
	end
	for _, dtype in ipairs(dtypes) do
		it(('of %s'):format(dtype or 'bits'), function()
			for _, scheme in ipairs(schemes) do
				for _, b in ipairs(bits) do
					local head = {dtype=dtype or nil, scheme=scheme or nil, bits=b or nil}
					for _, grain in ipairs(grains) do
						for _, observer in ipairs(observers) do
							for _, extra in ipairs(more) do same(both(head, grain, observer, extra)) end
						end
						for _, given in ipairs(numbers) do
							for _, extra in ipairs(more) do same(both(head, grain, given, extra)) end
						end
					end
				end
			end
		end)
	end
	it('and these were many', function() assert(seen > 10000, seen) end)
end)

it('quantizes to the same bits', function()
	tensor.seed(4)
	local x = tensor.randn(3, 40)
	for _, t in ipairs {{dtype='int8', scheme='asymmetric'}, {bits=3, axis=1}, {dtype='int8', scheme='log', octaves=5}, {bits={8, 4, 2}, axis=1},
		{dtype='uint8', axis=1, scale=tensor{0.1, 0.2, 0.3}, zero_point=tensor{3, 4, 5}}, {dtype='uint8', scale=0.1},
		{dtype='int4', block=32, scale=tensor{{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}}}, {dtype='int8', observer='percentile', p=90, bins=1024}} do
		local text = tostring(quant.spec(t))
		local a, b = x:quantize(t), x:quantize(text)
		assert(a:codes():to('int64'):eq(b:codes():to 'int64'):all():item() and a:qparams().scale:eq(b:qparams().scale):all():item(), text)
		assert(tensor.zeros {3, 40, quant=text}:qparams().scale:size() == tensor.zeros {3, 40, quant=t}:qparams().scale:size())
		assert(x:fake(text):eq(x:fake(t)):all():item(), text)
	end
end)

it('takes words in any order and any number of blanks', function()
	print(quant.spec '  int8/1   bits=4  asymmetric ', quant.spec 'int8/1 asymmetric bits=4')  --> int8/1 bits=4 asymmetric int8/1 bits=4 asymmetric
	print(quant.spec 'uint8 scale=.5 zero_point=3', quant.spec 'int8 priority=accuracy')  --> uint8 scale=0.5 zero_point=3 int8/1@mse
	print(quant.spec 'int8/1 scale=.5,.25', quant.spec 'int8:2 scale=1x2:.5,.25')  --> int8/1 scale=0.5,0.25 int8:2 scale=1x2:0.5,0.25
end)

it('refuses what is no spec, by name', function()
	print(refused 'int8 asymetric')  --> spec: wanted a scheme (symmetric asymmetric...) or key=value after the dtype, got 'asymetric'; did you mean 'asymmetric'?
	print(refused 'int8 bit=3')  --> spec: wanted one of bits quant_min...before '=', got 'bit'; did you mean 'bits'?
	print(refused 'int8 bits=3 bits=4')  --> spec: wanted bits once, got it twice
	print(refused 'int8 log asymmetric')  --> spec: wanted a scheme once, got it twice
	print(refused 'int8 bits=x')  --> spec: bits: wanted a whole number or a list, got 'x'
	print(refused 'int8 scale=')  --> spec: scale: wanted a number or a list, got ''
	print(refused 'int8 scale=nan')  --> spec: scale: wanted a finite number > 0, got nan
	print(refused 'int8 p=99')  --> spec: p: wanted together with the observer percentile...
	print(refused 'int8/1 scale=0.1,x')  --> spec: scale: wanted numbers like 0.1,0.2 or 2x2:1,2,3,4, got '0.1,x'
	print(refused 'int8/1 scale=2x2:0.1,2')  --> spec: scale: wanted numbers like...
	print(refused 'int8/1 scale=99999999999x9:0.1,2')  --> spec: scale: wanted numbers like...
	print(refused 'int8/1 scale=1000000x1000000:1')  --> spec: scale: wanted numbers like...
	print(refused 'int8/1 scale=2147483647x2147483647x2147483647:1')  --> spec: scale: wanted numbers like...
	print(refused 'uint8/1 scale=1,1 zero_point=1,2.5')  --> spec: zero_point: wanted numbers like...
	print(refused 'int8/1 bits=8,300')  --> spec: bits: wanted numbers like...
	print(refused 'log')  --> spec: dtype: wanted one of...got 'log'; the scheme 'log' follows the dtype: 'int8 log'
	print(refused 'int4@log')  --> spec: observer: wanted one of...got 'log'; the scheme 'log' follows the dtype: 'int4 log'
	print(refused 'asymmetric')  --> ...'int8 asymmetric'
	print(refused 'int8@function')  --> spec: observer: wanted the function itself...
end)
it('keeps long lists out of messages, and refuses those that it does not print', function()
	local s = quant.spec {dtype='int8', axis=1, scale=tensor.ones(5000)}
	print(#tostring(s) < 200, refused(tostring(s)))  --> true spec: scale: wanted numbers like...
	assert(quant.spec(tostring(quant.spec {dtype='int8', axis=1, scale=tensor.rand(4096) + 0.1})).scale:nelem() == 4096)
end)
it('keeps the lists of a text while it is used', function()
	local options = {3, 2, quant='uint8/1 scale=0.5,0.25,0.125 zero_point=1,2,3'}
	for _ = 1, 50 do
		local z = tensor.zeros(options)
		collectgarbage()
		assert(z:qparams().zero_point:totable()[3] == 3 and tensor.ones(3, 2):quantize(options.quant):codes():totable()[3][1] == 11)
	end
end)
