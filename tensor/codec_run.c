/* SPDX-License-Identifier: MIT
 * Encodes and decodes runs of elements: through the kernels, a grid, or the row functions of the scheme.
 */
#include "tensor/codec_run.h"

#include <math.h>

#include "tensor/codes.h"
#include "tensor/grid.h"
#include "tensor/nibbles.h"
#include "tensor/ragged.h"
#include "tensor/stochastic.h"
#include "tensor/vmath/simd.h"

#define LONG_BUFFER 4096 /* elements */

bool ql_codec_has_kernel(const struct ql_codec *c)
{
	return c->codes.grid || (c->scheme->affine && !ql_dtype_is_binary(c->dtype));
}

int ql_codec_log_block(const struct ql_codec *c)
{
	int log = 63 - __builtin_clzll((unsigned long long)c->g.block | 1);

	bool grid = c->codes.grid && !(c->out && ql_dtypes[c->dtype].bits == 4);

	if (c->g.kind != QL_GRAIN_BLOCK || grid || !ql_codec_has_kernel(c) || c->ragged || c->lo || c->random ||
		c->shift)
		return 0;
	return log >= QL_LOG_BLOCK && c->g.block == (int64_t)1 << log && c->g.block <= QL_CODEC_BUFFER ? log : 0;
}

QL_SIMD(bool, any_non_finite, (const float *x, int64_t n), {
	int32_t any = 0;

	for (int64_t i = 0; i < n; i++)
		any |= x[i] - x[i] != 0;
	return any;
})

static void count_non_finite(struct ql_codec *c, const float *x, int64_t n)
{
	int64_t nan = 0, inf = 0;

	if (!any_non_finite[c->kernels->simd->variant](x, n))
		return;
	for (int64_t i = 0; i < n; i++) {
		nan += isnan(x[i]) != 0;
		inf += isinf(x[i]) != 0;
	}
	atomic_fetch_add(&c->nan, nan);
	atomic_fetch_add(&c->inf, inf);
}

/* ---- through the kernels ---- */

static struct ql_affine advanced(const struct ql_affine *p, int64_t i)
{
	struct ql_affine q = *p;

	if (p->each || p->log_block) {
		int64_t at = p->each ? i : i >> p->log_block;

		q.scale += at;
		q.zero = q.zero ? q.zero + at : NULL;
	}
	return q;
}

/* Clamps codes i..i+n-1 of the run from the range of the widest channel to their own ranges. */
static void narrow(const struct ql_codec *c, const struct ql_codec_run *r, int64_t i, int64_t n, void *q)
{
	if (r->lo)
		ql_codes_narrow(c->dtype, q, n, r->lo + i, r->hi + i);
}

static void encode_kernel(struct ql_codec *c, const struct ql_codec_run *r)
{
	const struct ql_quantize *k = c->kernels->quantize;
	const float *x = r->in;
	uint8_t buffer[QL_CODEC_BUFFER];
	bool bad = false;

	if (ql_dtypes[c->dtype].bits == 8) {
		bad = k->to_8(&r->affine, x, r->n, (uint8_t *)c->q + r->code);
		narrow(c, r, 0, r->n, (uint8_t *)c->q + r->code);
	} else if (ql_dtypes[c->dtype].bits == 16) {
		bad = k->to_16(&r->affine, x, r->n, (uint16_t *)c->q + r->code);
		narrow(c, r, 0, r->n, (uint16_t *)c->q + r->code);
	} else
		for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
			struct ql_affine p = advanced(&r->affine, i);
			int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);

			p.stream = false;
			bad |= k->to_8(&p, x + i, m, buffer);
			narrow(c, r, i, m, buffer);
			ql_codes_put(c->dtype, c->q, r->code + i, m, buffer);
		}
	if (bad)
		count_non_finite(c, x, r->n);
}

static void decode_ragged(struct ql_codec *c, const struct ql_codec_run *r)
{
	const struct ql_dequantize *k = c->kernels->dequantize;
	float *out = c->out + r->plain;
	uint16_t buffer[QL_CODEC_BUFFER];

	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);

		ql_ragged_get(c->ragged, c->first + r->code + i, m, buffer);
		switch (ql_dtype_whole(c->dtype)) {
		case QL_int8: k->from_i8(&p, (const int8_t *)buffer, m, out + i); break;
		case QL_uint8: k->from_u8(&p, (const uint8_t *)buffer, m, out + i); break;
		case QL_int16: k->from_i16(&p, (const int16_t *)buffer, m, out + i); break;
		default: k->from_u16(&p, buffer, m, out + i); break;
		}
	}
}

/* Codes of 4 bits that a table of values is worth: whole blocks or rows, from whole bytes on. */
static bool has_nibbles(const struct ql_codec *c, const struct ql_codec_run *r)
{
	return ql_dtypes[c->dtype].bits == 4 && !c->ragged && !r->affine.each && !r->affine.stream && r->code % 2 == 0;
}

static void decode_nibbles(struct ql_codec *c, const struct ql_codec_run *r)
{
	struct ql_nibbles as = {.value = c->codes.grid ? c->codes.grid->value : NULL,
		.is_signed = ql_dtypes[c->dtype].kind == QL_KIND_INT,
		.block = r->affine.log_block ? (int64_t)1 << r->affine.log_block : ql_max64(2, r->n),
		.scale = r->affine.scale,
		.zero = r->affine.zero};

	ql_nibbles_decode(c->kernels->simd->variant, &as, (const uint8_t *)c->q + r->code / 2, r->n, c->out + r->plain);
}

static void decode_kernel(struct ql_codec *c, const struct ql_codec_run *r)
{
	const struct ql_dequantize *k = c->kernels->dequantize;
	float *out = c->out + r->plain;
	int8_t buffer[LONG_BUFFER]; /* non-temporal stores want long runs */

	if (c->ragged) {
		decode_ragged(c, r);
		return;
	}
	if (has_nibbles(c, r)) {
		decode_nibbles(c, r);
		return;
	}
	switch (c->dtype) {
	case QL_int8: k->from_i8(&r->affine, (const int8_t *)c->q + r->code, r->n, out); return;
	case QL_uint8: k->from_u8(&r->affine, (const uint8_t *)c->q + r->code, r->n, out); return;
	case QL_int16: k->from_i16(&r->affine, (const int16_t *)c->q + r->code, r->n, out); return;
	case QL_uint16: k->from_u16(&r->affine, (const uint16_t *)c->q + r->code, r->n, out); return;
	default: break; /* packed */
	}
	for (int64_t i = 0; i < r->n; i += LONG_BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(LONG_BUFFER, r->n - i);

		ql_codes_get(c->dtype, c->q, r->code + i, m, buffer);
		k->from_i8(&p, buffer, m, out + i);
	}
}

/* ---- through a grid ---- */

static void encode_grid(struct ql_codec *c, const struct ql_codec_run *r)
{
	int variant = c->kernels->simd->variant;
	uint8_t buffer[QL_CODEC_BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);
		bool whole = ql_dtypes[c->dtype].bits == 8;
		uint8_t *to = whole ? (uint8_t *)c->q + r->code + i : buffer;

		ql_grid_encode(c->codes.grid, variant, c->codes.overflow, r->in + i, p.scale, p.each, m, to);
		if (!whole)
			ql_codes_put(c->dtype, c->q, r->code + i, m, buffer);
	}
}

static void decode_grid(struct ql_codec *c, const struct ql_codec_run *r)
{
	int variant = c->kernels->simd->variant;
	float *out = c->out + r->plain;
	int8_t buffer[QL_CODEC_BUFFER];

	if (has_nibbles(c, r)) {
		decode_nibbles(c, r);
		return;
	}
	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);
		bool whole = ql_dtypes[c->dtype].bits == 8;

		if (!whole)
			ql_codes_get(c->dtype, c->q, r->code + i, m, buffer);
		ql_grid_decode(c->codes.grid, variant, ql_dtypes[c->dtype].bits,
			whole ? (uint8_t *)c->q + r->code + i : (uint8_t *)buffer, p.scale, p.each, m, out + i);
	}
}

/* ---- through the scheme ---- */

/* Signs of a byte's elements; the scale does not matter. */
static void encode_signs(struct ql_codec *c, const struct ql_codec_run *r)
{
	count_non_finite(c, r->in, r->n);
	c->kernels->quantize->to_signs(r->in, r->n, (uint8_t *)c->q + r->code / 8);
}

static void encode_scheme(struct ql_codec *c, const struct ql_codec_run *r)
{
	float scale = *r->affine.scale;
	int32_t zero = r->affine.zero ? *r->affine.zero : 0;
	int64_t wide[QL_CODEC_BUFFER];
	int32_t code[QL_CODEC_BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);

		c->scheme->encode(r->in + i, m, scale, zero, &c->codes, code);
		for (int64_t j = 0; j < m; j++)
			wide[j] = code[j];
		ql_dtypes[c->dtype].from_i64(c->q, r->code + i, 1, m, wide);
	}
}

static void decode_signs(struct ql_codec *c, const struct ql_codec_run *r)
{
	c->kernels->dequantize->from_signs(
		*r->affine.scale, (const uint8_t *)c->q + r->code / 8, r->n, c->out + r->plain);
}

static void decode_scheme(struct ql_codec *c, const struct ql_codec_run *r)
{
	float scale = *r->affine.scale;
	int32_t zero = r->affine.zero ? *r->affine.zero : 0;
	int64_t wide[QL_CODEC_BUFFER];
	int32_t code[QL_CODEC_BUFFER];

	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);

		ql_dtypes[c->dtype].to_i64(c->q, r->code + i, 1, m, wide);
		for (int64_t j = 0; j < m; j++)
			code[j] = (int32_t)wide[j];
		c->scheme->decode(code, m, scale, zero, &c->codes, c->out + r->plain + i);
	}
}

/* ---- shifts ---- */

QL_SIMD(void, subtract,
	(const float *restrict x, const float *restrict shift, bool each, int64_t n, float *restrict out), {
		if (each)
			for (int64_t i = 0; i < n; i++)
				out[i] = x[i] - shift[i];
		else
			for (int64_t i = 0; i < n; i++)
				out[i] = x[i] - *shift;
	})

QL_SIMD(void, add, (const float *restrict shift, bool each, int64_t n, float *restrict out), {
	if (each)
		for (int64_t i = 0; i < n; i++)
			out[i] += shift[i];
	else
		for (int64_t i = 0; i < n; i++)
			out[i] += *shift;
})

/* ---- pieces ---- */

/* Runs of the scheme binary that fill bytes: the last byte of a row may have less. */
static bool has_signs(const struct ql_codec *c, const struct ql_codec_run *r)
{
	return ql_dtype_is_binary(c->dtype) && c->scheme->affine && !r->affine.each && r->code % 8 == 0 &&
	       (r->n % 8 == 0 || r->code % c->g.pitch + r->n == c->g.row);
}

static void scheme_run(struct ql_codec *c, const struct ql_codec_run *r)
{
	int64_t step = r->affine.each ? 1 : r->n;

	if (has_signs(c, r)) {
		(c->out ? decode_signs : encode_signs)(c, r);
		return;
	}
	for (int64_t i = 0; i < r->n; i += step) {
		struct ql_codec_run one = {
			.affine = advanced(&r->affine, i), .code = r->code + i, .plain = r->plain + i, .n = step};

		one.in = r->in ? r->in + i : NULL;
		if (c->out)
			decode_scheme(c, &one);
		else
			encode_scheme(c, &one);
	}
}

static void encode_random(struct ql_codec *c, const struct ql_codec_run *r)
{
	int64_t code[QL_CODEC_BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += QL_CODEC_BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(QL_CODEC_BUFFER, r->n - i);

		ql_stochastic_encode(c->random, &p, c->codes.grid, r->lo ? r->lo + i : NULL, r->hi ? r->hi + i : NULL,
			r->plain + i, m, r->in + i, code);
		ql_dtypes[c->dtype].from_i64(c->q, r->code + i, 1, m, code);
	}
}

static void plain_run(struct ql_codec *c, const struct ql_codec_run *r)
{
	if (c->random) {
		encode_random(c, r);
		return;
	}
	if (!ql_codec_has_kernel(c))
		scheme_run(c, r);
	else if (c->codes.grid)
		(c->out ? decode_grid : encode_grid)(c, r);
	else
		(c->out ? decode_kernel : encode_kernel)(c, r);
}

void ql_codec_run(struct ql_codec *c, const struct ql_codec_run *r)
{
	int variant = c->kernels->simd->variant;
	float moved[QL_CODEC_BUFFER];

	if (!r->shift || c->out)
		plain_run(c, r);
	if (r->shift && c->out)
		add[variant](r->shift, r->affine.each, r->n, c->out + r->plain);
	for (int64_t i = 0; i < r->n && r->shift && !c->out; i += QL_CODEC_BUFFER) {
		struct ql_codec_run part = *r;

		part.affine = advanced(&r->affine, i);
		part.n = ql_min64(QL_CODEC_BUFFER, r->n - i);
		part.code += i;
		part.plain += i;
		part.in = moved;
		part.lo = r->lo ? r->lo + i : NULL;
		part.hi = r->hi ? r->hi + i : NULL;
		subtract[variant](r->in + i, r->shift + (r->affine.each ? i : 0), r->affine.each, part.n, moved);
		plain_run(c, &part);
	}
}
