-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 2  Mixed precision, and the ledger of what really ran in integers
--
-- Two quantized matrices multiply in integers: 8-bit codes, exact 32-bit sums, one rounding at the end. Everything that has
-- no integer kernel is computed on the decoded float32 values instead. That is never silent: the ledger says which op ran
-- on which path with which kernel, how often, and why it fell back.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
os.execute 'mkdir -p out'
tensor.seed(2)
quant.log 'reset'

-- %% [markdown]
-- ## An integer product
--
-- Rows of the left matrix and columns of the right one have a scale of their own; `/1` and `/2` name the axis.

-- %%
a, w = tensor.randn{256, 1024}, tensor.randn{1024, 512}
qa, qw = a:quantize 'int8/1', w:quantize 'int8/2'
y = qa:matmul(qw)
print(y:explain())
assert(y:origin().path == 'int8')
full = a:matmul(w)
print(full:error(y))
relative = (full - y):norm():item() / full:norm():item()
print(('relative error %.2f %%'):format(100 * relative))  --> relative error 1.11 %
assert(relative > 0.0105 and relative < 0.0115)

-- %% [markdown]
-- The sums themselves are exact. The product of the codes as plain integers shows them.

-- %%
sums = qa:codes():matmul(qw:codes())
print(sums:dtype(), sums[1][1])  --> int32	...
exact = sums:to 'float32' * (qa:qparams().scale:view(-1, 1) * qw:qparams().scale:view(1, -1))
print('off by', y:error(exact).max)  --> off by	0.0
assert(y:error(exact).max == 0)

-- %% [markdown]
-- ## Mixed operands fall back
--
-- int8 times float32 has no integer meaning: the int8 side is decoded. The result is the same, bit for bit, as decoding by
-- hand.

-- %%
m = qa:matmul(w)
print(m:explain())
assert(m:origin().path == 'fallback' and m:error(qa:dequantize():matmul(w)).max == 0)
z = (qa + 1):exp():relu()
print(z:dtype())  --> float32
print(quant.log())

-- %% [markdown]
-- A relu needs no float: it raises codes to the zero point and stays int8. Sums and products stay integers when `out=` says
-- in which spec.

-- %%
p = qa:relu()
print(p:dtype(), p:qparams().scale:size())  --> int8	256
s = qa:add(p, {out = 'int8'})
print(s:dtype(), s:explain())

-- %% [markdown]
-- Some products cannot stay in integers even between quantized tensors, and the reason is said: here the scales change
-- along the axis that is summed.

-- %%
print(a:quantize('int8/2'):matmul(qw):explain())  --> ...because scale varies along the summed axis
print(a:quantize('int4:32'):matmul(qw):explain())  --> ...because scale varies along the summed axis (blocks)

-- %% [markdown]
-- ## When silence is not wanted
--
-- `quant.fallback 'warn'` says each fallback, `'error'` refuses it.

-- %%
quant.fallback 'error'
print(pcall(function() return qa:exp() end))  --> false	...exp: wanted an integer kernel for int8q...
quant.fallback 'silent'
print(quant.ops():where(function(row) return row.op == 'matmul' or row.op == 'relu' or row.op == 'exp' end))

-- %% [markdown]
-- ## What the precisions cost
--
-- The same product timed in float32, int8 and int4. Timings differ from machine to machine; the report names kernel and
-- machine.

-- %%
r = bench.matmul{sizes = quick and {64, 128} or {256, 512, 1024, 2048}, dtypes = {'float32', 'int8', 'int4:32'}}
print(r)
r:plot{kind = 'line', x = 'size', y = 'gops', group = 'dtype', title = 'x:linear(w)', xlabel = 'size of the square matrices',
  ylabel = 'billion operations per second', file = 'out/02_matmul.png'}
r:plot{kind = 'line', x = 'size', y = 'ms', group = 'dtype', ylog = true, title = 'latency', xlabel = 'size',
  ylabel = 'ms', file = 'out/02_latency.png'}
print(quant.log())
print 'pictures are in out/'
