-- SPDX-License-Identifier: MIT
-- g:export: options, the variants' graphs, test vectors, the report, and writing all files or none. They are written
-- to a temporary folder next to the target, which is then renamed; if the target exists, each file is moved into it.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local decide = internal.import 'nn/graph/decide'
local export = internal.import 'nn/export/export'
local files = internal.import 'nn/export/files'
local interface = internal.import 'nn/export/interface'
local main = internal.import 'nn/export/main'
local measure = internal.import 'nn/export/measure'
local names = internal.import 'nn/export/names'
local project = internal.import 'nn/export/project'
local report = internal.import 'interp/prelude/report'
local rounding = internal.import 'nn/graph/rounding'
local rules = internal.import 'nn/quantize/rules'
local size = internal.import 'nn/graph/size'
local targets = internal.import 'nn/export/targets'
local vectors = internal.import 'nn/export/vectors'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor

local MOST = 1 << 22 -- numbers of the inputs in main.c: 60 MB of text
local LAYOUTS = {'nchw', 'nhwc'}
local VECTORS = 2 -- inputs of the self-test in main.c, unless vectors= is given

local export_doc = core.method('export', "g:export{dir='net_c', name='net'}  g:export{onnx='net.onnx', form='qdq'}",
	[[Writes the graph as C99 to a folder: <name>.c, <name>.h, <name>_ops.h (only the functions that are called), <name>_weights.h, main.c
and a Makefile. All files are written or none. See nn/export/INTEGRATION.md for the use of an export in a project.

Program: `make` builds a test program. --selftest compares with stored results of g:run, --run reads inputs from stdin, --time N
measures. The self-test has vectors= inputs: the first rows of samples=, batch= rows for each, or random numbers.

Functions: <name>_run(state, …) keeps all values in a struct that the caller passes, so it is reentrant; <name>_forward(…) uses a
static one. -D<NAME>_CONFIG='"file.h"' names a header that may define the macros <NAME>_LAYER(index, name), called before each layer,
<NAME>_ARENA_ATTRIBUTE (a section for the static state) and <NAME>_NO_ARENA (no static state). There is no malloc; the only library
functions are memcpy and memset, and functions such as tanh are included in the C.

Interface: input= and output= choose 8-bit codes for inputs and outputs; int8 codes are uint8 codes minus 128. The graph must quantize
the input with one scale; the result must be codes or have a calibrated range (softmax and sigmoid: scale 1/256). <name>.h has scales,
zero points and sizes as macros. layout='nhwc' is for images with channels last. A static graph with rounding='double' or 'single' whose
inputs and outputs are codes uses integer arithmetic only in convolutions, linear layers, sums and pooling.

Bits: all results, including floats, are bit-identical to g:run on every processor; for graphs that are not of a quantized model in
mode static or dynamic, to g:run(x, {ordered=true}), which adds products in the order of the C. The bits of nan may differ. Exceptions,
within 2e-6 of the largest magnitude: norms with powers other than 0, 1, 2 and infinity; functions and softmax of 32- and 64-bit
integers; user ops that set e.inexact. If codes are computed from such floats, --selftest uses inputs for which no code is close to a
rounding boundary, chosen among the wanted ones and 30 more as far as samples= has rows; otherwise the tolerance is twice the effect.

Modes: the graph may come from g:quantize or from the trace of a model, float or quantized in any mode. static. dynamic: the C finds
ranges like the observer minmax, for affine codes with one scale; other observers (input='uint8@entropy') are for static only and are
refused; weights of linear layers may have scales and minimums in blocks along k. weight_only: weights are decoded row by row. rounding=
exports the graph under another rule for integer results (help 'requantization'); g:quantize{rounding=} makes g:run use it, too.

Weights may have any format of quant.formats(). Codes below 8 bits are bit streams with rows padded to whole bytes; grids and the scheme
log have a table of values. float16 scales and minimums stay float16, powers of two are stored in 8 bits, and so are FP8 scales under one
outer scale (nvfp4) if table and codes are smaller than floats; other scales are float32. Where channels differ in bits, the codes of all
have the width of the widest. Weights in float16, bfloat16, float8_e4m3 and float8_e5m2 are stored so, too; other constants of these
dtypes become float32.

Limits: all ops are supported except random numbers, losses and x[mask], whose size depends on values. Values may be float32, integers
of whole bytes, bool, and affine codes with one scale, also packed; codes of a table with one known scale, such as fp8_e4m3, are stored
as rounded floats, which ops compute with. Refused are results of other float dtypes, :to a packed dtype, fake of binary, and for values
that are not constant: quantize and fake with a scale per channel or block or with an observer other than minmax, fake of codes of a
table, and binary codes without a given scale. Where Quoll raises an error for certain values (integer division by 0, an index out of range), the C returns 0.

variants= exports several precisions as <name>_forward_<variant> with a common arena: a list of specs ('float32' is the unchanged graph,
'int8' is g:quantize{mode='static', weight='int8/1'}, 'int16' has int16 activations, too), or a table name -> spec, options of g:quantize,
or a graph. Specs and options require g to be the float graph. The first argument of the program selects the variant.

blob=true stores the weights in <name>.bin, which <name>_load(file) reads and checks; the forward functions return 1 until then.

target= writes products of 8-bit codes with the instructions of a processor (avx512vnni, avx2, neon, armv7e-m); compiled for others,
the C gives the same results by plain loops.

project= adds CMakeLists.txt or a Zephyr module, or arranges the files as an Arduino library.

onnx= writes an ONNX file instead, in one step: names of inputs, outputs and constants are those of the graph, the batch is an axis with
the name batch. form='float' decodes all codes and rounds no activations. 'qdq' has QuantizeLinear and DequantizeLinear around each op
with codes: 8 bits (opset 13), 16 and 4 bits and blocks (21), FP8 (19), FP4 (23); biases are int32. 'qoperator' has QLinearConv,
QLinearMatMul and ops of onnxruntime (com.microsoft: QGemm, QLinearAdd, MatMulNBits and others) where there is one, and else the
first. 'integer' has ConvInteger and MatMulInteger, and the multiplier of g:run as a number: the codes of products are those of g:run bit
for bit, also those that are rounded in fixed point (rounding='single' or 'double', models of TFLite), for which the other forms have float32.
A runtime that does not fuse QDQ adds floats, so codes at a tie may be off by 1 in each layer, and those after it by more. Codes whose ranges are found at each run become DynamicQuantizeLinear and integer products; rows of h in a recurrent layer stay
floats. Weights in formats with tables or minimums need form='float'. Nodes without a form in ONNX are one error that lists them all. The
report has the nodes of the file.

Returns a report with a row for each node: multiplications, bytes of its constants, and bytes of the arena that are live. The note has
the totals, with cc= also flash and stack.]],
	[[m = nn.Sequential{nn.Linear(4, 3)}
m:calibrate({{tensor.randn(8, 4), tensor.ones(8)}}, {log=false})
g = graph.trace(m:quantize{mode='static'}, tensor.zeros(1, 4))
folder = os.tmpname()
os.remove(folder)
r = g:export{dir=folder, name='tiny'}
print(r[2].node, r[2].macs, io.open(folder .. '/tiny.c') ~= nil)  --> linear1 12 true
os.execute('rm -r ' .. folder)]],
	internal.import 'nn/export/options')

local OF_ONNX = {onnx = true, form = true, opset = true, external = true}

-- Options of the other kind of file.
local function check_kind(o)
	for name in next, o do
		if o.onnx and not OF_ONNX[name] then fail('export: %s: wanted form=, opset= or external= beside onnx=, got another', name) end
		if not o.onnx and OF_ONNX[name] then fail('export: %s: wanted onnx= beside it, got none', name) end
	end
end

local function check(o)
	if not o.dir then fail("export: dir: wanted a folder, got nothing") end
	base.check_path('export: dir', o.dir)
	if o.name then base.check_path('export: name', o.name) end
	if o.samples ~= nil and type(o.samples) ~= 'table' and not is_tensor(o.samples) then
		fail('export: samples: wanted a tensor or a list of them, got %s', describe(o.samples))
	end
	if o.batch and o.batch < 1 then fail('export: batch: wanted 1 or more, got %d', o.batch) end
	if o.rounding then rounding.check('export', o.rounding) end
	for _, what in ipairs {'input', 'output'} do
		if o[what] then interface.check(what, o[what]) end
	end
	if o.project then project.check(o.project) end
	if o.target and not targets[o.target] then targets.refuse(o.target) end
	if o.layout and not base.one_of(o.layout, LAYOUTS) then
		fail('export: layout: wanted nchw (channels first) or nhwc (channels last), got %s%s', describe(o.layout), base.near(o.layout, LAYOUTS))
	end
	local reason = o.profile and rules.no_pattern(o.profile)
	if reason then fail("export: profile: wanted a POSIX extended regular expression, got '%.60s': %s", o.profile, reason) end
	return o
end

---------------------------------------------------------------- variants

-- 'int8' as options of g:quantize; nil: floats.
local function options_of(word)
	local spec = quant.spec(word)
	if not spec.scheme then return nil end
	local weight = word:find '[/:@]' and word or word .. '/1'
	return {mode = 'static', weight = weight, input = spec.bits > 8 and 'int16' or nil}
end

local function variant_graph(g, name, value)
	if core.is_graph(value) then return value end
	local done = decide.done(g)
	if done then
		fail("export: variants: %s: wanted the float graph, got one in which '%s' is quantized already; export variants of the float \z
			graph, or give graphs by name, {a=graph1, b=graph2}", name, done)
	end
	local o = value
	if type(value) == 'string' then o = options_of(value) end
	if o == nil then return g end
	if type(o) ~= 'table' or getmetatable(o) then
		fail("export: variants: %s: wanted a spec, options of g:quantize or a graph, got %s", name, describe(value))
	end
	return (g:quantize(o))
end

-- A list of {name=, graph=}; without variants= one that has no name.
local function variants_of(g, o)
	if not o.variants then return {{graph = g}} end
	local list, words = {}, {}
	for key, value in next, o.variants do
		local name = math.type(key) == 'integer' and value or key
		if type(name) ~= 'string' then fail('export: variants: wanted names, got %s', describe(name)) end
		list[#list + 1] = {name = name, value = value, at = math.type(key) == 'integer' and key or math.huge}
	end
	if #list == 0 then fail('export: variants: wanted at least one, got none') end
	table.sort(list, function(a, b)
		if a.at ~= b.at then return a.at < b.at end
		return a.name < b.name
	end)
	for _, v in ipairs(list) do
		v.graph = variant_graph(g, v.name, v.value)
		v.word = names.identifier(v.name)
		if words[v.word] then fail("export: variants: wanted names that differ in C, got '%s' and '%s'", words[v.word], v.name) end
		words[v.word] = v.name
	end
	return list
end

local function timed_nodes(e, pattern)
	local list = {}
	for _, c in ipairs(e.costs) do
		if pattern and internal.matches(pattern, c.node) and c.last >= c.first then list[#list + 1] = c end
	end
	return list
end

-- Compiles the variants to one bundle.
local function compile(list, o)
	local bundle, timed = export.new(), false
	bundle.id, bundle.blob = names.program(o.name or 'model'), o.blob
	for _, v in ipairs(list) do
		local e = export.compile(v.graph, bundle, math.tointeger(o.batch or 1), o.layout or 'nchw', targets[o.target])
		e.variant, e.suffix = v.word, v.word and '_' .. v.word or ''
		e.timed = timed_nodes(e, o.profile)
		timed = timed or #e.timed > 0
	end
	bundle.timed = timed
	if o.profile and not timed then
		local nodes = {}
		for i, c in ipairs(bundle.variants[1].costs) do nodes[i] = c.node end
		fail("export: profile: wanted a pattern that matches a node, got '%.60s'; nodes: %s", o.profile, table.concat(nodes, ' ', 1, math.min(#nodes, 12)))
	end
	if o.blob and #bundle.array_list == 0 then fail('export: blob: wanted a graph with constants, got none') end
	return bundle
end

---------------------------------------------------------------- vectors

-- Checks samples=: a list has one tensor per input, each with enough rows for vectors=.
local function check_samples(e, samples, wanted)
	local list = type(samples) == 'table' and samples or {samples}
	if #list > #e.inputs and type(samples) == 'table' then
		fail('export: samples: wanted a tensor or a list with one for each of %d input%s, got a list of %d', #e.inputs, #e.inputs == 1 and '' or 's',
			#list)
	end
	for _, given in ipairs(list) do
		if wanted and is_tensor(given) and given:dim() > 0 and given:size(1) < wanted * e.batch then
			fail('export: vectors: wanted at most %d, as many as samples= has rows for, got %d', given:size(1) // e.batch, wanted)
		end
	end
end

local function check_size(e, wanted)
	local count = 0
	for _, v in ipairs(e.inputs) do count = count + v.facts.count end
	if count * wanted > MOST then
		fail('export: batch: wanted at most %d numbers in the inputs of the self-test, got %d inputs of %d; take a smaller batch= or vectors=', MOST,
			wanted, count)
	end
end

local function sample_of(e, i, k, samples)
	local v, device = e.inputs[i], core.device(e.graph)
	local given = type(samples) == 'table' and samples[i] or samples
	if samples and not is_tensor(given) then
		fail("export: samples: wanted a tensor for '%s', got %s", v.name, describe(given))
	end
	if given then
		local first = math.min((k - 1) * e.batch + 1, given:size(1) - e.batch + 1)
		if first < 1 then fail('export: samples: wanted at least %d rows, got %d', e.batch, given:size(1)) end
		local rows = given:narrow(1, first, e.batch):to(device or given:device())
		if v.spec and not rows:quantized() and rows:dtype() == 'float32' then rows = rows:quantize(v.spec) end
		local want = ('%s%s'):format(v.facts.dtype, size.text(v.facts.shape))
		if rows:dtype() .. size.text {rows:size()} ~= want then
			fail("export: samples: wanted %s for '%s', got %s", want, v.name, internal.describe(rows))
		end
		return rows
	end
	local function random() return tensor.randn {device = device, table.unpack(v.facts.shape)} end
	if v.spec then return random():quantize(v.spec) end
	if v.facts.ctype == 'float' then return random() end
	fail("export: samples: wanted inputs for '%s', whose dtype is %s", v.name, v.facts.dtype)
end

-- Number of batches in samples=.
local function batches_of(e, samples)
	local n = math.huge
	for i in ipairs(e.inputs) do
		local given = type(samples) == 'table' and samples[i] or samples
		n = given and math.min(n, given:size(1) // e.batch) or n
	end
	return n
end

-- Inputs (batches of rows of samples=, or normal random numbers, the same for all variants) and the results of g:run.
local function vectors_of(g, e, samples, wanted)
	check_samples(e, samples, wanted)
	check_size(e, wanted or VECTORS)
	local seed, position = internal.rng(20261121, 0)
	local _ <close> = setmetatable({}, {__close = function() internal.rng(seed, position) end})
	local _ <close> = internal.nograd()
	wanted = wanted or VECTORS
	return vectors.choose(g, e, wanted, function(k)
		if k > wanted and k > batches_of(e, samples) then return nil end
		local inputs = {}
		for i in ipairs(e.inputs) do inputs[i] = sample_of(e, i, k, samples) end
		return inputs
	end)
end

-- The samples for a variant: its own if given by name (random ones if it has none), else those for all variants.
local function samples_of(list, v, samples)
	if type(samples) ~= 'table' or type(next(samples)) ~= 'string' then return samples end
	for name in next, samples do
		local known = {}
		for i, other in ipairs(list) do known[i] = other.name end
		if not base.one_of(name, known) then
			fail("export: samples: wanted names of variants, got %s%s", describe(name), base.near(name, known))
		end
	end
	return samples[v.name]
end

---------------------------------------------------------------- the files

-- name -> text of all files.
local function texts_of(bundle, list, o)
	local tests = {}
	for i, v in ipairs(list) do
		tests[i] = vectors_of(v.graph, bundle.variants[i], samples_of(list, v, o.samples), o.vectors)
	end
	local texts = {}
	if bundle.blob then texts[bundle.id .. '.bin'], bundle.blob_hash = files.blob(bundle) end
	bundle.stamp = 0
	local parts = {files.source(bundle), files.ops(bundle), files.weights(bundle)}
	for _, a in ipairs(bundle.array_list) do parts[#parts + 1] = a.body end
	bundle.stamp = tonumber(internal.sha256(table.concat(parts)):sub(1, 8), 16)
	texts[bundle.id .. '.h'], texts[bundle.id .. '.c'] = files.header(bundle), files.source(bundle)
	texts[bundle.id .. '_ops.h'] = files.ops(bundle)
	texts[bundle.id .. '_weights.h'], texts['main.c'], texts.Makefile = files.weights(bundle), main(bundle, tests), files.makefile(bundle)
	return project.arrange(o.project or 'make', texts, bundle)
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Runs a shell command; returns its error message, or nil.
local function shell(format, ...)
	local words = {...}
	for i, word in ipairs(words) do words[i] = quoted(word) end
	local pipe <close> = io.popen(format:format(table.unpack(words)) .. ' 2>&1')
	local output = pipe:read 'a'
	if not pipe:close() then return output:match '[^\n]*' end
end

local function is_folder(path) return not shell('test -d %s', path) end

-- Whether a file exists that was not written by an export, such as a user's Makefile. (The weights of blob= have no such mark.)
local function is_foreign(path)
	local file = io.open(path, 'rb')
	if not file or path:find '%.bin$' then return false end
	local head <close> = file
	return not (head:read(2000) or ''):find('Quoll', 1, true)
end

-- The reason why the files cannot be replaced, or nil.
local function obstacle(folder, texts)
	for name in next, texts do
		if is_folder(folder .. '/' .. name) then return ("'%s' is a folder"):format(name) end
		if is_foreign(folder .. '/' .. name) then return ("'%s' was not written by g:export; nothing was overwritten"):format(name) end
	end
end

-- Moves the files one by one: each is complete, but a process that is killed meanwhile leaves files of two exports, which do not
-- compile together.
local function move_in(folder, made, texts)
	for name in next, texts do
		local good, problem = os.rename(made .. '/' .. name, folder .. '/' .. name)
		if not good then return problem end
	end
end

local FEW = 1000 -- files in a folder that may be linked into another one

-- Replaces all files in one step: `made` gets hard links to the other files of the folder, then both are exchanged. Returns false if
-- that is not possible.
local function exchange(folder, made, texts)
	local count = "test \"$(find %s | head -n 1001 | wc -l)\" -le " .. FEW
	if shell(count .. ' && mkdir %s && cp -al %s/. %s', folder, made .. '/all', folder, made .. '/all') then return false end
	for name in next, texts do
		internal.write_file(made .. '/all/' .. name, texts[name])
	end
	if not internal.exchange(made .. '/all', folder) then return false end
	shell('cp -aln %s/. %s', made .. '/all', folder) -- files that were added meanwhile
	return true
end

local made_here = 0

-- A temporary name next to the folder, with the process id; removes leftovers of dead processes.
local function beside(folder)
	made_here = made_here + 1
	shell([[for d in %s.quoll-*-*.part; do
	p=${d##*.quoll-}; p=${p%%%%-*}
	case $p in ''|*[!0-9]*) continue;; esac
	[ ! -d "$d" ] || [ -d /proc/"$p" ] || kill -0 "$p" 2>/dev/null || rm -rf -- "$d"
done; true]], folder)
	local pid <close> = io.popen 'echo $PPID'
	return ('%s.quoll-%s-%d.part'):format(folder, pid:read 'l', made_here)
end

local function make_folders(made, texts)
	local problem = shell('mkdir -p -- %s', made)
	for name in next, texts do
		local inner = name:match '^(.*)/'
		problem = problem or inner and shell('mkdir -p -- %s', made .. '/' .. inner)
	end
	return problem
end

-- Writes all files or none; on failure existing files are unchanged.
local function write(folder, texts)
	folder = folder:gsub('(.)/+$', '%1')
	local there, real = is_folder(folder), folder
	if there then
		local pipe <close> = io.popen(('cd -- %s && pwd -P'):format(quoted(folder)))
		real = pipe:read 'l' or folder
	end
	local made = beside(real)
	local _ <close> = setmetatable({}, {__close = function() shell('rm -rf -- %s', made) end})
	local problem = make_folders(made, texts)
	if problem then fail("export: dir: cannot make '%.99s': %s", folder, (problem:gsub('%.quoll%-[%d-]+%.part', ''))) end
	for name, text in next, texts do
		local good, message = pcall(internal.write_file, made .. '/' .. name, text)
		if not good then fail("export: dir: cannot write into '%.99s': %s", folder, message) end
	end
	if there then
		problem = obstacle(real, texts) or make_folders(real, texts)
		if not problem and not exchange(real, made, texts) then problem = move_in(real, made, texts) end
	else
		problem = select(2, os.rename(made, folder))
	end
	if problem then fail("export: dir: cannot write into '%.99s': %s", folder, problem) end
end

---------------------------------------------------------------- the report

local function cost_report(bundle, texts, constants, made)
	local several = bundle.variants[1].variant
	local rows = {columns = {'node', 'op', 'macs', 'bytes', 'memory'}}
	if several then table.insert(rows.columns, 1, 'variant') end
	local arena, macs, bytes = 0, {}, 0
	for _, e in ipairs(bundle.variants) do
		local sum = 0
		for _, c in ipairs(e.costs) do
			rows[#rows + 1] = {variant = e.variant, node = c.node, op = c.op, macs = c.macs, bytes = c.bytes, memory = c.memory}
			sum = sum + c.macs
		end
		arena, macs[#macs + 1] = math.max(arena, e.arena), ('%d%s'):format(sum, several and ' (' .. e.variant .. ')' or '')
	end
	for _, text in next, texts do bytes = bytes + #text end
	rows.note = ('%s: constants %d bytes, arena %d bytes, %d functions, %s multiplications; files of %d bytes'):format(bundle.id, constants, arena,
		#bundle.part_list, table.concat(macs, ', '), bytes)
	if made then
		rows.note = ('%s; flash %d bytes, of which %d are code%s'):format(rows.note, made.flash, made.flash - constants,
			made.stack and ('; stack %d bytes, C library not counted'):format(made.stack) or '')
	end
	return report(rows)
end

function core.methods.export(g, options)
	core.expect(g, 'export')
	local o = base.options(export_doc, options)
	check_kind(o)
	if o.onnx then return core.writers.onnx(g, o) end
	check(o)
	local list = variants_of(g, o)
	for _, v in ipairs(list) do
		v.graph = o.rounding and rounding.apply(v.graph, o.rounding) or v.graph
		if o.input or o.output then v.graph = interface.apply(v.graph, o.input or 'float', o.output or 'float') end
	end
	local bundle = compile(list, o)
	local arena, constants = 8 * files.arena_words(bundle), 0
	for _, a in ipairs(bundle.array_list) do constants = constants + a.bytes end
	if not o.cc then measure.check(bundle, o, arena, constants) end
	local texts = texts_of(bundle, list, o)
	local made = o.cc and measure.compiled(texts, bundle.id, o.cc)
	if made then measure.check(bundle, o, arena, constants, made) end
	write(o.dir, texts)
	return cost_report(bundle, texts, constants, made)
end

return true
