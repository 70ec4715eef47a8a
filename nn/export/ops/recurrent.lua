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
local ELMAN = [[
		float a = x[j] + bias[j] + (hidden[j] + bias_hidden[j]);

		h[j] = %s;]]
parts.add('rnn', {needs = {{vmath.part 'ql_tanh'}}, text = HEAD:format('one part', '', ELMAN:format 'q_tanh(a)')})
parts.add('rnn_relu', {text = HEAD:format('one part', '', ELMAN:format 'a < 0.0f ? 0.0f : a')})

local GATES = {lstm = 4, gru = 3, rnn = 1}
local FLOAT = {ctype = 'float'}

-- A function that writes the product of a row of k at x with the weight of operand `at` to y. in_codes: properties of the row's codes.
local function rows_by(e, node, at, k, f)
	local codes = f.scale or f.params
	local d = not codes and product.prepare_decoded(e, node, f, at)
	if d then
		local row = e:scratch(k * 4)
		return function(x, y)
			e:call('%s(%s, 1, %s, %d, %d, %s, %s, %s, %s);', e:part('linearw', d.part), x, d.w, d.n, k, d.groups, d.codes, row, y)
		end
	end
	local p = codes and product.prepare(e, node, f, FLOAT, {fold = true, tile = {}, at = at}) or product.prepare_float(e, node, nil, at)
	if p.pitch then return function(x, y) tile.linear(e, x, f, 1, p, y, FLOAT) end end
	return function(x, y)
		e:call('%s(%s, %s, %d, %d, %s, %s, %s, %s);', e:part(parts.row_of {w = p.wtype}, {x = f.ctype, w = p.wtype, sum = p.sum, y = 'float'}), x, p.w, p.outputs, k,
			p.bias, p.factor, p.codes, y)
	end
end

-- h in symmetric int8, with a range per row.
local function codes_of_h(e, node, at, n, h)
	local f = {ctype = 'int8_t', params = e:new_params(), zero = 0, count = n}
	local codes, p = e:scratch(n), e:params(f)
	return codes, function(y)
		e:call('%s(%s, %d, 1, -127, 127, %s);', e:part 'range', h, n, p)
		e:call('%s(%s, %d, %s, -127.0f, 127.0f, 0, (int8_t *)%s);', e:part('quantize', {type = 'int8_t'}), h, n, e:scale_of(f), codes)
		rows_by(e, node, at, n, f)(('(const int8_t *)%s'):format(codes), y)
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

local function bias_of(e, node, at, n)
	if node.inputs[at] then return (e:input(node, at, 'plain')) end
	local zeros = {}
	for i = 1, n do zeros[i] = 0 end
	return e:array(node.name .. '_bias', 'float', zeros, 'no bias')
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
	local bias, bias_hidden = bias_of(e, node, first + 2, gates * n), bias_of(e, node, first + 3, gates * n)
	local cell = node.op == 'rnn' and node.attrs.act == 'relu' and 'rnn_relu' or node.op
	e:block(function()
		local from_x, from_h = e:scratch(gates * n * 4), e:scratch(gates * n * 4)
		e:line '{'
		e:line '\tint32_t b, t;\n'
		e:call('\tmemcpy(%s, %s, sizeof(float) * %d);', h, h0, hf.count)
		if c then e:call('\tmemcpy(%s, %s, sizeof(float) * %d);', c, c0, hf.count) end
		local by_x = rows_by(e, node, first, k, f)
		local mine = ('%s + b * %d'):format(h, n)
		local by_h
		if in_integers(e, node, first + 1) then
			local _
			_, by_h = codes_of_h(e, node, first + 1, n, mine)
		else
			local plain = rows_by(e, node, first + 1, n, FLOAT)
			by_h = function(to) plain(mine, to) end
		end
		e:call('\tfor (b = 0; b < %d; b++)', batch)
		e:call('\t\tfor (t = 0; t < %d; t++) {', steps)
		local row = outer and ('(b * %d + t)'):format(steps) or ('(t * %d + b)'):format(batch)
		by_x(('%s + %s * %d'):format(x, row, k), from_x)
		by_h(from_h)
		e:call('%s(%s, %s, %s, %s, %d, %s%s);', e:part(cell), from_x, from_h, bias, bias_hidden, n,
			c and ('%s + b * %d, '):format(c, n) or '', mine)
		e:call('memcpy(%s + %s * %d, %s, sizeof(float) * %d);', y, row, n, mine, n)
		e:line '\t\t}'
		e:line '}'
	end)
end}
