-- SPDX-License-Identifier: MIT
-- What moves between the host and the device in a training step, and what runs on the host, of small versions of the nets of the
-- tutorials. A step may write its batch and read its loss (with clip= also the norm of the gradients, in mode qat a range for each
-- observed layer), a pass of a quantized net moves nothing; nothing runs on the host. QUOLL_HOST_ROWS=FILE writes what does to a file, of all nets and modes.
local D = dofile 'tests/tools/gpu_tested.lua'
local left_out = dofile 'tests/tools/sanitizers.lua'.left_out
local nets = dofile 'tests/tools/gpu_nets.lua'

-- Rows of the ledger since its last reset that did not run on the device, with their counts, sorted.
local function host_rows()
	local list, count = {}, {}
	for _, row in ipairs(quant.log()) do
		if row.path == 'host' or row.path == 'fallback' then
			local key = ('%-16s %-8s %s'):format(row.op, row.path, row.reason or '')
			if not count[key] then list[#list + 1] = key end
			count[key] = (count[key] or 0) + row.count
		end
	end
	table.sort(list)
	for i, key in ipairs(list) do list[i] = ('%4d x %s'):format(count[key], key) end
	return list
end

local lines = {}
local function note(name, rows, rest)
	lines[#lines + 1] = ('== %-28s %s%s'):format(name, #rows == 0 and 'CLEAN' or #rows .. ' host rows', rest or '')
	for _, row in ipairs(rows) do lines[#lines + 1] = '   ' .. row end
end

local function judge(name, rows)
	assert(#rows == 0, name .. '\n' .. table.concat(rows, '\n'))
end

local function batch_bytes(batch) return batch[1]:nbytes() + batch[2]:nbytes() end

-- Layers whose input is observed in training.
local function observed(m)
	local n = 0
	for _, inner in pairs(m:named()) do
		local q = rawget(inner, 'quantized')
		for _, input in ipairs(q and q.inputs or {}) do n = n + (input.tracker and 1 or 0) end
	end
	return n
end

for i, net in ipairs(nets) do
	for j, mode in ipairs {'float', 'train', 'qat'} do
		local name = net.name .. ' ' .. mode
		if not left_out(i + j, 3) then it(name .. ': a training step', function()
			local m = nets.trained(net, mode):to(D)
			local opt, data = net.opt(m), net.batches(4)
			local last = {data[3], data[4], stream = data.stream}
			m:fit({data[1], data[2], stream = data.stream}, {opt = opt, log = false}) -- makes the states of the optimizer
			quant.log 'reset'
			local step, start = 0, nil
			local function loss(y, target) -- bytes from the first loss to the second one: all of a step
				step = step + 1
				local now = gpu.memory()
				if step == 1 then
					start = now
				else
					start.read, start.written = now.read - start.read, now.written - start.written
				end
				return nn.crossentropy(y, target)
			end
			m:fit(last, {opt = opt, loss = loss, log = false})
			local rows = host_rows()
			note(name, rows, (', a step reads %d bytes and writes %d'):format(start.read, start.written))
			judge(name, rows)
			local norm = net.name == 'lstm' and 8 or 0
			local most = 4 + norm + 8 * observed(m)
			assert(start.read <= most, ('reads %d bytes, not %d'):format(start.read, most))
			assert(start.written <= batch_bytes(data[4]), ('writes %d bytes, not %d'):format(start.written, batch_bytes(data[4])))
		end) end
	end
	for j, mode in ipairs {'dynamic', 'static', 'weight_only'} do
		if not left_out(i + j, 3) then it(net.name .. ' ' .. mode .. ': as a module and as a graph', function()
			local q, x = nets.quantized(net, mode):to(D), net.batches(1)[1][1]:to(D)
			local g = graph.trace(q, x)
			for _, form in ipairs {'module', 'graph'} do
				local name = ('%s %s %s'):format(net.name, mode, form)
				local function run() return form == 'module' and q(x) or g:run(x) end
				run()
				quant.log 'reset'
				gpu.memory 'reset'
				run()
				local rows, bytes = host_rows(), gpu.memory()
				note(name, rows, (', reads %d bytes and writes %d'):format(bytes.read, bytes.written))
				judge(name, rows)
				assert(bytes.read == 0 and bytes.written == 0, ('reads %d, writes %d bytes'):format(bytes.read, bytes.written))
			end
		end) end
	end
end

local file = os.getenv 'QUOLL_HOST_ROWS'
if file then
	local f = assert(io.open(file, 'w'))
	f:write(table.concat(lines, '\n'), '\n')
	f:close()
end
