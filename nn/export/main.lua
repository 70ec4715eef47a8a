-- SPDX-License-Identifier: MIT
-- main.c of an export: a self-test with vectors, a run on input from stdin, and measurements; one set of functions
-- per variant.
local _, internal = ...
local files = internal.import 'nn/export/files'
local layout = internal.import 'nn/export/layout'
local parts = internal.import 'nn/export/parts'

local function numbers_of(t, ctype, image)
	local flat = t:quantized() and t:codes() or t
	if image == 'nhwc' and flat:dim() == 4 then flat = flat:permute(1, 3, 4, 2) end
	flat = flat:contiguous()
	return parts.values(ctype, flat:to(ctype == 'float' and 'float64' or 'int64'):view(flat:nelem()):totable())
end

-- Arrays of numbers; equal arrays are written once.
local function new_vectors()
	local list, known = {}, {}
	return list, function(v, t)
		local body = numbers_of(t, v.facts.ctype, v.layout)
		local key = v.facts.ctype .. body
		if not known[key] then
			known[key] = 'vector_' .. #list + 1
			list[#list + 1] = ('static const %s %s[%d] = {\n%s\n};'):format(v.facts.ctype, known[key], v.facts.count, body)
		end
		return known[key]
	end
end

local VARIANT = [[
@BUFFERS@

static void once@SUFFIX@(void)
{
	@FORWARD@(@NAMES@);
}

static int selftest@SUFFIX@(void)
{
	int failed = 0;

@TESTS@
	return failed;
}

static int run@SUFFIX@(void)
{
	int more;

	while (@READS@) {
		once@SUFFIX@();
		if (@WRITES@)
			return unwritten();
	}
	return more < 0 || (fflush(stdout) != 0 && unwritten());
}
]]

-- The functions of a variant, and the number of its tests.
local function variant(bundle, e, vectors, add)
	local buffers, names, reads, writes, tests, count = {}, {}, {}, {}, {}, 0
	local function name(v) return v.name .. e.suffix end
	local function declare(v) buffers[#buffers + 1] = ('static %s %s[%d];'):format(v.facts.ctype, name(v), v.facts.count) end
	for i, v in ipairs(e.inputs) do
		declare(v)
		names[i] = name(v)
		reads[i] = ('(more = take(%s, sizeof(%s), %d)) > 0'):format(name(v), name(v), i == 1 and 1 or 0)
	end
	for i, v in ipairs(e.results) do
		declare(v)
		names[#names + 1] = name(v)
		writes[i] = ('fwrite(%s, sizeof(%s), 1, stdout) != 1'):format(name(v), name(v))
	end
	for k, vector in ipairs(vectors) do
		local given = table.move(names, 1, #names, 1, {})
		for i, v in ipairs(e.inputs) do given[i] = add(v, vector.inputs[i]) end
		tests[#tests + 1] = ('\t%s(%s);'):format(files.forward_name(bundle, e), table.concat(given, ', '))
		for i, v in ipairs(e.results) do
			local wanted = add(v, vector.results[i])
			local same = v.facts.ctype == 'float' and ('same_floats(%s, %s, %d, %s)'):format(name(v), wanted, v.facts.count,
				e.inexact and ('%.3g'):format(vector.tolerance) or '0') or ('same_bytes(%s, %s, sizeof(%s))'):format(name(v), wanted, name(v))
			tests[#tests + 1] = ('\tfailed += wrong("%s%s of vector %d", %s);'):format(e.variant and e.variant .. ': ' or '', v.name, k, same)
			count = count + 1
		end
	end
	return VARIANT:gsub('@(%u+)@', {SUFFIX = e.suffix, FORWARD = files.forward_name(bundle, e), BUFFERS = table.concat(buffers, '\n'),
		NAMES = table.concat(names, ', '), READS = table.concat(reads, ' && '), WRITES = table.concat(writes, ' || '),
		TESTS = table.concat(tests, '\n')}), count
end

local MAIN = [[
/* Runs @ID@: --selftest compares with the results that Quoll gave, --run reads inputs from stdin until its end and writes the
 * results to stdout in their memory format, --time N prints the time of one pass.@WHICH@
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@ID@.h"

@STAMP@
@VECTORS@

/* Codes and integers must be equal. */
static int same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

/* The error of floats may be at most this fraction of the largest magnitude. */
static int same_floats(const float *a, const float *b, size_t n, double tolerance)
{
	double most = 0, off = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		double d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i], size = b[i] < 0 ? -b[i] : b[i];

		if (tolerance == 0 && a[i] == a[i] && memcmp(a + i, b + i, sizeof(*a)) != 0)
			return 0; /* zeros have signs */
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

static int wrong(const char *what, int same)
{
	if (!same)
		fprintf(stderr, "%s: not what Quoll gave\n", what);
	return !same;
}

/* Reads n bytes from stdin. Returns 1; 0 at the end of input, if `first` allows it; -1 if the input ends too early. */
static int take(void *to, size_t n, int first)
{
	size_t got = fread(to, 1, n, stdin);

	if (got == n)
		return 1;
	if (got == 0 && first && feof(stdin))
		return 0;
	fprintf(stderr, "stdin: wanted whole inputs, got a part of one\n");
	return -1;
}

static int unwritten(void)
{
	fprintf(stderr, "stdout: cannot be written\n");
	return 1;
}

@VARIANTS@
static const struct variant {
	const char *name;
	int tests, (*selftest)(void), (*run)(void);
	void (*once)(void), (*profile)(void);
} variants[] = {
@ROWS@
};

#define VARIANTS (int)(sizeof(variants) / sizeof(variants[0]))

static int test_all(const struct variant *v, int n)
{
	int failed = 0, tests = 0, i;

	(void)same_bytes;
	(void)same_floats;
	for (i = 0; i < n; i++) {
		failed += v[i].selftest();
		tests += v[i].tests;
	}
	printf("%d passed, %d failed\n", tests - failed, failed);
	return failed > 0;
}

static int bench(const struct variant *v, long passes)
{
	clock_t start = clock();
	long i;

	for (i = 0; i < passes; i++)
		v->once();
	printf("%.3f us a pass\n", 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / (double)passes);
	if (v->profile)
		v->profile();
	return 0;
}
@LOAD@
int main(int argc, char **argv)
{
	const struct variant *v = variants;
	int i = 1, k, n = VARIANTS;

@LOADING@	for (k = 0; k < VARIANTS; k++)
		if (i + 1 < argc && strcmp(argv[i], variants[k].name) == 0) {
			v = variants + k;
			n = 1;
			i++;
			break;
		}
	if (argc - i == 1 && strcmp(argv[i], "--selftest") == 0)
		return test_all(v, n);
	if (argc - i == 1 && strcmp(argv[i], "--run") == 0)
		return v->run();
	if (argc - i == 2 && strcmp(argv[i], "--time") == 0)
		return bench(v, atol(argv[i + 1]) > 0 ? atol(argv[i + 1]) : 1);
	fprintf(stderr, "usage: %s @USAGE@--selftest | --run < inputs > results | --time passes\n", argv[0]);
	return 2;
}
]]

local LOAD = [[

/* The weights are in the folder of the program unless a path is given. */
static int load(const char *program, const char *file)
{
	static char path[4096];
	const char *end = strrchr(program, '/');
	size_t n = end ? (size_t)(end - program) + 1 : 0;
	int status;

	if (!file && n + sizeof("@ID@.bin") <= sizeof(path)) {
		memcpy(path, program, n);
		memcpy(path + n, "@ID@.bin", sizeof("@ID@.bin"));
		file = path;
	}
	status = file ? @ID@_load(file) : 1;
	if (status)
		fprintf(stderr, "%s: %s\n", file ? file : program, status == 1 ? "cannot be read" : "not the weights of this program");
	return status;
}
]]
local LOADING = [[
	if (argc > 2 && strcmp(argv[1], "--weights") == 0)
		i = 3;
	if (load(argv[0], i == 3 ? argv[2] : 0))
		return 1;
]]

-- vectors: for each variant a list of {inputs=, results=, tolerance=}.
return function(bundle, vectors)
	local list, add = new_vectors()
	local functions, rows, names = {}, {}, {}
	for i, e in ipairs(bundle.variants) do
		local text, count = variant(bundle, e, vectors[i], add)
		functions[i] = text
		names[i] = e.variant or ''
		local profile = #e.timed > 0 and ('%s_profile%s'):format(bundle.id, e.suffix) or '0'
		rows[i] = ('\t{"%s", %d, selftest%s, run%s, once%s, %s}'):format(names[i], count, e.suffix, e.suffix, e.suffix, profile)
	end
	local several = bundle.variants[1].variant ~= nil
	local usage = (bundle.blob and '[--weights file] ' or '') .. (several and ('[%s] '):format(table.concat(names, ' | ')) or '')
	local fields = {ID = bundle.id, STAMP = files.stamp_check(bundle), VECTORS = table.concat(list, '\n\n'), VARIANTS = table.concat(functions, '\n'),
		ROWS = table.concat(rows, ',\n'), USAGE = usage, LOADING = bundle.blob and LOADING or '',
		LOAD = bundle.blob and LOAD:gsub('@ID@', bundle.id) or '', WHICH = several and
			('\n * The first argument may be a variant (%s); the default is the first one, and --selftest tests all.'):format(table.concat(names, ', ')) or ''}
	return layout.wrapped((MAIN:gsub('@(%u+)@', fields)))
end
