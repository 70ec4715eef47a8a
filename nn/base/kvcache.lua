-- SPDX-License-Identifier: MIT
-- Caches of keys and values: room for n positions of each row of a batch, in floats or codes. `at` says how far the rows are: n, the
-- longest, and starts (int64, one number for each row). The layers of a Transformer share one `at`; `ragged`: rows differ.
-- A cache is (row, head, position, number), of nn.cachedattention. With blocks along an axis, or recent positions that stay floats, it is
-- `late`: (row, position, channel of all heads) with rings of floats, of nn.recentattention.
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
	local axis = spec.axis and (spec.axis < 0 and spec.axis + 4 or spec.axis)
	if axis and (axis ~= 2 and axis ~= 3 or not spec.block) then
		fail("%s: wanted blocks along axis 2 (positions) or 3 (channels of all heads), as in 'int8/2:32', or along a head, as in 'int8:%d', got '%s'", what,
			width, tostring(spec))
	end
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

-- kv: a format or spec for both, or {k=, v=, recent=}; width: numbers of a head. Returns the formats of keys and of values, and how many
-- positions stay floats.
function kvcache.formats(what, kv, width)
	if type(kv) ~= 'table' or getmetatable(kv) or kv.k == nil and kv.v == nil then
		local format = format_of(what, kv, width)
		return format, format, 0
	end
	for key in next, kv do
		if key ~= 'k' and key ~= 'v' and key ~= 'recent' then fail('%s: wanted k=, v= and recent=, got %s', what, describe(key)) end
	end
	local k, v, recent = format_of(what .. ': k', kv.k, width), format_of(what .. ': v', kv.v, width), kv.recent or 0
	if math.type(recent) ~= 'integer' or recent < 0 or recent > 1 << 24 then
		fail('%s: recent: wanted a number of positions, 0 or more, got %s', what, describe(kv.recent))
	end
	if recent > 0 and not k.spec and not v.spec then fail('%s: recent: wanted codes in k= or v= with it, got floats', what) end
	return k, v, recent
end

local function room(format, shape, device)
	local x = tensor.zeros {dtype = format.dtype, device = device, table.unpack(shape)}
	if not format.spec then return x end
	local good, q = pcall(x.quantize, x, format.spec)
	if not good then fail('kv: %s', tostring(q):gsub('^[^:]*:%d+: ', '')) end
	return q
end

-- How far b rows are: nowhere yet.
function kvcache.begin(b, device) return {n = 0, starts = tensor.zeros {b, dtype = 'int64', device = device}, ragged = false} end

-- Positions of a block of codes, 1 where a position is coded alone.
local function block_of(spec) return spec and (spec.axis == 2 or spec.axis == -2) and spec.block or 1 end

-- How many of n positions are codes.
local function coded(spec, recent, n)
	if not spec then return n end
	return math.max(0, n - recent) // block_of(spec) * block_of(spec)
end

-- A late cache: what nn.recentattention needs beside the codes.
local function add_rings(cache, b, wide, device)
	for _, name in ipairs {'k', 'v'} do
		local spec = cache[name .. 'spec']
		cache[name .. 'ring'] = tensor.zeros {b, math.max(1, spec and cache.recent + block_of(spec) - 1 or 1), wide, device = device}
	end
end

-- Codes stay on the CPU, whose op encodes and reads them, also beside a model on a device (away).
function kvcache.new(b, heads, n, width, device, kv, at)
	local k, v, recent = kvcache.formats('kv', kv, width)
	local away = (k.spec or v.spec) and device ~= 'cpu'
	local late = recent > 0 or k.spec and k.spec.axis ~= nil or v.spec and v.spec.axis ~= nil
	local shape = late and {b, n, heads * width} or {b, heads, n, width}
	local where = device
	if away then device = 'cpu' end
	local cache = {away = away, late = late or nil, recent = recent, k = room(k, shape, device), v = room(v, shape, device), kspec = k.spec, vspec = v.spec,
		own = not at, at = at or kvcache.begin(b, where)}
	if late then add_rings(cache, b, heads * width, device) end
	return cache
end

-- Positions that fit.
function kvcache.room(cache) return cache.k:size(cache.late and 2 or 3) end

-- Bytes that a position of a row takes, without rings.
function kvcache.bytes(cache)
	local x = kvcache.room(cache) * cache.k:size(1)
	return (cache.k:nbytes() + cache.v:nbytes()) / x
end

-- The names of the tensors.
function kvcache.names(cache) return cache.late and {'k', 'v', 'kring', 'vring'} or {'k', 'v'} end

-- Whether a cache with `have` positions can go on from n of them: the floats behind the codes of n are there.
function kvcache.reaches(cache, have, n)
	if not cache.late or n == have then return true end
	for _, name in ipairs {'k', 'v'} do
		local spec = cache[name .. 'spec']
		if spec and coded(spec, cache.recent, n) < have - cache[name .. 'ring']:size(2) then return false end
	end
	return true
end

-- t more positions of each row are there.
function kvcache.advance(at, t)
	at.n, at.starts = at.n + t, at.starts + t
end

-- The same cache with other tensors: those that f gives for each name.
local function changed(cache, at, f)
	local new = {}
	for key, value in next, cache do new[key] = value end
	for _, name in ipairs(kvcache.names(cache)) do new[name] = f(cache[name], name) end
	new.own, new.at = false, at
	return new
end

-- The same cache beside another `at`.
function kvcache.shared(cache, at)
	return changed(cache, at, function(x) return x end)
end

-- The same cache for rows first .. first + count - 1, which it shares.
function kvcache.rows(cache, first, count, at)
	return changed(cache, at, function(x) return x:narrow(1, first, count) end)
end

-- Copies positions of one cache, in the same format, to the first ones of another; axis: that of the positions.
local function put(to, from, axis)
	to = to:narrow(axis, 1, from:size(axis))
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

-- Copies the first n positions of row `from_row` of a cache to the row of another of the same format.
function kvcache.put(to, row, from, from_row, n)
	for _, name in ipairs(kvcache.names(to)) do
		local ring = name == 'kring' or name == 'vring'
		local axis, most = to.late and 2 or 3, n
		if ring then most = to[name]:size(2) elseif to.late then most = coded(to[name .. 'spec'], to.recent, n) end
		if most > 0 then put(to[name]:narrow(1, row, 1), from[name]:narrow(1, from_row, 1):narrow(axis, 1, most), axis) end
	end
end

-- A copy with room for n positions, of the rows in the list.
function kvcache.copy(cache, rows, n, at)
	local y = changed(cache, at, function(x, name)
		local shape, spec = {x:size()}, cache[name .. 'spec']
		shape[1] = #rows
		if name == 'k' or name == 'v' then shape[cache.late and 2 or 3] = n end
		return room({dtype = not spec and x:dtype() or nil, spec = spec}, shape, x:device())
	end)
	for i, row in ipairs(rows) do kvcache.put(y, i, cache, row, math.min(n, kvcache.room(cache))) end
	return y
end

return kvcache
