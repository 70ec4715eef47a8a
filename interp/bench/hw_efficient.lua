-- SPDX-License-Identifier: MIT
-- hw.efficient: whether an op runs on kernels made for codes. It is asked by running the op on a few numbers and reading the ledger,
-- so it says what really happens, under hw.force, too; measure=true compares times as well.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe

local RUNS = 5
local PRODUCTS = {linear = true, matmul = true, conv2d = true}
local SMALL, LARGE = {rows = 8, n = 64}, {rows = 64, n = 512}

-- The usual codes of the other operand: activations, or for 16 bits and binary ones of the same kind.
local function input_of(spec)
	local d = quant.dtype(spec.dtype)
	if not spec.scheme or d.kind == 'binary' then return spec.dtype end
	return d.bits == 16 and 'int16' or 'uint8'
end

-- A function that runs the op under a spec, and the codes it works on.
local function case_of(op, spec, size)
	local w = tensor.randn(size.n, size.n)
	local x = tensor.randn(size.rows, size.n)
	if op == 'conv2d' then
		w, x = tensor.randn(size.n // 2, 16, 3, 3), tensor.randn(1, 16, size.n // 8, size.n // 8)
	end
	if op == 'quantize' then return function() return w:quantize(spec) end end
	local q, a = w:quantize(spec), x:quantize(input_of(spec))
	if PRODUCTS[op] then return function() return a[op](a, op == 'matmul' and q:t() or q) end end
	return function() return q[op](q) end
end

local function milliseconds(run)
	local best = math.huge
	for _ = 1, RUNS do
		local start = hw.clock()
		run()
		best = math.min(best, (hw.clock() - start) * 1e3)
	end
	return best
end

local function check_op(op)
	if op == 'quantize' or op == 'dequantize' or PRODUCTS[op] then return end
	local names = {'quantize', 'dequantize', 'linear', 'matmul', 'conv2d'}
	for _, known in ipairs(tensor.ops()) do
		if known.arity_max == 1 and known.name ~= 'backward' then
			if known.name == op then return end
			names[#names + 1] = known.name
		end
	end
	fail('efficient: op: wanted a product, quantize, dequantize or an op of one tensor, got %s%s', describe(op), base.near(op, names))
end

-- Whether, and why; the kernel's name.
local function judge(op, spec, y)
	local o = y:origin()
	local d = quant.dtype(spec.dtype)
	local where = ('%s of %s'):format(op, spec.name)
	if not spec.scheme then return true, ('%s runs on floats: kernel %s'):format(where, o.kernel) end
	if o.path == 'fallback' then return false, ('%s falls back to float32: %s'):format(where, o.reason) end
	if o.kernel == 'ref' and hw.features().level ~= 'ref' then
		return false, ('%s has no vector kernel: portable C'):format(where)
	end
	if not PRODUCTS[op] and op ~= 'quantize' and d.packed > 1 then
		return false, ('%s works on %d codes in a byte one by one: path %s'):format(where, d.packed, o.path)
	end
	return true, ('%s runs on codes: path %s, kernel %s'):format(where, o.path, o.kernel)
end

local efficient = base.doc {name = 'hw.efficient', usage = "hw.efficient('int4')  hw.efficient('int8/1', 'relu', {measure=true})",
	text = [[Whether an op (default 'linear': its weights under the spec) runs on kernels made for such codes on this machine, and the
reason in words: true where it stays in integers on vector kernels, false where it falls back to float32 or where codes are handled
one by one. op: linear, matmul, conv2d, quantize, dequantize, or any op of one tensor. measure=true also times it beside float32:
then it must not be slower either, and the third result is float32's time over its own.]],
	options = {{'measure', 'true or false', 'time it beside float32 (default false)'}},
	example = [[print(hw.efficient 'int8')  --> true linear of int8 runs on codes: path int8...
print((hw.efficient('int8', 'sort')))  --> false]]}

function hw.efficient(spec, op, o)
	spec, op = quant.spec(spec), op or 'linear'
	if type(op) == 'table' then op, o = 'linear', op end
	o = base.options(efficient, o)
	check_op(op)
	-- random numbers of the script stay what they would have been
	local rng, position = internal.rng(20240229, 0)
	local _ <close> = setmetatable({}, {__close = function() internal.rng(rng, position) end})
	local _ <close> = internal.nograd()
	local good, y = pcall(case_of(op, spec, SMALL))
	if not good then return false, ('%s of %s is refused: %s'):format(op, spec.name, y) end
	local yes, why = judge(op, spec, y)
	if not o.measure then return yes, why end
	local ratio = milliseconds(case_of(op == 'dequantize' and 'clone' or op, quant.spec 'float32', LARGE)) / milliseconds(case_of(op, spec, LARGE))
	return yes and ratio >= 1, ('%s; %.2f x the speed of float32'):format(why, ratio), ratio
end
