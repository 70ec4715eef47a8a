-- SPDX-License-Identifier: MIT
-- Specs with the codes of another spec, or of q:qparams(): its format, or its dtype, bits and scheme.
local like = {}

-- The fields of a spec, in `fields`; axis, block, observer and scales are the caller's.
function like.fields(given, fields)
	fields.dtype = given.format or given.dtype
	if not given.format then fields.bits, fields.scheme, fields.octaves = given.bits, given.scheme, given.octaves end
	fields.quant_min, fields.quant_max = given.quant_min, given.quant_max
	if given.rounding == 'stochastic' then fields.rounding = fields.rounding or 'stochastic' end
	if given.saturate == false then fields.saturate = false end
	if given.scaling ~= 'exact' and not fields.scale then fields.scaling = given.scaling end
	return fields
end

function like.spec(given, fields) return quant.spec(like.fields(given, fields)) end

local CODES = {'dtype', 'bits', 'scheme', 'format', 'octaves', 'quant_min', 'quant_max'}

-- Whether codes of both mean the same under equal scales.
function like.same(a, b)
	for _, field in ipairs(CODES) do
		if a[field] ~= b[field] then return false end
	end
	return true
end

-- Whether two specs also give the same scales to a range and round alike.
function like.fits(a, b)
	return like.same(a, b) and a.scaling == b.scaling and a.saturate == b.saturate and (a.rounding == 'stochastic') == (b.rounding == 'stochastic')
end

return like
