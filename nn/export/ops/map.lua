-- SPDX-License-Identifier: MIT
-- Elementwise ops of any plain types with broadcasting, in the domain of tensor/loops/map.c: floats; doubles for
-- comparisons of wide integers with a float and for float results of wide integers; else 64-bit integers that wrap.
-- Comparisons and tests give a byte of 0 or 1. Codes are decoded first. Ops of floats only have shorter code in
-- unary.lua and float.lua.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
internal.import 'nn/export/libm'
local parts = internal.import 'nn/export/parts'
local by_table = internal.import 'nn/export/ops/table'
local prelu = internal.import 'nn/export/ops/prelu_codes'
local unary = internal.import 'nn/export/ops/unary'
local vmath = internal.import 'nn/export/vmath'
local map = {ops = {'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'isnan', 'isfinite', 'isinf', 'where', 'band', 'bor', 'bxor', 'bnot', 'shl', 'shr',
	'mod', 'idiv', 'pow', 'prelu', 'fmod', 'atan2'}}

---------------------------------------------------------------- formulas

-- The same in every domain.
local ANY = {eq = 'a == b', ne = 'a != b', lt = 'a < b', le = 'a <= b', gt = 'a > b', ge = 'a >= b', where = 'a != 0 ? b : c'}
local REAL = {add = 'a + b', sub = 'a - b', mul = 'a * b', div = 'a / b', maximum = 'a == 0 && b == 0 ? a + b : a > b || a != a ? a : b',
	minimum = 'a == 0 && b == 0 ? -(-a - b) : a < b || a != a ? a : b', isnan = 'a != a', isfinite = 'a - a == 0', isinf = 'a == a && a - a != 0', mod = 'q_mod(a, b)', fmod = 'q_fmod(a, b)', atan2 = 'q_atan2(a, b)', truncdiv = 'q_trunc(a / b)',
	idiv = 'q_floor(a / b)', pow = 'q_power(a, b)', prelu = 'a > 0 ? a : a * b'}
local WHOLE = {add = '(uint64_t)a + (uint64_t)b', sub = '(uint64_t)a - (uint64_t)b', mul = '(uint64_t)a * (uint64_t)b',
	neg = '0 - (uint64_t)a', abs = 'a < 0 ? 0 - (uint64_t)a : (uint64_t)a', sign = '(a > 0) - (a < 0)', relu = 'a > 0 ? a : 0',
	relu6 = 'a > 6 ? 6 : a > 0 ? a : 0', round = 'a', floor = 'a', ceil = 'a', trunc = 'a', maximum = 'a > b ? a : b',
	minimum = 'a < b ? a : b', mod = 'q_iremainder(a, b)', fmod = 'q_irest(a, b)', truncdiv = 'q_iwhole(a, b)', idiv = 'q_idivide(a, b)', pow = 'q_ipower(a, b)', band = 'a & b', bor = 'a | b',
	bxor = 'a ^ b', bnot = '~a', shl = 'q_shift(a, b)', shr = 'b >= -63 ? q_shift(a, b > 63 ? -63 : -b) : 0'}
local NEEDS = {float = {mod = 'mod', fmod = 'fmod', idiv = 'floor', truncdiv = 'trunc', pow = 'power', atan2 = vmath.part 'ql_atan2'},
	int64_t = {mod = 'iremainder', fmod = 'irest', truncdiv = 'iwhole', idiv = 'idivide', pow = 'ipower', shl = 'shift', shr = 'shift'}}
local TESTS = {isnan = 0, isinf = 0, isfinite = 1} -- of integers
local ANGLES = {sin = true, cos = true, tan = true} -- a wide integer that is rounded is a different angle
local COMPARES = {eq = true, ne = true, lt = true, le = true, gt = true, ge = true}

local INFINITIES = {[1] = 'a - a != 0 && a > 0', [-1] = 'a - a != 0 && a < 0'}

-- The op whose formula a node has: div with round= is one of its own.
local function formula_name(node)
	local round = node.op == 'div' and node.attrs.round
	return round and (round == 'floor' and 'idiv' or 'truncdiv') or node.op
end

local function literal(v) return v == math.mininteger and '(-9223372036854775807 - 1)' or ('%d'):format(v) end

-- Clamps integers to those of the dtype within the bounds (tensor/ops/round.c).
local function clamp(attrs, dtype)
	local lo, hi = quant.dtype(dtype).min, quant.dtype(dtype).max
	local low, high = math.ceil(math.max(math.min(attrs.low or -math.huge, attrs.high or math.huge), lo + 0.0)), math.floor(math.min(attrs.high or math.huge, hi + 0.0))
	low, high = math.tointeger(low) or lo, math.tointeger(high) or hi
	return ('a < %s ? %s : a > %s ? %s : a'):format(literal(low), literal(low), literal(high), literal(high))
end

-- The expression in the domain, and the parts that it needs.
local function formula(node, domain, dtype)
	local op = formula_name(node)
	if op == 'isinf' and node.attrs.sign then return INFINITIES[node.attrs.sign], {} end
	if domain == 'int64_t' then
		local text = op == 'clamp' and clamp(node.attrs, dtype) or op == 'bnot' and quant.dtype(dtype).kind == 'bool' and '!a' or ANY[op] or WHOLE[op]
		return text, {NEEDS.int64_t[op] and {NEEDS.int64_t[op]}}
	end
	if domain == 'double' and ANGLES[op] then return ('q_wide_%s(a)'):format(op), {{'wide_' .. op}} end
	if ANY[op] or REAL[op] then return ANY[op] or REAL[op], {NEEDS.float[op] and {NEEDS.float[op]}} end
	return unary.expression(op, node.attrs)
end

---------------------------------------------------------------- types

-- The C type in which the node is computed, and whether float replaces a double of Quoll: functions of wide integers.
local function domain_of(e, node)
	local real, wide, op = false, false, formula_name(node)
	for _, ref in ipairs(node.inputs) do
		if type(ref) == 'number' then
			real = real or math.type(ref) == 'float'
		else
			local f = e:facts(ref)
			real = real or f.ctype == 'float' or f.scale ~= nil
			wide = wide or f.ctype == 'int32_t' or f.ctype == 'int64_t'
		end
	end
	if real then return wide and COMPARES[op] and 'double' or 'float' end
	if ANY[op] or WHOLE[op] or op == 'clamp' then return 'int64_t' end
	return wide and (op == 'div' or ANGLES[op]) and 'double' or 'float', wide and op ~= 'div'
end

local NAMES = {'a', 'b', 'c'}

local function number_text(e, value, domain)
	if domain == 'int64_t' then return literal(value) end
	if domain == 'float' then return e.float(e.single(value)) end
	return value - value == 0 and ('%a'):format(value) or parts.float(value)
end

-- The function for these operands, some of which are numbers; their types are fields x1, x2, x3.
local function text_of(expression, domain, operands)
	local arguments, begin, read = {}, {}, {}
	for i, operand in ipairs(operands) do
		if operand.number then
			arguments[i] = ('%s %s'):format(domain, NAMES[i])
		else
			arguments[i] = ('const ${x%d} *x%d, const int32_t *s%d'):format(i, i, i)
			begin[#begin + 1] = ('const ${x%d} *p%d = x%d + i * s%d[0] + j * s%d[1] + k * s%d[2];'):format(i, i, i, i, i, i)
			read[#read + 1] = ('%s %s = (%s)p%d[l * s%d[3]];'):format(domain, NAMES[i], domain, i, i)
		end
	end
	return ([==[
/* sizes and strides of four axes */
static void ${name}(%s, const int32_t *n, ${y} *y)
{
	int32_t i, j, k, l;

	for (i = 0; i < n[0]; i++)
		for (j = 0; j < n[1]; j++)
			for (k = 0; k < n[2]; k++) {
				%s

				for (l = 0; l < n[3]; l++) {
					%s

					*y++ = (${y})(%s);
				}
			}
}
]==]):format(table.concat(arguments, ', '), table.concat(begin, '\n\t\t\t\t'), table.concat(read, '\n\t\t\t\t\t'), expression)
end

---------------------------------------------------------------- the node

-- The sizes by which an operand broadcasts: the slopes of prelu belong to an axis (tensor/ops/prelu.c).
local function broadcast_shape(node, i, f, result)
	if node.op ~= 'prelu' or i ~= 2 then return f.shape end
	if f.count == 1 then return {} end
	if #f.shape ~= 1 then return f.shape end
	local shape, axis = axes.filled({}, 1, #result), node.attrs.axis or math.min(2, #result)
	shape[axes.at(axis, #result)] = f.shape[1]
	return shape
end

local function operands_of(e, node, domain, result)
	local list = {}
	for i, ref in ipairs(node.inputs) do
		if type(ref) == 'number' then
			list[i] = {number = number_text(e, ref, domain)}
		else
			local x, f = e:plain(node, i)
			if quant.dtype(f.dtype).bits < 8 then
				base.fail("export: node '%s': wanted types of whole bytes for %s, got %s", node.name, node.op, f.dtype)
			end
			list[i] = {x = x, ctype = f.ctype, strides = axes.broadcast(broadcast_shape(node, i, f, result), result)}
		end
	end
	return list
end

-- Tests of integers have a constant result, so elements are not read.
local function fill(e, node)
	local y, g = e:output(node)
	e:call('%s(%s, %d, %d);', e:part('fill', {type = g.ctype}), y, g.count, TESTS[node.op])
end

local function emit_rest(e, node, part, operands, sizes, strides, offsets, y, done)
	local list, at = {}, 0
	for i, operand in ipairs(operands) do
		list[i] = operand.number
		if not operand.number then
			at = at + 1
			list[i] = ('%s, %s'):format(axes.moved(operand.x, offsets[at]),
				e:array(node.name .. '_walk', 'int32_t', axes.filled(strides[at], 0, 4), 'strides'))
		end
	end
	e:call('%s(%s, %s, %s);', part, table.concat(list, ', '), e:array(node.name .. '_walk', 'int32_t', axes.filled(sizes, 1, 4), 'sizes'),
		axes.moved(y, done))
	local count = 1
	for _, n in ipairs(sizes) do count = count * n end
	return done + count
end

function map.emit(e, node)
	if by_table.operand(e, node) then return by_table.emit(e, node) end
	if prelu.operand(e, node) then return prelu.emit(e, node) end
	local domain, narrowed = domain_of(e, node)
	if domain == 'int64_t' and TESTS[node.op] then return fill(e, node) end
	local result = e.graph:result_of(node.name)
	local expression, needs = formula(node, domain, result.dtype)
	local fields, order, name, given = {}, {}, ('each_%s_%s'):format(formula_name(node), parts.short(domain)), {}
	local y, g
	local operands = operands_of(e, node, domain, e:shape_of(node))
	y, g = e:output(node)
	for i, operand in ipairs(operands) do
		if operand.number then
			name = name .. '_n' .. i
		else
			fields['x' .. i], order[#order + 1], given[#given + 1] = operand.ctype, 'x' .. i, operand.strides
		end
	end
	fields.y, order[#order + 1] = g.ctype, 'y'
	if domain == 'float' and #operands == 1 or node.op == 'clamp' or node.op == 'bnot' then -- attributes are in the expression
		name = name .. '_' .. internal.sha256(expression):sub(1, 8)
	end
	parts.add(name, {fields = order, needs = needs, text = text_of(expression, domain, operands)})
	e.inexact = e.inexact or narrowed
	local part, done = e:part(name, fields), 0
	if g.count == 0 then return end
	local n, strides = axes.merge(g.shape, table.unpack(given))
	axes.unrolled(n, strides, 4, function(sizes, rest, offsets) done = emit_rest(e, node, part, operands, sizes, rest, offsets, y, done) end)
end

return map
