-- SPDX-License-Identifier: MIT
-- quant.estimate: the memory that quantizing would save. For models nn sets of_model.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc = base.doc
-- of_model(x, spec) -> bytes, number of weights, sqnr; nil: x is no model
local estimate = {of_model = nil}

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

doc {name = 'quant.estimate', usage = "quant.estimate(x, spec)  quant.estimate({1000, 1000}, spec)  quant.estimate(m, spec)",
  text = [[What quantizing would save, as a report of one row: bytes, ideal (1 - bits/32, of bits in a list
their mean), saving (with scales and zero points)
and, when a tensor is given, its sqnr. Of a model: of the weights of all its layers that can be quantized. Nothing is changed or kept.]],
  example = "print(quant.estimate({1000, 1000}, 'int8').ideal)  --> 0.75"}

function quant.estimate(x, spec)
  local s = quant.spec(spec)
  local bytes, n, sqnr
  if estimate.of_model then bytes, n, sqnr = estimate.of_model(x, spec) end
  if not n then
    n = 1
    for _, d in ipairs(sizes_of(x)) do n = n * d end
    if type(x) == 'userdata' then
      local q = x:quantize(spec)
      bytes, sqnr = q:nbytes(), x:metrics(q).sqnr
    else
      bytes = quant.bytes(x, spec)
    end
  end
  return report{columns = {'spec', 'bytes', 'ideal', 'saving', 'sqnr'},
    {spec = tostring(s), bytes = bytes, ideal = 1 - mean_bits(s.bits) / 32, saving = n > 0 and 1 - bytes / (4 * n) or 0,
     sqnr = sqnr}}
end

return estimate
