-- SPDX-License-Identifier: MIT
-- labels: quick host once
-- Weights of convolutions of codes: panels in the place of the codes, which all others find, and the bytes that a weight and whole
-- networks hold after some calls.
tensor.seed(43)
local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local OUT = {dtype = 'uint8', scale = 0.05, zero_point = 100}

local function now()
	collectgarbage() collectgarbage()
	return tensor.memory().now
end
local function fresh_file()
	local file = os.tmpname()
	os.remove(file)
	return file .. '.safetensors'
end
local function same(a, b) return a:ne(b):any():item() == false end

-- Options with those of a result of codes.
local function with(o, more)
	local all = {out = OUT}
	for _, t in ipairs {o, more or {}} do for k, v in pairs(t) do all[k] = v end end
	return all
end

local shapes = { -- of weights; options; channels of x
	{{64, 32, 3, 3}, {pad = 1}, 32}, {{16, 16, 3, 3}, {pad = 1}, 16}, {{32, 16, 1, 1}, {stride = 2}, 16}, {{16, 3, 3, 3}, {pad = 1}, 3},
	{{64, 3, 3, 3}, {}, 3}, {{24, 144, 1, 1}, {}, 144}, {{64, 40, 1, 1}, {}, 40}, {{33, 6, 4, 3}, {}, 6}, {{17, 31, 3, 3}, {dilation = 2, pad = 2}, 31},
	{{32, 8, 3, 3}, {groups = 4, pad = 1}, 32}, {{48, 16, 5, 5}, {groups = 3, dilation = {1, 2}}, 48}, {{128, 5, 1, 16}, {}, 5},
}

-- What others make of x and a weight: each is a function of both.
local function uses(s)
	local file = fresh_file()
	return {
		codes = function(_, w) return w:codes() end, values = function(_, w) return w:dequantize() end,
		part = function(_, w) return w:codes()[{{2, 9}, {}, 1}] end, one = function(_, w) return w[3][1][1][1]:reshape(1) end,
		turned = function(_, w) return w:permute(4, 2, 1, 3):contiguous():codes() end,
		floats = function(x, w) return x:conv2d(w, s[2]) end,
		apart = function(x, w) return x:conv2d(w, with(s[2], {dilation = {3, 2}, pad = {3, 8}})):codes() end,
		rows = function(x, w) return s[2].groups and w:codes() or x:conv2d(w[{{1, 16}}], with(s[2])):codes() end,
		product = function(_, w) return tensor.ones(2, w:nelem() // w:size(1)):quantize 'int8':linear(w:reshape(w:size(1), -1)) end,
		file = function(_, w)
			tensor.save(file, {w = w})
			local back = tensor.load(file).w
			os.remove(file)
			return back:codes()
		end,
		gradient = function(x, w)
			local a = x:dequantize():requires_grad_()
			a:conv2d(w:dequantize(), s[2]):sum():backward()
			return a:grad()
		end,
	}
end

for i, s in ipairs(shapes) do
	it('bytes and values of weight ' .. i, function()
		local x, before = tensor.randn(2, s[3], 20, 20):quantize 'uint8', now()
		local w = tensor.randn(table.unpack(s[1])):quantize 'int8/1'
		local held, want = now() - before, {}
		local function plain() return w:clone() end
		local first = x:conv2d(plain(), with(s[2])):codes():clone()
		for name, f in pairs(uses(s)) do want[name] = f(x, plain()):clone() end
		local start = now()
		for _ = 1, 4 do assert(same(x:conv2d(w, with(s[2])):codes(), first)) end
		assert(now() - start < 0.1 * held, (now() - start) / held)
		for name, f in pairs(uses(s)) do
			for _ = 1, 3 do assert(same(f(x, w), want[name]), name) end
			assert(same(x:conv2d(w, with(s[2])):codes(), first), name)
		end
		w[2][1][1][1] = w[2][1][1][1]:item() > 0 and -1 or 1
		local second = x:conv2d(plain(), with(s[2])):codes()
		assert(not same(second, first))
		for _ = 1, 3 do assert(same(x:conv2d(w, with(s[2])):codes(), second)) end
	end)
end

it('a weight that linear and matmul use, too, is held once', function()
	for _, spec in ipairs {'int8/1', 'uint8/1', 'int4/1', 'int3/1', 'int8', 'nf4', 'fp8_e4m3', 'int4:32'} do
		for _, order in ipairs {'clfm', 'lcmf', 'mfcl', 'fclm'} do
			local flat = tensor.randn(64, 256)
			local before = now()
			local w = flat:quantize(spec)
			local held, image, rows = now() - before, tensor.randn(2, 256, 5, 5), tensor.randn(3, 256)
			local kernel = quant.spec(spec).block and nil or w:view(64, 256, 1, 1)
			local x, a = image:quantize 'uint8', rows:quantize 'uint8'
			local start = now()
			for _ = 1, 3 do
				for use in order:gmatch '.' do
					if use == 'l' then a:linear(w) rows:linear(w) end
					if use == 'm' then a:matmul(w:t()) rows:matmul(w:t()) end
					if use == 'c' and kernel then x:conv2d(kernel, {out = OUT}) end
					if use == 'f' and kernel then image:conv2d(kernel) end
				end
			end
			assert(now() - start < 0.1 * held + 128, ('%s, %s: %d of %d'):format(spec, order, now() - start, held))
		end
	end
end)

local function network(name)
	local m = dofile(folder .. 'tutorials/models/' .. name .. '.lua'):eval()
	local images = tensor.randn(4, 3, 32, 32)
	m:calibrate({{images, images}}, {log = false})
	return m, images
end

for _, name in ipairs {'resnet8', 'resnet20'} do
	it(name .. ' holds its codes and scales once', function()
		local m, x = network(name)
		local whole, file, first = m:quantize {mode = 'static'}, fresh_file() .. '.safetensors'
		local codes = whole:nbytes()
		whole:save(file)
		local handle <close> = io.open(file)
		local saved = handle:seek 'end'
		os.remove(file)
		for _, kind in ipairs {'module', 'graph'} do
			local before = now()
			local q = kind == 'module' and m:quantize {mode = 'static'} or graph.trace(m, x):quantize {mode = 'static'}
			local start = now()
			for batch = 1, 4 do
				local y = tensor.nograd(function() return kind == 'module' and q(x[{{1, batch}}]) or q:run(x[{{1, batch}}]) end)
				first = first or y
				assert(same(y[1], first[1]))
				y = nil -- luacheck: ignore 311
			end
			assert(now() - start < 0.05 * codes, (now() - start) / codes)
			-- a module has a table and a tensor with its own shape for each parameter, which a small network shows: 11 KiB of ResNet8
			assert(now() - before < 1.1 * saved + (kind == 'module' and 0.1 * saved or 0), (now() - before) / saved)
		end
	end)
end
