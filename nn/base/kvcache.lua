-- SPDX-License-Identifier: MIT
-- Caches of keys and values: room for n positions of each row of a batch, in floats or codes. `at` says how far the rows are: n, the
-- longest, and starts (int64, one number for each row). The layers of a Transformer share one `at`; `ragged`: rows differ.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local kvcache = {}

-- Whether the text names floats that a cache keeps as they are.
local function is_float(name)
	local good, d = pcall(quant.dtype, name)
	return good and d.float and (d.bits == 16 or d.bits == 32)
end

-- The spec of codes: without a block, a position of a head is one, as other positions must not change its scale.
local function codes_of(what, given, width)
	local good, spec = pcall(quant.spec, given)
	if not good then fail('%s: %s', what, tostring(spec):gsub('^[^:]*:%d+: ', '')) end
	if spec.axis then fail("%s: wanted blocks along a head, as in 'int8:%d', got '%s'", what, width, tostring(spec)) end
	if spec.block then return spec end
	local text = tostring(spec):gsub('^[^@+]*', function(format) return ('%s:%d'):format(format, width) end)
	good, spec = pcall(quant.spec, text)
	if not good then fail('%s: %s', what, tostring(spec):gsub('^[^:]*:%d+: ', '')) end
	return spec
end

local function format_of(what, given, width)
	if given == nil then return {dtype = 'float32'} end
	if type(given) == 'string' and is_float(given) then return {dtype = given} end
	if type(given) ~= 'string' and type(given) ~= 'table' and type(given) ~= 'userdata' then
		fail('%s: wanted float32, float16, bfloat16 or a spec, got %s', what, describe(given))
	end
	return {spec = codes_of(what, given, width)}
end

-- kv: a format or spec for both, or {k=, v=}; width: numbers of a head. Returns the formats of keys and of values.
function kvcache.formats(what, kv, width)
	if type(kv) ~= 'table' or getmetatable(kv) or kv.k == nil and kv.v == nil then
		local format = format_of(what, kv, width)
		return format, format
	end
	for key in next, kv do
		if key ~= 'k' and key ~= 'v' then fail('%s: wanted k= and v=, got %s', what, describe(key)) end
	end
	return format_of(what .. ': k', kv.k, width), format_of(what .. ': v', kv.v, width)
end

local function room(format, b, heads, n, width, device)
	local x = tensor.zeros {b, heads, n, width, dtype = format.dtype, device = device}
	if not format.spec then return x end
	local good, q = pcall(x.quantize, x, format.spec)
	if not good then fail('kv: %s', tostring(q):gsub('^[^:]*:%d+: ', '')) end
	return q
end

-- How far b rows are: nowhere yet.
function kvcache.begin(b, device) return {n = 0, starts = tensor.zeros {b, dtype = 'int64', device = device}, ragged = false} end

-- Codes stay on the CPU, whose op encodes and reads them, also beside a model on a device (away).
function kvcache.new(b, heads, n, width, device, kv, at)
	local k, v = kvcache.formats('kv', kv, width)
	local away = (k.spec or v.spec) and device ~= 'cpu'
	local where = device
	if away then device = 'cpu' end
	return {away = away, k = room(k, b, heads, n, width, device), v = room(v, b, heads, n, width, device), kspec = k.spec, vspec = v.spec, own = not at,
		at = at or kvcache.begin(b, where)}
end

-- t more positions of each row are there.
function kvcache.advance(at, t)
	at.n, at.starts = at.n + t, at.starts + t
end

-- The same cache for rows first .. first + count - 1, which it shares.
function kvcache.rows(cache, first, count, at)
	return {away = cache.away, k = cache.k:narrow(1, first, count), v = cache.v:narrow(1, first, count), kspec = cache.kspec, vspec = cache.vspec, own = false, at = at}
end

-- A copy with room for n positions, of the rows in the list.
function kvcache.copy(cache, rows, n, at)
	local function taken(x, spec)
		local list = {}
		for i, row in ipairs(rows) do list[i] = x:narrow(1, row, 1) end
		local _, heads, have, width = x:size()
		local y = room({dtype = not spec and x:dtype() or nil, spec = spec}, #rows, heads, n, width, x:device())
		for i, part in ipairs(list) do kvcache.put(y:narrow(1, i, 1), part:narrow(3, 1, math.min(n, have))) end
		return y
	end
	return {away = cache.away, k = taken(cache.k, cache.kspec), v = taken(cache.v, cache.vspec), kspec = cache.kspec, vspec = cache.vspec, own = false, at = at}
end

-- Copies positions of one cache, in the same format, to the first ones of another.
function kvcache.put(to, from)
	to = to:narrow(3, 1, from:size(3))
	if not to:quantized() then
		to:copy_(from)
		return
	end
	local into, of = to:qparams(), from:qparams()
	to:codes():copy_(from:codes())
	for _, name in ipairs {'scale', 'zero_point', 'minimum'} do
		if into[name] ~= nil and base.is_tensor(into[name]) then into[name]:copy_(of[name]) end
	end
end

return kvcache
