/* SPDX-License-Identifier: MIT
 * Functions of a code in fixed point; functions.h says which.
 */
#include "quant/integer/functions.h"

#include <math.h>
#include <string.h>

#include "tensor/codec.h"

#define PLACES 256

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

/* ---- sigmoid and tanh ---- */

/* sigmoid(i / 24) in 65536ths, plus half of the largest distance to the chord that interpolates; the last is 1. */
static const uint16_t *sigmoid_table(void)
{
	static uint16_t table[PLACES];

	for (int i = 0; i < PLACES && !table[PLACES - 1]; i++) {
		double s = 1 / (1 + exp(-i / 24.0)), bend = s * (1 - s) * (2 * s - 1) / (24 * 24 * 16);

		table[i] = (uint16_t)(i == PLACES - 1 ? 65535 : floor(65536 * (s + bend) + 0.5));
	}
	return table;
}

/* The value at |x| / 2^bits, whose fraction is between two places; `most` from the last place on. */
static int64_t between(const struct ql_function_int *f, int64_t x, int bits, int64_t most)
{
	int64_t place = x >> bits, part = x & ((INT64_C(1) << bits) - 1);

	if (place >= PLACES - 1)
		return most;
	return ((int64_t)f->table[place] << bits) + part * (f->table[place + 1] - f->table[place]);
}

static int64_t floor_shifted(int64_t x, int n)
{
	return x >= 0 ? x >> n : ~(~x >> n);
}

static int64_t input_of(const struct ql_function_int *f, int64_t x)
{
	return floor_shifted(x * f->multiplier + (f->shift ? INT64_C(1) << (f->shift - 1) : 0), f->shift);
}

static int64_t sigmoid_code(const struct ql_function_int *f, int64_t x)
{
	int64_t v = input_of(f, x), y = between(f, v < 0 ? -v : v, 9, 0x7fff << 10);

	return (v >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1) >> 10;
}

/* 2 sigmoid(2x) - 1 */
static int64_t tanh_code(const struct ql_function_int *f, int64_t x)
{
	int64_t v = input_of(f, x), y = between(f, v < 0 ? -v : v, 8, 0xffff << 8);

	return floor_shifted(v >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1, 8);
}

/* x in units of 1 / (24 * 512): 3 times a code of scale 1/4096, else a multiplier of 15 bits. */
static void curve(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	double m = scale * 4096 * 3;

	(void)call, (void)out;
	f->table = sigmoid_table();
	f->multiplier = 3;
	f->shift = 0;
	if (scale == 1.0 / 4096)
		return;
	for (; m <= 32767 / 2.0 && f->shift <= 30; f->shift++)
		m *= 2;
	f->multiplier = (int32_t)fmin(m, INT32_MAX);
}

/* ---- leakyrelu ---- */

static int64_t leaky_code(const struct ql_function_int *f, int64_t x)
{
	return ql_fixed_times(QL_REQUANT_DOUBLE, false, x < 0 ? x * f->multiplier : x, f->m[x < 0]);
}

static void leaky(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	float slope = (float)ql_call_float(call, "slope", 0.01);

	f->multiplier = slope < 0 ? -1 : 1; /* the factors have no sign */
	f->m[0] = ql_fixed_of((double)((float)scale / (float)out));
	f->m[1] = ql_fixed_of((double)((float)scale * fabsf(slope) / (float)out));
}

/* ---- hardswish ---- */

/* The high half of the doubled product of 16 bits, rounded. */
static int64_t high16(int64_t a, int64_t b)
{
	int64_t ab = a * b;

	return clamp((ab + (ab >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15), INT16_MIN, INT16_MAX);
}

static int64_t left16(int64_t x, int n)
{
	return clamp(x * (INT64_C(1) << n), INT16_MIN, INT16_MAX);
}

/* x / 2^n, halves away from 0 */
static int64_t divided(int64_t x, int n)
{
	int64_t mask = (INT64_C(1) << n) - 1;

	return floor_shifted(x, n) + ((x & mask) > (mask >> 1) + (x < 0));
}

/* The multiplier in 16 bits. */
static int64_t half_of(struct ql_fixed m)
{
	return m.multiplier >= INT32_MAX - (1 << 15) ? INT16_MAX : (m.multiplier + (1 << 15)) >> 16;
}

static int64_t hardswish_code(const struct ql_function_int *f, int64_t x)
{
	int64_t fine = x * 128, gate = fine;
	int up = f->m[1].shift;

	if (up > 0)
		gate = left16(gate, (int)clamp(up - 1, 0, 31));
	gate = high16(gate, half_of(f->m[1]));
	if (up > 0)
		gate = left16(gate, 1);
	else if (up < 0)
		gate = divided(gate, -up);
	gate = floor_shifted(gate + (1 << 15), 1);
	gate = clamp(gate * high16(fine, half_of(f->m[0])) / (1 << 15), INT16_MIN, INT16_MAX);
	return f->m[0].shift > 0 ? left16(gate, f->m[0].shift) : divided(gate, -f->m[0].shift);
}

static void hardswish(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	float fine = 1.0f / 128 * (float)scale;

	(void)call;
	f->m[0] = ql_fixed_of((double)(fine / (float)out));
	f->m[1] = ql_fixed_of((double)(fine / (3.0f / 32768)));
}

/* ---- abs, sqrt ---- */

static int64_t abs_code(const struct ql_function_int *f, int64_t x)
{
	return ql_fixed_times(QL_REQUANT_DOUBLE, false, x < 0 ? -x : x, f->m[0]);
}

static void absolute(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	(void)call;
	f->m[0] = ql_fixed_of((double)((float)scale / (float)out));
}

static int64_t sqrt_code(const struct ql_function_int *f, int64_t x)
{
	float v = x > 0 ? sqrtf(f->scale[0] * (float)x) / f->scale[1] : 0;

	return (int64_t)fminf(v, 65536);
}

static void root(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	(void)call;
	f->scale[0] = (float)scale;
	f->scale[1] = (float)out;
}

/* ---- log ---- */

static int64_t log_code(const struct ql_function_int *f, int64_t x)
{
	float v = x > 0 ? (float)log((double)(f->scale[0] * (float)x)) * (1 / f->scale[1]) : -65536;

	return (int64_t)roundf(fmaxf(fminf(v, 65536), -65536));
}

static void logarithm(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	if (ql_dtypes[call->in[0]->dtype].bits > 8) {
		ql_function_log(call, scale, out, f);
		return;
	}
	f->code = log_code;
	f->scale[0] = (float)scale;
	f->scale[1] = (float)out;
}

/* ---- which ---- */

static const struct function {
	const char *op;
	bool narrow, wide; /* for 8 bits, for 16 bits of zero points 0 */
	double out;        /* scale of the result; 0: any */
	int64_t (*code)(const struct ql_function_int *f, int64_t x);
	void (*prepare)(const struct ql_call *call, double scale, double out, struct ql_function_int *f);
} functions[] = {
	{"sigmoid", false, true, 1.0 / 32768, sigmoid_code, curve},
	{"tanh", false, true, 1.0 / 32768, tanh_code, curve},
	{"leakyrelu", true, true, 0, leaky_code, leaky},
	{"hardswish", true, false, 0, hardswish_code, hardswish},
	{"abs", true, true, 0, abs_code, absolute},
	{"sqrt", true, true, 0, sqrt_code, root},
	{"exp", false, true, 0, ql_function_lut_code, ql_function_exp},
	{"log", true, true, 0, ql_function_lut_code, logarithm},
	{"rsqrt", false, true, 0, ql_function_lut_code, ql_function_rsqrt},
	{"gelu", false, true, 0, ql_function_lut_code, ql_function_gelu},
};

static const struct function *function_of(const struct ql_op *op)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(op->doc.name, functions[i].op))
			return &functions[i];
	return NULL;
}

bool ql_function_int_has(const struct ql_op *op)
{
	return function_of(op) != NULL;
}

/* NULL: fits. */
static const char *misfit(const struct function *f, const struct ql_tensor *x, const struct ql_spec *out)
{
	int bits = ql_dtypes[x->dtype].bits;
	bool zeros = ql_spec_zero(out, 0) == 0 && (!x->q->zero_point || ql_tensor_at_f64(x->q->zero_point, 0) == 0);

	if (bits != ql_dtypes[out->dtype].bits || !(bits == 8 ? f->narrow : bits == 16 && f->wide && zeros))
		return !f->narrow ? "16 bits with zero points of 0"
		       : f->wide  ? "8 bits, or 16 with zero points of 0, for x and out"
				  : "8 bits for x and out";
	if (!out->has_scale || out->scale_tensor || out->scale <= 0)
		return "a given scale";
	return f->out != 0 && out->scale != f->out ? "the scale 1/32768" : NULL;
}

enum ql_status ql_function_int_of(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *x, struct ql_function_int *out)
{
	const struct ql_spec *spec = ql_call_attr(call, "out")->spec;
	const struct function *f = function_of(call->op);
	const char *wanted = misfit(f, x, spec);

	if (wanted)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: out: wanted %s for rounding='double', got %s of scale %g",
			call->op->doc.name, wanted, ql_dtype_name(spec->dtype), spec->has_scale ? spec->scale : 0.0);
	if (isnan(ql_call_float(call, "slope", 0)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: slope: wanted a number, got nan", call->op->doc.name);
	*out = (struct ql_function_int){.code = f->code};
	f->prepare(call, ql_tensor_at_f64(x->q->scale, 0), spec->scale, out);
	return QL_OK;
}
