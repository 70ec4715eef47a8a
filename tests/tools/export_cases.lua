-- SPDX-License-Identifier: MIT
-- For every op that g:export knows at least one small graph of it, for 1000 random inputs each: {name=, ops=, graph=, x=, tolerance=}.
-- A tolerance stands where Quoll calls the C library, or softmax has integers, in double; all else is the same bits.
local exported = dofile 'tests/tools/exported.lua'
local internal = debug.getregistry()['quoll.internal']
local ROWS = 1000
local cases, known = {}, {}
for _, op in ipairs(internal.import 'nn/export/export'.exportable()) do known[op] = true end

local function add(name, f, x, o)
	o = o or {}
	cases[#cases + 1] = {name = name, x = x, graph = type(f) == 'function' and exported.of(f, x, o.parts) or f, tolerance = o.tolerance,
		single = o.single}
end

local function integers(name, m, x, options) add(name, exported.static(m, x, options), x) end

tensor.seed(77)
local line, block, image = tensor.randn(ROWS, 12), tensor.randn(ROWS, 6, 4), tensor.randn(ROWS, 3, 6, 6)
local wide = line * tensor.randn(ROWS, 1):exp() * 3 -- of all sizes

---------------------------------------------------------------- elementwise

for _, op in ipairs {'abs', 'neg', 'square', 'reciprocal', 'exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'tanh', 'sigmoid', 'silu',
	'softplus', 'relu', 'relu6', 'hardswish', 'gelu', 'leakyrelu', 'sqrt', 'rsqrt', 'sin', 'cos', 'tan', 'sinh', 'cosh', 'asinh', 'acosh', 'atanh', 'erf', 'round', 'floor', 'ceil', 'trunc',
	'sign', 'elu', 'selu', 'celu', 'mish', 'softsign', 'logsigmoid', 'hardsigmoid', 'hardtanh', 'shrink', 'threshold'} do
	add(op, function(_, a) return a[op](a) end, wide)
end
for op, options in pairs {elu = {0.5}, celu = {-0.75}, silu = {1.702}, softplus = {2, 3}, hardsigmoid = {0.2, -0.25}, hardtanh = {-0.5, 2}, shrink = {0.25, -0.5},
	threshold = {-0.5, -2}} do
	add(op .. ' with options', function(_, a) return a[op](a, table.unpack(options)) end, wide)
end
add('atan2', function(self, a) return a:atan2(self.b) end, block, {parts={b=tensor.randn(6, 1)}})
add('fmod', function(self, a) return a:fmod(self.b) end, block, {parts={b=tensor.randn(4)}})
add('div, rounded', function(self, a) return (a * 3):div(self.b, {round='trunc'}) + a:div(0.3, {round='floor'}) end, block, {parts={b=tensor.randn(4)}})
add('isinf of one sign', function(_, a) return a:relu():log():isinf(-1) end, wide)
add('prelu', function(self, a) return a:prelu(self.b):prelu(self.c, {axis=-1}) end, block, {parts={b=tensor.randn(6), c=tensor.randn(4)}})
for _, op in ipairs {'sin', 'cos', 'tan'} do add(op .. ' of large angles', function(_, a) return a[op](a) end, wide * 1e30) end
add('clamp', function(_, a) return a:clamp(-0.5, 2) end, wide)
add('clamp from below', function(_, a) return a:clamp {low=0.1} end, wide)
add('gelu by tanh', function(_, a) return a:gelu {approximate='tanh'} end, wide)
add('add', function(self, a) return a + self.b end, block, {parts={b=tensor.randn(4)}})
add('sub', function(_, a) return 1.5 - a end, wide)
add('mul', function(_, a) return a * a:narrow(2, 1, 1) end, block)
add('div', function(self, a) return a / self.b end, block, {parts={b=tensor.randn(6, 1)}})
add('maximum', function(_, a) return a:maximum(0.25) end, wide)
add('minimum', function(self, a) return a:minimum(self.b) end, line, {parts={b=tensor.randn(12)}})

for _, op in ipairs {'eq', 'ne', 'lt', 'le', 'gt', 'ge'} do add(op, function(self, a) return a[op](a, self.b) end, block, {parts={b=tensor.randn(4):round()}}) end
for _, op in ipairs {'isnan', 'isfinite', 'isinf'} do add(op, function(_, a) return a[op](a:relu():log()) end, wide) end
add('where', function(self, a) return tensor.where(a:gt(self.b), a, 0.5) end, block, {parts={b=tensor.randn(6, 1)}})

---------------------------------------------------------------- moving

add('permute', function(_, a) return a:permute(1, 3, 2) end, block)
add('transpose', function(_, a) return a:transpose(2, 3) end, block)
add('t', function(_, a) return a:t() * 2 end, line, {single=true})
add('narrow', function(_, a) return a:narrow(2, 2, 3) end, block)
add('select', function(_, a) return a:select(2, -1) end, block)
add('expand', function(_, a) return a:narrow(2, 1, 1):expand(a:size(1), 5, 4) end, block)
add('view', function(_, a) return a:view(-1, 4) end, block)
add('reshape', function(_, a) return a:transpose(2, 3):reshape(-1, 24) end, block)
add('contiguous', function(_, a) return a:transpose(2, 3):contiguous() end, block)
add('squeeze', function(_, a) return (a:unsqueeze(2) * 2):squeeze(2) end, block)
add('unsqueeze', function(_, a) return a:unsqueeze(2) end, block)

---------------------------------------------------------------- along axes

add('softmax', function(_, a) return a:softmax() end, wide)
add('logsoftmax', function(_, a) return a:logsoftmax(2) end, block)
add('layernorm', function(self, a) return a:layernorm(self.w, self.b) end, line, {parts={w=tensor.randn(12), b=tensor.randn(12)}})
add('rmsnorm', function(self, a) return a:rmsnorm(self.w) end, line, {parts={w=tensor.randn(12)}})
add('sum', function(_, a) return a:sum {axis=2} end, block)
add('mean', function(_, a) return a:mean {axis={2, 3}} end, block)
add('max', function(_, a) return a:max {axis=3} end, block)
add('min', function(_, a) return a:min {axis=2} end, block)
add('least of aminmax', function(_, a) return (a:aminmax {axis=2}) end, block)
add('largest of aminmax', function(_, a) return select(2, a:aminmax {axis={2, 3}}) end, block)
add('argmax', function(_, a) return a:argmax(-1) end, block)

add('argmin', function(_, a) return a:argmin(2) end, block)
add('var', function(_, a) return a:var {axis=3} end, block)
add('std', function(_, a) return a:std {axis={2, 3}} end, block)
add('norm', function(_, a) return a:norm {axis=2} end, wide)
add('any', function(_, a) return a:relu():any {axis=2} end, block)
add('all', function(_, a) return a:relu():all {axis=3} end, block)

---------------------------------------------------------------- codes

local byte, word = {dtype='uint8', scale=0.02, zero_point=99}, {dtype='int16', scale=0.0003}
add('quantize', function(_, a) return a:quantize(byte) end, wide)
add('quantize to int16', function(_, a) return a:quantize(word) end, wide)
add('dequantize', function(_, a) return a:quantize(byte):dequantize() end, wide)
add('requantize', function(_, a) return a:quantize(byte):requantize(word) end, wide)
add('relu of codes', function(_, a) return a:quantize(byte):relu() end, wide)
add('argmax of codes', function(_, a) return a:quantize(byte):argmax(2) end, block)
add('copies of codes', function(_, a) return a:quantize(byte):permute(1, 3, 2) end, block)
integers('linear', nn.Sequential {nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 5)}, line)
integers('linear of int16', nn.Sequential {nn.Linear(12, 9), nn.Linear(9, 5)}, line, {weight='int16/1', input='int16'})
integers('linear of int4', nn.Sequential {nn.Linear(12, 9), nn.Linear(9, 5)}, line, {weight='int4/1', input='int8'})
add('linear of floats', graph.trace(nn.Linear(12, 9), line[{{1, 1}}]), line)
integers('conv2d', nn.Sequential {nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Conv2d(8, 4, 3, {stride=2, pad={0, 1, 1, 0}})}, image)
integers('conv2d of int16', nn.Sequential {nn.Conv2d(3, 5, 3), nn.Conv2d(5, 4, 1)}, image, {weight='int16/1', input='int16'})
integers('conv2d by channels', nn.Sequential {nn.Conv2d(3, 6, 3, {groups=3, pad=1}), nn.ReLU(), nn.Conv2d(6, 6, 3, {groups=6})}, image)
integers('convtranspose2d', nn.Sequential {nn.ConvTranspose2d(3, 4, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(4, 4, 3, {stride=2, groups=2})}, image)
add('conv2d of floats', graph.trace(nn.Conv2d(3, 6, 3, {pad=1}), image[{{1, 1}}]), image)
integers('add of codes', nn.Sequential {nn.Conv2d(3, 4, 1), nn.Residual {nn.Conv2d(4, 4, 3, {pad=1})}, nn.ReLU(), nn.Conv2d(4, 2, 1)}, image)
integers('maxpool2d', nn.Sequential {nn.Conv2d(3, 4, 1), nn.MaxPool2d(3, {stride=2, pad=1}), nn.Conv2d(4, 2, 1)}, image)
add('maxpool2d of floats', function(_, a) return a:maxpool2d(2) end, image)
add('batchnorm', graph.trace(nn.Sequential {nn.BatchNorm2d(3)}:eval(), image[{{1, 1}}]), image)
add('avgpool2d', function(_, a) return a:quantize(byte):avgpool2d(3, {stride=2}) end, image)
add('avgpool2d into others', function(_, a) return a:quantize(byte):avgpool2d(2, {out={dtype='int8', scale=0.01}}) end, image)
add('avgpool2d of floats', function(_, a) return a:avgpool2d(2) end, image)

---------------------------------------------------------------- rules of requantization, modes, packed weights

local fixed = nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), nn.ReLU(), nn.Residual {nn.Conv2d(6, 6, 3, {groups=6, pad=1})}, nn.ReLU(), nn.AvgPool2d(2),
	nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(4, 3)}
for _, rule in ipairs {'single', 'double'} do
	for _, specs in ipairs {{'int8/1', 'uint8'}, {'int16/1', 'int16'}, {'int4/1', 'int8'}} do
		add(('%s rounding, weights %s'):format(rule, specs[1]),
			exported.quantized(fixed, image, {mode='static', weight=specs[1], input=specs[2], rounding=rule}), image)
	end
	add(rule .. ' rounding of requantize', function(_, a) return a:quantize(byte):requantize {dtype='int16', scale=0.0007, rounding=rule} end, wide)
end
for _, specs in ipairs {{'int8/1', 'uint8'}, {'int4/1', 'int8'}, {'uint4/1', 'uint8'}, {'uint16', 'int16'}, {'binary/1', 'uint4'}} do
	add('dynamic, weights ' .. specs[1], exported.quantized(fixed, image, {mode='dynamic', weight=specs[1], input=specs[2]}), image,
		{single=true})
end
for _, spec in ipairs {'int8/1', 'int4:5', 'uint4:4', 'binary/1', 'int16'} do
	add('decoded weights ' .. spec, exported.quantized(fixed, image, {mode='weight_only', weight=spec}), image)
end

for _, spec in ipairs {'int8/2', 'int16/3', {dtype='int8', scheme='log'}, {dtype='int4', scheme='log', axis=1}} do
	local convolutions = nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), nn.ReLU(), nn.Conv2d(6, 4, 3)}
	add('decoded weights ' .. tostring(quant.spec(spec)), exported.quantized(convolutions, image, {mode='weight_only', weight=spec}), image)
end

add('conv2d in groups', exported.quantized(nn.Sequential {nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3, {groups=2})}, image, {mode='static'}), image)

---------------------------------------------------------------- sequences

local steps = tensor.randn(ROWS, 3, 6)
for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
	local m = nn.Sequential {nn[kind](6, 5), nn.Linear(5, 2)}
	add(kind, graph.trace(m, steps[{{1, 1}}]), steps)
	add(kind .. ', dynamic', exported.quantized(m, steps, {mode='dynamic', weight='int8/1'}), steps, {single=true})
end
add('attention', function(_, a) return nn.attention(a, a * 2, a - 1, {heads=2, causal=true}) end, steps)
add('attention with a mask', function(self, a)
	local y = nn.attention(a, a * 2, a - 1, {heads=2, mask=self.bias, window=2, softcap=1.5})
	return y + nn.attention(a, a * 2, a - 1, {heads=2, mask=self.seen, causal=true}) + nn.attention(a, a, a - 1, {heads=3, softcap=0.3})
end, steps, {parts={bias=tensor.randn(2, 1, 3), seen=tensor{{0, 1, 1}, {1, 0, 0}, {0, 1, 1}}:ne(0)}})
add('group and instance norm', function(self, a)
	return nn.groupnorm(a, 3, self.w, self.b) + nn.instancenorm(a, {eps=0.1}) + nn.groupnorm(a, 2) + a:layernorm(self.r, {axes=2})
end, block, {parts={w=tensor.randn(6), b=tensor.randn(6), r=tensor.randn(6, 4)}})
do
	local codes = tensor.arange(-32768, 32767):clamp(-32767, 32767):to 'int16'
	add('LSTM of codes', function(self, a)
		local x = (a * 1000):to 'int16'
		local h = tensor.zeros {a:size(1), 1, dtype='int16'}
		return nn.integerlstm(x, h, h, self.w, self.factors, self.tables, {multiplier=1 << 30, shift=-21, zero=2, clip=20000}):to 'float32'
	end, block, {parts={w=tensor {{100}, {-90}, {50}, {127}}:to 'int8', factors=tensor {{1 << 30, 1 << 30, 1500000000, 1 << 30}, {-2, -1, 0, -3}}:to 'int64',
		tables=tensor.stack {codes:idiv(2) + 16384, codes, codes:idiv(2)}}})
end
add('local response norm', function(_, a) return nn.localresponsenorm(a, 3, 0.5) + nn.localresponsenorm(a, 4, {alpha=2, beta=0.5, k=1.5}) end, block)
for _, norm in ipairs {nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, {affine=true}), nn.LayerNorm {6, 6}, nn.GroupNorm(2, 6, {affine=false})} do
	local net = nn.Sequential {nn.Conv2d(3, 6, 3, {pad=1}), norm, nn.ReLU(), nn.Conv2d(6, 2, 3)}
	for _, p in ipairs(norm:parameters()) do tensor.nograd(function() p:copy_(tensor.rand(p:size()) + 0.5) end) end
	add(tostring(norm) .. ' of codes', exported.quantized(net, image, {mode='static'}), image)
end
add('rope', function(_, a) return nn.rope(a, {start=3}) end, steps)
add('rope of halves', function(self, a)
	return nn.rope(a, {style='half', dims=4, start=2}) + nn.rope(a, self.c, self.s) - nn.rope(a, self.c:narrow(2, 1, 2), self.s:narrow(2, 1, 2), {dims=2, style='half'})
end, steps, {parts={c=tensor.randn(3, 3), s=tensor.randn(3, 3)}})
for _, spec in ipairs {'float', 'int8/1', 'int4:4'} do
	local m = nn.module(function(self, a) return self.rows(a:argmax(3)) end, {rows=nn.Embedding(4, 7)})
	add('embedding ' .. spec, spec == 'float' and graph.trace(m, block[{{1, 1}}]) or exported.quantized(m, block, {mode='weight_only', weight=spec}),
		block)
end
add('constants', function(self, a)
	local rows = self.w:embedding(tensor.arange(1, 3)) + tensor.eye(3):expand(1, 3, 3)
	return a:narrow(3, 1, 3) * tensor.ones(3) + rows + tensor.zeros(a:size(1), 3, 3) + tensor.linspace(0, 1, 3) - tensor.full {3, value=0.3}
end, steps, {parts={w=tensor.randn(4, 3)}})
---------------------------------------------------------------- what is made without x, joined, multiplied

add('zeros', function(_, a) return tensor.zeros(a:size(1), 12) + a end, line)
add('ones', function(_, a) return a * tensor.ones(1, 12) end, line)
add('full', function(_, a) return a - tensor.full {a:size(1), 1, value=0.3} end, line)
add('linspace', function(_, a) return a + tensor.linspace(0, 1, 12) end, line)
add('arange', function(_, a) return a + tensor.arange(1, 12, {dtype='float32'}) end, line)
add('eye', function(_, a) return a:view(-1, 3, 4) * tensor.eye(3, 4) end, line)
add('pad', function(_, a) return a:pad {1, 0, 2, 1} end, block)
add('pad of codes', function(_, a) return a:quantize(byte):pad {1, 2} end, block)
add('flip', function(_, a) return a:flip {2, 3} end, block)
if known.cat then
	local out = {dtype='int8', scale=0.026, zero_point=3}
	add('cat', function(_, a) return tensor.cat({a, a * 2}, {axis=2}) end, block)
	add('cat of codes', function(_, a) return tensor.cat({a:quantize(byte), a:quantize(word)}, {axis=3, out=out}) end, block)
	add('stack', function(_, a) return tensor.stack({a, a * 2}, {axis=2}) end, block)
	add('mul of codes', function(_, a) return a:quantize(byte):mul((a * 2):quantize(byte), {out=out}) end, block)
end
if known.matmul then
	add('matmul', function(_, a) return a:matmul(a:transpose(2, 3)) end, block)
	add('matmul, dynamic', exported.of(function(_, a) return a:matmul(a:transpose(2, 3)) end, block):quantize {mode='dynamic'}, block, {single=true})
	add('matmul of codes', function(_, a) return a:quantize(byte):matmul(a:transpose(2, 3):quantize(byte), {out={dtype='int8', scale=0.1}}) end, block)
end
for _, op in ipairs {'tanh', 'sqrt', 'rsqrt', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'erf', 'round', 'floor', 'ceil', 'trunc', 'sign'} do
	if known.cat then add(op .. ' of codes', function(_, a) return a:quantize(byte)[op](a:quantize(byte), {out=word}) end, line) end
end
if known.cat then add('clamp of codes', function(_, a) return a:quantize(byte):clamp {low=-0.5, high=1, out=word} end, line) end
if known.pow then add('pow of codes', function(_, a) return a:quantize(byte):pow(2, {out=byte}) end, line) end

---------------------------------------------------------------- layers of language models

local function heads(a, n) return a:view(a:size(1), 3, n, 4 // n):transpose(2, 3) end
local short = tensor.randn(ROWS, 3, 4)
add('attention by heads', function(_, a) return nn.attention(heads(a, 2), heads(a * 2, 2), heads(a - 1, 2), {causal=true}) end, short)
add('rope of short rows', function(_, a) return nn.rope(a) end, short)
local ids = tensor.randint {ROWS, 5, low=1, high=30}:to 'int32'
add('embedding of given rows', graph.trace(nn.Sequential {nn.Embedding(30, 7)}, ids[{{1, 1}}]), ids)
add('embedding in 4 bits', exported.quantized(nn.Sequential {nn.Embedding(30, 7)}, ids, {mode='weight_only', weight='int4:3'}), ids)
for _, kind in ipairs {'LSTM', 'GRU', 'RNN'} do
	local m = nn.Sequential {nn[kind](4, 5), nn.Linear(5, 3)}
	add(kind .. ' of other sizes', graph.trace(m, short[{{1, 1}}]), short)
	add(kind .. ' dynamic, of int8', exported.quantized(m, short, {mode='dynamic', weight='int8/1', input='int8'}), short, {single=true})
end

---------------------------------------------------------------- other types, indices, orders

local function to(dtype) return function(a) return (a * 3):to(dtype) end end
local int, long, small = to 'int32', to 'int64', to 'int8'
for _, op in ipairs {'add', 'sub', 'mul', 'maximum', 'minimum', 'band', 'bor', 'bxor'} do
	add(op .. ' of int8', function(_, a) local x = (a * 60):to 'int8' return x[op](x, x:flip(2)) end, block)
	add(op .. ' of integers', function(self, a) return long(a)[op](long(a), self.b) end, block, {parts={b=tensor {-7, 3, 1 << 40, 0, dtype='int64'}}})
end
for _, op in ipairs {'mod', 'idiv'} do
	add(op, function(_, a) return a[op](a, a:flip(2) * 0.3) end, wide)
	add(op .. ' of integers', function(self, a) return int(a)[op](int(a), self.b) end, block, {parts={b=tensor {-7, 3, -1, 2, dtype='int32'}}})
end
add('pow', function(_, a) return a:abs():pow(a:flip(2)) end, wide)
add('pow of whole exponents', function(self, a) return a:pow(self.b) end, block, {parts={b=tensor {-3, 2, 0, 7}}})
add('pow of integers', function(self, a) return int(a):pow(self.b) end, block, {parts={b=tensor {3, 2, 0, 7, dtype='int32'}}})
add('shl', function(self, a) return int(a):shl(self.b) end, block, {parts={b=tensor {3, -1, 0, 31, dtype='int32'}}})
add('shr', function(self, a) return long(a):shr(self.b) end, block, {parts={b=tensor {3, -5, 64, -64, dtype='int64'}}})
add('bnot', function(_, a) return ~int(a) end, block)
add('bnot of bool', function(_, a) return ~a:gt(0) end, block)
for _, op in ipairs {'neg', 'abs', 'sign', 'relu', 'relu6', 'round', 'floor'} do add(op .. ' of int8', function(_, a) return small(a)[op](small(a)) end, block) end
for _, op in ipairs {'exp', 'sqrt', 'sigmoid'} do add(op .. ' of int8', function(_, a) return small(a)[op](small(a)) end, block) end
add('clamp of integers', function(_, a) return int(a):clamp(-1.5, 2) end, block)
add('div of integers', function(self, a) return int(a) / self.b end, block, {parts={b=tensor {-7, 3, 11, 2, dtype='int64'}}})
add('eq of integers and floats', function(_, a) return int(a):lt(a) end, block)
add('where of integers', function(_, a) return tensor.where(a:gt(0), int(a), 7) end, block)
for _, op in ipairs {'asin', 'acos', 'atan'} do add(op, function(_, a) return a[op](a) end, line) end
for _, op in ipairs {'sin', 'cos'} do add(op .. ' of large angles', function(_, a) return (a:exp() * 1e9)[op](a:exp() * 1e9) end, wide) end
add('tan of large angles', function(_, a) return (a * 1e7):tan() end, wide)
add('add of five axes', function(_, a) return a:view(-1, 1, 3, 1, 3, 2, 6) + a:view(-1, 3, 1, 3, 1, 2, 6):permute(1, 2, 3, 4, 5, 7, 6):reshape(-1, 3, 1, 3, 1, 2, 6) end,
	image)
for _, dtype in ipairs {'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'bool'} do
	add('to ' .. dtype, function(_, a) return (a * 1e3):to(dtype) end, wide)
	add('to ' .. dtype .. ' and on', function(_, a) return (a * 1e2):round():to(dtype):to 'int8':to 'float32' end, wide)
end
add('to of codes', function(_, a) return a:quantize(byte):to 'float32' end, line)
add('codes', function(_, a) return a:quantize(byte):codes() end, line)
add('clone', function(_, a) return a:clone() * 2 end, line)

local ties = (tensor.randn(ROWS, 6, 4) * 2):round()
for name, x in pairs {floats = block, ties = ties} do
	add('sort of ' .. name, function(_, a) return (a:sort()) end, x)
	add('places of sort of ' .. name, function(_, a) return select(2, a:sort {axis=2, descending=true}) end, x)
	add('topk of ' .. name, function(_, a) return (a:topk(3, 2)) end, x)
	add('places of topk of ' .. name, function(_, a) return select(2, a:topk(2, {axis=-1, largest=false})) end, x)
	add('median of ' .. name, function(_, a) return a:median {axis=2} end, x)
	add('quantile of ' .. name, function(_, a) return a:quantile(0.3, {axis={2, 3}}) end, x)
end
add('sort of integers', function(_, a) return (int(a):sort(2)) end, block)
add('quantiles', function(self, a) return a:quantile(self.q, {axis=3}):transpose(1, 2) end, block, {parts={q=tensor {0, 0.25, 1}}})
add('median of integers', function(_, a) return int(a):median {axis=3, keep=true} end, block)
add('cumsum', function(_, a) return a:cumsum(2) end, wide)
add('cumsum of integers', function(_, a) return int(a):cumsum(2) end, block)
for _, op in ipairs {'sum', 'max', 'min', 'argmax', 'any'} do
	add(op .. ' of integers', function(_, a) return int(a)[op](int(a), {axis=2}) end, block)
	add(op .. ' along axes apart', function(_, a) return int(a)[op](int(a), {axis={2, 4}}) end, image)
end
for _, op in ipairs {'mean', 'var', 'norm', 'softmax'} do
	add(op .. ' of integers', function(_, a) return int(a)[op](int(a), {axis=2}) end, block, {tolerance=op == 'softmax' and 2e-6 or nil})
	add(op .. ' of decoded codes', function(_, a) local q = a:quantize(byte) return q[op](q, {axis=3}) end, block)
end
for _, p in ipairs {0, 0.5, 3, -2, -math.huge} do add('norm ' .. p, function(_, a) return a:norm {p=p, axis=2} end, block, {tolerance=math.abs(p) < math.huge and p ~= 0 and 2e-6 or nil}) end
for _, op in ipairs {'exp', 'neg', 'square'} do add(op .. ' of decoded codes', function(_, a) local q = a:quantize(byte) return q[op](q) end, line) end
add('add of decoded codes', function(_, a) return a:quantize(byte) + 1 end, line)
add('gt of decoded codes', function(_, a) return a:quantize(byte):gt(a) end, line)

add('slice', function(_, a) return a['::1, ::-2, 4:2:-1'] end, block)
add('slice of codes', function(_, a) return a:quantize(byte)['::1, 2:6:2'] end, block)
add('pad by mirroring', function(_, a) return a:pad {2, 1, -1, 3, mode='reflect'} end, block)
add('pad by edges', function(_, a) return a:pad {1, 0, 2, 2, mode='edge'} end, image)
add('pad of codes, again and again', function(_, a) return a:quantize(byte):pad {5, 1, 0, 2, mode='wrap'} end, block)
add('pad that removes', function(_, a) return a:pad {-1, 2, 1, -2, value=0.25} end, block)
add('pad that removes codes', function(_, a) return a:quantize(byte):pad {-1, 2, 1, -2} end, image)
add('roll', function(_, a) return a:roll(2, 2):roll(-1, 3) end, block)
add('roll of codes', function(_, a) return a:quantize(byte):roll(-3, 2) end, image)
add('repeatinterleave', function(self, a) return a:repeatinterleave(2, 3):repeatinterleave(self.n, 2) end, block,
	{parts={n=tensor {1, 0, 2, 0, 1, 3, dtype='int64'}}})
add('diag', function(self, a) return a:diag(-1) + self.v:diag(2)['1, 2:5'] end, block:narrow(3, 1, 4), {parts={v=tensor.randn(3)}})
local squares = tensor.randn(ROWS, 8, 4, 6)
for _, mode in ipairs {'dcr', 'crd'} do
	add('depthtospace ' .. mode, function(_, a) return a:depthtospace(2, mode) end, squares)
	add('spacetodepth ' .. mode, function(_, a) return a:quantize(byte):spacetodepth(2, mode) end, squares)
end
add('prod', function(_, a) return a:prod {axis=2} end, block)
add('prod along axes apart', function(_, a) return a:prod {axis={2, 4}} end, image)
add('prod of integers', function(_, a) return int(a):prod {axis=3} end, block)
add('logsumexp', function(_, a) return (a * 30):logsumexp {axis={2, 3}} end, block)
add('logsumexp of long lines', function(_, a) return a:tile(1, 300):logsumexp(2) end, wide)
add('logsumexp of infinities', function(_, a) return (a:abs():log() * a:gt(1):to 'float32' / a:gt(0):to 'float32'):logsumexp(2) end, block)
add('cumsum from the end', function(_, a) return a:cumsum {axis=2, reverse=true, exclusive=true} end, block)
add('cumprod', function(_, a) return a:cumprod(3) + a:cumprod {axis=2, reverse=true} end, block)
add('cumprod of integers', function(_, a) return small(a):cumprod {axis=2, exclusive=true} end, block)
add('cummax', function(_, a) return (a:round():cummax(2)) end, block)
add('places of cummin', function(_, a) return select(2, a:round():cummin(3)) end, block)
add('argmax, the last', function(_, a) return a:round():argmax {axis=2, last=true} end, block)
add('argmin of codes, the last', function(_, a) return a:quantize(byte):argmin {axis={2, 3}, last=true} end, block)
add('split', function(_, a) local p = a:split(4, {axis=2}) return tensor.cat({p[2], p[1]}, {axis=2}) end, block)
add('tile', function(_, a) return a:tile(1, 2, 3) end, block)
add('tile in front', function(_, a) return a:tile(1, 1, 2, 1, 1, 2) end, block:view(ROWS, 1, 2, 3, 2, 2))
add('tril', function(_, a) return a:tril() end, block)
add('triu', function(_, a) return int(a):triu(-1) end, block)
add('assign', function(_, a) local y = a * 2 y[{{}, {2, 3}}] = a[{{}, {5, 6}}] y[{{}, {}, 1}] = 0.5 return y end, block)
add('maskedassign', function(_, a) local y = a * 2 y[y:gt(1)] = 0 return y end, block)
add('gather', function(_, a) return a:gather(2, a:argmax {axis=2, keep=true}) end, block)
add('gather from the end', function(self, a) return a:gather(3, self.i:expand(a:size(1), 6, 3)) end, block, {parts={i=tensor {-1, 2, 4, dtype='int32'}:view(1, 1, 3)}})
add('scatter', function(_, a) return (a * 0):scatter(2, a:argmin {axis=2, keep=true}, a) end, block)
add('scatter and add', function(_, a) return a:scatter(2, select(2, a:sort(2)), a, {add=true}) end, block)
local picks = tensor {6, -1, 2, 2, dtype='int64'}
add('indexselect', function(self, a) return a[{{}, self.i}] end, block, {parts={i=picks}})
add('indexselect of codes', function(self, a) return a:quantize(byte):indexselect(2, self.i:view(2, 2)) end, block, {parts={i=picks}})
add('indexselect of given rows', function(self, a) return self.w[a:argmax(3)] end, block, {parts={w=tensor.randn(4, 3)}})
add('gathernd', function(self, a) return a:gathernd(self.i:expand(a:size(1), 3, 2), {batch=1}) end, block,
	{parts={i=tensor {{1, 2}, {-1, 4}, {3, 1}, dtype='int32'}:view(1, 3, 2)}})
add('gathernd of codes', function(self, a) return a:quantize(byte):gathernd(self.i:expand(a:size(1), 3, 1), {batch=1}) end, block,
	{parts={i=tensor {{1}, {-1}, {3}, dtype='int64'}:view(1, 3, 1)}})
for _, reduce in ipairs {'none', 'add', 'mul', 'max', 'min'} do
	add('scatter, ' .. reduce, function(self, a) return a:scatter(2, self.i:view(1, 4, 1):expand(a:size(1), 4, 4), a * 2, {reduce=reduce}) end, block,
		{parts={i=picks}})
	add('indexassign, ' .. reduce, function(self, a) return a:indexassign(2, self.i, a['::1, 1:4'] * 0.7, {reduce=reduce}) end, block, {parts={i=picks}})
	add('scatternd of integers, ' .. reduce, function(self, a)
		return int(a):scatternd(self.i:view(1, 4, 1):expand(a:size(1), 4, 1), 3, {batch=1, reduce=reduce})
	end, block, {parts={i=picks}})
end
add('assign by indices', function(self, a) local y = a * 2 y[{{}, self.i, 2}] = 0.5 y[{{}, {6, 1, -1}}] = a return y end, block, {parts={i=picks}})
add('mask of rows', function(self, a) local y = a * 1 y[a:sum {axis=3}:gt(0)] = self.v return y end, block, {parts={v=tensor.randn(4)}})
add('einsum of three', function(self, a) return tensor.einsum('bij,jk,bil->bkl', a, self.w, a) end, block, {parts={w=tensor.randn(4, 5)}})
add('onehot', function(_, a) return a:argmax(2):onehot(6, {dtype='float32'}) end, block)
add('onehot with values', function(_, a) return (a:argmax(2) + 1):onehot(6, {dtype='float32', on=2.5, off=-1, foreign=true}) end, block)
add('onehot of int64', function(_, a) return a:argmax(2):onehot(6) end, block)
add('einsum', function(self, a) return tensor.einsum('bij,jk->bki', a, self.w) end, block, {parts={w=tensor.randn(4, 5)}})
add('einsum of diagonals', function(_, a) return tensor.einsum('...ii->...i', a:narrow(2, 1, 4)) end, block)
add('einsum of a sum', function(_, a) return tensor.einsum('bij->bj', a) end, block)
add('einsum of integers', function(_, a) return tensor.einsum('bij,bkj->bki', small(a), small(a)) end, block)
add('dot', function(self, a) return a:select(1, 1):dot(self.w) + a:sum {axis=2} * 0 end, line, {single=true, parts={w=tensor.randn(12)}})
for _, spec in ipairs {'int8', 'uint8', 'int4', {dtype='uint8', scale=0.02, zero_point=99}, {dtype='int8', scale=0.05}} do
	add('fake ' .. tostring(quant.spec(spec)), function(_, a) return a:fake(spec) end, line, {single=true})
end
add('lsq', function(self, a) return a:lsq(self.s, {bits=4}) + self.w:lsq(self.s, {bits=3}) end, line, {parts={s=tensor {0.21}, w=tensor.randn(12)}})
add('lsq with a zero point', function(self, a) return a:lsq(self.s, self.z, {bits=8, signed=false}) end, line, {parts={s=tensor {0.021}, z=tensor {100.4}}})

add('resize', function(_, a) return a:resize {5, 9} end, image)
add('resize by the nearest', function(_, a) return a:resize {size={9, 4}, mode='nearest'} end, image)
add('resize with antialiasing', function(_, a) return a:resize {size={2, 4}, antialias=true} end, image)

return cases
