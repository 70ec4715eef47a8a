-- SPDX-License-Identifier: MIT
-- Integer ops within modules, chosen by g:quantize: sums, norms, attention, functions, pooling. A class of modules lists the ops that can
-- run on codes in `sites`: name of the op's node in the module ('main': the module's only op) -> the names of its operands in
-- calibration. Its forward gets operands and out= from module.site, which reads the field `sites` of the module. nn/graph/sites.lua
-- makes the decisions; it sets trace and adopt.
local _, internal = ...
local module = internal.import 'nn/base/module'
local sites = {}

---------------------------------------------------------------- in forward

-- out= and the operands of an op: codes for an integer op, else nil and floats.
function module.site(m, key, a, b, c)
	if module.tracer or rawget(m, 'watch') then
		local names = module.class_of(m).sites[key]
		module.note(m, names[1], a)
		if b then module.note(m, names[2], b) end
		if c then module.note(m, names[3], c) end
	end
	local list = rawget(m, 'sites')
	local site = list and list[key]
	if not site then return nil, module.real(a), b and module.real(b), c and module.real(c) end
	return site.out, module.codes(a, site[1]), b and module.codes(b, site[2]), c and module.codes(c, site[3])
end

function module.add(m, key, a, b)
	local out, x, y = module.site(m, key, a, b)
	if out then return x:add(y, {out = out}) end
	return x + y
end

return sites
