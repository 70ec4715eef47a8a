-- SPDX-License-Identifier: MIT
-- The collector's pace: bounded memory of unused tensors in every mode, whatever the mode was before, and few collections.
local MIB = 1 << 20

-- Runs `fn` from a clean heap in this mode of the collector; gives the bytes of tensors at the peak beyond those before.
local function peak(mode, fn)
	collectgarbage() collectgarbage()
	local before = tensor.memory 'reset'.now
	collectgarbage(mode)
	fn()
	collectgarbage 'restart'
	collectgarbage 'incremental'
	return tensor.memory().peak - before
end

-- How often the collector ran during `fn`: a finalizer that leaves an object with the same finalizer behind.
local function collections(fn)
	local n, running = 0, true
	local function leave()
		setmetatable({}, {__gc = function()
			n = n + 1
			if running then leave() end
		end})
	end
	collectgarbage() collectgarbage()
	leave()
	fn()
	running = false
	return n
end

for _, mode in ipairs {'incremental', 'generational', 'stop'} do
	describe(mode, function()
		it('keeps memory bounded where large results are dropped', function()
			local x = tensor.zeros(1000000)
			local most = peak(mode, function() for _ = 1, 400 do local _ = (x + 1) * 2 end end)
			assert(most < 48 * MIB, most)
		end)
		it('counts small results by what they hold', function()
			local most = peak(mode, function() for i = 1, 200000 do local _ = tensor.zeros(3) + i end end)
			assert(most < 32 * MIB, most)
		end)
		it('finds what became old before it was dropped', function()
			local most = peak(mode, function()
				local kept = {}
				for i = 1, 2000 do kept[i % 20] = tensor.zeros(50000) end
				assert(#kept == 19)
			end)
			assert(most < 48 * MIB, most)
		end)
		it('runs finalizers of dropped tensors of a dead coroutine and clears weak tables', function()
			local weak = setmetatable({}, {__mode = 'v'})
			local most = peak(mode, function()
				for i = 1, 400 do
					weak[i] = coroutine.wrap(function()
						local x = tensor.zeros(100000)
						coroutine.yield()
						return x
					end)
					weak[i]()
				end
			end)
			collectgarbage()
			assert(most < 48 * MIB and next(weak) == nil, most)
		end)
		it('closes a tensor although a finalizer of the same collection brought it back', function()
			local back
			peak(mode, function()
				do
					local x = tensor.ones(10)
					setmetatable({}, {__gc = function() back = {x} end})
				end
				for _ = 1, 50 do local _ = tensor.zeros(1000000) end
			end)
			local good, why = pcall(function() return back[1]:sum() end)
			assert(not good and why:find 'already closed', why)
		end)
	end)
end

-- Each way to a tensor, or to one inside, bounds what is dropped: not only ops do.
describe('in loops that call nothing else', function()
	local x, mask, rows = tensor{1, 2, 3, 4}, tensor{true, false, true, false}, tensor.zeros(40000, 1)
	local q, w = tensor{{1, 2}, {3, 4}}:quantize 'int8/1', tensor{1, 2, grad=true}
	local one = tensor{3}:quantize 'int8'
	local spec = quant.spec {dtype='int8', axis=1, scale=tensor{0.5, 0.25}}
	w:sum():backward()
	local ways = {
		['x[1]'] = function() return x[1] end,
		['x[{{1, 2}}]'] = function() return x[{{1, 2}}] end,
		["x['1:2']"] = function() return x['1:2'] end,
		['x[mask]'] = function() return x[mask] end,
		['x[1] ='] = function() x[1] = 2 end,
		['x[{{1, 2}}] ='] = function() x[{{1, 2}}] = 1 end,
		['x[mask] ='] = function() x[mask] = 1 end,
		['x[1] = y'] = function() x[1] = one end,
		['w[1]'] = function() return w[1] end,
		['-x'] = function() return -x end,
		['tensor{1}'] = function() return tensor{1} end,
		['tensor{1, grad=true}'] = function() return tensor{1, grad=true} end,
		["tensor{1, quant='int8'}"] = function() return tensor{1, quant='int8'} end,
		['item'] = function() return one:item() end,
		['totable'] = function() return one:totable() end,
		['copy_'] = function() return x:copy_(1) end,
		['fill_'] = function() return x:fill_(1) end,
		['detach'] = function() return w:detach() end,
		['grad'] = function() return w:grad() end,
		['qparams'] = function() return q:qparams() end,
		['tostring'] = function() return tostring(q) end,
		['concat'] = function() return one .. '' end,
		['spec'] = function() return q:spec() end,
		['spec.scale'] = function() return spec.scale end,
		['quant.spec'] = function() return quant.spec {dtype='int8', axis=1, scale=0.5} end,
		['metrics'] = function() return q:metrics(q) end,
		['pairs'] = function() return function() for _ in pairs(rows) do end end end,
		['ipairs'] = function() return function() for _ in ipairs(rows) do end end end,
	}
	for name, way in pairs(ways) do
		it(name, function()
			local loop = name:find 'pairs' and way() or function() for _ = 1, 40000 do way() end end
			way() -- what it keeps for itself
			local most = peak('incremental', loop)
			assert(most < 5 * MIB, most)
		end)
	end
end)

it('passes over what a kernel gives back at once, and what stays alive', function()
	local a, kept = tensor.ones(600, 600), {}
	local product = collections(function() for _ = 1, 20 do local _ <close> = a:matmul(a) end end)
	assert(product <= 1, product)
	local growing = collections(function() for i = 1, 64 do kept[i] = tensor.zeros(262144) end end) -- 64 MiB
	assert(#kept == 64 and growing <= 10, growing)
end)

it('collects once for several MiB that are dropped', function()
	local x = tensor.zeros(25000) -- 100 KB
	local n = collections(function() for _ = 1, 1000 do local _ = x + 1 end end)
	assert(n >= 2 and n <= 20, n)
end)

it('leaves the meaning of collectgarbage as it is', function()
	assert(collectgarbage 'generational' == 'incremental' and collectgarbage 'incremental' == 'generational')
	collectgarbage 'stop'
	for _ = 1, 20 do local _ = tensor.zeros(1000000) end
	assert(not collectgarbage 'isrunning')
	collectgarbage 'restart'
	assert(collectgarbage 'isrunning' and collectgarbage() == 0 and collectgarbage 'count' > 0)
end)
