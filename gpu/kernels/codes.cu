/* SPDX-License-Identifier: MIT
 * Elementwise ops of codes whose results are codes, by the rules of quant/paths/add_mul_int.c and relu_int.c:
 *   add, sub   y = sat(rint((float)(qa - za) Ma ± (float)(qb - zb) Mb) + z), M = (float)((double)s / s_out)
 *   mul        y = sat(rint((float)((qa - za) (qb - zb)) (float)((double)sa sb / s_out)) + z)
 *   relu       max(q, zero point), under the params of q
 * With act='relu' the lowest code of a sum is the zero point. The order of roundings is that of the CPU.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/scales.h"

#define THREADS 256
#define EACH 16 /* codes of 8 bits that a thread takes */
#define SIDES 2

enum op { ADD, SUB, MUL, RELU };

/* An operand in the shape of the result. */
struct side {
	const void *at;
	int32_t element;
	ql_scales s;
	int64_t stride[QL_GPU_MAX_RANK], scale[QL_GPU_MAX_RANK]; /* elements, scales */
};

struct work {
	void *out;
	struct side side[SIDES];
	ql_scales result; /* not of relu */
	int64_t count, shape[QL_GPU_MAX_RANK];
	int32_t rank, sides, op, to;
	bool relu;
};

/* ---- one code ---- */

struct bounds {
	float lo, hi; /* of the result's codes without the zero point */
	int32_t zero;
	double unit;
};

QL_DEVICE bounds bounds_of(const work &w)
{
	int32_t zero = ql_zero_at(w.result, 0), lo = w.result.lo - zero;

	return {(float)(w.relu && lo < 0 ? 0 : lo), (float)(w.result.hi - zero), zero,
		(double)ql_scale_at(w.result, 0)};
}

/* ql_round of quant/integer/rounding.h */
QL_DEVICE int32_t code_of(float v, const bounds &b)
{
	v = v == v ? v : 0;
	v = v < b.lo ? b.lo : v;
	v = v > b.hi ? b.hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f) + b.zero;
}

QL_DEVICE float factor_of(int32_t op, float a, float b, double unit)
{
	return op == MUL ? (float)((double)a * (double)b / unit) : (float)((double)a / unit);
}

/* Codes a and b without their zero points; ma, mb as above, of mul the factor in ma. */
QL_DEVICE float units_of(int32_t op, int32_t a, int32_t b, float ma, float mb)
{
	if (op == MUL)
		return (float)((int64_t)a * b) * ma;
	return op == ADD ? (float)a * ma + (float)b * mb : (float)a * ma - (float)b * mb;
}

/* ---- dense codes of 8 bits with one scale each ---- */

template <typename T> QL_DEVICE int32_t byte_of(uint32_t word, int j)
{
	return (int32_t)(T)(uint8_t)(word >> 8 * j);
}

/* The codes of both sides, A and B, without conversions between words and bytes in memory. */
template <int OP, typename A, typename B> QL_KERNEL(THREADS) dense_codes(const work w)
{
	bounds b = OP == RELU ? bounds{0, 0, 0, 1} : bounds_of(w);
	int32_t za = ql_zero_at(w.side[0].s, 0), zb = OP == RELU ? 0 : ql_zero_at(w.side[1].s, 0);
	float sa = OP == RELU ? 0 : ql_scale_at(w.side[0].s, 0), sb = OP == RELU ? 0 : ql_scale_at(w.side[1].s, 0);
	float ma = factor_of(OP, sa, sb, b.unit), mb = factor_of(ADD, sb, 0, b.unit);
	const uint8_t *x = static_cast<const uint8_t *>(w.side[0].at);
	const uint8_t *y = static_cast<const uint8_t *>(w.side[OP == RELU ? 0 : 1].at);
	uint8_t *out = static_cast<uint8_t *>(w.out);

	for (int64_t i = ql_thread() * EACH; i < w.count; i += ql_threads() * EACH) {
		bool whole = i + EACH <= w.count;
		uint32_t p[4] = {0, 0, 0, 0}, q[4] = {0, 0, 0, 0}, r[4] = {0, 0, 0, 0};

		if (whole) {
			uint4 v = *reinterpret_cast<const uint4 *>(x + i), u = *reinterpret_cast<const uint4 *>(y + i);

			p[0] = v.x, p[1] = v.y, p[2] = v.z, p[3] = v.w;
			q[0] = u.x, q[1] = u.y, q[2] = u.z, q[3] = u.w;
		} else {
			QL_UNROLL
			for (int j = 0; j < EACH; j++) {
				p[j / 4] |= i + j < w.count ? (uint32_t)x[i + j] << 8 * (j % 4) : 0;
				q[j / 4] |= i + j < w.count ? (uint32_t)y[i + j] << 8 * (j % 4) : 0;
			}
		}
		QL_UNROLL
		for (int j = 0; j < EACH; j++) {
			int32_t a = byte_of<A>(p[j / 4], j % 4), c = byte_of<B>(q[j / 4], j % 4);

			c = OP == RELU ? max(a, za) : code_of(units_of(OP, a - za, c - zb, ma, mb), b);
			r[j / 4] |= (uint32_t)(uint8_t)c << 8 * (j % 4);
		}
		if (whole) {
			*reinterpret_cast<uint4 *>(out + i) = uint4{r[0], r[1], r[2], r[3]};
			continue;
		}
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			if (i + j < w.count - QL_BUG(codes_tail))
				out[i + j] = (uint8_t)(r[j / 4] >> 8 * (j % 4));
	}
}

/* ---- everything else ---- */

QL_KERNEL(THREADS) any_codes(const work w)
{
	bounds b = w.op == RELU ? bounds{0, 0, 0, 1} : bounds_of(w);

	for (int64_t i = ql_thread(); i < w.count; i += ql_threads()) {
		int64_t at[SIDES] = {0, 0}, scale[SIDES] = {0, 0}, rest = i;
		int32_t q[SIDES] = {0, 0};
		float s[SIDES] = {0, 0};

		for (int d = w.rank - 1; d >= 0; d--) {
			int64_t k = d ? rest % w.shape[d] : rest;

			rest = d ? rest / w.shape[d] : 0;
			QL_UNROLL
			for (int j = 0; j < SIDES; j++) {
				at[j] += k * w.side[j].stride[d];
				scale[j] += k * w.side[j].scale[d] * !(j == 1 && QL_BUG(codes_axis));
			}
		}
		QL_UNROLL
		for (int j = 0; j < SIDES; j++) {
			if (j >= w.sides)
				continue;
			q[j] = ql_load_code(w.side[j].element, w.side[j].at, at[j]);
			if (w.op == RELU)
				continue;
			q[j] -= ql_zero_at(w.side[j].s, scale[j]);
			s[j] = ql_scale_at(w.side[j].s, scale[j]);
		}
		if (w.op == RELU)
			q[0] = max(q[0], ql_zero_at(w.side[0].s, scale[0]));
		else
			q[0] = code_of(units_of(w.op, q[0], q[1], factor_of(w.op, s[0], s[1], b.unit),
					       factor_of(ADD, s[1], 0, b.unit)),
				b);
		ql_store_i64(w.to, w.out, i, q[0]);
	}
}

/* ---- the call ---- */

static int32_t op_of(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "relu") ? RELU : !strcmp(call->op, "mul") ? MUL : !strcmp(call->op, "sub") ? SUB : ADD;
}

static const char *text_option(const struct ql_gpu_call *call, const char *name)
{
	for (int32_t i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, name) && call->options[i].type == QL_GPU_OPTION_TEXT)
			return call->options[i].s;
	return NULL;
}

static bool plan_relu(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in, *out = call->out;

	if (!ql_scales_fit(x, p))
		return false;
	if (!out->codes || strcmp(out->dtype, x->dtype) || text_option(call, "out"))
		return ql_refuse(p, "the result has other params than the operand");
	if (x->codes->shift || x->codes->block)
		return ql_refuse(p, "codes with blocks or a shift");
	return true;
}

static bool plan_side(const struct ql_gpu_tensor *t, struct ql_gpu_plan *p)
{
	if (!t->codes || t->flags & QL_GPU_NUMBER)
		return ql_refuse(p, "an operand is not quantized");
	if (!ql_scales_fit(t, p))
		return false;
	return !(t->codes->block || t->codes->shift) || ql_refuse(p, "an operand has blocks or a shift");
}

static bool plan_pair(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = call->out->codes;
	const char *act = text_option(call, "act");

	if (!c)
		return ql_refuse(p, "the result is no codes");
	if (call->n_in != 2 || !plan_side(&call->in[0], p) || !plan_side(&call->in[1], p))
		return p->why[0] ? false : ql_refuse(p, "wanted two operands");
	if (!plan_side(call->out, p))
		return false;
	if (c->flags & QL_GPU_FIND || c->axis >= 0 || c->rounding)
		return ql_refuse(p, "the result has no given scale, or several, or a rule in fixed point");
	if (act && (strcmp(act, "relu") || op_of(call) != ADD))
		return ql_refuse(p, "an activation other than relu of a sum");
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	if (call->n_out != 1)
		return ql_refuse(p, "a second result, for the gradient");
	if (!ql_element_whole(ql_element_of(call->out->dtype)) || !ql_dense(call->out))
		return ql_refuse(p, "the result is packed or a view");
	if (op_of(call) == RELU ? !plan_relu(call, p) : !plan_pair(call, p))
		return false;
	p->path = "integer";
	return true;
}

/* ---- running ---- */

static void fill_side(const struct ql_gpu_tensor *t, int32_t rank, struct side *to)
{
	to->at = t->at;
	to->element = ql_element_of(t->dtype);
	to->s = ql_scales_of(t->codes);
	for (int d = 0; d < t->rank; d++) {
		to->stride[rank - t->rank + d] = t->shape[d] == 1 ? 0 : t->stride[d];
		to->scale[rank - t->rank + d] = d == t->codes->axis && t->shape[d] != 1;
	}
}

/* Dense bytes with one scale, aligned, in the shape of the result. */
static bool is_dense(const struct ql_gpu_tensor *t, const struct ql_gpu_tensor *out)
{
	int element = ql_element_of(t->dtype);

	return (element == QL_E_int8 || element == QL_E_uint8) && t->codes->axis < 0 && ql_dense(t) &&
	       ql_count(t) == ql_count(out) && (uintptr_t)t->at % EACH == 0;
}

template <int OP, typename A> static cudaError_t launch_second(cudaStream_t stream, const work &w)
{
	dim3 blocks = ql_blocks(w.count, THREADS * EACH), threads(THREADS);

	if (OP == RELU || w.side[1].element == w.side[0].element)
		return ql_launch_free(dense_codes<OP, A, A>, blocks, threads, stream, w);
	if (w.side[1].element == QL_E_int8)
		return ql_launch_free(dense_codes<OP, A, int8_t>, blocks, threads, stream, w);
	return ql_launch_free(dense_codes<OP, A, uint8_t>, blocks, threads, stream, w);
}

template <int OP> static cudaError_t launch(cudaStream_t stream, const work &w)
{
	return w.side[0].element == QL_E_int8 ? launch_second<OP, int8_t>(stream, w)
					      : launch_second<OP, uint8_t>(stream, w);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *out = call->out;
	bool dense = is_dense(out, out);
	work w = {};

	w.out = out->at;
	w.to = ql_element_of(out->dtype);
	w.op = op_of(call);
	w.relu = text_option(call, "act") != NULL;
	w.sides = w.op == RELU ? 1 : 2;
	w.rank = out->rank;
	w.count = ql_count(out);
	memcpy(w.shape, out->shape, sizeof(w.shape));
	for (int32_t k = 0; k < w.sides; k++) {
		fill_side(&call->in[k], out->rank, &w.side[k]);
		dense = dense && is_dense(&call->in[k], out);
	}
	if (w.op != RELU)
		w.result = ql_scales_of(out->codes);
	if (w.count == 0)
		return cudaSuccess;
	if (!dense)
		return ql_launch_free(any_codes, ql_blocks(w.count, THREADS), dim3(THREADS), place->stream, w);
	switch (w.op) {
	case ADD: return launch<ADD>(place->stream, w);
	case SUB: return launch<SUB>(place->stream, w);
	case MUL: return launch<MUL>(place->stream, w);
	default: return launch<RELU>(place->stream, w);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_codes;
const struct ql_gpu_kernel ql_gpu_kernel_codes = {"add sub mul relu", "codes", "simt", QL_GPU_BITS, 80, plan, run};
