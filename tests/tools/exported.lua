-- SPDX-License-Identifier: MIT
-- Exports a graph, compiles it and compares what the program gives with g:run.
--   exported.skip()                         skips the file where there is no C compiler
--   exported.check(name, g, x, {flags…})    rows of x one by one; the flags are those of the compilers to try
local exported = {}

function exported.skip()
	if not os.execute 'cc --version >/dev/null 2>&1 && make --version >/dev/null 2>&1' then skip 'no cc or make here' end
end

local FORMATS = {float32 = '<f', int8 = '<b', uint8 = '<B', int16 = '<h', uint16 = '<H', int32 = '<i4', int64 = '<i8', bool = '<B'}

-- Numbers in a row; codes for a quantized tensor, 0 and 1 for bool.
local function flattened(t)
	if t:dtype() == 'bool' then t = t:to 'uint8' end
	return (t:quantized() and t:codes() or t):contiguous()
end

local function packed(t)
	local flat = flattened(t)
	local format, values, list = FORMATS[flat:dtype()]:sub(2), flat:view(flat:nelem()):totable(), {}
	for i = 1, #values, 100 do
		local n = math.min(100, #values - i + 1)
		list[#list + 1] = string.pack('<' .. format:rep(n), table.unpack(values, i, i + n - 1))
	end
	return table.concat(list)
end

-- The name of a folder that is not there yet.
function exported.new_folder()
	local folder = os.tmpname()
	os.remove(folder)
	return folder
end

function exported.text_of(file)
	local f <close> = assert(io.open(file, 'rb'))
	return f:read 'a'
end

function exported.put(file, text)
	local f <close> = assert(io.open(file, 'wb'))
	f:write(text)
end

-- Whether the command succeeds, and what it prints.
function exported.run(command)
	local pipe = io.popen(command .. ' 2>&1')
	local output = pipe:read 'a'
	return pipe:close() == true, output
end

-- f(…) is an error whose message has the text in it.
function exported.refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
local new_folder, text_of, put, run = exported.new_folder, exported.text_of, exported.put, exported.run

-- The largest difference of two results in their bytes, as a share of the largest number.
local function difference(got, want, format)
	local size, off, most = string.packsize(format), 0, 0
	assert(#got == #want, ('%d bytes instead of %d'):format(#got, #want))
	if got == want then return 0 end
	for i = 1, #want, size do
		local a, b = string.unpack(format, got, i), string.unpack(format, want, i)
		local nan = a ~= a and b ~= b
		assert(nan or a == a and b == b, 'nan where there is none')
		if a ~= b and not nan then off = math.max(off, math.abs(a - b)) end
		if not nan and math.abs(b) < math.huge then most = math.max(most, math.abs(b)) end
	end
	return off / math.max(most, 1e-30)
end

function exported.check(name, g, x, o)
	o = o or {}
	local folder = new_folder()
	g:export {dir=folder, name='net', samples=x}
	local inputs, results, format = {}, {}, nil
	for i = 1, x:size(1) do
		local one = x:narrow(1, i, 1)
		local y = g:run(one, {ordered=true})
		inputs[i], results[i] = packed(one), packed(y)
		format = FORMATS[y:dtype()]
	end
	put(folder .. '/in', table.concat(inputs))
	for _, flags in ipairs(o.flags or {'CFLAGS=-O2'}) do
		local good, output = run(("make -C %s -B net %s"):format(folder, flags))
		assert(good, name .. ': ' .. output)
		good, output = run(folder .. '/net --selftest')
		assert(good and output:find '^%d+ passed, 0 failed', name .. ': ' .. flags .. ': ' .. output)
		assert(run(('%s/net --run < %s/in > %s/out'):format(folder, folder, folder)))
		local off = difference(text_of(folder .. '/out'), table.concat(results), format)
		assert(off <= (o.tolerance or 0), ('%s: %s: off by %.3g'):format(name, flags, off))
	end
	os.execute('rm -r ' .. folder)
end

-- The graph of a function of x, with tensors as its fields.
function exported.of(f, x, parts) return graph.trace(nn.module(f, parts or {}), x:narrow(1, 1, 1)) end

-- The graph of the model in mode static, calibrated with x.
function exported.static(m, x, options)
	m:calibrate({{x, x}}, {log=false})
	options = options or {}
	options.mode = 'static'
	return graph.trace(m:quantize(options), x:narrow(1, 1, 1))
end

-- A graph of the model in a mode by g:quantize, calibrated with x where that is wanted.
function exported.quantized(m, x, options)
	if options.mode == 'static' then m:calibrate({{x, x}}, {log=false, input=options.input}) end
	return (graph.trace(m, x:narrow(1, 1, 1)):quantize(options))
end

-- The model of a tutorial with its weights.
function exported.tutorial(name)
	return dofile(('tutorials/models/%s.lua'):format(name)):load(('tutorials/models/%s.safetensors'):format(name)):eval()
end

-- Cases {model, mode, how many rows of x, options} in one program each: the same bits.
function exported.modes(name, x, cases)
	local m = exported.tutorial(name)
	for _, case in ipairs(cases) do
		local mode, rows, options = table.unpack(case)
		options = options or {}
		it(('%s %s%s%s: %d inputs'):format(name, mode, options.weight and ' ' .. options.weight or '',
			options.rounding and ' ' .. options.rounding or '', rows), function()
			local some = x:narrow(1, 1, rows)
			local g
			if mode == 'float' then
				g = graph.trace(m:fuse(), x:narrow(1, 1, 1))
			else
				g = exported.quantized(m, some, {mode=mode, weight=options.weight, rounding=options.rounding})
			end
			exported.check(name, g, some, {flags={exported.FLAGS[2]}})
		end)
	end
end

-- Compilers' flags for the tests of single ops.
exported.FLAGS = {"CFLAGS=-O0", "CFLAGS='-O3 -march=native'"}

-- Each {name, model, x} in integers, bit for bit.
function exported.integers(cases)
	for _, case in ipairs(cases) do
		it(case[1], function() exported.check(case[1], exported.static(case[2], case[3]), case[3], {flags=exported.FLAGS}) end)
	end
end

---------------------------------------------------------------- many graphs in one program, on many platforms

-- Bytes of a tensor's rows; big: the most significant byte first.
local function bytes_of(t, big)
	local flat = flattened(t)
	local format, list, values = FORMATS[flat:dtype()], {}, flat:view(flat:nelem()):totable()
	local size = string.packsize(format)
	if big and size > 1 then format = '>' .. format:sub(2) end
	local many = format:sub(1, 1) .. format:sub(2):rep(100)
	for i = 1, #values, 100 do
		local last = math.min(i + 99, #values)
		list[#list + 1] = string.pack(last == i + 99 and many or format:sub(1, 1) .. format:sub(2):rep(last - i + 1), table.unpack(values, i, last))
	end
	return table.concat(list), format
end

-- The graphs of {name=, graph=, x=, tolerance=} as the variants of one program (for target=) in a folder, with what g:run gives for each row of x.
function exported.program(cases, target)
	local folder, variants, samples = new_folder(), {}, {}
	for i, case in ipairs(cases) do variants['c' .. i], samples['c' .. i] = case.graph, case.x end
	cases[1].graph:export {dir=folder, name='net', variants=variants, samples=samples, target=target}
	local results = {}
	for i, case in ipairs(cases) do
		local list, rows = {}, case.x:size(1)
		local step = case.single and 1 or rows -- single: rows of a batch are not each for itself
		for r = 1, rows, step do list[#list + 1] = flattened((case.graph:run(case.x:narrow(1, r, step), {ordered=true}))) end
		results[i] = #list == 1 and list[1] or tensor.cat(list, {axis=1})
	end
	return {folder = folder, cases = cases, results = results, bytes = {}}
end

-- What goes in and what must come out of case i, as bytes: made once.
local function bytes_for(program, i, big)
	local key = i .. (big and 'big' or '')
	if not program.bytes[key] then
		put(('%s/in%s'):format(program.folder, key), (bytes_of(program.cases[i].x, big)))
		local wanted, format = bytes_of(program.results[i], big)
		program.bytes[key] = {wanted = wanted, format = format}
	end
	return program.bytes[key], 'in' .. key
end

-- Compiles the program for a target {make=, run=, big=} and compares all results; the names of cases that differ, with by how much.
function exported.differing(program, target)
	local folder, wrong = program.folder, {}
	local good, output = run(('make -C %s -B net %s'):format(folder, target.make))
	assert(good, output)
	local before = target.run and target.run .. ' ' or ''
	good, output = run(('%s%s/net --selftest'):format(before, folder))
	assert(good and output:find '^%d+ passed, 0 failed', output)
	for i, case in ipairs(program.cases) do
		local bytes, input = bytes_for(program, i, target.big)
		good, output = run(('%s%s/net c%d --run < %s/%s > %s/out'):format(before, folder, i, folder, input, folder))
		assert(good, output)
		local got = text_of(folder .. '/out')
		local off = got == bytes.wanted and 0 or difference(got, bytes.wanted, bytes.format)
		if off > (case.tolerance or 0) then wrong[#wrong + 1] = ('%s: off by %.3g'):format(case.name, off) end
	end
	return wrong
end

-- Each function of x by name: all are variants of one program. Where that cannot be made each is tried alone, so that its test tells.
function exported.functions(list, x, parts, tolerance)
	local cases, wrong, failed = {}, nil, false
	for name in pairs(list) do cases[#cases + 1] = {name=name, x=x, tolerance=tolerance, single=true} end
	table.sort(cases, function(a, b) return a.name < b.name end)
	local function all()
		for _, case in ipairs(cases) do case.graph = exported.of(list[case.name], x, parts) end
		local program = exported.program(cases)
		local _ <close> = setmetatable({}, {__close=function() os.execute('rm -r ' .. program.folder) end})
		wrong = {}
		for _, flags in ipairs(exported.FLAGS) do
			for _, text in ipairs(exported.differing(program, {make=flags})) do
				wrong[text:match '^(.*): off by'] = flags .. ': ' .. text
			end
		end
	end
	for _, case in ipairs(cases) do
		it(case.name, function()
			failed = failed or not wrong and not pcall(all)
			if failed then
				return exported.check(case.name, exported.of(list[case.name], x, parts), x, {flags=exported.FLAGS, tolerance=tolerance})
			end
			assert(not wrong[case.name], wrong[case.name])
		end)
	end
end

return exported
