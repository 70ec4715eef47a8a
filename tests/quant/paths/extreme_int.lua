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

-- both at once: the same codes and params as max and min, integer, also where results are packed
for _, spec in ipairs{'int8', 'uint8/2', 'int4', 'int3/1', 'binary'} do
	local q = x:quantize(spec)
	for _, axes in ipairs{{1}, {3}, {1, 2, 3}} do
		local least, most = q:aminmax{axis = axes, keep = true}
		local want = {q:min{axis = axes, keep = true}, q:max{axis = axes, keep = true}}
		for i, got in ipairs{least, most} do
			local name = spec .. ' ' .. table.concat(axes, ',') .. ' ' .. i
			assert(got:origin().path == want[i]:origin().path and got:dtype() == want[i]:dtype(), name)
			assert(got:dequantize():eq(want[i]:dequantize()):all():item(), name)
		end
	end
end
print(x:quantize('int8'):aminmax():origin().path, x:quantize('int8/1'):aminmax():origin().path)  --> integer fallback
print(x:quantize('int8:2'):max():origin().reason)  --> scale varies along a reduced axis
