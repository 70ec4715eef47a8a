-- SPDX-License-Identifier: MIT
-- Section ops: each op of TFLite, by types, beside LiteRT's reference kernels: what differs.
local here, judges = ...
local ask, folder = judges.ask, judges.folder

local function exists(path)
	local handle = io.open(path)
	return handle and handle:close()
end

-- Of the results of a model beside LiteRT's: nil, or how many differ.
local function differing(ys, path)
	local off, all, most = 0, 0, 0
	for k, y in ipairs(ys) do
		local want = tensor.load(('%s_out_%d.npy'):format(path, k))
		y = y:quantized() and y:codes() or y
		if table.concat({y:size()}, 'x') ~= table.concat({want:size()}, 'x') then return 'another shape' end
		local error = (y:to 'float64' - want:to 'float64'):abs()
		if quant.dtype(want:dtype()).float then error = error * error:gt(1e-5 * want:to 'float64':abs():max():item()):to 'float64' end
		if error:nelem() > 0 then
			off, all, most = off + error:gt(0):to 'int64':sum():item(), all + error:nelem(), math.max(most, error:max():item())
		end
	end
	return off > 0 and ('%d of %d, by %g'):format(off, all, most) or nil
end

-- One row for each op: what differs by type; of others every code is equal, and floats within 1e-5 of the largest.
local function section()
	local tflite = dofile(here .. '../tests/tools/tflite.lua')
	local cases, dir = dofile(here .. 'models/tflite_ops.lua'), folder .. '/ops'
	os.execute(('mkdir "%s"'):format(dir))
	for i, c in ipairs(cases) do
		local m, given = tflite.single(c.op, c.inputs, c.options, c.o)
		local out <close> = assert(io.open(('%s/%d.tflite'):format(dir, i), 'wb'))
		out:write(tflite.bytes(m))
		c.given = given
		for k, x in ipairs(given) do tensor.save(('%s/%d_%d.npy'):format(dir, i, k), x:quantized() and x:codes() or x) end
	end
	ask('ops', dir, #cases)
	local rows, list, equal = {columns = {'case', 'result'}}, {}, {}
	for i, c in ipairs(cases) do
		local path, result = ('%s/%d'):format(dir, i), 'not in LiteRT'
		if exists(path .. '_out_1.npy') then
			local ok, g = pcall(graph.load, path .. '.tflite')
			local ys = ok and table.pack(pcall(g.run, g, #c.given == 1 and c.given[1] or c.given))
			if ys and ys[1] then
				result = differing(#ys == 2 and type(ys[2]) == 'table' and ys[2] or {table.unpack(ys, 2, ys.n)}, path)
			else
				result = tostring(ys and ys[2] or g)
			end
		end
		if result then rows[#rows + 1] = {c.name, result} else
			equal[c.op] = (equal[c.op] or 0) + 1
			if equal[c.op] == 1 then list[#list + 1] = c.op end
		end
	end
	for k, op in ipairs(list) do list[k] = ('%s %d'):format(op, equal[op]) end
	rows[#rows + 1] = {'equal', table.concat(list, ', ')}
	return rows
end

return {needs = 'ai_edge_litert', run = section}
