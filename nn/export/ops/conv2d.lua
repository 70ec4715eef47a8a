-- SPDX-License-Identifier: MIT
-- Convolutions of codes or floats (or with decoded weights), channels last. 8-bit codes are multiplied in tiles (nn/export/tile.lua); for
-- others the window is gathered, with the zero point as padding, and multiplied by each output's weights (kernel_height, kernel_width,
-- channels); depthwise and grouped convolutions read the input in place.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local decode = internal.import 'nn/export/decode'
local parts = internal.import 'nn/export/parts'
local product = internal.import 'nn/export/product'
local tile = internal.import 'nn/export/tile'
local window = internal.import 'nn/export/window'

-- Sums of floats run over (channels, kernel_height, kernel_width), as in Quoll.
parts.add('tapsum', {needs = {{'window'}}, text = [[
/* One output at one position: `per` channels of the window times w (kernel_height, kernel_width, per). */
static float q_tapsum(const float *x, const struct q_window *v, int32_t per, const float *w, int32_t a, int32_t b)
{
	int32_t p, q, i, row, column;
	float sum = 0.0f;

	for (i = 0; i < per; i++)
		for (p = 0; p < v->kernel_height; p++)
			for (q = 0; q < v->kernel_width; q++) {
				row = a * v->stride_height - v->top + p * v->dilation_height;
				column = b * v->stride_width - v->left + q * v->dilation_width;
				if (row >= 0 && row < v->height && column >= 0 && column < v->width)
					sum += x[(row * v->width + column) * v->channels + i] * w[(p * v->kernel_width + q) * per + i];
			}
	return sum;
}
]]})
parts.add('groupedf', {needs = {{'tapsum'}, {'storeff'}}, text = [[
/* Images (n, height, width, channels) by w (outputs, kernel_height, kernel_width, channels / groups). */
static void ${name}(const float *x, const struct q_window *v, const float *w, int32_t outputs, int32_t groups, const struct q_codes *c,
	float *y)
{
	int32_t per = v->channels / groups, k = per * v->kernel_height * v->kernel_width, i, a, b, o;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += outputs)
				for (o = 0; o < outputs; o++)
					${store}(q_tapsum(x + o / (outputs / groups) * per, v, per, w + o * k, a, b), 0, 0, o, c, y + o);
}
]]})
parts.add('convf', {needs = {{'patch', {x = 'float'}}, {'storeff'}}, text = [[
/* Images (n, height, width, channels) by w (outputs, kernel_height, kernel_width, channels), four outputs at a time. */
static void ${name}(const float *x, const struct q_window *v, const float *w, int32_t outputs, const struct q_codes *c, float *patch,
	float *y)
{
	int32_t channels = v->channels, k = v->kernel_height * v->kernel_width * channels, i, a, b, o, l, t, j;

	for (i = 0; i < v->n; i++, x += v->height * v->width * channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += outputs) {
				${patch}(x, v, a, b, 0.0f, patch);
				for (o = 0; o < outputs; o += 4) {
					int32_t some = outputs - o < 4 ? outputs - o : 4;
					const float *w0 = w + o * k, *w1 = w0 + (some > 1 ? k : 0), *w2 = w1 + (some > 2 ? k : 0), *w3 = w2 + (some > 3 ? k : 0);
					float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};

					for (l = 0; l < channels; l++)
						for (t = l; t < k; t += channels) {
							sum[0] += patch[t] * w0[t];
							sum[1] += patch[t] * w1[t];
							sum[2] += patch[t] * w2[t];
							sum[3] += patch[t] * w3[t];
						}
					for (j = 0; j < some; j++)
						${store}(sum[j], 0, 0, o + j, c, y + o + j);
				}
			}
}
]]})

parts.add('convw', {fields = decode.fields, needs = function(f)
	return {{'tapsum'}, decode.part(f), {'weights', f}, {'storeff'}}
end, text = [[
/* Images (n, height, width, channels) by w (outputs, channels / groups, kernel_height, kernel_width): the codes of an output
 * are decoded into the second half of `memory` and put with the channels last into the first. */
static void ${name}(const float *x, const struct q_window *v, const ${w} *w, int32_t outputs, int32_t groups,
	const struct ${weights} *g, const struct q_codes *c, float *memory, float *y)
{
	int32_t per = v->channels / groups, taps = v->kernel_height * v->kernel_width, k = per * taps, o, i, p, a, b;

	for (o = 0; o < outputs; o++) {
		${decode}(w + o * ${pitch}, k, g, o, memory + k);
		for (p = 0; p < taps; p++)
			for (i = 0; i < per; i++)
				memory[p * per + i] = memory[k + i * taps + p];
		for (i = 0; i < v->n; i++)
			for (a = 0; a < v->out_height; a++)
				for (b = 0; b < v->out_width; b++) {
					const float *image = x + i * v->height * v->width * v->channels + o / (outputs / groups) * per;

					${store}(q_tapsum(image, v, per, memory, a, b), 0, 0, o, c,
						y + ((i * v->out_height + a) * v->out_width + b) * outputs + o);
				}
	}
}
]]})

local function emit_floats(e, node, x, y, v, groups)
	local p = product.prepare_float(e, node, {1, 3, 4, 2})
	if groups == 1 then
		e:call('%s(%s, &%s, %s, %d, %s, %s, %s);', e:part 'convf', x, v, p.w, p.outputs, p.codes, e:scratch(p.per * 4), y)
	else
		e:call('%s(%s, &%s, %s, %d, %d, %s, %s);', e:part 'groupedf', x, v, p.w, p.outputs, groups, p.codes, y)
	end
end

local BYTES = {uint8_t = 1, int8_t = 1, int16_t = 2, uint16_t = 2}

-- Codes by codes: 8-bit ones by tiles, of which 1x1 windows need no columns; others by patches.
local function emit_codes(e, node, x, f, y, g, w)
	local p = product.prepare(e, node, f, g, {order = {1, 3, 4, 2}, tile = {1, 4, 3, 2}, fold = true})
	local zero, along, plain = f.params and e:zero_of(f) or f.zero or 0, window.along(node, {w[3], w[4]}, {f.shape[3], f.shape[4]})
	if p.pitch then
		if w[3] * w[4] == 1 and plain then return tile.linear(e, x, f, f.count // w[2], p, y, g) end
		local offset, v = tile.offset(e, f.ctype), window.of(e, node, f, g, {w[3], w[4]})
		return tile.conv(e, x, f, v, along, offset ~= 0 and ('%s %s 128'):format(zero, offset > 0 and '+' or '-') or zero, p, y, g)
	end
	e:call('%s(%s, &%s, %s, %d, %s, %s, %s, %s, %s, %s);', e:part('conv', {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}), x,
		window.of(e, node, f, g, {w[3], w[4]}), p.w, p.outputs, p.bias, p.factor, p.codes, f.params and ('(%s)%s'):format(f.ctype, zero) or zero,
		e:scratch(p.per * BYTES[f.ctype]), y)
end

-- Emits the result y (properties g) of a convolution.
local function emit(e, node, x, f, y, g)
	local w, groups = e.graph:result_of(node.inputs[2]).shape, node.attrs.groups or 1
	local d = product.prepare_decoded(e, node, f)
	if not d and groups == 1 and (f.scale or f.params) then return emit_codes(e, node, x, f, y, g, w) end
	local v = window.of(e, node, f, g, {w[3], w[4]})
	if d then
		e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s);', e:part('convw', d.part), x, v, d.w, d.n, groups, d.groups, d.codes,
			e:scratch(d.k * 8), y)
	elseif not (f.scale or f.params) then
		emit_floats(e, node, x, y, v, groups)
	elseif groups == f.shape[2] and groups == w[1] then
		local p = product.prepare(e, node, f, g, {order = {3, 4, 1, 2}, k = w[1] * w[3] * w[4]})
		local fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}
		e:call('%s(%s, &%s, %s, %s, %s, %s, %s, %s);', e:part('depthwise', fields), x, v, p.w, p.bias, p.factor, p.codes, e:zero_of(f), y)
	else
		local p = product.prepare(e, node, f, g, {order = {1, 3, 4, 2}, k = w[2] * w[3] * w[4]})
		local fields = {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}
		e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s, %s);', e:part('grouped', fields), x, v, p.w, p.outputs, groups, p.bias, p.factor,
			p.codes, e:zero_of(f), y)
	end
end

return {ops = {'conv2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	if f.ctype ~= 'float' and not e.graph:result_of(node.inputs[1]).spec then
		base.fail("export: node '%s': wanted floats or codes for conv2d, got %s", node.name, f.dtype)
	end
	local result, facts = e:output(node, 'nhwc')
	product.result(e, node, result, facts, function(y, g) emit(e, node, x, f, y, g) end)
end}
