-- SPDX-License-Identifier: MIT
-- kernels(op): paths and kernels of the op in the ledger since the last reset; nothing may have run on the host.
return function(op)
	local found = {}
	for _, row in ipairs(quant.log()) do
		assert(row.path ~= 'host', row.op .. ': ' .. tostring(row.reason))
		if row.op == op then found[#found + 1] = row.path .. ' ' .. row.kernel end
	end
	return table.concat(found, ', ')
end
