-- SPDX-License-Identifier: MIT
-- labels: full
-- Elementwise functions of codes in exported C, by table: 1000 inputs each, the codes of Quoll.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(41)
local x, list = tensor.randn(1000, 24) * 2, {}
local INS = {{dtype='int8', scale=0.05, zero_point=-7}, {dtype='uint8', scale=0.04, zero_point=130}, {dtype='int8', scale=0.06}}
local OUTS = {{dtype='uint8', scale=0.03, zero_point=100}, {dtype='int8', scale=1 / 128}, {dtype='int16', scale=1e-4}}
for k, op in ipairs {'tanh', 'sigmoid', 'silu', 'softplus', 'relu', 'relu6', 'hardswish', 'gelu', 'leakyrelu', 'exp', 'exp2', 'expm1', 'log', 'log2', 'log10',
	'log1p', 'sqrt', 'rsqrt', 'square', 'reciprocal', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'erf', 'abs', 'neg', 'round', 'floor', 'ceil',
	'trunc', 'sign', 'clamp', 'elu', 'selu', 'celu', 'mish', 'softsign', 'logsigmoid', 'hardsigmoid', 'hardtanh', 'shrink', 'threshold'} do
	list[op] = function(_, a)
		local q, out = a:quantize(INS[k % 3 + 1]), OUTS[k % 2 + 1]
		return op == 'clamp' and q:clamp {low=-0.5, high=1, out=out} or q[op](q, {out=out})
	end
end
list['gelu by tanh'] = function(_, a) return a:quantize(INS[1]):gelu {approximate='tanh', out=OUTS[1]} end
list['leakyrelu 0.3'] = function(_, a) return a:quantize(INS[2]):leakyrelu {slope=0.3, out=OUTS[3]} end
list['16 bits'] = function(_, a) return a:quantize {dtype='int16', scale=3e-4}:sigmoid {out=OUTS[3]} end
list['unsigned 16 bits'] = function(_, a) return a:quantize {dtype='uint16', scale=3e-4, zero_point=30000}:tanh {out=OUTS[2]} end
for _, c in ipairs {{'sigmoid', 'int16', 1 / 32768}, {'tanh', 'int16', 1 / 32768}, {'leakyrelu', 'int16', 0.001}, {'leakyrelu', 'int8', 0.03}, {'hardswish', 'int8', 0.03},
	{'abs', 'int8', 0.03}, {'sqrt', 'int16', 0.001}, {'exp', 'int16', 0.001}, {'gelu', 'int16', 0.001}} do
	list[('%s of %s in fixed point'):format(c[1], c[2])] = function(_, a)
		local q = a:quantize {dtype=c[2], scale=c[2] == 'int16' and 3e-4 or 0.03}
		return q[c[1]](q, {out={dtype=c[2], scale=c[3], rounding='double'}})
	end
end
for name, f in pairs {
	['x * 0.3'] = function(q, o) return q:mul(0.3, o) end, ['x + 1'] = function(q, o) return q:add(1, o) end, ['x - 1'] = function(q, o) return q:sub(1, o) end,
	['x / 3 to 0'] = function(q, o) o.round = 'trunc' return q:div(3, o) end, atan2 = function(q, o) return q:atan2(0.5, o) end,
	['x / 3'] = function(q, o) return q:div(3, o) end, ['x ^ 2'] = function(q, o) return q:pow(2, o) end,
	maximum = function(q, o) return q:maximum(0.2, o) end, prelu = function(q, o) return q:prelu(0.3, o) end, minimum = function(q, o) return q:minimum(0.2, o) end,
} do
	list[name] = function(_, a) return f(a:quantize(INS[1]), {out=OUTS[1]}) end
end
exported.functions(list, x)

it('1 - x, in a graph that g:quantize made', function()
	local m = nn.module(function(self, a) return self.d(1 - self.c(a)) end, {c=nn.Linear(24, 8), d=nn.Linear(8, 3)})
	local g = graph.trace(m, x:narrow(1, 1, 1)):calibrate({{x, x}}, {log=false}):quantize {mode='static'}
	assert(g:node('sub1').attrs.out)
	exported.check('minus', g, x, {flags=exported.FLAGS})
end)

it('a convolution keeps its channels last', function()
	local images = tensor.randn(20, 3, 8, 8)
	local m = nn.Sequential {nn.Conv2d(3, 6, 3), nn.Hardswish(), nn.Conv2d(6, 4, 3), nn.SiLU(), nn.Conv2d(4, 2, 1)}
	local g = graph.trace(m, images:narrow(1, 1, 1)):calibrate({{images, images}}, {log=false}):quantize {mode='static'}
	exported.check('images', g, images, {flags=exported.FLAGS})
end)

exported.functions({['codes that become floats'] = function(_, a) return a:quantize {dtype='int8', scale=0.01}:atan() end}, x)
