-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Codes of images with their channels last (tensor/images.h) are what any other codes are: every way of reading and writing them gives
-- the same as a copy in plain order, and integer paths that keep the order give the same as those that do not.
tensor.seed(5)
local OUT = {dtype = 'uint8', scale = 0.1, zero_point = 30}

-- A new result of a convolution, and a copy in plain order.
local function pair(o)
	o = o or {}
	local x = tensor.randn(o.n or 2, 5, o.h or 6, o.w or 7):quantize 'uint8'
	local w = tensor.randn(o.channels or 9, 5, 3, 3):quantize 'int8/1'
	local out = {dtype = o.dtype or 'uint8', scale = 0.1, zero_point = o.zero or (o.dtype == 'int8' and -7 or 30)}
	return x:conv2d(w, {pad = 1, out = out}), x:conv2d(w, {pad = 1, out = out}):clone()
end

local function same(a, b)
	if a:quantized() then
		assert(b:quantized() and a:qparams().scale:ne(b:qparams().scale):any():item() == false)
		a, b = a:codes(), b:codes()
	end
	assert(a:dim() == b:dim() and a:dtype() == b:dtype())
	for d = 1, a:dim() do assert(a:size(d) == b:size(d)) end
	assert(not a:ne(b):any():item())
end

it('is made by convolutions', function()
	local y = pair()
	assert(y:origin().kernel:find '^conv_i8' and y:iscontiguous() and y:stride(1) == 9 * 42 and y:stride(4) == 1)
end)

it('stays from layer to layer of a network of depthwise convolutions', function()
	local y, plain = pair {channels = 24}
	for i, layer in ipairs {{24, 3, 1, 1}, {40, 1}, {40, 5, 2, 1}, {33, 1}, {66, 3, 1, 2}, {40, 1}} do
		local channels, k, stride, each = table.unpack(layer)
		local w = tensor.randn(channels, each and 1 or y:size(2), k, k):quantize 'int8/1'
		local o = {groups = each and y:size(2), stride = stride, pad = k // 2, out = i % 2 == 0 and {dtype = 'int8', scale = 0.2} or OUT}
		y, plain = y:conv2d(w, o), plain:conv2d(w, o):clone()
		assert(y:origin().kernel:find(each and '^depth_i8' or '^conv_i8'), y:origin().kernel)
	end
	same(y, plain)
end)

it('is unpacked as it is read one by one, images of several parts too', function()
	for _, o in ipairs {{h = 41, w = 50, channels = 20}, {h = 3, w = 5, channels = 16}, {n = 3, h = 32, w = 33, channels = 33}} do
		local y, places, want = pair(o), {}, {}
		for i = 1, 200 do
			places[i] = {}
			for d = 1, 4 do places[i][d] = math.random(y:size(d)) end
			want[i] = y[places[i]]:codes():item() -- of a view with one element
		end
		local dense = y:clone():codes()
		for i, p in ipairs(places) do assert(dense[p]:item() == want[i], table.concat(p, ' ')) end
	end
end)

local reads = {
	codes = function(y) return y:codes() end,
	dequantize = function(y) return y:dequantize() end,
	clone = function(y) return y:clone() end,
	view = function(y) return y:view(y:size(1), y:nelem() // y:size(1)) end,
	['view of codes'] = function(y) return y:codes():view(y:nelem()) end,
	permute = function(y) return y:permute(1, 3, 4, 2):contiguous() end,
	slice = function(y) return y[2] end,
	narrow = function(y) return y:narrow(2, y:size(2), 1) end,
	sum = function(y) return y:sum() end,
	relu = function(y) return y:relu() end,
	cat = function(y) return tensor.cat({y, y}, {axis = 2}) end,
	to = function(y) return y:codes():to 'int32' end,
	requantize = function(y) return y:requantize {dtype = 'int8', scale = 0.2} end,
	linear = function(y) return y:linear(tensor.ones(3, y:size(4)):quantize 'int8/1') end,
	flip = function(y) return y:codes():flip {axes = {3, 4}} end,
	element = function(y) return tensor{y:codes()[{2, 3, 4, 5}]:item(), y[{1, 9, 6, 7}]:item()} end,
	save = function(y)
		local path = os.tmpname() .. '.safetensors'
		tensor.save(path, {y = y})
		local z = tensor.load(path).y
		os.remove(path)
		return z
	end,
}
for name, read in pairs(reads) do
	it('reads as any other codes: ' .. name, function()
		for _, o in ipairs {{}, {dtype = 'int8'}, {channels = 1}, {h = 1, w = 1}, {n = 2, channels = 70, h = 9, w = 1}} do
			if name ~= 'element' or not next(o) then
				local y, plain = pair(o)
				same(read(y), read(plain))
				same(y, plain)
			end
		end
	end)
end

it('prints and counts bytes as any other codes', function()
	local y, plain = pair()
	assert(tostring(y) == tostring(plain))
	y, plain = pair()
	assert(y:nbytes() == plain:nbytes())
end)

local writes = {
	fill = function(y) y:fill_(0.4) end,
	part = function(y) y[{2}] = 0.3 end,
	codes = function(y) y:codes():fill_(3) end,
	into = function(y) y:relu_() end,
	add = function(y) y:add_(0.2) end,
	copy = function(y) y:copy_(tensor.ones(y:size(1), y:size(2), y:size(3), y:size(4))) end,
}
for name, write in pairs(writes) do
	it('is written like any other codes: ' .. name, function()
		local y, plain = pair()
		local view = y:narrow(2, 2, 4)
		write(y)
		write(plain)
		same(y, plain)
		same(view, plain:narrow(2, 2, 4))
	end)
end

-- Paths that keep the order, with both, one or none of the operands in it.
local keep = {
	maxpool2d = {function(y) return y:maxpool2d(2) end, function(y) return y:maxpool2d(3, {stride = 2, pad = 1}) end,
		function(y) return y:maxpool2d(1, {stride = 2}) end},
	avgpool2d = {function(y) return y:avgpool2d() end, function(y) return y:avgpool2d(2) end, function(y) return y:avgpool2d(3, {stride = 1, pad = 1}) end,
		function(y) return y:avgpool2d(2, {out = OUT}) end, function(y) return y:avgpool2d {out = {dtype = 'int8', scale = 0.03}} end},
	relu = {function(y) return y:relu() end, function(y) return y[{{1, 1}}]:relu() end},
	pad = {function(y) return y:pad(1, 2) end, function(y) return y:pad {0, 0, 0, 0, 3, 2} end, function(y) return y:pad {1, 0, 2, 3, 0, 1, 1, 0} end},
	conv2d = {function(y) return y:conv2d(tensor.ones(4, y:size(2), 2, 2):quantize 'int8/1', {out = OUT}) end,
		function(y) return y:conv2d(tensor.ones(4, y:size(2), 1, 1):quantize 'int8/1', {out = OUT, stride = 2, act = 'relu'}) end,
		function(y) return y:conv2d(tensor.ones(4, y:size(2), 2, 2):quantize 'int8/1') end,
		function(y) return y:conv2d(tensor.ones(4, y:size(2), 2, 2):quantize 'uint8/1', {out = OUT}) end,
		function(y) return y:conv2d(tensor.ones(y:size(2), 1, 3, 3):quantize 'int8/1', {out = OUT, groups = y:size(2), pad = 1}) end},
}
for name, list in pairs(keep) do
	it('keeps the order: ' .. name, function()
		for _, o in ipairs {{}, {dtype = 'int8'}, {channels = 1}, {channels = 16, n = 3, h = 8, w = 8}, {channels = 70, n = 1, h = 5, w = 5}} do
			for _, f in ipairs(list) do
				local y, plain = pair(o)
				same(f(y), f(plain))
				-- a batch of the images, which begins within the storage
				if y:size(1) > 1 then
					local rest = y:narrow(1, 2, y:size(1) - 1)
					same(f(rest), f(plain:narrow(1, 2, y:size(1) - 1)))
				end
			end
		end
	end)
end

it('keeps the order: add, sub and mul', function()
	for _, dtype in ipairs {'uint8', 'int8'} do
		for _, op in ipairs {'add', 'sub', 'mul'} do
			for _, out in ipairs {OUT, {dtype = 'int8', scale = 0.2}, 'uint8'} do
				local y, plain = pair {dtype = dtype}
				local z, flat = pair {}
				same(y[op](y, z, {out = out}), plain[op](plain, flat, {out = out}))
				y, plain = pair {dtype = dtype}
				same(y[op](y, flat, {out = out}), plain[op](plain, flat, {out = out}))
				y, plain = pair {dtype = dtype}
				same(y[op](flat, y, {out = out}), plain[op](flat, plain, {out = out}))
				y, plain = pair {dtype = dtype}
				local row = flat:narrow(1, 1, 1)
				same(y[op](y, row, {out = out}), plain[op](plain, row, {out = out})) -- broadcast
				y, plain = pair {dtype = dtype}
				same(y[op](y, y:narrow(1, 1, 1), {out = out}), plain[op](plain, plain:narrow(1, 1, 1), {out = out}))
			end
		end
	end
	local y, plain = pair()
	same(y:add(y, {out = OUT, act = 'relu'}), plain:add(plain, {out = OUT, act = 'relu'}))
	y, plain = pair()
	same(y:add(y, {out = {dtype = 'uint8', scale = 0.2, rounding = 'double'}}), plain:add(plain, {out = {dtype = 'uint8', scale = 0.2, rounding = 'double'}}))
end)
