-- SPDX-License-Identifier: MIT
-- Methods of observers that present data measured in C: stats as a report, the histogram as a figure.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local report = internal.import 'interp/prelude/report'
local doc = base.doc
local methods = debug.getregistry()['quoll.observer'].methods

doc {name = 'observer:stats', usage = 'o:stats()',
	text = [[What the observer has seen, as a report of one row: count (finite values), nonfinite (NaN and infinities, left out
otherwise), batches, min, max, mean, std, outliers (percent of the values more than 3 standard deviations from the mean; a
normal distribution has 0.27), clipped (percent outside of what the codes hold), drifts (how often adaptive found the data
changed), suggested: the simplest of minmax, percentile, entropy and mse whose squared error on these values is within
0.1 dB of the least.]],
	example = [[o = quant.observer 'int8'
o:update(tensor{1, 2, 3, 0/0})
print(o:stats().count, o:stats().nonfinite, o:stats().mean)  --> 3 1 2.0]]}
local function check_self(o, name)
	if debug.getmetatable(o) ~= debug.getregistry()['quoll.observer'] then
		base.fail('%s: wanted an observer, as in o:%s(), got %s', name, name, base.describe(o))
	end
end

function methods.stats(o)
	check_self(o, 'stats')
	local m = o:measure()
	m.outliers, m.clipped = 100 * m.outliers, 100 * m.clipped
	return report{columns = {'count', 'nonfinite', 'batches', 'min', 'max', 'mean', 'std', 'outliers', 'clipped', 'drifts',
		'suggested'}, m}
end

-- The bins that `shown` selects, as the points of a staircase with a gap (one NaN) where some are left out.
local function staircase(h, shown)
	local points, open = {}, false
	for i, count in ipairs(h.counts) do
		local left, right = h.edges[i], h.edges[i + 1]
		if count > 0 and shown(left, right) then
			points[#points + 1] = {left, count}
			points[#points + 1] = {right, count}
			open = true
		elseif open then
			points[#points + 1] = {left, 0 / 0}
			open = false
		end
	end
	return points
end

local options = doc {name = 'observer:plot', usage = "o:plot{file='histogram.png'}",
	text = [[The histogram of the values seen, counts on a logarithmic axis, with the ends of the chosen range and the part of the
values outside of it, whose share is in the title. Returns the figure.]],
	options = {{'file', 'text', 'file to write: .png .svg .pdf (default: show it)'},
		{'bins', 'integer', 'bars over the whole range (default 256)'},
		{'scale', 'integer', 'which scale, of a spec with an axis (default 1)'}, {'title', 'text', 'instead of the usual title'}},
	example = [[o = quant.observer 'int8@percentile'
o:update(tensor.randn(10000))
o:plot{file='histogram.svg'}]]}
function methods.plot(o, given)
	check_self(o, 'plot')
	given = base.options(options, given)
	local index = given.scale or 1
	local h = o:histogram(given.bins or 256, index)
	local lo, hi = o:range()
	if type(lo) ~= 'number' then lo, hi = lo[index]:item(), hi[index]:item() end
	local all = staircase(h, function() return true end)
	local beyond = staircase(h, function(left, right) return left < lo or right > hi end)
	local series, names = {all}, {'values'}
	if #beyond > 0 then series[2], names[2] = beyond, 'clipped' end
	local title = given.title or ('%s: %.3g to %.3g, %.3g %% clipped'):format(tostring(o.spec), lo, hi, 100 * o:measure().clipped)
	return plot.line{series[1], series[2], names = names, xlabel = 'value', ylabel = 'count', ylog = true,
		vlines = {lo = lo, hi = hi}, title = title, file = given.file}
end

return methods
