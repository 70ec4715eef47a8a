-- SPDX-License-Identifier: MIT
-- Attention stays float; what it costs: two products for each pair of positions.
return {ops = {'attention'}, macs = function(shape)
	local q, k = shape(1), shape(2)
	return 2 * q[1] * q[2] * q[3] * k[3] * q[4]
end}
