-- SPDX-License-Identifier: MIT
-- hw.recommend and hw.hints: answers from measurements of this machine (interp/bench/hw_measured.lua), with the reason in words.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc = base.doc

local NEAR = 1.03 -- times that differ less are the same; then the smaller error wins

---------------------------------------------------------------- recommend

local WORKLOAD = {{'op', 'text', "'matmul' (x (m, k) by a weight (n, k)) or 'conv2d'"}, {'m', 'integer', 'rows'}, {'n', 'integer', 'outputs'},
	{'k', 'integer', 'inputs'}, {'batch', 'integer', 'images'}, {'channels', 'integer', 'of an image'}, {'height', 'integer', 'of an image'},
	{'width', 'integer', 'of an image'}, {'outputs', 'integer', 'channels of the result'}, {'kernel', 'integer', 'size of the window'},
	{'stride', 'integer', 'default 1'}, {'groups', 'integer', 'default 1'}, {'maxms', 'number', 'no slower than this'},
	{'minrate', 'number', 'calls in a second, at least'}, {'bytes', 'number', 'of the weights, at most'},
	{'minsqnr', 'number', 'of the output in dB, at least (default 20)'},
	{'device', 'text', "where, 'cuda' for instance (default: where new tensors are)"}}

local recommend = doc {name = 'hw.recommend', usage = "hw.recommend{op='matmul', m=1, n=1024, k=1024}",
	text = [[The fastest way to run a layer of this shape on this machine that keeps what is asked for, as a report of one row:
spec and mode for m:quantize, kernel, ms, speedup over float32, saving (share of the bytes of the weights), sqnr of the output for
normal random data, and why, in words. All ways are measured once (again if times scattered or the machine was busy) and kept in the user's cache
(XDG_CACHE_HOME or ~/.cache, quoll/measured.tsv); a second result is a report of them. When none keeps what was asked for: nil, and the reason.
In mode static the input arrives as codes, as it does after another static layer.]],
	options = WORKLOAD,
	example = [[r = hw.recommend{op='matmul', m=64, n=64, k=64}
print(r.spec ~= nil, r.ms > 0, #r.why > 0)  --> true true true]]}

local function refusal(e, o)
	if e.kernel:find '^host ' then return 'the device has no kernel of it' end
	if o.maxms and e.ms > o.maxms then return ('%.3g ms are more than %.3g'):format(e.ms, o.maxms) end
	if o.minrate and 1e3 / e.ms < o.minrate then return ('%.3g calls in a second are less than %.3g'):format(1e3 / e.ms, o.minrate) end
	if o.bytes and e.bytes > o.bytes then return ('%d bytes are more than %d'):format(e.bytes, o.bytes) end
	if e.sqnr < (o.minsqnr or 20) then return ('%.1f dB are less than %.1f'):format(e.sqnr, o.minsqnr or 20) end
end

local function better(a, b)
	if not b or a.ms * NEAR < b.ms then return true end
	return a.ms <= b.ms * NEAR and a.sqnr > b.sqnr
end

local function measure_all(measured, o)
	local rows = {}
	for _, v in ipairs(measured.variants) do
		local e = measured.get('recommend', o, v)
		if e then
			rows[#rows + 1] = {spec = v.spec, mode = v.mode, text = v.text, kernel = e.kernel, ms = e.ms, sqnr = e.sqnr, bytes = e.bytes,
				refused = refusal(e, o) or ''}
		end
	end
	return rows
end

local function reason(best, float, rows)
	local fastest = float
	for _, row in ipairs(rows) do
		if row.ms < fastest.ms then fastest = row end
	end
	local text = best == float and ('float32 takes %.3g ms on %s; no other way that keeps what was asked for is faster'):format(
		float.ms, float.kernel) or ('%s takes %.3g ms on %s, %.2f times as fast as float32 (%.3g ms, %s), at %s'):format(best.text, best.ms, best.kernel,
		float.ms / best.ms, float.ms, float.kernel, best.sqnr == math.huge and 'no error' or ('%.1f dB'):format(best.sqnr))
	if fastest ~= best and fastest.refused ~= '' then
		text = text .. ('; %s would be faster, but %s'):format(fastest.text, fastest.refused)
	end
	return text
end

function hw.recommend(options)
	local report, measured = internal.import 'interp/prelude/report', internal.import 'interp/bench/hw_measured'
	local o = base.options(recommend, options)
	measured.workload('recommend', o)
	local rows, best = measure_all(measured, o), nil
	local float = rows[1]
	for _, row in ipairs(rows) do
		if row.refused == '' and better(row, best) then best = row end
	end
	if not best then
		local parts = {}
		for i, row in ipairs(rows) do parts[i] = ('%s (%s): %s'):format(row.spec, row.mode, row.refused) end
		return nil, 'no way keeps what was asked for: ' .. table.concat(parts, '; ')
	end
	for _, row in ipairs(rows) do row.speedup, row.saving = float.ms / row.ms, 1 - row.bytes / float.bytes end
	rows.columns = {'spec', 'mode', 'kernel', 'ms', 'speedup', 'saving', 'sqnr', 'refused'}
	rows.note = measured.workload('recommend', o)
	local one = {spec = best.spec, mode = best.mode, kernel = best.kernel, ms = best.ms, speedup = best.speedup, saving = best.saving,
		sqnr = best.sqnr, why = reason(best, float, rows)}
	return report {one, columns = {'spec', 'mode', 'kernel', 'ms', 'speedup', 'saving', 'sqnr', 'why'}}, report(rows)
end

---------------------------------------------------------------- hints

doc {name = 'hw.hints', usage = 'hw.hints()',
	text = [[What is best on this machine in general, each with the measurement that says so, as a report: hint, value, why. Hints: dtypes (weights
of a Linear of 512 x 512 for 64 rows, fastest first), accuracy (the quantized ones of them, least error first), schemes (of quantizing a tensor
to 8 bits, fastest first), batch (rows from which a Linear reaches nine tenths of its best rate), inplace (whether x:add_(y) beats x + y), block (of
int4 weights with the least error among those that are not slower than a tenth), tile (rows x columns of the integer kernel in force). The report
has the values as fields, too: h.dtypes, h.accuracy and h.schemes are lists, h.batch and h.block integers, h.inplace is true or false. Measurements
are kept; see hw.recommend.]],
	example = [[h = hw.hints()
print(#h.schemes, h.batch > 0, h:where{hint='batch'}.value == tostring(h.batch))  --> 3 true true]]}

-- Names in the order of a measure, and a text with all measures.
local function ordered(list, before, format)
	table.sort(list, before)
	local names, why = {}, {}
	for i, item in ipairs(list) do names[i], why[i] = item.name, ('%s ' .. format):format(item.name, item.measure) end
	return names, table.concat(why, ', ')
end

local function fastest(list) return ordered(list, function(a, b) return a.measure < b.measure end, '%.3g ms') end

-- The measure `field` of a Linear in all variants; those of floats only where they are wanted.
local function linears(measured, field, floats)
	local list = {}
	for _, v in ipairs(measured.variants) do
		local e = (floats or v.mode ~= 'float') and measured.get('hints', {op = 'matmul', m = 64, n = 512, k = 512}, v)
		if e then list[#list + 1] = {name = v.mode == 'float' and v.spec or v.spec .. '(' .. v.mode .. ')', measure = e[field]} end
	end
	return list
end

local function dtypes(measured) return fastest(linears(measured, 'ms', true)) end

local function accuracy(measured)
	return ordered(linears(measured, 'sqnr'), function(a, b) return a.measure > b.measure end, '%.1f dB')
end

local function schemes(measured)
	local x, list = tensor.randn(1024, 1024), {}
	for _, scheme in ipairs {'symmetric', 'asymmetric', 'log'} do
		local spec = {dtype = scheme == 'asymmetric' and 'uint8' or 'int8', scheme = scheme}
		list[#list + 1] = {name = scheme, measure = measured.time('quantize 1048576 ' .. scheme, function() return x:quantize(spec) end)}
	end
	return fastest(list)
end

local function batch(measured)
	local v, rates, best = measured.variants[3], {}, 0
	for _, m in ipairs {1, 2, 4, 8, 16, 32, 64, 128, 256} do
		local e = measured.get('hints', {op = 'matmul', m = m, n = 512, k = 512}, v)
		rates[#rates + 1] = {m = m, rate = m / e.ms}
		best = math.max(best, m / e.ms)
	end
	for _, r in ipairs(rates) do
		if r.rate >= 0.9 * best then
			return r.m, ('%.0f rows in a ms, of at most %.0f, by a Linear of 512 x 512 in int8'):format(r.rate, best)
		end
	end
end

local function inplace(measured)
	local x, y = tensor.zeros(1 << 20), tensor.ones(1 << 20)
	local new = measured.time('add 1048576', function() return x + y end)
	local same = measured.time('add_ 1048576', function() return x:add_(y) end)
	return same < new, ('x:add_(y) %.3g ms, x + y %.3g ms for 1048576 elements'):format(same, new)
end

local function block(measured)
	local list, least = {}, math.huge
	for _, size in ipairs {16, 32, 64, 128} do
		local v = {spec = 'int4:' .. size, mode = 'weight_only'}
		local e = measured.get('hints', {op = 'matmul', m = 1, n = 512, k = 512}, v)
		list[#list + 1] = {size = size, ms = e.ms, sqnr = e.sqnr}
		least = math.min(least, e.ms)
	end
	local best
	for _, e in ipairs(list) do
		if e.ms <= 1.1 * least and (not best or e.sqnr > best.sqnr) then best = e end
	end
	return best.size, ('%.1f dB at %.3g ms for one row; the fastest takes %.3g ms'):format(best.sqnr, best.ms, least)
end

local function tile()
	for _, k in ipairs(internal.kernels()) do
		if k.used and k.family == 'gemm_i8' then return k.tile or 'none', 'of the kernel gemm_i8_' .. k.kernel end
	end
end

function hw.hints()
	local measured = internal.import 'interp/bench/hw_measured'
	local _ <close> = measured.own_random()
	local rows = {columns = {'hint', 'value', 'why'}, facts = {}}
	for _, hint in ipairs {{'dtypes', dtypes}, {'accuracy', accuracy}, {'schemes', schemes}, {'batch', batch}, {'inplace', inplace},
		{'block', block}, {'tile', tile}} do
		local value, why = hint[2](measured)
		rows.facts[hint[1]] = value
		rows[#rows + 1] = {hint[1], type(value) == 'table' and table.concat(value, ' ') or tostring(value), why}
	end
	return internal.import 'interp/prelude/report'(rows)
end

return {WORKLOAD = WORKLOAD, refusal = refusal}
