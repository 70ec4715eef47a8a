-- SPDX-License-Identifier: MIT
-- quant.search: chooses a spec for each layer within a budget of metric, bytes or milliseconds.
--
-- Measures each choice of each layer alone: drop of the metric, bytes, milliseconds. Drops are assumed to be additive
-- (as in HAWQ and ModelOpt), so the choice is a knapsack problem: solved exactly by merging layers one by one and
-- keeping the Pareto front of cost and drop (at most STATES combinations, evenly spaced). The proposal is then
-- measured; while the measured drop exceeds the budget, the layer with the largest gain per byte gets a finer spec.
-- Some points of the front are measured as well, and the best of all measured ones is chosen.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local metrics = internal.import 'nn/base/metrics'
local given = internal.import 'nn/quantize/given'
local fail, describe = base.fail, base.describe

local STATES = 20000
local FRONT = 12 -- combinations of the front to measure

local search = base.doc {name = 'quant.search', usage = "quant.search(m, {data=valid, metric='accuracy', choices={'int4/1', 'int8/1'}, drop=0.5})",
	text = [[Chooses a spec for the weights of each layer within a budget. Returns rules for m:quantize{rules=}, a report of the measured
combinations on the Pareto front of cost and metric, and a report that explains each step.

Exactly one budget is required. drop: the largest allowed loss of the metric; the bytes are minimized, or with minimize='ms' the time.
bytes (of all quantizable weights) or ms (sum of the layers' times): the drop is minimized. A drop equal to the budget is allowed:
accuracy is compared in counts, other metrics within a millionth of the float model's value, the rounding of a float32 mean. false among
the choices leaves a layer float.

method='exact' solves a knapsack problem. method='greedy' starts with the best choice for each layer and repeatedly takes the step with
the smallest loss per byte (or ms) saved. Because the drops of single layers are not exactly additive, the proposal is measured, and
while its drop exceeds drop= a layer gets a finer spec; the best measured combination within the budget is chosen.

Columns of the report, one row per combination: bytes, ms, predicted (sum of the drops of single layers), value (of the metric), drop,
front, chosen, rules.

file= stores every measurement at once, and later calls reuse it. A file of another model, other data (rows with their targets, in any
order, and the number of batches), metric or options is an error; this check reads the data once more. A function (metric, loss) is
identified by its code and the contents of its upvalues and globals.

A choice {'int4:32', method='gptq'} has codes that methods choose (help 'methods'; those that decide about one weight), from the inputs of
calibration= (default: those of data=): all such choices of all layers in one pass of the float model. Rules of such a choice are for
m:quantize{rules=, data=}, which learns again, behind quantized blocks.

mode= and input= are those of m:quantize (default mode weight_only; calibrate before static).]],
	options = {{'data', 'any', 'a loader, or a list of batches {x, y}: not the test data'}, {'metric', 'any', 'as in m:evaluate (default accuracy)'},
		{'choices', 'list', "specs, {spec, method=}, and false (default {'int4/1', 'int8/1'})"}, {'drop', 'number', 'budget, in the unit of the metric'},
		{'bytes', 'number', 'budget'}, {'ms', 'number', 'budget'}, {'minimize', 'text', "with drop: 'bytes' (default) or 'ms'"},
		{'method', 'text', "'exact' (default) or 'greedy'"}, {'mode', 'text', 'as in m:quantize (default weight_only)'},
		{'input', 'spec', "of activations (default 'uint8')"}, {'loss', 'function', 'for the metric loss'},
		{'calibration', 'any', 'batches of inputs for choices with method= (default: data)'},
		{'batches', 'positive integer', 'number of batches (default: all)'}, {'file', 'text', 'stores the measurements'}, {'log', 'true or false', 'draw a bar (default true)'}},
	example = [[tensor.seed(1)
m = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)}
data = {{tensor.randn(32, 8), tensor.randint{32, low=1, high=3}}}
rules, r = quant.search(m, {data=data, choices={'int4/1', 'int8/1'}, drop=100, log=false})
print(rules[1][1], rules[1][2])  --> linear1$ int4/1]]}

---------------------------------------------------------------- options

local function check(layers, o)
	local budgets = (o.drop and 1 or 0) + (o.bytes and 1 or 0) + (o.ms and 1 or 0)
	if budgets ~= 1 then fail('search: wanted one budget, drop=, bytes= or ms=, got %d', budgets) end
	local name, value = next {drop = o.drop, bytes = o.bytes, ms = o.ms}
	if value ~= value or value < 0 then fail('search: %s: wanted 0 or more, got %s', name, describe(value)) end
	local choices = o.choices or {'int4/1', 'int8/1'}
	base.list('search: choices', choices)
	if #choices == 0 then fail('search: choices: wanted a list of specs, got an empty one') end
	local list, learns = {}, false
	for i, spec in ipairs(choices) do
		local what = ('search: choices: item %d'):format(i)
		list[i] = given.choice(what, spec) or spec
		if spec ~= false and list[i] == spec then layers.check_spec(what, spec) end
		learns = learns or list[i] ~= spec
	end
	if o.calibration ~= nil and not learns then fail 'search: calibration: wanted a choice {spec, method=} with it, got none' end
	for _, pair in ipairs {{'minimize', {'bytes', 'ms'}}, {'method', {'exact', 'greedy'}}} do
		local chosen = o[pair[1]]
		if chosen ~= nil and chosen ~= pair[2][1] and chosen ~= pair[2][2] then
			fail("search: %s: wanted '%s' or '%s', got %s%s", pair[1], pair[2][1], pair[2][2], describe(chosen), base.near(chosen, pair[2]))
		end
	end
	return list, learns
end

local function name_of(spec)
	if spec == false then return 'float32' end
	return type(spec) == 'table' and spec.text or tostring(quant.spec(spec))
end

---------------------------------------------------------------- costs of one layer

local function bytes_of(module, layer)
	local bytes = 0
	for _, field in ipairs(module.weights(layer)) do bytes = bytes + rawget(layer, field):nbytes() end
	return bytes
end

-- Median milliseconds of a layer's call on its recorded input.
local function ms_of(layer, x)
	if not x then return 0 end
	layer(x)
	local times = {}
	for i = 1, 5 do
		local start = hw.clock()
		layer(x)
		times[i] = (hw.clock() - start) * 1e3
	end
	table.sort(times)
	return times[3]
end

---------------------------------------------------------------- knapsack

-- states: list of {cost, drop, pick (linked list)}; keeps the Pareto-optimal ones, at most STATES.
local function prune(states)
	table.sort(states, function(a, b)
		if a.cost ~= b.cost then return a.cost < b.cost end
		return a.drop < b.drop
	end)
	local kept, least = {}, math.huge
	for _, s in ipairs(states) do
		if s.drop < least then
			kept[#kept + 1] = s
			least = s.drop
		end
	end
	if #kept <= STATES then return kept end
	local thin, every = {}, #kept / STATES
	for i = 1, STATES do thin[i] = kept[math.floor((i - 1) * every) + 1] end
	thin[STATES] = kept[#kept]
	return thin
end

-- The Pareto front of all combinations: cost ascending, drop descending. `add` sums drops.
local function front_of(names, choices, entries, cost, add)
	local states = {{cost = 0, drop = 0}}
	for _, name in ipairs(names) do
		local grown = {}
		for _, s in ipairs(states) do
			for i in ipairs(choices) do
				local e = entries[name][i]
				grown[#grown + 1] = {cost = s.cost + e[cost], drop = add(s.drop, math.max(0, e.drop)), before = s, pick = i}
			end
		end
		states = prune(grown)
	end
	return states
end

local function picks_of(state, names)
	if state.picks then return state.picks end
	local picks = {}
	for i = #names, 1, -1 do picks[names[i]], state = state.pick, state.before end
	return picks
end

-- Starts with the choice of least drop for each layer; each step takes the cheaper choice with the least drop per unit saved.
local function greedy_front(names, choices, entries, cost, add)
	local picks, states = {}, {}
	local function state()
		local s = {cost = 0, drop = 0, picks = {}}
		for _, name in ipairs(names) do
			local e = entries[name][picks[name]]
			s.cost, s.drop, s.picks[name] = s.cost + e[cost], add(s.drop, math.max(0, e.drop)), picks[name]
		end
		return s
	end
	for _, name in ipairs(names) do
		picks[name] = 1
		for i in ipairs(choices) do
			local a, b = entries[name][i], entries[name][picks[name]]
			if a.drop < b.drop or a.drop == b.drop and a[cost] < b[cost] then picks[name] = i end
		end
	end
	states[1] = state()
	while true do
		local best
		for _, name in ipairs(names) do
			local now = entries[name][picks[name]]
			for i in ipairs(choices) do
				local e = entries[name][i]
				local saved = now[cost] - e[cost]
				local price = saved > 0 and (math.max(0, e.drop) - math.max(0, now.drop)) / saved
				if price and (not best or price < best.price) then best = {price = price, name = name, pick = i} end
			end
		end
		if not best then break end
		picks[best.name] = best.pick
		table.insert(states, 1, state())
	end
	return states
end

-- The best state of a front within the budget: cheapest within a drop, or least drop within a cost; nil if there is none.
local function within(front, o, keeps)
	local found
	for _, s in ipairs(front) do
		local cost = s.cost
		if o.drop and keeps(s.drop) and (not found or cost < found.cost) then found = s end
		if not o.drop and cost <= (o.bytes or o.ms) and (not found or s.drop < found.drop) then found = s end
	end
	return found
end

---------------------------------------------------------------- the search

local function measure_layers(layers, module, m, names, choices, o, how, metric, store, keep, bar, learn)
	local float = layers.by_name(layers.quantized(m, names, {}, how))
	local x = layers.first_batch('search', m, o.data)
	local none = {}
	local floats = layers.quantized(m, names, none, how)
	local seen = layers.capture(floats, names, x)
	local _ <close> = internal.nograd()
	local reference = store.float32 and store.float32.value
	if not reference then
		local value, count = layers.measure(floats, o.data, metric, how)
		reference = value
		keep('float32', {value = value, bytes = 0, ms = 0, count = count})
	end
	local entries, step, count = {}, 0, store.float32.count
	for _, name in ipairs(names) do
		entries[name] = {}
		for i, spec in ipairs(choices) do
			local key = name .. ' ' .. name_of(spec)
			local e = store[key]
			if not e then
				local model = layers.quantized(m, names, {[name] = given.pick(learn(), name, spec)}, how)
				local layer = layers.by_name(model)[name]
				e = {value = spec == false and reference or layers.measure(model, o.data, metric, how), count = count,
					bytes = bytes_of(module, spec == false and float[name] or layer), ms = ms_of(layer, seen[name] and seen[name].x)}
				keep(key, e)
			end
			e.drop = layers.drop(metric, reference, e.value, count)
			entries[name][i] = e
			step = step + 1
			bar:update(step, function() return key end)
		end
	end
	return reference, entries, count
end

local function plus(a, b) return a + b end

local function total(names, entries, picks, field, add)
	local sum = 0
	for _, name in ipairs(names) do sum = (add or plus)(sum, entries[name][picks[name]][field]) end
	return sum
end

local function rules_of(layers, names, choices, picks)
	local list = {}
	for i, name in ipairs(names) do list[i] = given.rule(layers.pattern(name), choices[picks[name]]) end
	return list
end

local function rules_text(names, choices, picks)
	local parts = {}
	for i, name in ipairs(names) do parts[i] = name .. '=' .. name_of(choices[picks[name]]) end
	return table.concat(parts, ' ')
end

-- The layer and choice with the largest gain per cost of a finer spec; nil if all layers have their finest.
local function finer(names, entries, picks, cost)
	local best
	for _, name in ipairs(names) do
		local now = entries[name][picks[name]]
		for i, e in ipairs(entries[name]) do
			local won = math.max(0, now.drop) - math.max(0, e.drop)
			local price = (won + 1e-9) / math.max(1e-9, e[cost] - now[cost])
			if e.bytes > now.bytes and (not best or price > best.price) then best = {price = price, name = name, pick = i} end
		end
	end
	if best then return best.name, best.pick end
end

-- Drops are not exactly additive, so another row of the front may be better than the predicted one: the cheapest within a drop, or the
-- least drop within a cost.
local function best_measured(list, o, cost, keeps)
	local first, second = 'drop', cost
	if o.drop then first, second = cost, 'drop' end
	local best, least
	for _, row in ipairs(list) do
		local kept = o.drop and keeps(row.drop) or not o.drop and row[cost] <= (o.bytes or o.ms)
		if kept and (not best or row[first] < best[first] or row[first] == best[first] and row[second] < best[second]) then best = row end
		if not least or row.drop < least.drop then least = row end
	end
	if not best then
		fail('search: drop: no combination of the choices is within %.6g when measured; the best of %d loses %.6g', o.drop, #list, least.drop)
	end
	return best
end

local function mark_front(list, cost)
	for _, a in ipairs(list) do
		a.front = true
		for _, b in ipairs(list) do
			if b[cost] <= a[cost] and b.drop <= a.drop and (b[cost] < a[cost] or b.drop < a.drop) then a.front = false end
		end
	end
end

function quant.search(m, options)
	local layers, module, progress = internal.import 'nn/quantize/layers', internal.import 'nn/base/module', internal.import 'interp/prelude/progress'
	local o = base.options(search, options)
	layers.check_model('search', m)
	local metric, names = layers.check_data('search', o), layers.names('search', m)
	local choices, learns = check(layers, o)
	local how = {what = 'search', mode = layers.check_mode('search', o.mode), input = o.input, batches = o.batches, loss = o.loss}
	local files = internal.import 'nn/quantize/search_store'
	local store, append = files.open(o.file, o.file and files.head(o, how, names, layers.by_name(m), learns and given.data(o)))
	local function keep(key, entry)
		store[key] = entry
		append(key, entry)
	end
	local bar <close> = progress.start('search', #names * #choices + FRONT, o.log)
	local found
	local function learn() -- when something is measured that the file does not have
		found = found or given.learn(layers.quantized(m, names, {}, how), names, choices, o)
		return found
	end
	local reference, entries, count = measure_layers(layers, module, m, names, choices, o, how, metric, store, keep, bar, learn)
	local cost = o.ms and 'ms' or o.drop and o.minimize or 'bytes'
	local function add_drops(a, b) return metrics.sum_drops(metric, count, a, b) end
	local function keeps(drop) return metrics.keeps(metric, drop, o.drop, reference) end
	local front = (o.method == 'greedy' and greedy_front or front_of)(names, choices, entries, cost, add_drops)
	local steps = {columns = {'step', 'what', 'predicted', 'drop', cost}}
	local function note(what, row) steps[#steps + 1] = {#steps + 1, what, row.predicted, row.drop, row[cost]} end
	local _ <close> = internal.nograd()
	local function measured(picks)
		local key = 'all ' .. rules_text(names, choices, picks)
		if not store[key] then
			local choice = {}
			for name, i in pairs(picks) do choice[name] = given.pick(learn(), name, choices[i]) end
			local model = layers.quantized(m, names, choice, how)
			keep(key, {value = layers.measure(model, o.data, metric, how), count = count, bytes = total(names, entries, picks, 'bytes'),
				ms = total(names, entries, picks, 'ms')})
		end
		return store[key].value, layers.drop(metric, reference, store[key].value, count)
	end
	local function row_of(picks)
		local v, d = measured(picks)
		return {picks = picks, value = v, drop = d, bytes = total(names, entries, picks, 'bytes'), ms = total(names, entries, picks, 'ms'),
			predicted = total(names, entries, picks, 'drop', add_drops), text = rules_text(names, choices, picks)}
	end
	local list, seen = {}, {}
	local function add(picks)
		local row = row_of(picks)
		if not seen[row.text] then list[#list + 1] = row end
		seen[row.text] = true
		return row
	end
	local state = within(front, o, keeps)
	if not state and not o.drop then
		fail('search: %s: no combination of the choices is within %.6g; the least is %.6g', cost, o.bytes or o.ms, front[1].cost)
	end
	local picks = picks_of(state or front[#front], names)
	local row = add(picks)
	note(state and 'best by the sum of single drops' or 'least sum of single drops, over the budget', row)
	while o.drop and not keeps(row.drop) do
		local name, pick = finer(names, entries, row.picks, cost)
		if not name then break end
		picks = {}
		for other, i in pairs(row.picks) do picks[other] = i end
		picks[name] = pick
		row = add(picks)
		note(('%s changes to %s'):format(name, name_of(choices[pick])), row)
	end
	for i = 0, FRONT - 1 do
		add(picks_of(front[1 + math.floor(i * (#front - 1) / math.max(1, FRONT - 1))], names))
		bar:update(#names * #choices + i + 1, function() return 'front' end)
	end
	local chosen = best_measured(list, o, cost, keeps)
	if chosen.text ~= row.text then
		note(('the %s of all measured within the budget'):format(o.drop and 'cheapest' or 'least drop'), chosen)
	end
	mark_front(list, cost)
	local called = metric.name == 'metric' and 'value' or metric.name
	local rows = {columns = {cost, cost == 'ms' and 'bytes' or 'ms', 'predicted', called, 'drop', 'front', 'chosen', 'rules'}}
	for i, each in ipairs(list) do
		rows[i] = {bytes = each.bytes, ms = each.ms, predicted = each.predicted, [called] = each.value, drop = each.drop, front = each.front,
			chosen = each == chosen, rules = each.text}
	end
	table.sort(rows, function(x, y)
		if x[cost] ~= y[cost] then return x[cost] < y[cost] end
		return x.drop < y.drop
	end)
	rows.note = ('%s: float32 %.4g, chosen %.4g; drop: how much worse'):format(metric.name, reference, chosen.value)
	local r = internal.import 'interp/prelude/report'(rows)
	return rules_of(layers, names, choices, chosen.picks), r, internal.import 'interp/prelude/report'(steps)
end

return true
