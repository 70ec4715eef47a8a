-- SPDX-License-Identifier: MIT
-- Section files: the models of the data folder (QUOLL_DATA): outputs beside onnxruntime without optimization.
local _, judges = ...
local ask, folder = judges.ask, judges.folder

local function section()
	local rows = {columns = {'model', 'nodes', 'load ms', 'error / largest output'}}
	for _, file in ipairs(judges.files) do
		local path = data.find(file[1])
		if not path then
			rows[#rows + 1] = {file[1], '-', '-', 'skipped: not in the data folder (QUOLL_DATA)'}
		elseif ask('run', path, folder, file[3] or '') then
			rows[#rows + 1] = judges.row_of(file[1]:match '[^/]+$', path, file[2], folder .. '/m.npz')
		else
			rows[#rows + 1] = {file[1], '-', '-', 'not judged: onnxruntime failed'}
		end
	end
	return rows
end

return {needs = 'onnxruntime', run = section}
