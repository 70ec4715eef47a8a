-- SPDX-License-Identifier: MIT
-- quoll bench: bench.machine, or bench.kernels, printed, saved and drawn. Returns the exit code.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail = base.fail

local VALUES = {['--threads'] = true, ['--time'] = true, ['--out'] = true, ['--json'] = true, ['--plot'] = true}

-- Rows and options of the command line.
local function read_arguments(args)
	local rows, found, i = {}, {}, 1
	while args[i] do
		local name, value = args[i]:match '^(%-%-%l+)=?(.*)$'
		if not name then
			rows[#rows + 1] = args[i]
		elseif not VALUES[name] then
			fail('bench: %s: no such option', name)
		else
			if not args[i]:find '=' then
				i = i + 1
				value = args[i] or ''
			end
			if value == '' then fail('bench: %s: wanted a value, got none', name) end
			found[name] = value
		end
		i = i + 1
	end
	return rows, found
end

local function numbers(text)
	local list = {}
	for word in text:gmatch '[^,]+' do
		local n = math.tointeger(tonumber(word))
		if not n then fail("bench: --threads: wanted numbers with commas between, got '%s'", text) end
		list[#list + 1] = n
	end
	return list
end

local function seconds(text)
	local n = tonumber(text)
	if not n or n <= 0 or n > 3600 then fail("bench: --time: wanted seconds up to 3600, got '%s'", text) end
	return n
end

-- A bar for each row that has a share.
local function draw(r, file)
	local rows = {columns = {'row', 'share', 'threads'}}
	for _, row in ipairs(r) do
		if row.share then rows[#rows + 1] = {row = row.family .. ' ' .. row.size, share = row.share, threads = row.threads} end
	end
	if #rows == 0 then fail('bench: --plot: no row has a share of a limit') end
	local names, shares, threads = {}, {}, {}
	for i, row in ipairs(rows) do names[i], shares[i], threads[i] = row.row, row.share, ('%d threads'):format(row.threads) end
	plot.bar {x = names, y = shares, group = threads, horizontal = true, height = 120 + 24 * #rows, xlabel = 'share of the limit', file = file}
end

return function(args)
	local rows, o = read_arguments(args)
	local r
	if rows[1] == 'kernels' then
		if #rows > 1 then fail("bench: wanted nothing after kernels, got '%s'", rows[2]) end
		if o['--threads'] or o['--plot'] then fail 'bench: kernels: takes --time, --out and --json' end
		r = bench.kernels {time = o['--time'] and seconds(o['--time'])}
	else
		r = bench.machine {rows = rows[1] and rows or nil, threads = o['--threads'] and numbers(o['--threads']), time = o['--time'] and seconds(o['--time'])}
	end
	r:show()
	for _, name in ipairs {'--out', '--json'} do
		if o[name] then
			if name == '--json' and not o[name]:find '%.json$' then fail("bench: --json: wanted a name that ends in .json, got '%s'", o[name]) end
			r:save(o[name])
		end
	end
	if o['--plot'] then draw(r, o['--plot']) end
	return 0
end
