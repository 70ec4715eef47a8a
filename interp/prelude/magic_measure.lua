-- SPDX-License-Identifier: MIT
-- %timeit, %bench and %explain.
local _, internal = ...
local magics = {}

function magics.timeit(_, _, f) print(bench.time(f)) end

-- The report of bench.time as the value of the input.
function magics.bench(text, number, f)
	local name = text:match '^%s*(.-)%s*$':gsub('%s+', ' ')
	internal.bench_report = bench.time(f, {name = #name > 40 and name:sub(1, 39) .. '…' or name})
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
		("%d op%s fell back to float32; help 'fallback' tells what can be done"):format(fell, fell == 1 and '' or 's'))
end

return magics
