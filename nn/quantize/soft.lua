-- SPDX-License-Identifier: MIT
-- The weight of a target as a function with gradients: of rounding offsets, and of factors that clip the range of each scale. Its values
-- are those that the final codes decode to, bit for bit (x:fake with offsets); scales and minimums are rounded as the format stores them.
local _, internal = ...
local like = internal.import 'quant/like'

-- Smallest and largest normal numbers, by the bits of a dtype.
local LEAST = {[16] = 2 ^ -14, [32] = 1e-38}
local MOST = {[16] = 65504, [32] = 3e38}

local Soft = {}
Soft.__index = Soft

-- weight: (outputs, inputs), float32. plain: the spec without numbers; scale, origin (minimums or zero points; nil: none): float32; dtype: in
-- which scales are stored; kind: what origin is.
function Soft.of(weight, spec)
	local p = weight:quantize(spec):qparams()
	local s = {weight = weight, plain = like.spec(spec, {axis = spec.axis, block = spec.block}), dtype = p.scale:dtype(), scale = p.scale:to 'float32'}
	s.kind = spec.shift and 'minimum' or spec.offset and 'zero_point' or nil
	s.origin = s.kind and p[s.kind]:to 'float32'
	s.lo, s.hi, s.bits = p.min, p.max, quant.dtype(s.dtype).bits
	return setmetatable(s, Soft)
end

-- Why a weight cannot be rounded with offsets under the spec, or, with `moved`, under scales of a method's own; nil: it can.
function Soft.refuses(item, moved)
	local spec = item.spec
	local function why(text) return ("wanted %s, got '%s'"):format(text, tostring(spec)) end
	if spec.joint or spec.outer or spec.rounding == 'stochastic' or spec.functions or not (spec.affine or spec.shift or spec.values) then
		return why 'integer codes, or a fixed table of values, under scales that can be given'
	end
	local w = item.layer[item.field]:detach():to 'float32'
	local _ <close> = internal.nograd()
	local p = w:quantize(spec):qparams()
	if p.values or p.scale:quantized() then return why(p.values and 'a fixed table of values' or 'scales that are not coded themselves') end
	if moved and not LEAST[quant.dtype(p.scale:dtype()).bits] then return why 'scales that are no powers of two' end
end

---------------------------------------------------------------- values

-- The values under these numbers; a gradient flows to all three.
function Soft:values(v, scale, origin)
	if origin then return self.weight:fake(v, scale, origin, self.plain) end
	return self.weight:fake(v, scale, self.plain)
end

-- Whether scales can be moved: powers of two cannot.
function Soft:moves() return LEAST[quant.dtype(self.dtype).bits] ~= nil end

-- Scales as the format stores them; the gradient passes.
function Soft:stored(s) return s:clamp {low = LEAST[quant.dtype(self.dtype).bits], high = MOST[quant.dtype(self.dtype).bits]}:to(self.dtype):to 'float32' end

-- Scale and origin when the ends of each range are times low and high, of the shape of the scales.
function Soft:clipped(low, high)
	local lo, hi = self.lo, self.hi
	if not self.kind then return self:stored(self.scale * high) end
	local least, most
	if self.kind == 'minimum' then
		least, most = self.origin * low, (self.origin + self.scale * (hi - lo)) * high
	else
		least, most = (lo - self.origin) * self.scale * low, (hi - self.origin) * self.scale * high
	end
	local s = self:stored((most - least) / (hi - lo))
	if self.kind == 'zero_point' then return s, lo - least / s end
	return s, least:clamp {low = -MOST[quant.dtype(self.dtype).bits], high = MOST[quant.dtype(self.dtype).bits]}:to(self.dtype):to 'float32'
end

---------------------------------------------------------------- codes

-- The spec with these numbers.
function Soft:spec(scale, origin)
	local numbers = {axis = self.plain.axis, block = self.plain.block, scale = scale:detach():to(self.dtype)}
	if self.kind == 'minimum' then numbers.minimum = origin:detach():to(self.dtype) end
	if self.kind == 'zero_point' then numbers.zero_point = origin:detach():round():clamp {low = self.lo, high = self.hi}:to 'int32' end
	return like.spec(self.plain, numbers)
end

-- The codes whose values these are, under the numbers that they came from.
function Soft:codes(values, scale, origin) return values:detach():quantize(self:spec(scale, origin)) end

return Soft
