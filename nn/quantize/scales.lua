-- SPDX-License-Identifier: MIT
-- Scales of a weight that methods search: multiples of those of its spec. A spec that takes scale= gets them; of other formats, whose
-- scales are numbers of few bits, the weights are clipped, from which such scales follow.
local _, internal = ...
local Groups = internal.import 'nn/quantize/groups'

local Scales = {}
Scales.__index = Scales

-- Whether codes under an explicit scale are stored as those of the spec.
local function takes_scale(spec, p)
	return not spec.joint and not spec.outer and spec.scaling == 'exact' and not p.scale:quantized()
end

-- weight: (outputs, inputs). scale, zero, minimum: (rows, groups of a row), nil: none; limit: largest |w| of each group, of specs without scale=.
function Scales.of(weight, spec)
	local p = weight:quantize(spec):qparams()
	local g = Groups.of(weight, spec)
	local s = setmetatable({weight = weight, spec = spec, groups = g}, Scales)
	if takes_scale(spec, p) then
		s.scale, s.dtype = g:read(p.scale), p.scale:dtype()
		s.zero, s.minimum = p.zero_point and g:read(p.zero_point), p.minimum and g:read(p.minimum)
		s.steps = spec.max - spec.min
	else
		s.limit = g:split(weight:abs()):max {axis = 3}
	end
	return s
end

-- Those of a group of each row alone, whose groups run along the rows.
function Scales:part(k)
	local g = self.groups
	local at = (k - 1) * g.size + 1
	local weight = self.weight:narrow(2, at, math.min(g.size, g.n - at + 1)):contiguous()
	local function of(x) return x and x:narrow(2, k, 1):contiguous() end
	return setmetatable({weight = weight, spec = self.spec, groups = Groups.of(weight, self.spec), scale = of(self.scale), dtype = self.dtype,
		zero = of(self.zero), minimum = of(self.minimum), steps = self.steps, limit = of(self.limit)}, Scales)
end

-- The spec and the weight by which each group has r times its range: a number, or (rows, groups of a row).
function Scales:times(r)
	if self.limit then
		local bound = self.groups:spread(self.limit * r)
		return self.spec, self.weight:minimum(bound):maximum(-bound)
	end
	local m = self.minimum and self.minimum + self.scale * ((1 - r) * (self.steps / 2))
	return self.groups:with(self.scale * r, self.zero, m, self.dtype), self.weight
end

-- What the codes stand for with r times the range.
function Scales:decoded(r)
	local spec, weight = self:times(r)
	return weight:quantize(spec):dequantize()
end

return Scales
