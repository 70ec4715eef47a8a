-- SPDX-License-Identifier: MIT
-- who(): the user's variables with dtype, shape, scheme and bytes. A model's bytes are those of its tensors.

local _, internal = ...

local base = internal.import 'interp/prelude/base'

base.doc {name = 'who', usage = 'who()',
	text = [[Lists the variables that you made, with kind or dtype, shape, scheme and bytes, and the bytes of all tensors.]],
	example = 'answer = 42\nwho()'}

local function bytes_text(n)
	if n < 1024 then
		return n .. ' B'
	elseif n < 1 << 20 then
		return ('%.1f KiB'):format(n / 1024)
	end
	return ('%.1f MiB'):format(n / (1 << 20))
end

local function scheme_of(t)
	local q = t:qparams()

	if not q then
		return ''
	end
	if q.format then return tostring(t:spec()) end
	return q.scheme .. (q.axis and '/' .. q.axis or '') .. (q.block and ':' .. q.block or '')
end

-- name, kind, shape, scheme, bytes; a field that does not apply is ''
local function row(name, v)
	local kind = type(v)

	if internal.is_tensor(v) then
		local ok, scheme = pcall(scheme_of, v)

		return { name, v:dtype(), table.concat({ v:size() }, 'x'), ok and scheme or '?', bytes_text(v:nbytes()) },
			v:nbytes()
	elseif kind == 'table' and internal.import 'nn/base/module'.is_module(v) then
		return { name, internal.describe(v), '', '', bytes_text(v:nbytes()) }, v:nbytes()
	elseif kind == 'table' then
		local n, line = 0, internal.describe(v)

		for _ in next, v do
			n = n + 1
		end
		return { name, line or kind, line and '' or n .. (n == 1 and ' item' or ' items'), '', '' }, 0
	elseif kind == 'string' then
		return { name, kind, '', '', bytes_text(#v) }, 0
	elseif kind == 'number' or kind == 'boolean' then
		return { name, math.type(v) or kind, '= ' .. tostring(v), '', '' }, 0
	end
	return { name, internal.describe(v) or kind, '', '', '' }, 0
end

local function variables()
	local list = {}

	for name, v in next, _G do
		if type(name) == 'string' and not base.is_given(name) then
			list[#list + 1] = { name, v }
		end
	end
	for name, v in pairs(internal.locals and internal.locals() or {}) do
		list[#list + 1] = { name .. ' (local)', v }
	end
	table.sort(list, function(a, b) return a[1] < b[1] end)
	return list
end

local function width_of(text)
	return utf8.len(text) or #text
end

local function print_aligned(rows)
	local widths = {}

	for _, r in ipairs(rows) do
		for i, text in ipairs(r) do
			widths[i] = math.max(widths[i] or 0, width_of(text))
		end
	end
	for _, r in ipairs(rows) do
		local line = ''

		for i, text in ipairs(r) do
			local pad = (' '):rep(widths[i] - width_of(text))

			line = line .. (i == #r and pad .. text or text .. pad .. '  ')
		end
		print((line:gsub('%s+$', '')))
	end
end

return function()
	local rows, total = { { 'name', 'kind', 'shape', 'scheme', 'bytes' } }, 0

	for _, v in ipairs(variables()) do
		local bytes

		rows[#rows + 1], bytes = row(v[1], v[2])
		total = total + bytes
	end
	if #rows == 1 then
		print 'no variables yet'
		return
	end
	print_aligned(rows)
	print(('tensors: %s here, %s in use in all'):format(bytes_text(total), bytes_text(tensor.memory().now)))
end
