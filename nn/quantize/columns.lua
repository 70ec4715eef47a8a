-- SPDX-License-Identifier: MIT
-- A part of the rows of the columns that a layer multiplies its weight with, drawn at random: the float layer's results for them, and the
-- columns as they arrive at the same places behind quantized weights.
local internal = select(2, ...)
local Columns = {}
Columns.__index = Columns

local BYTES, LEAST, MOST = 64 << 20, 1024, 16384 -- of the columns that are kept for a layer; rows of them

-- The product of columns, (rows, n) or (groups, rows, n), with a weight (outputs, n), plus a bias.
function Columns.product(x, w, bias)
	if x:dim() == 2 then return x:linear(w, bias or nil) end
	local groups = x:size(1)
	local y = x:matmul(w:reshape(groups, w:size(1) // groups, w:size(2)):transpose(2, 3))
	return bias and y + bias:reshape(groups, 1, bias:size(1) // groups) or y
end

-- What follows the layer where that is a function of each result alone: it, or nil.
local function activation_of(block, t)
	if t.op then return end
	local act = rawget(t.children[1], 'act')
	if act then return function(y) return y[act](y) end end
	return block.part.follows and block.part.follows(t.name)
end

-- Some rows of columns.
local function take(c, at) return c:indexselect(-2, at) end

-- Of the layers of list that have columns: t.sample, with the results of their float weights for what the block reads now.
function Columns.before(block, list)
	list = block:with_columns(list)
	local count = {}
	block:watch(list, block.values, function(t, ...)
		t:each_columns(function(c) count[t] = (count[t] or 0) + c:size(-2) end, ...)
	end)
	for _, t in ipairs(list) do
		local most = math.max(LEAST, math.min(MOST, BYTES // (4 * t.float:size(2) * t:groups())))
		t.sample = setmetatable({target = t, share = math.min(1, most / math.max(1, count[t] or 0)), at = {}, y = {}, activation = activation_of(block, t)}, Columns)
	end
	block:watch(list, block.values, function(t, ...)
		t:each_columns(function(c)
			local s, n = t.sample, c:size(-2)
			local at = tensor.randint {math.ceil(s.share * n), low = 1, high = n, device = c:device()}
			s.at[#s.at + 1] = at
			local bias = not t.op and t.children[1].bias -- an op adds its own behind the sums
			s.y[#s.y + 1] = Columns.product(take(c, at), t.float, bias and bias:detach())
		end, ...)
	end)
	for _, t in ipairs(list) do t.sample.y = tensor.cat(t.sample.y, {axis = -2}) end
end

-- The columns at the same places as they are now.
function Columns:arriving(block)
	local _ <close> = internal.nograd()
	local t, list = self.target, {}
	block:watch({t}, block.values, function(_, ...)
		t:each_columns(function(c) list[#list + 1] = take(c, self.at[#list + 1]) end, ...)
	end)
	return tensor.cat(list, {axis = -2})
end

-- n rows of columns x and of the float results; the same function of both may follow.
function Columns:draw(x, n)
	local rows = x:size(-2)
	local at = tensor.randint {n, low = 1, high = rows, device = x:device()}
	return take(x, at), take(self.y, at)
end

-- The mean over rows of the squared error of results behind the activation.
function Columns:loss(y, wanted)
	local f = self.activation
	if f then y, wanted = f(y), f(wanted) end
	return (y - wanted):square():sum() / y:size(-2)
end

return Columns
