-- SPDX-License-Identifier: MIT
-- What method= of m:quantize adds to it: which weights methods decide about, the codes that they give, and the columns of the report.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local method = internal.import 'nn/quantize/method'
local module = internal.import 'nn/base/module'
local ranges = internal.import 'nn/quantize/ranges'
local fail = base.fail
local learned = {}

local COLUMNS = {'method', 'rtn', 'error', 'block_rtn', 'block', 'seconds', 'peak'}

---------------------------------------------------------------- codes that are known

local GIVEN = {}

-- What takes the place of a method in rules: codes by field, which were learned before.
function learned.given(codes, text) return setmetatable({codes = codes, text = text}, GIVEN) end

-- Those of the layers' rules.
local function given_of(names, chosen_of)
	local codes, rows = {}, {}
	for _, name in ipairs(names) do
		local given = chosen_of[name].method
		if getmetatable(given) == GIVEN then codes[name], rows[name] = given.codes, {method = given.text} end
	end
	return {codes = codes, rows = rows}
end

---------------------------------------------------------------- the plan

-- The layers whose codes a method decides: name -> list of {name=, layer=, field=, spec=, mode=, input=, chain=, row=, first=, tied=}. fields_of(name, layer,
-- chosen): {spec= of its weights, mode=, input=}; nil: no method decides. first: the layer whose codes it gets; tied: others have its weight, too.
local function plan_of(names, by_name, chosen_of, options, fields_of)
	local plan, holders, held, chains, any = {}, {}, {}, {}, false
	for _, name in ipairs(names) do
		local chosen, layer = chosen_of[name], by_name[name]
		local asked = chosen.method or options.method
		local fields = asked and getmetatable(asked) ~= GIVEN and fields_of(name, layer, chosen)
		if fields then
			local chain = chains[asked] or method.chain(asked) -- one for all layers that share it
			chains[asked] = chain
			for _, field in ipairs(module.weights(layer)) do
				local weight = rawget(layer, field)
				local first = options.shared == 'once' and holders[weight]
				local item = {name = name, layer = layer, field = field, spec = fields.spec, mode = fields.mode, input = fields.input, chain = chain,
					row = {method = method.text(chain)}, first = first}
				if options.shared == 'once' and held[weight] then item.tied, held[weight].tied = true, true end
				held[weight] = held[weight] or item
				if first then
					item.row.why = ("its codes are those of '%s'"):format(first)
				else
					holders[weight] = name
				end
				plan[name] = plan[name] or {}
				table.insert(plan[name], item)
				any = true
			end
		end
	end
	return any and plan or nil
end

---------------------------------------------------------------- rows

local function db(signal, noise)
	if not signal then return nil end
	return noise == 0 and math.huge or 10 * math.log(signal / noise, 10)
end

local function sum(list, field)
	local total
	for _, item in ipairs(list) do
		if item.row[field] then total = (total or 0) + item.row[field] end
	end
	return total
end

local function notes(list)
	local parts, seen = {}, {}
	for _, item in ipairs(list) do
		local why = item.row.why or ''
		if why ~= '' and not seen[why] then parts[#parts + 1], seen[why] = why, true end
	end
	return table.concat(parts, '; ')
end

-- One row for all weights of a layer: errors of their sums.
local function row_of(list)
	if #list == 1 then return list[1].row end
	local first, peak = list[1].row, 0
	for _, item in ipairs(list) do peak = math.max(peak, item.row.peak or 0) end
	local signal = sum(list, 'signal')
	return {method = first.method, rtn = db(signal, sum(list, 'plain')), error = db(signal, sum(list, 'noise')), block = first.block, block_rtn = first.block_rtn,
		seconds = sum(list, 'seconds'), peak = peak > 0 and peak or nil, why = notes(list)}
end

---------------------------------------------------------------- the codes

local READ = {'batches', 'sequential', 'file', 'memory'} -- what is done with data=

-- Refuses options that would do nothing.
local function check_options(options, asked)
	module.check_words('quantize', {shared = {'apart', 'once'}}, options)
	for _, name in ipairs {'data', 'shared', table.unpack(READ)} do
		if options[name] ~= nil and not asked then fail('quantize: %s: wanted method= with it, got none', name) end
	end
	for _, name in ipairs(READ) do
		if options[name] ~= nil and options.data == nil then fail('quantize: %s: wanted data= with it, got none', name) end
	end
end

-- The codes that methods give: {codes = {name -> {field -> codes}}, rows = {name -> row}}; nil: no method is asked for. trained: of the
-- mode of the call.
function learned.run(new, names, by_name, chosen_of, options, fields_of, trained)
	local asked = options.method ~= nil
	for _, name in ipairs(names) do asked = asked or chosen_of[name].method ~= nil end
	check_options(options, asked)
	if not asked then return end
	if trained then fail("quantize: method: wanted a mode without training, got '%s'", trained) end
	local plan = plan_of(names, by_name, chosen_of, options, fields_of)
	local made = given_of(names, chosen_of)
	if not plan then return next(made.codes) and made or nil end
	if options.data == nil then ranges.check(plan, names) end
	local run = internal.import('nn/quantize/learn').run(new, plan, names, options)
	if run.moved and run.inputs then ranges.observe(new, run.inputs) end
	for name, list in next, plan do
		made.codes[name] = {}
		for _, item in ipairs(list) do
			local codes = item.codes
			if item.first then codes = plan[item.first][1].codes end
			made.codes[name][item.field] = codes
		end
		made.rows[name] = row_of(list)
	end
	return made
end

-- Adds what the methods say to the rows of the layers, and what r:plot() draws.
function learned.join(rows, made)
	table.remove(rows.columns)
	table.move(COLUMNS, 1, #COLUMNS, #rows.columns + 1, rows.columns)
	rows.columns[#rows.columns + 1] = 'why'
	for _, row in ipairs(rows) do
		local said = made.rows[row.name] or {method = '-'}
		for _, column in ipairs(COLUMNS) do row[column] = said[column] end
		row.seconds = row.seconds and math.floor(1000 * row.seconds + 0.5) / 1000
		if (said.why or '') ~= '' then row.why = (row.why ~= '' and row.why .. '; ' or '') .. said.why end
	end
	rows.figure = {x = 'name', y = {'rtn', 'error'}, names = {'rounding alone', 'with the method'}, ylabel = 'signal to noise of the outputs, dB', xlabel = 'layer', kind = 'line', panels = false}
end

return learned
