-- SPDX-License-Identifier: MIT
-- Exports a graph, compiles it and compares what the program gives with g:run.
--   exported.skip()                         skips the file where there is no C compiler
--   exported.check(name, g, x, {flags…})    rows of x one by one; the flags are those of the compilers to try
local exported = {}

function exported.skip()
	if not os.execute 'cc --version >/dev/null 2>&1 && make --version >/dev/null 2>&1' then skip 'no cc or make here' end
end

local FORMATS = {float32 = '<f', int8 = '<b', uint8 = '<B', int16 = '<h', uint16 = '<H', int64 = '<i8'}

local function packed(t)
	local flat = (t:quantized() and t:codes() or t):contiguous()
	local format, values = FORMATS[flat:dtype()], flat:view(flat:nelem()):totable()
	for i, value in ipairs(values) do values[i] = string.pack(format, value) end
	return table.concat(values)
end

local function run(command)
	local pipe = io.popen(command .. ' 2>&1')
	local output = pipe:read 'a'
	return pipe:close(), output
end

-- The largest difference of two results in their bytes, as a share of the largest number.
local function difference(got, want, format)
	local size, off, most = string.packsize(format), 0, 0
	assert(#got == #want, ('%d bytes instead of %d'):format(#got, #want))
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
	local folder = os.tmpname()
	os.remove(folder)
	g:export {dir=folder, name='net', samples=x}
	local inputs, results, format = {}, {}, nil
	for i = 1, x:size(1) do
		local one = x:narrow(1, i, 1)
		local y = g:run(one)
		inputs[i], results[i] = packed(one), packed(y)
		format = FORMATS[y:dtype()]
	end
	local file = io.open(folder .. '/in', 'wb')
	file:write(table.concat(inputs)):close()
	for _, flags in ipairs(o.flags or {'CFLAGS=-O2'}) do
		local good, output = run(("make -C %s -B net %s"):format(folder, flags))
		assert(good, name .. ': ' .. output)
		good, output = run(folder .. '/net --selftest')
		assert(good and output:find '^%d+ passed, 0 failed', name .. ': ' .. flags .. ': ' .. output)
		assert(run(('%s/net --run < %s/in > %s/out'):format(folder, folder, folder)))
		file = io.open(folder .. '/out', 'rb')
		local off = difference(file:read 'a', table.concat(results), format)
		file:close()
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

-- Compilers' flags for the tests of single ops.
exported.FLAGS = {"CFLAGS=-O0", "CFLAGS='-O3 -march=native'"}

-- Each {name, model, x} in integers, bit for bit.
function exported.integers(cases)
	for _, case in ipairs(cases) do
		it(case[1], function() exported.check(case[1], exported.static(case[2], case[3]), case[3], {flags=exported.FLAGS}) end)
	end
end

-- Each function of x by name.
function exported.functions(list, x, parts, tolerance)
	for name, f in pairs(list) do
		it(name, function() exported.check(name, exported.of(f, x, parts), x, {flags=exported.FLAGS, tolerance=tolerance}) end)
	end
end

return exported
