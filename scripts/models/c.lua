-- SPDX-License-Identifier: MIT
-- Section c: the exported C of models: its self-test and memory, without a judge.
local _, judges = ...
local run, folder = judges.run, judges.folder

local function c_of(name, path, inputs)
	local at = ('%s/%s_c'):format(folder, name)
	graph.load {path, inputs = inputs}:export {dir = at, name = name}
	local made, out = run(('make -s -C "%s" && "%s/%s" --selftest'):format(at, at, name))
	local header <close> = assert(io.open(('%s/%s.h'):format(at, name)))
	return {name, header:read 'a':match '_ARENA_BYTES (%d+)', made and out:match '[^\n]*passed[^\n]*' or 'failed: ' .. out:sub(-80)}
end

local function section()
	local rows = {columns = {'model', 'arena bytes', 'self-test'}}
	local list = {{'models/kws/kws_int8.tflite'}, {'models/yunet/yunet_n_320_320.onnx'}, judges.files[2], {'models/dtln/model_1.onnx'}, {'models/dtln/model_2.onnx'}}
	for i, file in ipairs(list) do
		local path = data.find(file[1])
		rows[i] = path and c_of(file[1]:match '/([%w_]+)%.%w+$', path, file[2]) or {file[1], '-', 'skipped: not in the data folder (QUOLL_DATA)'}
	end
	return rows
end

return {run = section}
