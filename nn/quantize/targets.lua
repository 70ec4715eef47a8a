-- SPDX-License-Identifier: MIT
-- A weight that methods of post-training quantization decide about, as a matrix (outputs, inputs of an output): what a layer computes is a
-- product of it with the columns that its class gives for an input (`columns`, nn/modules). Codes of the matrix become those of the layer.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local like = internal.import 'quant/like'
local module = internal.import 'nn/base/module'
local moments = internal.import 'nn/quantize/moments'
local targets = {}

local ROWS_BYTES = 64 << 20 -- of the columns of some rows of an input

local methods = {}
local meta = {__index = methods}

---------------------------------------------------------------- matrices

-- The axis of the outputs first, everything else flat.
local function matrix(w, per)
	if per ~= 1 then w = w:transpose(1, per):contiguous() end
	return w:dim() == 2 and w or w:reshape(w:size(1), w:nelem() // w:size(1))
end

-- The spec for the matrix of a weight with the spec s.
local function flat_spec(s, per)
	if s.axis ~= per or s.block or per == 1 then return s end
	return like.spec(s, {axis = 1, observer = s.observer, p = s.p, momentum = s.momentum})
end

-- The weight of the layer's sizes with the values of the matrix.
local function sized(t, w)
	if t.per == 1 then return w:reshape(t.sizes) end
	local sizes = table.move(t.sizes, 1, #t.sizes, 1, {})
	sizes[1], sizes[t.per] = sizes[t.per], sizes[1]
	return w:reshape(sizes):transpose(1, t.per):contiguous()
end

-- name: of the layer in the model; item: {layer=, field=, spec=, chain=, row=} of the plan; children: the modules of the block that have copies
-- of the weight, in the field `place`; op: where an op reads it that is no layer there, {node=, columns(operands, results)=}.
--   float    the weight that is to be coded, with what factors of other methods have made of it
--   factor, divisor   these factors, of its columns and of its outputs;  first  the weight without them;  plain  first, rounded
--   weight   float, as methods of ranges have changed it;  spec, first_spec  of its codes, now and as given
--   h, mean, magnitude, largest, rows   of its columns (nn/quantize/block.lua)
function targets.new(name, item, children, place, op)
	local class = module.class_of(item.layer)
	local per, w = item.spec.block and 1 or class.per or 1, children[1][place]:detach() -- blocks run along the weight's last axes
	local t = {name = name, item = item, row = item.row, chain = item.chain, class = class, children = children, place = place, op = op, per = per, why = item.row.why,
		given = item.spec, sizes = {w:size()}, float = matrix(w, per)}
	t.spec = flat_spec(item.spec, per)
	t.first_spec, t.weight, t.first = t.spec, t.float, t.float
	return setmetatable(t, meta)
end

-- Asks the methods of an item whether they can do its weight, before any data is read.
function targets.check(item)
	for _, link in ipairs(item.chain) do
		local why = link.method.refuses and link.method.refuses(item, link.options)
		if why then base.fail("quantize: method '%s': %s: %s", link.name, item.name, why) end
	end
end

-- Bytes of the second moments of an item's inputs, of how many inputs and for how many groups of outputs; 0: it has none.
function targets.moments(item)
	local class = module.class_of(item.layer)
	if not class.columns or (class.per or 1) ~= 1 then return 0, 0, 0 end
	local w = rawget(item.layer, item.field)
	local k, groups = w:nelem() // math.max(1, w:size(1)), class.column_groups and class.column_groups(item.layer) or 1
	return 8 * k * k * groups, k, groups
end

---------------------------------------------------------------- what it reads

-- Whether the layer is a product with a matrix of columns of its input.
function methods.has_columns(t)
	if t.op then return t.op.columns ~= nil end
	return t.class.columns ~= nil and (t.class.per or 1) == 1
end

-- Groups of outputs that have columns of their own.
function methods.groups(t) return not t.op and t.class.column_groups and t.class.column_groups(t.children[1]) or 1 end

-- Whether it reads the columns of another target with the same input.
function methods.reads_like(t, other)
	return not t.op and not other.op and t.class == other.class and not t.class.column_groups and not t.children[1].order and not other.children[1].order
end

-- Calls each(columns) for some rows of its input at a time: (rows, inputs), or (groups, rows, inputs).
function methods.each_columns(t, each, x, results)
	if t.op then
		local c = t.op.columns(x, results)
		if c and c:size(1) > 0 then each(c) end
		return
	end
	local child = t.children[1]
	if x:dim() < 2 then return each(t.class.columns(child, x)) end
	local n = x:size(1)
	if n == 0 then return end
	local one = t.class.columns(child, x:narrow(1, 1, 1)):nelem() * 4
	local step = math.max(1, ROWS_BYTES // one)
	for i = 1, n, step do each(t.class.columns(child, x:narrow(1, i, math.min(step, n - i + 1)))) end
end

---------------------------------------------------------------- its errors

-- What the layer computes with for codes (or values) of the weight: columns that are apart stay float.
function methods.real(t, q)
	q = module.real(q)
	return t.apart and tensor.where(t.apart.mask, t.float, q) or q
end

-- The squared error that codes (or values) in place of the weight cause in the outputs or, without data, in the weight.
function methods.error(t, q)
	local e = t.float - t:real(q)
	return t.h and moments.error(t.h, e) or e:to 'float64':square():sum():item()
end

-- The same of rounding alone, whatever factors the weight has now.
function methods.plain_error(t)
	local e = t.first - module.real(t.plain)
	if t.factor then e = e * t.factor end
	if t.divisor then e = e / t.divisor end
	return t.h and moments.error(t.h, e) or e:to 'float64':square():sum():item()
end

function methods.signal(t)
	return t.h and moments.error(t.h, t.float) or t.float:to 'float64':square():sum():item()
end

---------------------------------------------------------------- decisions

-- Adds to what the report says about it.
function methods.say(t, why)
	if why and why ~= '' then t.why = (t.why and t.why .. '; ' or '') .. why end
end

-- Has the range of its codes found by another observer.
function methods.observe(t, observer, p)
	t.spec = like.spec(t.spec, {axis = t.spec.axis, block = t.spec.block, outer = t.spec.outer, observer = observer, p = p})
end

-- A matrix as the weight of the layer.
function methods.shaped(t, w) return sized(t, w) end

-- Replaces the weight that the block computes with.
function methods.put(t, w)
	w = sized(t, t:real(w))
	for _, child in ipairs(t.children) do module.set_tensor(child, t.place, w) end
end

-- Divides its outputs.
function methods.divide(t, s)
	s = s:view(s:size(1), 1)
	t.float, t.divisor = t.float / s, t.divisor and t.divisor * s or s
	t.weight = t.float
end

-- Columns of these numbers stay float beside the codes of the others, which need not make up for them.
function methods.set_apart(t, at)
	local row = {}
	for i = 1, t.weight:size(2) do row[i] = 0 end
	for _, i in ipairs(at) do row[i] = 1 end
	row = tensor(row):to(t.weight:device())
	t.apart, t.weight = {at = at, mask = row:gt(0):view(1, row:size(1))}, t.weight * (1 - row):view(1, row:size(1))
	if t.h then
		local rest = 1 - row:to 'float64'
		t.h = t.h * rest:view(1, row:size(1)) * rest:view(row:size(1), 1)
	end
end

-- The weight as it was at first.
function methods.restore(t)
	t.float, t.weight, t.spec, t.factor, t.divisor = t.first, t.first, t.first_spec, nil, nil
	t.apart = nil
end

local function set_bias(child, bias)
	if child.bias then
		module.set_tensor(child, 'bias', bias)
	else
		module.parameter(child, 'bias', bias)
	end
end

-- Gives the layer another bias.
function methods.rebias(t, bias)
	if not t.bias then t.first_bias = t.children[1].bias and t.children[1].bias:detach() or false end
	t.bias = bias
	for _, child in ipairs(t.children) do set_bias(child, bias:detach()) end
end

-- The bias as it was at first.
function methods.unbias(t)
	if not t.bias then return end
	t.bias = nil
	for _, child in ipairs(t.children) do
		if t.first_bias then
			module.set_tensor(child, 'bias', t.first_bias)
		else
			module.forget(child, 'bias')
			rawset(child, 'bias', false)
		end
	end
end

-- The codes of the matrix as those of the layer's weight. Blocks run along the inputs of an output, so such codes stay a matrix; others
-- are encoded again from their values, under the same scales.
function methods.codes(t, q)
	if t.given.block or #t.sizes == 2 and t.per == 1 then return q end
	local p = q:qparams()
	return module.weight_codes(sized(t, q:dequantize()), like.spec(t.given, {axis = t.given.axis, scale = p.scale, zero_point = p.zero_point,
		minimum = p.minimum}))
end

-- Writes a new bias, and the weight if it has got factors, to the layer of the model.
function methods.keep(t)
	if t.factor or t.divisor then module.set_tensor(t.item.layer, t.item.field, sized(t, t.float)) end
	if t.apart then t.class.set_apart(t.item.layer, t.apart.at, t.float:indexselect(2, tensor {t.apart.at, dtype = 'int32'}:view(#t.apart.at):to(t.float:device()))) end
	if not t.bias then return end
	if t.item.layer.bias then module.set_tensor(t.item.layer, 'bias', t.bias) else module.parameter(t.item.layer, 'bias', t.bias) end
end

-- Writes the codes and the row. block, rounded: errors of the block's result, in dB.
function methods.finish(t, block, rounded)
	t.item.codes = t:codes(t.q)
	if not t.h then t:say 'not judged on data' end
	t.row.block, t.row.block_rtn, t.row.why = block, rounded, t.why or ''
	for _, field in ipairs {'h', 'mean', 'magnitude', 'largest', 'float', 'weight', 'first'} do t[field] = nil end
end

return targets
