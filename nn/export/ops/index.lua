-- SPDX-License-Identifier: MIT
-- Indexing by number: gather, scatter, onehot; by mask: x[mask] = y. An index out of range, an error in Quoll, gives
-- 0 or is ignored.
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
	int32_t step, ${x} *y)
{
	int32_t i;

	for (i = 0; i < count; i++) {
		int64_t place = index[i] < 0 ? (int64_t)index[i] + size : (int64_t)index[i] - 1;

		y[i] = place >= 0 && place < size ? x[q_offset(i, rank, n, s) + (int32_t)place * step] : 0;
	}
}
]]})
for name, value in pairs {scatter = '(${y})x[from]', scatteradd = '(${y})(y[at] + (${y})x[from])',
	scatterwrap = '(${y})((uint64_t)y[at] + (uint64_t)x[from])'} do
	parts.add(name, {fields = {'x', 'index', 'y'}, needs = {{'offset'}}, text = ([[
/* Writes y along an axis with `size` elements that are `step` apart; 1-based indices, negative ones count from the end. */
static void ${name}(const ${x} *x, const int32_t *sx, const ${index} *index, int32_t count, int32_t rank, const int32_t *n,
	const int32_t *s, int32_t size, int32_t step, ${y} *y)
{
	int32_t i;

	for (i = 0; i < count; i++) {
		int64_t place = index[i] < 0 ? (int64_t)index[i] + size : (int64_t)index[i] - 1;
		int32_t from = q_offset(i, rank, n, sx), at = q_offset(i, rank, n, s);

		if (place < 0 || place >= size)
			continue;
		at += (int32_t)place * step;
		y[at] = @VALUE@;
	}
}
]]):gsub('@VALUE@', value)})
end
parts.add('onehot', {fields = {'x', 'y'}, text = [[
/* Rows of n zeros with 1 at the 1-based index. */
static void ${name}(const ${x} *x, int32_t count, int32_t n, ${y} *y)
{
	int32_t i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < n; j++)
			*y++ = x[i] == j + 1;
}
]]})
parts.add('masked', {fields = {'type'}, text = [[
/* Takes the next of the values, which are `step` apart, where the mask is set, else x. */
static void ${name}(const ${type} *x, const uint8_t *mask, int32_t n, const ${type} *value, int32_t step, ${type} *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		y[i] = mask[i] ? *value : x[i];
		value += mask[i] ? step : 0;
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

local function gather(e, node)
	local x, f = e:plain(node, 1)
	local index, i = e:input(node, 2, 'plain')
	local y = e:output(node)
	local strides, n, step = along(node, f.shape)
	if i.count == 0 then return end
	e:call('%s(%s, %s, %d, %d, %s, %s, %d, %d, %s);', e:part('gather', {x = f.ctype, index = i.ctype}), x, index, i.count, #i.shape,
		list(e, node, i.shape), list(e, node, strides), n, step, y)
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
	local part = not node.attrs.add and 'scatter' or f.ctype == 'float' and 'scatteradd' or 'scatterwrap'
	e:call('%s(%s, %s, %s, %d, %d, %s, %s, %d, %d, %s);', e:part(part, {x = s.ctype, index = i.ctype, y = f.ctype}), source,
		list(e, node, from), index, i.count, #i.shape, list(e, node, i.shape), list(e, node, strides), n, step, y)
end

local function onehot(e, node)
	if not node.attrs.n then base.fail("export: node '%s': n: wanted the number of classes, got nothing", node.name) end
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	e:call('%s(%s, %d, %d, %s);', e:part('onehot', {x = f.ctype, y = g.ctype}), x, f.count, node.attrs.n, y)
end

local function masked(e, node)
	local x, f = e:plain(node, 1)
	local mask = e:input(node, 2, 'plain')
	local value, v
	if type(node.inputs[3]) == 'number' then
		value, v = number_array(e, node, 3, f)
	else
		value, v = cast.operand(e, node, 3, f.dtype, f.ctype)
	end
	local y = e:output(node)
	e:call('%s(%s, %s, %d, %s, %d, %s);', e:part('masked', {type = f.ctype}), x, mask, f.count, value, v.count == 1 and 0 or 1, y)
end

local BY = {gather = gather, scatter = scatter, onehot = onehot, maskedassign = masked}
return {ops = {'gather', 'scatter', 'onehot', 'maskedassign'}, emit = function(e, node)
	BY[node.op](e, node)
end}
