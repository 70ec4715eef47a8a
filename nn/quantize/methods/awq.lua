-- SPDX-License-Identifier: MIT
-- AWQ (arXiv 2306.00978): inputs with large activations get larger weights before rounding, by factors that the part before takes back.
local internal = select(2, ...)
local folds = internal.import 'nn/quantize/folds'
local moments = internal.import 'nn/quantize/moments'

local STEPS, CLIPS = 20, 10

-- The factors for the exponent r: a^r, their largest and smallest around 1.
local function factors(a, r)
	local s = (a ^ r):clamp {low = 1e-4}
	return s / math.sqrt(s:max():item() * s:min():item())
end

-- The mean magnitude of each channel.
local function magnitudes(t, n)
	local a = t.magnitude
	return (a:size(1) == n and a or a:view(n, a:size(1) // n):mean {axis = 2}):to 'float32'
end

-- The squared error in the outputs of the layers if their weights are rounded with these factors.
local function loss(stage, s)
	local sum = 0
	for _, t in ipairs(stage) do
		local each = folds.spread(t, s):view(1, t.float:size(2))
		local q = (t.float * each):quantize(t.spec):dequantize() / each
		sum = sum + moments.error(t.h, q - t.float)
	end
	return sum
end

local function search(block, stage, o)
	block:measure(stage, {'h', 'magnitude'})
	local t = stage[1]
	local f, why = folds.find(block, stage)
	if not f then return why end
	local a = magnitudes(t, f.size)
	local best, at
	for i = 0, (o.steps or STEPS) - 1 do
		local s = factors(a, i / (o.steps or STEPS))
		local e = loss(stage, s)
		if not best or e < best then best, at = e, i end
	end
	if at == 0 then return 'factors do not help' end
	f:apply(factors(a, at / (o.steps or STEPS)))
	block.folds[#block.folds + 1] = f
	return ("factors of '%s', exponent %.2f"):format(f.path, at / (o.steps or STEPS))
end

-- The moments within each group of columns that has a scale of its own: (groups, size, size).
local function within(h, size)
	local list = {}
	for at = 1, h:size(1), size do list[#list + 1] = h:narrow(1, at, size):narrow(2, at, size) end
	return tensor.stack(list)
end

-- Clips each group of weights where that makes the outputs of the group better.
local function clip(t)
	local rows, n = t.weight:size(1), t.weight:size(2)
	local size = t.spec.block or n
	if not t.h or t.h:dim() ~= 2 or n % size ~= 0 then return 'not clipped: its groups have no moments of their own' end
	local g, shape = within(t.h, size), {rows, n // size, size}
	local function grouped(w) return w:view(shape):permute(2, 1, 3) end
	local w = grouped(t.weight)
	local most, best, bound = w:abs():max {axis = 3, keep = true}, nil, nil
	for i = 0, CLIPS - 1 do
		local limit = most * (1 - i / (2 * CLIPS))
		local clipped = w:minimum(limit):maximum(-limit):permute(2, 1, 3):reshape(rows, n)
		local e = grouped(clipped:quantize(t.spec):dequantize() - t.weight):to 'float64'
		local err = e:matmul(g):mul(e):sum {axis = 3, keep = true}
		local better = best and err:lt(best)
		best, bound = best and tensor.where(better, err, best) or err, bound and tensor.where(better, limit, bound) or limit
	end
	t.weight = w:minimum(bound):maximum(-bound):permute(2, 1, 3):reshape(rows, n)
end

return {
	phase = 'block', needs = 'moments',
	text = [[AWQ: weights of inputs with large activations are scaled up before rounding, and the norm or layer before divides. Needs something before the layer that
can take the factors. Fast; for 4 bits in blocks, best before a method that decides codes.]],
	options = {{'steps', 'positive integer', 'exponents that are tried (default 20)'},
		{'clip', 'true or false', 'also clip the weights under each scale where their outputs gain (default false)'}},
	each = function(t, o)
		if o.clip then t:say(clip(t)) end
	end,
	run = function(block, o)
		for _, stage in ipairs(block.stages) do
			if #block:with_columns(stage) == #stage then
				local why = search(block, stage, o)
				for _, t in ipairs(stage) do t:say(why) end
			end
		end
	end,
}
