-- SPDX-License-Identifier: MIT
-- labels: quick
-- Steps of an LSTM of codes: beside the rules of gemmlowp written here. tests/nn/tflite/ops/recurrent.lua has the codes of LiteRT.
tensor.seed(5)
local function high_half(x, m) return (x * m + (1 << 30)) // (1 << 31) end
local function times(x, m, shift)
	local high = high_half(x * (1 << math.max(shift, 0)), m)
	if shift >= 0 then return high end
	local rest, half = high % (1 << -shift), 1 << -shift - 1
	return high // (1 << -shift) + (rest > half - (high >= 0 and 1 or 0) and 1 or 0)
end
local function divided(x, n) return (x < 0 and -1 or 1) * ((math.abs(x) + (1 << n - 1)) // (1 << n)) end
local function clamp(x, a, b) return math.max(a, math.min(b, x)) end

-- Lists of everything; states h, c (n) of one sequence; the codes of all steps.
local function steps(x, h, c, w, factors, tables, o)
	local n, gates, ys = #h, #x[1] // #h, {}
	local first = gates - 4
	for t, row in ipairs(x) do
		local z = {}
		for g = 1, #row do
			local sum = 0
			for i = 1, n do sum = sum + h[i] * w[g][i] end
			z[g] = clamp(times(sum, factors[1][g], factors[2][g]) + row[g], -32768, 32767)
		end
		local function gate(k, j, table) return tables[table][z[(first + k) * n + j] + 32769] end
		h = {}
		for j = 1, n do
			local forget = gate(1, j, 1)
			local input = gates == 4 and gate(0, j, 1) or 32767 - forget
			c[j] = clamp(divided(forget * c[j], 15) + divided(input * gate(2, j, 2), 30 + (o.exponent or -12)), -32768, 32767)
			if o.clip then c[j] = clamp(c[j], -o.clip, o.clip) end
			local y = times(gate(3, j, 1) * tables[3][c[j] + 32769], o.multiplier, o.shift)
			h[j] = clamp(y + (o.zero or 0), -128, 127) - (o.statezero or o.zero or 0)
		end
		ys[t] = h
	end
	return ys, c
end

local function whole(range, ...) return (tensor.rand(...) * (2 * range + 1) - range - 0.5):round():clamp(-range, range) end
local function case(batch, count, n, gates, o, views)
	local x, h, c = whole(6000, batch, count, gates * n):to 'int16', whole(127, batch, n):to 'int16', whole(20000, batch, n):to 'int16'
	local w, tables = whole(127, gates * n, n):to 'int8', whole(32767, 3, 65536):to 'int16'
	local factors = {{}, {}}
	for i = 1, gates * n do factors[1][i], factors[2][i] = (1 << 30) + i % 100 * 7654321, i % 5 - 3 end
	local f = tensor(factors):to 'int64'
	if views then
		x, w = x:transpose(1, 2):contiguous():transpose(1, 2), w:t():contiguous():t()
	end
	local y, last, state = nn.integerlstm(x, h, c, w, f, tables, o)
	assert(y:dtype() == 'int16' and last:dtype() == 'int16' and state:dtype() == 'int16')
	local w_list, table_list = w:totable(), tables:totable()
	for b = 1, batch do
		local ys, cs = steps(x[b]:totable(), h[b]:totable(), c[b]:totable(), w_list, factors, table_list, o)
		assert(y[b]:sub(tensor(ys):to 'int16'):abs():max():item() == 0 and state[b]:sub(tensor(cs):to 'int16'):abs():max():item() == 0)
		assert(last[b]:sub(tensor(ys[count]):to 'int16'):abs():max():item() == 0)
	end
end

it('has the codes of the rules', function()
	case(2, 5, 3, 4, {multiplier = 1 << 30, shift = -21})
	case(3, 4, 5, 3, {multiplier = 1700000000, shift = -22, zero = -7, exponent = -15}, true)
	case(1, 3, 300, 4, {multiplier = 1 << 30, shift = -20, zero = 5, statezero = 9, exponent = -9, clip = 500})
end)

it('keeps states without steps, and has empty batches', function()
	local function zeros(dtype, ...) return tensor.zeros {dtype = dtype, ...} end
	local h, o = tensor {{1, 2}}:to 'int16', {multiplier = 1, shift = 0}
	local w, f, tables = zeros('int8', 8, 2), zeros('int64', 2, 8), zeros('int16', 3, 65536)
	local y, last, c = nn.integerlstm(zeros('int16', 1, 0, 8), h, h * 3, w, f, tables, o)
	assert(y:nelem() == 0 and last:eq(h):all():item() and c:eq(h * 3):all():item())
	assert(nn.integerlstm(zeros('int16', 0, 4, 8), zeros('int16', 0, 2), zeros('int16', 0, 2), w, f, tables, o):nelem() == 0)
end)

it('refuses others', function()
	local function zeros(dtype, ...) return tensor.zeros {dtype = dtype, ...} end
	local good = {zeros('int16', 1, 2, 8), zeros('int16', 1, 2), zeros('int16', 1, 2), zeros('int8', 8, 2), zeros('int64', 2, 8), zeros('int16', 3, 65536)}
	local function refused(i, value, o, wanted)
		local list = table.move(good, 1, 6, 1, {})
		list[i] = value
		list[7] = o
		local ok, message = pcall(nn.integerlstm, table.unpack(list))
		assert(not ok and message:find(wanted, 1, true), message)
	end
	local o = {multiplier = 1, shift = 0}
	refused(1, zeros('int32', 1, 2, 8), o, 'integerlstm: x: wanted int16, got int32(1, 2, 8)')
	refused(1, zeros('int16', 1, 2, 7), o, 'wanted x (batch, steps, 3 or 4 gates of n) and h (batch, n), got (1, 2, 7) and (1, 2)')
	refused(3, zeros('int16', 1, 3), o, 'integerlstm: c: wanted (1, 2), got (1, 3)')
	refused(4, zeros('int8', 2, 8), o, 'integerlstm: w: wanted (8, 2), got (2, 8)')
	refused(5, zeros('int64', 2, 8) - 1, o, 'factors: wanted multipliers below 2^31 and shifts of -62 to 31, got -1 and -1')
	refused(6, zeros('int16', 3, 65535), o, 'integerlstm: tables: wanted (3, 65536), got (3, 65535)')
	refused(1, good[1], {multiplier = 1, shift = 40}, 'integerlstm: shift: wanted -31 to 31, got 40')
	refused(1, good[1], {multiplier = 1, shift = 0, exponent = -8}, 'integerlstm: exponent: wanted -15 to -9, got -8')
	refused(1, good[1], {shift = 0}, 'multiplier')
end)
