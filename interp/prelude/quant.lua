-- SPDX-License-Identifier: MIT
-- quant: what arranges measurements into reports. The measuring itself is C.

local _, internal = ...
local base = internal.import 'base'
local doc = base.doc
internal.import 'quant_observer'
internal.import 'quant_sensitivity'
internal.import 'quant_search'
local methods = debug.getmetatable(tensor.zeros(1)).methods

doc {name = 'x:error', usage = 'x:error(y)',
  text = [[How far y is from x, as a report of one row whose columns are read by name: mse, rmse, max (largest absolute error),
mean (of the error, with sign), sqnr (10·log10 of the power of x over that of the error, in dB; each bit is worth about 6),
cosine (of the angle between both), clipped (percent of the elements at the ends of the codes of y). Either may be
quantized.]],
  example = "x = tensor{1,-0.5,0.25}\nprint(x:error(x:quantize 'int8').max < 0.5 / 127)  --> true"}

local function check_self(x, name)
  if not base.is_tensor(x) then base.fail('%s: wanted a tensor, as in x:%s(…), got %s', name, name, base.describe(x)) end
end

function methods.error(x, y)
  check_self(x, 'error')
  local m = x:metrics(y)
  m.clipped = 100 * m.clipped
  return report{columns = {'mse', 'rmse', 'max', 'mean', 'sqnr', 'cosine', 'clipped'}, m}
end

doc {name = 'x:ratio', usage = 'q:ratio()', text = [[Bytes as float32 over bytes now, scales counted.]],
  example = "print(tensor.zeros(1000):quantize('int4'):ratio() > 7.9)  --> true"}

function methods.ratio(q)
  check_self(q, 'ratio')
  local bytes = q:nbytes()
  return bytes == 0 and 1.0 or 4 * q:nelem() / bytes
end

doc {name = 'x:layout', usage = 'q:layout()',
  text = [[How the codes lie in memory, as a report of one row: dtype, bits, packed (elements per byte), alignment in bytes,
contiguous, bytes, scales (how many).]],
  example = "print(tensor.zeros(8):quantize('int4'):layout().packed)  --> 2"}

function methods.layout(q)
  check_self(q, 'layout')
  local d = quant.dtype(q:dtype())
  local p = q:qparams()
  return report{columns = {'dtype', 'bits', 'packed', 'alignment', 'contiguous', 'bytes', 'scales'},
    {dtype = d.name, bits = d.bits, packed = d.packed, alignment = 64, contiguous = q:iscontiguous(),
     bytes = q:nbytes(), scales = p and p.scale:nelem() or 0}}
end

doc {name = 'x:explain', usage = 'x:explain()',
  text = [[Says how this value was made: op, operands, path, kernel, device and, when the op fell back to float32, why. See
ledger.]],
  example = "q = tensor{1,-2}:quantize 'int8'\nprint((q + 1):explain())  --> add of int8q...path fallback...because..."}

function methods.explain(x)
  check_self(x, 'explain')
  local o = x:origin()
  if not o then return 'given: no op made this value' end
  local text = ('%s of %s: path %s, kernel %s, device %s'):format(o.op, o.operands ~= '' and o.operands or 'nothing',
    o.path, o.kernel, x:device())
  if o.path == 'fallback' then text = text .. ', because ' .. o.reason end
  return text
end

doc {name = 'quant.log', usage = "quant.log()  quant.log 'reset'",
  text = [[What ran so far, as a report: op, operands (a q behind the dtype: quantized), path, kernel, count and, for
fallbacks, the reason. With an argument the counts start anew afterwards. See ledger.]],
  example = "quant.log 'reset'\nx = tensor{1}:quantize 'int8'\nprint(quant.log().op, quant.log().count)  --> quantize 1"}

function quant.log(reset)
  local rows = quant.ledger(reset and true or false)
  rows.columns = {'op', 'operands', 'path', 'kernel', 'count', 'reason'}
  return report(rows)
end

doc {name = 'quant.ops', usage = 'quant.ops()',
  text = [[What each op does with quantized operands of each dtype, as a report: the name of its integer path, view, native
(takes them as they are) or fallback.]],
  example = "print(quant.ops():where{op='relu'}.int8)  --> integer"}

function quant.ops()
  local by, text = {}, {}
  for _, p in ipairs(quant.paths()) do
    by[p.op], text[p.op] = by[p.op] or {}, p.text
    for dtype, path in p.dtypes:gmatch '(%w+)=?(%w*)' do by[p.op][dtype] = path ~= '' and path or p.path end
  end
  local rows = {columns = {'op', 'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16', 'binary', 'when'}}
  for _, op in ipairs(tensor.ops()) do
    local any = op.table and not by[op.name]
    local found = by[any and '*' or op.name]
    local row = {op = op.name, when = text[any and '*' or op.name]}
    for i = 2, #rows.columns - 1 do
      local dtype = rows.columns[i]
      row[dtype] = found and found[dtype] or (op.view and 'view') or (op.native and 'native') or 'fallback'
    end
    if op.arity_max > 0 then rows[#rows + 1] = row end
  end
  return report(rows)
end

-- Median of up to 5 runs, as many as begin within BUDGET seconds; at least one.
local BUDGET = 0.5
local function median_ms(fn)
  local t, start = {}, hw.clock()
  repeat
    local t0 = hw.clock()
    fn()
    t[#t + 1] = (hw.clock() - t0) * 1e3
  until #t == 5 or hw.clock() - start > BUDGET
  table.sort(t)
  return t[(#t + 1) // 2], #t
end

-- A row of quant.compare.
local function compared(x, s)
  local q
  local spec = quant.spec(s)
  local ms, runs = median_ms(function() q = x:quantize(s) end)
  local e = x:metrics(q)
  return {spec = tostring(spec), sqnr = e.sqnr, max = e.max, cosine = e.cosine, bytes = q:nbytes(), ratio = methods.ratio(q), ms = ms, runs = runs}
end

doc {name = 'quant.compare', usage = "quant.compare(x, {'int8','int8/1','int4:32'})",
  text = [[Quantizes x by each spec: a report with spec (a text that x:quantize takes), sqnr (dB), max (largest error), cosine, bytes, ratio to
float32, ms (median of 5 runs, of fewer when they take longer than half a second together) and runs. A spec that is none, or that x
cannot be quantized by, has a row, too, which says why. bench.compare measures the time with more care.]],
  example = "r = quant.compare(tensor{1,-0.5,0.3}, {'int8','int4'})\nprint(r:best('sqnr').spec)  --> int8"}

function quant.compare(x, specs)
  if not base.is_tensor(x) then base.fail('compare: wanted a tensor, got %s', base.describe(x)) end
  if type(specs) == 'string' then specs = {specs} end
  if type(specs) ~= 'table' or #specs == 0 then
    error('compare: wanted a list of specs, got ' .. (type(specs) == 'table' and 'an empty one' or type(specs)), 2)
  end
  local rows, bad = {columns = {'spec', 'sqnr', 'max', 'cosine', 'bytes', 'ratio', 'ms', 'runs'}}, 0
  for i, s in ipairs(specs) do
    local ok, row = pcall(compared, x, s)
    if not ok then
      local why = tostring(row):gsub('^%S+:%d+: ', '')
      bad, row = bad + 1, {spec = type(s) == 'table' and ('item %d'):format(i) or tostring(s), why = why}
    end
    rows[i] = row
  end
  if bad == #specs then error('compare: ' .. rows[1].why, 2) end
  if bad > 0 then rows.columns[#rows.columns + 1] = 'why' end
  return report(rows)
end

local function sizes_of(x)
  if type(x) == 'userdata' then return {x:size()} end
  if type(x) == 'table' and math.type(x[1]) == 'integer' then return x end
  error('estimate: wanted a tensor, a list of sizes or a model, got ' .. type(x), 3)
end

-- of a number, or of the channels' numbers
local function mean_bits(bits)
  if type(bits) == 'number' then return bits end
  local sum = 0
  for _, b in ipairs(bits) do sum = sum + b end
  return sum / #bits
end

-- The weights of all layers of a model that can be quantized: bytes, their number, and signal to noise.
local function model_of(m, spec)
  local module, s = internal.import 'module', quant.spec(spec)
  local bytes, count, signal, noise = 0, 0, 0, 0
  local guard <close> = internal.nograd()
  module.walk(m, function(name, inner)
    for _, field in ipairs(module.weights(inner) or {}) do
      local w = inner[field]:detach()
      if w:quantized() then error(('estimate: wanted a float model, got one in which %s is quantized'):format(name), 3) end
      if s.block and w:dim() > 2 then w = w:view(w:size(1), w:nelem() // w:size(1)) end
      local q = w:quantize(spec)
      local off = w - q:dequantize()
      bytes, count = bytes + q:nbytes(), count + w:nelem()
      signal, noise = signal + (w * w):sum():item(), noise + (off * off):sum():item()
    end
  end)
  if count == 0 then error('estimate: wanted a model with layers that have weights, got none', 3) end
  return bytes, count, 10 * math.log(signal / noise, 10)
end

doc {name = 'quant.estimate', usage = "quant.estimate(x, spec)  quant.estimate({1000, 1000}, spec)  quant.estimate(m, spec)",
  text = [[What quantizing would save, as a report of one row: bytes, ideal (1 - bits/32, of bits in a list
their mean), saving (with scales and zero points)
and, when a tensor is given, its sqnr. Of a model: of the weights of all its layers that can be quantized. Nothing is changed or kept.]],
  example = "print(quant.estimate({1000, 1000}, 'int8').ideal)  --> 0.75"}

function quant.estimate(x, spec)
  local s, bytes, sqnr = quant.spec(spec), nil, nil
  local of_model = internal.import('module').is_module(x)
  local n = 1
  for _, d in ipairs(of_model and {} or sizes_of(x)) do n = n * d end
  if of_model then
    bytes, n, sqnr = model_of(x, spec)
  elseif type(x) == 'userdata' then
    local q = x:quantize(spec)
    bytes, sqnr = q:nbytes(), x:metrics(q).sqnr
  else
    bytes = quant.bytes(x, spec)
  end
  return report{columns = {'spec', 'bytes', 'ideal', 'saving', 'sqnr'},
    {spec = tostring(s), bytes = bytes, ideal = 1 - mean_bits(s.bits) / 32, saving = n > 0 and 1 - bytes / (4 * n) or 0,
     sqnr = sqnr}}
end
