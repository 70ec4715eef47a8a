-- SPDX-License-Identifier: MIT
-- Exports a graph, compiles it and compares what the program gives with g:run.
--   exported.skip()                         skips the file where there is no C compiler
--   exported.check(name, g, x, {flags=})     rows of x one by one; the flags are compilers with their flags
--   exported.together(cases, {compilers=})   many graphs as one program, each a test: what the C compiler does for each is most of the time
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

-- The flags that the Makefile of an export always has.
local function strict(folder) return text_of(folder .. '/Makefile'):match '\nSTRICT = ([^\n]+)' end

-- Compiles the program of a folder by a compiler with its flags ('gcc -O2 -m32'), with the warnings and rules of its Makefile. main.c, which is
-- not what is tested, is compiled without optimization, and once for all levels of optimization.
function exported.build(folder, compiler)
	local plain = compiler:gsub(' %-O%w', '')
	local main = ('main_%s.o'):format((plain:gsub('%W+', '_')))
	return run(('cd %s && { test -e %s || %s %s -O0 -c main.c -o %s; } && %s %s -o net %s net.c'):format(folder, main, plain, strict(folder), main,
		compiler, strict(folder), main))
end
local build = exported.build

function exported.check(name, g, x, o)
	o = o or {}
	local folder = new_folder()
	g:export {dir=folder, name='net', samples=x, blob=o.blob, target=o.target}
	local inputs, results, format = {}, {}, nil
	for i = 1, x:size(1) do
		local one = x:narrow(1, i, 1)
		local y = g:run(one, {ordered=true})
		inputs[i], results[i] = packed(one), packed(y)
		format = FORMATS[y:dtype()]
	end
	put(folder .. '/in', table.concat(inputs))
	for _, compiler in ipairs(o.flags or {'cc -O2'}) do
		local good, output = build(folder, compiler)
		assert(good, name .. ': ' .. output)
		local net = ('cd %s && %s ./net'):format(folder, o.run or '')
		good, output = run(net .. ' --selftest')
		assert(good and output:find '^%d+ passed, 0 failed', name .. ': ' .. compiler .. ': ' .. output)
		assert(run(net .. ' --run < in > out'))
		local off = difference(text_of(folder .. '/out'), table.concat(results), format)
		assert(off <= (o.tolerance or 0), ('%s: %s: off by %.3g'):format(name, compiler, off))
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

-- The compiler for the tests of single ops: what the Makefile of an export takes. Other compilers and levels compile each op in platforms.lua.
exported.FLAGS = {'cc -O3 -march=native'}

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
function exported.program(cases, target, blob)
	local folder, variants, samples = new_folder(), {}, {}
	for i, case in ipairs(cases) do variants['c' .. i], samples['c' .. i] = case.graph, case.x end
	cases[1].graph:export {dir=folder, name='net', variants=variants, samples=samples, vectors=1, target=target, blob=blob}
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
		local bytes, format = bytes_of(program.results[i], big)
		program.bytes[key] = {bytes = bytes, format = format}
	end
	return program.bytes[key], 'in' .. key
end

-- Compiles the program by {cc= (a compiler with its flags), run= (an emulator), big=} and compares all results. Returns by how much the
-- cases that differ do, by name, and the same as one text.
function exported.differing(program, target)
	local folder, wrong, list = program.folder, {}, {}
	local good, output = build(folder, target.cc)
	assert(good, output)
	local net = (target.run and target.run .. ' ' or '') .. './net'
	good, output = run(('cd %s && %s --selftest'):format(folder, net))
	assert(good and output:find '^%d+ passed, 0 failed', output)
	local lines, wanted = {'cd ' .. folder}, {}
	for i in ipairs(program.cases) do
		local input
		wanted[i], input = bytes_for(program, i, target.big)
		lines[i + 1] = ('%s c%d --run < %s > out%d || exit 1'):format(net, i, input, i)
	end
	put(folder .. '/all.sh', table.concat(lines, '\n'))
	good, output = run(('sh %s/all.sh'):format(folder))
	assert(good, output)
	for i, case in ipairs(program.cases) do
		local got = text_of(('%s/out%d'):format(folder, i))
		local off = got == wanted[i].bytes and 0 or difference(got, wanted[i].bytes, wanted[i].format)
		if off > (case.tolerance or 0) then
			wrong[case.name] = ('off by %.3g'):format(off)
			list[#list + 1] = ('%s: %s'):format(case.name, wrong[case.name])
		end
	end
	return wrong, table.concat(list, '; ')
end

-- That the functions which the graph by itself needs are all there, and no others.
local function alone(case)
	local folder = new_folder()
	case.graph:export {dir=folder, name='net', samples=case.x}
	local good, output = run(('cd %s && cc %s -O0 -S -o /dev/null net.c'):format(folder, strict(folder)))
	assert(good, case.name .. ': ' .. output)
	os.execute('rm -r ' .. folder)
end

-- Each of the cases {name=, graph= (or a function that makes it), x=, tolerance=, single=} as a test, all as variants of one program by each
-- of the compilers. Where that cannot be made each is tried by itself, so that its test reports. Options: compilers=, run= (an emulator),
-- target= and blob= of the export, alone=true (each must have all its functions without the others).
function exported.together(cases, o)
	o = o or {}
	local compilers, good, wrong, failed = o.compilers or exported.FLAGS, 0, nil, nil
	local function made(case)
		if type(case.graph) == 'function' then case.graph = case.graph() end
		return case.graph
	end
	local function all()
		for _, case in ipairs(cases) do made(case) end
		local program = exported.program(cases, o.target, o.blob)
		local _ <close> = setmetatable({}, {__close=function() os.execute('rm -r ' .. program.folder) end})
		wrong = {}
		for _, compiler in ipairs(compilers) do
			for name, off in pairs(exported.differing(program, {cc=compiler, run=o.run})) do wrong[name] = compiler .. ': ' .. off end
		end
	end
	local function by_itself(case)
		exported.check(case.name, made(case), case.x, {flags=compilers, tolerance=case.tolerance, run=o.run, target=o.target, blob=o.blob})
		good = good + 1
		assert(good < #cases, failed) -- only together they are wrong
	end
	for _, case in ipairs(cases) do
		it(case.name, function()
			if not wrong and not failed then
				local done, message = pcall(all)
				failed = not done and message
			end
			if failed then return by_itself(case) end
			assert(not wrong[case.name], wrong[case.name])
			if o.alone then alone(case) end
		end)
	end
end

-- Cases {mode, how many rows of x, options} of a tutorial's model, with the weights in a file where o has blob=true.
function exported.modes(name, x, cases, o)
	local m = exported.tutorial(name)
	for i, case in ipairs(cases) do
		local mode, rows, options = table.unpack(case)
		options = options or {}
		local some = x:narrow(1, 1, rows)
		cases[i] = {x=some, single=mode == 'dynamic', name=('%s %s%s%s: %d inputs'):format(name, mode, options.weight and ' ' .. options.weight or '',
			options.rounding and ' ' .. options.rounding or '', rows), graph=function()
			if mode == 'float' then return graph.trace(m:fuse(), x:narrow(1, 1, 1)) end
			return exported.quantized(m, some, {mode=mode, weight=options.weight, rounding=options.rounding})
		end}
	end
	exported.together(cases, o)
end

-- Each function of x by name.
function exported.functions(list, x, parts, tolerance)
	local cases = {}
	for name, f in pairs(list) do
		cases[#cases + 1] = {name=name, x=x, tolerance=tolerance, single=true, graph=function() return exported.of(f, x, parts) end}
	end
	table.sort(cases, function(a, b) return a.name < b.name end)
	exported.together(cases)
end

-- Each {name, model, x} in integers, bit for bit.
function exported.integers(cases)
	for i, case in ipairs(cases) do
		cases[i] = {name=case[1], x=case[3], graph=function() return exported.static(case[2], case[3]) end}
	end
	exported.together(cases)
end

return exported
