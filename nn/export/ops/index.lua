-- SPDX-License-Identifier: MIT
-- Indexing by number: gather, scatter, indexselect, indexassign, gathernd, scatternd, onehot; by mask: x[mask] = y. An index out of range,
-- an error in Quoll, gives 0 or is ignored.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local cast = internal.import 'nn/export/ops/cast'
local parts = internal.import 'nn/export/parts'

parts.add('offset', {text = [[
/* Offset of element i, in row-major order, of a tensor with sizes n and strides s. */
static int32_t q_offset(int32_t i, int32_t rank, const int32_t *n, const int32_t *s)
{
	int32_t at = 0;

	while (rank-- > 0) {
		at += i % n[rank] * s[rank];
		i /= n[rank];
	}
	return at;
}
]]})
parts.add('gather', {fields = {'x', 'index'}, needs = {{'offset'}}, text = [[
/* Reads x along an axis with `size` elements that are `step` apart; 1-based indices, negative ones count from the end. */
static void ${name}(const ${x} *x, const ${index} *index, int32_t count, int32_t rank, const int32_t *n, const int32_t *s, int32_t size,
	int32_t step, ${x} none, ${x} *y)
{
	int32_t i;

	for (i = 0; i < count; i++) {
		int64_t place = index[i] < 0 ? (int64_t)index[i] + size : (int64_t)index[i] - 1;

		y[i] = place >= 0 && place < size ? x[q_offset(i, rank, n, s) + (int32_t)place * step] : none;
	}
}
]]})
parts.add('place', {fields = {'index'}, text = [[
/* The 0-based row-major number of what a tuple of k indices names along axes of n[0], n[1], …; -1 if there is none. */
static int32_t ${name}(const ${index} *index, int32_t k, const int32_t *n)
{
	int32_t i, at = 0;

	for (i = 0; i < k; i++) {
		int64_t place = index[i] < 0 ? (int64_t)index[i] + n[i] : (int64_t)index[i] - 1;

		if (place < 0 || place >= n[i])
			return -1;
		at = at * n[i] + (int32_t)place;
	}
	return at;
}
]]})
parts.add('take', {fields = {'x', 'index'}, needs = function(f) return {{'place', {index = f.index}}} end, text = [[
/* For each of `outer` parts of x, (size, inner), what m tuples of k indices name. The tuples are those of all parts, or with `own` follow
 * one after the other. */
static void ${name}(const ${x} *x, const ${index} *index, int32_t outer, int32_t m, int32_t k, int own, const int32_t *n, int32_t size,
	int32_t inner, ${x} none, ${x} *y)
{
	int32_t o, i, j;

	for (o = 0; o < outer; o++, x += size * inner)
		for (i = 0; i < m; i++, y += inner) {
			int32_t at = ${place}(index + ((own ? o * m : 0) + i) * k, k, n);

			for (j = 0; j < inner; j++)
				y[j] = at < 0 ? none : x[at * inner + j];
		}
}
]]})

-- What is written for a value v after a value a that is there: floats; integers, which wrap.
local WRITTEN = {none = {'v', 'v'}, add = {'a + v', '(int64_t)((uint64_t)a + (uint64_t)v)'}, mul = {'a * v', '(int64_t)((uint64_t)a * (uint64_t)v)'},
	max = {'v > a || v != v ? v : a', 'v > a ? v : a'}, min = {'v < a || v != v ? v : a', 'v < a ? v : a'}}
for how, values in pairs(WRITTEN) do
	for kind, value in pairs {f = {'float', values[1]}, i = {'int64_t', values[2]}} do
		local words = {KIND = value[1], VALUE = value[2]}
		parts.add('scatter' .. how .. kind, {fields = {'x', 'index', 'y'}, needs = {{'offset'}}, text = ([[
/* Writes y along an axis with `size` elements that are `step` apart; 1-based indices, negative ones count from the end. */
static void ${name}(const ${x} *x, const int32_t *sx, const ${index} *index, int32_t count, int32_t rank, const int32_t *n,
	const int32_t *s, int32_t size, int32_t step, ${y} *y)
{
	int32_t i;

	for (i = 0; i < count; i++) {
		int64_t place = index[i] < 0 ? (int64_t)index[i] + size : (int64_t)index[i] - 1;
		int32_t from = q_offset(i, rank, n, sx), at = q_offset(i, rank, n, s);
		@KIND@ a, v;

		if (place < 0 || place >= size)
			continue;
		at += (int32_t)place * step;
		a = (@KIND@)y[at];
		v = (@KIND@)x[from];
		(void)a;
		y[at] = (${y})(@VALUE@);
	}
}
]]):gsub('@(%u+)@', words)})
		parts.add('put' .. how .. kind, {fields = {'index', 'y'}, needs = function(f) return {{'place', {index = f.index}}} end, text = ([[
/* Writes x to what m tuples of k indices name in each of `outer` parts of y, (size, inner); as in q_take. */
static void ${name}(const ${y} *x, const ${index} *index, int32_t outer, int32_t m, int32_t k, int own, const int32_t *n, int32_t size,
	int32_t inner, ${y} *y)
{
	int32_t o, i, j;

	for (o = 0; o < outer; o++, y += size * inner)
		for (i = 0; i < m; i++, x += inner) {
			int32_t at = ${place}(index + ((own ? o * m : 0) + i) * k, k, n);

			for (j = 0; j < inner && at >= 0; j++) {
				@KIND@ a = (@KIND@)y[at * inner + j], v = (@KIND@)x[j];

				(void)a;
				y[at * inner + j] = (${y})(@VALUE@);
			}
		}
}
]]):gsub('@(%u+)@', words)})
	end
end
parts.add('onehot', {fields = {'x', 'y'}, text = [[
/* Rows of n times `off` with `on` at the 1-based index. */
static void ${name}(const ${x} *x, int32_t count, int32_t n, ${y} on, ${y} off, ${y} *y)
{
	int32_t i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < n; j++)
			*y++ = x[i] == j + 1 ? on : off;
}
]]})
parts.add('masked', {fields = {'type'}, text = [[
/* Takes the next of the values, which are `step` apart, where the mask is set, else x; `inner` elements for each of the mask. With `again`
 * all of them take the same values. */
static void ${name}(const ${type} *x, const uint8_t *mask, int32_t n, int32_t inner, const ${type} *value, int32_t step, int again,
	${type} *y)
{
	int32_t i, j, at = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < inner; j++, x++) {
			*y++ = mask[i] ? value[at * step] : *x;
			at += mask[i] != 0;
		}
		at = again ? 0 : at;
	}
}
]]})

-- Strides along all axes but one, and the size and stride of that axis.
local function along(node, shape)
	local axis, strides = axes.at(node.attrs.axis, #shape), axes.dense(shape)
	local step = strides[axis]
	strides[axis] = 0
	return strides, shape[axis], step
end

local function list(e, node, values) return e:array(node.name .. '_walk', 'int32_t', values, 'sizes or strides') end

-- Codes stay codes, whose 0 is the zero point.
local function gather(e, node)
	local x, f = e:input(node, 1, 'plain')
	local index, i = e:input(node, 2, 'plain')
	local y = e:output(node, nil, nil, f.scale and f or nil)
	local strides, n, step = along(node, f.shape)
	if i.count == 0 then return end
	e:call('%s(%s, %s, %d, %d, %s, %s, %d, %d, %s, %s);', e:part('gather', {x = f.ctype, index = i.ctype}), x, index, i.count, #i.shape,
		list(e, node, i.shape), list(e, node, strides), n, step, f.scale and tostring(f.zero) or '0', y)
end

local function product(shape, from, to)
	local n = 1
	for i = from, to do n = n * shape[i] end
	return n
end

-- Where the indices of an op count: number of parts, tuples of a part, indices of a tuple, whether each part has its own tuples, sizes of
-- the axes of a tuple, elements of a part along them, elements of each.
local function places(node, shape, index)
	if node.attrs.axis then
		local axis = axes.at(node.attrs.axis, #shape)
		return {outer = product(shape, 1, axis - 1), m = index.count, k = 1, own = 0, n = {shape[axis]}, size = shape[axis],
			inner = product(shape, axis + 1, #shape)}
	end
	local batch, k = node.attrs.batch or 0, index.shape[#index.shape]
	return {outer = product(shape, 1, batch), m = product(index.shape, batch + 1, #index.shape - 1), k = k, own = 1,
		n = table.move(shape, batch + 1, batch + k, 1, {}), size = product(shape, batch + 1, batch + k),
		inner = product(shape, batch + k + 1, #shape)}
end

local function numbers(e, node, p)
	return ('%d, %d, %d, %d, %s, %d, %d'):format(p.outer, p.m, p.k, p.own, list(e, node, #p.n > 0 and p.n or {1}), p.size, p.inner)
end

local function take(e, node)
	local x, f = e:input(node, 1, 'plain')
	local index, i = e:input(node, 2, 'plain')
	local y, g = e:output(node, nil, nil, f.scale and f or nil)
	if g.count == 0 then return end
	e:call('%s(%s, %s, %s, %s, %s);', e:part('take', {x = f.ctype, index = i.ctype}), x, index, numbers(e, node, places(node, f.shape, i)),
		f.scale and tostring(f.zero) or '0', y)
end

local function number_array(e, node, i, f)
	local number = tensor {node.inputs[i]}:to(f.dtype):to(f.ctype == 'float' and 'float64' or 'int64'):item()
	return e:array(node.name .. '_number', f.ctype, {number}, 'a number'), {shape = {}, count = 1, ctype = f.ctype}
end

local function scatter(e, node)
	local x, f = e:plain(node, 1)
	local index, i = e:input(node, 2, 'plain')
	local source, s, from
	if type(node.inputs[3]) == 'number' then
		source, s = number_array(e, node, 3, f)
	elseif e:facts(node.inputs[3]).ctype == 'float' and f.ctype ~= 'float' then
		source, s = cast.operand(e, node, 3, 'int64', 'int64_t')
	else
		source, s = e:plain(node, 3)
	end
	if #s.shape == #i.shape then
		from = axes.dense(s.shape)
	else
		from = {}
		for d = 1, #i.shape do from[d] = 0 end
	end
	local y = e:output(node)
	local strides, n, step = along(node, f.shape)
	axes.copy(e, node, f.ctype, f.shape, x, nil, y)
	if i.count == 0 then return end
	local part = 'scatter' .. (node.attrs.reduce or node.attrs.add and 'add' or 'none') .. (f.ctype == 'float' and 'f' or 'i')
	e:call('%s(%s, %s, %s, %d, %d, %s, %s, %d, %d, %s);', e:part(part, {x = s.ctype, index = i.ctype, y = f.ctype}), source,
		list(e, node, from), index, i.count, #i.shape, list(e, node, i.shape), list(e, node, strides), n, step, y)
end

-- The shape of what is read at the places of an op that writes.
local function places_shape(node, shape, index)
	local first = node.attrs.axis and axes.at(node.attrs.axis, #shape) - 1 or 0
	local last = node.attrs.axis and first + 1 or (node.attrs.batch or 0) + index.shape[#index.shape]
	local made = table.move(shape, 1, first, 1, {})
	table.move(index.shape, 1, #index.shape - (node.attrs.axis and 0 or 1), #made + 1, made)
	return table.move(shape, last + 1, #shape, #made + 1, made)
end

local function put(e, node)
	local x, f = e:plain(node, 1)
	local index, i = e:input(node, 2, 'plain')
	local value, v
	if type(node.inputs[3]) == 'number' then
		value, v = number_array(e, node, 3, f)
	else
		value, v = cast.operand(e, node, 3, f.dtype, f.ctype)
	end
	local y = e:output(node)
	axes.copy(e, node, f.ctype, f.shape, x, nil, y)
	local shape, p = places_shape(node, f.shape, i), places(node, f.shape, i)
	local count = product(shape, 1, #shape)
	if count == 0 then return end
	local wide = e:scratch(8 * count, f.ctype)
	axes.copy(e, node, f.ctype, shape, value, axes.broadcast(v.shape, shape), wide)
	e:call('%s(%s, %s, %s, %s);', e:part('put' .. (node.attrs.reduce or 'none') .. (f.ctype == 'float' and 'f' or 'i'),
		{index = i.ctype, y = f.ctype}), wide, index, numbers(e, node, p), y)
end

local function onehot(e, node)
	if not node.attrs.n then base.fail("export: node '%s': n: wanted the number of classes, got nothing", node.name) end
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local function value(v)
		v = tensor {v, dtype = 'float64'}:to(g.dtype):to('float64'):item()
		return g.ctype == 'float' and e.float(v) or g.ctype == 'double' and ('%a'):format(v) or ('%d'):format(math.tointeger(v))
	end
	e:call('%s(%s, %d, %d, %s, %s, %s);', e:part('onehot', {x = f.ctype, y = g.ctype}), x, f.count, node.attrs.n, value(node.attrs.on or 1),
		value(node.attrs.off or 0), y)
end

local function masked(e, node)
	local x, f = e:plain(node, 1)
	local mask, m = e:input(node, 2, 'plain')
	local value, v
	if type(node.inputs[3]) == 'number' then
		value, v = number_array(e, node, 3, f)
	else
		value, v = cast.operand(e, node, 3, f.dtype, f.ctype)
	end
	local inner, again = f.count // math.max(1, m.count), 0
	if inner > 1 and v.count ~= 1 then -- the same values for each slice, or all of them
		local rest = table.move(f.shape, #m.shape + 1, #f.shape, 1, {})
		local same = #v.shape <= #rest or #v.shape == #rest + 1 and v.shape[1] == 1
		if not same then base.fail("export: node '%s': wanted a value that is the same for each slice of the mask", node.name) end
		local wide = e:scratch(8 * inner, f.ctype)
		axes.copy(e, node, f.ctype, rest, value, axes.broadcast(v.shape, rest), wide)
		value, again = wide, 1
	end
	local y = e:output(node)
	e:call('%s(%s, %s, %d, %d, %s, %d, %d, %s);', e:part('masked', {type = f.ctype}), x, mask, m.count, inner, value, v.count == 1 and 0 or 1,
		again, y)
end

local BY = {gather = gather, scatter = scatter, onehot = onehot, maskedassign = masked, indexselect = take, gathernd = take, indexassign = put,
	scatternd = put}
return {ops = {'gather', 'scatter', 'onehot', 'maskedassign', 'indexselect', 'gathernd', 'indexassign', 'scatternd'}, emit = function(e, node)
	BY[node.op](e, node)
end}
