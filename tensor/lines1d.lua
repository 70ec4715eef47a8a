-- SPDX-License-Identifier: MIT
-- Convolutions and pooling along one axis, x (n, c, l): those of images of one row. They are methods that view, call the op for images and
-- view, without copies; graphs, ledgers, integer paths and exported C have these ops.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail, describe = base.doc, base.fail, base.describe
local methods = debug.getmetatable(tensor.zeros(1)).methods

local STRIDE = {'stride', 'integer', 'step of the window'}
local PAD = {'pad', 'any', 'zeros at both ends: a number or {left, right} (default 0)'}
local AUTOPAD = {'autopad', 'text', 'same, same_upper, same_lower or valid, as in x:conv2d'}
local DILATION = {'dilation', 'integer', 'distance of the numbers of a window (default 1)'}
local CEIL = {'ceilmode', 'true or false', 'a last window that does not fit counts (default false)'}

local function image(op, what, t)
	if not base.is_tensor(t) or t:dim() ~= 3 then fail('%s: wanted %s, got %s', op, what, describe(t)) end
	return t:unsqueeze(3)
end

-- {1, n} of a number, or of a list with one.
local function wide(op, name, value, first)
	if type(value) == 'table' and #value == 1 then value = value[1] end
	if value == nil or value == 'all' then return value end
	if math.type(value) ~= 'integer' then fail('%s: %s: wanted an integer, got %s', op, name, describe(value)) end
	return {first, value}
end

local function ends(op, value)
	if type(value) ~= 'table' or #value == 1 then return wide(op, 'pad', value, 0) end
	if #value ~= 2 then fail('%s: pad: wanted a number or {left, right}, got %d numbers', op, #value) end
	return {0, 0, value[1], value[2]}
end

-- The options of the op for images.
local function options_of(entry, options, k)
	local name = entry.name:sub(3)
	local o = {}
	for key, value in next, base.options(entry, options or {}) do o[key] = value end
	o.k, o.stride, o.dilation = wide(name, 'k', k or o.k, 1), wide(name, 'stride', o.stride, 1), wide(name, 'dilation', o.dilation, 1)
	o.pad, o.outputpad = ends(name, o.pad), wide(name, 'outputpad', o.outputpad, 0)
	return o
end

-- x:op(w, bias, options), without bias or options.
local function convolve(entry, op, x, w, bias, options, ...)
	local name = entry.name:sub(3)
	if select('#', ...) > 0 then base.surplus(name, 4, ...) end
	if bias ~= nil and not base.is_tensor(bias) and options == nil then bias, options = nil, bias end
	local rows = w
	if not (base.is_tensor(w) and w:dim() == 2 and type(options) == 'table' and options.k) then rows = image(name, entry.weight, w) end
	x = image(name, 'x (n, c, l)', x)
	local o = options_of(entry, options)
	return (bias and x[op](x, rows, bias, o) or x[op](x, rows, o)):squeeze(3)
end

local conv1d = doc {name = 'x:conv1d', usage = 'x:conv1d(w, bias, {stride=, pad=, autopad=, dilation=, groups=, act=, out=})',
	text = [[Convolution of x (n, c, l) with w (out, c / groups, k) along the last axis, plus bias (out) when given, as in PyTorch: x:conv2d of
images of one row, which is what quant.log and graphs show.]],
	options = {STRIDE, PAD, AUTOPAD, DILATION, {'groups', 'integer', 'channels and outputs fall into so many groups that do not mix (default 1)'},
		{'k', 'integer', 'size of the kernel, of a quantized w whose rows are the outputs: (out, c / groups * k)'},
		{'act', 'text', 'activation after the bias (default: none)'}, {'out', 'any', 'spec of a quantized result (default: float32)'}},
	example = [[x, w = tensor.arange(1, 5):to 'float32':view(1, 1, 5), tensor.ones(1, 1, 3)
print(x:conv1d(w, {pad=1}):view(5))  --> float32(5)  3  6  9 12  9]]}
conv1d.weight = 'w (out, c / groups, k)'
function methods.conv1d(x, w, bias, options, ...) return convolve(conv1d, 'conv2d', x, w, bias, options, ...) end

local convtranspose1d = doc {name = 'x:convtranspose1d',
	usage = 'x:convtranspose1d(w, bias, {stride=, pad=, autopad=, outputpad=, dilation=, groups=, act=, out=})',
	text = [[Transposed convolution of x (n, c, l) with w (c, out / groups, k) along the last axis, plus bias (out) when given:
x:convtranspose2d of images of one row.]],
	options = {STRIDE, PAD, AUTOPAD, {'outputpad', 'integer', 'numbers added at the end of the result (default 0)'}, DILATION,
		{'groups', 'integer', 'channels and outputs fall into so many groups that do not mix (default 1)'},
		{'act', 'text', 'activation after the bias (default: none)'}, {'out', 'any', 'spec of a quantized result (default: float32)'}},
	example = [[x, w = tensor{1, 2, 3}:view(1, 1, 3), tensor{1, 10}:view(1, 1, 2)
print(x:convtranspose1d(w, {stride=2}):view(6))  --> float32(6)  1 10  2 20  3 30]]}
convtranspose1d.weight = 'w (c, out / groups, k)'
function methods.convtranspose1d(x, w, bias, options, ...) return convolve(convtranspose1d, 'convtranspose2d', x, w, bias, options, ...) end

local function pool(entry, op, x, k, options, ...)
	local name = entry.name:sub(3)
	if select('#', ...) > 0 then base.surplus(name, 3, ...) end
	if type(k) == 'table' and #k ~= 1 then k, options = nil, k end
	x = image(name, 'x (n, c, l)', x)
	local y, places = x[op](x, options_of(entry, options, k))
	return y:squeeze(3), places and places:squeeze(3)
end

local maxpool1d = doc {name = 'x:maxpool1d', usage = 'x:maxpool1d(k, {stride=, pad=, dilation=, ceilmode=})  values, places = x:maxpool1d(k, {indices=true})',
	text = [[Largest number of each window of x (n, c, l) along the last axis: x:maxpool2d of images of one row. k='all' is the whole axis.]],
	options = {{'k', 'integer', "the window, or 'all'"}, STRIDE, PAD, AUTOPAD, DILATION, CEIL,
		{'indices', 'true or false', 'also give the places of the largest numbers (default false)'}},
	example = "print(tensor{1, 5, 2, 3}:view(1, 1, 4):maxpool1d(2):view(2))  --> float32(2) 5 3"}
function methods.maxpool1d(x, k, options, ...) return pool(maxpool1d, 'maxpool2d', x, k, options, ...) end

local avgpool1d = doc {name = 'x:avgpool1d', usage = 'x:avgpool1d(k, {stride=, pad=, ceilmode=, countincludepad=})  x:avgpool1d()',
	text = [[Mean of each window of x (n, c, l) along the last axis, without k of the whole axis: x:avgpool2d of images of one row.]],
	options = {{'k', 'integer', "the window, or 'all' (default)"}, STRIDE, PAD, AUTOPAD, CEIL,
		{'countincludepad', 'true or false', 'padding is part of the mean (default true)'},
		{'out', 'any', 'spec of a quantized result (default: that of a quantized x, else none)'}},
	example = "print(tensor{1, 5, 2, 4}:view(1, 1, 4):avgpool1d(2):view(2))  --> float32(2) 3 3"}
function methods.avgpool1d(x, k, options, ...) return pool(avgpool1d, 'avgpool2d', x, k, options, ...) end
