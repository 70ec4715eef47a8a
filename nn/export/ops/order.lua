-- SPDX-License-Identifier: MIT
-- Ops based on sorting: sort, topk, median and quantile along axes, in the order of tensor/loops/order.h: stable (-0
-- equals 0), nan last. Uses a heap of positions whose top is the first of the remaining elements.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'

parts.add('first', {fields = {'x'}, text = [[
/* Whether a precedes b. */
static int ${name}(${x} a, ${x} b, int descending)
{
	return descending ? a > b : a < b;
}
]]})
parts.add('firstnan', {text = [[
/* Whether a precedes b; nan is last. */
static int q_firstnan(float a, float b, int descending)
{
	return a != a ? 0 : b != b ? 1 : descending ? a > b : a < b;
}
]]})

parts.add('sink', {fields = {'x'}, needs = function(f) return {f.x == 'float' and {'firstnan'} or {'first', f}} end, text = [[
/* Sifts heap[i] down until no child precedes it; of equal elements the one with the lower index is first. */
static void ${name}(const ${x} *x, int32_t step, int descending, int32_t *heap, int32_t n, int32_t i)
{
	int32_t place = heap[i], k;

	for (k = 2 * i + 1; k < n; i = k, k = 2 * i + 1) {
		if (k + 1 < n && (${first}(x[heap[k + 1] * step], x[heap[k] * step], descending) ||
			(!${first}(x[heap[k] * step], x[heap[k + 1] * step], descending) && heap[k + 1] < heap[k])))
			k++;
		if (${first}(x[place * step], x[heap[k] * step], descending) ||
			(!${first}(x[heap[k] * step], x[place * step], descending) && place < heap[k]))
			break;
		heap[i] = heap[k];
	}
	heap[i] = place;
}
]]})

parts.add('heap', {fields = {'x'}, needs = function(f) return {{'sink', f}} end, text = [[
static void ${name}(const ${x} *x, int32_t step, int descending, int32_t *heap, int32_t n)
{
	int32_t i;

	for (i = 0; i < n; i++)
		heap[i] = i;
	for (i = n / 2; i-- > 0;)
		${sink}(x, step, descending, heap, n, i);
}
]]})
parts.add('order', {fields = {'x'}, needs = function(f) return {{'heap', f}, {'sink', f}} end, text = [[
/* The first k along n of x (rows, n, inner), and their 1-based indices; heap (n). */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int32_t k, int descending, int32_t *heap, ${x} *y,
	int64_t *places)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner, y += k * inner, places += k * inner)
		for (j = 0; j < inner; j++) {
			${heap}(x + j, inner, descending, heap, n);
			for (i = 0; i < k; i++) {
				y[i * inner + j] = x[heap[0] * inner + j];
				places[i * inner + j] = heap[0] + 1;
				heap[0] = heap[n - 1 - i];
				${sink}(x + j, inner, descending, heap, n - 1 - i, 0);
			}
		}
}
]]})
parts.add('between', {text = [[
/* Interpolates from the nearer end, so that both ends are exact; 0 <= t < 1. */
static double q_between(double a, double b, double t)
{
	if (t <= 0 || a == b)
		return a;
	if (a - a != 0 || b - b != 0)
		return a + b;
	return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}
]]})
parts.add('quantile', {fields = {'x'}, needs = function(f) return {{'heap', f}, {'sink', f}, {'between'}} end, text = [[
/* Between element `at` (from 0) in ascending order and the next, along n of x (rows, n, inner); nan if there is one. heap (n). */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int32_t at, double t, int32_t *heap, float *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			double a, b, sum = 0;

			for (i = 0; i < n; i++)
				sum += (double)x[i * inner + j] != (double)x[i * inner + j] ? (double)x[i * inner + j] : 0;
			${heap}(x + j, inner, 0, heap, n);
			for (i = 0; i < at; i++) {
				heap[0] = heap[n - 1 - i];
				${sink}(x + j, inner, 0, heap, n - 1 - i, 0);
			}
			a = (double)x[heap[0] * inner + j];
			heap[0] = heap[n - 1 - at];
			${sink}(x + j, inner, 0, heap, n - 1 - at, 0);
			b = t > 0 ? (double)x[heap[0] * inner + j] : a;
			*y++ = sum != sum ? (float)sum : (float)q_between(a, b, t);
		}
}
]]})

-- Rows, n and inner along one axis; 1, 1, 1 for a scalar.
local function line(node, shape)
	local axis = axes.at(node.attrs.axis or -1, #shape)
	local rows, inner = 1, 1
	for i, d in ipairs(shape) do
		if i < axis then rows = rows * d elseif i > axis then inner = inner * d end
	end
	return rows, shape[axis] or 1, inner
end

local function order(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local places = e:output(node, nil, 2)
	local rows, n, inner = line(node, f.shape)
	local k = node.op == 'topk' and node.attrs.k or n
	local descending = node.attrs.descending
	if node.op == 'topk' then descending = node.attrs.largest ~= false end
	if g.count == 0 then return end
	e:call('%s(%s, %d, %d, %d, %d, %d, %s, %s, %s);', e:part('order', {x = f.ctype}), x, rows, n, inner, k, descending and 1 or 0,
		e:scratch(4 * n, 'int32_t'), y, places)
end

-- Numbers from 0 to 1.
local function shares(e, node)
	if node.op == 'median' then return {0.5} end
	local q = node.inputs[2]
	if type(q) == 'number' then return {q} end
	q = e:constant(node, 2)
	if not q then base.fail("export: node '%s': q: wanted a number or a constant tensor", node.name) end
	return q:dim() == 0 and {q:item()} or q:to('float64'):totable()
end

local function quantile(e, node)
	local list = shares(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	if n == 0 then return e:call('%s(%s, %d, %s);', e:part('fill', {type = 'float'}), y, g.count, parts.float(0 / 0)) end
	for i, q in ipairs(list) do
		local at = math.floor(q * (n - 1))
		e:call('%s(%s, %d, %d, %d, %d, %a, %s, %s);', e:part('quantile', {x = f.ctype}), x, rows, n, inner, at, q * (n - 1) - at,
			e:scratch(4 * n, 'int32_t'), axes.moved(y, (i - 1) * rows * inner))
	end
end

local BY = {sort = order, topk = order, median = quantile, quantile = quantile}
return {ops = {'sort', 'topk', 'median', 'quantile'}, emit = function(e, node)
	BY[node.op](e, node)
end}
