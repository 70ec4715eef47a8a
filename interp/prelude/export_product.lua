-- SPDX-License-Identifier: MIT
-- What linear and conv2d share: the weight's codes as an array, and for each output the bias and the factor of its sums, as
-- quant/product_codes.c and quant/conv_out.c make them.
local _, internal = ...
local base = internal.import 'base'
local product = {}

local function numbers(t) return t and t:to('float64'):contiguous():view(t:nelem()):totable() end

-- The codes less their zero points, in the smallest C type; `order` permutes the axes first.
local function codes_of(e, node, w, order)
	local p, codes = w:qparams(), w:codes():to 'int64'
	if p.zero_point then
		local shape = {w:size(1)}
		for i = 2, w:dim() do shape[i] = 1 end
		local zero = p.zero_point:to 'int64'
		codes = codes - (zero:nelem() > 1 and zero:view(table.unpack(shape)) or zero:item())
	end
	local lo, hi = codes:min():item(), codes:max():item()
	local flat = (order and codes:permute(table.unpack(order)) or codes):contiguous():view(w:nelem()):totable()
	local ctype = lo >= -128 and hi <= 127 and 'int8_t' or 'int16_t'
	return e:array(node.name .. '_weight', ctype, flat, 'codes less their zero points'), ctype, codes
end

-- Fields for the parts: w (name), wtype, bias, factor, codes (the name of a q_codes), sum (C type).
-- sums: of the codes of each output, where x has a zero point that the loops do not take off.
function product.prepare(e, node, x, y, order, fold)
	local w, bias = e:constant(node, 2), node.inputs[3] and numbers(e:constant(node, 3))
	if not w or not w:quantized() then base.fail("export: node '%s': wanted a quantized weight that the graph holds", node.name) end
	local p = w:qparams()
	if p.block or p.axis and p.axis ~= 1 then
		base.fail("export: node '%s': weight: wanted one scale for each output, got '%s'", node.name, tostring(w:spec()))
	end
	local outputs, per = w:size(1), w:nelem() // w:size(1)
	local name, wtype, codes = codes_of(e, node, w, order)
	local scales = numbers(p.scale)
	local sums = numbers(codes:contiguous():view(outputs, per):sum {axis = 2})
	local sum = (x.ctype == 'int16_t' or x.ctype == 'uint16_t') and 'int64_t' or 'int32_t'
	local biases, factors = {}, {}
	for j = 1, outputs do
		local sw = scales[#scales > 1 and j or 1]
		local unit = e.single(e.single(x.scale) * sw)
		local b = y.scale and bias and e.rint(bias[j] / unit) or 0
		if math.abs(b) >= 2 ^ 30 then base.fail("export: node '%s': bias %d is beyond 2^30 steps", node.name, j) end
		biases[j] = math.tointeger(b) - (fold and math.tointeger(x.zero * sums[j]) or 0)
		factors[j] = y.scale and e.single(e.single(x.scale) * sw / y.scale) or unit
	end
	if sum == 'int32_t' and per >= 16512 then sum = 'int64_t' end
	local add = not y.scale and bias and e:array(node.name .. '_bias', 'float', bias, 'added to the result')
	local how = e:struct('q_codes', node.name .. '_codes', ('{%s, %s, %d, %d, %s}'):format(e.float(y.scale and y.lo - y.zero or 0),
		e.float(y.scale and y.hi - y.zero or 0), y.scale and y.zero or 0, node.attrs.act == 'relu' and 1 or 0, add or '0'))
	return {w = name, wtype = wtype, sum = sum, outputs = outputs, per = per, codes = '&' .. how,
		bias = e:array(node.name .. '_sum', sum, biases, 'added to the sums: bias at the scale of x times that of w'),
		factor = e:array(node.name .. '_factor', 'float', factors, y.scale and 'scale of x times that of w over that of y' or
			'scale of x times that of w')}
end

-- The same for float weights.
function product.prepare_float(e, node, order)
	local w, bias = e:constant(node, 2), node.inputs[3] and numbers(e:constant(node, 3))
	if not w or w:quantized() then base.fail("export: node '%s': wanted a float weight that the graph holds", node.name) end
	local flat = numbers(order and w:permute(table.unpack(order)) or w)
	local add = bias and e:array(node.name .. '_bias', 'float', bias, 'added to the result')
	local how = e:struct('q_codes', node.name .. '_codes', ('{0.0f, 0.0f, 0, %d, %s}'):format(node.attrs.act == 'relu' and 1 or 0, add or '0'))
	e.inexact = true -- the order of the sums is another
	return {w = e:array(node.name .. '_weight', 'float', flat, 'weights'), wtype = 'float', sum = 'float', outputs = w:size(1),
		per = w:nelem() // w:size(1), codes = '&' .. how, bias = '0', factor = '0'}
end

function product.check_act(node)
	if node.attrs.act and node.attrs.act ~= 'relu' then
		base.fail("export: node '%s': act: wanted 'relu', got '%s'", node.name, node.attrs.act)
	end
end

return product
