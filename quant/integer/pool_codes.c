/* SPDX-License-Identifier: MIT
 * Windows of codes, one row of results at a time: the rows of the windows are reduced to one line, then the line is
 * reduced with shifted copies of itself, and finally the columns that correspond to windows are selected.
 *
 * The mean: codes minus the zero point are summed in 32 bits; padding counts as 0 and is part of the mean, or not. With the
 * params of x the code is rint(sum / n) + zero, half to even of the exact quotient: the error in double is below
 * 2^-36, less than the distance to a half unless the quotient is one. With other params it is the float rule of
 * products, sat(rint((float)sum * M) + zero) with M = (float)((double)scale / (n * scale of the result)), or fixed
 * point (fixed.h). The rule `double` with the params of x is TensorFlow Lite's: the sum of the codes themselves over n, halves away from 0.
 */
#include "quant/integer/pool_codes.h"

#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define STRIP 16384 /* codes whose sum fits 32 bits */
#define TASK_NS 4000
#define LANES 16

struct job {
	const struct ql_ctx *ctx;
	const struct ql_pool_codes *p;
	bool whole; /* the mean of whole planes */
	bool even;  /* each mean is of n numbers */
	double n;
	int variant;
	struct ql_slots slots;
};

/* Every step-th number of a line; the common steps have their own loops. */
#define PICK(out, line, n, step) \
	do { \
		if ((step) == 1) \
			for (int64_t c = 0; c < (n); c++) \
				(out)[c] = (line)[c]; \
		else if ((step) == 2) \
			for (int64_t c = 0; c < (n); c++) \
				(out)[c] = (line)[2 * c]; \
		else \
			for (int64_t c = 0; c < (n); c++) \
				(out)[c] = (line)[c * (step)]; \
	} while (0)

/* ---- the largest ---- */

/* Loops over n numbers, LANES at a time so that short rows use vectors too: the last vector overlaps the one before
 * and writes the same values again. Fewer than LANES are processed one by one. */
#define EACH(n, name, ...) \
	if ((n) >= LANES) \
		for (int64_t c = 0; c < (n); c += LANES) \
			name##_lanes(ql_min64(c, (n)-LANES), __VA_ARGS__); \
	else \
		for (int64_t c = 0; c < (n); c++) \
			name##_one(c, __VA_ARGS__);

typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));

/* Pools a plane. `line` has the padding on both sides, `wide` the maximum of the window at every column. */
#define LARGEST(name, type, least) \
	typedef type lanes_##name __attribute__((vector_size(sizeof(type) * LANES))); \
	/* the largest of `count` rows, `pitch` apart */ \
	QL_INLINE void raise_##name##_lanes(int64_t at, const type *x, int64_t count, int64_t pitch, type *to) \
	{ \
		lanes_##name most, next; \
		memcpy(&most, x + at, sizeof(most)); \
		for (int64_t r = 1; r < count; r++) { \
			memcpy(&next, x + r * pitch + at, sizeof(next)); \
			most ^= (most ^ next) & (lanes_##name)(next > most); \
		} \
		memcpy(to + at, &most, sizeof(most)); \
	} \
	QL_INLINE void raise_##name##_one(int64_t at, const type *x, int64_t count, int64_t pitch, type *to) \
	{ \
		type most = x[at]; \
		for (int64_t r = 1; r < count; r++) \
			most = x[r * pitch + at] > most ? x[r * pitch + at] : most; \
		to[at] = most; \
	} \
	QL_SIMD(void, largest_##name, (const struct ql_window *w, const void *from, void *to, void *memory), { \
		const type *x = from; \
		type *out = to; \
		int64_t padded = w->before[1] + w->in[1] + w->after[1], apart = w->dilation[1], \
			n = padded - (w->kernel[1] - 1) * apart, pitch = w->in[1] * w->dilation[0]; \
		type *line = memory, *wide = line + padded; \
		for (int64_t c = 0; c < padded; c++) \
			line[c] = least; \
		for (int64_t i = 0; i < w->out[0]; i++, out += w->out[1]) { \
			int64_t row, rows = ql_window_inside(w, 0, i, &row); \
			for (int64_t c = 0; rows == 0 && c < w->in[1]; c++) \
				line[w->before[1] + c] = least; \
			if (rows > 0) { \
				EACH(w->in[1], raise_##name, x + row * w->in[1], rows, pitch, line + w->before[1]) \
			} \
			EACH(n, raise_##name, line, w->kernel[1], apart, wide) \
			PICK(out, wide, w->out[1], w->stride[1]); \
		} \
	})
LARGEST(u8, uint8_t, 0)
LARGEST(i8, int8_t, INT8_MIN)
LARGEST(u16, uint16_t, 0)
LARGEST(i16, int16_t, INT16_MIN)

/* ---- the mean ---- */

/* Sums of a row of windows, from rows row..end-1 of the plane: of the columns in `line`, then of the windows in
 * `wide`. Vectors are written in the macro: in an inline function they would be split for the baseline ISA. Bytes
 * are widened in two steps, for which gcc 12 has instructions. */
#define SUMS(name, type, middle) \
	QL_SIMD(void, sums_##name, \
		(const struct ql_window *w, const void *from, int64_t row, int64_t rows, int32_t zero, int32_t *line, \
			int32_t *sums), \
		{ \
			int64_t width = w->in[1], padded = w->before[1] + width + w->after[1], \
				n = padded - w->kernel[1] + 1; \
			int32_t *inner = line + w->before[1], *wide = line + padded; \
			const type *x = (const type *)from + row * width; \
			lanes_##name next; \
			lanes_i32 sum, more; \
			memset(line, 0, (size_t)padded * sizeof(*line)); \
			for (int64_t c = 0; width >= LANES && c < width; c += LANES) { \
				int64_t at = ql_min64(c, width - LANES); \
				sum = (lanes_i32){0}; \
				for (int64_t r = 0; r < rows; r++) { \
					memcpy(&next, x + r * width + at, sizeof(next)); \
					sum += __builtin_convertvector( \
						       __builtin_convertvector(next, middle), lanes_i32) - \
					       zero; \
				} \
				memcpy(inner + at, &sum, sizeof(sum)); \
			} \
			for (int64_t r = 0; width < LANES && r < rows; r++) \
				for (int64_t c = 0; c < width; c++) \
					inner[c] += x[r * width + c] - zero; \
			for (int64_t c = 0; n >= LANES && c < n; c += LANES) { \
				int64_t at = ql_min64(c, n - LANES); \
				sum = (lanes_i32){0}; \
				for (int64_t k = 0; k < w->kernel[1]; k++) { \
					memcpy(&more, line + at + k, sizeof(more)); \
					sum += more; \
				} \
				memcpy(wide + at, &sum, sizeof(sum)); \
			} \
			for (int64_t c = 0; n < LANES && c < n; c++) { \
				wide[c] = 0; \
				for (int64_t k = 0; k < w->kernel[1]; k++) \
					wide[c] += line[c + k]; \
			} \
			PICK(sums, wide, w->out[1], w->stride[1]); \
		}) \
	QL_SIMD(int32_t, sum_##name, (int64_t n, const void *from, int32_t zero), { \
		const type *x = from; \
		int32_t sum = 0; \
		for (int64_t i = 0; i < n; i++) \
			sum += x[i] - zero; \
		return sum; \
	}) \
	static void put_##name(int64_t n, const int32_t *code, void *to, int64_t at) \
	{ \
		type *out = (type *)to + at; \
		for (int64_t i = 0; i < n; i++) \
			out[i] = (type)code[i]; \
	}
SUMS(u8, uint8_t, lanes_i16)
SUMS(i8, int8_t, lanes_i16)
SUMS(u16, uint16_t, lanes_u16)
SUMS(i16, int16_t, lanes_i16)

/* Adding 1.5 * 2^52 rounds a small double half to even. */
QL_SIMD(void, divide, (int64_t n, int32_t *sum, double count, int32_t zero), {
	for (int64_t i = 0; i < n; i++)
		sum[i] = (int32_t)(((double)sum[i] / count + 0x1.8p52) - 0x1.8p52) + zero;
})

QL_SIMD(void, rescale, (int64_t n, int32_t *sum, float factor, const struct ql_rounding *r), {
	float lo = r->lo, hi = r->hi;
	int32_t zero = r->zero;

	for (int64_t i = 0; i < n; i++)
		sum[i] = ql_round((float)sum[i] * factor, lo, hi, zero);
})

struct kind {
	void (*const *largest)(const struct ql_window *w, const void *x, void *out, void *memory);
	void (*const *sums)(const struct ql_window *w, const void *x, int64_t row, int64_t rows, int32_t zero,
		int32_t *line, int32_t *sums);
	int32_t (*const *sum)(int64_t n, const void *x, int32_t zero);
	void (*put)(int64_t n, const int32_t *code, void *to, int64_t at);
	int64_t bytes;
};

static const struct kind *kind_of(unsigned dtype)
{
	static const struct kind u8 = {largest_u8, sums_u8, sum_u8, put_u8, 1},
				 i8 = {largest_i8, sums_i8, sum_i8, put_i8, 1};
	static const struct kind u16 = {largest_u16, sums_u16, sum_u16, put_u16, 2};
	static const struct kind i16 = {largest_i16, sums_i16, sum_i16, put_i16, 2};

	return dtype == QL_uint8 ? &u8 : dtype == QL_int8 ? &i8 : dtype == QL_uint16 ? &u16 : &i16;
}

static int64_t params_of(const struct ql_pool_codes *p, int64_t plane)
{
	return plane / p->per % p->zeros;
}

/* The sum of `count` codes over their number. */
static int32_t quotient(const struct ql_pool_codes *p, int64_t sum, int64_t count, int64_t params)
{
	int64_t zero = p->zero[params], whole = sum + count * zero, half = count / 2;
	int64_t code = (whole > 0 ? whole + half : whole - half) / count - zero;

	return (int32_t)ql_max64((int64_t)p->r.lo, ql_min64((int64_t)p->r.hi, code)) + p->r.zero;
}

/* Converts a sum in fixed point; for 16-bit codes by the rule of 16-bit products. */
static int32_t fixed_code(const struct ql_pool_codes *p, int64_t sum, int64_t params)
{
	if (p->quotient)
		return quotient(p, sum, p->w.kernel[0] * p->w.kernel[1], params);
	return ql_fixed_code(p->rule, ql_dtypes[p->dtype].bits > 8, sum, p->fixed[params], &p->r);
}

int32_t ql_pool_code(const struct ql_pool_codes *p, int64_t sum, int64_t count, int64_t i)
{
	double numbers = (double)ql_max64(1, count), m = p->factor ? p->scale[i] / (numbers * p->out_scale) : 0;
	struct ql_fixed fixed;

	if (!p->factor)
		return (int32_t)(((double)sum / numbers + 0x1.8p52) - 0x1.8p52) + p->zero[i];
	if (!p->rule)
		return ql_round((float)sum * (float)m, p->r.lo, p->r.hi, p->r.zero);
	if (p->quotient)
		return quotient(p, sum, ql_max64(1, count), i);
	fixed = ql_fixed_of(m);
	return ql_fixed_code(p->rule, ql_dtypes[p->dtype].bits > 8, sum, fixed, &p->r);
}

/* The same for row `row` of the result where windows count different numbers. */
static void finish_uneven(const struct job *j, int64_t plane, int64_t row, int32_t *sums)
{
	const struct ql_pool_codes *p = j->p;
	int64_t n = p->w.out[1], rows = ql_window_count(&p->w, 0, row);

	for (int64_t c = 0; c < n; c++)
		sums[c] = ql_pool_code(p, sums[c], rows * ql_window_count(&p->w, 1, c), params_of(p, plane));
	kind_of(p->out_dtype)->put(n, sums, p->out, (plane * p->w.out[0] + row) * n);
}

/* Converts sums to codes of the result, in place, and stores them. */
static void finish(const struct job *j, int64_t plane, int64_t at, int64_t n, int32_t *sums)
{
	const struct ql_pool_codes *p = j->p;
	int64_t i = params_of(p, plane);

	if (p->factor && p->rule)
		for (int64_t s = 0; s < n; s++)
			sums[s] = fixed_code(p, sums[s], i);
	else if (p->factor)
		rescale[j->variant](n, sums, p->factor[i], &p->r);
	else
		divide[j->variant](n, sums, j->n, p->zero[i]);
	kind_of(p->out_dtype)->put(n, sums, p->out, at);
}

/* The mean of a plane of any size: its sum may need more than 32 bits, its mean does not. */
static void mean_of_plane(const struct job *j, int64_t plane)
{
	const struct ql_pool_codes *p = j->p;
	const struct kind *kind = kind_of(p->dtype);
	int64_t n = p->w.in[0] * p->w.in[1], total = 0, i = params_of(p, plane);
	const char *x = (const char *)p->x + plane * n * kind->bytes;
	int32_t code;

	for (int64_t at = 0; at < n; at += STRIP)
		total += kind->sum[j->variant](ql_min64(STRIP, n - at), x + at * kind->bytes, p->zero[i]);
	if (p->factor && p->rule)
		code = fixed_code(p, total, i);
	else if (p->factor)
		code = ql_round((float)total * p->factor[i], p->r.lo, p->r.hi, p->r.zero);
	else
		code = (int32_t)(((double)total / j->n + 0x1.8p52) - 0x1.8p52) + p->zero[i];
	kind_of(p->out_dtype)->put(1, &code, p->out, plane);
}

static void means(const struct job *j, int64_t plane, int32_t *memory)
{
	const struct ql_window *w = &j->p->w;
	const struct kind *kind = kind_of(j->p->dtype);
	const char *x = (const char *)j->p->x + plane * w->in[0] * w->in[1] * kind->bytes;
	int32_t zero = j->p->zero[params_of(j->p, plane)], *line = memory + w->out[1];
	int64_t row, rows;

	for (int64_t i = 0; i < w->out[0]; i++) {
		rows = ql_window_inside(w, 0, i, &row);
		kind->sums[j->variant](w, x, row, rows, zero, line, memory);
		if (j->even)
			finish(j, plane, (plane * w->out[0] + i) * w->out[1], w->out[1], memory);
		else
			finish_uneven(j, plane, i, memory);
	}
}

static void largest(const struct job *j, int64_t plane, void *memory)
{
	const struct ql_window *w = &j->p->w;
	const struct kind *kind = kind_of(j->p->dtype);

	kind->largest[j->variant](w, (const char *)j->p->x + plane * w->in[0] * w->in[1] * kind->bytes,
		(char *)j->p->out + plane * w->out[0] * w->out[1] * kind->bytes, memory);
}

/* ---- all planes ---- */

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int slot;
	void *memory = ql_slots_enter(&j->slots, &slot);

	for (int64_t plane = begin; plane < end && !ql_stopped(j->ctx); plane++)
		if (!j->p->mean)
			largest(j, plane, memory);
		else if (j->whole)
			mean_of_plane(j, plane);
		else
			means(j, plane, memory);
	ql_slots_leave(&j->slots, slot);
}

static bool is_whole(const struct ql_window *w)
{
	return w->out[0] * w->out[1] == 1 && w->kernel[0] == w->in[0] && w->kernel[1] == w->in[1] && !w->before[0] &&
	       !w->before[1] && ql_window_even(w);
}

bool ql_pool_codes_fit(const struct ql_window *w, unsigned dtype)
{
	int64_t most = INT32_MAX / (ql_dtypes[dtype].bits > 8 ? 65535 : 255);

	return is_whole(w) || w->kernel[0] <= most / w->kernel[1];
}

enum ql_status ql_pool_codes(struct ql_ctx *ctx, const struct ql_pool_codes *p)
{
	const struct ql_window *w = &p->w;
	struct job j = {.ctx = ctx,
		.p = p,
		.whole = is_whole(w),
		.even = ql_window_even(w),
		.n = (double)w->kernel[0] * (double)w->kernel[1],
		.variant = ctx->kernels->simd->variant};
	int64_t padded = w->before[1] + w->in[1] + w->after[1];
	double ns = 20 + (double)w->out[0] * (20 + 0.05 * ((double)w->kernel[0] * (double)w->in[1] +
								  (double)w->kernel[1] * (double)padded));
	enum ql_status status =
		ql_slots_take(ctx, ql_size_array(ql_add64(ql_mul64(2, padded), w->out[1]), sizeof(int32_t)), &j.slots);

	if (status)
		return status;
	return ql_parallel_for(ctx, p->planes, ql_max64(1, (int64_t)(TASK_NS / ns)),
		ns * (double)p->planes < 1e18 ? (int64_t)(ns * (double)p->planes) : INT64_MAX, body, &j);
}
