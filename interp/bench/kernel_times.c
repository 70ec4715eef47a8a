/* SPDX-License-Identifier: MIT
 * internal.kernel_times(seconds): how long each function of each line of kernels.def takes, on one thread and data that stay in
 * the first caches. A family has a function here that makes operands and calls one kernel; that its results are right is
 * the matter of the exactness tests (tests/kernels.c, tests/kernels_codes.c).
 */
#include <string.h>
#include <time.h>

#include "interp/bind/call.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/ops.h"

#define K 512  /* of products */
#define N 8192 /* elements of rows */
#define BYTES ((size_t)1 << 18)

/* Operands of any type: bytes 1, which are small numbers in each. */
struct memory {
	void *a, *b, *c;
};

/* One call of function `which`; returns its operations (two for a multiplication and its addition) or elements, 0 when there is no such function. */
typedef double call_fn(const void *kernel, int which, const struct memory *m);

static double call_gemm_f32(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_f32 *k = kernel;

	if (which || !k->tile)
		return 0;
	k->tile(k->mr, k->nr, K, m->a, K, m->b, k->nr, m->c, k->nr, 0);
	return 2.0 * k->mr * k->nr * K;
}

static double call_gemm_bf16(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_bf16 *k = kernel;

	(void)which;
	k->tile(k->mr, k->nr, K / 2, m->a, K, m->b, m->c, k->nr, false);
	return 2.0 * k->mr * k->nr * K;
}

static double call_gemm_i8(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_i8 *k = kernel;

	if (which == 0) {
		k->tile(k->mr, k->nr, K / 4, m->a, K, m->b, m->c);
		return 2.0 * k->mr * k->nr * K;
	}
	if (which == 2) {
		if (k->tile_s8)
			k->tile_s8(k->mr, k->nr, K / 4, m->a, K, m->b, m->c);
		return k->tile_s8 ? 2.0 * k->mr * k->nr * K : 0;
	}
	k->dots(k->dot_rows, K, m->a, K, m->b, K, m->c, QL_DOTS_LINES);
	return 2.0 * k->dot_rows * QL_DOTS_LINES * K;
}

static double call_gemm_i16(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_i16 *k = kernel;

	(void)which;
	k->tile(k->mr, k->nr, K / 4, m->a, K, m->b, m->c);
	return 2.0 * k->mr * k->nr * K;
}

static double call_gemm_b1(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_b1 *k = kernel;

	(void)which;
	k->tile(k->mr, k->nr, K / 64, m->a, K / 64, m->b, m->c);
	return 2.0 * k->mr * k->nr * K;
}

static double call_taps_i16(const void *kernel, int which, const struct memory *m)
{
	static const int64_t at[] = {0, 2, 1024, 1026, 2048, 2050};
	const struct ql_taps_i16 *k = kernel;

	(void)which;
	k->sums(K, 1, QL_TAPS_OUTPUTS, 6, m->a, at, m->b, m->c, K + QL_TAPS_SLACK);
	return 2.0 * K * QL_TAPS_OUTPUTS * 12;
}

/* A line of 3 x 3 taps over 64 channels, for one panel of outputs. */
static double call_conv_i8(const void *kernel, int which, const struct memory *m)
{
	static const int64_t at[] = {0, 2200, 4400};
	static const struct ql_conv_i8_sums sums = {
		.step = 64, .quads = 48, .at = at, .segments = 3, .panel = 3L * 48 * 4 * QL_CONV_PANEL};
	static const int32_t bias[QL_CONV_PANEL];
	static const float factor[QL_CONV_PANEL];
	static const struct ql_conv_i8_codes codes = {
		.bias = bias, .factor = factor, .hi = 255, .pitch = QL_CONV_PANEL};
	const struct ql_conv_i8 *k = kernel;

	(void)which;
	k->codes(k->most[1], QL_CONV_PANEL, &sums, &codes, m->a, m->b, NULL, m->c);
	return 2.0 * k->most[1] * (double)sums.panel;
}

/* 3 x 3 taps of a block of channels. */
static double call_depth_i8(const void *kernel, int which, const struct memory *m)
{
	static const int64_t at[] = {0, 64, 128, 1024, 1088, 1152, 2048, 2112, 2176, 0, 0, 0};
	static const struct ql_depth_i8_sums sums = {.step = 64, .quads = 3, .at = at};
	static const int32_t bias[QL_DEPTH_BLOCK];
	static const float factor[QL_DEPTH_BLOCK];
	static const struct ql_conv_i8_codes codes = {
		.bias = bias, .factor = factor, .hi = 255, .pitch = QL_DEPTH_BLOCK};
	const struct ql_depth_i8 *k = kernel;

	(void)which;
	k->codes(k->most, 16 * k->lanes, &sums, &codes, m->a, m->b, NULL, m->c);
	return 2.0 * k->most * 16 * k->lanes * 9;
}

/* Strips of 4-bit codes in blocks of 32: all rows decoded, one row of floats, the most rows of codes. */
static double call_gemm_coded(const void *kernel, int which, const struct memory *m)
{
	const struct ql_gemm_coded *k = kernel;
	const struct ql_strip strip = {.codes = m->b, .bits = 4, .block = 32, .scale = m->a, .middle = 8};
	const struct ql_strip four[QL_STRIPS] = {strip, strip, strip, strip};
	const struct ql_strip_rows rows = {.a = m->a, .lda = K, .sum = m->a, .start = m->a, .pitch = K / 32};

	switch (which) {
	case 0: k->floats(&strip, 0, K, m->c, QL_STRIP); return K * QL_STRIP;
	case 1: k->row(QL_STRIPS, four, K, m->a, m->c, false); return 2.0 * QL_STRIPS * QL_STRIP * K;
	default:
		k->dots(QL_STRIP_TILE, QL_STRIP_ROWS, four, K, &rows, m->c);
		return 2.0 * QL_STRIP_TILE * QL_STRIP_ROWS * QL_STRIP * K;
	}
}

static double call_pack_i8(const void *kernel, int which, const struct memory *m)
{
	const struct ql_pack_i8 *k = kernel;

	if (which) {
		k->copy(N, m->a, 0x80, m->c);
		return N;
	}
	k->rows(K / 4, 64, 64, m->a, 64, 0x80, m->c, 64L * K);
	return 64.0 * K;
}

static const float one_scale = 0.03F;
static const struct ql_affine affine = {.scale = &one_scale, .lo = -128, .hi = 127};

static double call_quantize(const void *kernel, int which, const struct memory *m)
{
	const struct ql_quantize *k = kernel;

	switch (which) {
	case 0: k->to_8(&affine, m->a, N, m->c); break;
	case 1: k->to_16(&affine, m->a, N, m->c); break;
	case 2: k->ranges(m->a, 32, N / 32, m->c, (float *)m->c + N / 32); break;
	default: k->to_signs(m->a, N, m->c);
	}
	return N;
}

static double call_dequantize(const void *kernel, int which, const struct memory *m)
{
	const struct ql_dequantize *k = kernel;

	switch (which) {
	case 0: k->from_i8(&affine, m->a, N, m->c); break;
	case 1: k->from_i16(&affine, m->a, N, m->c); break;
	default: k->from_signs(one_scale, m->a, N, m->c);
	}
	return N;
}

/* An elementwise op under the variant of the loops that the kernel stands for. */
static double map(const struct ql_simd *k, const char *name, const struct memory *m)
{
	const float *const operands[QL_MAP_MAX] = {m->a, m->b, m->a};
	const struct ql_map_args args = {0};

	for (int i = 0; ql_ops[i]; i++)
		if (ql_ops[i]->eval == ql_map_eval && !strcmp(ql_ops[i]->doc.name, name)) {
			((const struct ql_map *)ql_ops[i]->impl)->f32[k->variant](N, m->c, operands, &args);
			return N;
		}
	return 0;
}

static double call_simd(const void *kernel, int which, const struct memory *m)
{
	static const char *const names[] = {"add", "gelu"};

	return map(kernel, names[which], m);
}

static double call_limit(const void *kernel, int which, const struct memory *m)
{
	const struct ql_limit *k = kernel;

	switch (which) {
	case 0: return k->floats(K);
	case 1: return k->integers(K);
	default: ((uint32_t *)m->c)[0] = k->read(m->a, 4 * (int64_t)N); return N;
	}
}

struct family {
	const char *name;
	call_fn *call;
	const char *calls[4];
};

static const struct family families[] = {{"gemm_f32", call_gemm_f32, {"tile"}},
	{"gemm_i8", call_gemm_i8, {"tile", "dots", "tile_s8"}}, {"conv_i8", call_conv_i8, {"codes"}},
	{"depth_i8", call_depth_i8, {"codes"}}, {"gemm_coded", call_gemm_coded, {"floats", "row", "dots"}},
	{"pack_i8", call_pack_i8, {"rows", "copy"}}, {"gemm_bf16", call_gemm_bf16, {"tile"}},
	{"gemm_i16", call_gemm_i16, {"tile"}}, {"gemm_b1", call_gemm_b1, {"tile"}},
	{"taps_i16", call_taps_i16, {"sums"}}, {"quantize", call_quantize, {"to_8", "to_16", "ranges", "to_signs"}},
	{"dequantize", call_dequantize, {"from_i8", "from_i16", "from_signs"}}, {"simd", call_simd, {"add", "gelu"}},
	{"limit", call_limit, {"floats", "integers", "read"}}, {NULL, NULL, {NULL}}};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest call, of samples of at least 20 us. */
static double fastest(const struct family *f, int which, const void *kernel, const struct memory *m, double seconds)
{
	double best = 1e9, stop = now() + seconds, start, took;
	int64_t calls = 1;

	do {
		start = now();
		for (int64_t i = 0; i < calls; i++)
			f->call(kernel, which, m);
		took = now() - start;
		if (took / (double)calls < best)
			best = took / (double)calls;
		if (took < 2e-5)
			calls *= 2;
	} while (now() < stop || took < 2e-5);
	return best;
}

static void add_rows(lua_State *L, const struct ql_kernel_entry *e, const struct memory *m, double seconds)
{
	const struct family *f = families;

	while (f->name && strcmp(f->name, e->family))
		f++;
	for (int which = 0; f->name && which < 4 && f->calls[which]; which++) {
		double work = f->call(e->kernel, which, m);

		if (work <= 0)
			continue;
		lua_createtable(L, 0, 8);
		ql_set_text(L, "family", e->family);
		ql_set_text(L, "kernel", e->isa);
		ql_set_text(L, "call", f->calls[which]);
		lua_pushnumber(L, 1e9 * fastest(f, which, e->kernel, m, seconds));
		lua_setfield(L, -2, "ns");
		lua_pushnumber(L, work);
		lua_setfield(L, -2, "work");
		lua_seti(L, -2, luaL_len(L, -2) + 1);
	}
}

static bool can_run(const struct ql_kernel_entry *e)
{
	const struct ql_gemm_f32 *k = e->kernel;

	return !(e->needs & ~ql_cpu()->features) && (strcmp(e->family, "gemm_f32") || k->tile);
}

/* internal.kernel_times(seconds) -> list of {family=, kernel=, call=, ns=, work=}, seconds for each */
static int internal_kernel_times(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	double seconds = luaL_checknumber(L, 1);
	/* the collector frees them when something raises */
	struct memory m = {
		lua_newuserdatauv(L, BYTES, 0), lua_newuserdatauv(L, BYTES, 0), lua_newuserdatauv(L, BYTES, 0)};

	memset(m.a, 1, BYTES);
	memset(m.b, 1, BYTES);
	memset(m.c, 1, BYTES);
	lua_newtable(L);
	for (int i = 0; i < ql_kernel_count && !ql_stopped(ctx); i++)
		if (can_run(&ql_kernel_entries[i]))
			add_rows(L, &ql_kernel_entries[i], &m, seconds);
	return 1;
}

static const luaL_Reg internal[] = {{"kernel_times", internal_kernel_times}, {NULL, NULL}};

int ql_open_kernel_times(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, internal);
	lua_pop(L, 1);
	return 0;
}
