-- SPDX-License-Identifier: MIT
-- Codes: QuantizeLinear and DequantizeLinear, with a scale for a tensor, an axis or blocks of an axis.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local params = internal.import 'nn/graph/codes'
local types = internal.import 'nn/onnx/types'
local values = internal.import 'nn/onnx/values'
local refuse = values.refuse
local codes, ops = {}, {}

---------------------------------------------------------------- data types

local function minifloat(code, exponents, digits, bias)
	local sign, e, m = code >> exponents + digits, code >> digits & (1 << exponents) - 1, code & (1 << digits) - 1
	local x = e == 0 and m * 2.0 ^ (1 - bias - digits) or (1 + m / (1 << digits)) * 2.0 ^ (e - bias)
	return sign == 1 and -x or x
end

-- The small float whose bit patterns are the codes of the spec, with the opset that has it; nil: none.
local function float_type(spec)
	local table_of = spec.values
	for _, f in ipairs(table_of and types.floats or {}) do
		local same = #table_of == 1 << 1 + f[2] + f[3]
		for code = 0, same and #table_of - 1 or -1 do
			local want = minifloat(code, f[2], f[3], f[4])
			same = same and (table_of[code + 1] == want or math.abs(want) > f[5])
		end
		if same then return f[1], f[6] end
	end
end

-- Data type and opset of the codes of a spec.
local function type_of(w, spec)
	if spec.affine then
		local type, since = types.container(spec.dtype, w.given or math.max(w.opset, 21))
		if not type then refuse('codes of %s', tostring(spec)) end
		return type, since
	end
	local type, since = float_type(spec)
	if not type then refuse("%s has no form in ONNX; form='float' writes the decoded values", tostring(spec)) end
	return type, since
end

-- Zero points as a tensor of that type; also the zero whose type is that of the codes.
local function zeros(zero, type, like)
	local d = types.integer(type)
	if not d then return tensor.zeros {dtype = types.bits(type) < 8 and 'uint4' or type, table.unpack(like)} end
	if zero:min():item() < d.min or zero:max():item() > d.max then refuse('zero points beyond %s', type) end
	return zero:to(type)
end

local function shape_of(t) return t:dim() == 0 and {1} or {t:size()} end
local function scalar(t) return t:nelem() == 1 and t:reshape {} or t end

-- Names of a scale and a zero point, which are no lists where there is one.
local function write_params(w, stem, scale, zero, type)
	local z = zeros(zero or tensor.zeros {dtype = 'int32', table.unpack(shape_of(scale))}, type, shape_of(scale))
	return w:initializer(stem .. '.scale', scalar(scale)), w:initializer(stem .. '.zero_point', scalar(z), type)
end

---------------------------------------------------------------- constants

-- The codes of a quantized constant, which are written when they are used.
function codes.constant(w, name, value)
	local p, spec = value:qparams(), value:spec()
	local type, since = type_of(w, spec)
	if p.minimum then refuse("%s has minimums, which ONNX has not; form='float' writes the decoded values", tostring(spec)) end
	local scale, opset = p.scale, since
	if scale:quantized() then scale = scale:dequantize() end
	if quant.dtype(scale:dtype()).digits == 1 and types.bits(type) == 4 and (w.given or 24) >= 24 then -- powers of two stay such
		opset = 24
	else
		scale = scale:to 'float32'
	end
	if p.block then opset = math.max(opset, 21) end
	return {stem = name, tensor = value:codes(), type = type, scales = scale, zeros = p.zero_point, axis = p.axis and p.axis - 1, block = p.block,
		opset = opset, affine = spec.affine, constant = value}
end

local function codes_tensor(c, t)
	if not types.integer(c.type) then return t end -- bit patterns
	return t:dtype() == c.type and t or t:to(c.type)
end

-- Writes a constant's codes if that is not done.
function codes.write(w, c)
	if c.name then return c end
	w:needs(c.opset)
	c.name = w:initializer(c.stem, codes_tensor(c, c.tensor), c.type, true)
	c.scale, c.zero = write_params(w, c.stem, c.scales, c.zeros, c.type)
	return c
end

-- The constant's codes as a matrix turned: (k, n), with the axis of the scales.
function codes.turned(w, c)
	local t = {stem = c.stem .. '.t', tensor = codes_tensor(c, c.tensor):transpose(1, 2), scales = c.scales, zeros = c.zeros, axis = c.axis and 1 - c.axis,
		type = c.type, opset = c.opset, affine = c.affine, block = c.block}
	if c.block then
		t.scales = c.scales:transpose(1, 2):contiguous()
		t.zeros = c.zeros and c.zeros:transpose(1, 2):contiguous()
	end
	return codes.write(w, t)
end

---------------------------------------------------------------- decoding

-- DequantizeLinear of codes.
function codes.dequantize(w, stem, c)
	codes.write(w, c)
	local attrs = {}
	if c.axis then attrs.axis = c.axis end
	if c.block then attrs.block_size = c.block end
	if c.opset == 24 then attrs.output_dtype = values.TYPES.float32 end
	return w:node(stem, 'DequantizeLinear', {c.name, c.scale, c.zero}, attrs)
end

---------------------------------------------------------------- encoding

-- QuantizeLinear by parameters that have names; codes stay within low and high.
local function quantize_by(w, stem, x, c)
	if c.lowest then x = w:node(stem, 'Clip', {x, w:number(c.lowest, 'float32'), w:number(c.highest, 'float32')}) end
	return w:node(stem, 'QuantizeLinear', {x, c.scale, c.zero}, c.axis and {axis = c.axis} or {})
end

-- Codes by the same parameters under another name.
function codes.moved(c, name)
	local made = {}
	for key, value in next, c do made[key] = value end
	made.name, made.stem, made.constant, made.tensor = name, name, nil, nil
	return made
end

-- Floats as codes by the same parameters.
function codes.like(w, stem, x, c)
	local made = codes.moved(c, quantize_by(w, stem, x, c))
	made.stem = stem
	return made
end

local function limits(c, spec, scale, zero)
	local d = types.integer(c.type)
	if not spec.affine or not d or spec.min <= d.min and spec.max >= d.max then return end
	if type(scale) ~= 'number' then refuse('codes of %s with a scale for each index', tostring(spec)) end
	c.lowest, c.highest = (spec.min - zero) * scale, (spec.max - zero) * scale
	c.least, c.most = spec.min, spec.max
end

-- Parameters that are known: of a tensor, or of an axis.
local function fixed(w, stem, spec, type)
	local scale, zero = params.params(spec)
	local c = {stem = stem, type = type, affine = spec.affine}
	if scale then
		c.number, c.zero_number = tensor {scale}:item(), zero
		limits(c, spec, scale, zero)
		c.scale, c.zero = write_params(w, stem, tensor {scale}, tensor {zero, dtype = 'int32'}, type)
		return c
	end
	if not spec.axis or not spec.scale then return nil end
	c.axis = spec.axis - 1
	if spec.affine and spec.min > quant.dtype(type).min then refuse('codes of %s with a scale for each index', tostring(spec)) end
	c.scale, c.zero = write_params(w, stem, spec.scale, spec.zero_point, type)
	return c
end

-- The parameters of codes of a spec, without a name; nil if they are found at each run.
function codes.params(w, stem, spec)
	local type, since = type_of(w, spec)
	w:needs(since)
	return fixed(w, stem, spec, type)
end

-- A scale of max |x|, or of the range of x with 0: numbers that the nodes compute.
local function symmetric(w, stem, x, spec, c, axes)
	local function node(op, inputs, attrs) return w:node(stem, op, inputs, attrs) end
	local most = w.reduce(node('Abs', {x}), axes)
	local scale = node('Div', {most, w:number(spec.max + 0.0, 'float32')})
	c.scale = node('Where', {node('Equal', {most, w:number(0.0, 'float32')}), w:number(1.0, 'float32'), scale})
	c.zero = w:initializer(stem .. '.zero_point', tensor.full {1, value = c.middle or 0, dtype = c.type}:select(1, 1))
	if axes then c.zero = node('Expand', {c.zero, node('Shape', {c.scale})}) end
	return c
end

local PRODUCTS = {linear = true, matmul = true, conv2d = true}

-- Whether only products use the codes of the node: then their zero point may be another.
local function only_products(w, name)
	for _, user in ipairs(w.g.users[name] or {}) do
		if not PRODUCTS[w.g.nodes[user].op] then return false end
	end
	local output = false
	core.each_output(w.g, function(leaf) output = output or core.split(leaf.ref) == name end)
	return not output
end

local function find(w, stem, x, spec, type, rank)
	local c = {stem = stem, type = type, affine = spec.affine, found = true}
	if types.is_byte(type) and spec.min < 0 and only_products(w, stem) then c.type, c.middle = 'uint8', 128 end -- as onnxruntime's ConvInteger wants
	if (spec.observer or 'minmax') ~= 'minmax' or not spec.affine or spec.block then
		refuse('%s with ranges that are found at each run: wanted affine codes without blocks by minmax', tostring(spec))
	end
	local axes
	if spec.axis then
		axes, c.axis = {}, spec.axis - 1
		for i = 0, rank - 1 do axes[#axes + 1] = i ~= c.axis and i or nil end
	end
	function w.reduce(y, list)
		if not list then return w:node(stem, 'ReduceMax', {y}, {keepdims = 0}) end
		if w.opset >= 18 then return w:node(stem, 'ReduceMax', {y, w:ints(list)}, {keepdims = 0}) end
		return w:node(stem, 'ReduceMax', {y}, {axes = list, keepdims = 0})
	end
	if not spec.offset then return symmetric(w, stem, x, spec, c, axes) end
	if spec.min ~= 0 or spec.max ~= 255 or axes then refuse('%s with ranges that are found at each run: wanted uint8 or codes without zero points', tostring(spec)) end
	c.name, c.scale, c.zero = w:node(stem, 'DynamicQuantizeLinear', {x}, {}, 3)
	return c
end

-- The codes of floats: {name=, type=, scale=, zero=, axis=}.
function codes.encode(w, stem, x, spec, shape)
	local type, since = type_of(w, spec)
	w:needs(since)
	local c = fixed(w, stem, spec, type) or find(w, stem, x, spec, type, #shape)
	c.name = c.name or quantize_by(w, stem, x, c)
	return c
end

-- The range of the codes without their rounding: a graph may leave relu to it.
function codes.saturated(w, stem, x, spec)
	local scale, zero = params.params(spec)
	if not scale or not spec.affine then return x end
	return w:node(stem, 'Clip', {x, w:number((spec.min - zero) * scale, 'float32'), w:number((spec.max - zero) * scale, 'float32')})
end

---------------------------------------------------------------- ops

-- The value of operand 1 as it is, where nothing is rounded.
local function floats(n) return n:input(1, 'float32') end

function ops.quantize(n)
	local spec = n:attr 'spec'
	if not spec.scheme then return n:cast(n:input(1), n:dtype(1), spec.dtype) end
	if n.form == 'float' then return codes.saturated(n.w, n.name, floats(n), spec) end
	return {codes = codes.encode(n.w, n.name, floats(n), spec, n.shapes[1])}
end
ops.requantize = ops.quantize

function ops.dequantize(n)
	local c = n:codes(1)
	return c and {decoded = c} or n:input(1)
end

function ops.codes(n)
	local c = n:codes(1)
	if not c then refuse "form='float' has no codes" end
	return codes.write(n.w, c).name
end

function ops.fake(n)
	if n.count > 1 then refuse 'rounding offsets' end
	local spec, x = n:attr 'spec', floats(n)
	if n.form == 'float' then return n:cast(codes.saturated(n.w, n.name, x, spec), 'float32', n:typed()) end
	local y = codes.dequantize(n.w, n.name, codes.encode(n.w, n.name, x, spec, n.shapes[1]))
	return n:cast(y, 'float32', n:typed())
end

-- round(clamp(x / scale + zero, low, high)) - zero, times the scale.
function ops.lsq(n)
	local bits, signed = n:attr('bits', 8), n:attr('signed', true)
	n:attr 'features'
	if n:attr 'axis' then refuse 'axis=' end
	local scale, zero = n:emit('Max', {n:input(2, 'float32'), n:number(1e-8)}), n.count > 2 and n:emit('Round', {n:input(3, 'float32')})
	local high = signed and (1 << bits - 1) - 1 or (1 << bits) - 1
	local low = not signed and 0 or (bits <= 3 or zero) and -(1 << bits - 1) or -high
	local y = n:emit('Round', {n:emit('Div', {floats(n), scale})})
	if zero then y = n:emit('Add', {y, zero}) end
	y = n:emit('Clip', {y, n:number(low + 0.0), n:number(high + 0.0)})
	if zero then y = n:emit('Sub', {y, zero}) end
	return n:cast(n:emit('Mul', {y, scale}), 'float32', n:typed())
end

codes.ops = ops
return codes
