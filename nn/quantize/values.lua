-- SPDX-License-Identifier: MIT
-- The values between two blocks of a model that is being quantized (nn/quantize/learn.lua), for all batches: in memory as far as memory=
-- allows, the others in files that are mapped, whose pages the system reads and drops. Such a file has no name any more when it is used:
-- it is gone with its tensor, whatever ends the program.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, is_tensor = base.fail, base.is_tensor
local values = {}

local SMALL = 4096 -- bytes; smaller tensors are never mapped (tensor/io/elements.c)

-- limit: bytes; nil: all in memory. used, held: bytes in memory, of all lists and of each item of a list; spilled: bytes that went to files.
function values.pool(limit) return {limit = limit, used = 0, spilled = 0, held = setmetatable({}, {__mode = 'k'})} end

-- The tensor as a mapped file without a name.
local function spill(x)
	local name = os.tmpname()
	local path = name .. '.safetensors'
	local good, found = pcall(function()
		tensor.save(path, {x = x:detach()})
		return tensor.load(path, {map = true}).x
	end)
	os.remove(path)
	os.remove(name)
	if not good then fail('quantize: memory: %s', (tostring(found):gsub('^[^:]*:%d+: ', ''))) end
	return found
end

-- count(bytes): of what stays in memory.
local function kept(pool, x, count)
	if not is_tensor(x) then
		local copy = x
		if type(x) == 'table' then
			copy = {}
			for key, inner in next, x do copy[key] = kept(pool, inner, count) end
		end
		return copy
	end
	local bytes = x:nbytes()
	if not pool.limit or bytes < SMALL or pool.used + bytes <= pool.limit then
		count(bytes)
		return x
	end
	pool.spilled = pool.spilled + bytes
	return spill(x)
end

-- Puts what a block gives for batch i into a list: tensors of memory, or mapped ones.
function values.put(pool, list, i, x)
	local held = pool.held[list] or {}
	pool.held[list] = held
	list[i] = kept(pool, x, function(bytes) pool.used, held[i] = pool.used + bytes, (held[i] or 0) + bytes end)
end

-- Takes item i out of a list.
function values.drop(pool, list, i)
	local held = pool.held[list]
	if not held then return end -- the inputs, or those of a file
	pool.used, held[i], list[i] = pool.used - (held[i] or 0), nil, false
end

-- A list is used no more.
function values.release(pool, list)
	for _, bytes in next, pool.held[list] or {} do pool.used = pool.used - bytes end
	pool.held[list] = nil
end

-- Bytes that this machine can still give; nil: unknown.
function values.available()
	local file = io.open('/proc/meminfo', 'r')
	local text = file and file:read 'a' or ''
	if file then file:close() end
	local free = text:match 'MemAvailable:%s*(%d+) kB'
	return free and 1024 * math.tointeger(free) or nil
end

return values
