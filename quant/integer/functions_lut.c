/* SPDX-License-Identifier: MIT
 * exp, log, rsqrt and gelu of 16-bit codes: a table of 513 codes, one for every 128 codes of x, between which codes are interpolated:
 *   step     (largest x - least x) / 512
 *   entry i  rint(f(x_i) / u) - rint((rint((f(x_i+1) / u + rint(f(x_i) / u)) / 2) - rint(f(x_i + step / 2) / u)) / 2)
 * with the halves away from 0, every operation in float32 and 1/u = 65536 / (largest - least result). The second term halves the error
 * of the chord in its middle. Exactly the table of LiteRT (internal/common.h), where the functions of libm agree to the last bit.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/functions.h"

#define STEPS 512

struct curve {
	float (*value)(const struct curve *c, float x);
	float least, most; /* results where the function has no value */
};

static float exp_value(const struct curve *c, float x)
{
	(void)c;
	return (float)exp((double)x);
}

static float log_value(const struct curve *c, float x)
{
	return x <= 0 ? c->least : (float)log((double)x);
}

static float rsqrt_value(const struct curve *c, float x)
{
	return x <= 0 ? c->most : 1.0f / sqrtf(x);
}

static float gelu_value(const struct curve *c, float x)
{
	(void)c;
	return 0.5f * x * (float)erfc((double)(x * -0.707106781f));
}

static float gelu_tanh_value(const struct curve *c, float x)
{
	float inner = 0.797884561f * (x + 0.044715f * x * x * x);

	(void)c;
	return 0.5f * x * (1.0f + (float)tanh((double)inner));
}

static float entry(float v)
{
	return v < -32768 ? -32768 : v > 32767 ? 32767 : v;
}

/* Fills the places of the function for codes of these scales. */
static void fill(struct ql_function_int *f, float (*value)(const struct curve *c, float x), double scale, double out)
{
	struct curve c = {value, -32768 * (float)out, 32767 * (float)out};
	float first = -32768 * (float)scale, last = 32767 * (float)scale, step = (last - first) / STEPS;
	float units = 65536.0f / (c.most - c.least);

	for (int i = 0; i < STEPS; i++) {
		float here = c.value(&c, first + (float)i * step) * units;
		float next = c.value(&c, first + (float)(i + 1) * step) * units;
		float middle = c.value(&c, first + (float)i * step + step / 2) * units;
		float chord = roundf((next + roundf(here)) / 2) - roundf(middle);

		f->places[i] = (int16_t)entry(roundf(here) - roundf(chord / 2));
	}
	f->places[STEPS] = (int16_t)entry(roundf(c.value(&c, last) * units));
}

void ql_function_exp(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	(void)call;
	fill(f, exp_value, scale, out);
}

void ql_function_log(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	(void)call;
	fill(f, log_value, scale, out);
}

void ql_function_rsqrt(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	(void)call;
	fill(f, rsqrt_value, scale, out);
}

void ql_function_gelu(const struct ql_call *call, double scale, double out, struct ql_function_int *f)
{
	bool is_tanh = !strcmp(ql_call_string(call, "approximate", "none"), "tanh");

	fill(f, is_tanh ? gelu_tanh_value : gelu_value, scale, out);
}

int64_t ql_function_lut_code(const struct ql_function_int *f, int64_t x)
{
	int64_t place = (x + 32768) >> 7, part = x & 127, slope = f->places[place + 1] - f->places[place];
	int64_t rise = slope * part + 64;

	return f->places[place] + (rise >= 0 ? rise >> 7 : ~(~rise >> 7));
}
