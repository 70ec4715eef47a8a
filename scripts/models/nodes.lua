-- SPDX-License-Identifier: MIT
-- Section nodes: the node tests of the onnx package.
local _, judges = ...
local ask, folder, internal = judges.ask, judges.folder, judges.internal
local json = internal.import 'interp/prelude/json'

local function read(path)
	local box = internal.onnx_open(path)
	if not box then return nil end
	local file <close> = assert(io.open(path, 'rb'))
	return (internal.onnx_tensor(box, 0, file:seek 'end'))
end

local function close(a, b)
	a = a:quantized() and a:codes() or a
	if a:dtype() ~= b:dtype() or a:dim() ~= b:dim() then return false end
	for i = 1, a:dim() do
		if a:size(i) ~= b:size(i) then return false end
	end
	local info = quant.dtype(b:dtype())
	local x, y, relative = a:to 'float64', b:to 'float64', info.float and math.max(1e-3, 2.0 ^ (2 - info.digits)) or 1e-3
	return x:nelem() == 0 or (x:eq(y) | (x:isnan() & y:isnan()) | (x - y):abs():le(y:abs() * relative + 1e-5)):all():item()
end

-- The graph and its inputs: those that say sizes become constants.
local function load_case(case, values)
	local path = folder .. '/' .. case.name .. '.onnx'
	local ok, g = pcall(graph.load, path)
	if ok then return g, values end
	for first = 2, 1, -1 do
		local fixed, rest = {}, {}
		for k, name in ipairs(case.inputs) do
			if k >= first then fixed[name] = values[k] else rest[#rest + 1] = values[k] end
		end
		ok, g = pcall(graph.load, {path, inputs = fixed})
		if ok then return g, rest end
	end
	return nil, g
end

local function judge_case(case)
	local values = {}
	for k in ipairs(case.inputs or {}) do values[k] = read(('%s/%s.in%d.pb'):format(folder, case.name, k - 1)) or false end
	for _, v in ipairs(values) do
		if not v then return 'refused' end
	end
	local g, given = load_case(case, values)
	if not g then return 'refused', given end
	local ok, results = pcall(function() return {g:run(#given == 1 and given[1] or given)} end)
	if not ok then return 'wrong', results end
	for k = 1, case.outputs do
		local want = read(('%s/%s.out%d.pb'):format(folder, case.name, k - 1))
		if want and not close(results[k], want) then return 'wrong', 'values' end
	end
	return 'right'
end

local function section()
	if not ask('nodes', folder) then return nil, 'the node tests could not be made' end
	local file <close> = assert(io.open(folder .. '/index.json'))
	local count, rows = {right = 0, refused = 0, wrong = 0}, {columns = {'case', 'why'}}
	for _, case in ipairs(json(file:read 'a')) do
		local verdict, why = 'refused', nil
		if not case.skip then verdict, why = judge_case(case) end
		count[verdict] = count[verdict] + 1
		if verdict == 'wrong' then rows[#rows + 1] = {case.name, tostring(why):sub(1, 100)} end
	end
	rows.note = ('%d right, %d refused, %d wrong'):format(count.right, count.refused, count.wrong)
	return rows
end

return {needs = 'onnx', run = section}
