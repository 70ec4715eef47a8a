-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- The gradient of every op of the registry (tensor.ops, nn.ops): against central finite differences in float64, at random
-- points away from kinks, for every operand, also as a view that is not contiguous; then the same points in float32 and
-- float16. An op that is in none of the lists below fails the test: a new op needs a line here.
tensor.seed(7)

local points = dofile 'tests/tools/points.lua'
local at, apart = points.at, points.apart
local function ints(...) return tensor{...}:to 'int64' end

-- ---- cases: op = {{fn, operands…}, …} ----

local cases = {}
local function case(name, fn, ...)
	cases[name] = cases[name] or {}
	table.insert(cases[name], {fn, ...})
end

-- Ops of one operand without options: any shape, and a range in which they are smooth.
for names, range in pairs {
	['exp exp2 expm1 square sin cos tan erf atan sinh cosh asinh tanh sigmoid gelu silu softplus mish softsign logsigmoid neg clone contiguous'] = {-1.5, 1.5},
	['log log2 log10 log1p sqrt rsqrt reciprocal'] = {0.5, 2}, ['asin acos atanh'] = {-0.8, 0.8}, acosh = {1.25, 3},
} do
	for name in names:gmatch '%w+' do
		case(name, function(x) return x[name](x) end, at(range[1], range[2], 3, 4))
		case(name, function(x) return x[name](x) end, at(range[1], range[2]))
	end
end
for name in ('abs relu relu6 leakyrelu hardswish elu selu celu hardsigmoid hardtanh shrink threshold'):gmatch '%w+' do
	case(name, function(x) return (x * 2)[name](x * 2) end, apart(3, 4))
	case(name, function(x) return (x * 6)[name](x * 6) end, apart(5, 2))
end
case('leakyrelu', function(x) return x:leakyrelu(0.3) end, apart(7))
for op, options in pairs {elu={0.5}, celu={0.5}, silu={1.702}, softplus={2, 1.5}, hardsigmoid={0.4, 0.25}, hardtanh={-0.7, 0.9}, shrink={0.6, 0.25},
	threshold={-0.45, 2}} do
	case(op, function(x) return x[op](x, table.unpack(options)) end, apart(4, 5))
end
for _, s in ipairs {{{2, 3, 4}, {3}}, {{2, 3, 4}, {1}}, {{5}, {5}}, {{2, 3, 4}, {3, 1}}, {{2, 3}, {2, 3}}, {{3, 2}, {1, 1, 1}}, {{}, {1}}} do
	case('prelu', function(x, slope) return x:prelu(slope) end, apart(table.unpack(s[1])), apart(table.unpack(s[2])))
end
case('prelu', function(x, slope) return x:prelu(slope, {axis=-1}) end, apart(2, 3, 4), apart(4))
case('prelu', function(x) return x:prelu(0.3) end, apart(2, 3))
case('gelu', function(x) return x:gelu{approximate='tanh'} end, at(-3, 3, 4, 3))
case('clamp', function(x) return x:clamp(-0.7, 0.9) end, apart(4, 4))
case('clamp', function(x) return x:clamp{high=0.1} end, apart(6))

-- Two operands, with broadcasting.
for name in ('add sub mul div maximum minimum'):gmatch '%w+' do
	local function run(a, b) return a[name](a, b) end
	case(name, run, apart(3, 4), apart(3, 4))
	case(name, run, apart(3, 1, 2), apart(4, 2))
	case(name, run, apart(2, 3), apart())
	case(name, run, apart(1, 3), apart(4, 1))
	case(name, function(a) return run(a, 3) end, apart(5))
	case(name, function(a) return run(tensor.full{2, 3, value=2.5, dtype='float64'}, a) end, apart(3))
	case(name, function(a) return run(a, a) end, apart(4))
end
case('mod', function(a, b) return a % b end, at(2.1, 2.9, 3, 2), at(0.8, 0.95, 2))
case('fmod', function(a, b) return a:fmod(b) end, at(2.1, 2.9, 3, 2), at(0.8, 0.95, 2))
case('fmod', function(a, b) return a:fmod(b) end, at(-2.9, -2.1, 2), at(0.8, 0.95, 3, 2))
case('atan2', function(a, b) return a:atan2(b) end, apart(3, 4), apart(4))
case('atan2', function(a) return a:atan2(-0.5) end, apart(5))
case('mod', function(a) return a % 0.75 end, at(1.6, 2.1, 5))
case('pow', function(a, b) return a ^ b end, at(0.5, 2, 3, 4), at(-2, 2, 4))
case('pow', function(a, b) return a ^ b end, at(0.5, 2, 4), at(-2, 2, 3, 1))
for _, e in ipairs {2, 3, 1, 0, -1, 0.5} do case('pow', function(a) return a ^ e end, at(0.5, 2, 3, 2)) end
case('pow', function(a) return 2 ^ a end, at(-1, 1, 4))
case('where', function(a, b) return tensor.where(tensor{{true}, {false}}, a, b) end, apart(2, 3), apart(3))
case('where', function(a) return tensor.where(a:gt(0), a, 0) end, apart(6))
case('dot', function(a, b) return a:dot(b) end, apart(5), apart(5))
case('dot', function(a) return a:dot(a) end, apart(5))

-- Products.
for _, s in ipairs {{{3, 4}, {4, 2}}, {{4}, {4}}, {{4}, {4, 3}}, {{3, 4}, {4}}, {{2, 3, 4}, {4, 2}}, {{3, 4}, {2, 4, 2}},
	{{2, 1, 2, 3}, {3, 3, 2}}, {{4}, {2, 4, 3}}, {{2, 3, 4}, {4}}} do
	case('matmul', function(a, b) return a:matmul(b) end, apart(table.unpack(s[1])), apart(table.unpack(s[2])))
end
case('matmul', function(a) return a:matmul(a:t()) end, apart(3, 4))
for _, act in ipairs {false, 'relu', 'relu6', 'gelu', 'silu', 'tanh', 'sigmoid', 'hardswish'} do
	local option = act and {act=act} or {}
	case('linear', function(x, w, b) return x:linear(w, b, option) end, apart(3, 4), apart(2, 4), apart(2))
	case('linear', function(x, w) return x:linear(w, option) end, apart(2, 2, 3), apart(2, 3))
end
case('linear', function(x, w, b) return x:linear(w, b) end, apart(4), apart(2, 4), apart(2))
-- of matrices that are definite, or triangular without a small diagonal, for any x
local function definite(x) return x:matmul(x:transpose(-2, -1)) + tensor.eye(x:size(-2)):to(x:dtype()) * 2 end
local function factor(x, o) return (o.upper and x:triu(1) or x:tril(-1)) + tensor.eye(x:size(-1)):to(x:dtype()) * (x * x + 1) end
for i = 0, 15 do
	local o = {upper=i % 2 == 1, transpose=i & 2 > 0, unit=i & 4 > 0, left=i & 8 > 0}
	case('inversefactor', function(x) return definite(x):inversefactor() end, apart(2, 3, 4))
	case('cholesky', function(x) return definite(x):cholesky{upper=o.upper} end, apart(1, 3, 4))
	case('choleskyinverse', function(x) return factor(x, o):choleskyinverse{upper=o.upper} end, apart(2, 3, 3))
	case('solvetriangular', function(x, b) return factor(x, o):solvetriangular(b, o) end, apart(3, 3), apart(2, 3, 3))
end
for equation, s in pairs {['ij,jk->ik'] = {{2, 3}, {3, 2}}, ['bij,bjk->bik'] = {{2, 2, 3}, {2, 3, 2}}, ['ij,ij->'] = {{2, 3}, {2, 3}},
	['i,j->ij'] = {{3}, {2}}, ['ij,kj->ki'] = {{2, 3}, {2, 3}}, ['ij,jk->k'] = {{2, 3}, {3, 2}}, ['ii,i->i'] = {{3, 3}, {3}},
	['...i,...i->...'] = {{2, 3}, {1, 3}}, ['aib,cbd->'] = {{2, 2, 2}, {2, 2, 2}}, ['ij,j->i'] = {{2, 3}, {1}}} do
	case('einsum', function(a, b) return tensor.einsum(equation, a, b) end, apart(table.unpack(s[1])), apart(table.unpack(s[2])))
end
for equation, s in pairs {['ij,jk,kl->il'] = {{2, 3}, {3, 2}, {2, 2}}, ['i,ij,j'] = {{2}, {2, 3}, {3}}, ['...i,ij,...j->...'] = {{2, 2}, {2, 3}, {1, 3}},
	['ii,ij,j->i'] = {{2, 2}, {2, 3}, {1}}} do
	case('einsum', function(a, b, c) return tensor.einsum(equation, a, b, c) end, apart(table.unpack(s[1])), apart(table.unpack(s[2])),
		apart(table.unpack(s[3])))
end
for equation, s in pairs {['ij->ji'] = {2, 3}, ['ij->'] = {2, 3}, ['ii'] = {3, 3}, ['ii->i'] = {3, 3}, ['iji->j'] = {2, 3, 2},
	['...ij->...i'] = {2, 2, 3}, ['iii->i'] = {2, 2, 2}} do
	case('einsum', function(a) return tensor.einsum(equation, a) end, apart(table.unpack(s)))
end

-- Reductions: all, one axis, several, kept.
local function reductions(name, option)
	for _, axes in ipairs {{}, {axis=1}, {axis=-1, keep=true}, {axis={1, 3}}, {axis={2, 3}, keep=true}} do
		local all = {}
		for k, v in pairs(option or {}) do all[k] = v end
		for k, v in pairs(axes) do all[k] = v end
		case(name, function(x) return x[name](x, all) end, apart(2, 3, 4))
	end
	case(name, function(x) return x[name](x, option or {}) end, apart(5))
end
for name in ('sum mean prod logsumexp max min var std median norm'):gmatch '%w+' do reductions(name) end
for _, p in ipairs {1, 3, 0.5, -1, math.huge, -math.huge} do reductions('norm', {p=p}) end
reductions('var', {unbiased=false})
reductions('std', {correction=0.5})
for name in ('sum mean prod logsumexp max min norm median'):gmatch '%w+' do case(name, function(x) return x[name](x) end, apart()) end
for _, axes in ipairs {{}, {axis=1}, {axis={1, 3}, keep=true}} do
	case('quantile', function(x, q) return x:quantile(q, axes) end, apart(2, 3, 4), tensor{0.2, 0.65, dtype='float64'})
	case('quantile', function(x) return x:quantile(0.3, axes) end, apart(2, 3, 4))
end
case('quantile', function(x, q) return x:quantile(q) end, apart(6), tensor{0.7, dtype='float64'}[1])
case('quantile', function(x) return x:quantile(tensor{0, 1, 0.5, dtype='float64'}) end, apart(5))

-- one side, the other, and both
for _, o in ipairs {{}, {axis=1}, {axis={1, 3}, keep=true}} do
	case('aminmax', function(x) return (x:aminmax(o)) end, apart(2, 3, 4))
	case('aminmax', function(x) return select(2, x:aminmax(o)) end, apart(2, 3, 4))
	case('aminmax', function(x) local lo, hi = x:aminmax(o) return hi * 2 - lo end, apart(2, 3, 4))
end
case('aminmax', function(x) local lo, hi = x:aminmax() return hi * 2 - lo end, apart())

-- Whole lines.
for name in ('softmax logsoftmax cumsum cumprod'):gmatch '%w+' do
	case(name, function(x) return x[name](x) end, apart(3, 4))
	case(name, function(x) return x[name](x, 1) end, apart(3, 4))
	case(name, function(x) return x[name](x, {axis=2}) end, apart(2, 3, 2))
	case(name, function(x) return x[name](x) end, apart(33))
end
for _, o in ipairs {{exclusive=true}, {reverse=true}, {axis=1, exclusive=true, reverse=true}} do
	for name in ('cumsum cumprod'):gmatch '%w+' do case(name, function(x) return x[name](x, o) end, apart(4, 5)) end
end
for name in ('cummax cummin'):gmatch '%w+' do
	case(name, function(x) return (x[name](x)) end, apart(3, 7))
	case(name, function(x) return (x[name](x, 1)) end, apart(5, 2))
	case(name, function(x) return (x[name](x)) end, apart())
end
case('sort', function(x) return (x:sort()) end, apart(3, 5))
case('sort', function(x) return (x:sort{axis=1, descending=true}) end, apart(4, 2))
case('sort', function(x) return (x:sort()) end, apart())
case('topk', function(x) return (x:topk(2)) end, apart(3, 5))
case('topk', function(x) return (x:topk(3, {axis=1, largest=false})) end, apart(4, 2))
case('topk', function(x) return (x:topk(0)) end, apart(4))

-- Views and copies in another arrangement.
local function moved(name, fn, ...) case(name, fn, apart(...)) end
moved('view', function(x) return x:contiguous():view(3, -1) end, 2, 3, 2)
moved('reshape', function(x) return x:reshape(6, 2) end, 2, 3, 2)
moved('t', function(x) return x:t() end, 2, 3)
moved('t', function(x) return x:t() end, 3)
moved('transpose', function(x) return x:transpose(1, -1) end, 2, 3, 4)
moved('permute', function(x) return x:permute(3, 1, 2) end, 2, 3, 4)
moved('narrow', function(x) return x:narrow(2, 2, 2) end, 2, 4, 2)
moved('narrow', function(x) return x[{{-2, -1}}] end, 5)
moved('narrow', function(x) return x:narrow(1, 5, 0) end, 4)
moved('slice', function(x) return x:slice(2, 2, 6, 2) end, 2, 7, 2)
moved('slice', function(x) return x['-1:2:-3, ::2'] end, 7, 3)
moved('slice', function(x) return x['3:2:2'] end, 4)
moved('select', function(x) return x:select(2, -1) end, 2, 3, 2)
moved('select', function(x) return x[2] end, 3)
moved('expand', function(x) return x:expand(4, 2, 3) end, 2, 1)
moved('expand', function(x) return x:expand(4) end)
moved('squeeze', function(x) return x:squeeze() end, 1, 3, 1)
moved('squeeze', function(x) return x:squeeze(1) end, 1, 3)
moved('unsqueeze', function(x) return x:unsqueeze(2) end, 2, 3)
moved('split', function(x) local p = x:split(2) return p[1]:sum(1) + p[3]:sum(1) * 2 end, 5, 2)
moved('split', function(x) local p = x:split(3, {axis=2}) return p[1] * p[2] end, 2, 6)
moved('tile', function(x) return x:tile(2, 3) end, 2, 2)
moved('tile', function(x) return x:tile(2, 1, 2, 3) end, 3, 2)
moved('tile', function(x) return x:tile(2) end)
moved('flip', function(x) return x:flip(1, 3) end, 2, 3, 2)
moved('pad', function(x) return x:pad(1, 2) end, 3)
moved('pad', function(x) return x:pad{1, 0, 2, 1, value=3} end, 2, 3)
moved('pad', function(x) return x:pad(2) end, 2, 2)
for _, mode in ipairs {'reflect', 'edge', 'wrap'} do
	moved('pad', function(x) return x:pad{2, 1, mode=mode} end, 2, 4)
	moved('pad', function(x) return x:pad{7, -1, 1, 3, mode=mode} end, 3, 4)
end
moved('pad', function(x) return x:pad{-1, 2, 1, -2} end, 4, 3)
moved('roll', function(x) return x:roll(2, 2) end, 2, 5, 2)
moved('roll', function(x) return x:roll(-4) end, 2, 3)
moved('repeatinterleave', function(x) return x:repeatinterleave(3, 2) end, 2, 3, 2)
moved('repeatinterleave', function(x) return x:repeatinterleave(ints(2, 0, 1), -2) end, 3, 2)
moved('repeatinterleave', function(x) return x:repeatinterleave(2) end, 2, 2)
for _, mode in ipairs {'dcr', 'crd'} do
	moved('depthtospace', function(x) return x:depthtospace(2, mode) end, 2, 8, 2, 3)
	moved('spacetodepth', function(x) return x:spacetodepth(2, mode) end, 3, 4, 2)
end
for _, k in ipairs {0, 1, -2, 5} do
	moved('diag', function(x) return x:diag(k) end, 2, 4, 3)
	moved('diag', function(x) return x:diag(k) end, 3)
end
moved('tril', function(x) return x:tril() end, 2, 3, 4)
moved('tril', function(x) return x:tril(1) end, 4, 3)
moved('triu', function(x) return x:triu(-1) end, 4, 3)
moved('to', function(x) return x:to(x:dtype()) end, 2, 3)
case('cat', function(a, b) return tensor.cat{a, b} end, apart(2, 3), apart(1, 3))
case('cat', function(a, b, c) return tensor.cat({a, b, c, a}, {axis=2}) end, apart(2, 1), apart(2, 3), apart(2, 2))
case('stack', function(a, b) return tensor.stack({a, b, a}, {axis=2}) end, apart(2, 3), apart(2, 3))
case('stack', function(a, b) return tensor.stack{a, b} end, apart(), apart())
case('gather', function(x) return x:gather(2, ints({1, 3, 3}, {2, -1, 2})) end, apart(2, 3))
case('gather', function(x) return x:gather(1, ints(2, 2, 1, 4, 2)) end, apart(4))
case('gather', function(x) return x:gather(1, ints({1, 2}, {2, 2}, {1, 1})) end, apart(2, 3))
for _, add in ipairs {false, true} do
	case('scatter', function(x, s) return x:scatter(1, ints(2, 2, 4), s, {add=add}) end, apart(5), apart(3))
	case('scatter', function(x, s) return x:scatter(2, ints({1, 1}, {3, 2}), s, {add=add}) end, apart(2, 3), apart(3, 4))
	case('scatter', function(x) return x:scatter(1, ints(2, 4), 1.5, {add=add}) end, apart(5))
end
-- several writes to one place; a product with zeros
for _, reduce in ipairs {'none', 'add', 'mul', 'max', 'min'} do
	local o = {reduce=reduce}
	case('scatter', function(x, s) return x:scatter(1, ints(2, 2, 4, -1), s, o) end, apart(5), apart(5))
	case('scatter', function(x, s) return x:scatter(2, ints({1, 1}, {3, 2}), s, o) end, apart(2, 3), apart(3, 4))
	case('scatter', function(x) return x:scatter(1, ints(2, 4), 0.9, o) end, apart(5))
	case('indexassign', function(x, s) return x:indexassign(2, ints(3, 1, 3), s, o) end, apart(2, 4, 2), apart(2, 3, 2))
	case('indexassign', function(x, s) return x:indexassign(1, ints({1, 4}, {4, 2}), s, o) end, apart(4), apart(2))
	case('scatternd', function(x, s) return x:scatternd(ints({1, 2}, {2, -1}, {1, 2}), s, o) end, apart(2, 3, 2), apart(3, 2))
	case('scatternd', function(x, s) return x:scatternd(ints({{2}, {1}}, {{3}, {3}}), s, {batch=1, reduce=reduce}) end, apart(2, 3), apart(2, 1))
end
case('scatter', function(x, s) return x:scatter(1, ints(1, 1, 2, 3), s, {reduce='mul'}) end, tensor{0, 2, 0, 1, dtype='float64'},
	tensor{3, 0.5, 0, 2, dtype='float64'})
case('prod', function(x) return x:prod(2) end, tensor{{0, 2, 3}, {0, 0, 1}, {1, 2, 4}, dtype='float64'})
case('cumprod', function(x) return x:cumprod() end, tensor{{0.5, 0, 3, 2}, {0, 1, 0, 2}, dtype='float64'})
case('indexselect', function(x) return x:indexselect(2, ints(3, 1, 3, -1)) end, apart(2, 3, 2))
case('indexselect', function(x) return x[ints({1, 4}, {2, 2})] end, apart(4, 2))
case('indexselect', function(x) return x[{{}, ints(2)[1]}] end, apart(2, 3))
case('gathernd', function(x) return x:gathernd(ints({1, 2}, {2, -1}, {1, 2})) end, apart(2, 3, 2))
case('gathernd', function(x) return x:gathernd(ints({{2}, {1}}, {{3}, {3}}), {batch=1}) end, apart(2, 3))
case('bincount', function(w) return ints(1, 4, 1, 2):bincount(w, {n=5}) end, apart(4))
case('maskedselect', function(x) return x[tensor{1, 0, 1}:gt(0)] end, apart(3, 2))
case('maskedassign', function(x, v) return x:maskedassign(tensor{1, 0, 1}:gt(0), v) end, apart(3, 2), apart(2, 2))
case('maskedassign', function(x, v) return x:maskedassign(tensor{1, 0, 1}:gt(0), v) end, apart(3, 2), apart(2))
case('maskedassign', function(x, v) return x:maskedassign(tensor{1, 0, 1}:gt(0), v) end, apart(3, 2), apart())
local mask = tensor{{1, 0, 1}, {0, 0, 1}}:gt(0)
case('maskedselect', function(x) return x[mask] end, apart(2, 3))
case('maskedselect', function(x) return x[x:gt(100)] end, apart(4))
case('maskedassign', function(x, v) return x:maskedassign(mask, v) end, apart(2, 3), apart(3))
case('maskedassign', function(x, v) return x:maskedassign(mask, v) end, apart(2, 3), apart(1))
case('maskedassign', function(x) return x:maskedassign(mask, 2) end, apart(2, 3))

-- Networks.
for _, o in ipairs {{}, {stride=2, pad=1}, {groups=2, pad={1, 0}}, {dilation={2, 1}, act='gelu'}, {act='relu', stride={1, 2}}} do
	local per = o.groups and 1 or 2
	case('conv2d', function(x, w, b) return x:conv2d(w, b, o) end, apart(2, 2, 5, 4), apart(4, per, 3, 2), apart(4))
	case('conv2d', function(x, w) return x:conv2d(w, o) end, apart(1, 2, 4, 5), apart(2, per, 2, 2))
end
for _, o in ipairs {{k=2}, {k={2, 3}, stride=1, pad=1}, {k=3, stride=2}} do
	case('maxpool2d', function(x) return x:maxpool2d(o) end, apart(2, 2, 5, 4))
	case('avgpool2d', function(x) return x:avgpool2d(o) end, apart(2, 2, 5, 4))
end
case('avgpool2d', function(x) return x:avgpool2d() end, apart(2, 3, 2, 4))
for name in ('layernorm rmsnorm'):gmatch '%w+' do
	case(name, function(x) return x[name](x) end, apart(2, 3, 5))
	case(name, function(x, w) return x[name](x, w, {eps=0.1}) end, apart(3, 4), apart(4))
end
case('layernorm', function(x, w, b) return x:layernorm(w, b) end, apart(3, 4), apart(4), apart(4))
case('embedding', function(w) return w:embedding(ints({1, 3, 1}, {3, 3, 4})) end, apart(4, 3))
case('layernorm', function(x, w, b) return x:layernorm(w, b, {axes=2}) end, apart(2, 3, 4), apart(3, 4), apart(3, 4))
case('rmsnorm', function(x, w) return x:rmsnorm(w, {axes=2}) end, apart(2, 3, 4), apart(3, 4))
case('groupnorm', function(x, w, b) return nn.groupnorm(x, 2, w, b) end, apart(2, 4, 3), apart(4), apart(4))
case('groupnorm', function(x) return nn.groupnorm(x, 3) end, apart(2, 6))
case('localresponsenorm', function(x) return nn.localresponsenorm(x, 4, {alpha=2, beta=0.7, k=0.5}) end, apart(2, 6, 3))
case('localresponsenorm', function(x) return nn.localresponsenorm(x, 9, 0.5) end, apart(2, 5))
case('instancenorm', function(x, w, b) return nn.instancenorm(x, w, b, {eps=0.1}) end, apart(2, 2, 3, 2), apart(2), apart(2))
case('batchnorm', function(x, w, b) return nn.batchnorm(x, w, b, {training=true}) end, apart(3, 2, 2, 3), apart(2), apart(2))
case('batchnorm', function(x, w, b)
	return nn.batchnorm(x, w, b, tensor{0.5, -0.25}:to(x:dtype()), tensor{1, 0.5}:to(x:dtype()))
end, apart(4, 2), apart(2), apart(2))
for _, o in ipairs {{}, {causal=true}, {scale=0.3}} do
	local function run(q, k, v) return nn.attention(q, k, v, o) end
	case('attention', run, apart(1, 2, 3, 4), apart(1, 2, 3, 4), apart(1, 2, 3, 2))
	case('attention', run, apart(2, 4, 2, 3), apart(2, 2, 5, 3), apart(2, 2, 5, 3))
end
case('attention', function(q, k, v) return nn.attention(q, k, v, {heads=2}) end, apart(2, 3, 4), apart(2, 3, 4), apart(2, 3, 4))
case('attention', function(q, k, v, m) return nn.attention(q, k, v, m, {softcap=2, window=2}) end, apart(1, 2, 3, 4), apart(1, 2, 3, 4),
	apart(1, 2, 3, 2), apart(2, 1, 3))
for name, gates in pairs {rnn=1, lstm=4, gru=3} do
	local function run(x, h, w, u, b, d)
		if name == 'lstm' then
			local y, last, c = nn.lstm(x, h, h * 0.5, w, u, b, d)
			return y + (last + c):unsqueeze(2)
		end
		local y, last = nn[name](x, h, w, u, b, d)
		return y + last:unsqueeze(2)
	end
	case(name, run, apart(2, 3, 2), apart(2, 2), apart(gates * 2, 2), apart(gates * 2, 2), apart(gates * 2), apart(gates * 2))
	case(name, function(x, w, u)
		return (nn[name](x, x[1] * 0, table.unpack(name == 'lstm' and {x[1] * 0, w, u, {batchfirst=false}}
			or {w, u, {batchfirst=false}})))
	end, apart(3, 2, 2), apart(gates * 2, 2), apart(gates * 2, 2))
end
case('gru', function(x, h, w, u) return (nn.gru(x, h, w, u, {resetafter=false, reverse=true, lengths=tensor{dtype='int32', 3, 1}})) end,
	apart(2, 3, 2), apart(2, 2), apart(6, 2), apart(6, 2))
case('rnn', function(x, h, w, u) return (nn.rnn(x, h, w, u, {act='relu'})) end, apart(2, 3, 2), apart(2, 2), apart(2, 2), apart(2, 2))
for _, o in ipairs {{}, {base=10, start=3}} do
	case('rope', function(x) return nn.rope(x, o) end, apart(2, 3, 4))
	case('rope', function(x) return nn.rope(x, {axis=2}) end, apart(1, 3, 2, 4))
end
case('dropout', function(x) tensor.seed(3) return nn.dropout(x, 0.4) end, apart(4, 5))
case('mse', function(y, t) return nn.mse(y, t) end, apart(3, 2), apart(3, 2))
for _, reduction in ipairs {'mean', 'sum', 'none'} do
	local o = {reduction=reduction}
	for _, name in ipairs {'mse', 'l1', 'smoothl1', 'huber', 'kldiv'} do
		case(name, function(y, t) return nn[name](y, t, o) end, at(-1.5, -0.1, 3, 2), at(0.1, 2, 3, 2))
	end
	case('bce', function(y, t) return nn.bce(y, t, o) end, at(0.1, 0.9, 3, 2), at(0, 1, 3, 2))
	case('bcelogits', function(y, t) return nn.bcelogits(y, t, tensor{0.5, 2}:to(y:dtype()), o) end, apart(3, 2), at(0, 1, 3, 2))
end
case('smoothl1', function(y, t) return nn.smoothl1(y, t, {beta=0.5}) end, at(0.1, 0.3, 4), at(0.5, 0.7, 4))
case('huber', function(y, t) return nn.huber(y, t, {delta=0.25}) end, at(0.1, 0.3, 4), at(0.8, 0.9, 4))
case('kldiv', function(y, t) return nn.kldiv(y, t, {logtarget=true}) end, at(-1.5, -0.1, 3), at(-2, -0.2, 3))
case('bce', function(y) return nn.bce(y, tensor{1, 0, 0.25}:to(y:dtype())) end, at(0.1, 0.9, 3))
case('bcelogits', function(y) return nn.bcelogits(y, tensor{1, 0, 0.25}:to(y:dtype())) end, apart(3))
case('crossentropy', function(y) return nn.crossentropy(y, ints(2, 1, 3)) end, apart(3, 4))
case('crossentropy', function(y) return nn.crossentropy(y, ints(2, 1, 3), tensor{0.5, 2, 1, 0.25}:to(y:dtype()), {reduction='none', smoothing=0.25}) end, apart(3, 4))
case('nll', function(y) return nn.nll(y, ints(2, 1, 3), tensor{0.5, 2, 1, 0.25}:to(y:dtype()), {ignore=1}) end, apart(3, 4))
case('crossentropy', function(y) return nn.crossentropy(y, ints({1, 2}, {3, 1}), {axis=2, ignore=1, smoothing=0.1}) end, apart(2, 3, 2))

-- Networks for text.
case('layernorm', function(x, w, b) return x:layernorm(w, b, {eps=0.01}) end, apart(3, 4), apart(4), apart(4))
case('layernorm', function(x, w) return x:layernorm(w, {eps=0.1}) end, apart(2, 2, 3), apart(3))
case('rmsnorm', function(x, w) return x:rmsnorm(w) end, apart(3, 4), apart(4))
case('rmsnorm', function(x) return x:rmsnorm{eps=0.1} end, apart(5))
case('embedding', function(w) return w:embedding(ints({2, 3}, {2, 1})) end, apart(4, 3))
case('crossentropy', function(x) return nn.crossentropy(x, ints(2, 4, 1)) end, apart(3, 4))
case('crossentropy', function(x) return nn.crossentropy(x, ints({2, 1}, {1, 3}), {axis=2, ignore=3, smoothing=0.2}) end,
	apart(2, 3, 2))
case('bce', function(y, t) return nn.bce(y, t) end, at(0.1, 0.9, 3, 2), at(0, 1, 3, 2))
case('bcelogits', function(x, t) return nn.bcelogits(x, t) end, apart(3, 2), at(0, 1, 3, 2))
case('dropout', function(x)
	tensor.seed(5)
	return nn.dropout(x, 0.4)
end, apart(4, 5))
case('rope', function(x) return nn.rope(x, {start=2}) end, apart(2, 3, 4))
case('attention', function(q, k, v) return nn.attention(q, k, v, {causal=true}) end, apart(1, 2, 3, 4), apart(1, 1, 4, 4),
	apart(1, 1, 4, 2))
case('attention', function(q, k, v) return nn.attention(q, k, v, {heads=2, scale=0.3}) end, apart(2, 3, 4), apart(2, 2, 4),
	apart(2, 2, 6))

-- Windows. Outputs of a group beyond two go by tiles, fewer by plain loops.
for _, c in ipairs {{{}, {2, 3, 4, 5}, {4, 3, 2, 3}}, {{pad=1}, {2, 2, 3, 3}, {3, 2, 3, 3}},
	{{stride={2, 3}, pad={1, 0, 2, 1}, dilation={1, 2}}, {2, 2, 5, 6}, {3, 2, 2, 3}},
	{{groups=2, stride=2, pad=1}, {1, 4, 5, 4}, {6, 2, 3, 3}}, {{groups=3, pad=1}, {2, 3, 4, 4}, {6, 1, 3, 3}},
	{{act='relu', pad=1}, {1, 2, 3, 3}, {3, 2, 3, 3}}, {{act='silu'}, {1, 2, 3, 3}, {3, 2, 2, 2}}} do
	local option, x, w = table.unpack(c)
	case('conv2d', function(a, b, d) return a:conv2d(b, d, option) end, apart(table.unpack(x)), apart(table.unpack(w)), apart(w[1]))
	case('conv2d', function(a, b) return a:conv2d(b, option) end, apart(table.unpack(x)), apart(table.unpack(w)))
end
for _, c in ipairs {{{}, {2, 3, 3, 2}, {3, 2, 2, 3}, 2}, {{stride=2, pad=1, outputpad=1, act='relu'}, {1, 2, 3, 3}, {2, 3, 3, 3}, 3},
	{{stride={2, 3}, pad={1, 0, 0, 1}, dilation={2, 1}, groups=2, act='silu'}, {1, 4, 2, 3}, {4, 2, 2, 2}, 4},
	{{dilation=3, outputpad={2, 1}, stride={1, 2}, autopad='valid'}, {1, 2, 2, 2}, {2, 1, 2, 2}, 1}} do
	local option, x, w, n = table.unpack(c)
	case('convtranspose2d', function(a, b, d) return a:convtranspose2d(b, d, option) end, apart(table.unpack(x)), apart(table.unpack(w)), apart(n))
	case('convtranspose2d', function(a, b) return a:convtranspose2d(b, option) end, apart(table.unpack(x)), apart(table.unpack(w)))
end
for _, option in ipairs {{k=2}, {k={3, 2}, stride={1, 2}, pad=1}, {k=3, stride=2, pad={0, 1, 1, 0}}} do
	case('maxpool2d', function(x) return x:maxpool2d(option) end, apart(2, 2, 4, 6))
	case('avgpool2d', function(x) return x:avgpool2d(option) end, apart(2, 2, 4, 6))
end
case('avgpool2d', function(x) return x:avgpool2d() end, apart(2, 3, 3, 2))
for _, option in ipairs {{k=2, stride=3, ceilmode=true, pad={1, 0, 1, 1}}, {k={3, 2}, autopad='same', stride=2}} do
	case('maxpool2d', function(x) return (x:maxpool2d(option)) end, apart(2, 2, 4, 6))
	case('avgpool2d', function(x) return x:avgpool2d(option) end, apart(2, 2, 4, 6))
	local bare = {countincludepad=false}
	for name, value in pairs(option) do bare[name] = value end
	case('avgpool2d', function(x) return x:avgpool2d(bare) end, apart(2, 2, 4, 6))
end
case('maxpool2d', function(x) return (x:maxpool2d{k=2, dilation={2, 3}, stride=1, pad=1, indices=true}) end, apart(1, 2, 4, 6))
for _, s in ipairs {{3, 2}, {2, 3, 4}, {2, 2, 2, 3}} do
	local mean, var = tensor{0.25, -0.5, 1}[{{1, s[2]}}], tensor{0.5, 2, 1}[{{1, s[2]}}]
	case('batchnorm', function(x, w, b) return nn.batchnorm(x, w, b, {training=true, eps=0.1}) end, apart(table.unpack(s)),
		apart(s[2]), apart(s[2]))
	case('batchnorm', function(x, w, b) return nn.batchnorm(x, w, b, mean, var) end, apart(table.unpack(s)), apart(s[2]),
		apart(s[2]))
end

-- ---- the ops without finite differences ----

-- Constant almost everywhere: nothing flows.
local flat = {
	round = function(x) return x:round() end, floor = function(x) return x:floor() end, ceil = function(x) return x:ceil() end,
	trunc = function(x) return x:trunc() end, sign = function(x) return x:sign() end, idiv = function(x) return x // 0.3 end,
}
-- The gradient passes as it is through the rounding.
local straight = {
	quantize = function(x) return x:quantize 'int8' end, requantize = function(x) return x:quantize('int16'):requantize 'int8' end,
	dequantize = function(x) return x:quantize('uint8/1'):dequantize() end, codes = function(x) return x:codes() end,
	fake = function(x) return x:fake 'int8/1' end, lsq = function(x) return x:lsq(tensor{0.1}:to(x:dtype())) end, -- unclipped
}
-- Results that are not real numbers, or no tensor to differentiate by.
local without = {}
for names, reason in pairs {
	['argmax argmin nonzero sample'] = 'positions', cachedattention = 'of generation', recentattention = 'of generation', gptq = 'codes', unique = 'of values that may be equal', ['any all eq ne lt le gt ge isnan isfinite isinf'] = 'truth values',
	['band bor bxor bnot shl shr'] = 'integers only', ['onehot integerlstm'] = 'of integers',
	['zeros ones empty full arange linspace eye rand randn randint'] = 'made of nothing',
} do
	for name in names:gmatch '%w+' do without[name] = reason end
end

moved('resize', function(x) return x:resize{size={3, 5}, mode='nearest'} end, 2, 4, 3)
for _, o in ipairs {{size={3, 7}}, {size={5, 2}, antialias=true}, {size=3, antialias=true}} do
	case('resize', function(x) return x:resize(o) end, apart(2, 4, 5))
end

-- ---- checks ----

local function cast(list, dtype)
	local out = {}
	for i, x in ipairs(list) do out[i] = x:to(dtype):detach():clone() end
	return out
end

local function reversed(rank)
	local order = {}
	for d = 1, rank do order[d] = rank + 1 - d end
	return order
end

-- Gradients of all operands; `view`: the operands are transposed views of the leaves.
local function gradients(fn, operands, dtype, seed, view)
	local leaves, given = cast(operands, dtype), {}
	for i, x in ipairs(leaves) do
		local turn = view and x:dim() > 1
		if turn then x = x:permute(reversed(x:dim())):contiguous() end
		leaves[i] = x:requires_grad_()
		given[i] = turn and x:permute(reversed(x:dim())) or x
	end
	local y = fn(table.unpack(given))
	y:backward(seed:to(y:dtype()))
	for i, x in ipairs(leaves) do
		local g = x:grad()
		if g and view and g:dim() > 1 then g = g:permute(reversed(g:dim())) end
		leaves[i] = g or false
	end
	return leaves
end

local function differences(fn, operands, seed)
	local out, h = {}, 1e-5
	for i = 1, #operands do
		local x = cast(operands, 'float64')
		local flat_x = x[i]:view(-1)
		local g = tensor.zeros{x[i]:nelem(), dtype='float64'}
		for k = 1, g:nelem() do
			local middle = flat_x[k]:item()
			flat_x[k] = middle + h
			local above = (fn(table.unpack(x)) * seed):sum():item()
			flat_x[k] = middle - h
			local below = (fn(table.unpack(x)) * seed):sum():item()
			flat_x[k] = middle
			g[k] = (above - below) / (2 * h)
		end
		out[i] = x[i]:dim() == 0 and g[1] or g:reshape{x[i]:size()}
	end
	return out
end

local function compare(what, got, wanted, dtype, tolerance)
	for i, g in ipairs(got) do
		local where = ('%s, operand %d'):format(what, i)
		if not g then
			assert(wanted[i]:nelem() == 0 or wanted[i]:abs():max():item() <= tolerance, where .. ': no gradient')
		else
			assert(g:dtype() == dtype, ('%s: %s'):format(where, g:dtype()))
			assert(table.concat({g:size()}, ' ') == table.concat({wanted[i]:size()}, ' '), where .. ': shape')
			local excess = g:nelem() == 0 and 0
				or ((g:to 'float64' - wanted[i]):abs() / (wanted[i]:abs() + 1)):max():item()
			assert(excess <= tolerance, ('%s: error %g\n%s\n%s'):format(where, excess, g, wanted[i]))
		end
	end
end

-- The result of fn, which must call the op; casts and copies do no work that the ledger counts.
local function uses(name, fn, operands)
	quant.log(true)
	local y = fn(table.unpack(operands))
	for _, row in ipairs(quant.log()) do if row.op == name then return y end end
	assert(('clone contiguous to'):find(name, 1, true), 'the case does not call ' .. name)
	return y
end

local function settled()
	collectgarbage()
	collectgarbage()
	return tensor.memory().now
end

local function check(name, n, c)
	local fn, operands = c[1], {table.unpack(c, 2)}
	local what = ('%s, case %d'):format(name, n)
	local leaves = cast(operands, 'float64')
	for _, x in ipairs(leaves) do x:requires_grad_() end -- an index is an op only where a gradient is wanted
	local y = uses(name, fn, leaves)
	local seed = at(0.3, 1, y:size())
	local exact = gradients(fn, operands, 'float64', seed)
	compare(what, exact, differences(fn, operands, seed), 'float64', 1e-6)
	if #operands > 0 then
		compare(what .. ', view', gradients(fn, operands, 'float64', seed, true), exact, 'float64', 1e-12)
	end
	for i, g in ipairs(exact) do exact[i] = g or operands[i] * 0 end
	compare(what .. ', float32', gradients(fn, operands, 'float32', seed), exact, 'float32', 1e-4)
	compare(what .. ', float16', gradients(fn, operands, 'float16', seed), exact, 'float16', 0.02)
	for i, g in ipairs(exact) do exact[i] = g * 2 end
	local function twice(...) return fn(...) + fn(...) end
	compare(what .. ', used twice', gradients(twice, operands, 'float64', seed), exact, 'float64', 1e-12)
	local before = settled()
	gradients(fn, operands, 'float32', seed)
	assert(settled() == before, what .. ': memory')
end

local all = {}
for _, list in ipairs {tensor.ops(), nn.ops()} do
	for _, op in ipairs(list) do all[op.name] = op end
end

for name, op in pairs(all) do
	it('gradient of ' .. name, function()
		if cases[name] then
			assert(op.gradient, 'it has none')
			for n, c in ipairs(cases[name]) do check(name, n, c) end
		elseif flat[name] then
			local x = apart(3, 2):requires_grad_()
			local y = uses(name, flat[name], {x})
			y:backward(tensor.ones(3, 2))
			assert(x:grad() == nil)
		elseif straight[name] then
			for dtype in ('float32 float16 float64'):gmatch '%w+' do
				local x, seed = apart(3, 2):to(dtype):detach():requires_grad_(), at(-1, 1, 3, 2)
				uses(name, straight[name], {x}):backward(seed:to 'float32')
				assert(x:grad():dtype() == dtype and (x:grad():to 'float64' - seed):abs():max():item() == 0)
			end
		elseif op.elementwise then -- a new op of one to three operands needs no case: it is tried as it is
			local operands = {}
			for i = 1, op.arity_min do operands[i] = apart(3, 4) end
			local function fn(...) return (op.method and (...)[name] or tensor[name])(...) end
			if op.gradient then
				check(name, 1, {fn, table.unpack(operands)})
			else
				local y = fn(operands[1]:detach():requires_grad_(), table.unpack(operands, 2))
				assert(not pcall(y.backward, y, tensor.ones(3, 4)), 'it has no gradient, and gives one')
			end
		else
			assert(without[name], 'neither a case nor a reason why there is none in tests/nn/gradients.lua')
			assert(not op.gradient, 'it has one')
		end
	end)
end

it('every list names ops that exist', function()
	for _, list in ipairs {cases, flat, straight, without} do
		for name in pairs(list) do assert(all[name], name) end
	end
end)

it('no elements', function()
	local function none(fn, ...)
		local x = tensor.zeros(...):requires_grad_()
		local y = fn(x)
		y:backward(tensor.ones(y:size()))
		assert(x:grad() == nil or table.concat({x:grad():size()}, ' ') == table.concat({...}, ' '))
	end
	for name, op in pairs(all) do
		if op.elementwise and op.gradient and op.arity_max == 1 then none(function(x) return x[name](x) end, 0, 3) end
		if op.elementwise and op.gradient and op.arity_max == 2 then none(function(x) return x[name](x, x) end, 3, 0) end
	end
	for name in ('sum mean max min var std norm median softmax logsoftmax cumsum sort flip'):gmatch '%w+' do
		none(function(x) return (x[name](x, 2)) end, 0, 3)
	end
	for name in ('sum mean var std median norm'):gmatch '%w+' do none(function(x) return x[name](x) end, 0) end
	none(function(x) return x:quantile(0.5) end, 0)
	none(function(x) return x:matmul(tensor.ones(3, 2)) end, 0, 3)
	none(function(x) return x:matmul(tensor.ones(0, 2)) end, 3, 0)
	none(function(x) return x:linear(tensor.ones(2, 3), tensor.ones(2), {act='gelu'}) end, 0, 3)
	none(function(x) return tensor.einsum('ij,jk->ik', x, tensor.ones(3, 2)) end, 0, 3)
	none(function(x) return tensor.cat{x, tensor.ones(1, 3)} end, 0, 3)
	none(function(x) return x:tile(0, 2) end, 2, 3)
	none(function(x) return x:tile(2, 2) end, 0, 3)
	none(function(x) return x:pad(1, 1) end, 0)
	none(function(x) return x:gather(1, tensor.zeros{0, 3, dtype='int64'}) end, 4, 3)
	none(function(x) return x:dot(tensor.zeros(0)) end, 0)
	none(function(x) return x:expand(4, 0) end, 4, 0)
end)
