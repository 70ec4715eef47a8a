-- SPDX-License-Identifier: MIT
-- Elementwise functions of codes that give codes: an array with the op's result for each code
-- (quant/paths/table_int.c). Scalar operands are part of it.
local _, internal = ...
local ops = internal.import 'nn/graph/ops'
local parts = internal.import 'nn/export/parts'

parts.add('lookup', {fields = {'x', 'y'}, text = [==[
static void ${name}(const ${x} *x, int32_t n, const ${y} *table, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = table[(${index})x[i]];
}
]==]})

local BITS = {int8_t = 8, uint8_t = 8, int16_t = 16, uint16_t = 16}
local TYPES = {int8_t = 'int8', uint8_t = 'uint8', int16_t = 'int16', uint16_t = 'uint16'}

-- Every code of the facts in the order of its bits, as a quantized tensor.
local function all_codes(f)
	local n = 1 << BITS[f.ctype]
	local list = {dtype = 'float32'}
	for i = 0, n - 1 do list[i + 1] = (f.ctype:sub(1, 1) ~= 'u' and i >= n // 2 and i - n or i) - f.zero end
	return (tensor(list) * tensor.full {1, value = f.scale}):quantize {dtype = TYPES[f.ctype], scale = f.scale, zero_point = f.zero}
end

-- Called by the emitters of float ops for operands that are codes.
local emitter = {ops = {}}

-- The only tensor operand, if the node returns codes; else nil.
function emitter.operand(e, node)
	local found
	for i, ref in ipairs(node.inputs) do
		if type(ref) == 'string' and found then return end
		found = type(ref) == 'string' and i or found
	end
	local spec = e.graph:result_of(node.name).spec
	return found and spec and spec.affine and e:facts(node.inputs[found]).scale and found or nil
end

function emitter.emit(e, node)
	local at = emitter.operand(e, node)
	local x, f, layout = e:input(node, at)
	local y, g = e:output(node, layout)
	local operands = {table.unpack(node.inputs)}
	operands[at] = all_codes(f)
	local values = ops.apply(node.op, operands, node.attrs)[1]:codes():to('int64'):totable()
	e:call('%s(%s, %d, %s, %s);', e:part('lookup', {x = f.ctype, y = g.ctype, index = BITS[f.ctype] == 8 and 'uint8_t' or 'uint16_t'}), x, f.count,
		e:array(node.name .. '_table', g.ctype, values, 'the result for each code by its bits'), y)
end

return emitter
