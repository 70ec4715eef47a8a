-- SPDX-License-Identifier: MIT
-- The files of an export: <name>.h, <name>.c, <name>_weights.h, main.c with vectors to test itself by, Makefile; and g:export.
local _, internal = ...
local base = internal.import 'base'
local core = internal.import 'graph_core'
local export = internal.import 'graph_export'
local names = internal.import 'export_names'
local parts = internal.import 'export_parts'
local report = internal.import 'report'
local rounding = internal.import 'graph_rounding'
local fail, describe, is_tensor = base.fail, base.describe, base.is_tensor

local VECTORS = 2 -- inputs in main.c that the program tests itself with

---------------------------------------------------------------- text

local function comment(text) return (text:gsub('%*/', '* /'):gsub('[^\32-\126]', '?')) end

local function arguments(e)
	local list = {}
	for _, input in ipairs(e.inputs) do list[#list + 1] = ('const %s *%s'):format(input.facts.ctype, input.name) end
	for _, result in ipairs(e.results) do list[#list + 1] = ('%s *%s'):format(result.facts.ctype, result.name) end
	return table.concat(list, ', ')
end

local function shape_text(f) return '(' .. table.concat(f.shape, ', ') .. ')' end

local function value_text(v, what)
	local f = v.facts
	local codes = f.scale and (', codes: (q - %d) * %.9g'):format(f.zero, f.scale) or ''
	return (' *   %s: %s of %s %s%s'):format(comment(v.name), what, f.ctype, shape_text(f), codes)
end

local function header(e, o)
	local lines = {'/* ' .. e.id .. ': one forward pass of a network, exported by Quoll. No allocation, no library. Not reentrant: the',
		' * memory between the layers is static.'}
	for _, v in ipairs(e.inputs) do lines[#lines + 1] = value_text(v, 'input') end
	for _, v in ipairs(e.results) do lines[#lines + 1] = value_text(v, 'result') end
	local guard = names.identifier(o.name):upper() .. '_H'
	lines[#lines + 1] = ' */'
	lines[#lines + 1] = ('#ifndef %s\n#define %s\n\n#include <stdint.h>\n'):format(guard, guard)
	lines[#lines + 1] = ('void %s_forward(%s);'):format(e.id, arguments(e))
	if #e.timed > 0 then
		lines[#lines + 1] = ('\n/* Processor time of single layers since the start, in clock ticks; prints it with their names. */\nvoid %s_profile(void);'):format(e.id)
	end
	lines[#lines + 1] = '\n#endif'
	return table.concat(lines, '\n') .. '\n'
end

local function weights(e, o)
	local lines = {'/* Constants of ' .. e.id .. '. Rows of weights are outputs; of a convolution (output, height, width, channel). */'}
	for _, a in ipairs(e.array_list) do
		lines[#lines + 1] = ('\nstatic const %s %s[%d] = { /* %s */\n%s\n};'):format(a.ctype, a.name, a.count, comment(a.text), a.body)
	end
	return table.concat(lines, '\n') .. '\n'
end

local HEAD = [[
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the arithmetic must not be reordered: compile without -ffast-math"
#endif
#include <float.h>
#if FLT_EVAL_METHOD != 0
#error "floats must be computed as floats: compile with -msse2 -mfpmath=sse"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
]]

-- The call lines of a node between two readings of the clock.
local function body(e)
	local begins, ends = {}, {}
	for i, t in ipairs(e.timed) do begins[t.first], ends[t.last] = i, i end
	local lines = {}
	for i, line in ipairs(e.lines) do
		if begins[i] then lines[#lines + 1] = '\tstart = clock();' end
		lines[#lines + 1] = line
		if ends[i] then lines[#lines + 1] = ('\tticks[%d] += clock() - start;'):format(ends[i] - 1) end
	end
	return table.concat(lines, '\n')
end

local function quoted(text) return '"' .. text:gsub('[^%w_ .:/-]', '_') .. '"' end

local function profile_text(e)
	if #e.timed == 0 then return '', '' end
	local list = {}
	for i, t in ipairs(e.timed) do list[i] = quoted(t.node) end
	return ('#include <stdio.h>\n#include <time.h>\n\nstatic clock_t ticks[%d];\nstatic const char *const timed[%d] = {%s};\n'):format(#list, #list,
		table.concat(list, ', ')), ([[

void %s_profile(void)
{
	int i;

	for (i = 0; i < %d; i++)
		printf("%%-32s %%10.1f us\n", timed[i], 1e6 * (double)ticks[i] / CLOCKS_PER_SEC);
}
]]):format(e.id, #list)
end

local function source(e, o)
	local before, after = profile_text(e)
	local lines = {'/* ' .. e.id .. ', exported by Quoll: integer arithmetic that gives the same codes as there, bit for bit. */',
		('#include "%s.h"\n'):format(e.id) .. HEAD, before, ('#include "%s_weights.h"\n'):format(e.id)}
	for _, text in ipairs(e.part_list) do lines[#lines + 1] = text end
	if #e.struct_list > 0 then lines[#lines + 1] = table.concat(e.struct_list, '\n') .. '\n' end
	if e.arena > 0 then
		lines[#lines + 1] = ('static uint64_t memory[%d];\n#define arena ((uint8_t *)memory)\n'):format((e.arena + 7) // 8)
	end
	lines[#lines + 1] = ('void %s_forward(%s)\n{\n%s%s\n}'):format(e.id, arguments(e), #e.timed > 0 and '\tclock_t start;\n\n' or '', body(e))
	return table.concat(lines, '\n') .. '\n' .. after
end

---------------------------------------------------------------- main.c

local function numbers_of(t, ctype)
	local flat = (t:quantized() and t:codes() or t):contiguous()
	return parts.values(ctype, flat:to(ctype == 'float' and 'float64' or 'int64'):view(flat:nelem()):totable())
end

local function vector_arrays(e, vectors)
	local lines = {}
	local function add(kind, v, k, t)
		lines[#lines + 1] = ('static const %s %s_%s_%d[%d] = {\n%s\n};'):format(v.facts.ctype, kind, v.name, k, v.facts.count,
			numbers_of(t, v.facts.ctype))
	end
	for k, vector in ipairs(vectors) do
		for i, v in ipairs(e.inputs) do add('given', v, k, vector.inputs[i]) end
		for i, v in ipairs(e.results) do add('wanted', v, k, vector.results[i]) end
	end
	return table.concat(lines, '\n\n')
end

local function names_list(e, prefix, k)
	local list = {}
	for _, v in ipairs(e.inputs) do list[#list + 1] = prefix and ('given_%s_%d'):format(v.name, k) or v.name end
	for _, v in ipairs(e.results) do list[#list + 1] = v.name end
	return table.concat(list, ', ')
end

local MAIN = [[
/* Runs @ID@: --selftest compares with the results that Quoll gave, --run reads inputs from stdin until its end and writes the
 * results to stdout as they lie in memory, --time N tells the time of one pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@ID@.h"

@VECTORS@

@BUFFERS@

/* Codes and integers must be equal; floats may be off by this share of the largest. */
static const double tolerance = @TOLERANCE@;

static int same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

static int same_floats(const float *a, const float *b, size_t n)
{
	double most = 0, off = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		double d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i], size = b[i] < 0 ? -b[i] : b[i];

		if (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]))
			d = 0; /* infinities, and nan where nan is wanted */
		if (!(d >= 0))
			return 0;
		size = b[i] == b[i] && size < 1e38 ? size : 0;
		off = d > off ? d : off;
		most = size > most ? size : most;
	}
	return off <= tolerance * most;
}

static int selftest(void)
{
	int failed = 0;

	(void)same_bytes;
	(void)same_floats;
@TESTS@
	printf("%d passed, %d failed\n", @COUNT@ - failed, failed);
	return failed > 0;
}

static int run(void)
{
	while (@READS@) {
		@ID@_forward(@NAMES@);
		if (@WRITES@)
			return 1;
	}
	return 0;
}

static int bench(long passes)
{
	clock_t start = clock();
	long i;

	for (i = 0; i < passes; i++)
		@ID@_forward(@NAMES@);
	printf("%.3f us a pass\n", 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / (double)passes);
@PROFILE@	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--selftest") == 0)
		return selftest();
	if (argc == 2 && strcmp(argv[1], "--run") == 0)
		return run();
	if (argc == 3 && strcmp(argv[1], "--time") == 0)
		return bench(atol(argv[2]) > 0 ? atol(argv[2]) : 1);
	fprintf(stderr, "usage: %s --selftest | --run < inputs > results | --time passes\n", argv[0]);
	return 2;
}
]]

local function main(e, o, vectors)
	local buffers, tests, reads, writes = {}, {}, {}, {}
	for _, v in ipairs(e.inputs) do
		buffers[#buffers + 1] = ('static %s %s[%d];'):format(v.facts.ctype, v.name, v.facts.count)
		reads[#reads + 1] = ('fread(%s, sizeof(%s), 1, stdin) == 1'):format(v.name, v.name)
	end
	local count = 0
	for _, v in ipairs(e.results) do
		buffers[#buffers + 1] = ('static %s %s[%d];'):format(v.facts.ctype, v.name, v.facts.count)
		writes[#writes + 1] = ('fwrite(%s, sizeof(%s), 1, stdout) != 1'):format(v.name, v.name)
	end
	for k in ipairs(vectors) do
		tests[#tests + 1] = ('\t%s_forward(%s);'):format(e.id, names_list(e, true, k))
		for _, v in ipairs(e.results) do
			count = count + 1
			local how = v.facts.ctype == 'float' and ('same_floats(%s, wanted_%s_%d, %d)'):format(v.name, v.name, k, v.facts.count) or
				('same_bytes(%s, wanted_%s_%d, sizeof(%s))'):format(v.name, v.name, k, v.name)
			tests[#tests + 1] = '\tfailed += !' .. how .. ';'
		end
	end
	local fields = {ID = e.id, VECTORS = vector_arrays(e, vectors), BUFFERS = table.concat(buffers, '\n'), TESTS = table.concat(tests, '\n'),
		COUNT = tostring(count), READS = table.concat(reads, ' && '), WRITES = table.concat(writes, ' || '), NAMES = names_list(e),
		TOLERANCE = e.inexact and '2e-5' or '0', PROFILE = #e.timed > 0 and ('\t%s_profile();\n'):format(e.id) or ''}
	return (MAIN:gsub('@(%u+)@', fields))
end

local function makefile(e)
	return ([[
CC = cc
CFLAGS = -O3 -march=native
STRICT = -std=c99 -Wall -Wextra -Werror -ffp-contract=off

@: main.c @.c @.h @_weights.h
	$(CC) $(CFLAGS) $(STRICT) -o $@ main.c @.c

test: @
	./@ --selftest

clean:
	rm -f @

.PHONY: test clean
]]):gsub('%$@', '\1'):gsub('@', e.id):gsub('\1', '$@')
end

---------------------------------------------------------------- g:export

local export_doc = core.method('export', "g:export{dir='net_c', name='net'}",
	[[Writes the graph as C99 into a folder: <name>.c, <name>.h, <name>_weights.h, main.c and a Makefile. `make` builds a program of its own:
--selftest compares with results of g:run that are stored in it, --run reads inputs from stdin, --time N measures. One static arena,
no malloc, no library functions but memcpy; only the functions that are used. Integer results are those of g:run bit for bit; floats
that are made of codes (the last layer, quantize) as well. The graph is one of g:quantize, or the trace of a model, float or of
m:quantize, in any mode: static; dynamic, whose ranges the C finds as Quoll does; weight_only, whose weights are decoded row by row.
rounding= exports it under another rule for integer results (help 'requantization'): g:quantize{rounding=} gives these bits in
g:run, too. Weights of 4 bits lie two in a byte, binary ones eight. Returns a report: bytes of each part, of the constants and of the arena, multiplications.]],
	[[m = nn.Sequential{nn.Linear(4, 3)}
m:calibrate({{tensor.randn(8, 4), tensor.ones(8)}}, {log=false})
g = graph.trace(m:quantize{mode='static'}, tensor.zeros(1, 4))
folder = os.tmpname()
os.remove(folder)
r = g:export{dir=folder, name='tiny'}
print(r[2].node, r[2].macs, io.open(folder .. '/tiny.c') ~= nil)  --> linear1 12 true
os.execute('rm -r ' .. folder)]],
	{{'dir', 'text', 'folder; it is made'}, {'name', 'text', "of files and functions (default 'model')"}, {'batch', 'integer', 'inputs in one pass (default 1)'},
		{'profile', 'text', 'regular expression: nodes whose time is counted'}, {'samples', 'any', 'inputs to test with: a tensor, or a list of them (default: random)'},
		{'rounding', 'text', 'float single double: rule of integer results (default: that of the graph)'}})

local function check(o)
	if not o.dir then fail("export: dir: wanted a folder, got nothing") end
	if o.batch and o.batch < 1 then fail('export: batch: wanted 1 or more, got %d', o.batch) end
	o.name = o.name or 'model'
	if o.rounding then rounding.check('export', o.rounding) end
	if o.profile and internal.matches(o.profile, '') == nil then
		fail("export: profile: wanted a regular expression, got '%.60s'", o.profile)
	end
	return o
end

-- Inputs for the vectors: rows of samples= in batches, or normal random numbers.
local function vectors_of(g, e, o)
	local seed, position = internal.rng(20261121, 0)
	local saved <close> = setmetatable({}, {__close = function() internal.rng(seed, position) end})
	local guard <close> = internal.nograd()
	local list = {}
	for k = 1, VECTORS do
		local inputs = {}
		for i, v in ipairs(e.inputs) do
			local given = o.samples and (is_tensor(o.samples) and o.samples or o.samples[i])
			if given then
				local first = math.min((k - 1) * e.batch + 1, given:size(1) - e.batch + 1)
				if first < 1 then fail('export: samples: wanted at least %d rows, got %d', e.batch, given:size(1)) end
				inputs[i] = given:narrow(1, first, e.batch)
			elseif v.facts.ctype == 'float' then
				inputs[i] = tensor.randn(table.unpack(v.facts.shape))
			else
				fail("export: samples: wanted inputs for '%s', whose dtype is %s", v.name, v.facts.dtype)
			end
		end
		local results = {}
		local function flat(value)
			if is_tensor(value) then
				results[#results + 1] = value
			else
				for _, inner in ipairs(value) do flat(inner) end
			end
		end
		flat(table.pack(g:run(table.unpack(inputs))))
		list[k] = {inputs = inputs, results = results}
	end
	return list
end

local function cost_report(e, o)
	local rows = {columns = {'node', 'op', 'macs'}}
	for i, c in ipairs(e.costs) do rows[i] = {node = c.node, op = c.op, macs = c.macs} end
	local constants, macs = 0, 0
	for _, a in ipairs(e.array_list) do constants = constants + a.bytes end
	for _, c in ipairs(e.costs) do macs = macs + c.macs end
	rows.note = ('%s: constants %d bytes, arena %d bytes, %d functions, %d multiplications'):format(o.name, constants, e.arena, #e.part_list, macs)
	return report(rows)
end

function core.methods.export(g, options)
	core.expect(g, 'export')
	local o = check(base.options(export_doc, options))
	if o.rounding then g = rounding.apply(g, o.rounding) end
	local e = export.compile(g, o)
	e.id, e.timed = names.identifier(o.name), {}
	for _, c in ipairs(e.costs) do
		if o.profile and internal.matches(o.profile, c.node) and c.last >= c.first then e.timed[#e.timed + 1] = c end
	end
	local vectors = vectors_of(g, e, o)
	local good = os.execute(("mkdir -p -- '%s'"):format(o.dir:gsub("'", "'\\''")))
	if not good then fail("export: dir: cannot make '%.200s'", o.dir) end
	local path = o.dir .. '/'
	internal.write_file(path .. e.id .. '.h', header(e, o))
	internal.write_file(path .. e.id .. '.c', source(e, o))
	internal.write_file(path .. e.id .. '_weights.h', weights(e, o))
	internal.write_file(path .. 'main.c', main(e, o, vectors))
	internal.write_file(path .. 'Makefile', makefile(e))
	return cost_report(e, o)
end

return true
