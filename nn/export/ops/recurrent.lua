-- SPDX-License-Identifier: MIT
-- Recurrent layers, step by step: x and h by their weights as rows, in integers (h quantized at each step,
-- nn/recurrent_int.c), floats or with decoded weights; the cells are bit-equal to nn/ops/lstm.c, gru.c and rnn.c.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local product = internal.import 'nn/export/product'
local tile = internal.import 'nn/export/tile'
local vmath = internal.import 'nn/export/vmath'

local HEAD = [[
/* One row of a step, from the products of x and of h (%s); replaces the states. */
static void ${name}(const float *x, const float *hidden, const float *bias, const float *bias_hidden, int32_t n, %sfloat *h)
{
	int32_t j;

	for (j = 0; j < n; j++) {
%s
	}
}
]]
-- A sum of part g.
local function sum(g) return ('x[%d * n + j] + bias[%d * n + j] + (hidden[%d * n + j] + bias_hidden[%d * n + j])'):format(g, g, g, g) end

parts.add('lstm', {needs = {{vmath.part 'ql_sigmoid'}, {vmath.part 'ql_tanh'}}, text = HEAD:format('gates i f g o', 'float *c, ',
	([[
		float i = q_sigmoid(%s);
		float f = q_sigmoid(%s);
		float g = q_tanh(%s);
		float o = q_sigmoid(%s);

		c[j] = f * c[j] + i * g;
		h[j] = o * q_tanh(c[j]);]]):format(sum(0), sum(1), sum(2), sum(3)))})
parts.add('gru', {needs = {{vmath.part 'ql_sigmoid'}, {vmath.part 'ql_tanh'}}, text = HEAD:format('gates r z n', '', ([[
		float r = q_sigmoid(x[j] + bias[j] + (hidden[j] + bias_hidden[j]));
		float z = q_sigmoid(%s);
		float side = hidden[2 * n + j] + bias_hidden[2 * n + j];
		float fresh = q_tanh(x[2 * n + j] + bias[2 * n + j] + r * side);

		h[j] = (1.0f - z) * fresh + z * h[j];]]):format(sum(1)))})
parts.add('gru_reset', {needs = {{vmath.part 'ql_sigmoid'}}, text = ([[
/* The first stage of a row with the reset gate before the product, from the products of x and of h (gates r z): z into x, the state that
 * is multiplied into reset. */
static void ${name}(float *x, const float *hidden, const float *bias, const float *bias_hidden, int32_t n, const float *h, float *reset)
{
	int32_t j;

	for (j = 0; j < n; j++) {
		float r = q_sigmoid(x[j] + bias[j] + (hidden[j] + bias_hidden[j]));

		x[n + j] = q_sigmoid(%s);
		reset[j] = r * h[j];
	}
}
]]):format(sum(1))})
parts.add('gru_after', {needs = {{vmath.part 'ql_tanh'}}, text = HEAD:format('z, not its product', '', ([[
		float z = x[n + j];
		float fresh = q_tanh(%s);

		h[j] = (1.0f - z) * fresh + z * h[j];]]):format(sum(2)))})
parts.add('steps_of', {fields = {'lengths'}, text = [[
/* The steps of sequence b. */
static int32_t ${name}(const ${lengths} *lengths, int32_t b, int32_t steps)
{
	int64_t n = (int64_t)lengths[b];

	return n < 0 ? 0 : n > steps ? steps : (int32_t)n;
}
]]})
local ELMAN = [[
		float a = x[j] + bias[j] + (hidden[j] + bias_hidden[j]);

		h[j] = %s;]]
parts.add('rnn', {needs = {{vmath.part 'ql_tanh'}}, text = HEAD:format('one part', '', ELMAN:format 'q_tanh(a)')})
parts.add('rnn_relu', {text = HEAD:format('one part', '', ELMAN:format 'a < 0.0f ? 0.0f : a')})

local GATES = {lstm = 4, gru = 3, rnn = 1}
local FLOAT = {ctype = 'float'}

-- A function that writes the product of a row of k at x with the weight of operand `at` to y, or with its rows part = {first, count}
-- (from 0). in_codes: properties of the row's codes.
local function rows_by(e, node, at, k, f, part)
	local codes = f.scale or f.params
	local function of(w) return part and w and w:narrow(1, part[1] + 1, part[2]):contiguous() or w end
	local d = not codes and product.prepare_decoded(e, node, f, at, of)
	if d then
		local row = e:scratch(k * 4)
		return function(x, y)
			e:call('%s(%s, 1, %s, %d, %d, %s, %s, %s, %s);', e:part('linearw', d.part), x, d.w, d.n, k, d.groups, d.codes, row, y)
		end
	end
	local held = part and of(e:constant(node, at))
	local p = codes and product.prepare(e, node, f, FLOAT, {fold = true, tile = {}, at = at, weight = held}) or product.prepare_float(e, node, nil, at, held)
	if p.pitch then return function(x, y) tile.linear(e, x, f, 1, p, y, FLOAT) end end
	if part and not held then p.w, p.outputs = ('%s + %d'):format(p.w, part[1] * k), part[2] end
	return function(x, y)
		e:call('%s(%s, %s, %d, %d, %s, %s, %s, %s);', e:part(parts.row_of {w = p.wtype}, {x = f.ctype, w = p.wtype, sum = p.sum, y = 'float'}), x, p.w, p.outputs, k,
			p.bias, p.factor, p.codes, y)
	end
end

-- h in symmetric int8, with a range per row.
local function codes_of_h(e, node, at, n, h, part)
	local f = {ctype = 'int8_t', params = e:new_params(), zero = 0, count = n}
	local codes, p = e:scratch(n), e:params(f)
	return function(y)
		e:call('%s(%s, %d, 1, -127, 127, %s);', e:part 'range', h, n, p)
		e:call('%s(%s, %d, %s, -127.0f, 127.0f, 0, (int8_t *)%s);', e:part('quantize', {type = 'int8_t'}), h, n, e:scale_of(f), codes)
		rows_by(e, node, at, n, f, part)(('(const int8_t *)%s'):format(codes), y)
	end
end

-- Whether the weight of h is multiplied in integers (ql_steps_int_fits).
local function in_integers(e, node, at)
	local w = node.attrs.states == 'int8' and e:constant(node, at)
	if not w or not w:quantized() then return false end
	local p, d = w:qparams(), quant.dtype(w:dtype())
	if d.bits ~= 8 or d.kind ~= 'int' then return false end
	return w:spec().affine and not p.zero_point and not p.block and p.axis ~= 2
end

-- A function that writes the product of the state at h to y.
local function product_of_h(e, node, at, n, h, part)
	if in_integers(e, node, at) then return codes_of_h(e, node, at, n, h, part) end
	local plain = rows_by(e, node, at, n, FLOAT, part)
	return function(y) plain(h, y) end
end

local function bias_of(e, node, at, n)
	if at then return (e:input(node, at, 'plain')) end
	local zeros = {}
	for i = 1, n do zeros[i] = 0 end
	return e:array(node.name .. '_bias', 'float', zeros, 'no bias')
end

-- The operand of lengths, which is the last and the only one of integers, or nil.
local function lengths_of(e, node)
	local last = #node.inputs
	local x, f = e:input(node, last, 'plain')
	local kind = quant.dtype(f.dtype).kind
	if kind == 'int' or kind == 'uint' then return {at = last, x = x, ctype = f.ctype} end
end

-- The loop over the steps t of sequence b.
local function loop(e, node, steps, lengths)
	local count = lengths and ('%s(%s, b, %d)'):format(e:part('steps_of', {lengths = lengths.ctype}), lengths.x, steps) or steps
	if node.attrs.reverse then return ('for (t = %s - 1; t >= 0; t--) {'):format(count) end
	if not lengths then return ('for (t = 0; t < %d; t++) {'):format(steps) end
	e:call('\t\tint32_t end = %s;\n', count)
	return 'for (t = 0; t < end; t++) {'
end

return {ops = {'lstm', 'gru', 'rnn'}, emit = function(e, node)
	local states = node.op == 'lstm' and 2 or 1
	local first, gates = 2 + states, GATES[node.op]
	local x, f = e:input(node, 1, 'plain')
	local h0, hf = e:input(node, 2, 'plain')
	local c0 = states == 2 and e:input(node, 3, 'plain')
	local y, h = e:output(node), e:output(node, nil, 2)
	local c = states == 2 and e:output(node, nil, 3)
	local batch, n, k = hf.shape[1], hf.shape[2], f.shape[3]
	local outer = node.attrs.batchfirst ~= false
	local steps = f.shape[outer and 2 or 1]
	local lengths = lengths_of(e, node)
	local biased = #node.inputs - (lengths and 1 or 0) > first + 1
	local bias, bias_hidden = bias_of(e, node, biased and first + 2, gates * n), bias_of(e, node, biased and first + 3, gates * n)
	local early = node.attrs.resetafter == false
	local cell = node.op == 'rnn' and node.attrs.act == 'relu' and 'rnn_relu' or early and 'gru_after' or node.op
	e:block(function()
		local from_x, from_h = e:scratch(gates * n * 4), e:scratch(gates * n * 4, 'float')
		e:line '{'
		e:line '\tint32_t b, t;\n'
		e:call('\tmemcpy(%s, %s, sizeof(float) * %d);', h, h0, hf.count)
		if c then e:call('\tmemcpy(%s, %s, sizeof(float) * %d);', c, c0, hf.count) end
		if lengths then e:call('\tmemset(%s, 0, sizeof(float) * %d);', y, batch * steps * n) end
		local by_x = rows_by(e, node, first, k, f)
		local mine, reset = ('%s + b * %d'):format(h, n), early and e:scratch(n * 4)
		local by_h = product_of_h(e, node, first + 1, n, mine, early and {0, 2 * n})
		local by_reset = early and product_of_h(e, node, first + 1, n, reset, {2 * n, n})
		e:call('\tfor (b = 0; b < %d; b++) {', batch)
		e:call('\t\t%s', loop(e, node, steps, lengths))
		local row = outer and ('(b * %d + t)'):format(steps) or ('(t * %d + b)'):format(batch)
		by_x(('%s + %s * %d'):format(x, row, k), from_x)
		by_h(from_h)
		if early then
			e:call('%s(%s, %s, %s, %s, %d, %s, %s);', e:part 'gru_reset', from_x, from_h, bias, bias_hidden, n, mine, reset)
			by_reset(('%s + %d'):format(from_h, 2 * n))
		end
		e:call('%s(%s, %s, %s, %s, %d, %s%s);', e:part(cell), from_x, from_h, bias, bias_hidden, n,
			c and ('%s + b * %d, '):format(c, n) or '', mine)
		e:call('memcpy(%s + %s * %d, %s, sizeof(float) * %d);', y, row, n, mine, n)
		e:line '\t\t}'
		e:line '\t}'
		e:line '}'
	end)
end}
