/* SPDX-License-Identifier: MIT
 * Copies and casts between any strides, to whole-byte dtypes from all, by the rules of tensor/tensor.c: integers by way of int64,
 * saturating; floats by way of the wider of both types. Codes are copied as they are. A number of the host fills the result.
 * Where neighbours in the operand and neighbours in the result lie along different axes, tiles go through shared memory, so that
 * both are accessed in lines of 128 bytes.
 * quantize to a float dtype is such a cast.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	int from, to;

	if (call->n_in != 1 || call->n_out != 1)
		return ql_refuse(p, "copy: wanted one operand and one result");
	from = ql_element_of(call->in[0].dtype);
	to = ql_element_of(call->out[0].dtype);
	if (!strcmp(call->op, "quantize") && (call->in[0].codes || call->out[0].codes))
		return ql_refuse(p, "codes are made by quantize");
	if (!ql_element_whole(to) || (from < 0 && !(call->in[0].flags & QL_GPU_NUMBER)))
		return ql_refuse(p, "a result of packed elements");
	if ((from != to || (call->in[0].flags & QL_GPU_NUMBER)) && (call->in[0].codes || call->out[0].codes))
		return ql_refuse(p, "codes are never cast");
	p->path = ql_element_get(to).name;
	return true;
}

/* ---- the same dtype ---- */

template <typename T> QL_KERNEL(THREADS) move(T *to, const T *from, ql_strided s)
{
	for (int64_t i = ql_thread(); i < s.count - QL_BUG(copy_bound); i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];

		ql_strided_at(s, i, at);
		to[at[1]] = from[at[0]];
	}
}

/* Dense and aligned: 16 bytes at a time. */
QL_KERNEL(THREADS) move_dense(uint4 *to, const uint4 *from, int64_t n)
{
	for (int64_t i = ql_thread(); i < n; i += ql_threads())
		to[i] = from[i];
}

/* ---- transposed: axis `across` has stride 1 in the operand, the last axis in the result ---- */

#define TURNED_LEAST 16 /* elements along both axes */

/* Elements along both edges of a tile, and from a line of it to the next, an odd number of words. */
template <typename T> constexpr int EDGE = sizeof(T) >= 4 ? 32 : 128 / (int)sizeof(T);
template <typename T> constexpr int TILE_PITCH = EDGE<T> + (sizeof(T) >= 4 ? 1 : 4 / (int)sizeof(T));
template <typename T> struct turned_tile {
	T at[EDGE<T>][TILE_PITCH<T>];
};

/* `rest`: the walk over the other axes. */
struct turn {
	ql_strided rest;
	int64_t lines, width, line[QL_STRIDED_MOST], step[QL_STRIDED_MOST]; /* along `across`, and along the last axis */
	int64_t tiles[2];                                                    /* the same */
};

template <typename T> QL_KERNEL(THREADS, 2) move_turned(T *to, const T *from, turn t)
{
	QL_SHARED(turned_tile<T>, tile);
	int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;

	for (int64_t b = blockIdx.x; b < t.tiles[0] * t.tiles[1] * t.rest.count; b += gridDim.x) {
		int64_t column = b % t.tiles[1] * EDGE<T>, line = b / t.tiles[1] % t.tiles[0] * EDGE<T>;
		int64_t at[QL_STRIDED_MOST], lines = t.lines - line, width = t.width - column;

		ql_strided_at(t.rest, b / t.tiles[1] / t.tiles[0], at);
		QL_UNROLL
		for (int i = 0; i < EDGE<T>; i += THREADS / 32) {
			QL_UNROLL
			for (int j = 0; j < EDGE<T>; j += 32)
				if (i + warp < width && j + lane < lines)
					tile.at[i + warp][j + lane] = from[at[0] + (column + i + warp) * t.step[0] +
									   (line + j + lane) * t.line[0]];
		}
		if (!QL_BUG(copy_tile))
			__syncthreads();
		QL_UNROLL
		for (int i = 0; i < EDGE<T>; i += THREADS / 32) {
			QL_UNROLL
			for (int j = 0; j < EDGE<T>; j += 32)
				if (i + warp < lines && j + lane < width)
					to[at[1] + (line + i + warp) * t.line[1] + (column + j + lane) * t.step[1]] =
						tile.at[j + lane][i + warp];
		}
		__syncthreads(); /* before the tile is filled again */
	}
}

/* False: not such a copy. */
static bool turn_of(const ql_strided &s, int64_t edge, turn *t)
{
	int last = s.rank - 1, across = 0;

	while (across < last && s.stride[0][across] != 1)
		across++;
	if (across == last || s.stride[0][last] == 1 || s.stride[1][last] != 1 || s.shape[across] < TURNED_LEAST ||
		s.shape[last] < TURNED_LEAST)
		return false;
	*t = turn{};
	t->rest.count = 1;
	t->rest.cut = -1;
	for (int d = 0; d < last; d++) {
		if (d == across)
			continue;
		t->rest.shape[t->rest.rank] = s.shape[d];
		t->rest.stride[0][t->rest.rank] = s.stride[0][d];
		t->rest.stride[1][t->rest.rank++] = s.stride[1][d];
		t->rest.count *= s.shape[d];
	}
	ql_strided_join(&t->rest);
	t->lines = s.shape[across];
	t->width = s.shape[last];
	for (int k = 0; k < QL_STRIDED_MOST; k++) {
		t->line[k] = s.stride[k][across];
		t->step[k] = s.stride[k][last];
	}
	t->tiles[0] = (t->lines + edge - 1) / edge;
	t->tiles[1] = (t->width + edge - 1) / edge;
	return true;
}

template <typename T> static cudaError_t move_as(cudaStream_t stream, void *to, const void *from, const ql_strided &s)
{
	bool dense = s.rank == 1 && s.stride[0][0] == 1 && s.stride[1][0] == 1;
	int64_t bytes = s.count * (int64_t)sizeof(T);
	turn t;

	if (dense && bytes % 16 == 0 && ((uintptr_t)to | (uintptr_t)from) % 16 == 0)
		return ql_launch_free(move_dense, ql_blocks(bytes / 16, THREADS), dim3(THREADS), stream,
			static_cast<uint4 *>(to), static_cast<const uint4 *>(from), bytes / 16);
	if (turn_of(s, EDGE<T>, &t))
		return ql_launch(move_turned<T>, ql_blocks(t.tiles[0] * t.tiles[1] * t.rest.count, 1), dim3(THREADS),
			sizeof(turned_tile<T>), stream, static_cast<T *>(to), static_cast<const T *>(from), t);
	return ql_launch_free(move<T>, ql_blocks(s.count, THREADS), dim3(THREADS), stream, static_cast<T *>(to),
		static_cast<const T *>(from), s);
}

/* ---- casts ---- */

enum way { BY_I64, CLAMPED, BY_F64, BY_F32 };

static enum way way_of(int from, int to)
{
	struct ql_element_info f = ql_element_get(from), t = ql_element_get(to);
	bool wide = f.kind == QL_E_FLOAT ? f.bits > 32 : f.bits > 24;

	if (f.kind != QL_E_FLOAT && t.kind != QL_E_FLOAT)
		return t.kind == QL_E_BOOL ? BY_I64 : CLAMPED;
	if (f.kind != QL_E_FLOAT && f.bits == 64)
		return BY_I64;
	return wide || (t.kind == QL_E_FLOAT ? t.bits > 32 : t.bits > 24) ? BY_F64 : BY_F32;
}

struct cast {
	int from, to, way;
	int64_t lo, hi;
};

QL_KERNEL(THREADS) convert(void *to, const void *from, ql_strided s, cast c)
{
	for (int64_t i = ql_thread(); i < s.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];

		ql_strided_at(s, i, at);
		if (c.way == BY_F32)
			ql_store_f32(c.to, to, at[1], ql_load_f32(c.from, from, at[0]));
		else if (c.way == BY_F64)
			ql_store_f64(c.to, to, at[1], ql_load_f64(c.from, from, at[0]));
		else if (c.way == BY_I64)
			ql_store_i64(c.to, to, at[1], ql_load_i64(c.from, from, at[0]));
		else
			ql_store_i64(c.to, to, at[1], ql_clamp_i64(ql_load_i64(c.from, from, at[0]), c.lo, c.hi));
	}
}

/* Dense casts between floats of 16 and 32 bits, eight elements at a time. */
#define EACH 8
template <int TO, int FROM> QL_KERNEL(THREADS) convert_dense(void *to, const void *from, int64_t n)
{
	constexpr int reads = FROM == QL_E_float32 ? 2 : 1, writes = TO == QL_E_float32 ? 2 : 1;

	for (int64_t i = ql_thread(); i < n; i += ql_threads()) {
		uint4 x[2], y[2];

		QL_UNROLL
		for (int k = 0; k < reads; k++)
			x[k] = ql_load_16(static_cast<const uint4 *>(from) + i * reads + k);
		QL_UNROLL
		for (int k = 0; k < EACH; k++)
			ql_store_small(TO, y, k, ql_load_small(FROM, x, k));
		QL_UNROLL
		for (int k = 0; k < writes; k++)
			ql_store_16(static_cast<uint4 *>(to) + i * writes + k, y[k]);
	}
}

typedef void dense_cast(void *to, const void *from, int64_t n);

static dense_cast *dense_cast_of(int from, int to)
{
	if (from == QL_E_float32)
		return to == QL_E_float16    ? convert_dense<QL_E_float16, QL_E_float32>
		       : to == QL_E_bfloat16 ? convert_dense<QL_E_bfloat16, QL_E_float32>
					     : NULL;
	if (to != QL_E_float32)
		return NULL;
	return from == QL_E_float16    ? convert_dense<QL_E_float32, QL_E_float16>
	       : from == QL_E_bfloat16 ? convert_dense<QL_E_float32, QL_E_bfloat16>
				       : NULL;
}

static cudaError_t run_copy(cudaStream_t stream, const struct ql_gpu_tensor *in, const struct ql_gpu_tensor *out)
{
	struct ql_strided s = ql_strided_of(in, out, ~0u);
	int from = ql_element_of(in->dtype), to = ql_element_of(out->dtype);
	struct cast c = {from, to, way_of(from, to), ql_element_get(to).lo, ql_element_get(to).hi};

	if (s.count == 0)
		return cudaSuccess;
	if (from != to && s.rank == 1 && s.stride[0][0] == 1 && s.stride[1][0] == 1 && s.count % EACH == 0 &&
		((uintptr_t)in->at | (uintptr_t)out->at) % 16 == 0 && dense_cast_of(from, to))
		return ql_launch_free(dense_cast_of(from, to), ql_blocks(s.count / EACH, THREADS), dim3(THREADS),
			stream, out->at, (const void *)in->at, s.count / EACH);
	if (from != to)
		return ql_launch_free(convert, ql_blocks(s.count, THREADS), dim3(THREADS), stream, out->at,
			(const void *)in->at, s, c);
	switch (ql_element_get(from).bits) {
	case 8: return move_as<uint8_t>(stream, out->at, in->at, s);
	case 16: return move_as<uint16_t>(stream, out->at, in->at, s);
	case 32: return move_as<uint32_t>(stream, out->at, in->at, s);
	default: return move_as<uint64_t>(stream, out->at, in->at, s);
	}
}

/* ---- a number of the host ---- */

struct number {
	int to;
	bool integer;
	double f;
	int64_t i; /* within the range of `to` */
};

QL_KERNEL(THREADS) fill(void *to, ql_strided s, number x)
{
	for (int64_t i = ql_thread(); i < s.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];

		ql_strided_at(s, i, at);
		if (x.integer)
			ql_store_i64(x.to, to, at[0], x.i);
		else
			ql_store_f64(x.to, to, at[0], x.f);
	}
}

static cudaError_t run_fill(cudaStream_t stream, const struct ql_gpu_tensor *in, const struct ql_gpu_tensor *out)
{
	struct ql_strided s = ql_strided_of(out, NULL, ~0u);
	int to = ql_element_of(out->dtype);
	struct ql_element_info info = ql_element_get(to);
	struct number x = {to, (in->flags & QL_GPU_INTEGER) != 0, in->f, in->i};

	if (info.kind == QL_E_INT || info.kind == QL_E_UINT)
		x.i = in->i < info.lo ? info.lo : in->i > info.hi ? info.hi : in->i;
	if (s.count == 0)
		return cudaSuccess;
	return ql_launch_free(fill, ql_blocks(s.count, THREADS), dim3(THREADS), stream, out->at, s, x);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	if (call->in[0].flags & QL_GPU_NUMBER)
		return run_fill(place->stream, &call->in[0], &call->out[0]);
	return run_copy(place->stream, &call->in[0], &call->out[0]);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_copy;
const struct ql_gpu_kernel ql_gpu_kernel_copy = {"copy quantize", "copy", "simt", QL_GPU_BITS, 80, plan, run};
