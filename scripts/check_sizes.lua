-- SPDX-License-Identifier: MIT
-- Sizes of memory are computed by checked helpers (tensor/base.h: ql_size_mul, ql_alloc_array, ql_mul64), because a
-- product that wraps gives a block that is too small. Refused, as .clang-format sets a product (a star between spaces):
--   * products in the arguments of a function that gives memory or adds up sizes,
--   * products with sizeof or ql_tensor_nelem, except where the memory exists already (memcpy and the like),
--   * products that become the value of a variable whose name says bytes, size or room.
-- Products of constants are fine, and so is twice a size, of an array that grows: memory is never half of all addresses. A comment `size: why it cannot overflow` on the line, or on the one before, allows one.
-- Run in the repository root; exit status 1 when a rule is broken.
local givers = {'ql_alloc', 'ql_alloc_zeroed', 'ql_realloc', 'ql_alloc_array', 'ql_alloc_array_zeroed', 'ql_realloc_array',
	'ql_scratch_take', 'ql_scratch_array', 'ql_slots_take', 'ql_gemm_take', 'malloc', 'calloc', 'realloc', 'lua_newuserdatauv',
	'ql_size_add', 'ql_size_mul', 'ql_size_align', 'ql_size_array'}
local existing = {'memcpy', 'memset', 'memmove', 'memcmp', 'qsort', 'vector_size'}
local names = {'bytes', 'size', 'room'}
local WHY = 12 -- letters of a reason, at least

local function blank(text) return (text:gsub('[^\n]', ' ')) end

-- The text without comments and strings, at the same positions; the comments with their positions.
local function code_of(text)
	local comments, out, at = {}, {}, 1
	while at <= #text do
		local next_one = text:find('[/"\']', at) or #text + 1
		out[#out + 1] = text:sub(at, next_one - 1)
		at = next_one
		local two, stop = text:sub(at, at + 1)
		if two == '/*' then
			stop = select(2, text:find('*/', at + 2, true)) or #text
			comments[#comments + 1] = {at = at, text = text:sub(at, stop)}
		elseif two == '//' then
			stop = (text:find('\n', at, true) or #text + 1) - 1
			comments[#comments + 1] = {at = at, text = text:sub(at, stop)}
		elseif two:find '^["\']' then
			stop = at + 1
			while stop < #text and text:sub(stop, stop) ~= two:sub(1, 1) do
				stop = stop + (text:sub(stop, stop) == '\\' and 2 or 1)
			end
		end
		out[#out + 1] = stop and blank(text:sub(at, stop)) or text:sub(at, at)
		at = (stop or at) + 1
	end
	return table.concat(out), comments
end

-- A product whose operands are not both constants: its position, or nil. A sizeof counts as a constant.
local function product(code, doubling)
	code = code:gsub('sizeof(%b())', function(inner) return 'SIZEOF' .. blank(inner) end)
	local at = 1
	while true do
		local from, to, left = code:find('([%w_%)%]]+)%s+%*%s+', at)
		if not from then return end
		local right = code:match('^[%w_%(]+', to + 1) or ''
		local constants = left:find '^[%u%d_]+$' and right:find '^[%u%d_]+$'
		if not constants and not (doubling and (left == '2' or right == '2')) then return from + #left end
		at = from + #left
	end
end

local function calls(code, list, visit)
	for _, name in ipairs(list) do
		for at in code:gmatch('%f[%w_]()' .. name .. '%s*%(') do
			local open, close = code:find('%b()', at)
			if open then visit(open, close) end
		end
	end
end

-- Positions of what the rules refuse, with a text each.
local function faults(code)
	local found = {}
	local function say(at, text) found[#found + 1] = {at = at, text = text} end

	calls(code, givers, function(open, close)
		local at = product(code:sub(open, close))
		if at then say(open + at - 1, 'a product in the size of memory') end
	end)
	local rest = code
	calls(code, existing, function(open, close)
		rest = rest:sub(1, open - 1) .. blank(rest:sub(open, close)) .. rest:sub(close + 1)
	end)
	for _, pattern in ipairs {'()[%w_%)%]]%s+%*%s+sizeof%f[^%w_]', '()sizeof%s*%b()%s+%*%s', '()ql_tensor_nelem%s*%b()%s+%*%s',
		'[%w_%)%]]()%s+%*%s+ql_tensor_nelem%f[^%w_]'} do
		for at in rest:gmatch(pattern) do
			local line = rest:sub(at, (rest:find('[;\n]', at) or #rest))
			if product(line) then say(at, 'a product with the size of an element or a number of elements') end
		end
	end
	for _, name in ipairs(names) do
		for at, stop in code:gmatch('()%f[%w_][%w_]*' .. name .. '%s+%*?=%s()') do
			local value = code:sub(stop, (code:find('[;,]', stop) or #code + 1) - 1)
			local times = code:sub(at, stop):find('*=', 1, true)
			if times and not value:find '^[%u%d_]+$' or product(value, true) then say(at, "a product that becomes '" .. name .. "'") end
		end
	end
	return found
end

local function line_of(text, at)
	return select(2, text:sub(1, at):gsub('\n', '')) + 1
end

-- Lines at which a comment gives the reason for a product.
local function allowed(text, comments)
	local lines = {}
	for _, comment in ipairs(comments) do
		local why = comment.text:match '^/[*/] size: (.-)%s*%*?/?$'
		if why and #why >= WHY then
			local line = line_of(text, comment.at + #comment.text - 1)
			lines[line], lines[line + 1] = true, true
		end
	end
	return lines
end

local function check(file, text)
	local code, comments = code_of(text)
	local reasons, reported, broken = allowed(text, comments), {}, {}
	for _, fault in ipairs(faults(code)) do
		local line = line_of(text, fault.at)
		if not reasons[line] and not reported[line] then
			reported[line] = true
			broken[#broken + 1] = ('%s:%d: %s; use ql_size_mul, ql_alloc_array, ql_scratch_array or ql_mul64'):format(file, line, fault.text)
		end
	end
	return broken
end

-- What the rules must find, and what they must leave alone.
local bad = {'p = ql_alloc(ctx, (size_t)n * sizeof(*p));', 'p = ql_scratch_take(ctx,\n\trows * columns);', 'p = malloc(n * 4);',
	'ok = ql_size_mul((uint64_t)(a * b), c, &n);', 'x = n * sizeof(float);', 'work = ql_tensor_nelem(t) * 8;', 'uint64_t bytes = rows * row;',
	'j->room *= n;', 'row_bytes = (n * bits + 7) / 8; /* size: small */', 'p = lua_newuserdatauv(L, n * sizeof(*p), 0);'}
local good = {'p = ql_alloc_array(ctx, n, sizeof(*p));', 'memcpy(a, b, n * sizeof(*a));', 'bytes = 4 * sizeof(float);', 'p = ql_alloc(ctx, sizeof(struct x *));',
	'x = y * z;', 'bytes = n * 3; /* size: n is at most 8, the rank */', 'room = room ? 2 * room : 8;', 'struct x *bytes = get(*y, 1);', '/* bytes = a * b; */', 'room = ROOM * 2;'}
for _, line in ipairs(bad) do assert(#check('bad', line) == 1, 'the check missed: ' .. line) end
for _, line in ipairs(good) do assert(#check('good', line) == 0, 'the check refused: ' .. line) end

local files, broken = 0, 0
for file in io.popen "find tensor quant nn interp -name '*.c' -o -name '*.h' | sort":lines() do
	local f <close> = assert(io.open(file))
	files = files + 1
	for _, text in ipairs(check(file, f:read 'a')) do
		broken = broken + 1
		print(text)
	end
end
print(('%d files checked, %d lines broken'):format(files, broken))
os.exit(broken == 0 and files > 0)
