-- SPDX-License-Identifier: MIT
-- labels: full
-- Elementwise ops of any types in exported C: comparisons, tests, where, integers, remainders, powers, bits.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x, list = tensor.randn(40, 6, 8):round(), {}
for _, op in ipairs {'eq', 'ne', 'lt', 'le', 'gt', 'ge'} do
	list[op] = function(self, a) return a[op](a, self.b) end
	list[op .. ' a number'] = function(_, a) return a[op](a, 1) end
end
for _, op in ipairs {'isnan', 'isfinite', 'isinf'} do list[op] = function(_, a) return a[op](a:log()) end end
for _, key in ipairs {'b', 's', 'one', 't'} do list['prelu ' .. key] = function(self, a) return a:prelu(self[key], key == 'b' and {axis=-1} or {}) end end
list['prelu of a number'] = function(_, a) return a:prelu(-0.3) end
list.where = function(self, a) return tensor.where(a:gt(self.b), a, self.c) end
list['where with numbers'] = function(_, a) return tensor.where(a:lt(0), 0, a) end
exported.functions(list, x, {b=tensor.randn(8):round(), c=tensor.randn(6, 1), s=tensor.randn(6), t=tensor.randn(6, 1), one=tensor {0.2}})
it('of whole numbers', function()
	local ids = tensor.randint {20, 6, low=1, high=5}:to 'int32'
	exported.check('numbers', exported.of(function(self, a) return a:eq(self.b) end, ids, {b=tensor {1, 2, 3, 4, 5, 1, dtype='int32'}}), ids)
end)
exported.functions({['two types'] = function(_, a) return a:mul(3):to('int64'):le(a * 3) end,
	['a wide number and a fraction'] = function(_, a) return (a * 1e5):to('int32'):gt(0.1) end,
	['where of two types'] = function(_, a) return tensor.where(a:gt(0), a:to 'int32', a) end}, x)

-- What a float can be: signs of 0, infinities, nan, tiny and huge.
local inf, nan = 1 / 0, 0 / 0
local specials = {0.0, -0.0, 1, -1, 2, -2, 0.5, -2.5, 3, 1e-45, -1e-38, 3e38, inf, -inf, nan, 16777217}
local all, other = {}, {}
for i, a in ipairs(specials) do all[i], other[i] = specials, {} for j = 1, #specials do other[i][j] = a end end
all, other = tensor(all), tensor(other)
local ends = {}
for _, op in ipairs {'pow', 'mod', 'fmod', 'atan2', 'idiv', 'eq', 'lt', 'maximum', 'minimum'} do
	ends[op .. ' of special numbers'] = function(self, a) return a[op](a, self.b) end
	ends[op .. ' of a special number'] = function(self, a) return self.b[op](self.b, a) end
end
for _, op in ipairs {'pow', 'mod', 'fmod', 'atan2', 'idiv'} do -- the sign of 0
	ends[op .. ': sign of 0'] = function(self, a) return a[op](a, self.b):reciprocal() end
end
for _, round in ipairs {'floor', 'trunc'} do ends['div of special numbers, ' .. round] = function(self, a) return a:div(self.b, {round=round}) end end
for _, sign in ipairs {1, -1} do ends['isinf ' .. sign] = function(_, a) return a:isinf(sign) end end
local parts = {b=other:view(1, 16, 16):select(2, 1)}
for i = 1, 16, 5 do
	local key = 'number' .. i
	parts[key] = tensor {specials[i]}
	ends[('ends of pow and mod %d'):format(i)] = function(self, a) return a:pow(self[key]) + a:mod(self[key]):reciprocal() end
end
exported.functions(ends, all:narrow(1, 1, 2), parts)
local arcs = {}
for _, op in ipairs {'asin', 'acos', 'atan'} do arcs[op .. ' at its ends'] = function(_, a) return a[op](a) end end
exported.functions(arcs, tensor {-1, 1, 0, -0.0, 0.5, -0.5, 0.99999994, -0.99999994, 1e-30, 1.0000001, -7, 1e30, 1 / 0, -1 / 0, 0 / 0, 1e-45}:view(1, 16))
exported.functions({['asin: sign of 0'] = function(_, a) return a:asin():reciprocal() + a:atan():reciprocal() end}, tensor {-0.0, 0}:view(1, 2))

---------------------------------------------------------------- integers

local edges = tensor {math.mininteger, math.maxinteger, -1, 0, 1, 2, 63, 64, 65, -63, -64, -65, 7, -7, 1 << 40, -(1 << 33), dtype='int64'}
local whole = {}
for _, op in ipairs {'add', 'sub', 'mul', 'shl', 'shr', 'band', 'bxor', 'maximum'} do
	for _, by in ipairs {math.mininteger, -1, 0, 1, 63, 64, -63, -64, math.maxinteger} do
		whole[('%s by %d'):format(op, by)] = function(_, a) return a[op](a, by) end
	end
end
for _, by in ipairs {-1, 1, 7, -7, math.mininteger} do
	whole['fmod by ' .. by], whole['div by ' .. by] = function(_, a) return a:fmod(by) end, function(_, a) return a:div(by, {round='trunc'}) end
	whole['mod by ' .. by], whole['idiv by ' .. by] = function(_, a) return a % by end, function(_, a) return a // by end
end
for _, by in ipairs {0, 1, 2, 63} do whole['pow by ' .. by] = function(_, a) return a:pow(by) end end
for _, op in ipairs {'neg', 'abs', 'sign', 'bnot'} do whole[op] = function(_, a) return a[op](a) end end
whole['tests of integers'] = function(_, a) return a:isfinite():band(~a:isnan()):band(~a:isinf()) end
whole['clamp with low above high'] = function(_, a) return a:clamp(3, -2) end
whole['clamp of the widest'] = function(_, a) return a:clamp {low=-5} end
whole['of one element'] = function(_, a) return a:narrow(2, 1, 1) * 3 end
exported.functions(whole, edges:view(1, 16))
it('by 0, an error in Quoll, gives 0 and no trap', function()
	local g = graph.trace(nn.module(function(self, a) return a // self.b + a % self.b end, {b=tensor {3, dtype='int32'}}), tensor.ones {1, 4, dtype='int32'})
	local folder = os.tmpname()
	os.remove(folder)
	g:export {dir=folder, name='net', samples=tensor {{1, 2, 3, 4}, dtype='int32'}}
	assert(os.execute(("sed -i 's/ 3$/ 0/;s/\\t3$/\\t0/' %s/net_weights.h; cd %s && printf '\\1\\0\\0\\0\\2\\0\\0\\0\\3\\0\\0\\0\\4\\0\\0\\0' > in && make -s net && ./net --run < in > out"):format(folder, folder)))
	assert(io.open(folder .. '/out', 'rb'):read 'a' == ('\0'):rep(16))
	os.execute('rm -r ' .. folder)
end)
exported.functions({['functions of wide integers'] = function(_, a) return a:clamp(-9, 9):to('int32'):exp() end,
	['roots of wide integers'] = function(_, a) return a:abs():to('int64'):sqrt() end}, tensor.randn(20, 6) * 100, nil, 2e-6)
local numbers, wide = tensor.arange(-100, 100):view(1, -1), {}
for _, dtype in ipairs {'int32', 'int64'} do
	local given = numbers:to(dtype)
	local function add(name, f, tolerance)
		wide[#wide + 1] = {name=('%s of %s'):format(name, dtype), x=given, tolerance=tolerance, graph=function() return exported.of(f, given) end}
	end
	for _, op in ipairs {'exp', 'log', 'rsqrt', 'sigmoid', 'gelu', 'silu', 'softplus', 'leakyrelu'} do
		add(op, function(_, a) return a[op](a) end, 2e-6)
	end
	add('sigmoid of sums', function(_, a) return a:sum {axis=2, keep=true}:sigmoid() end, 2e-6)
	for _, op in ipairs {'sin', 'cos', 'tan'} do -- 100000300 is no float: its angle would be off by 4; tan beside its poles
		add(op, function(_, a) return (a * 1000003)[op](a * 1000003) end, 2e-5)
	end
end
exported.together(wide)
