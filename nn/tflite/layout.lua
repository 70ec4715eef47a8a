-- SPDX-License-Identifier: MIT
-- The two forms of a value. TFLite has the channels of images last, (batch, height, width, channel); Quoll's convolutions have them
-- second. A value has one of the forms, or both once the other was asked for, so that between ops on images nothing is turned:
--   plain   in the order of the file
--   image   of four axes only: (batch, channel, height, width)
local _, internal = ...
local module = internal.import 'nn/base/module'
local layout = {TO_IMAGE = {1, 4, 2, 3}, TO_PLAIN = {1, 3, 4, 2}}

-- An axis of the plain form (from 1) in the image.
layout.AXIS = {1, 3, 4, 2}

-- Whether the elements are one after the other. Axes of one element count, too: so the answer is the same for every batch.
function layout.is_dense(x)
	local strides, step = {x:stride()}, 1
	for i = x:dim(), 1, -1 do
		if strides[i] ~= step then return false end
		step = step * x:size(i)
	end
	return true
end

-- x for x:view(…).
function layout.whole(x) return layout.is_dense(x) and x or x:contiguous() end

-- Where the channels or the pixels are one, the elements are in one order. The nodes belong to no layer.
local function turn(x, order, single)
	local sizes, made, tracer = {x:size()}, {}, module.tracer
	local scope = tracer.scope
	for i, axis in ipairs(order) do made[i] = sizes[axis] end
	tracer.scope = nil
	local y = single(sizes) and layout.is_dense(x) and x:view(table.unpack(made)) or x:permute(table.unpack(order))
	tracer.scope = scope
	return y
end

function layout.plain(v)
	if not v.plain then
		v.plain = turn(v.image, layout.TO_PLAIN, function(s) return s[2] == 1 or s[3] == 1 and s[4] == 1 end)
	end
	return v.plain
end

function layout.image(v)
	if not v.image then
		v.image = turn(v.plain, layout.TO_IMAGE, function(s) return s[4] == 1 or s[2] == 1 and s[3] == 1 end)
	end
	return v.image
end

function layout.any(v) return v.image or v.plain end

-- The value of a tensor in one of the forms.
function layout.value(x, is_image)
	if is_image then return {image = x} end
	return {plain = x}
end

return layout
