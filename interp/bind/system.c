/* SPDX-License-Identifier: MIT
 * The C part of the global `hw`: clock, what the processor has, which kernels run; and what the prelude needs
 * of the system (table `internal`): terminal width, load, memory peak, random state.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interp/bind/call.h"
#include "interp/bind/gpu.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/surplus.h"
#include "interp/host/undo.h"
#include "interp/host/width.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/team.h"

/* ---- hw ---- */

static int hw_clock(lua_State *L)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	lua_pushnumber(L, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
	return 1;
}

static void set_flag(lua_State *L, const char *name, bool value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

static void set_size(lua_State *L, const char *name, size_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

/* The ISA of the int8 product: its kernel has one for every level. */
static const char *level_in_force(void)
{
	return ql_kernels_cpu()->gemm_i8->name + strlen("gemm_i8_");
}

static void add_name(lua_State *L, bool there, const char *name)
{
	if (!there)
		return;
	lua_pushstring(L, name);
	lua_seti(L, -2, luaL_len(L, -2) + 1);
}

/* imma: dtypes that integer tensor cores multiply themselves, by compute capability. Hopper (9.0) runs int4
 * as two int8 instructions, so it does not count there. */
static void set_imma(lua_State *L, int capability)
{
	if (capability < 72) {
		set_flag(L, "imma", false);
		return;
	}
	lua_newtable(L);
	add_name(L, true, "int8");
	add_name(L, capability >= 75 && capability < 90, "int4");
	add_name(L, capability >= 75 && capability < 100, "binary");
	lua_setfield(L, -2, "imma");
}

static void set_gpu(lua_State *L)
{
	const struct ql_gpu_info *d = ql_gpu_first();
	int capability = d ? 10 * d->cc_major + d->cc_minor : 0;

	if (d)
		ql_set_text(L, "gpu", d->name);
	else
		set_flag(L, "gpu", false);
	set_flag(L, "dp4a", capability >= 61);
	set_imma(L, capability);
}

static int hw_features(lua_State *L)
{
	const struct ql_cpu *cpu = ql_cpu();
	uint32_t f = cpu->features;

	lua_createtable(L, 0, 16);
	ql_set_text(L, "name", cpu->name);
	ql_set_text(L, "simd", f & QL_CPU_AVX512 ? "avx512" : f & QL_CPU_AVX2 ? "avx2" : "sse2");
	set_size(L, "width", f & QL_CPU_AVX512 ? 64 : f & QL_CPU_AVX2 ? 32 : 16);
	set_flag(L, "vnni", f & QL_CPU_AVX512VNNI);
	set_flag(L, "avxvnni", f & QL_CPU_AVXVNNI);
	set_flag(L, "amx", f & QL_CPU_AMX_INT8);
	set_flag(L, "bf16", f & QL_CPU_AVX512BF16);
	set_flag(L, "bf16tiles", f & QL_CPU_AMX_BF16);
	set_flag(L, "popcnt", f & QL_CPU_AVX512POPCNT);
	set_size(L, "cores", (size_t)cpu->cores);
	lua_pushboolean(L, ql_team_pinned());
	lua_setfield(L, -2, "pinned");
	set_size(L, "l1", cpu->l1d);
	set_size(L, "l2", cpu->l2);
	set_size(L, "l3", cpu->l3);
	ql_set_text(L, "level", level_in_force());
	set_gpu(L);
	return 1;
}

static int hw_force(lua_State *L)
{
	char before[96], near[96];
	const char *level, *word;
	enum ql_status status = QL_OK;

	ql_kernels_cpu(); /* reads QUOLL_KERNEL when nothing ran yet */
	snprintf(before, sizeof(before), "%s", ql_kernels_level());
	if (!lua_isnoneornil(L, 1)) {
		if (lua_type(L, 1) != LUA_TSTRING)
			return ql_error(
				L, "force: wanted one of %s native, got %s", QL_CPU_LEVELS, luaL_typename(L, 1));
		level = lua_tostring(L, 1);
		word = strstr(level, QL_CPU_BF16_TILES) ? QL_CPU_BF16_TILES : QL_CPU_BF16;
		if (!ql_kernels_force(level) && ql_kernels_known(level))
			return ql_error(L,
				"force: %s: wanted a processor with %s, or a level before it ('avx2 %s' gives the same bits), got %s",
				word, strcmp(word, QL_CPU_BF16) ? "AMX_BF16" : "AVX512_BF16", word, ql_cpu()->name);
		if (!ql_kernels_known(level))
			return ql_error(L, "force: wanted one of %s native, got '%.40s'%s", QL_CPU_LEVELS, level,
				ql_nearest(level,
					QL_CPU_LEVELS " native " QL_CPU_BF16 " " QL_CPU_BF16_TILES
						      " " QL_DEVICE_FAMILIES,
					near));
		for (const struct ql_device *d = ql_ctx_of(L)->devices; d && !status; d = d->next)
			status = ql_gpu_force(d);
		if (status)
			return ql_raise(L, status);
	}
	lua_pushstring(L, before);
	return 1;
}

static bool runs_here(const struct ql_kernel_entry *e)
{
	const struct ql_gemm_f32 *product = e->kernel;

	if ((e->needs & ~ql_cpu()->features) != 0)
		return false;
	return strcmp(e->family, "gemm_f32") || !product->available || product->available();
}

static const void *kernel_of(const char *family)
{
	const struct ql_kernels *k = ql_kernels_cpu();

#define F(name) \
	if (!strcmp(family, #name)) \
		return k->name;
	QL_KERNEL_FAMILIES(F)
#undef F
	return NULL;
}

/* Rows x columns of a product's tile. */
static void set_tile(lua_State *L, const struct ql_kernel_entry *e)
{
	int rows = 0, columns = 0;

#define TILE(type) \
	(rows = ((const struct ql_##type *)e->kernel)->mr, columns = ((const struct ql_##type *)e->kernel)->nr)
	if (!strcmp(e->family, "gemm_f32"))
		TILE(gemm_f32);
	else if (!strcmp(e->family, "gemm_bf16"))
		TILE(gemm_bf16);
	else if (!strcmp(e->family, "gemm_i8"))
		TILE(gemm_i8);
	else if (!strcmp(e->family, "gemm_i16"))
		TILE(gemm_i16);
	else if (!strcmp(e->family, "gemm_b1"))
		TILE(gemm_b1);
#undef TILE
	if (!rows)
		return;
	lua_pushfstring(L, "%dx%d", rows, columns);
	lua_setfield(L, -2, "tile");
}

/* internal.kernels(): a list of {family=, kernel=, here=, used=, tile=} in the order of tensor/kernels/kernels.def */
static int internal_kernels(lua_State *L)
{
	lua_createtable(L, ql_kernel_count, 0);
	for (int i = 0; i < ql_kernel_count; i++) {
		const struct ql_kernel_entry *e = &ql_kernel_entries[i];

		lua_createtable(L, 0, 5);
		ql_set_text(L, "family", e->family);
		ql_set_text(L, "kernel", e->isa);
		set_flag(L, "here", runs_here(e));
		set_flag(L, "used", kernel_of(e->family) == e->kernel);
		set_tile(L, e);
		lua_seti(L, -2, i + 1);
	}
	return 1;
}

/* ---- ordered products ---- */

/* internal.ordered() -> a value for local … <close>: until it is closed float32 products are ordered (tensor/kernels/kernels.h) */
static int internal_ordered(lua_State *L)
{
	ql_guard_push(L, QL_GUARD_ORDERED);
	return 1;
}

/* ---- for the prelude ---- */

/* internal.width(): columns that a printed value may take (interp/host/width.h) */
static int internal_width(lua_State *L)
{
	lua_pushinteger(L, ql_width());
	return 1;
}

static int internal_fix_width(lua_State *L)
{
	(void)L;
	ql_width_fix();
	return 0;
}

/* internal.load(): processes that ran or waited to run, averaged over the last minute; nil: not known */
static int internal_load(lua_State *L)
{
	double load[1];

	if (getloadavg(load, 1) == 1)
		lua_pushnumber(L, load[0]);
	else
		lua_pushnil(L);
	return 1;
}

/* internal.peak(bytes): sets the peak of the tensors' memory, at least to what is in use, and returns the old
 * one */
static int internal_peak(lua_State *L)
{
	struct ql_memory *memory = &ql_ctx_of(L)->memory;
	size_t before = memory->peak, wanted = (size_t)luaL_checkinteger(L, 1);

	memory->peak = wanted > memory->now ? wanted : memory->now;
	lua_pushinteger(L, (lua_Integer)before);
	return 1;
}

/* internal.rng(seed, position): sets the state of the random numbers and returns the old one */
static int internal_rng(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	lua_Integer seed = luaL_checkinteger(L, 1), position = luaL_checkinteger(L, 2);

	lua_pushinteger(L, (lua_Integer)ctx->seed);
	lua_pushinteger(L, (lua_Integer)ctx->rng_position);
	ctx->seed = (uint64_t)seed;
	ctx->rng_position = (uint64_t)position;
	return 2;
}

/* internal.prompting(): whether inputs come from the prompt */
static int internal_prompting(lua_State *L)
{
	lua_pushboolean(L, ql_width_at_prompt());
	return 1;
}

/* internal.live(): whether a line on stderr can be drawn over */
static int internal_live(lua_State *L)
{
	const char *term = getenv("TERM");

	lua_pushboolean(L, isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb"));
	return 1;
}

static const luaL_Reg functions[] = {{"clock", hw_clock}, {"features", hw_features}, {"force", hw_force}, {NULL, NULL}};

static const luaL_Reg internal[] = {{"width", internal_width}, {"fix_width", internal_fix_width},
	{"live", internal_live}, {"prompting", internal_prompting}, {"load", internal_load}, {"peak", internal_peak},
	{"rng", internal_rng}, {"kernels", internal_kernels}, {"ordered", internal_ordered}, {NULL, NULL}};

static const struct ql_attr force_attrs[] = {
	{"level", QL_ATTR_STRING, QL_POSITIONAL, QL_CPU_LEVELS " native",
		"the best kernels allowed, bf16 or bf16tiles, and families of devices' kernels (" QL_DEVICE_FAMILIES
		"); none: only reports"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_doc docs[] = {
	{"clock", "hw.clock()",
		"Seconds since some fixed moment, as a float with a resolution of about a microsecond or "
		"better. It never goes "
		"back; differences are wall time, while os.clock counts processor time of all threads.",
		"t = hw.clock()\nprint(hw.clock() >= t)  --> true", NULL},
	{"features", "hw.features()",
		"What this processor has, as a table: name; simd (sse2, avx2, avx512) and width, its bytes "
		"per register; vnni, "
		"avxvnni, amx, bf16, bf16tiles (AMX_BF16), popcnt (vectors of bit counts) as booleans, true only when the "
		"operating system allows "
		"their use; cores; pinned: each thread stays on one; l1, l2, l3 in bytes (0: not known); level, the kernels that are in force "
		"(hw.force); gpu, its "
		"name or false, with dp4a (true or false) and imma (the dtypes of its integer tensor cores, "
		"or false).",
		"f = hw.features()\nprint(f.cores >= 1, f.width >= 16)  --> true true", NULL},
	{"force", "hw.force(level)",
		"Allows only kernels up to a level and returns the level that was in force before, so that "
		"hw.force(it) restores "
		"it. A level that the processor lacks gives the best one below it. Integer results do not "
		"depend on it. Words " QL_DEVICE_FAMILIES
		" behind a level or alone allow only these kernels of devices ('ref simt', "
		"'mma'), of which gpu.kernels has a list. At level ref, devices add products in order, too. With the word bf16 behind a level "
		"or alone ('bf16', 'avx2 bf16') the CPU's matmul and linear of floats up to 32 bits, and their gradients, round their "
		"operands to bfloat16 and sum pairs of products in float32, as the instruction vdpbf16ps does: about twice as fast with AVX512_BF16, with errors "
		"of 2^-9 of each operand, the same bits at each level; path and kernel in quant.log say so. "
		"Weights of float32 are rounded at each product, which takes longer than multiplying up to some 8 rows: convert them once (x:to 'bfloat16'). Alone it is an error on a processor without "
		"that instruction. The word bf16tiles in its place has the sums of AMX's tdpbf16ps: of 32 products the even and the odd ones apart, "
		"which no other instruction adds so; again the same bits at each level, but others than those of bf16. Codes, float64, convolution, attention and recurrent layers, ordered products and devices do not change. The same "
		"from outside: QUOLL_KERNEL=avx2. See hw.kernels.",
		"before = hw.force 'ref'\nprint(hw.features().level)  --> ref\nhw.force(before)", force_attrs},
	{NULL, NULL, NULL, NULL, NULL},
};

int ql_open_system(lua_State *L)
{
	static struct ql_doc_list list = {.module = "hw", .docs = docs};

	ql_doc_register(&list);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, internal);
	lua_pop(L, 1);
	lua_newtable(L);
	ql_set_documented(L, functions, docs);
	lua_setglobal(L, "hw");
	return 0;
}
