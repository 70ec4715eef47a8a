/* SPDX-License-Identifier: MIT
 * Converts the sums of a convolution to floats, y = (float)sum * (sx * sw) [+ bias] [act], each step rounded, or to
 * codes, y = sat(rint((float)(sum + bias) * M) + zero), or in fixed point (fixed.h).
 */
#include "quant/integer/conv_int.h"

QL_SIMD(void, rescale, (int64_t n, float *restrict y, const int32_t *restrict sum, float scale), {
	for (int64_t l = 0; l < n; l++)
		y[l] = (float)sum[l] * scale;
})

QL_SIMD(void, add_bias, (int64_t n, float *y, float bias), {
	for (int64_t l = 0; l < n; l++)
		y[l] += bias;
})

static void store_floats(
	const struct ql_conv_int *j, int64_t o, int64_t at, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	struct ql_epilogue act = {.act = j->e.act, .args = j->e.args, .variant = j->e.variant};
	float *y = j->y + at;

	if (sum32)
		rescale[j->variant](n, y, sum32, j->scale[o]);
	else
		for (int64_t l = 0; l < n; l++)
			y[l] = (float)sum64[l] * j->scale[o];
	if (j->e.bias)
		add_bias[j->variant](n, y, j->e.bias[o]);
	if (act.act)
		ql_epilogue_row(&act, 0, n, y);
}

static void store_codes(
	const struct ql_conv_int *j, int64_t o, int64_t at, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct ql_dtype_info *d = &ql_dtypes[j->out->dtype];

	if (sum32 && j->narrow && d->bits == 8) {
		int32_t bias = (int32_t)j->bias[o];
		struct ql_sum_codes c = {.r = j->r,
			.bias = &bias,
			.factor = &j->factor[o],
			.fixed = &j->fixed[o],
			.rule = j->rule,
			.least = j->relu ? 0 : INT32_MIN,
			.dtype = j->out->dtype,
			.variant = j->variant};

		ql_round_sums(&c, 0, n, sum32, (char *)j->out->storage->data + at);
		return;
	}
	for (int64_t l = 0; l < n; l++) {
		int64_t s = (sum32 ? sum32[l] : sum64[l]) + j->bias[o], code;

		s = j->relu && s < 0 ? 0 : s;
		code = j->rule ? ql_fixed_code(j->rule, false, s, j->fixed[o], &j->r)
			       : ql_round((float)s * j->factor[o], j->r.lo, j->r.hi, j->r.zero);
		d->from_i64(j->out->storage->data, at + l, 1, 1, &code);
	}
}

void ql_conv_int_store(const struct ql_conv_int *j, int64_t image, int64_t output, int64_t pixel, int64_t n,
	const int32_t *sum32, const int64_t *sum64)
{
	int64_t at = (image * j->c.o + output) * j->pixels + pixel;

	(j->out ? store_codes : store_floats)(j, output, at, n, sum32, sum64);
}
