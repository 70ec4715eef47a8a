-- SPDX-License-Identifier: MIT
-- What the tests of nn.rnn, nn.lstm and nn.gru have in common: values and gradients against PyTorch 2 (float64, weights and
-- data as in data() below), gradients of all operands against finite differences, layouts, sizes, dtypes, threads, quantized
-- weights, errors. Gives a function of the layer's kind: op (its name), gates (rows of the weights for each unit), states (h, or
-- h and c), expected (PyTorch's numbers), exact (with quantized states one step is linear in them: checked closely) and options
-- (of every call). It runs the cases and gives the helpers.
return function(kind)
	local op, GATES, STATES, expected = kind.op, kind.gates, kind.states, kind.expected
	local names = {'x', 'h0', 'w_ih', 'w_hh', 'b_ih', 'b_hh'}
	if STATES == 2 then table.insert(names, 3, 'c0') end
	local function run(o, options)
		local list = {}
		for _, name in ipairs(names) do list[#list + 1] = o[name] end
		local all = {}
		for _, set in ipairs {kind.options or {}, options or {}} do
			for name, value in pairs(set) do all[name] = value end
		end
		list[#list + 1] = all
		return nn[op](table.unpack(list))
	end

	-- Elements sin(0.7 k + phase) / 2, k = 0, 1, ...; small random ones if there are many.
	local function wave(phase, ...)
		local n, list = 1, {}
		for _, size in ipairs {...} do n = n * size end
		if n > 1 << 16 then
			tensor.seed(phase)
			return tensor.randn(...):to 'float64' * 0.02
		end
		for k = 0, n - 1 do list[k + 1] = 0.5 * math.sin(0.7 * k + phase) end
		return tensor{dtype = 'float64', table.unpack(list)}:view(...)
	end

	local function data(b, t, i, h)
		local o = {w_ih = wave(1, GATES * h, i), w_hh = wave(2, GATES * h, h), b_ih = wave(3, GATES * h),
			b_hh = wave(4, GATES * h), x = wave(5, b, t, i), h0 = wave(6, b, h), c0 = STATES == 2 and wave(7, b, h) or nil}
		return o, {wave(8, b, t, h), wave(9, b, h), wave(10, b, h)}
	end

	-- The sum of the results, each with its weights.
	local function total(weights, ...)
		local sum
		for i, result in ipairs {...} do
			local part = (result * weights[i]:to(result:dtype())):sum()
			sum = sum and sum + part or part
		end
		return sum
	end

	local function with_grad(o, dtype)
		local copy = {}
		for name, t in pairs(o) do copy[name] = t:to(dtype):clone():requires_grad_() end
		return copy
	end

	local function worst(a, b)
		return (a:to 'float64' - b:to 'float64'):abs():max():item()
	end

	local function check(dtype, options, tolerance)
		local o, weights = data(2, 3, 2, 2)
		if options and options.batchfirst == false then
			o.x, weights[1] = o.x:transpose(1, 2), weights[1]:transpose(1, 2)
		end
		o = with_grad(o, dtype)
		local results = {run(o, options)}
		assert(#results == STATES + 1)
		total(weights, table.unpack(results)):backward()
		local function near(name, t)
			if t:dim() == 3 and options and options.batchfirst == false then t = t:transpose(1, 2) end
			local off = worst(t:contiguous():view(t:nelem()), tensor{dtype = 'float64', table.unpack(expected[name])})
			assert(off < tolerance, ('%s %s: %g'):format(name, dtype, off))
		end
		for i, name in ipairs {'y', 'h', STATES == 2 and 'c' or nil} do near(name, results[i]:detach()) end
		for _, name in ipairs(names) do near('d_' .. name, o[name]:grad()) end
	end

	it('has the values and gradients of PyTorch', function()
		check('float64', nil, 2e-8)
		check('float32', nil, 1e-6)
		check('float16', nil, 2e-3)
		check('float64', {batchfirst = false}, 2e-8)
		check('float32', {batchfirst = false}, 1e-6)
	end)

	-- Central differences, every element of every operand.
	local function differences(b, t, i, h, options)
		local o, weights = data(b, t, i, h)
		if options and options.batchfirst == false then weights[1] = weights[1]:view(t, b, h) o.x = o.x:view(t, b, i) end
		local leaf, step = with_grad(o, 'float64'), 1e-6
		total(weights, run(leaf, options)):backward()
		for _, name in ipairs(names) do
			local flat, gradient = o[name]:view(o[name]:nelem()), leaf[name]:grad():view(o[name]:nelem())
			for k = 1, flat:size(1) do
				local value = flat[k]:item()
				flat[k] = value + step
				local up = total(weights, run(o, options)):item()
				flat[k] = value - step
				local down = total(weights, run(o, options)):item()
				flat[k] = value
				local off = math.abs((up - down) / (2 * step) - gradient[k]:item())
				assert(off < 1e-7, ('%s %d of (%d, %d, %d, %d): %g'):format(name, k, b, t, i, h, off))
			end
		end
	end

	it('has the gradients of finite differences', function()
		differences(3, 4, 2, 3)
		differences(1, 1, 1, 1)
		differences(1, 3, 2, 2)
		differences(2, 1, 3, 2, {batchfirst = false})
		differences(3, 2, 2, 3, {batchfirst = false})
		local lengths = tensor {dtype = 'int64', 2, 0, 4}
		differences(2, 3, 2, 2, {reverse = true})
		differences(3, 4, 2, 3, {lengths = lengths})
		differences(3, 4, 2, 3, {lengths = lengths, reverse = true})
		differences(3, 4, 2, 2, {lengths = lengths, reverse = true, batchfirst = false})
	end)

	it('runs from the last step to the first', function()
		local o = data(3, 4, 2, 3)
		for _, first in ipairs {true, false} do
			local time = first and 2 or 1
			o.h0 = first and o.h0 or wave(6, 4, 3)
			o.c0 = STATES == 2 and (first and o.c0 or wave(7, 4, 3)) or nil
			local results, x = {run(o, {reverse = true, batchfirst = first})}, o.x
			o.x = x:flip(time)
			local other = {run(o, {batchfirst = first})}
			o.x = x
			assert(worst(results[1], other[1]:flip(time)) == 0)
			for i = 2, 1 + STATES do assert(worst(results[i], other[i]) == 0) end
		end
	end)

	-- Row b of the operands, its first n steps.
	local function row(o, b, n)
		local one = {}
		for name, t in pairs(o) do one[name] = t end
		for _, name in ipairs {'h0', 'c0'} do one[name] = o[name] and o[name][{{b, b}}] end
		one.x = o.x[{{b, b}, {1, n}}]
		return one
	end

	local function check_lengths(o, options)
		local steps, lengths = o.x:size(2), {}
		for b = 1, o.x:size(1) do lengths[b] = (5 * b) % (steps + 1) end
		options.lengths = tensor {dtype = 'int32', table.unpack(lengths)}
		local results = {run(o, options)}
		options.lengths = nil
		for b, n in ipairs(lengths) do
			if n < steps then assert(results[1][{{b, b}, {n + 1, steps}}]:abs():max():item() == 0) end
			local alone = n == 0 and {nil, o.h0[{{b, b}}], o.c0 and o.c0[{{b, b}}]} or {run(row(o, b, n), options)}
			if n > 0 then assert(worst(results[1][{{b, b}, {1, n}}], alone[1]) == 0) end
			for i = 2, 1 + STATES do assert(worst(results[i][{{b, b}}], alone[i]) == 0) end
		end
	end

	it('lengths: each sequence is computed as if it were alone', function()
		for _, reverse in ipairs {false, true} do
			check_lengths(data(7, 4, 3, 5), {reverse = reverse})
			local o = data(30, 3, 7, 33)
			for name, t in pairs(o) do o[name] = t:to 'float32' end
			check_lengths(o, {reverse = reverse})
			o.w_hh = o.w_hh:quantize 'int8/1'
			check_lengths(o, {reverse = reverse, states = 'int8'})
			local p = data(3, 4, 2, 2)
			local y = run(p, {reverse = reverse, lengths = tensor {dtype = 'int64', 3, 1, 4}})
			p.x = p.x:transpose(1, 2)
			assert(worst(y, run(p, {reverse = reverse, batchfirst = false, lengths = tensor {dtype = 'int64', 3, 1, 4}}):transpose(1, 2)) == 0)
			p.b_ih, p.b_hh = nil, nil
			assert(run(p, {reverse = reverse, batchfirst = false, lengths = tensor {dtype = 'int64', 0, 0, 0}}):abs():max():item() == 0)
		end
	end)

	it('gives gradients where they are wanted only, and when only the last state is used', function()
		local o, weights = data(2, 3, 2, 2)
		o.w_hh:requires_grad_()
		local _, h = run(o)
		total({weights[2]}, h):backward()
		assert(o.w_hh:grad() and not o.x:grad() and not o.b_ih:grad())
		local all = with_grad(data(2, 3, 2, 2), 'float64')
		_, h = run(all)
		total({weights[2]}, h):backward()
		assert(worst(all.w_hh:grad(), o.w_hh:grad()) == 0)
	end)

	it('runs without biases as with zeros', function()
		local o = data(2, 3, 2, 2)
		o.b_ih, o.b_hh = nil, nil
		local y = run(o)
		o.b_ih, o.b_hh = tensor.zeros{GATES * 2, dtype = 'float64'}, tensor.zeros{GATES * 2, dtype = 'float64'}
		assert(worst(y, (run(o))) == 0)
	end)

	local function bits(threads, b, t, i, h, options)
		local before = tensor.threads()
		tensor.threads(threads)
		local o, weights = data(b, t, i, h)
		o = with_grad(o, 'float32')
		local results = {run(o, options)}
		total(weights, table.unpack(results)):backward()
		tensor.threads(before)
		local list = {}
		for _, result in ipairs(results) do list[#list + 1] = result:detach() end
		for _, name in ipairs(names) do list[#list + 1] = o[name]:grad() end
		return list
	end

	it('has the same bits on any number of threads', function()
		local one = bits(1, 53, 9, 17, 67)
		for _, threads in ipairs {2, 3, 5} do
			for k, t in ipairs(bits(threads, 53, 9, 17, 67)) do assert(worst(t, one[k]) == 0) end
		end
		local h = math.floor(1600 / GATES ^ 0.5) -- w_hh is larger than the second-level cache: threads take steps together
		one = bits(1, 3, 3, 5, h)
		for k, t in ipairs(bits(3, 3, 3, 5, h)) do assert(worst(t, one[k]) == 0) end
		local options = {reverse = true, lengths = tensor {dtype = 'int64', 1, 3, 2}}
		one = bits(1, 3, 3, 5, h, options)
		for k, t in ipairs(bits(3, 3, 3, 5, h, options)) do assert(worst(t, one[k]) == 0) end
	end)

	it('agrees with the same layer in float64', function()
		local o = data(30, 5, 70, 300) -- several panels and depths of the product
		o.w_hh = o.w_hh * 0.05
		local wide = run(o)
		for name, t in pairs(o) do o[name] = t:to 'float32' end
		assert(worst(wide, (run(o))) < 1e-5)
	end)

	it('takes views, and steps of a batch as they lie', function()
		local o = data(2, 3, 2, 2)
		local y = run(o)
		local wide = tensor.zeros{2, 3, 4, dtype = 'float64'}
		wide[{{}, {}, {2, 3}}] = o.x
		o.x = wide[{{}, {}, {2, 3}}]
		o.w_ih = o.w_ih:t():contiguous():t()
		assert(worst(y, (run(o))) == 0)
	end)

	it('can be continued from its states', function()
		local o = data(2, 5, 2, 3)
		local y = run(o)
		local first, second = {}, {}
		for name, t in pairs(o) do first[name], second[name] = t, t end
		first.x, second.x = o.x[{{}, {1, 2}}], o.x[{{}, {3, 5}}]
		local a, h, c = run(first)
		second.h0, second.c0 = h, c
		local b = run(second)
		assert(worst(y, tensor.cat({a, b}, {axis = 2})) < 1e-15)
	end)

	local function plain32(b, t, i, h)
		local o = data(b, t, i, h)
		for name, value in pairs(o) do o[name] = value:to 'float32' end
		return o
	end

	local function row_of(op)
		for _, row in ipairs(quant.log()) do if row.op == op and row.count > 0 then return row end end
	end

	it('reads codes of weights, or decodes them once', function()
		local o = plain32(4, 6, 8, 8)
		local rounded = {}
		for name, t in pairs(o) do rounded[name] = t end
		o.w_ih, o.w_hh = o.w_ih:quantize 'int8/1', o.w_hh:quantize 'int4:4'
		rounded.w_ih, rounded.w_hh = o.w_ih:dequantize(), o.w_hh:dequantize()
		local y = run(rounded)
		quant.log 'reset'
		assert(worst(y, (run(o))) == 0)
		local row = row_of(op)
		assert(row.path == 'weight_only' and row.count == 1)
		quant.log 'reset'
		assert(worst(y, (run(o, {states = 'int8'}))) == 0)
		row = row_of(op)
		assert(row.path == 'fallback' and row.count == 1 and row.reason:find 'not symmetric int8')
		quant.fallback 'error'
		local ok, message = pcall(run, o, {states = 'int8'})
		quant.fallback 'silent'
		assert(not ok and message:find(op .. ': wanted an integer kernel', 1, true), message)
	end)

	it('multiplies quantized x and w_ih in integers', function()
		local o = plain32(4, 6, 8, 8)
		o.x, o.w_ih = o.x:quantize 'uint8', o.w_ih:quantize 'int8/1'
		quant.log 'reset'
		local y = run(o)
		assert(row_of 'linear'.kernel:find '^gemm_i8' and row_of(op).path == 'mixed')
		o.x, o.w_ih = o.x:dequantize(), o.w_ih:dequantize()
		assert(worst(y, (run(o))) < 1e-5)
	end)

	it('quantizes the states and multiplies in integers', function()
		local o = plain32(5, 1, 8, 70)
		local q = {}
		for name, t in pairs(o) do q[name] = t end
		q.w_hh = o.w_hh:quantize 'int8/1'
		quant.log 'reset'
		quant.fallback 'error'
		local y = run(q, {states = 'int8'})
		quant.fallback 'silent'
		local row = row_of(op)
		assert(row.path == 'mixed' and row.kernel:find '^gemm_i8' and row.count == 1)
		o.w_hh = q.w_hh:dequantize()
		local exact = run(o) -- h as it was
		assert(worst(y, exact) > 0 and worst(y, exact) < 0.02)
		if kind.exact then
			o.h0 = o.h0:quantize 'int8/1':dequantize() -- with one step this is all
			assert(worst(y, (run(o))) < 1e-5)
		end
		q.x, q.w_ih = q.x:quantize 'uint8', q.w_ih:quantize 'int8'
		run(q, {states = 'int8'})
		assert(row_of(op).path == 'int8' or quant.log():where{op = op, path = 'int8'}[1])
	end)

	it('has the same bits in integers on any number of threads and with steps apart', function()
		local o = plain32(53, 7, 9, 33)
		o.w_hh = o.w_hh:quantize 'int8'
		local before, y, h = tensor.threads(), nil, nil
		for threads = 1, 3 do
			tensor.threads(threads)
			local again, last = run(o, {states = 'int8'})
			if y then assert(worst(y, again) == 0 and worst(h, last) == 0) end
			y, h = again, last
		end
		tensor.threads(before)
		o.x = o.x:transpose(1, 2):contiguous()
		assert(worst(y, (run(o, {states = 'int8', batchfirst = false})):transpose(1, 2)) == 0)
	end)

	it('says why it cannot multiply the states in integers', function()
		local o = plain32(4, 6, 8, 8)
		local ok, message = pcall(run, o, {states = 'int8'})
		assert(not ok and message:find(('%s: states: wanted a quantized w_hh, got float32(%d, 8)'):format(op, GATES * 8), 1, true), message)
		ok, message = pcall(run, o, {states = 'int4'})
		assert(not ok and message:find(op .. ': states: wanted', 1, true), message)
		local w = o.w_hh
		for spec, reason in pairs {['int4/1'] = 'not symmetric int8', ['int8:4'] = 'varies', ['int8/2'] = 'varies',
			uint8 = 'not symmetric int8'} do
			o.w_hh = w:quantize(spec)
			quant.log 'reset'
			local y = run(o, {states = 'int8'})
			local row = row_of(op)
			assert(row.path == 'fallback' and row.reason:find(reason), row.reason)
			o.w_hh = o.w_hh:dequantize()
			assert(worst(y, (run(o))) == 0)
		end
	end)

	it('keeps nothing after backward', function()
		local o, weights = data(3, 4, 5, 6)
		o = with_grad(o, 'float32')
		local function step()
			for _, name in ipairs(names) do o[name]:zero_grad() end
			total(weights, run(o)):backward()
			collectgarbage() collectgarbage()
			return tensor.memory().now
		end
		step()
		local before = step()
		assert(step() == before)
		tensor.nograd(function() run(o) end)
		collectgarbage() collectgarbage()
		assert(tensor.memory().now == before)
	end)

	it('refuses what does not fit', function()
		local function refused(pattern, change, options)
			local o = data(2, 3, 2, 2)
			for name, value in pairs(change) do o[name] = value or nil end
			local ok, message = pcall(run, o, options)
			assert(not ok and message:find(op .. ': ' .. pattern, 1, true), message)
		end
		local rows = GATES * 2
		local function f64(...) return tensor.zeros{dtype = 'float64', ...} end
		refused('wanted x with 3 axes and h (batch, hidden), got (2, 2) and (2, 2)', {x = f64(2, 2)})
		refused('x: wanted at least one step, got none', {x = f64(2, 0, 2)})
		refused('h: wanted shape (2, 2), got (3, 2)', {h0 = f64(3, 2)})
		refused('h: wanted shape (3, 2), got (2, 2)', {}, {batchfirst = false})
		refused(('w_ih: wanted shape (%d, 2), got (%d, 3)'):format(rows, rows), {w_ih = f64(rows, 3)})
		refused(('w_hh: wanted shape (%d, 2), got (%d, 3)'):format(rows, rows), {w_hh = f64(rows, 3)})
		refused(('b_hh: wanted shape (%d), got (1)'):format(rows), {b_hh = f64(1)})
		refused('operand 2: wanted float64, as x is, got float32(2, 2)', {h0 = tensor.zeros(2, 2)})
		refused('operand 1: wanted a float up to 32 bits or a quantized tensor, got int32(2, 3, 2)',
			{x = tensor.zeros{2, 3, 2, dtype = 'int32'}})
		refused("unknown option 'batchfrist'; did you mean 'batchfirst'?", {}, {batchfrist = true})
		local function lengths(...) return {lengths = tensor {dtype = 'int64', ...}} end
		refused('lengths: wanted integers (2), one for each row of the batch, got int64(3)', {}, lengths(1, 2, 3))
		refused('lengths: wanted 0 to 3 steps, got 4', {}, lengths(1, 4))
		refused('lengths: wanted 0 to 3 steps, got -1', {}, lengths(-1, 3))
		refused('lengths: wanted a tensor of int, got float32(2)', {}, {lengths = tensor {1, 2}})
		local o = data(2, 3, 2, 2)
		o.b_hh = nil
		local ok, message = pcall(run, o)
		assert(not ok and message:find('b_hh: wanted both biases or none, got one', 1, true), message)
	end)

	it('takes an empty batch and an empty input', function()
		local o = data(2, 3, 2, 2)
		o.x, o.h0, o.c0 = o.x[{{1, 2}, {}, {1, 2}}]:clone(), o.h0, o.c0
		local function f64(...) return tensor.zeros{dtype = 'float64', ...} end
		local y = run{x = f64(0, 3, 2), h0 = f64(0, 2), c0 = STATES == 2 and f64(0, 2) or nil, w_ih = o.w_ih, w_hh = o.w_hh}
		assert(y:size(1) == 0 and y:size(2) == 3 and y:size(3) == 2)
		y = run{x = f64(2, 3, 0), h0 = o.h0, c0 = o.c0, w_ih = f64(GATES * 2, 0), w_hh = o.w_hh}
		o.w_ih, o.b_ih, o.b_hh = f64(GATES * 2, 2), nil, nil
		assert(worst(y, (run(o))) == 0)
	end)

	it('keeps no second copy of a w_hh whose panels are larger than its codes', function()
		local o = plain32(3, 2, 8, 70)
		o.w_hh = o.w_hh:quantize 'int8/1'
		local function fresh()
			local copy = {}
			for name, t in pairs(o) do copy[name] = t:clone() end
			return (run(copy, {states = 'int8'}))
		end
		local function now()
			collectgarbage() collectgarbage()
			return tensor.memory().now
		end
		local y, before = fresh(), now()
		for _ = 1, 4 do assert(worst((run(o, {states = 'int8'})), y) == 0) end
		assert(now() - before < 0.1 * GATES * 70 * 70, now() - before)
		o.w_hh[3][5] = o.w_hh[3][5]:item() > 0 and -0.1 or 0.1
		local other = fresh()
		assert(worst((run(o, {states = 'int8'})), other) == 0 and worst(other, y) > 0)
	end)

	it('has panels in the place of the codes of w_hh, which others find', function()
		tensor.seed(5)
		local o = data(3, 4, 16, 128)
		o.w_hh = tensor.randn(GATES * 128, 128):quantize 'int8/1'
		for name, t in pairs(o) do if name ~= 'w_hh' then o[name] = t:to 'float32' end end
		local function now()
			collectgarbage() collectgarbage()
			return tensor.memory().now
		end
		local codes = o.w_hh:codes():clone()
		local y, float = run(o, {states = 'int8'}), run(o)
		local before = now()
		for _ = 1, 4 do assert(worst((run(o, {states = 'int8'})), y) == 0) end
		assert(now() - before < 0.1 * GATES * 128 * 128, now() - before)
		assert(o.w_hh:codes():eq(codes):all():item() and worst((run(o)), float) == 0)
		assert(tensor.randn(2, 128):linear(o.w_hh):nelem() == 2 * GATES * 128)
		assert(worst((run(o, {states = 'int8'})), y) == 0)
		o.w_hh[3][5] = o.w_hh[3][5]:item() > 0 and -0.1 or 0.1
		for _ = 1, 3 do assert(worst((run(o, {states = 'int8'})), y) > 0) end
	end)

	return {run = run, data = data, with_grad = with_grad, total = total, worst = worst}
end
