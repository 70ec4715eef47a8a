-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 1  First steps: what quantization does to a tensor
--
-- A quantized tensor holds small integers (*codes*) and a few parameters that define their values: `x = (code - zero_point) *
-- scale`. This tutorial quantizes tensors, measures the error, and shows its causes: the range that the codes must cover, the number
-- of scales, and outliers. It uses random numbers, real photographs and real weights.
--
-- Run it with `./quoll tutorials/01_first_steps.lua`; `--quick` uses smaller inputs. Figures are written to the folder `out/`.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
os.execute 'mkdir -p out'
tensor.seed(1)

-- %% [markdown]
-- ## Codes and a scale
--
-- `int8` means: signed 8-bit codes, one scale for the whole tensor, symmetric: the largest magnitude becomes code 127 (or
-- -127) and everything else is rounded to the nearest step.

-- %%
x = tensor.randn{1000, 100}
q = x:quantize 'int8'
print(q:dtype(), q:nbytes(), ('%.2f times smaller'):format(q:ratio()))  --> int8	100004	4.00 times smaller
print('scale', q:qparams().scale)  --> scale	0.0356
print(q[{1, {1, 5}}]:codes())  --> int8(5)   -4   -4  -15   10   12
print(q[{1, {1, 5}}]:dequantize())  --> float32(5)  -0.1425  -0.1425  -0.5343   0.3562   0.4274
print(x[{1, {1, 5}}])  --> float32(5)  -0.1380  -0.1324  -0.5450   0.3702   0.4234

-- %% [markdown]
-- The error of a value inside the range is at most half a step. The usual figure of merit is the signal-to-quantization-noise ratio
-- (SQNR) in decibels: each additional bit is worth about 6 dB.

-- %%
e = x:error(q)
print(e)  -->       mse     rmse      max      mean   sqnr  cosine  clipped
          --> ─────────────────────────────────────────────────────────────
          --> 0.0001054  0.01027  0.01781  0.008888  39.75  0.9999        0
assert(e.max <= q:qparams().scale:item() / 2 * 1.0001)
expected = 10 * math.log(12 * (x * x):mean():item() / q:qparams().scale:item() ^ 2, 10)
print(('expected from the step: %.1f dB, measured: %.1f dB'):format(expected, e.sqnr))  --> expected from the step: 39.7 dB, measured: 39.7 dB

-- %% [markdown]
-- ## Specs compared
--
-- A spec is `dtype[/axis][:block]`: `int8/1` has one scale per row, `int4:32` one per 32 consecutive elements of a row.
-- More scales cost a few bytes and fit the data better.

-- %%
specs = {'int16', 'int8', 'uint8', 'int8/1', 'int8:32', 'int4', 'int4/1', 'int4:32', 'int4:64', 'binary/1'}
r = quant.compare(x, specs)
print(r)
r:plot{kind = 'bar', x = 'spec', y = 'sqnr', title = 'randn(1000, 100)', ylabel = 'SQNR in dB', file = 'out/01_sqnr.png'}

-- %% [markdown]
-- Error against time, one point per spec. Lower left is better.

-- %%
r:plot{kind = 'scatter', x = 'ms', y = 'max', label = 'spec', ylog = true, title = 'time and error of each spec',
  xlabel = 'ms to quantize', ylabel = 'largest error', file = 'out/01_error_latency.png'}

-- %% [markdown]
-- ## The error grows with the range
--
-- The step is the range divided by the number of codes, so the error is proportional to the scale of the input: a straight line.

-- %%
y = {}
for _, s in ipairs{0.1, 0.5, 1, 2, 5, 10} do y[#y + 1] = {s, (x * s):error((x * s):quantize 'int8').max} end
plot.line{y, xlabel = 'input scale', ylabel = 'max error', title = 'int8: error against input scale',
  file = 'out/01_error_vs_scale.png'}:show()
for i = 2, #y do assert(math.abs(y[i][2] / y[i][1] / (y[1][2] / y[1][1]) - 1) < 0.02) end

-- %% [markdown]
-- ## Outliers
--
-- One value of 100 in a tensor whose other values stay below 5 makes the step 20 times larger for all of them. A scale per
-- row or per block keeps the damage local.

-- %%
z = x:clone()
z[1][1] = 100
print(quant.compare(z, {'int8', 'int8/1', 'int8:32', 'int4', 'int4/1', 'int4:32'}))
plot.hist{z:quantize('int8'):codes():to('float32'):view(-1), bins = 128, ylog = true, xlabel = 'code', ylabel = 'count',
  title = 'one outlier: most of the 255 codes are empty', file = 'out/01_outlier.png'}

-- %% [markdown]
-- ## A real image
--
-- Photographs are not Gaussian: they have no negative values and a hard upper limit. The data is searched for in the folder given by
-- `--data`, then in `QUOLL_DATA`, `./data` and the user's data folder; without it the same code uses a procedural image.

-- %%
function image()
  local file, why = data.find 'images/camera.png'
  if file then
    print('input: real (camera.png)')
    return tensor.load(file):to 'float32' / 255
  end
  print('input: procedural image, because ' .. why)
  local n = 512
  local row, column = tensor.linspace(-3, 3, n):view(n, 1), tensor.linspace(-3, 3, n):view(1, n)
  return ((row * row + column * column):sqrt():sin() * 0.4 + 0.5 + tensor.randn{n, n} * 0.02):clamp(0, 1)
end
photo = image()
if quick then photo = photo['33:160, 161:288']:clone() end
print(photo)
r = quant.compare(photo, {'uint8', 'int8', 'uint4', 'int4', 'uint4/1', 'uint4:32', {bits = 4, scheme = 'log'}, {bits = 2}, 'binary/1'})
print(r:sort('sqnr', true))

-- %% [markdown]
-- With four bits, banding appears in the sky. The pictures show the decoded values.

-- %%
plot.heat{photo, title = 'original', file = 'out/01_photo.png'}:show()
plot.heat{photo:quantize('uint4'):dequantize(), title = 'uint4: 16 values', file = 'out/01_photo_uint4.png'}:show()
plot.heat{photo:quantize('binary/1'):dequantize(), title = 'binary/1', file = 'out/01_photo_binary.png'}

-- %% [markdown]
-- The images of MNIST are bytes already: with an explicit scale of 1/255, 8 bits are lossless.

-- %%
function digits()
  local file, why = data.find 'mnist/t10k-images-idx3-ubyte.gz'
  if file then
    print('input: real (MNIST)')
    return tensor.load(file)[{{1, quick and 100 or 1000}}]
  end
  print('input: procedural digits, because ' .. why)
  return (tensor.rand{100, 28, 28} * 255):floor():to 'uint8'
end
d = digits():to 'float32' / 255
d8 = d:quantize{dtype = 'uint8', scale = 1 / 255, zero_point = 0}
print('MNIST at 8 bits, largest error', d:error(d8).max)
assert(d:error(d8).max < 1e-7)
print(quant.compare(d, {'uint8', 'uint4', {dtype = 'uint4', bits = 2}, 'binary'}))

-- %% [markdown]
-- ## Real weights
--
-- The layers of a trained network (ResNet20, CIFAR-10). Weights are quantized per output channel: the first axis.

-- %%
function weights()
  local file, why = data.find 'weights/resnet20-cifar10.safetensors'
  if file then
    print('input: real (ResNet20)')
    local all, named = tensor.load(file), {}
    for name, t in pairs(all) do
      if type(name) == 'string' and t:dim() == 4 then named[#named + 1] = {name, t} end
    end
    table.sort(named, function(a, b) return a[1] < b[1] end)
    return named
  end
  print('input: procedural weights, because ' .. why)
  local named = {}
  for i = 1, 6 do
    local t = tensor.randn{16, 16, 3, 3} * 0.1
    named[i] = {'conv' .. i, t * tensor.rand{16, 1, 1, 1}}
  end
  return named
end
w = weights()
rows = {}
for i = 1, math.min(#w, quick and 4 or 20) do
  local t = w[i][2]:view(w[i][2]:size(1), -1)
  rows[i] = {layer = w[i][1], int8 = t:error(t:quantize 'int8').sqnr, ['int8/1'] = t:error(t:quantize 'int8/1').sqnr,
    int4 = t:error(t:quantize 'int4').sqnr, ['int4/1'] = t:error(t:quantize 'int4/1').sqnr,
    ['int4:32'] = t:error(t:quantize 'int4:32').sqnr}
  assert(rows[i]['int8/1'] >= rows[i].int8 - 0.2)
end
rows.columns = {'layer', 'int8', 'int8/1', 'int4', 'int4/1', 'int4:32'}
print(report(rows))

-- %% [markdown]
-- Error against latency again, for the largest layer: the best choice differs from that for random numbers.

-- %%
largest = w[1][2]
for _, named in ipairs(w) do if named[2]:nelem() > largest:nelem() then largest = named[2] end end
largest = largest:view(largest:size(1), -1)
r = quant.compare(largest, specs)
print(r)
r:plot{kind = 'scatter', x = 'ms', y = 'sqnr', label = 'spec', title = 'one layer of trained weights', xlabel = 'ms to quantize',
  ylabel = 'SQNR in dB', file = 'out/01_weights.png'}:show()
print 'pictures are in out/'
