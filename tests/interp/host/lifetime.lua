-- SPDX-License-Identifier: MIT
-- What a C function works on lives until it returns, whatever the Lua code that it calls does.

-- A list of n items, each made when it is asked for.
local function lazy(n, item)
	return setmetatable({}, {__len = function() return n end, __index = function(_, i) return item(i) end})
end

local function values(x) return table.concat(x:totable(), ' ') end

describe('operands of a list', function()
	local function fresh(i)
		local y = tensor.full{4, value = i, dtype = 'int32'}
		collectgarbage()
		collectgarbage()
		return y
	end
	it('are kept, when the list does not keep them', function()
		assert(values(tensor.cat(lazy(3, fresh))) == '1 1 1 1 2 2 2 2 3 3 3 3')
		assert(tensor.stack(lazy(2, fresh)):totable()[2][4] == 2)
	end)
	it('are kept, when the next item closes them', function()
		local first
		local list = lazy(2, function(i)
			if i == 2 then local _ <close> = first end
			local y = tensor.full{3, value = i}
			first = first or y
			return y
		end)
		assert(values(tensor.cat(list)) == '1.0 1.0 1.0 2.0 2.0 2.0')
		assert(not pcall(function() return first:size() end)) -- it is closed all the same
	end)
end)

describe('an operand that is closed on the way', function()
	local function closer(x, sizes)
		return lazy(#sizes, function(i)
			if i == 1 then local _ <close> = x end
			collectgarbage()
			return sizes[i]
		end)
	end
	it('is still read', function()
		local x = tensor{1, 2, 3, 4, 5, 6}
		assert(values(x:view(closer(x, {2, 3})):view(-1)) == '1.0 2.0 3.0 4.0 5.0 6.0')
		x = tensor{1, 2, 3, 4, 5, 6}
		assert(x[closer(x, {4})]:item() == 4)
		x = tensor.ones(2, 3)
		assert(x:permute(closer(x, {2, 1})):size(1) == 3)
		x = tensor{1, 2, 3, 4, 5, 6}
		x[closer(x, {4})] = 9
	end)
	it('is still read when an observer function closes it', function()
		local x = tensor{{-1, 1}, {2, -2}}
		local q = x:quantize{dtype = 'int8', axis = 1, observer = function()
			do local _ <close> = x end
			collectgarbage()
			return -2, 2
		end}
		assert(q:codes():totable()[2][1] == 127)
		x = tensor{{-1, 1}, {2, -2}}
		assert(x:fake{dtype = 'int8', observer = function() local _ <close> = x return -2, 2 end}:size(1) == 2)
		x = tensor.ones(2, 2)
		assert(x:linear(x, nil, {out = {dtype = 'int8', observer = function()
			local _ <close> = x
			return -2, 2
		end}}):size(2) == 2)
	end)
	it('is freed afterwards', function()
		collectgarbage()
		local before = tensor.memory().now
		for _ = 1, 3 do
			local x = tensor.ones(1000000)
			local _ <close> = x:view(closer(x, {1000, 1000}))
		end
		assert(tensor.memory().now - before < 1000000)
	end)
end)

describe('close', function()
	it('frees at once where nothing uses the tensor', function()
		local before = tensor.memory().now
		do
			local _ <close> = tensor.ones(1000000)
			assert(tensor.memory().now - before >= 4000000)
		end
		assert(tensor.memory().now - before < 1000)
		local co = coroutine.wrap(function()
			pcall(function()
				local _ <close> = tensor.ones(1000000)
				coroutine.yield()
			end)
			coroutine.yield(tensor.memory().now)
		end)
		co()
		assert(co() - before < 1000)
		table.sort({2, 1}, function(a, b)
			do local _ <close> = tensor.ones(1000000) end
			assert(tensor.memory().now - before < 10000)
			return a < b
		end)
	end)
end)

describe('options', function()
	it('are kept when reading one of them changes the table', function()
		for _ = 1, 20 do
			local x = tensor.randn(1, 1, 4, 4)
			local o
			o = {stride = setmetatable({}, {__len = function() return 2 end, __index = function()
				for key in next, o do o[key] = nil end
				collectgarbage()
				for i = 1, 50 do local _ = ('x'):rep(i) .. i end
				return 1
			end}), bias = tensor.full{1, value = 5}, out = {dtype = 'int' .. 8, observer = 'min' .. 'max'}}
			pcall(function() return x:conv2d(tensor.ones(1, 1, 1, 1), o) end)
		end
	end)
	it('of a spec are kept', function()
		local bits = setmetatable({4, 8}, {__index = function() collectgarbage() end})
		local s = {axis = 1, bits = bits, observer = 'min' .. 'max'}
		assert(tensor{{1}, {2}}:quantize(s):qparams().bits[2] == 8)
	end)
	it('of quant.spec are its own', function()
		local s = quant.spec{dtype = 'int8', axis = 1, scale = tensor{0.5, 0.25}}
		collectgarbage()
		assert(values(s.scale) == '0.5 0.25')
		do local _ <close> = s.scale end
		assert(tensor{{1}, {1}}:quantize(s):codes():totable()[2][1] == 4)
	end)
end)

describe('observers', function()
	it('refuse to be changed or asked by their own function', function()
		local o, errors = nil, {}
		o = quant.observer{dtype = 'int8', observer = function()
			for _, name in ipairs{'update', 'params', 'range', 'reset', 'merge', 'measure', 'histogram'} do
				local ok, message = pcall(o[name], o, name == 'merge' and quant.observer 'int8' or name == 'update' and tensor{1} or nil)
				errors[#errors + 1] = ok and 'none' or message
			end
			do local _ <close> = o end
			collectgarbage()
			return -1, 1
		end}
		o:update(tensor{1, 2})
		assert(o:params().scale:item() > 0)
		assert(#errors == 7)
		for _, message in ipairs(errors) do assert(message:find 'whose own function runs', message) end
	end)
end)

describe('objects of C', function()
	it('have no metatable for scripts', function()
		for _, value in ipairs{tensor{1}, quant.spec 'int8', quant.observer 'int8', plot.line{{1, 2}}} do
			assert(type(getmetatable(value)) == 'string')
			assert(not pcall(setmetatable, value, {}))
		end
	end)
	it('may come back while they are finalized', function()
		local kept, weak = {}, setmetatable({}, {__mode = 'k'})
		for round = 1, 200 do
			local x = tensor.full{8, value = 1}
			weak[x] = true
			setmetatable({x}, {__gc = function(t) kept[#kept + 1] = t[1] end})
			x = nil -- luacheck: ignore 311
			if round % 7 == 0 then collectgarbage 'step' end
			for y in next, weak do
				pcall(function()
					return y:view(lazy(1, function() collectgarbage 'step' return 8 end)):sum():item()
				end)
			end
			for i, y in ipairs(kept) do
				pcall(function() return tensor.cat{y, y} end)
				kept[i] = nil
			end
		end
	end)
end)

describe('finalizers', function()
	it('may make tensors while the program ends: AddressSanitizer finds no leak', function()
		local pipe = io.popen 'readlink /proc/$PPID/exe'
		local program, file = pipe:read 'l', os.tmpname()
		pipe:close()
		local handle = assert(io.open(file, 'w'))
		handle:write [[
			local kept = {}
			for i = 1, 3 do
				setmetatable({}, {__gc = function() kept[i] = tensor.zeros(1000) + i kept.view = kept[i]:view(10, 100) end})
			end
			setmetatable({}, {__gc = function()
				setmetatable({}, {__gc = function() kept.more = tensor.ones(1000) end})
				kept.drawn = tensor.rand(500)
				io.write 'ended'
			end})
		]]
		handle:close()
		pipe = io.popen(('%s %s 2>&1; echo " $?"'):format(program, file))
		local text = pipe:read 'a'
		pipe:close()
		assert(text == 'ended 0\n', text)
	end)
end)
