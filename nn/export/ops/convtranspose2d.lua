-- SPDX-License-Identifier: MIT
-- Transposed convolutions of codes or floats, channels last: each result gathers the numbers of x whose kernels reach it, so no
-- product with an inserted zero is computed. Sums of floats run over (channels, kernel_height, kernel_width), as in Quoll.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local like = internal.import 'quant/like'
local parts = internal.import 'nn/export/parts'
local product = internal.import 'nn/export/product'
local window = internal.import 'nn/export/window'

parts.add('upsource', {needs = {{'window'}}, text = [[
/* The row of x that tap p of row a of the result reads, or -1; columns in the same way. */
static int32_t q_upsource(int32_t a, int32_t p, int32_t before, int32_t dilation, int32_t stride, int32_t size)
{
	int32_t at = a + before - p * dilation;

	return at < 0 || at % stride || at / stride >= size ? -1 : at / stride;
}
]]})

local SUM = [[
/* One output at one position: the channels of its group times w (kernel_height, kernel_width, channels / groups). */
static @SUM@ ${name}_at(const ${x} *x, const struct q_window *v, int32_t per, const @W@ *w, int32_t a, int32_t b@ZERO@)
{
	int32_t p, q, i, row, column;
	@SUM@ sum = 0;

@LOOPS@
	return sum;
}

/* Images (n, height, width, channels) by w (outputs, kernel_height, kernel_width, channels / groups); the stride is that of the result. */
static void ${name}(const ${x} *x, const struct q_window *v, const @W@ *w, int32_t outputs, int32_t groups@MORE@, ${y} *y)
{
	int32_t per = v->channels / groups, k = per * v->kernel_height * v->kernel_width, i, a, b, o;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += outputs)
				for (o = 0; o < outputs; o++)
					@STORE@;
}
]]
local SOURCE = [[
row = q_upsource(a, p, v->top, v->dilation_height, v->stride_height, v->height);
@column = q_upsource(b, q, v->left, v->dilation_width, v->stride_width, v->width);
]]
local INTEGERS = '\tfor (p = 0; p < v->kernel_height; p++)\n\t\tfor (q = 0; q < v->kernel_width; q++) {\n\t\t\t' ..
	SOURCE:gsub('@', '\t\t\t') .. [[
			for (i = 0; i < per && row >= 0 && column >= 0; i++)
				sum += (${sum})(x[(row * v->width + column) * v->channels + i] - zero) * $at(w, ((p * v->kernel_width + q) * per + i));
		}]]
local FLOATS = '\tfor (i = 0; i < per; i++)\n\t\tfor (p = 0; p < v->kernel_height; p++)\n\t\t\tfor (q = 0; q < v->kernel_width; q++) {\n\t\t\t\t' ..
	SOURCE:gsub('@', '\t\t\t\t') .. [[
				if (row >= 0 && column >= 0)
					sum += x[(row * v->width + column) * v->channels + i] * w[(p * v->kernel_width + q) * per + i];
			}]]

local function text(values)
	return (SUM:gsub('@(%u+)@', values))
end
parts.add('upconv', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f) return {{'upsource'}, parts.store_of(f)} end,
	text = text {SUM = '${sum}', W = '${w}', ZERO = ', int32_t zero', LOOPS = INTEGERS,
		MORE = ', const ${sum} *bias,\n\tconst ${factor} *factor, const ${result} *c, int32_t zero',
		STORE = '${store}(${name}_at(x + o / (outputs / groups) * per, v, per, w + o * ${pitch}, a, b, zero), bias, factor, o, c, y + o)'}})
parts.add('upconvf', {fields = {'x', 'y'}, needs = {{'upsource'}, {'storeff'}},
	text = text {SUM = 'float', W = 'float', ZERO = '', LOOPS = FLOATS, MORE = ', const struct q_codes *c',
		STORE = '${store}(${name}_at(x + o / (outputs / groups) * per, v, per, w + o * k, a, b), 0, 0, o, c,\n' ..
			'\t\t\t\t\t\ty + o)'}})

-- The weight (in, out / groups, kh, kw) with the outputs first: (out, in / groups, kh, kw), of floats or codes.
local function turned(w, groups)
	if groups == 1 then return w:permute(2, 1, 3, 4) end
	local p, floats = w:quantized() and w:qparams(), w:quantized() and w:dequantize() or w
	local inputs, outputs, kh, kw = w:size()
	local flat = floats:contiguous():view(groups, inputs // groups, outputs, kh, kw):permute(1, 3, 2, 4, 5):contiguous()
		:view(groups * outputs, inputs // groups, kh, kw)
	if not p then return flat end
	local function each(t) return t and p.axis and t:tile(groups) or t end
	return flat:quantize(like.spec(w:spec(), {axis = p.axis and 1, scale = each(p.scale), zero_point = each(p.zero_point)}))
end

local function emit(e, node, x, f, y, g)
	local groups, shape = node.attrs.groups or 1, e.graph:result_of(node.inputs[2]).shape
	local v = window.transposed(e, node, f, g, {shape[3], shape[4]})
	local w = e:constant(node, 2)
	if f.scale or f.params then
		local p = product.prepare(e, node, f, g, {order = {1, 3, 4, 2}, k = w:nelem() // shape[2] // groups, weight = turned(w, groups)})
		return e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s, %s);', e:part('upconv', {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}), x, v,
			p.w, p.outputs, groups, p.bias, p.factor, p.codes, e:zero_of(f), y)
	end
	local held, p = w or e:decoded_from(node.inputs[2]), nil
	if held then
		held = (held:quantized() and held:dequantize() or held):view(table.unpack(shape))
		p = product.prepare_float(e, node, {1, 3, 4, 2}, nil, turned(held, groups))
	elseif groups == 1 then
		p = product.prepare_float(e, node, {2, 3, 4, 1})
	else
		base.fail("export: node '%s': wanted a constant weight of more than one group, got one that is computed", node.name)
	end
	e:call('%s(%s, &%s, %s, %d, %d, %s, %s);', e:part('upconvf', {x = 'float', y = 'float'}), x, v, p.w, shape[2] * groups, groups, p.codes, y)
end

return {ops = {'convtranspose2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	local result, facts = e:output(node, 'nhwc')
	product.result(e, node, result, facts, function(y, g) emit(e, node, x, f, y, g) end)
end}
