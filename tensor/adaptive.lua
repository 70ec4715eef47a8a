-- SPDX-License-Identifier: MIT
-- Pooling to a given size, and by powers: methods that are made of other ops, which is what graphs, ledgers and exported C have.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail, describe = base.doc, base.fail, base.describe
local methods = debug.getmetatable(tensor.zeros(1)).methods

local function images(op, x)
	if not base.is_tensor(x) or x:dim() ~= 4 then fail('%s: wanted x (n, c, h, w), got %s', op, describe(x)) end
end

-- The new height and width: a number or {h, w}.
local function sizes(op, size)
	local h, w
	if type(size) == 'table' and #size == 2 then h, w = size[1], size[2] else h, w = size, size end
	for _, n in ipairs {h or false, w or false} do
		if math.type(n) ~= 'integer' or n < 1 then fail('%s: size: wanted a number of at least 1 or {h, w}, got %s', op, describe(n or size)) end
	end
	return h, w
end

-- The size of windows that divide x evenly, or nil.
local function even(x, h, w)
	local height, width = x:size(3), x:size(4)
	return height >= h and width >= w and height % h == 0 and width % w == 0 and {height // h, width // w} or nil
end

doc {name = 'x:adaptiveavgpool2d', usage = 'x:adaptiveavgpool2d(size)  x:adaptiveavgpool2d{h, w}',
	text = [[Means of x (n, c, h, w) over as many windows as size says, as in PyTorch: window i of n begins at floor(i h / n) and ends before
ceil((i + 1) h / n). It is x:avgpool2d where all windows are equal, else x:resize of mode 'area'.]],
	example = "print(tensor.arange(1, 5):to('float32'):view(1, 1, 1, 5):adaptiveavgpool2d{1, 2}:view(2))  --> float32(2) 2 4"}
function methods.adaptiveavgpool2d(x, size)
	images('adaptiveavgpool2d', x)
	local h, w = sizes('adaptiveavgpool2d', size)
	local k = even(x, h, w)
	if k then return x:avgpool2d(k) end
	return x:resize {size = {h, w}, mode = 'area'}
end

-- Window i of n over `size` elements: where it begins, 1-based, and its length.
local function window(i, n, size)
	local first = (i - 1) * size // n
	return first + 1, -(-i * size // n) - first
end

doc {name = 'x:adaptivemaxpool2d', usage = 'x:adaptivemaxpool2d(size)  x:adaptivemaxpool2d{h, w}',
	text = [[The largest numbers of x (n, c, h, w) over as many windows as size says, those of x:adaptiveavgpool2d: x:maxpool2d where all windows
are equal, else the maximum of each.]],
	example = "print(tensor.arange(1, 5):to('float32'):view(1, 1, 1, 5):adaptivemaxpool2d{1, 2}:view(2))  --> float32(2) 3 5"}
function methods.adaptivemaxpool2d(x, size)
	images('adaptivemaxpool2d', x)
	local h, w = sizes('adaptivemaxpool2d', size)
	local k, rows = even(x, h, w), {}
	if k then return x:maxpool2d(k) end
	for i = 1, h do
		local line, columns = x:narrow(3, window(i, h, x:size(3))):max(3), {}
		for j = 1, w do columns[j] = line:narrow(3, window(j, w, x:size(4))):max(3) end
		rows[i] = tensor.stack(columns, {axis = 3})
	end
	return tensor.stack(rows, {axis = 3})
end

local lppool = doc {name = 'x:lppool2d', usage = 'x:lppool2d(p, k, {stride=, pad=, autopad=})',
	text = [[The p-norm of each window of x (n, c, h, w): the sum of |x|^p to the power 1/p, as in ONNX. It is made of abs, pow and avgpool2d.]],
	options = {{'stride', 'any', 'step of the window (default: the window)'}, {'pad', 'any', 'zeros around the images (default 0)'},
		{'autopad', 'text', 'same, same_upper, same_lower or valid'}},
	example = "print(tensor{3, 4, 6, 8}:view(1, 1, 1, 4):lppool2d(2, {1, 2}):view(2))  --> float32(2)  5 10"}
function methods.lppool2d(x, p, k, options)
	images('lppool2d', x)
	if type(p) ~= 'number' or not (p > 0 and p < math.huge) then fail('lppool2d: p: wanted a number above 0, got %s', describe(p)) end
	local h, w = sizes('lppool2d', k)
	local o = {k = {h, w}}
	for key, value in next, base.options(lppool, options or {}) do o[key] = value end
	return ((x:abs() ^ p):avgpool2d(o) * (h * w)) ^ (1 / p)
end
