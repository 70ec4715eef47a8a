-- SPDX-License-Identifier: MIT
-- Section load: time of graph.load beside an onnxruntime session with basic optimization.
local _, judges = ...
local ask = judges.ask

local function section()
	local rows, paths, files = {columns = {'model', 'ours ms', 'onnxruntime ms', 'ratio'}}, {}, {}
	for _, file in ipairs(judges.files) do
		local path = data.find(file[1])
		if path then paths[#paths + 1], files[#files + 1] = '"' .. path .. '"', file end
	end
	if #paths == 0 then return nil, 'the data folder (QUOLL_DATA) has no models' end
	local ok, out = ask('load', table.unpack(paths))
	if not ok then return nil, 'onnxruntime could not load the files' end
	local theirs = out:gmatch '[%d.]+'
	for i, file in ipairs(files) do
		local best = bench.time(function() graph.load {data.find(file[1]), inputs = file[2]} end, {runs = 5, calls = 1}).min
		local other = tonumber(theirs())
		rows[i] = {file[1]:match '[^/]+$', ('%.1f'):format(best), ('%.1f'):format(other), ('%.2f'):format(best / other)}
	end
	return rows
end

return {needs = 'onnxruntime', run = section}
