-- SPDX-License-Identifier: MIT
-- What g:export{onnx=} writes, read back.
--   out.graph(f, x, o)     the graph of a function of (self, x); o.parts: tensors of self
--   out.back(f, x, o)      exports it (or a graph), loads the file, and compares what both give within o.tolerance of the largest value (default
--                          1e-6; codes and integers are equal); o.export: options of the export. Gives the ops of the file as a text.
--   out.model(g, o)        the model of the file as tables (nn/onnx/schema.c)
--   out.bytes(g, o)        the file as a text
local exported = dofile 'tests/tools/exported.lua'
local internal = debug.getregistry()['quoll.internal']
local out = {}

function out.graph(f, x, o) return type(f) == 'function' and exported.of(f, x, o and o.parts) or f end

function out.file(g, o)
	local path, given = os.tmpname(), {}
	for key, value in next, o or {} do given[key] = value end
	given.onnx = path
	return path, g:export(given)
end

local function ops_of(r)
	local list = {}
	for i, row in ipairs(r) do list[i] = row.domain == '' and row.op or row.domain .. '.' .. row.op end
	return table.concat(list, ' ')
end

-- The ops of a file that is not kept.
function out.ops(f, x, o)
	local path, r = out.file(out.graph(f, x, o), o and o.export)
	os.remove(path)
	return ops_of(r)
end

local function numbers(y)
	y = y:quantized() and y:codes() or y
	return y:to 'float64'
end

local function compare(want, got, tolerance, what)
	assert(want:dim() == got:dim(), what .. ': axes')
	for i = 1, want:dim() do assert(want:size(i) == got:size(i), what .. ': sizes') end
	assert(want:dtype() == got:dtype() or want:quantized(), ('%s: %s for %s'):format(what, got:dtype(), want:dtype()))
	if want:nelem() == 0 then return end
	local a, b = numbers(want), numbers(got)
	assert(a:isnan():eq(b:isnan()):all():item(), what .. ': nan')
	a, b = tensor.where(a:isnan(), 0, a), tensor.where(b:isnan(), 0, b)
	local largest = tensor.where(a:isfinite(), a, 0):abs():max():item()
	local off = tensor.where(a:eq(b), 0, (a - b):abs()):max():item()
	local most = quant.dtype(want:dtype()).float and tolerance * math.max(largest, 1e-30) or 0
	assert(off <= most, ('%s: off %g, wanted at most %g'):format(what, off, most))
end

function out.back(f, x, o)
	o = o or {}
	local g = out.graph(f, x, o)
	local path, r = out.file(g, o.export)
	local good, loaded = pcall(graph.load, path)
	os.remove(path)
	os.remove(path .. '.data')
	assert(good, loaded)
	local want, got = {g:run(x)}, {loaded:run(x)}
	assert(#want == #got)
	for i = 1, #want do compare(want[i], got[i], o.tolerance or 1e-6, ops_of(r)) end
	return ops_of(r)
end

function out.model(g, o)
	local path = out.file(g, o)
	local model = assert(internal.onnx_model(assert(internal.onnx_open(path))))
	os.remove(path)
	return model
end

function out.bytes(g, o)
	local path = out.file(g, o)
	local text = exported.text_of(path)
	os.remove(path)
	return text
end

-- The error of an export.
function out.refused(text, f, x, o)
	exported.refused(text, out.file, out.graph(f, x), o)
end

return out
