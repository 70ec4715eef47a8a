-- SPDX-License-Identifier: MIT
-- Random calls on views of 2^31 to 2^62 elements and on empty tensors with huge axes: `quoll huge_calls.lua seed first last file`.
-- The number of each call is written to `file` before the call, so that the parent knows which one did not come back
-- (tests/tensor/huge_views_full.lua). A call may fail, or give a tensor that holds together.
local seed, first, last, at = table.unpack(arg)
local values = dofile 'tests/tools/huge_values.lua'
local argument, choose, number, numbers, operand, sizes = values.argument, values.choose, values.number, values.numbers, values.operand, values.sizes
local shown = dofile 'tests/tools/huge_shown.lua'(values)

local OPS = {}
for _, op in ipairs(tensor.ops()) do OPS[#OPS + 1] = {op = op, home = tensor} end
for _, op in ipairs(nn.ops()) do OPS[#OPS + 1] = {op = op, home = nn} end
local VIEWS = {'expand', 'view', 'reshape', 'narrow', 'select', 'tile', 'pad', 'permute', 'transpose', 'unsqueeze', 'split'}
local OTHERS = {'nelem', 'nbytes', 'size', 'stride', 'is_contiguous', 'item', 'totable', 'explain', 'to', 'copy_', 'fill_', 'backward', 'detach', 'hist', 'error',
	'bytes'}

local function arguments(op)
	local given = {}
	for _ = 1, math.random(op.arity_min, math.max(op.arity_min, math.min(op.arity_max, 5))) do given[#given + 1] = operand() end
	if op.list_in then given = {given} end
	for _ = 1, math.random(0, 3) do given[#given + 1] = argument() end
	return given
end

local function call()
	local kind = math.random(12)
	if kind >= 11 then
		local entry = choose(shown)
		return entry[1], entry[2], {operand()}
	end
	if kind <= 6 then
		local entry = choose(OPS)
		local given = arguments(entry.op)
		local name = entry.op.name
		local run = math.random(8) == 1 and entry.op.inplace and given[1] and given[1][name .. '_'] or entry.home[name] or given[1][name]
		return name, run, given
	end
	local x = operand()
	if kind <= 8 then
		local name = choose(VIEWS)
		return name, x[name], {x, choose {argument(), numbers(math.random(1, 3)), sizes(math.random(1, 4))}, number(), number()}
	elseif kind == 9 then
		return 'index', function(...) return x[...] end, {argument()}
	end
	local name = choose(OTHERS)
	return name, function(...) return x[name](...) end, {x, argument()}
end

local function check(name, y)
	if math.type(y) or type(y) ~= 'userdata' or not y.nelem then return end
	local product, some = 1, true
	for _, n in ipairs {y:size()} do
		assert(n >= 0, name)
		some = some and n > 0
		if n > 0 then
			assert(product <= math.maxinteger // n, name .. ': the sizes overflow')
			product = product * n
		end
	end
	assert(y:nelem() == (some and product or 0), name .. ': nelem')
	assert(#tostring(y) < 100000, name .. ': prints all')
end

local done = 0
for i = tonumber(first), tonumber(last) do
	local f <close> = assert(io.open(at, 'w'))
	f:write(i)
	f:flush()
	values.begin(tonumber(seed), i)
	local made, name, run, given = pcall(call)
	if not made and name:find ': attempt to ' then error(name, 0) end -- a fault of these files, not a refused operand
	if made and run then
		if os.getenv 'HUGE_CALLS_VERBOSE' then
			io.stderr:write(i, ' ', name, '(')
			for _, a in ipairs(given) do
				io.stderr:write(type(a) == 'table' and '{' .. #a .. '}' or tostring(a):match '[^\n]*', ', ')
			end
			io.stderr:write ')\n'
		end
		local results = table.pack(pcall(run, table.unpack(given)))
		if results[1] then
			done = done + 1
			for k = 2, math.min(results.n, 4) do check(name, results[k]) end
		end
	end
	collectgarbage 'step'
end
print(done)
debug.getregistry()['quoll.internal'].exit_code(0) -- also when trials of a sweep failed
