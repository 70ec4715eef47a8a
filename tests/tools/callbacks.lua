-- SPDX-License-Identifier: MIT
-- The vocabulary of tests/interp/callbacks*.lua: tensors and other things to work on, deeds (close, collect, drop, change, raise,
-- yield, call again), values and objects that do such deeds when Lua code asks them something, and calls that ask.
local random = math.random
local function chance(percent) return random(100) <= percent end
local function one_of(list) return list[random(#list)] end

---------------------------------------------------------------- what there is to work on

local pool, observers, figures, threads, in_flight, weak, risen = {}, {}, {}, {}, {}, setmetatable({}, {__mode = 'k'}), {}
local DTYPES = {'float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int32', 'int64', 'bool'}
local SPECS = {'int8', 'uint8', 'int8/1', 'int4', 'int4:32', 'uint8@percentile', 'int8@mse', 'binary/1', 'int16', 'float16', 'kmeans4', 'nf4:2:2', 'evil4', 'evil4/1',
	'evil4:2', 'evil4:2'}
local evil, value_of, call_something

local function small_shape()
	local shape = {}
	for i = 1, random(0, 4) do shape[i] = random(0, 4) end
	return shape
end

local function new_tensor()
	local kind, shape = random(8), small_shape()
	if kind == 1 then return tensor.full{shape, value = random(5), dtype = one_of(DTYPES)} end
	if kind == 2 then return tensor.randn(random(4), random(4)):quantize(one_of(SPECS)) end
	if kind == 3 then return tensor.randn(4, 4):t() end
	if kind == 4 then return tensor.randn(2, 3, 4, 4) end
	if kind == 5 then return tensor.randn(random(4), 4):requires_grad_() end
	if kind == 6 then return tensor.zeros{4, dtype = 'int64'} end
	return tensor.randn{4, 4}
end

local function fill()
	for i = 1, 12 do
		local good, t = pcall(new_tensor)
		if good then pool[i] = t end
	end
end

local function any_tensor()
	local t = pool[random(12)]
	if t == nil or chance(3) then
		local good, new = pcall(new_tensor)
		t = good and new or tensor.ones(2, 2)
		pool[random(12)] = t
	end
	in_flight[#in_flight % 32 + 1] = t
	return t
end

-- Is given to Lua code in the middle of a call.
local function resurrecting(t)
	weak[t] = true
	setmetatable({t}, {__gc = function(holder) risen[#risen % 16 + 1] = holder[1] end})
end

---------------------------------------------------------------- what the callbacks do

local function close(value) local _ <close> = value end

local depth, over = 0, false
local deeds = {
	function() close(one_of(in_flight)) end,
	function() close(any_tensor()) end,
	function() for i = 1, #in_flight do close(in_flight[i]) end end,
	function() collectgarbage() end,
	function() collectgarbage() collectgarbage() end,
	function() for _ = 1, 20 do collectgarbage 'step' end end,
	function() collectgarbage(one_of{'generational', 'incremental'}) end,
	function()
		for i = 1, 12 do pool[i] = nil end
		for i = #in_flight, 1, -1 do in_flight[i] = nil end
		collectgarbage()
	end,
	function() error(one_of{'text', {}, 1, setmetatable({}, {__tostring = function() evil() return 'e' end})}, 0) end,
	function() if coroutine.isyieldable() then coroutine.yield(any_tensor()) end end,
	function() any_tensor():fill_(random(3)) end,
	function() any_tensor():add_(1) end,
	function() any_tensor():copy_(any_tensor()) end,
	function() local t = any_tensor() t:requires_grad_(chance(50)) end,
	function() any_tensor():zero_grad() end,
	function() any_tensor()[1] = 0 end,
	function() (any_tensor() * any_tensor()):sum():backward() end,
	function() local t = one_of(in_flight) if t then resurrecting(t) end end,
	function() for t in next, weak do call_something(t) break end end,
	function() for i, t in next, risen do risen[i] = nil call_something(t) break end end,
	function() local o = one_of(observers) if o then o[one_of{'update', 'reset', 'params', 'range', 'measure'}](o, any_tensor()) end end,
	function() local o = one_of(observers) if o then close(o) end end,
	function() local o, p = one_of(observers), one_of(observers) if o then o:merge(p) end end,
	function() local f = one_of(figures) if f then close(f) end end,
	function() local f = one_of(figures) if f then f:text() end end,
	function() local co = one_of(threads) if co then coroutine.resume(co, 1) end end,
	function() local co = one_of(threads) if co then coroutine.close(co) end end,
	function() coroutine.close((coroutine.running())) end,
	function() tensor.nograd(evil) end,
	function() call_something() end,
	function() call_something() end,
	function() local s = '' for i = 1, 50 do s = s .. i end end,
	function() tensor.zeros(1000, 100) end,
	function() for key in next, in_flight.options or {} do in_flight.options[key] = nil end collectgarbage() end,
	function() for i in next, in_flight.list or {} do in_flight.list[i] = nil end collectgarbage() end,
	function() tensor.seed(random(9)) end,
	function() tensor.threads(random(2)) end,
	function() tensor.memory() end,
}

function evil()
	if over or depth > 4 or chance(30) then return end
	depth = depth + 1
	local _ <close> = setmetatable({}, {__close = function() depth = depth - 1 end})
	for _ = 1, random(3) do
		local deed = one_of(deeds)
		if chance(75) then pcall(deed) else deed() end
	end
end

---------------------------------------------------------------- values that call back

-- A table that gives the items of `list`, and calls back.
local function lazy(list)
	return setmetatable({}, {
		__len = function() evil() return #list end,
		__index = function(_, i) evil() return list[i] end,
	})
end

local function maybe_lazy(list)
	in_flight.list = list
	return chance(60) and lazy(list) or list
end

local function speaking(text) return setmetatable({}, {__tostring = function() evil() return text end, __name = chance(50) and 'speaking' or nil}) end

-- A number format of functions that do deeds: integers of 4 bits, and sometimes nonsense. Tensors that it is given may be closed then.
local function any_result(x)
	in_flight[#in_flight % 32 + 1] = x
	evil()
	if chance(10) then return one_of {any_tensor(), 1, 'x', false, x} end
	return nil
end
local function define_evil()
	quant.scheme {name = 'evil4', bits = 4, signed = true, unit = 7,
		encode = function(x, scale) return any_result(x) or (x / scale):round():clamp(-8, 7) end,
		decode = function(codes, scale) return any_result(scale) or codes:to 'float32' * scale end,
		fit = function(x) return any_result(x) or x:abs():max {axis = 2} / 7 end}
end
define_evil()
local redefined = 0
deeds[#deeds + 1] = function()
	redefined = redefined + 1
	if redefined < 20 then define_evil() end
end

-- An object that answers what tostring, print, the prompt, completion and loops ask, and does deeds before.
local ANSWERS = {
	__tostring = function() return one_of{'text', 'a\nb', '', '\xff', 1, {}} end,
	__show = function() return one_of{'text', 7, {}, false} end,
	__mime = function() return one_of{{['text/html'] = 'x'}, {['image/png'] = '\137PNG\r\n\26\n'}, {[1] = 2}, 'x', any_tensor()} end,
	__index = function(_, key) return one_of{key, 1, false, any_tensor()} end,
	__newindex = function() end,
	__len = function() return one_of{0, 3, 1 << 40, 'x', -1} end,
	__pairs = function(t) return function(_, k) evil() if (k or 0) < 4 then return (k or 0) + 1, any_tensor() end end, t end,
	__call = function(_, ...) return ... end,
	__eq = function() return chance(50) end,
	__lt = function() return chance(50) end,
	__le = function() return chance(50) end,
	__concat = function() return 'joined' end,
	__close = function() end,
	__gc = function() end,
}
local SOME = {}
for name in pairs(ANSWERS) do SOME[#SOME + 1] = name end
table.sort(SOME)

local function hostile()
	local meta = {__name = one_of{'thing', 'quoll.tensor', 'quoll.figure', 'quoll.report', 5, {}}}
	if chance(50) then meta.__name = nil end
	for _ = 1, random(5) do
		local name = one_of(SOME)
		meta[name] = function(...)
			evil()
			return ANSWERS[name](...)
		end
	end
	if chance(10) then meta.__index = any_tensor() end
	if chance(10) then meta.__metatable = one_of{false, 'locked'} end
	return setmetatable({any_tensor(), name = chance(50) and 'n' or nil}, meta)
end

local function integers()
	local list = {}
	for i = 1, random(0, 4) do list[i] = chance(90) and random(-2, 5) or one_of{1 << 40, -1, 0, 2 ^ 53, 'a', speaking 's'} end
	return list
end

local function observing() return function() evil() return one_of{-1, -3, 'x'}, one_of{1, 0.5, 2} end end

local function spec()
	if chance(30) then return one_of(SPECS) end
	local s = {dtype = one_of{'int8', 'uint8', 'int4'}}
	if chance(50) then s.observer = observing() end
	if chance(20) then s.axis = one_of{1, -1, 2} end
	if chance(15) then s.scale = any_tensor() end
	if chance(15) then s.zero_point = any_tensor() end
	if chance(15) then s.bits, s.dtype = maybe_lazy{4, 8, 4, 8}, nil end
	in_flight.options = s
	if chance(30) then return quant.spec(s) end
	return s
end

local makers = {
	function() return random(-2, 5) end,
	function() return random(-2, 5) end,
	function() return random() end,
	function() return chance(50) end,
	function() return one_of(DTYPES) end,
	function() return maybe_lazy(integers()) end,
	function() return maybe_lazy(integers()) end,
	function() return spec() end,
	any_tensor,
	function() return maybe_lazy{any_tensor(), any_tensor()} end,
	function() return one_of{'same', 'zeros', 'mean', 'sum', 'auto', 'none', 'cpu', 'x', 'ij,jk->ik'} end,
	function() return speaking 'a' end,
	function() return observing() end,
	function() return hostile() end,
}
function value_of() return one_of(makers)() end

---------------------------------------------------------------- what is called

local ops, options = {}, {}
for _, op in ipairs(tensor.ops()) do ops[#ops + 1] = {f = tensor[op.name] or tensor.ones(1)[op.name], op = op} end
for _, op in ipairs(nn.ops()) do ops[#ops + 1] = {f = nn[op.name], op = op} end
for _, op in ipairs(tensor.ops()) do
	if op.inplace then ops[#ops + 1] = {f = tensor.ones(1)[op.name .. '_'], op = op} end
end

-- The names of its options, from the error that lists them.
local function options_of(entry)
	local known = options[entry.f]
	if not known then
		known = {}
		local arguments = {}
		for i = 1, entry.op.arity_min do arguments[i] = tensor.ones(1) end
		if entry.op.list_in then arguments = {{tensor.ones(1)}} end
		arguments[#arguments + 1] = {no_such_option = 1}
		local _, message = pcall(entry.f, table.unpack(arguments))
		for name in (tostring(message):match '; known: (.*)' or ''):gmatch '%w+' do known[#known + 1] = name end
		options[entry.f] = known
	end
	return known
end

local function call_op(t)
	local entry = one_of(ops)
	local op, arguments, known = entry.op, {}, options_of(entry)
	if op.list_in then
		local list = {}
		for i = 1, random(4) do list[i] = any_tensor() end
		if t then list[1] = t end
		if chance(50) then for i = 2, #list do list[i] = list[1] end end
		arguments[1] = maybe_lazy(list)
	else
		if op.name == 'einsum' then arguments[1] = 'ij,jk->ik' end
		for _ = 1, random(op.arity_min, op.arity_max) do
			arguments[#arguments + 1] = op.numbers and chance(10) and random(3) or any_tensor()
		end
		if t and op.arity_min > 0 then arguments[1] = t end
		if chance(50) then for i = 2, #arguments do arguments[i] = arguments[1] end end
	end
	if chance(50) then arguments[#arguments + 1] = value_of() end
	if #known > 0 and chance(50) then
		local given = {}
		for _ = 1, random(3) do
			local name = one_of(known)
			given[name] = (name == 'spec' or name == 'out' or name == 'quant') and spec() or value_of()
		end
		if chance(20) then for i, n in ipairs(integers()) do given[i] = n end end
		in_flight.options = given
		arguments[#arguments + 1] = given
	end
	local result = entry.f(table.unpack(arguments))
	if chance(30) then pool[random(12)] = result end
end

local function model()
	local custom = nn.module(function(m, x) evil() return m.fc(x) end, {fc = nn.Linear(4, 4)})
	return nn.Sequential{nn.Linear(4, 4), custom, one_of{nn.ReLU(), nn.Linear(4, 4)}}
end

local function data_of(n)
	return function()
		local i = 0
		return function()
			evil()
			i = i + 1
			if i <= n then return tensor.randn(2, 4), tensor{1, 2, dtype = 'int64'} end
		end
	end
end

local function metric() return function(y) evil() return one_of{0.5, 1, 'x', y:sum()} end end
local function loss() return function(y, z) evil() return chance(90) and (y * y):sum() or one_of{z, 1, nil} end end
local function rate() return setmetatable({}, {__call = function() evil() return 0.1 end}) end

local calls = {
	call_op, call_op, call_op, call_op, call_op, call_op, call_op, call_op,
	function() return any_tensor()[one_of{maybe_lazy{1, {1, 2}}, maybe_lazy{maybe_lazy{1, 1}}, '1:2', any_tensor()}] end,
	function() any_tensor()[maybe_lazy{maybe_lazy{1, 2}, 1}] = one_of{1, any_tensor()} end,
	function() return tensor(maybe_lazy{maybe_lazy{1, 2}, maybe_lazy{3, 4}}) end,
	function() return tensor{1, 2, quant = spec()} end,
	function() return tensor{{1, 2}, maybe_lazy{3, 4}, dtype = one_of(DTYPES)} end,
	function() return quant.spec(spec()) end,
	function() return quant.params(-1, 1, spec()) end,
	function() return quant.bytes(maybe_lazy(integers()), spec()) end,
	function() observers[random(4)] = quant.observer(spec()) end,
	function() local o = one_of(observers) if o then o:update(any_tensor()) end end,
	function() local o = one_of(observers) if o then return o:params() end end,
	function() local o = one_of(observers) if o then return tostring(o), o:range() end end,
	function() local o = one_of(observers) if o then return o:stats() end end,
	function() figures[random(3)] = plot.line(maybe_lazy{maybe_lazy{1, 2}, any_tensor()}) end,
	function() figures[random(3)] = plot[one_of{'line', 'bar', 'hist', 'scatter', 'heat', 'box'}]{any_tensor(), title = one_of{'t', speaking 'x'},
		names = maybe_lazy{'a'}, xlim = maybe_lazy{0, 1}} end,
	function() return model():evaluate(data_of(2), {metric = metric(), log = false}) end,
	function()
		local m = model()
		return m:fit(data_of(2), {opt = optim[one_of{'sgd', 'adam'}](m, {lr = rate()}), loss = loss(), validate = chance(30) and data_of(1) or nil,
			metric = metric(), log = chance(50) and function() evil() end or false})
	end,
	function() return model():calibrate(data_of(2), {log = false}) end,
	function() return model():quantize{mode = one_of{'weight_only', 'dynamic', 'qat'}, weight = spec()} end,
	function()
		local m = model():calibrate(data_of(2), {log = false})
		return m:quantize{mode = 'static', weight = spec()}
	end,
	function() return graph.trace(model(), tensor.randn(2, 4)):run(tensor.randn(2, 4)) end,
	function()
		local g = graph.trace(model(), tensor.randn(2, 4))
		g:calibrate(data_of(1), {log = false})
		return g:quantize{weight = spec()}
	end,
	function() return model():summary(tensor.randn(2, 4)) end,
	function() return optim.clip({any_tensor(), any_tensor()}, maybe_lazy{clip = 1}) end,
	function() return optim.norm(maybe_lazy{any_tensor()}) end,
	function()
		local set = data.tensors(tensor.randn(6, 2), tensor.ones(6))
		for x, y in data.loader(set, {batch = 2, shuffle = chance(50), prefetch = chance(50)})() do
			in_flight[#in_flight % 32 + 1] = x
			in_flight[#in_flight % 32 + 1] = y
			evil()
		end
	end,
	function() return report{maybe_lazy{a = 1}, {a = 2}}:where(function() evil() return true end) end,
	function() return report{{a = 2}, {a = 1}}:where{a = function() evil() return true end} end,
	function() local name = os.tmpname() .. '.npz' tensor.save(name, maybe_lazy{a = any_tensor(), any_tensor()}) return tensor.load(name) end,
	function() return bench.time(function() evil() end, {runs = 1, calls = 1}) end,
	function() return tostring(any_tensor()), any_tensor() .. speaking 'x', any_tensor():totable(), any_tensor():item() end,
	function() return any_tensor():explain(), any_tensor():qparams(), any_tensor():spec(), any_tensor():check() end,
	function() return any_tensor():error(any_tensor()) end,
	function() for _, row in ipairs(any_tensor()) do evil() in_flight[#in_flight % 32 + 1] = row end end,
	function() for _, row in pairs(any_tensor()) do evil() close(row) end end,
	function() (any_tensor() * 2):sum():backward(chance(20) and any_tensor() or nil) end,
	function() table.sort({any_tensor(), any_tensor(), any_tensor()}, function(a, b) evil() return a:nelem() < b:nelem() end) end,
	function() return ('abc'):gsub('.', function() evil() return 'x' end) end,
	function() return load(function() evil() return nil end) end,
	function() return tensor.nograd(evil) end,
	function() return xpcall(evil, evil) end,
	function() return any_tensor().no_such_method, any_tensor()[speaking 'k'] end,
}

function call_something(t)
	if depth > 4 then return end
	local f = one_of(calls)
	local result = f(t)
	if chance(20) and type(result) == 'userdata' then in_flight[#in_flight % 32 + 1] = result end
end

local function records() return (tensor.ones(1):requires_grad_() * 2):requires_grad() end

-- Something that can be shown.
local function thing()
	return one_of{hostile, hostile, any_tensor, value_of, function() return one_of(figures) end, function() return one_of(observers) end, model,
		function() return report{{a = hostile()}, {a = 1, b = any_tensor()}} end, function() return {hostile(), k = {any_tensor()}} end}()
end

-- Drops everything; what was brought back by finalizers, too.
local function forget()
	collectgarbage 'incremental'
	for _, list in ipairs{pool, observers, figures, threads, in_flight, weak, risen} do
		for key in next, list do list[key] = nil end
	end
	for _ = 1, 4 do collectgarbage() end
	for key in next, risen do risen[key] = nil end
	for _ = 1, 2 do collectgarbage() end
end

-- Numbers from now on; what was going on is forgotten.
local function begin(seed)
	math.randomseed(seed)
	depth = 0
end

-- No more deeds: what finalizers make while the state is closed is never released.
local function finish() over = true end

local function in_a_coroutine()
	local co = coroutine.create(call_something)
	threads[random(4)] = co
	for _ = 1, random(6) do
		if coroutine.status(co) ~= 'suspended' then break end
		pcall(coroutine.resume, co)
		assert(records(), 'a coroutine left gradients switched off')
	end
	if chance(30) then coroutine.close(co) end
end

return {begin = begin, call = call_something, calls = calls, chance = chance, data = data_of, evil = evil, fill = fill, finish = finish, forget = forget, hostile = hostile,
	in_a_coroutine = in_a_coroutine, lazy = maybe_lazy, model = model, one_of = one_of, pool = pool, records = records, speaking = speaking,
	tensor = any_tensor, thing = thing, value = value_of}
