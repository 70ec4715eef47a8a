-- SPDX-License-Identifier: MIT
-- Specs with the codes of another spec, or of q:qparams(): its format, or its dtype, bits and scheme.
local like = {}

-- The fields of a spec, in `fields`; axis, block, observer and scales are the caller's.
function like.fields(given, fields)
	fields.dtype = given.format or given.dtype
	if not given.format then fields.bits, fields.scheme, fields.octaves = given.bits, given.scheme, given.octaves end
	if given.saturate == false then fields.saturate = false end
	if given.scaling ~= 'exact' and not fields.scale then fields.scaling = given.scaling end
	return fields
end

function like.spec(given, fields) return quant.spec(like.fields(given, fields)) end

-- Whether codes of both mean the same under equal scales.
function like.same(a, b)
	return a.dtype == b.dtype and a.bits == b.bits and a.scheme == b.scheme and a.format == b.format and a.octaves == b.octaves
end

return like
