-- SPDX-License-Identifier: MIT
-- Takes the row functions of elementwise ops (tensor/loops/map.h) out of the op files, for gpu/kernels/rows.cu; the build runs it:
--   quoll scripts/device_rows.lua OUT COMPILER FILE…
-- The preprocessor leaves marks before them (QL_EXTRACT in tensor/vmath/simd.h). OUT gets the functions of each file in a
-- namespace and a list, QL_ROWS(X), of
--   X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own)
-- fails: the int64 function may refuse a value; library: 1 where the result comes from a function of the C library; own: 1 where the
-- function has a kernel of its own for dense float32 operands and results, as computing (ns_per_16 below OWN; of a slope, that of its
-- function) does not take longer than reading them. A function that an op lacks is `absent`. A struct ql_map whose functions have other
-- names than <op>_f32, _f64, _i64 is an error.
local out, compiler = arg[1], arg[2]
local inexact = {}
for name in ('exp exp2 expm1 log log2 log10 log1p pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot erf erfc'):gmatch '%S+' do
	inexact[name], inexact[name .. 'f'] = true, true
end

local OWN = 20

local text, ops, order = {}, {}, {}
local function emit(...) text[#text + 1] = string.format(...) end

local function operands(body)
	local most = 0
	for i in body:gmatch 'in%[(%d)%]' do most = math.max(most, tonumber(i)) end
	return most + 1
end

-- Functions with a mark; `library` are the names of those that end in the C library.
local function take(source, space, library)
	local found, seen = {}, {}
	for mark, head, body in source:gmatch 'QL_MARK_(%u+)%s+([^{;]-)%s*(%b{})' do
		local name, row = head:match '([%w_]+)%s*%(', head:find('struct ql_map_args', 1, true) ~= nil
		if (mark == 'INLINE' or row) and not seen[name] then
			seen[name] = true
			for called in body:gmatch '([%a_][%w_]*)%s*%(' do
				library[name] = library[name] or inexact[called] or library[called]
			end
			emit('QL_MARK_%s %s %s', mark, head, body)
			if row then found[name] = {name = space .. '::' .. name, operands = operands(body), library = library[name],
				fails = body:find('return 0', 1, true) and head:find 'int64_t %*out' and true} end
		end
	end
	return found
end

local function maps(source, file, found)
	for op, fields in source:gmatch 'const struct ql_map ([%w_]+)_map = (%b{})' do
		local cost = tonumber(fields:match 'ns_per_16 = (%d+)') or 0
		local row = {op = op, operands = 0, own = cost < OWN and not fields:find 'QL_MAP_BOOL'}
		for domain, name in fields:gmatch '%.([fi]%d%d) = ([%w_]+)' do
			local f = found[name]
			assert(name == op .. '_' .. domain and f, ('%s: struct ql_map %s_map: wanted .%s = %s_%s, a marked function ' ..
				'(QL_MAP_*, QL_SIMD or QL_ROW), got %s'):format(file, op, domain, op, domain, name))
			row[domain], row.operands = f, math.max(row.operands, f.operands)
		end
		assert(not ops[op], ('%s: a second struct ql_map of the name %s'):format(file, op))
		ops[op] = row
		order[#order + 1] = op
	end
end

for i = 3, #arg do
	local file = arg[i]
	local handle = assert(io.open(file))
	local text_of = handle:read 'a'
	local elementwise = text_of:find 'struct ql_map ' or text_of:find 'QL_CURVE%(' or text_of:find 'QL_LOSS_TERMS%('
	handle:close()
	if elementwise then
		local pipe = assert(io.popen(("%s '%s'"):format(compiler, file)))
		local source = pipe:read 'a'
		assert(pipe:close(), file .. ': the preprocessor failed')
		local space, library = 'rows_' .. file:match '([%w_]+)%.c$', {}
		emit('namespace %s {', space)
		local found = take(source, space, library)
		emit '}'
		maps(source, file, found)
	end
end

table.sort(order)
emit '#define QL_ROWS(X) \\'
for _, op in ipairs(order) do
	local r, of = ops[op], ops[op:match '^(.*)_slope$' or '']
	local own = r.own and r.f32 and (not of or of.own)
	local function name(domain) return r[domain] and r[domain].name or 'absent' end
	local function library(domain) return r[domain] and r[domain].library and 1 or 0 end
	emit('\tX(%s, %d, %s, %s, %s, %d, %d, %d, %d) \\', op, r.operands, name 'f32', name 'f64', name 'i64',
		r.i64 and r.i64.fails and 1 or 0, library 'f32', library 'f64', own and 1 or 0)
end
emit ''
local all = table.concat(text, '\n') .. '\n'
local handle = io.open(out)
local before = handle and handle:read 'a'
if handle then handle:close() end
if before ~= all then
	handle = assert(io.open(out, 'w'))
	handle:write(all)
	handle:close()
end
