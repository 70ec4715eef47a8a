-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 2  Mixed precision, and the ledger of ops that ran in integers
--
-- Two quantized matrices are multiplied in integers: 8-bit codes, exact 32-bit sums, one rounding at the end. An op without an
-- integer kernel is computed with the decoded float32 values instead. This is never silent: the ledger records which op used which
-- path and kernel, how often, and why it fell back.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
os.execute 'mkdir -p out'
tensor.seed(2)
quant.log 'reset'

-- %% [markdown]
-- ## An integer product
--
-- Each row of the left matrix and each column of the right one has its own scale; `/1` and `/2` specify the axis.

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
-- The sums are exact, as the product of the codes as plain integers shows.

-- %%
sums = qa:codes():matmul(qw:codes())
print(sums:dtype(), sums[1][1])  --> int32	...
exact = sums:to 'float32' * (qa:qparams().scale:view(-1, 1) * qw:qparams().scale:view(1, -1))
print('off by', y:error(exact).max)  --> off by	0.0
assert(y:error(exact).max == 0)

-- %% [markdown]
-- ## Mixed operands fall back
--
-- A product of int8 and float32 cannot be computed in integers: the int8 operand is decoded. The result is bit-identical to decoding
-- it explicitly.

-- %%
m = qa:matmul(w)
print(m:explain())
apart = m:error(qa:dequantize():matmul(w)).max
if m:device() == 'cpu' then
	assert(m:origin().path == 'fallback' and apart == 0)
else -- a GPU decodes within its kernel, which may sum in another order
	assert(m:origin().path == 'float32' and apart < 1e-3)
end
z = (qa + 1):exp():relu()
print(z:dtype())  --> float32
print(quant.log())

-- %% [markdown]
-- A relu needs no floats: it clamps codes at the zero point, and the result is int8. Sums and products stay in integers if `out=`
-- gives the spec of the result.

-- %%
p = qa:relu()
print(p:dtype(), p:qparams().scale:size())  --> int8	256
s = qa:add(p, {out = 'int8'})
print(s:dtype(), s:explain())

-- %% [markdown]
-- Some products of quantized tensors cannot be computed in integers, and the reason is reported: in this case the scales vary along
-- the summed axis.

-- %%
print(a:quantize('int8/2'):matmul(qw):explain())  --> ...because scale varies along the summed axis
print(a:quantize('int4:32'):matmul(qw):explain())  --> ...because scale varies along the summed axis (blocks)

-- %% [markdown]
-- ## On real digits
--
-- An application: which of some thousand labelled digits of MNIST is most similar to a new one? The scores are one matrix product of
-- normalized rows, which can be computed in float32, int8, int4 and with one bit per pixel. Without the data, noisy procedural
-- patterns are used.

-- %%
patterns = nil -- drawn once, where there are no digits
function digits(split, n)
  local images, why = data.find('mnist/' .. split .. '-images-idx3-ubyte.gz')
  local labels = data.find('mnist/' .. split .. '-labels-idx1-ubyte.gz')
  if images and labels then
    print('input: real (MNIST ' .. split .. ')')
    return tensor.load(images)[{{1, n}}]:view(n, 784):to 'float32' / 255, tensor.load(labels)[{{1, n}}]
  end
  print('input: procedural patterns, because ' .. why)
  patterns = patterns or tensor.rand(10, 784):gt(0.8):to 'float32'
  local kind = tensor.randint{n, low = 0, high = 9}
  local x = tensor.zeros(n, 784)
  for i, k in ipairs(kind:totable()) do x[i] = patterns[k + 1] end
  return (x + tensor.randn(n, 784) * 0.4):clamp(0, 1), kind
end
known, known_label = digits('train', quick and 500 or 4000)
new, new_label = digits('t10k', quick and 200 or 1000)
known, new = known / known:norm{axis = 2, keep = true}, new / new:norm{axis = 2, keep = true}
answers, truth = known_label:totable(), new_label:totable()

rows = {columns = {'spec', 'correct', 'same', 'path', 'kernel', 'ms'}}
best = new:matmul(known:t()):argmax(2)
for _, spec in ipairs{'float32', 'int8/1', 'uint8', 'int4/1', 'uint4', 'binary/1', 'int4:28'} do
  local a, b = new:quantize(spec), known:quantize(spec)
  local scores
  local time = bench.time(function() scores = a:matmul(b:t()) end, {runs = 3, warmup = 1})
  local nearest, correct = scores:argmax(2), 0
  for i, k in ipairs(nearest:totable()) do correct = correct + (answers[k] == truth[i] and 1 or 0) end
  rows[#rows + 1] = {spec = spec, correct = 100 * correct / #truth, path = scores:origin().path,
    kernel = scores:origin().kernel, same = 100 * nearest:eq(best):to('float32'):mean():item(), ms = time.ms}
end
r = report(rows)
print(r)                       -- correct and same: percent
assert(r[2].path == 'int8' and r[6].path == (new:device() == 'cpu' and 'binary' or 'host') and r[7].path == 'fallback')
assert(math.abs(r[2].correct - r[1].correct) <= 1, 'int8 must not cost more than a point')
r:plot{kind = 'scatter', x = 'ms', y = 'correct', label = 'spec', title = 'nearest digit: time and accuracy of each precision',
  xlabel = 'ms for all scores', ylabel = '% correct', file = 'out/02_digits.png'}

-- %% [markdown]
-- One bit per pixel is no better than guessing: it keeps only the sign, and no pixel is negative. Subtracting the mean image first
-- makes the signs informative.

-- %%
middle = known:mean{axis = 1, keep = true}
a, b = (new - middle):quantize 'binary/1', (known - middle):quantize 'binary/1'
nearest, correct = a:matmul(b:t()):argmax(2), 0
for i, k in ipairs(nearest:totable()) do correct = correct + (answers[k] == truth[i] and 1 or 0) end
print(('binary/1 around the mean: %.1f %% correct, with 1/32 of the bytes'):format(100 * correct / #truth))
assert(correct / #truth > 0.5)

-- %% [markdown]
-- ## Warnings and errors on fallback
--
-- `quant.fallback 'warn'` reports each fallback, `'error'` refuses it.

-- %%
quant.fallback 'error'
print(pcall(function() return qa:exp() end))  --> false	...exp: wanted an integer kernel for int8q...
quant.fallback 'silent'
print(quant.ops():where(function(row) return row.op == 'matmul' or row.op == 'relu' or row.op == 'exp' end))

-- %% [markdown]
-- ## Speed of the precisions
--
-- The same product timed in float32, int8 and int4. Times depend on the machine; the report names kernel and machine.

-- %%
r = bench.matmul{sizes = quick and {64, 128} or {256, 512, 1024, 2048}, dtypes = {'float32', 'int8', 'int4:32'}}
print(r)
r:plot{kind = 'line', x = 'size', y = 'gops', group = 'dtype', title = 'x:linear(w)', xlabel = 'size of the square matrices',
  ylabel = 'billion operations per second', file = 'out/02_matmul.png'}:show()
r:plot{kind = 'line', x = 'size', y = 'ms', group = 'dtype', ylog = true, title = 'latency', xlabel = 'size',
  ylabel = 'ms', file = 'out/02_latency.png'}:show()
print(quant.log())
print 'pictures are in out/'
