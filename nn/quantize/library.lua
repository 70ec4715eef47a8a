-- SPDX-License-Identifier: MIT
-- Functions of `quant` for models: quant.sensitivity, quant.search, quant.methods, quant.gguf, and quant.estimate of a model.
local _, internal = ...
local estimate = internal.import 'quant/estimate'
local module = internal.import 'nn/base/module'
internal.import 'nn/quantize/sensitivity'
internal.import 'nn/quantize/search'
internal.import 'nn/quantize/compare'
internal.import 'nn/quantize/gguf'

-- The weights of all quantizable layers of a model: bytes, number of weights, and signal-to-noise ratio.
function estimate.of_model(m, spec)
  if not module.is_module(m) then return nil end
  local s = quant.spec(spec)
  local bytes, count, signal, noise = 0, 0, 0, 0
  local _ <close> = internal.nograd()
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
