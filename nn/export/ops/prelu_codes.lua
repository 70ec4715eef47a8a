-- SPDX-License-Identifier: MIT
-- prelu of codes that gives codes: quant/paths/prelu_int.c. nn/export/ops/map.lua emits the op and calls this file for codes.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local fixed = internal.import 'nn/export/fixed'
local parts = internal.import 'nn/export/parts'

local TEXT = [==[
/* x with sizes and strides of four axes; slopes: codes less the zero point and factors, `step` apart */
static void ${name}(const ${x} *x, const int32_t *sx, int32_t from, const int32_t *slope, const int32_t *sy, const ${factor} *m, int32_t step,
	const ${factor} *above, const int32_t *n, ${bound} lo, ${bound} hi, int32_t zero, ${y} *y)
{
	int32_t i, j, k, l;

	for (i = 0; i < n[0]; i++)
		for (j = 0; j < n[1]; j++)
			for (k = 0; k < n[2]; k++)
				for (l = 0; l < n[3]; l++) {
					int64_t v = (int64_t)x[i * sx[0] + j * sx[1] + k * sx[2] + l * sx[3]] - from;
					int32_t at = i * sy[0] + j * sy[1] + k * sy[2] + l * sy[3];

@LAST@
				}
}
]==]
parts.add('preluwalk', {fields = {'x', 'y'}, needs = {{'round'}}, text = (TEXT:gsub('@LAST@', [[
					*y++ = (${y})q_round(v >= 0 ? (float)v * *above : (float)(v * slope[at]) * m[at * step], lo, hi, zero);]]))})
parts.add('preluwalkx', {fields = {'x', 'y', 'rule'}, needs = function(f) return {{f.rule}} end, text = (TEXT:gsub('@LAST@', [[
					v = v >= 0 ? q_${rule}(v, *above) : q_${rule}(v * slope[at], m[at * step]);
					*y++ = (${y})(q_clamp(v, lo, hi) + zero);]]))})

local prelu = {ops = {}}

-- Whether the node gives codes of codes and a tensor of slopes.
function prelu.operand(e, node)
	local spec = e.graph:result_of(node.name).spec
	return node.op == 'prelu' and spec and spec.affine and type(node.inputs[2]) == 'string'
end

-- The slope's sizes among those of x.
local function shape_of(slope, rank, axis)
	local shape = {slope:size()}
	if slope:nelem() == 1 then return {} end
	if #shape ~= 1 then return shape end
	local all = axes.filled({}, 1, rank)
	all[axes.at(axis or math.min(2, rank), rank)] = shape[1]
	return all
end

-- Codes less the zero point, and scales: of floats their signs and magnitudes.
local function parts_of(slope)
	local list = (slope:quantized() and slope:codes():to 'int64' or slope):contiguous():view(-1):totable()
	if slope:quantized() then
		local p = slope:qparams()
		local zero = p.zero_point and math.tointeger(p.zero_point:item()) or 0
		for i, code in ipairs(list) do list[i] = code - zero end
		return list, {p.scale:item()}
	end
	local scales = {}
	for i, v in ipairs(list) do list[i], scales[i] = v > 0 and 1 or v < 0 and -1 or 0, v == v and math.abs(v) or 0.0 end
	return list, scales
end

function prelu.emit(e, node)
	local slope = e:constant(node, 2)
	if not slope then base.fail("export: node '%s': wanted constant slopes of codes or floats, got others", node.name) end
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local shape = shape_of(slope, #g.shape, node.attrs.axis)
	local n, strides = axes.merge(g.shape, axes.broadcast(f.shape, g.shape), axes.broadcast(shape, g.shape))
	if not f.scale or #n > 4 then base.fail("export: node '%s': wanted codes with at most four axes that do not merge", node.name) end
	local codes, scales = parts_of(slope)
	local rule, above, below = fixed.rule(node.attrs.out, f.wide_zero), {f.scale / g.scale}, {}
	for i, scale in ipairs(scales) do below[i] = f.scale * scale / g.scale end
	local function factors(list)
		if rule then return fixed.array(e, node.name .. '_factors', list, rule) end
		for i, m in ipairs(list) do list[i] = e.single(m) end
		return e:array(node.name .. '_factors', 'float', list, 'factors')
	end
	local function list(values, filler) return e:array(node.name .. '_walk', 'int32_t', axes.filled(values, filler, 4), 'sizes or strides') end
	e:call('%s(%s, %s, %d, %s, %s, %s, %d, %s, %s, %s, %s, %d, %s);', e:part(rule and 'preluwalkx' or 'preluwalk', {x = f.ctype, y = g.ctype, rule = rule}), x,
		list(strides[1], 0), f.zero, e:array(node.name .. '_slope', 'int32_t', codes, 'slopes'), list(strides[2], 0), factors(below), #scales > 1 and 1 or 0,
		factors(above), list(n, 1), fixed.bound(e, g.lo - g.zero, rule), fixed.bound(e, g.hi - g.zero, rule), g.zero, y)
end

return prelu
