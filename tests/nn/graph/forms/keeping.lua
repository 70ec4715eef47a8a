-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Ops that keep codes: for every one of them quantizing before and behind gives the same codes.
tensor.seed(26)
local ids = tensor{4, 1, -1, dtype='int64'}

local ops = {
	relu = function(v) return v:relu() end,
	maxpool2d = function(v) return v:maxpool2d(2) end,
	pad = function(v) return v:pad{1, 2} end,
	resize = function(v) return v:resize{size={9, 5}, mode='nearest'} end,
	view = function(v) return v:view(v:size(1), 4, 36) end,
	reshape = function(v) return v:reshape(v:size(1), 144) end,
	transpose = function(v) return v:transpose(2, 3) end,
	permute = function(v) return v:permute(1, 4, 2, 3) end,
	slice = function(v) return v['::1, 3:1:-2'] end,
	flip = function(v) return v:flip(2, 4) end,
	roll = function(v) return v:roll(2, 3) end,
	gather = function(v) return v:gather(2, ids:view(1, 3, 1, 1):expand(v:size(1), 3, 6, 6)) end,
	gathernd = function(v) return v:gathernd(ids:view(1, 3, 1):expand(v:size(1), 3, 1), {batch=1}) end,
	indexselect = function(v) return v[{{}, ids}] end,
	repeatinterleave = function(v) return v:repeatinterleave(2, 3) end,
	depthtospace = function(v) return v:depthtospace(2) end,
	spacetodepth = function(v) return v:spacetodepth(3, 'crd') end,
	narrow = function(v) return v:narrow(2, 2, 2) end,
	select = function(v) return v:select(3, 2) end,
	squeeze = function(v) return v:narrow(2, 1, 1):squeeze(2) end,
	unsqueeze = function(v) return v:unsqueeze(2) end,
	contiguous = function(v) return v:permute(1, 4, 2, 3):contiguous() end,
	expand = function(v) return v:narrow(2, 1, 1):expand(v:size(1), 3, 6, 6) end,
	t = function(v) return v:reshape(v:size(1), 144):t() end,
}

-- The node that reads the input.
local function first_of(g)
	for _, name in ipairs(g.order) do
		if g.nodes[name].inputs[1] == 'input' then return g.nodes[name] end
	end
end

it('quantize commutes with each of them, and with nothing else', function()
	local internal = debug.getregistry()['quoll.internal']
	local forms, count = {internal.import 'nn/graph/forms/keeping'}, 0
	for _, form in ipairs(forms[1]) do
		for _, name in ipairs(form.ops) do
			assert(ops[name], 'no case for ' .. name)
			for _, spec in ipairs {{dtype='int8', scale=0.02}, {dtype='uint8', scale=0.03, zero_point=77}, {dtype='int16', scale=3e-4}} do
				local m = nn.module(function(_, v) return ops[name](v):quantize(spec) end)
				local g = graph.trace(m, tensor.randn(2, 4, 6, 6))
				local h, r = g:pass 'raise_quantize'
				assert(#r >= 1 and first_of(h).op == 'quantize', name)
				local x = tensor.randn(3, 4, 6, 6) * 3
				assert(h:run(x, {check=true}):codes():eq(m(x):codes()):all():item(), name)
				count = count + 1
			end
		end
	end
	assert(count == 72, count)
	local g = graph.trace(nn.module(function(_, v) return v:sigmoid():quantize{dtype='int8', scale=0.02} end), tensor.randn(2, 3))
	print(#select(2, g:pass 'raise_quantize'))  --> 0
	g = graph.trace(nn.module(function(_, v) return v:resize(5):quantize{dtype='int8', scale=0.02} end), tensor.randn(2, 3, 4))
	print(#select(2, g:pass 'raise_quantize'))  --> 0
end)

it('the graph has the type of the result for every kind of codes', function()
	for _, spec in ipairs {'int8 scale=0.02', 'int3 full scale=0.5', 'int8 log scale=3', 'fp8_e4m3 scale=0.1', 'binary scale=1', 'nf4 scale=3', 'ternary scale=1'} do
		for name, op in pairs(ops) do
			local good, y = pcall(op, tensor.randn(2, 4, 6, 6):quantize(spec))
			if good then
				local m = nn.module(function(_, v) return op(v:quantize(spec)) end)
				local g = graph.trace(m, tensor.randn(2, 4, 6, 6))
				local typed = g:result_of(g.outputs[1].ref)
				assert((typed.spec ~= nil) == y:quantized(), ('%s of %s: %s, %s'):format(name, spec, typed.dtype, y:dtype()))
			end
		end
	end
end)

it('has the pieces of split as views, which keep codes', function()
	local a, b = nn.Conv2d(3, 6, 3), nn.Conv2d(2, 2, 3)
	local m = nn.module(function(self, v)
		local p = self.a(v):split(2, {axis=-3})
		return self.b(p[3]), self.b(p[1] + p[2])
	end, {a=a, b=b})
	local image = tensor.randn(4, 3, 8, 8)
	local g = graph.trace(m, image)
	print(g:node('narrow1').attrs.length, g:node('narrow3').attrs.start)  --> 2 5
	local q, r = g:calibrate({{image, image}}, {log=false}):quantize {mode='static'}
	for _, row in ipairs(r) do assert(row.mode == 'static', row.node) end
	local y, z = q:run(image)
	local c, d = m(image)
	assert(y:error(c).sqnr > 25 and z:error(d).sqnr > 25)
end)

it('keeps codes in a resize that mixes pixels, with a scale of its own', function()
	local image = tensor.randn(6, 3, 8, 8)
	for _, o in ipairs {{scale=2, mode='bilinear'}, {scale=0.5, mode='bicubic'}, {scale=2}} do
		local m = nn.Sequential {nn.Conv2d(3, 4, 3), nn.Upsample(o), nn.Conv2d(4, 2, 3)}
		local q, r = graph.trace(m, image):calibrate({{image, image}}, {log=false}):quantize {mode='static'}
		for _, row in ipairs(r) do assert(row.mode == 'static', row.node) end
		quant.log 'reset'
		local y = q:run(image, {check=true})
		assert(#quant.log():where {path='fallback'} == 0 and #quant.log():where {op='resize', path='integer'} == 1 and y:error(m(image)).sqnr > 25)
		m:calibrate({{image, image}}, {log=false})
		local module = m:quantize {mode='static'}
		quant.log 'reset'
		module(image)
		assert(#quant.log():where {path='fallback'} == 0 and #quant.log():where {op='resize'} == 1)
	end
end)

it('a border of a number is its code, under a scale that has seen it', function()
	local images = tensor.rand(12, 3, 8, 8)
	for _, value in ipairs {0.5, 3, -1} do
		local m = nn.module(function(self, a) return self.b(self.a(a):pad({1, 1, 1, 1}, {value=value})) end, {a=nn.Conv2d(3, 6, 3), b=nn.Conv2d(6, 2, 3)})
		local q = graph.trace(m, images):calibrate({{images, images}}, {log=false}):quantize {mode='static'}
		quant.log 'reset'
		local y = q:run(images)
		assert(#quant.log():where {path='fallback'} == 0 and quant.log():where {op='pad'}.path == 'integer')
		assert(y:error(m(images)).sqnr > 30)
	end
end)
