-- SPDX-License-Identifier: MIT
-- labels: full
-- Variances, norms, any, all and argmin in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(40, 6, 8)
exported.functions({
	var = function(_, a) return a:var {axis=3} end, ['var by n'] = function(_, a) return a:var {axis={2, 3}, unbiased=false} end,
	std = function(_, a) return a:std {axis=2} end, ['small and large'] = function(_, a) return (a * a * a * 1e12):std {axis=-1, correction=2} end,
	norm = function(_, a) return (a * 1e-20):norm {axis=3} end, ['norm 1'] = function(_, a) return a:norm {p=1, axis=2} end,
}, x)
exported.functions({
	['norm inf'] = function(_, a) return a:norm {p=math.huge, axis={2, 3}} end,
	any = function(_, a) return (a - 1):relu():any {axis=3} end, all = function(_, a) return (a + 1):relu():all {axis=2} end,
	['all of bools'] = function(_, a) return a:gt(-2):all {axis=3} end,
	argmin = function(_, a) return a:argmin(3) end, ['argmin of codes'] = function(_, a) return a:quantize {dtype='uint8', scale=0.05, zero_point=99}:argmin(2) end,
	['argmin of nan'] = function(_, a) return a:log():argmin(3) end, ['argmax of nan'] = function(_, a) return a:log():argmax(3) end,
}, x)
local norms = {}
for _, p in ipairs {0, -math.huge} do norms['norm ' .. p] = function(_, a) return (a * 1e15):norm {p=p, axis=2} end end
norms['along axes apart'] = function(_, a) return a:view(-1, 2, 3, 8):var {axis={2, 4}} end
for _, op in ipairs {'var', 'std', 'norm'} do norms[op .. ' of integers'] = function(_, a) return (a * 50):to('int16')[op]((a * 50):to 'int16', {axis=3}) end end
exported.functions(norms, x)
local powers = {} -- by the C library in Quoll
for _, p in ipairs {0.5, 3, -2} do powers['norm ' .. p] = function(_, a) return (a * 1e15):norm {p=p, axis=2} end end
exported.functions(powers, x, nil, 2e-6)
exported.functions({
	['norm of nan'] = function(_, a) return a:log():norm {p=3, axis=3} end, ['norm of 0'] = function(_, a) return (a * 0):norm {p=3, axis=3} end,
	['of one element'] = function(_, a) return a:narrow(3, 1, 1):var {axis=3, unbiased=false} end,
}, x)

exported.functions({['norm -inf of -0'] = function(_, a) return a:norm {p=-math.huge, axis=2} end}, tensor{{-0.0, 1, 2}, {1, -3, 5}})
