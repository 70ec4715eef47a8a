-- SPDX-License-Identifier: MIT
-- Batch normalization in inference that could not be folded into a layer: a linear function per channel, bit-equal to
-- nn/ops/batchnorm.c. In either layout.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'

parts.add('batchnorm', {text = [[
/* (x - mean) * a + b: x (outer, channels, inner) */
static void ${name}(const float *x, int32_t outer, int32_t channels, int32_t inner, const float *mean, const float *a, const float *b,
	float *y)
{
	int32_t i, c, l;

	for (i = 0; i < outer; i++)
		for (c = 0; c < channels; c++)
			for (l = 0; l < inner; l++)
				*y++ = (*x++ - mean[c]) * a[c] + b[c];
}
]]})

local function single(v) return (string.unpack('f', string.pack('f', v))) end

-- The rounding error of the float mean is added to b.
local function lines_of(e, node)
	local list = {}
	for i = 2, 5 do
		local t = e:constant(node, i)
		if not t then base.fail("export: node '%s': wanted constant vectors", node.name) end
		list[i] = t:to 'float64':totable()
	end
	local mean, a, b = {}, {}, {}
	for c, weight in ipairs(list[2]) do
		local factor = weight / math.sqrt(list[5][c] + (node.attrs.eps or 1e-5))
		mean[c], a[c] = single(list[4][c]), single(factor)
		b[c] = single(list[3][c] - (list[4][c] - mean[c]) * factor)
	end
	return mean, a, b
end

return {ops = {'batchnorm'}, emit = function(e, node)
	if node.attrs.training then base.fail("export: node '%s': wanted inference with stored mean and variance, got training=true", node.name) end
	local x, f, layout = e:input(node, 1)
	if f.ctype ~= 'float' then base.fail("export: node '%s': wanted floats, got %s", node.name, f.dtype) end
	local mean, a, b = lines_of(e, node)
	local y = e:output(node, layout)
	local function array(suffix, values, text) return e:array(node.name .. suffix, 'float', values, text) end
	local inner = layout == 'nhwc' and 1 or f.count // (f.shape[1] * #mean)
	e:call('%s(%s, %d, %d, %d, %s, %s, %s, %s);', e:part 'batchnorm', x, f.count // (#mean * inner), #mean, inner,
		array('_mean', mean, 'means of channels'), array('_factor', a, 'factors of channels'), array('_shift', b, 'shifts of channels'), y)
end}
