-- SPDX-License-Identifier: MIT
-- quant: what arranges measurements into reports. The measuring itself is C.

local methods = debug.getmetatable(tensor.zeros(1)).methods

--- x:error(y): one-row report of how far y is from x.
function methods.error(x, y)
  local m = x:metrics(y)
  m.clipped = 100 * m.clipped
  return report{columns = {'mse', 'rmse', 'max', 'mean', 'sqnr', 'cosine', 'clipped'}, m}
end

--- q:ratio(): bytes as float32 over bytes now.
function methods.ratio(q)
  local bytes = q:nbytes()
  return bytes == 0 and 1.0 or 4 * q:nelem() / bytes
end

--- q:layout(): how the codes lie in memory.
function methods.layout(q)
  local d = quant.dtype(q:dtype())
  local p = q:qparams()
  return report{columns = {'dtype', 'bits', 'packed', 'alignment', 'contiguous', 'bytes', 'scales'},
    {dtype = d.name, bits = d.bits, packed = d.packed, alignment = 64, contiguous = q:iscontiguous(),
     bytes = q:nbytes(), scales = p and p.scale:nelem() or 0}}
end

--- x:explain(): how this value was made.
function methods.explain(x)
  local o = x:origin()
  if not o then return 'given: no op made this value' end
  local text = ('%s of %s: path %s, kernel %s, device %s'):format(o.op, o.operands ~= '' and o.operands or 'nothing',
    o.path, o.kernel, x:device())
  if o.path == 'fallback' then text = text .. ', because ' .. o.reason end
  return text
end

--- quant.log([reset]): the ledger as a report.
function quant.log(reset)
  local rows = quant.ledger(reset and true or false)
  rows.columns = {'op', 'operands', 'path', 'kernel', 'count', 'reason'}
  return report(rows)
end

--- quant.ops(): op x dtype x path.
function quant.ops()
  local by, text = {}, {}
  for _, p in ipairs(quant.paths()) do
    by[p.op], text[p.op] = by[p.op] or {}, p.text
    for dtype, path in p.dtypes:gmatch '(%w+)=?(%w*)' do by[p.op][dtype] = path ~= '' and path or p.path end
  end
  local rows = {columns = {'op', 'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16', 'binary', 'when'}}
  for _, op in ipairs(tensor.ops()) do
    local row = {op = op.name, when = text[op.name]}
    for i = 2, #rows.columns - 1 do
      local dtype = rows.columns[i]
      row[dtype] = by[op.name] and by[op.name][dtype] or (op.view and 'view') or (op.native and 'native') or 'fallback'
    end
    if op.arity_max > 0 then rows[#rows + 1] = row end
  end
  return report(rows)
end

local function median_ms(fn)
  local t = {}
  for i = 1, 5 do
    local t0 = hw.clock()
    fn()
    t[i] = (hw.clock() - t0) * 1e3
  end
  table.sort(t)
  return t[3]
end

--- quant.compare(x, {specs}): one row per spec.
function quant.compare(x, specs)
  if type(specs) == 'string' then specs = {specs} end
  if type(specs) ~= 'table' or #specs == 0 then
    error('compare: wanted a list of specs, got ' .. (type(specs) == 'table' and 'an empty one' or type(specs)), 2)
  end
  local rows = {columns = {'spec', 'sqnr', 'max', 'cosine', 'bytes', 'ratio', 'ms'}}
  for _, s in ipairs(specs) do
    local q
    local ms = median_ms(function() q = x:quantize(s) end)
    local e = x:metrics(q)
    rows[#rows + 1] = {spec = tostring(quant.spec(s)), sqnr = e.sqnr, max = e.max, cosine = e.cosine,
      bytes = q:nbytes(), ratio = methods.ratio(q), ms = ms}
  end
  return report(rows)
end

local function sizes_of(x)
  if type(x) == 'userdata' then return {x:size()} end
  if type(x) == 'table' and math.type(x[1]) == 'integer' then return x end
  error('estimate: wanted a tensor or a list of sizes, got ' .. type(x), 3)
end

--- quant.estimate(x or sizes, spec): bytes and savings without keeping anything; sqnr when x is a tensor.
function quant.estimate(x, spec)
  local s, shape = quant.spec(spec), sizes_of(x)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  local bytes, sqnr
  if type(x) == 'userdata' then
    local q = x:quantize(spec)
    bytes, sqnr = q:nbytes(), x:metrics(q).sqnr
  else
    bytes = quant.bytes(shape, spec)
  end
  return report{columns = {'spec', 'bytes', 'ideal', 'saving', 'sqnr'},
    {spec = tostring(s), bytes = bytes, ideal = 1 - s.bits / 32, saving = n > 0 and 1 - bytes / (4 * n) or 0,
     sqnr = sqnr}}
end
