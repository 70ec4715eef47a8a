-- SPDX-License-Identifier: MIT
-- Section run: time of g:run, float32 and static int8, one row, 1 and 2 threads, beside onnxruntime (default optimization; quantize_static
-- with the same input) and LiteRT (XNNPACK); the least of three turns.
local _, judges = ...
local ask, folder, internal = judges.ask, judges.folder, judges.internal

local function times(runs, turns)
	local least = {}
	for _ = 1, turns do
		for i, f in ipairs(runs) do
			local ms = f()
			least[i] = ms and math.min(ms, least[i] or ms)
		end
	end
	return least
end

local function our_run(g, x) return function() return bench.time(function() g:run(x) end, {runs = 20, timeout = 1}).min end end

local function their_run(path, threads)
	return function()
		local ok, out = ask('time', path, folder, threads)
		return ok and tonumber(out) or nil
	end
end

local function ms(value) return value and ('%.3f'):format(value) or '-' end

local function over(a, b) return a and b and ('%.2f'):format(a / b) or '-' end

-- The graphs, ours and the files of the others: {float, int8}.
local function contenders(path, file)
	local g = graph.load {path, inputs = file[2]}
	local t, given, by_name = tensor.load(folder .. '/m.npz'), {}, {}
	if path:find '%.tflite$' then return {g}, {path}, t['in'] end
	for name in next, t do by_name[internal.import 'nn/onnx/read'.clean(name:gsub('^in%.', ''))] = t[name] end
	for i, name in ipairs(g.inputs) do given[i] = by_name[name] end
	local x = #given == 1 and given[1] or given
	return {g, (g:calibrate({{x, x}}, {log = false}):quantize {mode = 'static'})}, {path, ask('static', path, folder) and folder .. '/static.onnx'}, x
end

local function section()
	local rows = {columns = {'model', 'threads', 'numbers', 'ours ms', 'theirs ms', 'ratio'}}
	local before = tensor.threads()
	for _, file in ipairs {judges.files[3], judges.files[4], judges.files[5], judges.files[6], judges.files[7], {'models/kws/kws_int8.tflite'}} do
		local path = data.find(file[1])
		if path and (path:find '%.tflite$' and ask('tflite', path, folder, 1) or ask('run', path, folder, file[3] or '')) then
			local graphs, files, x = contenders(path, file)
			for threads = 1, 2 do
				tensor.threads(threads)
				for i, g in ipairs(graphs) do
					local t = times({our_run(g, x), files[i] and their_run(files[i], threads) or function() end}, 3)
					rows[#rows + 1] = {file[1]:match '[^/]+$', threads, (i == 2 or #graphs == 1) and 'int8' or 'float32', ms(t[1]), ms(t[2]), over(t[1], t[2])}
				end
			end
		else
			rows[#rows + 1] = {file[1], '-', '-', '-', '-', 'skipped: not in the data folder (QUOLL_DATA)'}
		end
	end
	tensor.threads(before)
	return rows
end

return {needs = 'onnx, onnxruntime, ai_edge_litert', run = section}
