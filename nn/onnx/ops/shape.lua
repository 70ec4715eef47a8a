-- SPDX-License-Identifier: MIT
-- Sizes, constants, and tensors that are made of sizes.
local internal = select(2, ...)
local ops = {}

function ops.Shape(n, x)
	local sizes, rank = {x:size()}, x:dim()
	local first, last = n:attr('start', 0), n:attr('end', rank)
	first, last = first < 0 and first + rank or first, last < 0 and last + rank or last
	local part = {}
	for i = math.max(0, first) + 1, math.min(last, rank) do part[#part + 1] = sizes[i] end
	part.dtype = 'int64'
	return #part == 0 and tensor.empty {0, dtype = 'int64'} or tensor(part)
end

function ops.Size(_, x) return tensor {x:nelem(), dtype = 'int64'}:sum() end

function ops.Constant(n)
	local value = n:given('value', 'tensor')
	if value then return value end
	for _, kind in ipairs {{'value_float', 'float32', 'float'}, {'value_int', 'int64', 'integer'}} do
		local x = n:given(kind[1], kind[3])
		if x then return tensor {x, dtype = kind[2]}:select(1, 1) end
	end
	for _, kind in ipairs {{'value_floats', 'float32', 'list of floats'}, {'value_ints', 'int64', 'list of integers'}} do
		local list = n:given(kind[1], kind[3])
		if list then
			local made = table.move(list, 1, #list, 1, {dtype = kind[2]})
			return #list == 0 and tensor.empty {0, dtype = kind[2]} or tensor(made)
		end
	end
	n:fail 'wanted a tensor or numbers, got another kind of value'
end

local function sized(list, dtype)
	return table.move(list, 1, #list, 1, {dtype = dtype})
end

function ops.ConstantOfShape(n, shape)
	local value = n:given('value', 'tensor')
	local dtype, number = value and value:dtype() or 'float32', value and n:list(value, 'value')[1] or 0
	local sizes = sized(n:list(shape, 'shape'), dtype)
	if #sizes == 0 then return tensor {number, dtype = dtype}:select(1, 1) end
	sizes.value = number
	return number == 0 and tensor.zeros(sized(n:list(shape, 'shape'), dtype)) or tensor.full(sizes)
end

function ops.Range(n, first, last, step)
	local dtype, a, b, s = first:dtype(), n:number(first, 'start'), n:number(last, 'limit'), n:number(step, 'delta')
	local count = math.max(0, math.ceil((b - a) / s))
	if count == 0 then return tensor.empty {0, dtype = dtype} end
	local y = tensor.arange(0, count - 1)
	if s ~= 1 then y = y * s end
	if a ~= 0 then y = y + a end
	return y:to(dtype)
end

function ops.EyeLike(n, x)
	local rows, columns = x:size()
	local dtype = n:given('dtype', 'integer') and internal.onnx_dtype(n:given('dtype', 'integer')) or x:dtype()
	local k = n:attr('k', 0)
	local row, column = tensor.arange(0, rows - 1):view(rows, 1), tensor.arange(0, columns - 1):view(1, columns)
	return (column - row):eq(k):to(dtype)
end

-- The low bits of integers beyond the range of the dtype.
local function wrapped(x, to)
	local from = quant.dtype(x:dtype())
	if not from.float and (from.kind == 'bool' or from.min >= to.min and from.max <= to.max) then return x:to(to.name) end
	x = x:to 'int64':band((1 << to.bits) - 1)
	if to.signed then x = x:bxor(1 << to.bits - 1) - (1 << to.bits - 1) end
	return x:to(to.name)
end

-- Of float8 by the binary digits of the significand (1: powers of two): beyond it are codes of infinity or NaN.
local LARGEST = {[4] = 448, [3] = 57344}

-- The power of 2 above, below or next to |x|: `down` finds the one below from the nearest one.
local function power(n, x, dtype)
	local mode, saturate = n:attr('round_mode', 'up'), n:attr('saturate', 1) ~= 0
	if mode ~= 'up' and mode ~= 'down' and mode ~= 'nearest' then n:fail("round_mode: wanted up, down or nearest, got '%s'", mode) end
	if not saturate then n:fail 'saturate: wanted 1 for float8 of e8m0, got 0' end
	local low, high = 2.0 ^ -127, 2.0 ^ 127
	x = x:to 'float64':abs()
	local y = x:clamp(low, high)
	local down = y:to(dtype):to 'float64'
	down = tensor.where(down:gt(y), down / 2, down)
	if mode == 'nearest' then
		y = tensor.where(y:ge(down * 1.5), down * 2, down)
	else
		y = mode == 'up' and tensor.where(y:gt(down), down * 2, down) or down
	end
	return tensor.where(x:isfinite(), y:clamp(low, high), x * 0 / 0):to(dtype)
end

-- Floats become integers towards 0. Codes of that dtype stay codes: torch's exporter casts each before its DequantizeLinear.
local function cast(n, x, dtype)
	if x:dtype() == dtype then return x end
	if x:quantized() then x = x:codes() end
	local to = quant.dtype(dtype)
	if to.digits == 1 then return power(n, x, dtype) end
	if to.kind == 'bool' then return n.is_float(x) and x:ne(0) or x:to(dtype) end
	if to.float then
		local most = n:attr('saturate', 1) ~= 0 and LARGEST[to.digits]
		return (most and x:clamp(-most, most) or x):to(dtype)
	end
	if n.is_float(x) then x = x:trunc() end
	return to.bits <= 16 and wrapped(x, to) or x:to(dtype)
end

function ops.Cast(n, x)
	local dtype = internal.onnx_dtype(n:attr('to', 0))
	if not dtype then n:fail('to: wanted a type of numbers, got number %s', n:attr('to', 0)) end
	if n:note(x) and quant.dtype(dtype).float then n:note(nil, n:note(x)) end
	return cast(n, x, dtype)
end

function ops.CastLike(n, x, like)
	if n.machine.file.float4[like] then n:fail 'target_type: wanted a type of numbers, got float4' end
	return cast(n, x, like:dtype())
end

return {ops = ops, codes = {'Shape', 'Size', 'Cast', 'CastLike'}}
