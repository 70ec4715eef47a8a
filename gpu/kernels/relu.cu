/* SPDX-License-Identifier: MIT
 * relu and relu6 with the bits that their gradients read, and these gradients, as tensor/ops/relu.c: element j B + k of a piece
 * of n elements, B = ceil(n / 8), has bit j of byte k. A thread has the elements of one byte; neighbours have neighbouring
 * elements.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define PIECE 4096

struct work {
	ql_strided walk; /* operand 0 */
	const void *in;
	void *out;
	uint8_t *bits;
	int64_t bytes;
	int32_t type; /* of operand 0 and of the result */
	bool six;
};

/* The elements of byte i: first + j step for j < 8, below end. */
struct byte {
	int64_t first, step, end;
};

QL_DEVICE byte byte_of(const work &w, int64_t i)
{
	int64_t piece = i / (PIECE / 8) * PIECE, n = min((int64_t)PIECE, w.walk.count - piece);

	return {piece + i % (PIECE / 8), (n + 7) / 8, piece + n - QL_BUG(relu_tail)};
}

/* TYPE: that of dense elements, or ANY. */
#define ANY (-1)

template <int TYPE> QL_DEVICE void load(const work &w, int64_t i, float *x)
{
	*x = ql_load_small(TYPE == ANY ? w.type : TYPE, w.in, i);
}
template <int TYPE> QL_DEVICE void load(const work &w, int64_t i, double *x)
{
	*x = static_cast<const double *>(w.in)[i];
}
template <int TYPE> QL_DEVICE void store(const work &w, int64_t i, float x)
{
	ql_store_small(TYPE == ANY ? w.type : TYPE, w.out, i, x);
}
template <int TYPE> QL_DEVICE void store(const work &w, int64_t i, double x)
{
	static_cast<double *>(w.out)[i] = x;
}

/* The elements of a byte, all under way together where their type is known; 0 behind the last one. */
template <typename R, int TYPE> QL_DEVICE void load_byte(const work &w, const byte &b, R a[8])
{
	QL_UNROLL
	for (int j = 0; j < 8; j++) {
		int64_t e = b.first + j * b.step, at[QL_STRIDED_MOST] = {e, 0};

		a[j] = 0;
		if (e >= b.end)
			continue;
		if (TYPE == ANY)
			ql_strided_at(w.walk, e, at);
		load<TYPE>(w, at[0], &a[j]);
	}
}

template <typename R, int TYPE> QL_KERNEL(THREADS) forward(const work w)
{
	for (int64_t i = ql_thread(); i < w.bytes; i += ql_threads()) {
		byte b = byte_of(w, i);
		uint32_t bits = 0;
		R x[8];

		load_byte<R, TYPE>(w, b, x);
		QL_UNROLL
		for (int j = 0; j < 8; j++) {
			R a = x[j];

			if (b.first + j * b.step >= b.end)
				break;
			a = w.six && a > 6 ? 6 : a < 0 ? 0 : a;
			store<TYPE>(w, b.first + j * b.step, a);
			bits |= (uint32_t)(w.six ? (a > 0) & (a < 6) : !(a <= 0)) << j;
		}
		w.bits[i] = (uint8_t)bits;
	}
}

template <typename R, int TYPE> QL_KERNEL(THREADS) backward(const work w)
{
	for (int64_t i = ql_thread(); i < w.bytes; i += ql_threads()) {
		byte b = byte_of(w, i);
		uint32_t bits = w.bits[i];
		R g[8];

		load_byte<R, TYPE>(w, b, g);
		QL_UNROLL
		for (int j = 0; j < 8; j++)
			if (b.first + j * b.step < b.end)
				store<TYPE>(w, b.first + j * b.step, bits >> j & 1 ? g[j] : 0);
	}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "relu_back");
}

static bool plain(const struct ql_gpu_tensor *t)
{
	return !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_element_whole(ql_element_of(t->dtype));
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *bits = is_back(call) ? &call->in[1] : &call->out[1];

	if (call->n_in != 1 + is_back(call) || call->n_out != 2 - is_back(call))
		return ql_refuse(p, "other operands");
	if (!plain(call->in) || !ql_element_float(ql_element_of(call->in->dtype)) ||
		strcmp(call->in->dtype, call->out->dtype))
		return ql_refuse(p, "wanted plain floats and a result of their dtype");
	if (!plain(bits) || ql_element_of(bits->dtype) != QL_E_uint8 || !ql_dense(bits) ||
		ql_count(bits) != (ql_count(call->out) + 7) / 8 || ql_count(call->in) != ql_count(call->out))
		return ql_refuse(p, "wanted a bit for each element");
	if (!ql_dense(call->out))
		return ql_refuse(p, "the result is a view");
	p->path = ql_element_of(call->in->dtype) == QL_E_float64 ? "float64" : "float32";
	return true;
}

template <typename R, int TYPE>
static cudaError_t launch(const struct ql_gpu_place *place, const work &w, bool back)
{
	return ql_launch_free(back ? backward<R, TYPE> : forward<R, TYPE>, ql_blocks(w.bytes, THREADS), dim3(THREADS),
		place->stream, w);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	bool back = is_back(call), dense;
	work w = {};

	w.walk = ql_strided_of(call->in, NULL, ~0u);
	w.in = call->in->at;
	w.out = call->out->at;
	w.bits = static_cast<uint8_t *>(back ? call->in[1].at : call->out[1].at);
	w.bytes = (w.walk.count + 7) / 8;
	w.type = ql_element_of(call->in->dtype);
	w.six = !strcmp(call->op, "relu6");
	if (w.bytes == 0)
		return cudaSuccess;
	dense = w.walk.rank == 1 && w.walk.stride[0][0] == 1;
	switch (dense || w.type == QL_E_float64 ? w.type : ANY) {
	case QL_E_float64: return launch<double, ANY>(place, w, back);
	case QL_E_float32: return launch<float, QL_E_float32>(place, w, back);
	case QL_E_float16: return launch<float, QL_E_float16>(place, w, back);
	case QL_E_bfloat16: return launch<float, QL_E_bfloat16>(place, w, back);
	default: return launch<float, ANY>(place, w, back);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_relu;
const struct ql_gpu_kernel ql_gpu_kernel_relu = {"relu relu6 relu_back", "relu", "simt", QL_GPU_BITS, 80, plan, run};
