-- SPDX-License-Identifier: MIT
-- Fake quantization in inference: fake with a given scale or a range found at run time, lsq with the learned scale
-- (quant/ops/lsq.c). Weights are rounded at export.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local cast = internal.import 'nn/export/ops/cast'
local quantize = internal.import 'nn/export/ops/quantize'
local ops = internal.import 'nn/graph/ops'
local parts = internal.import 'nn/export/parts'

parts.add('fake', {needs = {{'round'}}, text = [[
/* Quantizes to codes from lo to hi (less the zero point) and decodes. */
static void q_fake(const float *x, int32_t n, float scale, float lo, float hi, float *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (float)q_round(x[i] / scale, lo, hi, 0) * scale;
}
]]})

local function single(x) return (string.unpack('<f', string.pack('<f', x))) end

local function refuse(node, spec)
	base.fail("export: node '%s': wanted affine codes under one scale by the observer minmax, or with a scale, got '%s'", node.name, tostring(spec))
end

local function fake(e, node)
	local spec = node.attrs.spec
	if #node.inputs > 1 then base.fail("export: node '%s': wanted fake without rounding offsets, got %d operands", node.name, #node.inputs) end
	if spec.axis or spec.block or not spec.affine or quant.dtype(spec.dtype).kind == 'binary' then refuse(node, spec) end
	if not spec.scale and spec.observer ~= 'minmax' then refuse(node, spec) end
	local x, f = cast.floats(e, node, 1)
	local y = e:output(node)
	local lo, hi = spec.min, spec.max
	if spec.scale then
		local scale, zero = spec.scale, spec.zero_point or 0
		scale, zero = type(scale) == 'number' and scale or scale:item(), type(zero) == 'number' and zero or zero:item()
		e:call('%s(%s, %d, %s, %s, %s, %s);', e:part 'fake', x, f.count, e.float(single(scale)), e.float(lo - zero), e.float(hi - zero), y)
		return
	end
	quantize.follows_extremes(node, spec)
	local found = {params = e:new_params()}
	e:call('%s(%s, %d, %d, %d, %d, %s);', e:part 'range', x, f.count, spec.offset and 0 or 1, lo, hi, e:params(found))
	local zero = e:zero_of(found)
	e:call('%s(%s, %d, %s, (float)(%d - %s), (float)(%d - %s), %s);', e:part 'fake', x, f.count, e:scale_of(found), lo, zero, hi, zero, y)
end

local function lsq(e, node)
	local scale, zero = e:constant(node, 2), node.inputs[3] and e:constant(node, 3)
	if type(node.inputs[2]) == 'number' then scale = tensor {node.inputs[2]} end
	if type(node.inputs[3]) == 'number' then zero = tensor {node.inputs[3]} end
	if not scale or scale:nelem() ~= 1 or node.inputs[3] and not zero then
		base.fail("export: node '%s': wanted one constant scale (and zero point)", node.name)
	end
	local bits, attrs = node.attrs.bits or 8, node.attrs
	local half = 1 << (bits - 1)
	local lo, hi = -half, half - 1
	if attrs.signed == false then lo, hi = 0, 2 * half - 1 elseif bits > 3 and not zero then lo = 1 - half end
	local shift = zero and math.tointeger(math.max(lo, math.min(hi, e.rint(zero:item())))) or 0
	local x, f = cast.floats(e, node, 1)
	local y = e:output(node)
	e:call('%s(%s, %d, %s, %s, %s, %s);', e:part 'fake', x, f.count, e.float(math.max(scale:item(), single(1e-8))), e.float(lo - shift),
		e.float(hi - shift), y)
end

return {ops = {'fake', 'lsq'}, emit = function(e, node)
	for i, ref in ipairs(node.inputs) do
		if type(ref) == 'string' and not e:constant(node, i) then return (node.op == 'fake' and fake or lsq)(e, node) end
	end
	local operands = {}
	for i, ref in ipairs(node.inputs) do operands[i] = type(ref) == 'number' and ref or e:constant(node, i) end
	e:gives(node.name, ops.apply(node.op, operands, node.attrs)[1])
end}
