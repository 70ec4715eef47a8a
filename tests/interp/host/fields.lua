-- SPDX-License-Identifier: MIT
-- What functions set for a while belongs to their coroutine: the mode of modules, hooks, the peak of memory. A coroutine that sleeps or
-- is dropped in the middle leaves nothing behind, one that goes on finds its own.
local internal = debug.getregistry()['quoll.internal']

local x, y = tensor.randn(2, 4), tensor{1, 2, dtype = 'int64'}

-- A model whose inner module calls f, and all of its modules.
local function model(f)
	local m = nn.Sequential{nn.Linear(4, 4), nn.Dropout(0.5), nn.module(function(self, v)
		if f then f(self) end
		return self.fc(v)
	end, {fc = nn.Linear(4, 4)})}
	local list = {}
	internal.import 'nn/base/module'.walk(m, function(_, inner) list[#list + 1] = inner end)
	return m, list
end

-- Every raw field, by module.
local function fields_of(list)
	local all = {}
	for i, inner in ipairs(list) do
		for key, value in next, inner do all[i .. ' ' .. tostring(key)] = value end
	end
	return all
end

local function same(a, b, except)
	for key, value in pairs(a) do
		if not except[key:match ' (.*)'] and b[key] ~= value then return key end
	end
	for key in pairs(b) do
		if not except[key:match ' (.*)'] and a[key] == nil then return key end
	end
end

local function batches(n, f)
	return function()
		local i = 0
		return function()
			i = i + 1
			if i <= n then
				f()
				return x, y
			end
		end
	end
end

local rest = coroutine.yield
local calls = {
	evaluate = function(m) return m:evaluate(batches(2, rest), {log = false}) end,
	metric = function(m) return m:evaluate({{x, y}}, {log = false, metric = function() rest() return 1 end}) end,
	fit = function(m) return m:fit(batches(2, rest), {log = false}) end,
	loss = function(m) return m:fit({{x, y}}, {log = false, loss = function(z) rest() return z:sum() end}) end,
	validate = function(m) return m:fit({{x, y}}, {log = false, validate = batches(1, rest)}) end,
	calibrate = function(m) return m:calibrate(batches(2, rest), {log = false}) end,
}
local inside = { -- of m(x)
	summary = function(m) return m:summary(x) end,
	models = function(m) return bench.models({m = m}, {data = {{x, y}}, log = false}) end,
	capture = function(m) return internal.import 'nn/quantize/layers'.capture(m, {'linear1'}, x) end,
	calibrated = function(m) return m:calibrate({{x, y}}, {log = false}) end,
	evaluated = function(m) return m:evaluate({{x, y}}, {log = false}) end,
}

local KEPT = {input_observers = true, output_observer = true, example = true} -- m:calibrate is there to leave them
local function check(name, call, m, list)
	for _, training in ipairs{true, false} do
		m:train(training)
		local before = fields_of(list)
		for ends = 1, 4 do
			local co = coroutine.create(call)
			local good, message = coroutine.resume(co, m)
			assert(good and coroutine.status(co) == 'suspended', message)
			local key = same(before, fields_of(list), KEPT)
			assert(not key, ('%s: asleep: %s'):format(name, key))
			if ends == 1 then
				co = nil -- luacheck: ignore 311
				collectgarbage()
			elseif ends == 2 then
				assert(coroutine.close(co))
			else
				m:train(ends == 4) -- is what others have from now on
				local now = fields_of(list)
				while coroutine.status(co) == 'suspended' do
					good, message = coroutine.resume(co)
					assert(good, message)
					key = same(now, fields_of(list), KEPT)
					assert(not key, ('%s: %s'):format(name, key))
				end
				m:train(training)
			end
			key = same(before, fields_of(list), KEPT)
			assert(not key, ('%s: after: %s'):format(name, key))
		end
	end
end

for name, call in pairs(calls) do
	it(name .. ' leaves the mode and hooks as they were', function() check(name, call, model()) end)
end
for name, call in pairs(inside) do
	it(name .. ' leaves them so, too, in the middle of the model', function()
		local awake = false
		local m, list = model(function() if awake and coroutine.isyieldable() then rest() end end)
		awake = true
		check(name, call, m, list)
	end)
end

it('the coroutine has its own mode when it goes on', function()
	local m, seen = model(), {}
	local co = coroutine.wrap(function()
		return m:evaluate(batches(3, function()
			seen[#seen + 1] = m.training
			rest()
			seen[#seen + 1] = m.training
		end), {log = false})
	end)
	co()
	for _ = 1, 2 do
		assert(m.training)
		co()
	end
	assert(co().count == 6 and m.training)
	assert(#seen == 6)
	for _, mode in ipairs(seen) do assert(mode == false) end
end)

it('two coroutines on one model', function()
	local m = model()
	local function running(method, options)
		return coroutine.wrap(function()
			m[method](m, batches(3, function() rest(m.training) end), options)
			return 'end'
		end)
	end
	local fit, evaluate = running('fit', {log = false}), running('evaluate', {log = false})
	m:eval()
	for _ = 1, 3 do assert(fit() == true and m.training == false and evaluate() == false and m.training == false) end
	assert(fit() == 'end' and evaluate() == 'end' and m.training == false)
end)

it('errors, and coroutines in coroutines', function()
	local m, list = model()
	local before = fields_of(list)
	for _ = 1, 3 do
		local co = coroutine.create(function()
			m:evaluate(batches(2, function()
				local inner = coroutine.wrap(function() m:fit(batches(2, rest), {log = false}) end)
				inner()
				assert(m.training == false)
				rest()
				assert(m.training == false)
				error 'stop'
			end), {log = false})
		end)
		assert(coroutine.resume(co))
		assert(not same(before, fields_of(list), KEPT))
		local good, message = coroutine.resume(co)
		assert(not good and message:find 'stop', message)
		assert(not same(before, fields_of(list), KEPT))
		collectgarbage()
	end
	local good = pcall(m.evaluate, m, batches(1, function() error {} end), {log = false})
	assert(not good and not same(before, fields_of(list), KEPT))
end)

it('the peak of memory is not forgotten', function()
	tensor.zeros(1 << 20)
	collectgarbage()
	local peak = tensor.memory().peak
	assert(peak >= 4 << 20)
	local co = coroutine.create(function() bench.time(function() rest() end, {runs = 1, calls = 1, warmup = 0}) end)
	assert(coroutine.resume(co))
	co = nil -- luacheck: ignore 311
	for _ = 1, 3 do collectgarbage() end
	assert(tensor.memory().peak >= peak)
end)

it('lists of fields: values that were nil, in the order of their ends', function()
	local t = {a = 1}
	do
		local _ <close> = internal.fields{t, 'a', 2, t, 'b', 3}
		assert(t.a == 2 and t.b == 3)
		local _ <close> = internal.fields{t, 'a', 4}
		assert(t.a == 4)
	end
	assert(t.a == 1 and t.b == nil)
	local co = coroutine.wrap(function()
		local _ <close> = internal.fields{t, 'a', 2, t, 'b', 3}
		local _ <close> = internal.fields{t, 'a', 4, t, 'c', 5}
		rest()
		assert(t.a == 4 and t.b == 3 and t.c == 5)
		t.a, t.d = 6, 7
		rest()
		assert(t.a == 6 and t.d == 7)
	end)
	co()
	assert(t.a == 1 and t.b == nil and t.c == nil)
	t.a = 10
	co()
	assert(t.a == 10 and t.d == 7 and t.c == nil)
	co()
	assert(t.a == 10 and t.b == nil)
end)

it('a trial in this process may not yield: its random numbers would be those of others', function()
	local file = os.tmpname()
	local function numbers()
		tensor.seed(5)
		return tensor.rand(3)
	end
	local wanted = numbers()
	tensor.seed(5)
	local co = coroutine.create(function()
		return sweep.run{name = 's', db = file, jobs = 0, log = false, grid = {a = {1}}, run = function() rest() return 1 end}
	end)
	local _, message = coroutine.resume(co)
	assert(coroutine.status(co) == 'dead', message)
	assert(tensor.rand(3):eq(wanted):all():item())
	os.remove(file)
end)
