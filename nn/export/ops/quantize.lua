-- SPDX-License-Identifier: MIT
-- Conversion between floats and codes, in any layout; the range of codes is given or found at run time.
local _, internal = ...
local base = internal.import 'interp/prelude/base'

local cast = internal.import 'nn/export/ops/cast'
local fixed = internal.import 'nn/export/fixed'
local decode = internal.import 'nn/export/decode'
local grid = internal.import 'nn/export/grid'

-- The operand as floats: decoded codes or converted integers, in any layout.
local function floats(e, node)
	local facts = e:facts(node.inputs[1])
	if facts.ctype ~= 'float' and not facts.scale then return cast.floats(e, node, 1) end
	local x, f, layout = e:input(node, 1)
	if not f.scale then return x, f, layout end
	local decoded = e:scratch(4 * f.count, 'float')
	e:call('%s(%s, %d, %s, %s, %s);', e:part('dequantize', {type = f.ctype}), x, f.count, e.float(f.scale), f.zero, decoded)
	return decoded, {dtype = 'float32', ctype = 'float', shape = f.shape, count = f.count, bytes = 4 * f.count}, layout
end

-- q_range has the scales of symmetric and asymmetric codes; those from mean |x| and from codes with one more below 0 than above differ.
local function follows_extremes(node, spec)
	if spec.mean or spec.any_scale then
		base.fail("export: node '%s': wanted a scale that follows from the range where it is found at run time (mode 'dynamic'), or a given \z
			scale, got '%s'", node.name, tostring(spec))
	end
end

-- The range is found at run time: scale and zero point are stored with the codes.
local function quantize_found(e, node)
	local spec = node.attrs.spec
	if spec.observer ~= 'minmax' then
		base.fail("export: node '%s': wanted the observer minmax where the range is found at run time (mode 'dynamic'), or a scale \z
			(mode 'static'), got '%s'", node.name, tostring(spec))
	end
	follows_extremes(node, spec)
	if spec.axis or spec.block or not spec.affine or quant.dtype(spec.dtype).kind == 'binary' then
		base.fail("export: node '%s': wanted affine codes under one scale by the observer minmax, or with a scale, got '%s'", node.name,
			tostring(spec))
	end
	local x, f, layout = floats(e, node)
	local y, g = e:output(node, layout, nil, nil, e:new_params())
	local lo, hi = spec.min, spec.max
	e:call('%s(%s, %d, %d, %d, %d, %s);', e:part 'range', x, f.count, spec.offset and 0 or 1, lo, hi, e:params(g))
	local zero = e:zero_of(g)
	e:call('%s(%s, %d, %s, (float)(%d - %s), (float)(%d - %s), %s, %s);', e:part('quantize', {type = g.ctype}), x, f.count,
		e:scale_of(g), lo, zero, hi, zero, zero, y)
end

-- Quantizes the floats at x to codes at y (properties g).
local function known(e, x, y, g)
	if g.grid then return grid.emit(e, x, y, g) end
	if quant.dtype(g.dtype).kind == 'binary' then return e:call('%s(%s, %d, %s);', e:part 'sign', x, g.count, y) end
	e:call('%s(%s, %d, %s, %s, %s, %d, %s);', e:part('quantize', {type = g.ctype}), x, g.count, e.float(g.scale), e.float(g.lo - g.zero),
		e.float(g.hi - g.zero), g.zero, y)
end

local function quantize(e, node)
	if not node.attrs.spec.scale then return quantize_found(e, node) end
	local x, _, layout = floats(e, node)
	local y, g = e:output(node, layout)
	known(e, x, y, g)
end

local function dequantize(e, node)
	local weight = e:constant(node, 1)
	if weight and decode.takes(weight) then return e:decodes(node.name, weight) end
	local x, f, layout = e:input(node, 1)
	if not f.scale and not f.params then return e:alias(node, 1, 'any') end
	local y = e:output(node, layout)
	e:call('%s(%s, %d, %s, %s, %s);', e:part('dequantize', {type = f.ctype}), x, f.count, e:scale_of(f), e:zero_of(f), y)
end

-- y = sat(rint((float)(q - z) * s / s_out) + zero), or in fixed point (quant/ops/quantize.c); if the range is found at run time, like floats.
local function requantize(e, node)
	if not node.attrs.spec.scale then return quantize_found(e, node) end
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout)
	local rule = fixed.rule(node.attrs.spec)
	if rule then
		e:call('%s(%s, %d, %s, %d, %d, %d, %d, %s);', e:part('requantizex', {x = f.ctype, y = g.ctype, rule = rule}), x, f.zero,
			fixed.single(e, node.name .. '_factor', e.single(f.scale) / e.single(g.scale), rule), f.count, g.lo - g.zero,
			g.hi - g.zero, g.zero, y)
		return
	end
	e:call('%s(%s, %d, %s, %s, %d, %s, %s, %d, %s);', e:part('requantize', {x = f.ctype, y = g.ctype}), x, f.zero, e.float(f.scale),
		e.float(g.scale), f.count, e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local by = {quantize = quantize, dequantize = dequantize, requantize = requantize}
return {ops = {'quantize', 'dequantize', 'requantize'}, known = known, follows_extremes = follows_extremes, emit = function(e, node)
	by[node.op](e, node)
end}
