-- SPDX-License-Identifier: MIT
-- %timeit, %bench and %explain.
local _, internal = ...
local magics = {}

-- The options before the code as those of bench.time.
local function parse(word, text)
	local o, names = {}, {n = 'calls', r = 'runs'}
	for name, number in text:gmatch '%-(%a)%s*(%d*)' do
		if not names[name] then error(("%s: unknown option '-%s'; known: -n calls, -r runs"):format(word, name), 0) end
		if number == '' then error(('%s: -%s: wanted a number, got none'):format(word, name), 0) end
		if tonumber(number) < 1 then error(('%s: -%s: wanted 1 or more, got %s'):format(word, name, number), 0) end
		o[names[name]] = math.tointeger(tonumber(number))
	end
	return o
end

function magics.timeit(text, _, f, at) print(bench.time(f, parse('timeit', text:sub(1, at)))) end

-- The report of bench.time as the value of the input.
function magics.bench(text, number, f, at)
	local o, name = parse('bench', text:sub(1, at)), text:sub(at + 1):match '^%s*(.-)%s*$':gsub('%s+', ' ')
	o.name = #name > 40 and name:sub(1, 39) .. '…' or name
	internal.bench_report = bench.time(f, o)
	if type(Out) == 'table' then Out[number] = internal.bench_report end
	rawset(_G, '_', internal.bench_report)
	internal.bench_report = nil
	print(Out and Out[number] or _)
end

local function times(n) return n == 1 and '' or (' (%d times)'):format(n) end

-- What the last input did to the ledger (interp/repl/call.c).
function magics.explain()
	local rows, fell = internal.ledger or {}, 0
	if #rows == 0 then
		print 'the last input ran no op'
		return
	end
	table.sort(rows, function(a, b)
		local fa, fb = a.path == 'fallback', b.path == 'fallback'
		if fa ~= fb then return fa end
		return a.count > b.count
	end)
	for _, row in ipairs(rows) do
		if row.path == 'fallback' then fell = fell + row.count end
		print(('  %-14s %-24s %-12s %s%s%s'):format(row.op, row.operands, row.path or '', row.kernel or '', times(row.count),
			row.reason and '\n      ' .. row.reason or ''))
	end
	print(fell == 0 and 'nothing fell back to float32' or
		("%d op%s fell back to float32; see help 'fallback'"):format(fell, fell == 1 and '' or 's'))
end

return magics
