-- SPDX-License-Identifier: MIT
-- The files of an export except main.c: <name>.h, <name>.c, <name>_ops.h, <name>_weights.h or <name>.bin with its
-- loader, Makefile. A bundle (nn/export/export.lua) has the programs of all variants; bundle.id is the name of files
-- and functions. Each file contains the stamp of the export, so files of two exports do not compile together.
local _, internal = ...
local layout = internal.import 'nn/export/layout'
local names = internal.import 'nn/export/names'
local files = {}
local comment = names.comment

---------------------------------------------------------------- declarations

function files.forward_name(bundle, e) return bundle.id .. '_forward' .. e.suffix end

-- The unique name of a header macro; the same words give the same name.
local function macro(bundle, ...)
	bundle.macros = bundle.macros or {taken = {}}
	local key = table.concat({...}, '|')
	if bundle.macros[key] then return bundle.macros[key] end
	local word = (bundle.id .. '_' .. table.concat({...}, '_')):upper():gsub('__+', '_')
	local free, n = word, 2
	while bundle.macros.taken[free] do free, n = word .. '_' .. n, n + 1 end
	bundle.macros.taken[free], bundle.macros[key] = true, free
	return free
end

local function arguments(e)
	local list = {}
	for _, input in ipairs(e.inputs) do list[#list + 1] = ('const %s *%s'):format(input.facts.ctype, input.name) end
	for _, result in ipairs(e.results) do list[#list + 1] = ('%s *%s'):format(result.facts.ctype, result.name) end
	return table.concat(list, ', ')
end

local function declaration(bundle, e)
	return ('%s %s(%s)'):format(bundle.blob and 'int' or 'void', files.forward_name(bundle, e), arguments(e))
end

-- The same pass with its memory as the first argument.
local function declaration_run(bundle, e)
	return ('%s %s_run%s(struct %s_state *state, %s)'):format(bundle.blob and 'int' or 'void', bundle.id, e.suffix, bundle.id, arguments(e))
end

-- Nodes that have lines in the forward pass.
local function layers_of(e)
	local list = {}
	for _, c in ipairs(e.costs) do list[#list + 1] = c.last >= c.first and c or nil end
	return list
end

local function value_text(v, what)
	local f = v.facts
	local codes = f.scale and (', codes: (q - %d) * %.9g'):format(f.zero, f.scale) or ''
	what = v.path and ("%s '%s'"):format(what, comment(v.path)) or what
	return (' *   %s: %s of %s (%s)%s'):format(comment(v.name), what, f.ctype, table.concat(files.shape_of(v), ', '), codes)
end

-- Sizes in memory order.
function files.shape_of(v)
	local s = v.facts.shape
	return v.layout == 'nhwc' and #s == 4 and {s[1], s[3], s[4], s[2]} or s
end

-- Macros of the interface: element counts, scales and zero points.
local function macros(bundle)
	local lines = {('#define %s %d /* sizeof(struct %s_state) */'):format(macro(bundle, 'arena_bytes'), 8 * files.arena_words(bundle), bundle.id)}
	for _, e in ipairs(bundle.variants) do
		local function define(value, ...) lines[#lines + 1] = ('#define %s %s'):format(macro(bundle, e.variant or '', ...), value) end
		define(#layers_of(e), 'layers')
		for _, list in ipairs {e.inputs, e.results} do
			for _, v in ipairs(list) do
				define(v.facts.count, v.name, 'count')
				if v.facts.scale then
					define(('%.9gf'):format(v.facts.scale):gsub('^(%-?%d+)f$', '%1.0f'), v.name, 'scale')
					define(('(%d)'):format(v.facts.zero), v.name, 'zero_point')
				end
			end
		end
	end
	return table.concat(lines, '\n')
end

function files.arena_words(bundle)
	local most = 8
	for _, e in ipairs(bundle.variants) do most = math.max(most, e.arena) end
	return (most + 7) // 8
end

local LOADED = [[

/* Reads the weights. Call it before the first pass: until it has succeeded, the forward functions return 1 and do nothing (else 0).
 * Returns 0; 1: the file cannot be read; 2: it is truncated, damaged or of another export.
 */
int @ID@_load(const char *file);
]]

function files.stamp_macro(bundle) return bundle.id:upper() .. '_STAMP' end

local function stamp_check(bundle)
	return ('#if %s != 0x%08xu\n#error "files of two exports"\n#endif\n'):format(files.stamp_macro(bundle), bundle.stamp)
end
files.stamp_check = stamp_check

function files.header(bundle)
	local lines = {('/* %s: forward passes of a network, exported by Quoll. No allocation; of the C library memcpy and memset%s.'):format(bundle.id,
		bundle.blob and ', and stdio to load' or ''), (' * Reentrant: %s_run keeps all that it writes in the state of the caller, %s_forward in a static one.%s'):format(bundle.id, bundle.id,
			bundle.timed and '\n * The clocks of profile= are static.' or '')}
	for _, e in ipairs(bundle.variants) do
		lines[#lines + 1] = (' * %s:'):format(files.forward_name(bundle, e))
		for _, v in ipairs(e.inputs) do lines[#lines + 1] = value_text(v, 'input') end
		for _, v in ipairs(e.results) do lines[#lines + 1] = value_text(v, 'result') end
	end
	local guard = bundle.id:upper() .. '_H'
	lines[#lines + 1] = ' */'
	lines[#lines + 1] = ('#ifndef %s\n#define %s\n\n#include <stdint.h>\n'):format(guard, guard)
	lines[#lines + 1] = ('#define %s 0x%08xu\n'):format(files.stamp_macro(bundle), bundle.stamp)
	lines[#lines + 1] = '/* A value is (code - zero point) * scale. */\n' .. macros(bundle) .. '\n'
	lines[#lines + 1] = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
	lines[#lines + 1] = ('/* The memory of one pass. It needs no initialization, and its contents are not used by the next pass. */\nstruct %s_state {\n\tuint64_t arena[%d];\n};\n'):format(
		bundle.id, files.arena_words(bundle))
	for _, e in ipairs(bundle.variants) do
		lines[#lines + 1] = declaration(bundle, e) .. ';\n' .. declaration_run(bundle, e) .. ';'
		if #e.timed > 0 then
			lines[#lines + 1] = ('\n/* Prints the processor time of single layers since the start. */\nvoid %s_profile%s(void);'):format(bundle.id, e.suffix)
		end
	end
	if bundle.blob then lines[#lines + 1] = (LOADED:gsub('@ID@', bundle.id):sub(1, -2)) end
	lines[#lines + 1] = '\n#ifdef __cplusplus\n}\n#endif\n\n#endif'
	return layout.wrapped(table.concat(lines, '\n') .. '\n')
end

---------------------------------------------------------------- weights

-- With blob=true the arrays are loaded at run time.
function files.weights(bundle)
	local lines = {'/* Exported by Quoll: constants of ' .. bundle.id .. '. Rows of weights are outputs; of a convolution (output, height, width, channel),\n * unless the array says otherwise. */',
		stamp_check(bundle)}
	for _, a in ipairs(bundle.array_list) do
		if bundle.blob then
			lines[#lines + 1] = ('%sstatic %s %s[%d]; /* %s */'):format(a.aligned, a.ctype, a.name, a.count, comment(a.text))
		else
			lines[#lines + 1] = ('%sstatic const %s %s[%d] = { /* %s */\n%s\n};\n'):format(a.aligned, a.ctype, a.name, a.count, comment(a.text), a.body)
		end
	end
	return table.concat(lines, '\n') .. '\n'
end

local FORMATS = {float = '<f', int8_t = '<b', uint8_t = '<B', int16_t = '<h', uint16_t = '<H', int32_t = '<i4', int64_t = '<i8'}
local SIZES = {float = 4, int8_t = 1, uint8_t = 1, int16_t = 2, uint16_t = 2, int32_t = 4, int64_t = 8}

-- FNV-1a, 32 bits.
local function hash(bytes)
	local h = 0x811c9dc5
	for i = 1, #bytes do h = ((h ~ bytes:byte(i)) * 0x01000193) & 0xffffffff end
	return h
end
files.hash = hash

-- <name>.bin: the concatenated arrays, little-endian, and the hash of the file.
function files.blob(bundle)
	local list = {}
	for _, a in ipairs(bundle.array_list) do
		local format = FORMATS[a.ctype]
		for _, value in ipairs(a.values) do
			list[#list + 1] = string.pack(format, a.ctype ~= 'float' and math.tointeger(value) or value)
		end
	end
	local bytes = table.concat(list)
	return bytes, hash(bytes)
end

local LOADER = [[
static int q_loaded;

static const struct {
	void *at;
	uint32_t size, count;
} q_tables[] = {
@TABLES@
};

/* Converts little-endian numbers to the byte order of this machine. */
static void q_load_order(unsigned char *p, uint32_t size, uint32_t count)
{
	const uint16_t one = 1;
	uint32_t i, k;

	if (*(const unsigned char *)&one == 1)
		return;
	for (i = 0; i < count; i++, p += size)
		for (k = 0; k < size / 2; k++) {
			unsigned char c = p[k];

			p[k] = p[size - 1 - k];
			p[size - 1 - k] = c;
		}
}

static uint32_t q_load_hash(uint32_t hash, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x01000193u;
	return hash;
}

int @ID@_load(const char *file)
{
	FILE *f = fopen(file, "rb");
	uint32_t hash = 0x811c9dc5u;
	size_t i, n = sizeof(q_tables) / sizeof(q_tables[0]);
	int good;

	q_loaded = 0;
	if (!f)
		return 1;
	for (i = 0; i < n; i++) {
		if (fread(q_tables[i].at, q_tables[i].size, q_tables[i].count, f) != q_tables[i].count)
			break;
		hash = q_load_hash(hash, (const unsigned char *)q_tables[i].at, (size_t)q_tables[i].size * q_tables[i].count);
		q_load_order((unsigned char *)q_tables[i].at, q_tables[i].size, q_tables[i].count);
	}
	good = i == n && hash == 0x@HASH@u && fgetc(f) == EOF;
	fclose(f);
	q_loaded = good;
	return good ? 0 : 2;
}
]]

local function loader(bundle)
	local rows = {}
	for i, a in ipairs(bundle.array_list) do rows[i] = ('\t{%s, %d, %d}'):format(a.name, SIZES[a.ctype], a.count) end
	return (LOADER:gsub('@(%u+)@', {ID = bundle.id, TABLES = table.concat(rows, ',\n'), HASH = ('%08x'):format(bundle.blob_hash)}))
end

---------------------------------------------------------------- the program

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
#elif defined __GNUC__
/* gcc 12 makes v * a + b, with b of alternating signs, one fused instruction in spite of -ffp-contract=off; the arena has no type;
 * where its loops know two places in the arena, addresses begin at 0, and what is written there is left out as if it were NULL */
#pragma GCC optimize ("no-tree-slp-vectorize", "no-strict-aliasing", "no-delete-null-pointer-checks")
#endif
]]

local function quoted(text) return '"' .. text:gsub('[^%w_ .:/-]', '_') .. '"' end

-- The functions that are called, each written once per combination of types.
function files.ops(bundle)
	local lines = {('/* Exported by Quoll: the functions of %s, those that it calls and no others. */'):format(bundle.id), stamp_check(bundle)}
	for _, text in ipairs(bundle.part_list) do lines[#lines + 1] = text end
	return layout.wrapped(table.concat(lines, '\n'))
end

local HOOKS = [[
/* A project may set these in a header of its own: -D@ID@_CONFIG='"config.h"'
 *   @LAYER@(index, name)   called before each layer, and after the last with the name 0
 *   @ATTRIBUTE@        of the static arena, such as __attribute__((section(".sram2")))
 *   @NO@               leaves the static arena out, and with it the functions that use it
 */
#ifdef @ID@_CONFIG
#include @ID@_CONFIG
#endif
#ifndef @LAYER@
#define @LAYER@(index, name) ((void)0)
#endif
#ifndef @ATTRIBUTE@
#define @ATTRIBUTE@
#endif
]]

local function hooks(bundle)
	return (HOOKS:gsub('@(%u+)@', {ID = bundle.id:upper(), LAYER = macro(bundle, 'layer'), ATTRIBUTE = macro(bundle, 'arena_attribute'),
		NO = macro(bundle, 'no_arena')}))
end

-- The lines of each node, below its name; those of timed nodes between two readings of the clock.
local function body(bundle, e)
	local heads, begins, ends, list = {}, {}, {}, layers_of(e)
	for i, c in ipairs(list) do
		heads[c.first] = ('\t%s(%d, %s); /* %s */'):format(macro(bundle, 'layer'), i - 1, quoted(c.node), c.op)
	end
	for i, t in ipairs(e.timed) do begins[t.first], ends[t.last] = i, i end
	local lines = {}
	for i, line in ipairs(e.lines) do
		lines[#lines + 1] = heads[i]
		if begins[i] then lines[#lines + 1] = '\tq_start = clock();' end
		lines[#lines + 1] = line
		if ends[i] then lines[#lines + 1] = ('\tq_ticks%s[%d] += clock() - q_start;'):format(e.suffix, ends[i] - 1) end
		if list[#list] and list[#list].last == i then lines[#lines + 1] = ('\t%s(%d, 0);'):format(macro(bundle, 'layer'), #list) end
	end
	return table.concat(lines, '\n')
end

local PROFILE = [[

void @ID@_profile@SUFFIX@(void)
{
	double all = 0;
	int i;

	for (i = 0; i < @N@; i++)
		all += (double)q_ticks@SUFFIX@[i];
	printf("%-@WIDTH@s %15s %9s\n", "node", "processor time", "share");
	for (i = 0; i < @N@; i++)
		printf("%-@WIDTH@s %12.1f us %7.1f %%\n", q_timed@SUFFIX@[i], 1e6 * (double)q_ticks@SUFFIX@[i] / CLOCKS_PER_SEC,
			all > 0 ? 100 * (double)q_ticks@SUFFIX@[i] / all : 0);
}
]]

local function profile(bundle, e)
	if #e.timed == 0 then return '', '' end
	local list, width = {}, 4
	for i, t in ipairs(e.timed) do
		list[i] = quoted(t.node)
		width = math.max(width, #list[i] - 2)
	end
	return ('static clock_t q_ticks%s[%d];\nstatic const char *const q_timed%s[%d] = {\n\t%s\n};\n\n'):format(e.suffix, #list, e.suffix, #list,
		table.concat(list, ', ')), (PROFILE:gsub('@(%u+)@', {ID = bundle.id, SUFFIX = e.suffix, N = tostring(#list), WIDTH = tostring(width)}))
end

local function forward(bundle, e)
	local lines, calls = {declaration_run(bundle, e), '{'}, table.concat(e.lines, '\n')
	local used = calls:find '%f[%w_]arena%f[^%w_]'
	if used then lines[#lines + 1] = '\tuint8_t *const arena = (uint8_t *)state->arena;' end
	if #e.timed > 0 then lines[#lines + 1] = '\tclock_t q_start;' end
	lines[#lines + 1] = (used or #e.timed > 0) and '' or nil
	if not used then lines[#lines + 1] = '\t(void)state;' end
	for _, input in ipairs(e.inputs) do
		if not calls:find('%f[%w_]' .. input.name .. '%f[^%w_]') then lines[#lines + 1] = ('\t(void)%s;'):format(input.name) end
	end
	if bundle.blob then lines[#lines + 1] = '\tif (!q_loaded)\n\t\treturn 1;' end
	lines[#lines + 1] = body(bundle, e)
	if bundle.blob then lines[#lines + 1] = '\treturn 0;' end
	lines[#lines + 1] = '}\n'
	return table.concat(lines, '\n')
end

-- The functions that use the static arena.
local function with_arena(bundle)
	local lines = {('\n#ifndef %s\nstatic struct %s_state memory %s;\n'):format(macro(bundle, 'no_arena'), bundle.id, macro(bundle, 'arena_attribute'))}
	for _, e in ipairs(bundle.variants) do
		local given = {'&memory'}
		for _, list in ipairs {e.inputs, e.results} do
			for _, v in ipairs(list) do given[#given + 1] = v.name end
		end
		lines[#lines + 1] = ('%s\n{\n\t%s%s_run%s(%s);\n}\n'):format(declaration(bundle, e), bundle.blob and 'return ' or '', bundle.id, e.suffix,
			table.concat(given, ', '))
	end
	return table.concat(lines, '\n') .. '#endif\n'
end

function files.source(bundle)
	local timed = bundle.timed
	local lines = {'/* ' .. bundle.id .. ', exported by Quoll: what g:run gives there, integers and codes bit for bit. */',
		('#include "%s.h"\n'):format(bundle.id) .. HEAD}
	if timed or bundle.blob then lines[#lines + 1] = '#include <stdio.h>' .. (timed and '\n#include <time.h>' or '') .. '\n' end
	lines[#lines + 1] = ('#include "%s_ops.h"\n#include "%s_weights.h"\n\n%s'):format(bundle.id, bundle.id, stamp_check(bundle))
	lines[#lines + 1] = hooks(bundle)
	if #bundle.struct_list > 0 then lines[#lines + 1] = table.concat(bundle.struct_list, '\n') .. '\n' end
	if bundle.blob then lines[#lines + 1] = loader(bundle) end
	for _, e in ipairs(bundle.variants) do
		local before, after = profile(bundle, e)
		lines[#lines + 1] = before .. forward(bundle, e) .. after
	end
	lines[#lines + 1] = with_arena(bundle)
	return layout.wrapped(table.concat(lines, '\n'))
end

function files.makefile(bundle)
	return ([[
# Exported by Quoll. For another processor: make CC=aarch64-linux-gnu-gcc; other flags: make CFLAGS=-O1.
CC ?= cc
NATIVE := $(shell $(CC) -march=native -x c -E /dev/null >/dev/null 2>&1 && echo -march=native)
CFLAGS ?= -O3 $(NATIVE)
STRICT = -std=c99 -Wall -Wextra -Werror -ffp-contract=off -fno-strict-aliasing -fno-delete-null-pointer-checks

@: main.c @.c @.h @_ops.h @_weights.h
	$(CC) $(CFLAGS) $(STRICT) -o $@ main.c @.c

test: @
	./@ --selftest

clean:
	rm -f @

.PHONY: test clean
]]):gsub('%$@', '\1'):gsub('@', bundle.id):gsub('\1', '$@')
end

return files
