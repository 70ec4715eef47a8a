/* SPDX-License-Identifier: MIT
 * Copies and casts between any strides, to whole-byte dtypes from all, by the rules of tensor/tensor.c: integers by way of int64,
 * saturating; floats by way of the wider of both types. Codes are copied as they are. A number of the host fills the result.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	int from, to;

	if (call->n_in != 1 || call->n_out != 1)
		return ql_refuse(p, "copy: wanted one operand and one result");
	from = ql_element_of(call->in[0].dtype);
	to = ql_element_of(call->out[0].dtype);
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

template <typename T> static cudaError_t move_as(cudaStream_t stream, void *to, const void *from, const ql_strided &s)
{
	bool dense = s.rank == 1 && s.stride[0][0] == 1 && s.stride[1][0] == 1;
	int64_t bytes = s.count * (int64_t)sizeof(T);

	if (dense && bytes % 16 == 0 && ((uintptr_t)to | (uintptr_t)from) % 16 == 0)
		return ql_launch_free(move_dense, ql_blocks(bytes / 16, THREADS), dim3(THREADS), stream,
			static_cast<uint4 *>(to), static_cast<const uint4 *>(from), bytes / 16);
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

static cudaError_t run_copy(cudaStream_t stream, const struct ql_gpu_tensor *in, const struct ql_gpu_tensor *out)
{
	struct ql_strided s = ql_strided_of(in, out, ~0u);
	int from = ql_element_of(in->dtype), to = ql_element_of(out->dtype);
	struct cast c = {from, to, way_of(from, to), ql_element_get(to).lo, ql_element_get(to).hi};

	if (s.count == 0)
		return cudaSuccess;
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
const struct ql_gpu_kernel ql_gpu_kernel_copy = {"copy", "copy", "simt", QL_GPU_BITS, 80, plan, run};
