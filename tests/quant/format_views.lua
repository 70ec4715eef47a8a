-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Views of tensors of every format against the same views of the decoded tensor: equal values, or a refusal that names the op and
-- what to do. Random chains of views; QUOLL_FUZZ_SECONDS runs longer than the default.
local SPECS = {'int8', 'uint8/1', 'uint4/2', 'int4:32', 'int4/1:8', 'int8/2 bits=8,4,2,8,3,8', 'binary/1', 'int8 log', 'int4:32+min', 'uint3:16+min', 'int2', 'uint3:16',
	'int5:32', 'uint6/1', 'fp6_e2m3/2', 'fp6_e3m2:8', 'fp8_e4m3/1', 'nf4:16', 'nf4/1:2', 'nf4:16:2', 'int4:8:4', 'nvfp4/1', 'mxfp4/2'}
for _, f in ipairs(quant.formats()) do SPECS[#SPECS + 1] = f.name end

local SHAPES = {{4, 6, 64}, {6, 6, 32}, {2, 6, 256}, {3, 6, 40}, {256, 6}}
local random = math.random

local function sizes(t) return {t:size()} end

-- Each gives a function of a tensor, which is applied to the codes and to the decoded values.
local OPS = {}

function OPS.narrow(t)
	local axis = random(t:dim())
	local n = t:size(axis)
	local unit = n % 32 == 0 and random(2) == 1 and 32 or n % 16 == 0 and random(2) == 1 and 16 or 1
	local start = random(0, n // unit - 1) * unit
	local length = random(1, (n - start) // unit) * unit
	return function(x) return x:narrow(axis, start + 1, length) end
end

function OPS.select(t)
	if t:dim() < 2 then return nil end
	local axis = random(t:dim())
	local i = random(t:size(axis))
	return function(x) return x:select(axis, i) end
end

function OPS.transpose(t)
	local a, b = random(t:dim()), random(t:dim())
	return function(x) return x:transpose(a, b) end
end

function OPS.permute(t)
	local order = {}
	for i = 1, t:dim() do table.insert(order, random(#order + 1), i) end
	return function(x) return x:permute(table.unpack(order)) end
end

function OPS.reshape(t)
	local s = sizes(t)
	local at = random(#s)
	if #s > 1 and random(2) == 1 and at < #s then
		s[at] = s[at] * table.remove(s, at + 1)
	elseif s[at] % 2 == 0 and #s < 6 then
		table.insert(s, at, 2)
		s[at + 1] = s[at + 1] // 2
	end
	return function(x) return x:reshape(table.unpack(s)) end
end

function OPS.unsqueeze(t)
	local axis = random(t:dim() + 1)
	if t:dim() > 5 then return nil end
	return function(x) return x:unsqueeze(axis) end
end

function OPS.expand(t)
	local s = sizes(t)
	if #s > 5 or t:nelem() > 20000 then return nil end
	table.insert(s, 1, random(3))
	return function(x) return x:expand(table.unpack(s)) end
end

function OPS.contiguous() return function(x) return x:contiguous() end end
function OPS.clone() return function(x) return x:clone() end end

function OPS.cat(t)
	if t:nelem() > 20000 then return nil end
	local axis = random(t:dim())
	return function(x) return tensor.cat({x, x}, {axis = axis}) end
end

function OPS.stack(t)
	if t:dim() > 5 or t:nelem() > 20000 then return nil end
	local axis = random(t:dim() + 1)
	return function(x) return tensor.stack({x, x}, {axis = axis}) end
end

function OPS.index(t)
	local list = {}
	for i = 1, t:dim() do
		local n = t:size(i)
		local lo = random(n)
		list[i] = random(3) == 1 and random(n) or {lo, random(lo, n)}
	end
	return function(x) return x[list] end
end

function OPS.embedding(t)
	if t:dim() ~= 2 then return nil end
	local list = {}
	for i = 1, random(4) do list[i] = random(t:size(1)) end
	local ids = tensor(list):to 'int64'
	return function(x) return x:embedding(ids) end
end

function OPS.gather(t)
	local axis, shape = random(t:dim()), sizes(t)
	shape[axis] = random(3)
	local index = (tensor.rand(table.unpack(shape)) * t:size(axis)):floor():to 'int64' + 1
	return function(x) return x:gather(axis, index) end
end

function OPS.maskedselect(t)
	local mask = tensor.rand(table.unpack(sizes(t))):gt(0.5)
	return function(x) return x:maskedselect(mask) end
end

function OPS.flip(t)
	local axis = random(t:dim())
	return function(x) return x:flip(axis) end
end

function OPS.split(t)
	local axis = random(t:dim())
	local n = random(t:size(axis))
	local piece = random((t:size(axis) + n - 1) // n)
	return function(x) return x:split(n, {axis = axis})[piece] end
end

function OPS.tile(t)
	if t:nelem() > 20000 then return nil end
	local times = {}
	for i = 1, t:dim() do times[i] = random(2) end
	return function(x) return x:tile(table.unpack(times)) end
end

function OPS.t(t)
	if t:dim() ~= 2 then return nil end
	return function(x) return x:t() end
end

function OPS.to() return function(x) return x:to 'float32' end end

function OPS.file()
	return function(x)
		if not x:quantized() then return x end
		local name = os.tmpname()
		os.remove(name)
		name = name .. '.safetensors'
		tensor.save(name, {x = x})
		local back = tensor.load(name).x
		os.remove(name)
		return back
	end
end

local NAMES = {}
for name in pairs(OPS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local function equal(a, b)
	return table.concat({a:size()}, ' ') == table.concat({b:size()}, ' ') and (a:eq(b):all():item())
end

local done, refused = {}, {}

local function message(why)
	assert(type(why) == 'string' and not why:find '\n' and why:find 'wanted', tostring(why))
	assert(why:find 'dequantize', why)
end

-- One chain of up to 5 views; its text is in errors.
local function chain(spec)
	local shape
	repeat shape = SHAPES[random(#SHAPES)] until pcall(quant.bytes, shape, spec) -- GGUF's blocks must divide the rows
	if type(spec) == 'string' and spec:find 'bits=' then shape = SHAPES[1] end
	local x = tensor.randn(table.unpack(shape))
	local q = x:quantize(spec)
	local d, text = q:dequantize(), spec .. ' of ' .. table.concat(shape, 'x')
	for _ = 1, random(5) do
		local name = NAMES[random(#NAMES)]
		local f = d:dim() > 0 and OPS[name](d)
		local good, view = pcall(f or function() error('none', 0) end, q)
		if f then text = text .. ' ' .. name end
		if good then
			local plain = f(d)
			local decoded = view:quantized() and view:dequantize() or view
			if view:quantized() then view:check() end
			assert(equal(decoded, plain), text .. ' -> ' .. table.concat({view:size()}, 'x'))
			done[name] = (done[name] or 0) + 1
			if not view:quantized() then return end
			q, d = view, plain
		elseif f then
			local ok, why = pcall(f, d) -- a shape that the view cannot have is refused for floats, too
			if ok then ok, why = pcall(message, view) end
			assert(ok or not pcall(f, d) and why:gsub('^.-: ', '') == view:gsub('^.-: ', ''), ('%s: %s, %s'):format(text, why, view))
			refused[name] = (refused[name] or 0) + 1
		end
	end
end

it('views of every format', function()
	local rounds, stop = 8, hw.clock() + (tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 0)
	repeat
		for _, spec in ipairs(SPECS) do
			for _ = 1, rounds do chain(spec) end
		end
	until hw.clock() >= stop
	for _, name in ipairs(NAMES) do
		assert(done[name], name)
		if os.getenv 'QUOLL_FUZZ_SECONDS' then print(name, done[name], refused[name]) end
	end
end)

-- Values that codes stand for are written back as the same codes; what is not written stays.
it('writing through views of every format', function()
	for _, spec in ipairs(SPECS) do
		spec = spec:gsub('bits=[%d,]+', 'bits=6')
		local q = tensor.randn(6, 256):quantize(spec)
		local d = q:dequantize()
		local other = tensor.randn(6, 256):quantize(spec)
		for _, list in ipairs {{2}, {{2, 4}}, {3, {65, 128}}, {{1, 6}, {1, 256}}, {1, 2}} do
			local c = other:clone()
			local good, part = pcall(function() return c[list] end)
			if good then
				c[list] = 0
				c = q:clone()
				c[list] = d[list]
				assert(c:dequantize():eq(d):all():item(), spec .. ': floats')
				c[list] = q[list]
				assert(c:dequantize():eq(d):all():item(), spec .. ': codes')
				c[list] = other[list]
				local rest, kept = tensor.ones(6, 256), d:clone()
				rest[list], kept[list] = 0, 0
				assert((c:dequantize() * rest):eq(kept):all():item(), spec .. ': the rest')
				assert(c:check() and part:check())
			end
		end
		local c = other:clone()
		c:copy_(d)
		c:copy_(q)
		c:fill_(0)
		assert(c:dequantize():eq(other:clone():fill_(0.0):dequantize()):all():item(), spec)
		assert(q:dequantize():eq(d):all():item(), spec)
		local mask = tensor.rand(6, 256):gt(0.5)
		assert(q:maskedselect(mask):eq(d:maskedselect(mask)):all():item(), spec)
		assert(q:maskedassign(mask, 0.5):eq(d:maskedassign(mask, 0.5)):all():item(), spec)
		assert(q:to('float64'):eq(d:to 'float64'):all():item(), spec)
	end
end)

-- Rows of one packed element each lie in parts of a byte after t().
it('rows of a packed table of one column', function()
	for _, spec in ipairs {'int4', 'uint3', 'binary', 'int4:32', 'nvfp4', 'int4:32+min', 'nf4:16:4'} do
		local table_of = tensor.randn(1, 40):quantize(spec):t()
		local ids = tensor {2, 40, 7, 7}:to 'int64'
		assert(table_of:embedding(ids):eq(table_of:dequantize():embedding(ids)):all():item(), spec)
	end
end)

-- A small scale among large ones comes back below 0, so that the largest code is the least value.
it('order of codes under scales that are coded around their mean', function()
	local negative = 0
	for _, seed in ipairs {182, 241, 364} do
		tensor.seed(seed)
		local x = tensor.randn(32, 32) * (tensor.rand(32, 1) * 12 - 9):exp()
		for _, spec in ipairs {'int4:32:256', 'int4/1:8:64', 'int8:16:2', 'nf4:32:256'} do
			local q = x:quantize(spec)
			local d = q:dequantize()
			negative = negative + (q:qparams().scale:dequantize():min():item() < 0 and 1 or 0)
			local y = q:relu()
			assert((y:quantized() and y:dequantize() or y):eq(d:relu()):all():item(), spec)
			assert(q:max{axis = 2}:to('float32'):eq(d:max{axis = 2}):all():item(), spec)
			assert(q:view(1, 1, 32, 32):maxpool2d{2}:to('float32'):eq(d:view(1, 1, 32, 32):maxpool2d{2}):all():item(), spec)
		end
	end
	assert(negative == 3, negative)
end)
