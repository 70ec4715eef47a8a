/* SPDX-License-Identifier: MIT
 * dequantize: affine and binary codes up to 16 bits, (code - zero point) * scale, by tensor/kernels/dequantize_ref.c; codes of a table,
 * value[code] * scale, by tensor/grid.c; logarithmic codes of at most 8 bits by quant/schemes/log.c; [+ shift], each step
 * rounded to float32. Codes may be packed. Scales and shifts that are codes themselves are decoded first, into the workspace;
 * so are those that are views.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/table.h"

#define THREADS 256

enum kind { AFFINE, TABLE, LOG, PLAIN };

struct decoding {
	ql_strided walk;
	ql_scales scales;
	const void *in;
	void *out;
	int32_t from, to;
	int32_t top; /* LOG: the largest magnitude */
};

/* ---- one level ---- */

static bool is_binary(int element)
{
	return element == QL_E_binary;
}

/* -1: there is no kernel. */
static int kind_of(const struct ql_gpu_tensor *t)
{
	const struct ql_gpu_codes *c = t->codes;
	int element = ql_element_of(t->dtype);

	if (!c)
		return PLAIN;
	if (c->grid)
		return ql_element_get(element).kind == QL_E_UINT && ql_element_get(element).bits <= 8 ? TABLE : -1;
	if (c->flags & QL_GPU_AFFINE)
		return ql_is_codes(element) || is_binary(element) ? AFFINE : -1;
	return c->octaves > 0 && ql_is_codes(element) && ql_element_get(element).bits <= 8 && !c->shift &&
			       !c->zero_point
		       ? LOG
		       : -1;
}

/* A parameter that kernels read where it is. */
static bool is_direct(const struct ql_gpu_tensor *t)
{
	return !t || ql_plain_parameter(t, true);
}

/* A parameter that is decoded into dense numbers: a level of codes, whose own parameters are plain, or a view. */
static bool is_level(const struct ql_gpu_tensor *t)
{
	if (t->flags & QL_GPU_NUMBER)
		return false;
	if (!t->codes)
		return ql_element_of(t->dtype) >= 0 && ql_element_float(ql_element_of(t->dtype));
	return kind_of(t) >= 0 && t->codes->scale && is_direct(t->codes->scale) && is_direct(t->codes->shift) &&
	       ql_plain_parameter(t->codes->zero_point, false) && !t->codes->each_bits;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = in->codes;
	const struct ql_gpu_tensor *part[2];

	if (!c || in->flags & QL_GPU_NUMBER)
		return ql_refuse(p, "an operand is not quantized");
	if (kind_of(in) < 0)
		return ql_refuse(p, "codes of a kind that no kernel decodes");
	if (c->each_bits || !ql_plain_parameter(c->zero_point, false))
		return ql_refuse(p, "channels that differ in bits, or zero points that are a view");
	if (out->codes || !ql_element_whole(ql_element_of(out->dtype)) ||
		!ql_element_float(ql_element_of(out->dtype)) || !ql_dense(out))
		return ql_refuse(p, "wanted a dense float result");
	part[0] = c->scale;
	part[1] = c->shift;
	for (int i = 0; i < 2; i++) {
		if (is_direct(part[i]) && (i || part[i]))
			continue;
		if (!part[i] || !is_level(part[i]))
			return ql_refuse(p, "scales whose own scales are codes");
		p->workspace += (uint64_t)ql_count(part[i]) * sizeof(float);
	}
	p->path = "float32";
	return true;
}

/* ---- kernels ---- */

template <int KIND> QL_DEVICE void decode_all(const decoding &c, const float *value)
{
	for (int64_t i = ql_thread(); i < c.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];
		int32_t code = 0;
		float x;

		ql_strided_at(c.walk, i, at);
		if (KIND != PLAIN)
			code = ql_load_code(c.from, c.in, at[0]);
		if (KIND == PLAIN) {
			x = ql_load_f32(c.from, c.in, at[0]);
		} else if (KIND == AFFINE) {
			x = (float)(code - ql_zero_at(c.scales, at[1])) * ql_scale_at(c.scales, at[1]);
		} else if (KIND == TABLE) {
			x = value[code & (QL_TABLE_MOST - 1)] * ql_scale_at(c.scales, at[1]);
		} else {
			int32_t m = code < 0 ? -code : code;

			m = m > c.top ? c.top : m; /* the lowest code, of another program */
			x = m ? value[m - 1] * ql_scale_at(c.scales, at[1]) : 0;
			x = code < 0 ? -x : x;
		}
		if (KIND != PLAIN && c.scales.shift)
			x += ql_load_float(c.scales.shift_type, c.scales.shift, at[1]);
		ql_store_f32(c.to, c.out, i, x);
	}
}

QL_KERNEL(THREADS) decode(decoding c)
{
	decode_all<AFFINE>(c, NULL);
}
QL_KERNEL(THREADS) decode_plain(decoding c)
{
	decode_all<PLAIN>(c, NULL);
}

struct values {
	float value[QL_TABLE_MOST];
};
template <int KIND> QL_KERNEL(THREADS) decode_table(decoding c, values v)
{
	QL_SHARED(struct values, shared);

	for (int i = (int)threadIdx.x; i < QL_TABLE_MOST; i += THREADS)
		shared.value[i] = v.value[i];
	if (!QL_BUG(table_barrier))
		__syncthreads();
	decode_all<KIND>(c, shared.value);
}

/* ---- the call ---- */

/* The values of codes of a table, or of the magnitudes of logarithmic codes. */
static values values_of(const struct ql_gpu_codes *c)
{
	values v = {};

	for (int32_t i = 0; c->grid && i < c->grid->n && i < QL_TABLE_MOST; i++)
		v.value[i] = c->grid->value[i];
	for (int32_t m = 1; !c->grid && m <= c->hi && m <= QL_TABLE_MOST; m++) {
		double r = c->hi > 1 ? (double)c->octaves / (c->hi - 1) : 0;

		v.value[m - 1] = (float)exp2(-(c->hi - m) * r);
	}
	return v;
}

static cudaError_t decode_to(
	const struct ql_gpu_place *place, const struct ql_gpu_tensor *in, const ql_scales &scales, void *out, int to)
{
	const struct ql_gpu_codes none = {}, *c = in->codes;
	decoding d = {};
	dim3 threads(THREADS), blocks = ql_blocks(ql_count(in), THREADS);

	d.walk = ql_scales_walk(in, c ? c : &none);
	d.scales = scales;
	d.in = in->at;
	d.out = out;
	d.from = ql_element_of(in->dtype);
	d.to = to;
	d.top = c ? c->hi : 0;
	if (d.walk.count == 0)
		return cudaSuccess;
	switch (kind_of(in)) {
	case PLAIN: return ql_launch_free(decode_plain, blocks, threads, place->stream, d);
	case AFFINE: return ql_launch_free(decode, blocks, threads, place->stream, d);
	case TABLE:
		return ql_launch(decode_table<TABLE>, blocks, threads, sizeof(values), place->stream, d, values_of(c));
	default: return ql_launch(decode_table<LOG>, blocks, threads, sizeof(values), place->stream, d, values_of(c));
	}
}

/* Makes a parameter readable: *at and *type say where it is. */
static cudaError_t take_level(
	const struct ql_gpu_place *place, const struct ql_gpu_tensor *t, float **free_memory, void **at, int32_t *type)
{
	cudaError_t error;

	if (!t || is_direct(t))
		return cudaSuccess;
	*at = *free_memory;
	*type = QL_E_float32;
	*free_memory += ql_count(t);
	error = decode_to(place, t, t->codes ? ql_scales_of(t->codes) : ql_scales{}, *at, QL_E_float32);
	return error;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_codes *c = call->in->codes;
	float *memory = static_cast<float *>(call->workspace);
	ql_scales scales = ql_scales_of(c);
	cudaError_t error = take_level(place, c->scale, &memory, &scales.scale, &scales.scale_type);

	if (!error)
		error = take_level(place, c->shift, &memory, &scales.shift, &scales.shift_type);
	return error ? error : decode_to(place, call->in, scales, call->out->at, ql_element_of(call->out->dtype));
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_dequantize;
const struct ql_gpu_kernel ql_gpu_kernel_dequantize = {"dequantize", "dequantize", "simt", QL_GPU_BITS, 80, plan, run};
