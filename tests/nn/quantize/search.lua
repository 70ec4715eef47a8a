-- SPDX-License-Identifier: MIT
-- quant.search against all combinations, its budgets, and a search that was stopped.
-- labels: once
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end

tensor.seed(4)
local m = nn.Sequential {nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 8)}
local x = tensor.randn(64, 16)
local data = {{x, m(x):detach()}}
local choices = {{bits=2, axis=1}, 'int4/1', 'int8/1'}
local names = {'linear1', 'linear2', 'linear3', 'linear4'}

-- drop and bytes of each layer and choice alone, measured here
local function table_of()
	local all = {}
	for _, name in ipairs(names) do
		all[name] = {}
		for i, spec in ipairs(choices) do
			local q = m:quantize {mode='weight_only', rules={{name, spec}, {'.*', false}}}
			all[name][i] = {drop = math.max(0, q:evaluate(data, {metric='mse', log=false}).value), bytes = q[name].weight:nbytes()}
		end
	end
	return all
end
local all = table_of()

-- The fewest bytes whose drops sum to at most the budget, and the least drop within bytes, by trying all.
local function best(drop, bytes)
	local least = math.huge
	for a = 1, 3 do for b = 1, 3 do for c = 1, 3 do for d = 1, 3 do
		local sum, size = 0, 0
		for i, pick in ipairs {a, b, c, d} do
			sum, size = sum + all[names[i]][pick].drop, size + all[names[i]][pick].bytes
		end
		if drop and sum <= drop then least = math.min(least, size) end
		if bytes and size <= bytes then least = math.min(least, sum) end
	end end end end
	return least
end

it('is exact: no combination is better by the sum of single drops', function()
	for _, budget in ipairs {1e-4, 1e-3, 3e-3, 1e-2, 1} do
		local _, _, steps = quant.search(m, {data=data, metric='mse', choices=choices, drop=budget, log=false})
		assert(steps[1].bytes == best(budget), budget)
	end
	for _, bytes in ipairs {1184, 1300, 1600, 2000, 5000} do
		local _, _, steps = quant.search(m, {data=data, metric='mse', choices=choices, bytes=bytes, log=false})
		assert(math.abs(steps[1].predicted - best(nil, bytes)) < 1e-9 and steps[1].bytes <= bytes)
	end
end)
it('keeps the budget as it is measured, and its rules do what it says', function()
	for _, method in ipairs {'exact', 'greedy'} do
		local rules, r = quant.search(m, {data=data, metric='mse', choices=choices, drop=2e-3, method=method, log=false})
		local q = m:quantize {mode='weight_only', rules=rules}
		local value = q:evaluate(data, {metric='mse', log=false}).value
		local chosen = r:where {chosen=true}
		assert(#chosen == 1 and math.abs(chosen[1].mse - value) < 1e-12 and value <= 2e-3)
		local bytes = 0
		for _, name in ipairs(names) do bytes = bytes + q[name].weight:nbytes() end
		assert(chosen[1].bytes == bytes)
		for i = 2, #r do assert(r[i].bytes >= r[i - 1].bytes) end
	end
end)
it('the front holds what nothing beats', function()
	local _, r = quant.search(m, {data=data, metric='mse', choices=choices, drop=1, log=false})
	assert(#r >= 5)
	for i = 1, #r do
		local beaten = false
		for k = 1, #r do
			beaten = beaten or r[k].bytes <= r[i].bytes and r[k].drop <= r[i].drop and (r[k].bytes < r[i].bytes or r[k].drop < r[i].drop)
		end
		assert(r[i].front == not beaten)
	end
end)
it('chooses the best of what it has measured: no row that keeps the budget is cheaper', function()
	for seed = 1, 2 do
		tensor.seed(seed)
		local m = nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)}
		local x = tensor.randn(128, 8)
		local o = {data={{x, m(x):argmax(-1):detach()}}, choices={'int4/1', 'int8/1', {dtype='binary', axis=1}}, log=false}
		local other = 0
		for _, method in ipairs {'exact', 'greedy'} do
			for _, drop in ipairs {4, 5, 6, 8, 20} do
				o.method, o.drop, o.bytes = method, drop, nil
				local _, r, steps = quant.search(m, o)
				local chosen = r:where {chosen=true}[1]
				for i = 1, #r do assert(r[i].drop > drop or r[i].bytes >= chosen.bytes) end
				assert(chosen.front and chosen.drop <= drop and steps[#steps].bytes == chosen.bytes)
				if steps[#steps].what:find 'cheapest of all measured' then other = other + 1 end
			end
			for _, bytes in ipairs {250, 300, 400} do
				o.drop, o.bytes = nil, bytes
				local rules, r = quant.search(m, o)
				local chosen = r:where {chosen=true}[1]
				for i = 1, #r do assert(r[i].bytes > bytes or r[i].drop >= chosen.drop) end
				local value = m:quantize {mode='weight_only', rules=rules}:evaluate(o.data, {metric='accuracy', log=false}).value
				assert(chosen.front and chosen.bytes <= bytes and chosen.accuracy == value)
			end
		end
		assert(other > 0) -- there was something to be chosen
		o.drop, o.bytes = 0, nil
		if seed == 1 then -- the sum of single drops is above 0 everywhere, what is measured is not
			local _, r, steps = quant.search(m, o)
			assert(steps[1].what:find 'over the budget' and steps[1].predicted > 0 and r:where {chosen=true}[1].drop <= 0)
		end
	end
end)
it('a drop that equals the budget keeps it', function()
	for _, rows in ipairs {1000, 400, 640} do
		tensor.seed(5)
		local m = nn.Sequential {nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)}
		local x = tensor.randn(rows, 8)
		local y = m(x):argmax(-1):detach()
		y:narrow(1, 1, 61):fill_(1)
		local third = rows // 3 -- batches of unequal size: a mean of means would be rounded
		local o = {data={{x:narrow(1, 1, third), y:narrow(1, 1, third)}, {x:narrow(1, third + 1, rows - third), y:narrow(1, third + 1, rows - third)}},
			choices={'int4/1', 'int8/1', {dtype='binary', axis=1}}, log=false, drop=100}
		local _, all = quant.search(m, o)
		local float, exact = m:evaluate(o.data, {metric='accuracy', log=false}).value, 0
		local right = m(x):argmax(-1):eq(y):sum():item()
		assert(float == 100 * right / rows)
		for i = 1, #all do
			local count = math.floor(all[i].accuracy * rows / 100 + 0.5)
			assert(all[i].accuracy == 100 * count / rows and all[i].drop == 100 * (right - count) / rows)
			o.drop = tonumber(('%.15g'):format(all[i].drop)) -- as a person writes it
			if o.drop >= 0 then
				local _, r = quant.search(m, o)
				local chosen = r:where {chosen=true}[1]
				assert(chosen.bytes <= all[i].bytes and chosen.drop <= o.drop, o.drop)
				exact = exact + (chosen.drop == o.drop and 1 or 0)
				o.drop = o.drop - 1e-9
				if all[i].chosen and o.drop >= 0 then assert(quant.search(m, o)) end
			end
		end
		assert(exact > 0)
	end
end)
it('false leaves layers float', function()
	local rules = quant.search(m, {data=data, metric='mse', choices={'int4/1', false}, drop=1e-12, log=false})
	for _, rule in ipairs(rules) do assert(rule[2] == false) end
end)
it('goes on where it was stopped', function()
	local name = os.tmpname()
	os.remove(name)
	local n = 0
	local function counted()
		local i = 0
		return function()
			i = i + 1
			if i == 1 then n = n + 1 end
			if i == 1 then return x, data[1][2] end
		end
	end
	local o = {data=counted, metric='mse', choices=choices, drop=2e-3, file=name, log=false}
	local rules = quant.search(m, o)
	local first = n
	-- half of the file, the last line torn, as after kill -9
	local f = io.open(name, 'rb')
	local text = f:read 'a'
	f:close()
	f = io.open(name, 'wb')
	f:write(text:sub(1, #text // 2))
	f:close()
	n = 0
	local again = quant.search(m, o)
	assert(n > 1 and n < first, n)
	for i in ipairs(rules) do assert(rules[i][1] == again[i][1] and rules[i][2] == again[i][2]) end
	n = 0
	quant.search(m, o)
	assert(n == 2, n) -- only the pass that tells data apart, and the batch that the layers' times are measured with
	local other = m:clone()
	tensor.nograd(function() other.linear1.weight:add_(1) end)
	o.file = name
	refused('wanted measurements of this model, data and options', quant.search, other, o)
	os.remove(name)
end)
it('refuses measurements of other data or another metric, and takes those of the same in another order', function()
	local name = os.tmpname()
	os.remove(name)
	local y = data[1][2]
	local function run(given, change)
		local o = {data=given, metric='mse', choices={'int4/1', 'int8/1'}, drop=1, file=name, log=false}
		for key, value in pairs(change or {}) do o[key] = value end
		return quant.search(m, o)
	end
	local other = 'wanted measurements of this model, data and options'
	run(data)
	refused(other, run, {{x, y + 1}})
	refused(other, run, {{x, y:flip{1}}})
	refused(other, run, {{x + 1, y}})
	refused(other, run, {{x:narrow(1, 1, 63), y:narrow(1, 1, 63)}})
	refused(other, run, data, {loss=nn.mse})
	run{{x:flip{1}, y:flip{1}}}
	run{{x:clone(), y:clone()}}
	refused(other, run, {{x:narrow(1, 1, 32), y:narrow(1, 1, 32)}, {x:narrow(1, 33, 32), y:narrow(1, 33, 32)}}) -- dynamic ranges are those of batches
	os.remove(name)
	local function scaled(by) return function(a, b) return by * nn.mse(a, b):item() end end
	run(data, {metric=scaled(1)})
	run(data, {metric=scaled(1)})
	refused(other, run, data, {metric=scaled(2)})
	refused(other, run, data, {metric=function(a, b) return nn.mse(a, b):item() + 1 end})
	refused(other, run, data)
	local f = io.open(name, 'wb')
	f:write 'quoll search 2 mse - weight_only - nil 1:0 linear1.weight:1:1:1\n'
	f:close()
	refused('got those of an earlier one', run, data)
	os.remove(name)
end)
it('bad input', function()
	refused('search: wanted one budget, drop=, bytes= or ms=, got 0', quant.search, m, {data=data, metric='mse'})
	refused('search: wanted one budget, drop=, bytes= or ms=, got 2', quant.search, m, {data=data, metric='mse', drop=1, ms=1})
	refused("search: method: wanted 'exact' or 'greedy', got 'gredy'; did you mean 'greedy'?", quant.search, m,
		{data=data, metric='mse', drop=1, method='gredy'})
	refused('search: bytes: no combination of the choices is within 10; the least is', quant.search, m,
		{data=data, metric='mse', choices=choices, bytes=10, log=false})
	refused('search: drop: no combination of the choices is within', quant.search, m,
		{data=data, metric='mse', choices={'int4/1'}, drop=1e-9, log=false})
	refused('search: choices: wanted a list of specs, got an empty one', quant.search, m, {data=data, choices={}, drop=1})
	refused("search: choices: item 2: wanted a spec of codes, such as 'int8/1', got 'float32'", quant.search, m,
		{data=data, metric='mse', choices={'int8', 'float32'}, drop=1})
	refused('search: drop: wanted 0 or more', quant.search, m, {data=data, metric='mse', drop=0 / 0})
	refused('search: batches: wanted positive integer, got -1', quant.search, m, {data=data, metric='mse', drop=1, batches=-1})
	refused("search: mode: wanted weight_only, static, dynamic, auto, got 'qat'", quant.search, m, {data=data, metric='mse', drop=1, mode='qat'})
	for _, wrong in ipairs {m, function() end, function() return 3 end, {{1, 2}}, {{data[1][1]}}} do
		for _, f in ipairs {quant.search, quant.sensitivity} do refused('data: wanted', f, m, {data=wrong, metric='mse', drop=f == quant.search and 1 or nil}) end
	end
	local folder = os.tmpname():match '^(.*)/'
	refused('wanted a file, got one that cannot be read', quant.search, m, {data=data, metric='mse', drop=1, file=folder})
	refused('search: file: wanted a name', quant.search, m, {data=data, metric='mse', drop=1, file=folder .. '/a\0b'})
	refused('search: file: ' .. folder .. '/no/such', quant.search, m, {data=data, metric='mse', drop=1, file=folder .. '/no/such'})
end)
it('a metric that is no number', function()
	for value, text in pairs {[true] = 'wanted a function that returns a number, got true', ['x'] = "wanted a function that returns a number, got 'x'"} do
		refused(text, quant.search, m, {data=data, drop=1, metric=function() return value end, log=false})
	end
	refused('search: metric: wanted a number, got nan', quant.search, m, {data=data, drop=1, metric=function() return 0 / 0 end, log=false})
	refused('sensitivity: metric: wanted a number, got nan', quant.sensitivity, m, {data=data, metric=function() return 0 / 0 end, log=false})
end)

describe('choices with methods', function()
	local inputs = {{x}, {tensor.randn(64, 16)}}
	local list = {{'int3/1', method = {'mse', 'gptq'}}, 'int3/1', 'int8/1'}
	it('are measured with the codes of one pass of the float model', function()
		local rules, r = quant.search(m, {data=data, metric='mse', choices={list[1]}, bytes=1e6, calibration=inputs, log=false})
		local q = m:quantize {mode='weight_only', weight='int3/1', method={'mse', 'gptq'}, data=inputs, sequential=false, log=false}
		assert(math.abs(r[1].mse - q:evaluate(data, {metric='mse', log=false}).value) < 1e-12)
		assert(rules[1].method == list[1].method and tostring(rules[1].weight) == 'int3/1' and r[1].rules:find('linear1=int3/1 mse, gptq', 1, true))
		local again = m:quantize {mode='weight_only', rules=rules, data=inputs, sequential=false, log=false}
		assert(again:evaluate(data, {metric='mse', log=false}).value == r[1].mse)
	end)
	it('win where their codes are better', function()
		local rules, r = quant.search(m, {data=data, metric='mse', choices=list, bytes=1500, log=false})
		local learned = 0
		for _, rule in ipairs(rules) do learned = learned + (rule.method and 1 or 0) end
		assert(learned >= 1 and #r >= 1)
	end)
	it('are stored with what they learned from', function()
		local file = os.tmpname()
		os.remove(file)
		local o = {data=data, metric='mse', choices=list, bytes=1500, calibration=inputs, file=file, log=false}
		local rules = quant.search(m, o)
		local again = quant.search(m, o)
		for i in ipairs(rules) do assert(rules[i].method == again[i].method and rules[i][2] == again[i][2]) end
		o.calibration = {{x}}
		refused('got those of others', quant.search, m, o)
		os.remove(file)
	end)
	it('are refused where they change other layers, or without a spec', function()
		refused("wanted methods that decide about one weight, got 'awq'", quant.search, m, {data=data, metric='mse', choices={{'int4/1', method={'awq', 'gptq'}}}, drop=1})
		refused('got no spec', quant.search, m, {data=data, metric='mse', choices={{method='gptq'}}, drop=1})
		refused("got the field 'act'", quant.search, m, {data=data, metric='mse', choices={{'int4', method='gptq', act=true}}, drop=1})
		refused('calibration: wanted a choice', quant.search, m, {data=data, metric='mse', calibration=inputs, drop=1})
	end)
end)
