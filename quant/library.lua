-- SPDX-License-Identifier: MIT
-- quant: formats measurements as reports. The measurements are made in C.

local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc = base.doc
internal.import 'quant/ranges/observer_methods'
internal.import 'quant/estimate'
local methods = debug.getmetatable(tensor.zeros(1)).methods

doc {name = 'x:error', usage = 'x:error(y)',
  text = [[The error of y with respect to x, as a report of one row whose columns are read by name: mse, rmse, max (largest absolute
error), mean (signed error), sqnr (10·log10 of the power of x over that of the error, in dB; each bit is worth about 6), cosine
(similarity), clipped (percent of the elements with the lowest or highest code of y). Either tensor may be quantized.]],
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

doc {name = 'x:ratio', usage = 'q:ratio()', text = [[Compression ratio: bytes in float32 divided by the bytes of q, including scales.]],
  example = "print(tensor.zeros(1000):quantize('int4'):ratio() > 7.9)  --> true"}

function methods.ratio(q)
  check_self(q, 'ratio')
  local bytes = q:nbytes()
  return bytes == 0 and 1.0 or 4 * q:nelem() / bytes
end

doc {name = 'x:layout', usage = 'q:layout()',
  text = [[The memory layout of the codes, as a report of one row: dtype, bits, packed (elements per smallest group of whole bytes), alignment in bytes,
contiguous, bytes, scales (number).]],
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
  text = [[Describes how this value was computed: op, operands, path, kernel, device and, if the op fell back to float32, the reason. See
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
  text = [[The ops that have run, as a report: op, operands (a q after the dtype: quantized), path, kernel, count and, for fallbacks,
the reason. 'reset' clears the counts afterwards. See ledger.]],
  example = "quant.log 'reset'\nx = tensor{1}:quantize 'int8'\nprint(quant.log().op, quant.log().count)  --> quantize 1"}

function quant.log(reset)
  if reset and reset ~= true and reset ~= 'reset' then base.fail("log: wanted 'reset' or nothing, got %s", base.describe(reset)) end
  local rows = quant.ledger(reset and true or false)
  rows.columns = {'op', 'operands', 'path', 'kernel', 'count', 'reason'}
  return report(rows)
end

-- Dtypes of codes.
local function code_dtypes()
  local list = {}
  for _, name in ipairs(quant.dtype()) do
    local d = quant.dtype(name)
    if d.bits <= 16 and not d.float and d.kind ~= 'bool' then list[#list + 1] = name end
  end
  return list
end

doc {name = 'quant.ops', usage = 'quant.ops()',
  text = [[How each op handles quantized operands of each dtype, as a report: the name of its integer path, view, native (uses codes
directly) or fallback. Unsigned dtypes, which are handled like signed ones, have no columns but are fields of the rows.]],
  example = "print(quant.ops():where{op='relu'}.int8)  --> integer"}

function quant.ops()
  local by, text = {}, {}
  for _, p in ipairs(quant.paths()) do
    by[p.op], text[p.op] = by[p.op] or {}, p.text
    for dtype, path in next, p.dtypes do by[p.op][dtype] = path end
  end
  local rows, dtypes = {columns = {'op'}}, code_dtypes()
  for _, dtype in ipairs(dtypes) do
    if quant.dtype(dtype).kind ~= 'uint' then rows.columns[#rows.columns + 1] = dtype end
  end
  rows.columns[#rows.columns + 1] = 'when'
  for _, op in ipairs(tensor.ops()) do
    local any = op.table and not by[op.name]
    local found = by[any and '*' or op.name]
    local row = {op = op.name, when = text[any and '*' or op.name]}
    for _, dtype in ipairs(dtypes) do
      row[dtype] = found and found[dtype] or (op.view and 'view') or (op.native and 'native') or 'fallback'
    end
    if op.arity_max > 0 then rows[#rows + 1] = row end
  end
  return report(rows)
end

doc {name = 'quant.formats', usage = "quant.formats()  quant.formats 'nf4'",
  text = [[The named formats that may replace the dtype in a spec, including those of quant.scheme, as a report: name, kind (of the codes:
integers, indices of a table, or functions), bits per weight (including scales, for blocks that divide the rows), storage (dtype of the
codes), scale (dtype or format of the scales; for formats that accept name:block also float16; integers have a float16 scale), block
(elements per scale; 0: one scale per tensor) and a description. With a name only its row, whose columns are read by name. See formats.]],
  example = "print(quant.formats('nf4').bits, quant.formats('mxfp4').scale)  --> 4.5 float8_e8m0"}

-- Bits per weight of a matrix so large that what there is once per tensor does not count.
local function bits_per_weight(name) return math.floor(8 * quant.bytes({4096, 4096}, name) / 2 ^ 24 * 1e4 + 0.5) / 1e4 end

function quant.formats(name)
  if name ~= nil and type(name) ~= 'string' then base.fail('formats: wanted the name of a format or nothing, got %s', base.describe(name)) end
  local rows, names = {columns = {'name', 'kind', 'bits', 'storage', 'scale', 'block', 'what'}}, {}
  for i, f in ipairs(internal.formats()) do
    names[i] = f.name
    if not name or name == f.name then
      local spec = quant.spec(f.name)
      local kind = spec.functions and 'functions' or spec.affine and 'integers' or spec.shift and 'integers' or 'table'
      rows[#rows + 1] = {name = f.name, kind = kind, bits = bits_per_weight(f.name), storage = f.storage, scale = f.scale, block = f.block or 0, what = f.what}
    end
  end
  if name and #rows == 0 then
    base.fail("formats: wanted one of %s, got '%.40s'%s", table.concat(names, ' '), name, base.near(name, names))
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
  text = [[Quantizes x by each spec: a report with spec (as text), sqnr (dB), max (largest error), cosine, bytes, ratio to float32, ms (median
of 5 runs, or of fewer if these take more than half a second) and runs. An invalid spec, or one that does not apply to x, has a row
with the reason. bench.compare measures times more precisely.]],
  example = "r = quant.compare(tensor{1,-0.5,0.3}, {'int8','int4'})\nprint(r:best('sqnr').spec)  --> int8"}

function quant.compare(x, specs)
  if not base.is_tensor(x) then base.fail('compare: wanted a tensor, got %s', base.describe(x)) end
  if type(specs) == 'string' then specs = {specs} end
  if type(specs) == 'table' then base.list('compare: specs', specs) end
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

