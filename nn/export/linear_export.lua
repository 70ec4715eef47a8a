-- SPDX-License-Identifier: MIT
-- x (…, k) by w (n, k): exact integer sums of codes, or floats.
local _, internal = ...
local product = internal.import 'export_product'

return {ops = {'linear'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'plain')
	product.check_act(node)
	local y, g = e:output(node)
	local p = f.scale and product.prepare(e, node, f, g, nil, true) or product.prepare_float(e, node)
	e:call('%s(%s, %d, %s, %d, %d, %s, %s, %s, %s);', e:part('linear', {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype}), x,
		f.count // p.per, p.w, p.outputs, p.per, p.bias, p.factor, p.codes, y)
end}
