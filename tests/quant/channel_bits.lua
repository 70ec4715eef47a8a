-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Bits that differ from channel to channel: every channel has the codes that it would have on its own, whatever is done.
local function list(q) return table.concat(q:qparams().bits, ',') end
local function flat(a) return (a:quantized() and a:dequantize() or a:to 'float32'):contiguous():view(a:nelem()) end
local function same(a, b) return flat(a):eq(flat(b)):all():item() end
local BITS = {8, 4, 2, 3, 6, 5, 7}

tensor.seed(31)
local x = tensor.randn(7, 41) * 3

-- numpy: s = float32(max|x| / (2**(b-1) - 1)) per row, clip(rint(x / s), -(2**(b-1) - 1), 2**(b-1) - 1)
local y = tensor{{1, -0.5, 0.26}, {1, -0.5, 0.26}, {-0.9, 0.3, 1.4}}
print(y:quantize{bits = {8, 4, 2}, axis = 1}:codes())  --> int8(3, 3)
--> 127 -64 33
-->   7  -3  2
-->  -1   0  1

it('has the codes of each channel alone, for every dtype, scheme and axis', function()
	for _, dtype in ipairs {'int8', 'uint8', 'int16', 'uint16'} do
		for _, scheme in ipairs {'symmetric', 'asymmetric'} do
			for _, observer in ipairs {'minmax', 'mse', 'entropy', 'percentile'} do
				for axis, of in ipairs {x, x:t():contiguous()} do
					local q = of:quantize{dtype = dtype, scheme = scheme, bits = BITS, axis = axis, observer = observer}
					q:check()
					for i, b in ipairs(BITS) do
						local one = of:select(axis, i):contiguous():quantize{dtype = dtype, scheme = scheme, bits = b, observer = observer}
						local part = q:select(axis, i)
						assert(same(part:codes(), one:codes()), ('%s %s @%s axis %d channel %d'):format(dtype, scheme, observer, axis, i))
						assert(part:qparams().bits == b and part:qparams().max == one:qparams().max)
						assert(same(part:dequantize(), one:dequantize()))
					end
				end
			end
		end
	end
end)
it('packs where the widest channel has four bits', function()
	for axis, of in ipairs {x, x:t():contiguous()} do
		local bits = {4, 2, 3, 2, 4, 3, 4}
		local q = of:quantize{bits = bits, axis = axis}
		assert(q:dtype() == 'int4' and same(q:codes():to 'int8', of:quantize{dtype = 'int8', bits = bits, axis = axis}:codes()))
		assert(q:nbytes() == 21 + 11 + 16 + 11 + 21 + 16 + 21 + 7 * 4 + 7)
	end
end)
it('is the same for long rows, big tensors and more threads', function()
	local big, bits = tensor.randn(64, 9001), {}
	for i = 1, 64 do bits[i] = 2 + i % 7 end
	local rows, columns = big:quantize{bits = bits, axis = 1}, big:t():contiguous():quantize{bits = bits, axis = 2}
	assert(same(rows:codes(), columns:codes():t()))
	local most, least = rows:codes():max{axis = 2}:totable(), rows:codes():min{axis = 2}:totable()
	for i, b in ipairs(bits) do assert(math.max(most[i], -least[i]) == 2 ^ (b - 1) - 1, i) end
	local before = tensor.threads()
	tensor.threads(1)
	assert(same(big:quantize{bits = bits, axis = 1}:codes(), rows:codes()))
	tensor.threads(before)
end)
it('follows views', function()
	local q = x:quantize{bits = BITS, axis = 1}
	assert(list(q[{{2, 4}}]) == '4,2,3' and q[{{2, 4}}]:qparams().max == 7)
	assert(list(q:t()) == list(q) and q:t():qparams().axis == 2)
	assert(list(q:view(7, 41, 1)) == list(q) and q[3]:qparams().bits == 2)
	assert(q[{{2, 2}}]:qparams().bits == 4) -- one channel: one number
	assert(list(q:clone()) == list(q) and list(q:t():contiguous()) == list(q))
	local expanded = x:narrow(1, 2, 1):quantize{bits = {4}, axis = 1}:expand(5, 41)
	assert(expanded:qparams().bits == 4)
	assert(x:quantize{bits = {5, 5, 5, 5, 5, 5, 5}, axis = 1}:qparams().bits == 5)
	print(pcall(function() return q:view(41, 7) end))  --> false...wanted a shape that keeps the quantized axis 1 whole...
end)
it('goes through fake with the same bits, and its gradient', function()
	for _, spec in ipairs {{bits = BITS, axis = 1}, {bits = BITS, axis = 1, dtype = 'uint8'}, {bits = BITS, axis = 1, scale = tensor.rand(7) + 0.1}} do
		assert(same(x:fake(spec), x:quantize(spec):dequantize()))
	end
	local leaf = tensor{{3, 0.3}, {3, 0.3}, {3, 0.3}}:requires_grad_()
	leaf:fake{bits = {8, 4, 2}, axis = 1, scale = 0.5}:sum():backward() -- codes to 127, 7 and 1: 3.5 and 0.5
	print(leaf:grad())  --> float32(3, 2)
	--> 1 1
	--> 1 1
	--> 0 1
end)
it('multiplies exactly in integers', function()
	local w, a = x:quantize{bits = BITS, axis = 1}, tensor.randn(5, 41):quantize 'int8'
	quant.log 'reset'
	local got = a:linear(w)
	local rows = quant.log():where{op = 'linear'}
	assert(#rows == 1 and rows[1].path == 'int8')
	local sums = a:codes():matmul(w:codes():t()) -- int32, exact
	local scales = w:qparams().scale * a:qparams().scale
	assert(same(got, sums:to 'float32' * scales))
	assert(same(a:matmul(w:t()), got))
	local narrow = tensor.randn(7, 41):quantize{bits = {4, 2, 3, 2, 4, 3, 4}, axis = 1}
	assert(same(a:linear(narrow), a:codes():matmul(narrow:codes():to 'int8':t()):to 'float32' * (narrow:qparams().scale * a:qparams().scale)))
end)
it('convolves as 8 bits with the same codes do', function()
	local image = tensor.randn(2, 4, 9, 9):quantize 'uint8'
	local w = tensor.randn(7, 4, 3, 3):quantize{bits = BITS, axis = 1}
	local same_codes = w:dequantize():quantize{dtype = 'int8', axis = 1, scale = w:qparams().scale}
	assert(same(w:codes(), same_codes:codes()) and same_codes:qparams().bits == 8)
	quant.log 'reset'
	for _, options in ipairs {{}, {out = {dtype = 'uint8', scale = 0.1, zero_point = 128}}} do
		assert(same(image:conv2d(w, options), image:conv2d(same_codes, options)))
	end
	assert(#quant.log():where{op = 'conv2d', path = 'int8'} == 2 and #quant.log():where{path = 'fallback'} == 0)
end)
it('keeps the channels\' ranges when written in place and by relu', function()
	local q = x:quantize{bits = BITS, axis = 1}
	local scale = q:qparams().scale:view(7, 1)
	q:mul_(100)
	q:check()
	local most = q:codes():abs():max{axis = 2}:totable()
	for i, b in ipairs(BITS) do assert(most[i] == 2 ^ (b - 1) - 1) end
	assert(same(q:qparams().scale:view(7, 1), scale))
	assert(list(x:quantize{bits = BITS, axis = 1}:relu()) == table.concat(BITS, ','))
end)
it('is what an observer finds, batch by batch', function()
	for _, observer in ipairs {'minmax', 'mse', 'average'} do
		local spec = {bits = BITS, axis = 1, observer = observer}
		local o = quant.observer(spec)
		o:update(x)
		spec.scale = o:params().scale
		spec.observer = nil
		for i, b in ipairs(BITS) do
			local alone = quant.observer{bits = b, observer = observer, dtype = 'int8'}
			alone:update(x[i])
			assert(alone:params().scale:item() == spec.scale[i]:item(), observer)
		end
		assert(x:quantize(spec):check():spec() == quant.spec{bits = BITS, axis = 1})
	end
	local o = quant.observer{bits = BITS, axis = 1}
	print(pcall(o.update, o, tensor.randn(3, 4)))  --> false ...bits: wanted a number for each of the 3 channels of axis 1, got 7
end)
it('is an embedding\'s rows', function()
	local q = x:quantize{bits = BITS, axis = 1}
	quant.log 'reset'
	assert(same(q:embedding(tensor{3, 1, 7, dtype = 'int64'}), tensor.cat({q[{{3, 3}}], q[{{1, 1}}], q[{{7, 7}}]}, {axis = 1})))
	assert(#quant.log():where{op = 'embedding', path = 'fallback'} == 0)
end)
it('is saved and loaded, and a made-up file is refused', function()
	local file = os.tmpname() .. '.safetensors'
	local w, v = x:quantize{bits = BITS, axis = 1}, x:t():contiguous():quantize{bits = {4, 2, 3, 2, 4, 3, 4}, axis = 2, dtype = 'uint4'}
	tensor.save(file, {w = w, v = v})
	local back = tensor.load(file)
	for name, q in pairs{w = w, v = v} do
		assert(back[name]:spec() == q:spec() and same(back[name]:codes(), q:codes()) and same(back[name]:dequantize(), q:dequantize()))
	end
	assert(back['w::bits'] == nil)
	local f = assert(io.open(file, 'rb'))
	local bytes = f:read 'a'
	f:close()
	local function load_with(from, to)
		local first, last = assert(bytes:find(from, 1, true))
		f = assert(io.open(file, 'wb'))
		f:write(bytes:sub(1, first - 1), to, bytes:sub(last + 1))
		f:close()
		local ok, message = pcall(function() local t = tensor.load(file) return t.w, t.v end)
		return ok and 'loaded' or message
	end
	local function refuses(from, to, wanted)
		local message = load_with(from, to)
		assert(message:find(wanted, 1, true) and not message:find '\n', message)
	end
	local own = '\8\4\2\3\6\5\7'
	refuses(own, '\8\4\2\3\6\5\1', 'bits: wanted 2 to 8, got 1')
	refuses(own, '\8\4\2\3\6\5\9', 'bits: wanted 2 to 8, got 9')
	refuses(own, '\2\4\2\3\6\5\7', 'codes: wanted the 152 bytes of channels of these bits and this shape, got 182')
	refuses(own, '\7\4\2\3\6\5\8', 'codes: wanted')
	refuses(own, '\5\5\5\5\5\5\5', 'got 182')
	-- a code that no quantizer gives, and bits after the end of a row
	local rows = {}
	for i = 1, 7 do rows[i] = w[i]:codes():totable() end
	local first = {}
	for i = 1, 41 do first[i] = string.pack('b', rows[1][i]) end
	first = table.concat(first)
	refuses(first, '\x80' .. first:sub(2), 'codes: wanted -127 to 127')
	local second = {} -- 41 codes of 4 bits: half a byte is left
	for i = 1, 41, 2 do second[#second + 1] = string.char(rows[2][i] & 15 | (rows[2][i + 1] or 0) << 4 & 240) end
	second = table.concat(second)
	refuses(first .. second, first .. second:sub(1, -2) .. string.char(second:byte(-1) | 16), 'wanted zero bits after the end of every channel')
	for _, c in ipairs {{'rows=channels', 'rows=others'}, {' rows=channels', '              '}, {'version=3', 'version=2'}, {'version=3', 'version=4'},
		{'shape=(7,41)', 'shape=(7,42)'}, {'shape=(7,41)', 'shape=(41,7)'}, {'shape=(7,41)', 'shape=(7,0,)'}, {'shape=(7,41)', 'shape=(0,41)'},
		{'shape=(7,41) ', 'shape=(7,99999999999999999) '}, {'axis=0 block=0', 'axis=1 block=0'}, {'axis=0 block=0', 'axis=-1 block=0'},
		{'w::bits', 'w::bitz'}, {'"U8","shape":[182]', '"I8","shape":[182]'}, {'"shape":[182]', '"shape":[2,91]'}, {'dtype=int8', 'dtype=int6'},
		{'scheme=symmetric', 'scheme=log'}} do
		local message = load_with(c[1], c[2])
		assert(message ~= 'loaded' and not message:find '\n', c[2])
	end
	assert(load_with(own, own) == 'loaded')
	os.remove(file)
end)
it('loads what older versions wrote, at the width of the widest', function()
	local file = os.tmpname() .. '.safetensors'
	local function write(codes, bits)
		local head = '{"__metadata__":{"w::quoll":"dtype=int8 shape=(2,3) scheme=symmetric bits=8 lo=-127 hi=127 octaves=0 axis=0 block=0 block_axis=-1 from=float32 nan=0 inf=0"},'
			.. '"w":{"dtype":"I8","shape":[2,3],"data_offsets":[8,14]},"w::scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
			.. '"w::bits":{"dtype":"I8","shape":[2],"data_offsets":[14,16]}}'
		head = head .. (' '):rep(-#head % 8)
		local f = assert(io.open(file, 'wb'))
		f:write(string.pack('<s8', head), string.pack('<ffbbbbbbbb', 0.5, 0.25, codes[1], codes[2], codes[3], codes[4], codes[5], codes[6], bits[1], bits[2]))
		f:close()
		return tensor.load(file).w
	end
	local q = write({-127, 3, 100, -3, 2, 0}, {8, 3}):check()
	print(q:codes(), q:nbytes(), list(q))  --> int8(2, 3)
	--> -127    3  100
	-->   -3    2    0	15	8,3
	print(pcall(write, {-127, 3, 100, -4, 2, 0}, {8, 3}))  --> false...codes: wanted -3 to 3 in a channel of 3 bits, got -4
	os.remove(file)
end)
it('estimates', function()
	local r = quant.estimate({7, 41}, {bits = BITS, axis = 1})
	assert(r.ideal == 1 - 5 / 32 and r.bytes == 41 + 21 + 11 + 16 + 31 + 26 + 36 + 7 * 4 + 7 and r.bytes == x:quantize{bits = BITS, axis = 1}:nbytes())
	assert(math.abs(r.saving - (1 - r.bytes / (4 * 7 * 41))) < 1e-12)
	assert(quant.estimate(x, {bits = BITS, axis = 1}).sqnr > quant.estimate(x, {bits = 2, axis = 1}).sqnr)
	assert(quant.estimate({3, 4}, {bits = {4, 4, 4}, axis = 1}).bytes == quant.estimate({3, 4}, 'int4/1').bytes)
	assert(x:error(x:quantize{bits = BITS, axis = 1}).clipped == 0)
	assert(x:error(x:quantize{bits = BITS, axis = 1, scale = 0.1}).clipped > 0)
end)
it('quantizes the weights of a module', function()
	local m = nn.Linear(41, 7)
	local q, report = m:quantize{mode = 'dynamic', weight = {bits = BITS, axis = 1}}
	assert(list(q.weight) == table.concat(BITS, ',') and report[1].weight == 'int8/1 bits=8,4,2,3,6,5,7')
	quant.log 'reset'
	q(tensor.randn(3, 41))
	assert(#quant.log():where{op = 'linear', path = 'int8'} == 1)
	local qat = m:quantize{mode = 'qat', weight = {bits = BITS, axis = 1}}
	local input = tensor.randn(3, 41)
	assert(same(qat(input), input:fake 'uint8':linear(m.weight:fake{bits = BITS, axis = 1}, m.bias)))
end)
it('takes its own widths in models, their files and graphs', function()
	local m = nn.Sequential{nn.Linear(41, 7), nn.ReLU(), nn.Linear(7, 3)}
	local four = {8, 2, 3}
	local q, report = m:quantize{mode = 'dynamic', rules = {{'linear1', {bits = BITS, axis = 1}}, {'linear2', {bits = four, axis = 1}}}}
	print(report[1].weight, report[2].weight)  --> int8/1 bits=8,4,2,3,6,5,7 int8/1 bits=8,2,3
	local codes = 41 + 21 + 11 + 16 + 31 + 26 + 36 + 7 + 2 + 3
	assert(q.linear1.weight:nbytes() + q.linear2.weight:nbytes() == codes + 10 * 5 and q:nbytes() == codes + 10 * 5 + 10 * 4)
	local file = os.tmpname() .. '.safetensors'
	q:save(file)
	local f <close> = assert(io.open(file, 'rb'))
	assert(f:seek 'end' < 4 * q:nbytes() + 4096)
	local back = m:quantize{mode = 'dynamic', weight = 'int8/1'}:load(file)
	local input = tensor.randn(5, 41)
	assert(back:nbytes() == q:nbytes() and same(back(input), q(input)))
	os.remove(file)
	local g = graph.trace(q, input)
	assert(same(g:run(input), q(input)))
end)
it('is kept when a trained model becomes static', function()
	local m, input = nn.Linear(41, 7), tensor.randn(30, 41)
	m:calibrate({{input, input}}, {log = false})
	local qat = m:quantize{mode = 'qat', weight = {bits = BITS, axis = 1}}
	local s = qat:quantize{mode = 'static'}
	assert(list(s.weight) == table.concat(BITS, ',') and s(input):error(qat(input):detach()).max < 1e-5)
	local ok, message = pcall(m.quantize, m, {mode = 'qat', weight = {bits = BITS, axis = 1, learn = true}})
	assert(not ok and message:find("weight: wanted one number of bits with learn=true, got 'int8/1 bits=8,4", 1, true), message)
end)
it('is a spec with its list', function()
	local s = quant.spec{bits = {8, 4}, axis = 1}
	assert(s == quant.spec{bits = tensor{8, 4, dtype = 'int64'}, axis = 1} and s ~= quant.spec{bits = {8, 5}, axis = 1})
	assert(s ~= quant.spec 'int8/1' and s == quant.spec{bits = s.bits, axis = 1} and s == quant.spec(s))
	print(s, s.bits[2], s.dtype)  --> int8/1 bits=8,4 4 int8
	print(quant.spec{bits = {12, 4}, axis = 2}, quant.spec{dtype = 'uint8', bits = {3, 4}, axis = -1})  --> int16/2 bits=12,4 uint8/-1 bits=3,4
	local many = {}
	for i = 1, 300 do many[i] = 4 end
	print(quant.spec{bits = many, axis = 1}.name)  --> int4/1 bits=4,4,4,4,4,4,4,4,4,4,4,4,...(300)
	assert(quant.spec(tostring(quant.spec{bits = many, axis = 1})) == quant.spec{bits = many, axis = 1})
	-- the object keeps the list that it was made from
	local t = {bits = {8, 4, 2}, axis = 1}
	s = quant.spec(t)
	t.bits[1] = 3
	local other = quant.spec(t)
	t.bits = nil
	collectgarbage()
	collectgarbage()
	print(s, other)  --> int8/1 bits=8,4,2 int4/1 bits=3,4,2
	local o = quant.observer{bits = {8, 4, 2}, axis = 1, observer = function(h, spec)
		collectgarbage()
		s = spec
		return h.lo, h.hi
	end}
	o:update(x[{{1, 3}}]):params()
	o = nil -- luacheck: ignore 311
	collectgarbage()
	collectgarbage()
	assert(s.bits[3] == 2)
end)

local function refused(spec) return select(2, pcall(quant.spec, spec)) end
print(refused{bits = {8, 4}})  --> ...bits: wanted a list together with an axis and without a block, got no axis
print(refused{bits = {8, 4}, axis = 1, block = 4})  --> ...got a block
print(refused{bits = {}, axis = 1})  --> ...bits: wanted a number for every channel, got an empty list
print(refused{bits = {8, 1}, axis = 1})  --> ...bits: wanted 2 to 16 for every channel, got 1 for channel 2
print(refused{bits = {8, 2.5}, axis = 1})  --> ...got 2.5 for channel 2
print(refused{bits = {8, 0 / 0}, axis = 1})  --> ...wanted 2 to 16 for every channel, got ...nan for channel 2
print(refused{bits = {8, 'x'}, axis = 1})  --> ...bits: wanted whole numbers in the list, got string
print(refused{bits = tensor{{8, 4}}, axis = 1})  --> ...plain tensor of one dimension...
print(refused{bits = {8, 4}, axis = 1, dtype = 'int4'})  --> ...bits: wanted 2 to 4 for int4, got 8
print(refused{bits = {8, 4}, axis = 1, scheme = 'log'})  --> ...bits: wanted one number with the scheme log, whose powers are those of one number of bits, got a list...
print(refused{bits = {8, 4}, axis = 1, dtype = 'float16'})  --> ...nothing beside the dtype float16...
x:quantize{bits = {8, 4}, axis = 1}  --> error: bits: wanted a number for each of the 7 channels of axis 1, got 2
x:quantize{bits = BITS, axis = 1, dtype = 'uint8', scale = 1, zero_point = 200}  --> error: zero_point: wanted 0 to 15 for channel 2
quant.estimate({3, 4}, {bits = {8, 4}, axis = 1})  --> error: for each of the 3 channels of axis 1, got 2
quant.params(-1, 1, {bits = {8, 4}, axis = 1})  --> error: bits: wanted one number
x:lsq(tensor{1}, {bits = {8, 4}, axis = 1})  --> error: bits
tensor.empty(0, 3):quantize{bits = {8}, axis = 1}  --> error: for each of the 0 channels
