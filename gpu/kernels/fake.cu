/* SPDX-License-Identifier: MIT
 * Fake quantization by the arithmetic of quant/ops/fake.c.
 *
 * fake_given   operands: x, and a tensor of its shape that has affine params, whose codes are not read. Results: the values of
 *              x rounded to codes, and with the option mask a byte per element: 1 inside the range of the codes
 * fake_back    operands: a gradient and the mask. The gradient where the mask is not 0, else 0
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/scales.h"

#define THREADS 256
#define EACH 4
#define NEAREST 0x1.8p23f /* adding and subtracting it rounds half to even for |v| < 2^22 */

struct rounding {
	float scale, lo, hi; /* codes without the zero point */
};

/* Returns the value of x; `inside` unless the codes do not reach it. */
QL_DEVICE float fake_of(float x, const rounding &r, bool &inside)
{
	float v = x / r.scale, low = r.lo - 1, high = r.hi + 1, c;

	v = v < low ? low : v > high ? high : v == v ? v : 0;
	v = (v + NEAREST) - NEAREST;
	c = v < r.lo ? r.lo : v > r.hi ? r.hi : v;
	inside = c == v && x == x;
	return c * r.scale;
}

/* ---- one scale for dense float32 ---- */

struct dense {
	const float *x;
	float *y;
	uint8_t *mask; /* NULL: not wanted */
	int64_t n;
	bool vectors; /* all are aligned to EACH elements */
	/* the scale is a number, or on the device */
	bool number;
	struct rounding r;
	ql_scales scales;
};

QL_DEVICE rounding rounding_at(const ql_scales &s, int64_t i)
{
	double zero = (double)ql_zero_at(s, i);

	return {ql_scale_at(s, i), (float)(s.lo - zero), (float)(s.hi - zero)};
}

QL_KERNEL(THREADS) fake_dense(const dense d)
{
	rounding r = d.number ? d.r : rounding_at(d.scales, 0);

	for (int64_t i = ql_thread() * EACH; i < d.n; i += ql_threads() * EACH) {
		if (d.vectors && i + EACH <= d.n) {
			uint4 v = *reinterpret_cast<const uint4 *>(d.x + i);
			bool a, b, c, e;
			uint4 y = {ql_bits_of(fake_of(ql_float_of(v.x), r, a)),
				ql_bits_of(fake_of(ql_float_of(v.y), r, b)),
				ql_bits_of(fake_of(ql_float_of(v.z), r, c)),
				ql_bits_of(fake_of(ql_float_of(v.w), r, e))};

			*reinterpret_cast<uint4 *>(d.y + i) = y;
			if (d.mask)
				*reinterpret_cast<uint32_t *>(d.mask + i) =
					(uint32_t)a | (uint32_t)b << 8 | (uint32_t)c << 16 | (uint32_t)e << 24;
			continue;
		}
		for (int64_t k = i; k < i + EACH && k < d.n - QL_BUG(fake_tail); k++) {
			bool inside;

			d.y[k] = fake_of(d.x[k], r, inside);
			if (d.mask)
				d.mask[k] = inside;
		}
	}
}

/* ---- everything else ---- */

struct elements {
	ql_strided walk; /* x, and the number of its scale */
	const void *x;
	void *y;
	uint8_t *mask;
	int32_t from, to;
	bool number;
	struct rounding r;
	ql_scales scales;
};

QL_KERNEL(THREADS) fake_any(const elements e)
{
	for (int64_t i = ql_thread(); i < e.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];
		bool inside;

		ql_strided_at(e.walk, i, at);
		ql_store_f32(e.to, e.y, i,
			fake_of(ql_load_f32(e.from, e.x, at[0]), e.number ? e.r : rounding_at(e.scales, at[1]),
				inside));
		if (e.mask)
			e.mask[i] = inside;
	}
}

/* ---- backward ---- */

struct slope {
	ql_strided walk; /* gradient, mask */
	const void *g;
	const uint8_t *mask;
	void *out;
	int32_t from, to;
	bool dense; /* both, of float32 */
};

QL_KERNEL(THREADS) fake_slope(const slope s)
{
	for (int64_t i = ql_thread(); i < s.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST] = {i, i};

		if (s.dense) {
			float x = static_cast<const float *>(s.g)[i];

			static_cast<float *>(s.out)[i] = s.mask[i] ? x : 0;
			continue;
		}
		ql_strided_at(s.walk, i, at);
		if (s.to == QL_E_float64)
			static_cast<double *>(s.out)[i] = s.mask[at[1]] ? ql_load_f64(s.from, s.g, at[0]) : 0;
		else
			static_cast<float *>(s.out)[i] = s.mask[at[1]] ? ql_load_f32(s.from, s.g, at[0]) : 0;
	}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "fake_back");
}

static bool plain(const struct ql_gpu_tensor *t)
{
	return !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_element_whole(ql_element_of(t->dtype));
}

static bool same_shape(const struct ql_gpu_tensor *a, const struct ql_gpu_tensor *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(a->shape[0]));
}

static bool plan_back(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	int to = ql_element_of(call->out->dtype);

	if (call->n_in != 2 || call->n_out != 1 || !plain(&call->in[0]) || !plain(&call->in[1]) ||
		!same_shape(&call->in[0], &call->in[1]))
		return ql_refuse(p, "wanted a plain gradient and a mask of its shape");
	if (ql_element_of(call->in[1].dtype) != QL_E_uint8)
		return ql_refuse(p, "wanted a uint8 mask");
	if ((to != QL_E_float32 && to != QL_E_float64) || !ql_dense(call->out))
		return ql_refuse(p, "the result is no dense float32 or float64");
	p->path = call->out->dtype;
	return true;
}

/* A number of the host may be the scale, and then also the zero point. */
static bool is_number(const struct ql_gpu_codes *c)
{
	return c->scale && c->scale->flags & QL_GPU_NUMBER;
}

static bool plan_codes(const struct ql_gpu_tensor *t, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = t->codes;

	if (!c || !is_number(c))
		return ql_scales_fit(t, p);
	if (!(c->flags & QL_GPU_AFFINE) || c->grid || c->each_bits || c->shift || !ql_is_codes(ql_element_of(t->dtype)))
		return ql_refuse(p, "codes of this scheme are not multiples of a scale");
	return !c->zero_point || c->zero_point->flags & QL_GPU_NUMBER ||
	       ql_refuse(p, "a zero point apart from its scale");
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in;

	if (is_back(call))
		return plan_back(call, p);
	if (call->n_in != 2 || !plain(x) || !same_shape(x, &call->in[1]))
		return ql_refuse(p, "wanted plain numbers and the params of codes of their shape");
	if (!plan_codes(&call->in[1], p))
		return false;
	if (call->in[1].codes->shift)
		return ql_refuse(p, "codes with a shift");
	for (int32_t i = 0; i < call->n_out; i++)
		if (!ql_dense(&call->out[i]) || !plain(&call->out[i]))
			return ql_refuse(p, "the result is a view");
	p->path = ql_element_get(ql_element_of(call->in[1].dtype)).name;
	return true;
}

static struct rounding number_of(const struct ql_gpu_codes *c)
{
	double zero = !c->zero_point                          ? 0
		      : c->zero_point->flags & QL_GPU_INTEGER ? (double)c->zero_point->i
							      : c->zero_point->f;

	return {(float)c->scale->f, (float)(c->lo - zero), (float)(c->hi - zero)};
}

static cudaError_t run_back(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	slope s = {};

	s.walk = ql_strided_of(&call->in[0], &call->in[1], ~0u);
	s.g = call->in[0].at;
	s.mask = static_cast<const uint8_t *>(call->in[1].at);
	s.out = call->out->at;
	s.from = ql_element_of(call->in[0].dtype);
	s.to = ql_element_of(call->out->dtype);
	s.dense = s.from == QL_E_float32 && s.to == QL_E_float32 && ql_dense(&call->in[0]) && ql_dense(&call->in[1]);
	if (s.walk.count == 0)
		return cudaSuccess;
	return ql_launch_free(fake_slope, ql_blocks(s.walk.count, THREADS), dim3(THREADS), place->stream, s);
}

static cudaError_t run_dense(const struct ql_gpu_place *place, const elements &e)
{
	dense d = {};

	d.x = static_cast<const float *>(e.x);
	d.y = static_cast<float *>(e.y);
	d.mask = e.mask;
	d.n = e.walk.count;
	d.vectors = (((uintptr_t)e.x | (uintptr_t)e.y) % (EACH * sizeof(float)) | (uintptr_t)e.mask % EACH) == 0;
	d.number = e.number;
	d.r = e.r;
	d.scales = e.scales;
	return ql_launch_free(fake_dense, ql_blocks(d.n, THREADS * EACH), dim3(THREADS), place->stream, d);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *x = call->in;
	const struct ql_gpu_codes *c = call->in[1].codes;
	elements e = {};

	if (is_back(call))
		return run_back(place, call);
	e.walk = ql_scales_walk(x, c);
	e.x = x->at;
	e.y = call->out[0].at;
	e.mask = call->n_out > 1 ? static_cast<uint8_t *>(call->out[1].at) : NULL;
	e.from = ql_element_of(x->dtype);
	e.to = ql_element_of(call->out[0].dtype);
	e.number = is_number(c);
	if (e.number)
		e.r = number_of(c);
	else
		e.scales = ql_scales_of(c);
	if (e.walk.count == 0)
		return cudaSuccess;
	if (c->axis < 0 && !c->block && e.from == QL_E_float32 && e.to == QL_E_float32 && ql_dense(x))
		return run_dense(place, e);
	return ql_launch_free(fake_any, ql_blocks(e.walk.count, THREADS), dim3(THREADS), place->stream, e);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_fake;
const struct ql_gpu_kernel ql_gpu_kernel_fake = {"fake_given fake_back", "fake", "simt", QL_GPU_BITS, 80, plan, run};
