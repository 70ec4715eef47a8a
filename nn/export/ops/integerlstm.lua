-- SPDX-License-Identifier: MIT
-- The steps of an LSTM of codes: the same numbers as nn/ops/integerlstm.c, whose tables are constants of 128 KB each.
local _, internal = ...
local parts = internal.import 'nn/export/parts'

parts.add('floor_shift', {text = [[
static int64_t q_floor_shift(int64_t x, int32_t n) { return x >= 0 ? x >> n : ~(~x >> n); }
]]})
parts.add('times_fixed', {needs = {{'floor_shift'}}, text = [[
/* x * multiplier * 2^(shift - 31): the high half of the doubled product, rounded, then a rounding shift. */
static int64_t q_times_fixed(int64_t x, int64_t multiplier, int32_t shift)
{
	uint64_t product = ((uint64_t)x << (shift > 0 ? shift : 0)) * (uint64_t)multiplier;
	int64_t high = q_floor_shift((int64_t)(product + 1073741824u), 31);

	if (shift >= 0)
		return high;
	return q_floor_shift(high + ((int64_t)1 << (-shift - 1)) - (high < 0), -shift);
}
]]})
parts.add('divided', {needs = {{'floor_shift'}}, text = [[
/* x / 2^n, halves away from 0. */
static int64_t q_divided(int64_t x, int32_t n) { return n ? q_floor_shift(x + ((int64_t)1 << (n - 1)) - (x < 0), n) : x; }
]]})
parts.add('clamp_whole', {text = [[
static int64_t q_clamp_whole(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
]]})
parts.add('integerlstm_gates', {needs = {{'times_fixed'}, {'clamp_whole'}}, text = [[
/* The gates of a step: those of the input plus the products of h. */
static void ${name}(const int16_t *x, const int16_t *h, const int8_t *w, const int64_t *factors, int32_t width, int32_t n, int16_t *z)
{
	int32_t g, i;

	for (g = 0; g < width; g++) {
		int64_t sum = 0;

		for (i = 0; i < n; i++)
			sum += (int32_t)h[i] * w[(size_t)g * (size_t)n + (size_t)i];
		z[g] = (int16_t)q_clamp_whole(q_times_fixed(sum, factors[g], (int32_t)factors[width + g]) + x[g], -32768, 32767);
	}
}
]]})
parts.add('integerlstm', {needs = {{'times_fixed'}, {'clamp_whole'}, {'divided'}}, text = [=[
/* A step: replaces the states. tables: sigmoid, tanh, tanh of c; o: exponent, clip, zero, zero of the states, multiplier and shift of h. */
static void ${name}(const int16_t *z, const int16_t *tables, int32_t gates, int32_t n, const int32_t *o, int16_t *h, int16_t *c)
{
	const int16_t *at = gates == 4 ? z + n : z, *sigmoid = tables + 32768, *tangent = sigmoid + 65536, *last = tangent + 65536;
	int32_t j;

	for (j = 0; j < n; j++) {
		int64_t forget = sigmoid[at[j]], input = gates == 4 ? sigmoid[z[j]] : 32767 - forget, cell = tangent[at[n + j]], y;

		cell = q_clamp_whole(q_divided(forget * c[j], 15) + q_divided(input * cell, 30 + o[0]), -32768, 32767);
		if (o[1])
			cell = q_clamp_whole(cell, -o[1], o[1]);
		c[j] = (int16_t)cell;
		y = q_times_fixed((int64_t)sigmoid[at[2 * n + j]] * last[cell], o[4], o[5]);
		h[j] = (int16_t)(q_clamp_whole(y + o[2], -128, 127) - o[3]);
	}
}
]=]})

local function emit(e, node)
	local x, f = e:input(node, 1, 'plain')
	local h0, hf = e:input(node, 2, 'plain')
	local c0, w, factors, tables = e:input(node, 3, 'plain'), e:input(node, 4, 'plain'), e:input(node, 5, 'plain'), e:input(node, 6, 'plain')
	local y, h, c = e:output(node), e:output(node, nil, 2), e:output(node, nil, 3)
	local batch, n, steps, width = hf.shape[1], hf.shape[2], f.shape[2], f.shape[3]
	local a = node.attrs
	local options = e:array(node.name .. '_options', 'int32_t', {a.exponent or -12, a.clip or 0, a.zero or 0, a.statezero or a.zero or 0, a.multiplier, a.shift},
		'options of an LSTM of codes')
	e:block(function()
		local z = e:scratch(width * 2, 'int16_t')
		e:line '{'
		e:line '\tint32_t b, t;\n'
		e:call('\tmemcpy(%s, %s, sizeof(int16_t) * %d);', h, h0, hf.count)
		e:call('\tmemcpy(%s, %s, sizeof(int16_t) * %d);', c, c0, hf.count)
		e:call('\tfor (b = 0; b < %d; b++) {', batch)
		e:call('\t\tfor (t = 0; t < %d; t++) {', steps)
		local row = ('(b * %d + t)'):format(steps)
		e:call('\t\t\t%s(%s + %s * %d, %s + b * %d, %s, %s, %d, %d, %s);', e:part 'integerlstm_gates', x, row, width, h, n, w, factors, width, n, z)
		e:call('\t\t\t%s(%s, %s, %d, %d, %s, %s + b * %d, %s + b * %d);', e:part 'integerlstm', z, tables, width // n, n, options, h, n, c, n)
		e:call('\t\t\tmemcpy(%s + %s * %d, %s + b * %d, sizeof(int16_t) * %d);', y, row, n, h, n, n)
		e:line '\t\t}'
		e:line '\t}'
		e:line '}'
	end)
end

return {ops = {'integerlstm'}, emit = emit}
