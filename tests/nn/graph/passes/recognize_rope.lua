-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass recognize_rope: rotate_half with tables becomes rope with the same bits; what only looks like it stays.
tensor.seed(9)
local B, H, T, D = 2, 3, 5, 8
local x = tensor.randn(B, H, T, D)
local angles = tensor.arange(1, T):to 'float32':view(T, 1) * tensor.rand(1, D // 2)
local both = tensor.cat({angles, angles}, {axis = 2})
local cos, sin = both:cos(), both:sin()

local function turned(v, a)
	a = a or v:dim()
	local half = v:size(a) // 2
	return tensor.cat({-v:narrow(a, half + 1, half), v:narrow(a, 1, half)}, {axis = a})
end

-- The graph after the pass has the bits of the one before; gives its ropes and what else it has.
local function found(f, given, batch)
	local g = graph.trace(nn.module(f, {}), given or x, {batch = batch})
	local made = g:pass 'layers'
	assert((made:run(given or x) - g:run(given or x)):abs():max():item() == 0)
	assert(#select(2, made:pass 'layers') == 0)
	local ropes, count = {}, {}
	for _, name in ipairs(made.order) do
		local node = made:node(name)
		count[node.op] = (count[node.op] or 0) + 1
		if node.op == 'rope' then ropes[#ropes + 1] = node end
	end
	return ropes, count, made
end

it('finds tables that are constants', function()
	local c, s = cos:view(1, 1, T, D), sin:view(1, 1, T, D)
	for _, f in ipairs {function(_, v) return v * c + turned(v) * s end, function(_, v) return s * turned(v) + c * v end} do
		local ropes, count, g = found(f)
		assert(#ropes == 1 and not count.cat and not count.neg and ropes[1].attrs.style == 'half' and not ropes[1].attrs.axis)
		local shape = g:node(ropes[1].inputs[2]).shape
		assert(tostring(shape) == ('(%d, %d)'):format(T, D // 2), tostring(shape))
	end
	local ropes, count = found(function(_, v)
		local u = v * 2
		return (v * c + turned(v) * s) + (u * c + turned(u) * s)
	end)
	assert(#ropes == 2 and count.const == 2, 'tables are made once')
	ropes = found(function(_, v) return v * c + tensor.cat({v:narrow(4, D // 2 + 1, D // 2) * -1, v:narrow(4, 1, D // 2)}, {axis = 4}) * s end)
	assert(#ropes == 1)
	-- halves of the tables that differ
	local other = tensor.randn(1, 1, T, D)
	ropes = found(function(_, v) return v * other + turned(v) * s end)
	assert(#ropes == 1)
end)

it('finds the axis of the positions, tables of the batch and of inputs', function()
	local c, s = cos:view(1, T, 1, D), sin:view(1, T, 1, D)
	local y = x:transpose(2, 3):contiguous()
	local ropes = found(function(_, v) return v * c + turned(v) * s end, y)
	assert(#ropes == 1 and ropes[1].attrs.axis == 2)
	ropes = found(function(_, v) return v * cos + turned(v) * sin end, x:select(1, 1):contiguous())
	assert(#ropes == 1 and not ropes[1].attrs.axis)
	local a = tensor.randn(B, T, D)
	ropes = found(function(_, v, u) return v * u:cos():unsqueeze(2) + turned(v) * u:sin():unsqueeze(2) end, {x, a})
	assert(#ropes == 1 and #ropes[1].inputs == 3)
end)

it('leaves what is something else', function()
	local c, s = cos:view(1, 1, T, D), sin:view(1, 1, T, D)
	local function none(f) assert(#found(f) == 0) end
	none(function(_, v) return v * c - turned(v) * s end)
	none(function(_, v) return v * c + turned(v * 2) * s end)
	none(function(_, v) return v * c + tensor.cat({v:narrow(4, D // 2 + 1, D // 2), v:narrow(4, 1, D // 2)}, {axis = 4}) * s end)
	none(function(_, v) return v * c + tensor.cat({v:narrow(4, 1, D // 2), -v:narrow(4, D // 2 + 1, D // 2)}, {axis = 4}) * s end)
	local wide = tensor.randn(1, H, T, D) -- other angles for each head
	none(function(_, v) return v * wide + turned(v) * wide end)
end)
