-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Tensors without values (tensor/meta.h): results have the shapes and dtypes that they have with values, and no values either.
local internal = debug.getregistry()['quoll.internal']
local function meta(...) return internal.meta('float32', {...}) end

local function same(f, ...)
	local real, bare = {}, {}
	for i, t in ipairs {...} do
		real[i] = t
		bare[i] = internal.meta(t:dtype(), {t:size()})
		if t:quantized() then bare[i] = internal.meta('float32', {t:size()}):quantize {dtype = t:dtype(), scale = 0.5} end
	end
	local want, got = {f(table.unpack(real))}, {f(table.unpack(bare))}
	assert(#want == #got)
	for i, w in ipairs(want) do
		local g = got[i]
		assert(internal.is_meta(g) and not internal.is_meta(w) and g:dtype() == w:dtype() and g:dim() == w:dim())
		for d = 1, w:dim() do assert(g:size(d) == w:size(d)) end
		assert(g:quantized() == w:quantized())
	end
end

it('infers what ops give', function()
	local x, w = tensor.randn(2, 3, 8, 8), tensor.randn(4, 3, 3, 3)
	same(function(a) return a:relu(), a:sum(), a:mean {axis = {3, 4}}, a:view(2, -1), a:permute(1, 3, 4, 2), a:clone(), a:contiguous(), a:to 'float16' end, x)
	same(function(a) return a:conv2d(w, {pad = 1}), a:maxpool2d(2), a + 1, a:gt(0), a:softmax(2), tensor.cat({a, x}, {axis = 1}), a:argmax(2) end, x)
	same(function(a) return a:split(2, {axis = 2})[1], a:topk(2), tensor.einsum('bchw,ochw->bo', a, tensor.randn(5, 3, 8, 8)) end, x)
	same(function(a, b) return a:quantize {dtype = 'int8', scale = 0.5}, b:dequantize(), b:linear(tensor.randn(4, 8):quantize 'int8/1') end, x, x:quantize 'int8')
	same(function(a) return nn.lstm(a, tensor.zeros(2, 4), tensor.zeros(2, 4), tensor.randn(16, 5), tensor.randn(16, 4)) end, tensor.randn(2, 6, 5))
end)

it('computes nothing', function()
	local big = meta(4, 64, 512, 1024) -- 11 GiB of additions, were they done
	local y = big
	for _ = 1, 20 do y = (y + 1):relu() end
	assert(y:size(4) == 1024)
	assert(not pcall(function() return big:matmul(tensor.ones(3, 3)) end))
	local wide = meta(64, 64, 512, 1024) -- 8 GiB, were they there
	local list = {}
	for i = 1, 16 do list[i] = wide:to 'float16':permute(2, 1, 4, 3):contiguous():reshape(64, -1):clone() end
	assert(list[16]:size(2) == 64 * 512 * 1024 and list[16]:dtype() == 'float16')
end)

it('may be written into', function()
	for _ = 1, 3 do
		local list = {}
		for i = 1, 50 do
			list[i] = meta(i, 7)
			list[i]:fill_(i)
			list[i]:narrow(2, 1, 2):add_(1)
		end
		list = nil -- luacheck: ignore 311
		collectgarbage()
	end
	assert(meta(3):size(1) == 3)
end)

it('leaves no rows in the ledger', function()
	quant.log 'reset'
	local y = meta(4, 4):relu():matmul(tensor.ones(4, 4))
	assert(#quant.log() == 0 and y:size(1) == 4)
end)
