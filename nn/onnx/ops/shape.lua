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
	local value = n:attr 'value'
	if value then return value end
	for _, kind in ipairs {{'value_float', 'float32'}, {'value_int', 'int64'}} do
		if n:attr(kind[1]) then return tensor {n:attr(kind[1]), dtype = kind[2]}:select(1, 1) end
	end
	for _, kind in ipairs {{'value_floats', 'float32'}, {'value_ints', 'int64'}} do
		local list = n:attr(kind[1])
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
	local value = n:attr 'value'
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
	local dtype = n:attr 'dtype' and internal.onnx_dtype(n:attr 'dtype') or x:dtype()
	local k = n:attr('k', 0)
	local row, column = tensor.arange(0, rows - 1):view(rows, 1), tensor.arange(0, columns - 1):view(1, columns)
	return (column - row):eq(k):to(dtype)
end

-- Floats become integers towards 0.
local function cast(x, dtype, is_float)
	if x:dtype() == dtype then return x end
	local to = quant.dtype(dtype)
	if is_float and to.kind == 'bool' then return x:ne(0) end
	if is_float and not to.float then x = x:trunc() end
	return x:to(dtype)
end

function ops.Cast(n, x)
	local dtype = internal.onnx_dtype(n:attr('to', 0))
	if not dtype then n:fail('to: wanted a type of numbers, got number %s', n:attr('to', 0)) end
	if n:note(x) and quant.dtype(dtype).float then n:note(nil, n:note(x)) end
	return cast(x, dtype, n.is_float(x))
end

function ops.CastLike(n, x, like) return cast(x, like:dtype(), n.is_float(x)) end

return ops
