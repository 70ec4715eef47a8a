-- SPDX-License-Identifier: MIT
-- m:summary, m:source, m:dequantize: the structure of a model, its source, and its conversion back to floats.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local report = internal.import 'interp/prelude/report'
local fail, is_tensor = base.fail, base.is_tensor
local methods, method = module.methods, module.method

-- Text of the output of every module for the input x, by module.
local function outputs(m, x, ...)
	local seen = {}
	local function hook(self, ...)
		local results = table.pack(module.run(self, ...))
		seen[self] = is_tensor(results[1]) and internal.describe(results[1]):match '^[^)]*%)' or '-'
		return table.unpack(results, 1, results.n)
	end
	local _ <close> = module.hooks(m, function() return hook end)
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	m(x, ...)
	return seen
end

local function bytes_of(m)
	local bytes = 0
	for _, field in ipairs(module.tensors(m)) do
		local tensor = rawget(m, field)
		bytes = bytes + (tensor and tensor:nbytes() or 0)
	end
	return bytes
end

method('summary', 'm:summary()  m:summary(x)', [[A report with a row for each module inside: name, kind, number of trained parameters, bytes of its tensors
and, with an input x, what it gives out.]],
	[[m = nn.Sequential{nn.Linear(3, 4), nn.ReLU()}
r = m:summary(tensor.ones(2, 3))
print(r[1].name, r[1].parameters, r[2].output)  --> linear1 16 float32(2, 4)]])
function methods.summary(m, x, ...)
	module.parts_of(m, 'summary')
	local shapes = x ~= nil and outputs(m, x, ...)
	local rows = {columns = {'name', 'kind', 'output', 'parameters', 'bytes'}}
	if not shapes then table.remove(rows.columns, 3) end
	module.walk(m, function(name, inner)
		if name == '' and #module.children(m) > 0 then return end
		rows[#rows + 1] = {name = name == '' and module.class_of(m).word or name, kind = module.class_of(inner).name,
			parameters = module.parameter_count(inner), bytes = bytes_of(inner), output = shapes and (shapes[inner] or '-') or nil}
	end)
	local count = 0
	for _, parameter in ipairs(m:parameters()) do count = count + parameter:nelem() end
	rows.note = ('%d parameters, %d bytes'):format(count, m:nbytes())
	return report(rows)
end

method('source', 'm:source()', [[Prints the Lua source of the module's forward (of nn.module: of its function), as `source` does.]],
	[[nn.MaxPool2d(2):source()  --> -- quoll/nn/modules/pool...
--> ...forward = function(self, x)...]])
function methods.source(m)
	module.parts_of(m, 'source')
	source(rawget(m, 'run') or module.class_of(m).forward)
end

method('dequantize', 'q:dequantize()', [[A float model with the weights of a quantized one, rounded as they are: not the model that was quantized, whose
weights are gone. It can be trained.]],
	[[m = nn.Sequential{nn.Linear(8, 4)}
q = m:quantize{mode='dynamic', weight='int4/1'}
f = q:dequantize()
print(f.linear1.weight:dtype(), f.linear1.weight:detach():error(q.linear1.weight).max)  --> float32 0.0]])
function methods.dequantize(m)
	module.parts_of(m, 'dequantize')
	local copy, n, made = m:clone(), 0, {}
	module.walk(copy, function(_, inner)
		local q, before = rawget(inner, 'quantized'), n
		for _, field in ipairs(module.weights(inner) or {}) do
			local weight = rawget(inner, field)
			if weight and weight:quantized() then
				local real = made[weight] or weight:dequantize()
				n, made[weight] = n + 1, real
				module.set_tensor(inner, field, q and q.shape and real:view(table.unpack(q.shape)) or real)
			end
		end
		if q then n = before + 1 end
		if n > before and module.class_of(inner).in_order then inner:in_order() end
		if n > before and module.class_of(inner).join then inner:join() end
		rawset(inner, 'quantized', nil)
		rawset(inner, 'frozen', nil)
		rawset(inner, 'said', nil)
	end)
	if n == 0 then fail('dequantize: wanted a quantized model, got a float one') end
	module.mark_codes(copy)
	module.walk(copy, function(_, inner)
		if module.class_of(inner).name == 'Residual' then inner.out = false end
	end)
	return copy
end
