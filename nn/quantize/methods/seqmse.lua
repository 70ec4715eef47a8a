-- SPDX-License-Identifier: MIT
-- SeqMSE (AIMET; TensorRT Model Optimizer): of some clipped ranges of each scale, that of the least squared error in the layer's outputs,
-- tr(E H E') of its row. Scales of blocks are chosen one after the other, beside the errors that the other blocks of the row have then.
local internal = select(2, ...)
local Groups = internal.import 'nn/quantize/groups'
local Scales = internal.import 'nn/quantize/scales'

local STEPS, LOW = 20, 0.5

local function ratio(i, o) return 1 - i * (1 - (o.low or LOW)) / (o.steps or STEPS) end

-- The moments and a matrix as (groups of outputs, rows, columns), in float64.
local function moments_of(t) return t.h:dim() == 3 and t.h or t.h:unsqueeze(1) end
local function in_groups(h, e) return e:to 'float64':view(h:size(1), e:size(1) // h:size(1), e:size(2)) end

-- The best ratio of rows (or of the whole weight, if these have one scale).
local function rows(t, s, o)
	local h, best, r = moments_of(t), nil, nil
	for i = 0, (o.steps or STEPS) - 1 do
		local e = in_groups(h, s:decoded(ratio(i, o)) - t.float)
		local noise = e:matmul(h):mul(e):sum {axis = 3}:view(t.float:size(1), 1)
		if s.groups.rows == 1 then noise = noise:sum():view(1, 1) end
		local here = tensor.zeros {noise:size(1), 1, device = noise:device()} + ratio(i, o)
		local better = best and noise:lt(best)
		best, r = best and tensor.where(better, noise, best) or noise, r and tensor.where(better, here, r) or here
	end
	return r
end

-- The best ratio of block k of each row, and its errors, which take their place in e.
local function block(t, s, h, e, k, o)
	local at = (k - 1) * s.groups.size + 1
	local part = s:part(k)
	local n = part.weight:size(2)
	local float, mine = t.float:narrow(2, at, n):contiguous(), e:narrow(3, at, n)
	local own = h:narrow(2, at, n):narrow(3, at, n):contiguous()
	local others = (e:matmul(h:narrow(3, at, n):contiguous()) - mine:contiguous():matmul(own)) * 2
	local best, r, kept
	for i = 0, (o.steps or STEPS) - 1 do
		local d = in_groups(h, part:decoded(ratio(i, o)) - float)
		local noise = (d:matmul(own) + others):mul(d):sum {axis = 3, keep = true}
		local here = tensor.zeros {noise:size(1), noise:size(2), 1, device = noise:device()} + ratio(i, o)
		local better = best and noise:lt(best)
		kept, r, best = best and tensor.where(better, d, kept) or d, best and tensor.where(better, here, r) or here,
			best and tensor.where(better, noise, best) or noise
	end
	mine:copy_(kept)
	return r:view(t.float:size(1), 1)
end

local function blocks(t, s, o)
	local h, list = moments_of(t), {}
	local e = in_groups(h, s:decoded(1) - t.float):clone()
	for k = 1, s.groups.count do list[k] = block(t, s, h, e, k, o) end
	return tensor.cat(list, {axis = 2})
end

return {
	phase = 'ranges', needs = 'moments',
	text = [[SeqMSE: ranges are clipped where that makes the outputs of the layer better on the calibration data. Before rounding, or before gptq.
Takes about as long as 20 products with the weight.]],
	options = {{'steps', 'positive integer', 'ranges that are tried (default 20)'}, {'low', 'number', 'below which ranges are not clipped, times the full range (default 0.5)'}},
	refuses = function(item)
		if Groups.across(item.spec) and item.spec.block then return "wanted blocks along the inputs, got '" .. tostring(item.spec) .. "'" end
	end,
	run = function(t, o)
		if not t.h then return t:say 'its inputs are no columns that it is multiplied with: full ranges' end
		if Groups.across(t.spec) then return t:say 'its scales are those of inputs: full ranges' end
		local s = Scales.of(t.weight, t.spec)
		local r = t.spec.block and blocks(t, s, o) or rows(t, s, o)
		t.spec, t.weight = s:times(r:to 'float32')
	end,
}
