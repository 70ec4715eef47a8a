-- SPDX-License-Identifier: MIT
-- labels: quick host
-- max, min, argmax, argmin on codes equal those of the values, and stay integer.
local x = tensor{{{1, -2, 3}, {0.5, 7, -4}}, {{2, 2, -9}, {1, 0, 0.25}}}
for _, spec in ipairs{'int8', 'uint8', 'int8/1', 'uint8/2', 'int4', 'int8/3', {dtype = 'int8', scheme = 'log'}} do
	local q = x:quantize(spec)
	for _, op in ipairs{'max', 'min', 'argmax', 'argmin'} do
		for _, axes in ipairs{{1}, {2}, {3}, {2, 3}, {1, 2, 3}} do
			for _, keep in ipairs{true, false} do
				local got = q[op](q, {axis = axes, keep = keep})
				local want = q:dequantize()
				want = want[op](want, {axis = axes, keep = keep})
				local crossed = false
				for _, a in ipairs(axes) do crossed = crossed or a == q:qparams().axis end
				local name = op .. ' ' .. tostring(quant.spec(spec)) .. ' ' .. table.concat(axes, ',')
				assert(got:origin().path == (crossed and 'fallback' or 'integer'), name .. got:origin().path)
				assert(got:metrics(want).max == 0, name)
				if not crossed and op:sub(1, 1) == 'm' then assert(got:dtype() == q:dtype(), name) end
			end
		end
	end
end
print(x:quantize('int8:2'):max():origin().reason)  --> scale varies along a reduced axis
