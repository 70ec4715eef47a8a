-- SPDX-License-Identifier: MIT
-- Observed ranges of inputs, which methods change that move factors between layers.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local method = internal.import 'nn/quantize/method'
local module = internal.import 'nn/base/module'
local ranges = {}

-- The spec by which a layer will round its input; nil: it does not.
function ranges.input_of(layer, wanted)
	if module.class_of(layer).no_input then return end
	local _, o = next(rawget(layer, 'input_observers') or {})
	return wanted.asked or o and o.spec or wanted.input
end

-- Methods that change the whole model change the ranges of static layers, too: without data that is an error.
function ranges.check(plan, names)
	for _, name in ipairs(names) do
		for _, item in ipairs(plan[name] or {}) do
			local link = item.mode == 'static' and method.of_phase(item.chain, 'model')[1]
			if link then base.fail("quantize: method: wanted data= to observe the ranges of inputs again, which '%s' changes, got none", link.name) end
		end
	end
end

-- Observes the inputs again, if they have been observed.
function ranges.observe(m, inputs)
	local spec
	module.walk(m, function(_, layer)
		for _, o in next, rawget(layer, 'input_observers') or {} do spec = spec or o.count > 0 and o.spec end
	end)
	if not spec then return end
	local batches = {}
	for i, x in ipairs(inputs) do batches[i] = {x} end
	m:calibrate(batches, {input = spec, batches = #batches, log = false})
end

return ranges
