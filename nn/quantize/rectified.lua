-- SPDX-License-Identifier: MIT
-- AdaRound's variables (arXiv 2004.10568; constants of AIMET's adaround_loss.py): each weight is low + h(V) (high - low) between the two
-- values around it, h(V) = clip(1.2 sigmoid(V) - 0.1, 0, 1). A penalty that becomes sharper drives h to 0 or 1; at the end V decides by its sign.
local internal = select(2, ...)
local Groups = internal.import 'nn/quantize/groups'
local Soft = internal.import 'nn/quantize/soft'

local STRETCH, SHIFT = 1.2, -0.1
local FIRST, LAST = 20, 2 -- the exponent
local WARM = 0.2 -- share of the steps without a penalty

local Rectified = {}
Rectified.__index = Rectified

-- The exponent of the penalty at a step of `steps`, counted from 0; nil: there is none yet.
function Rectified.beta(step, steps)
	local warm = WARM * steps
	if step < warm then return end
	return LAST + (FIRST - LAST) / 2 * (1 + math.cos((step - warm) / (steps - warm) * math.pi))
end

-- Those of a weight: v, and with o.scale a factor of each scale.
function Rectified.of(t, o)
	local s = Soft.of(t.weight, t.spec)
	local half = tensor.zeros {t.weight:size(1), t.weight:size(2), device = t.weight:device()} + 0.5
	local r = setmetatable({soft = s, low = s:values(-half, s.scale, s.origin), high = s:values(half, s.scale, s.origin)}, Rectified)
	r.gap = r.high - r.low
	local none = r.gap:eq(0)
	local share = tensor.where(none, half * 0, (t.weight - r.low) / tensor.where(none, half * 0 + 1, r.gap)):clamp {low = 0, high = 1}
	r.v = -(STRETCH / (share - SHIFT) - 1):log() -- h is the share
	r.v:requires_grad_()
	if o.scale then r.factor = (s.scale * 0 + 1):requires_grad_() end
	return r
end

function Rectified:h() return (self.v:sigmoid() * STRETCH + SHIFT):clamp {low = 0, high = 1} end

-- Values under scales that are times the factor: numbers of each scale for each element.
local function scaled(r, values, factor)
	local g = Groups.of(r.low, r.soft.plain)
	local f = g:spread(factor:reshape(g.rows, g.count))
	if r.soft.kind ~= 'minimum' then return values * f end
	local m = g:spread(r.soft.origin:reshape(g.rows, g.count))
	return (values - m) * f + m
end

-- The weight, with gradients.
function Rectified:weight()
	local w = self.low + self:h() * self.gap
	return self.factor and scaled(self, w, self.factor) or w
end

-- The sum of 1 - |2 h - 1|^beta, which is 0 where all h are 0 or 1.
function Rectified:penalty(beta) return (1 - (self:h() * 2 - 1):abs() ^ beta):sum() end

function Rectified:codes()
	local _ <close> = internal.nograd()
	local s = self.soft
	local w, scale = tensor.where(self.v:detach():ge(0), self.high, self.low), s.scale
	if self.factor then
		scale = s:stored(scale * self.factor:detach())
		w = scaled(self, w, scale / s.scale)
	end
	return s:codes(w, scale, s.origin)
end

return Rectified
