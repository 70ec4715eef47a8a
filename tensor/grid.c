/* SPDX-License-Identifier: MIT
 * Tables of grids, and the loops that convert rows. In tables of up to FEW values, encoding counts the edges up to a
 * value; larger tables are searched from an index or by bisection; floating point is rounded by arithmetic.
 */
#include "tensor/grid.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/vmath/simd.h"

#define FEW 33        /* ranks */
#define STEPS 8       /* of the bisection */
#define CELL_SHIFT 18 /* low bits of a float32 that do not affect its cell */
#define MOST_STEPS 6  /* edges in a cell; with more, bisection is used */
#define PIECE 512     /* elements at a time */

/* ---- tables ---- */

static float minifloat_value(const struct ql_minifloat *f, int code)
{
	int sign = code >> (f->exponent + f->mantissa) & 1, rest = code & ((1 << (f->exponent + f->mantissa)) - 1);
	int exponent = rest >> f->mantissa, mantissa = rest & ((1 << f->mantissa) - 1);
	float value = exponent ? ldexpf((float)((1 << f->mantissa) + mantissa), exponent - f->bias - f->mantissa)
			       : ldexpf((float)mantissa, 1 - f->bias - f->mantissa);

	if (rest > f->most)
		value = f->infinity && rest == f->infinity ? INFINITY : NAN;
	return sign ? -value : value;
}

/* The smallest value that is encoded as the upper of two neighbours. */
static float edge_of(const struct ql_grid_table *g, int rank, enum ql_grid_tie tie)
{
	float low = g->value[g->code[rank]], high = g->value[g->code[rank + 1]], middle = (low + high) / 2;
	bool up = tie == QL_TIE_UPPER ||
		  (tie == QL_TIE_EVEN ? !(g->code[rank + 1] & 1) : tie == QL_TIE_ZERO && fabsf(high) < fabsf(low));

	if (!isfinite(middle))
		middle = low / 2 + high / 2;
	return up ? middle : nextafterf(middle, INFINITY);
}

/* Inserts a code in the order of values. Of codes with equal values only the first is used. */
static void rank_code(struct ql_grid_table *t, int code)
{
	int at = t->ranks;

	while (at > 0 && t->value[t->code[at - 1]] > t->value[code])
		at--;
	if (at > 0 && t->value[t->code[at - 1]] == t->value[code])
		return;
	memmove(t->code + at + 1, t->code + at, (size_t)(t->ranks - at));
	t->code[at] = (uint8_t)code;
	t->ranks++;
}

bool ql_grid_fill(struct ql_grid_table *t, const float *value, int n, enum ql_grid_tie tie)
{
	*t = (struct ql_grid_table){.n = n, .monotone = true, .nan = -1};
	for (int i = 0; i < n; i++) {
		t->value[i] = value[i];
		t->monotone &= i == 0 || value[i] > value[i - 1];
		if (isfinite(value[i])) {
			rank_code(t, i);
			t->unit = fmaxf(t->unit, fabsf(value[i]));
			t->zero = fabsf(value[i]) < fabsf(value[t->zero]) || !isfinite(value[t->zero]) ? i : t->zero;
		} else if (isnan(value[i]) && t->nan < 0) {
			t->nan = i;
		}
	}
	if (t->ranks < 2)
		return false;
	t->nan = t->nan < 0 ? t->zero : t->nan;
	t->least = t->value[t->code[0]];
	for (int i = 0; i < QL_GRID_MAX; i++)
		t->edge[i] = i < t->ranks - 1 ? edge_of(t, i, tie) : NAN;
	return true;
}

/* ---- index ---- */

static int rank_of(const struct ql_grid_table *t, float x)
{
	int rank = 0;

	while (rank < t->ranks - 1 && x >= t->edge[rank])
		rank++;
	return rank;
}

/* The float with these bits; infinity of the same sign for NaN. */
static float value_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return isnan(x) ? (bits >> 31 ? -INFINITY : INFINITY) : x;
}

void ql_grid_use_index(struct ql_grid_table *t, struct ql_grid_index *index)
{
	if (t->ranks <= FEW || t->minifloat)
		return;
	index->steps = 0;
	for (uint32_t cell = 0; cell < QL_GRID_CELLS; cell++) {
		int a = rank_of(t, value_of(cell << CELL_SHIFT));
		int b = rank_of(t, value_of((cell << CELL_SHIFT) | ((1u << CELL_SHIFT) - 1)));
		int low = a < b ? a : b, most = a < b ? b - a : a - b;

		index->start[cell] = (uint8_t)low;
		index->steps = most > index->steps ? most : index->steps;
	}
	if (index->steps <= MOST_STEPS)
		t->index = index;
}

static void build(const struct ql_grid *grid, struct ql_grid_table *t)
{
	float value[QL_GRID_MAX];

	if (grid->fill)
		grid->fill(value);
	for (int i = 0; i < grid->n && !grid->fill; i++)
		value[i] = grid->minifloat ? minifloat_value(grid->minifloat, i) : grid->value[i];
	ql_grid_fill(t, value, grid->n, grid->tie);
	t->minifloat = grid->minifloat;
	t->reciprocal = grid->reciprocal;
	t->learned = grid->learned;
	if (grid->minifloat && grid->minifloat->nan)
		t->nan = grid->minifloat->nan;
	if (grid->unit > 0)
		t->unit = grid->unit;
	if (t->ranks > FEW && !t->minifloat) {
		struct ql_grid_index *index = malloc(sizeof(*index)); /* never freed */

		if (index)
			ql_grid_use_index(t, index);
	}
}

const struct ql_grid_table *ql_grid_table(const struct ql_grid *grid)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const struct ql_grid *known[QL_GRID_STATIC];
	static struct ql_grid_table tables[QL_GRID_STATIC];
	static int n;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n && known[i] != grid; i++)
		;
	if (i == n) {
		build(grid, &tables[i]);
		known[n++] = grid;
	}
	pthread_mutex_unlock(&lock);
	return &tables[i];
}

bool ql_grid_has_zero(const struct ql_grid_table *t)
{
	return !t->learned && t->value[t->zero] == 0;
}

bool ql_grid_whole(const struct ql_grid_table *t, int8_t *whole, float *unit)
{
	int i = 0;

	for (*unit = 1; i < t->n && *unit >= 1.0f / 128; *unit /= 2)
		for (i = 0; i < t->n; i++) {
			float x = t->value[i] / *unit;

			if (!(x >= -128 && x <= 127) || x != (float)(int8_t)x)
				break;
			whole[i] = (int8_t)x;
		}
	*unit *= 2;
	return i == t->n;
}

float ql_grid_most(const struct ql_grid_table *t)
{
	return t->value[t->code[t->ranks - 1]];
}

/* ---- encoding ---- */

QL_SIMD(void, divide_one, (const float *restrict x, float scale, int64_t n, float *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] / scale;
})

QL_SIMD(void, divide_each, (const float *restrict x, const float *restrict scale, int64_t n, float *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] / scale[i];
})

#define LEAST_SCALE 1e-38f

QL_SIMD(void, invert_one, (const float *restrict x, float scale, int64_t n, float *restrict out), {
	float inverse = 1 / (scale > LEAST_SCALE ? scale : LEAST_SCALE);

	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] * inverse;
})

QL_SIMD(void, invert_each, (const float *restrict x, const float *restrict scale, int64_t n, float *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] * (1 / (scale[i] > LEAST_SCALE ? scale[i] : LEAST_SCALE));
})

/* code = rint(|t| * 2^(mantissa - e)) + number of codes with smaller exponents. e is the exponent of t, but not below that
 * of the smallest normal number. Adding 1.5 * 2^23 rounds half to even. */
QL_SIMD(void, round_minifloat,
	(const struct ql_minifloat *f, bool overflow, int zero, const float *restrict t, int64_t n,
		uint8_t *restrict code),
	{
		const uint32_t mantissa = f->mantissa;
		const uint32_t least = 128u - (uint32_t)f->bias;
		const uint32_t most = f->most;
		const uint32_t beyond = !overflow ? most : f->infinity ? f->infinity : f->nan ? f->nan : most;
		const uint32_t shift = (uint32_t)f->exponent + mantissa;
		const uint32_t nan = f->nan ? f->nan : (uint32_t)zero;
		const uint32_t nan_sign = f->nan ? 1 : 0;
		const uint32_t cap = ((most >> mantissa) + least + 1)
				     << 23; /* above most; the sum below is still exact */

		for (int64_t i = 0; i < n; i++) {
			uint32_t b;
			float a;
			float unit;

			memcpy(&b, &t[i], 4);
			uint32_t sign = b >> 31;
			uint32_t rest = b & 0x7fffffffu;
			uint32_t clamped = rest < cap ? rest : cap;
			uint32_t e = clamped >> 23;

			e = e > least ? e : least;
			uint32_t inverse = (254u + mantissa - e) << 23;
			memcpy(&a, &clamped, 4);
			memcpy(&unit, &inverse, 4);
			a = a * unit + 0x1.8p23f;
			memcpy(&b, &a, 4);
			uint32_t q = (b & 0x3fffffu) + ((e - least) << mantissa);

			q = q > most ? beyond : q;
			q |= sign << shift;
			code[i] = (uint8_t)(rest > 0x7f800000u ? nan | (nan_sign & sign) << shift : q);
		}
	})

QL_SIMD(void, count_edges, (const struct ql_grid_table *g, const float *restrict t, int64_t n, int32_t *restrict rank),
	{
		for (int64_t i = 0; i < n; i++)
			rank[i] = 0;
		for (int k = 0; k < g->ranks - 1; k++) {
			float edge = g->edge[k];

			for (int64_t i = 0; i < n; i++)
				rank[i] += t[i] >= edge;
		}
	})

QL_SIMD(void, bisect_edges, (const struct ql_grid_table *g, const float *restrict t, int64_t n, int32_t *restrict rank),
	{
		const float *edge = g->edge;

		for (int64_t i = 0; i < n; i++) {
			int32_t at = 0;

			for (int step = 1 << (STEPS - 1); step > 0; step /= 2)
				at += t[i] >= edge[at + step - 1] ? step : 0;
			rank[i] = at;
		}
	})

QL_SIMD(void, walk_edges, (const struct ql_grid_table *g, const float *restrict t, int64_t n, int32_t *restrict rank), {
	const uint8_t *start = g->index->start;
	const float *edge = g->edge;
	int steps = g->index->steps;

	for (int64_t i = 0; i < n; i++) {
		uint32_t b;

		memcpy(&b, &t[i], 4);
		int32_t at = start[b >> CELL_SHIFT];

		for (int k = 0; k < steps; k++)
			at += t[i] >= edge[at];
		rank[i] = at;
	}
})

static void search(const struct ql_grid_table *g, int variant, const float *t, int64_t n, uint8_t *code)
{
	int32_t rank[PIECE];

	(g->index ? walk_edges : g->ranks <= FEW ? count_edges : bisect_edges)[variant](g, t, n, rank);
	for (int64_t i = 0; i < n; i++)
		code[i] = isnan(t[i]) ? (uint8_t)g->nan : g->code[rank[i]];
}

void ql_grid_encode(const struct ql_grid_table *g, int variant, bool overflow, const float *x, const float *scale,
	bool each, int64_t n, uint8_t *code)
{
	float t[PIECE];

	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t m = n - i < PIECE ? n - i : PIECE;

		if (each)
			(g->reciprocal ? invert_each : divide_each)[variant](x + i, scale + i, m, t);
		else
			(g->reciprocal ? invert_one : divide_one)[variant](x + i, *scale, m, t);
		if (g->minifloat)
			round_minifloat[variant](g->minifloat, overflow, g->zero, t, m, code + i);
		else
			search(g, variant, t, m, code + i);
	}
}

/* ---- decoding ---- */

QL_SIMD(void, look_up_one,
	(const float *restrict value, const uint8_t *restrict code, float scale, int64_t n, float *restrict out), {
		for (int64_t i = 0; i < n; i++)
			out[i] = value[code[i]] * scale;
	})

QL_SIMD(void, look_up_each,
	(const float *restrict value, const uint8_t *restrict code, const float *restrict scale, int64_t n,
		float *restrict out),
	{
		for (int64_t i = 0; i < n; i++)
			out[i] = value[code[i]] * scale[i];
	})

#ifndef __clang__
typedef float eight __attribute__((vector_size(32)));
typedef int32_t places __attribute__((vector_size(32)));
#define SOME 64 /* codes */

/* Codes below 16: the values stay in registers. */
QL_SIMD(void, look_up_few,
	(const float *restrict value, const uint8_t *restrict code, const float *restrict scale, bool each, int64_t n,
		float *restrict out),
	{
		int64_t i = 0;
		int32_t wide[SOME];
		eight low, high, s, v;
		places at;

		memcpy(&low, value, sizeof(low));
		memcpy(&high, value + 8, sizeof(high));
		for (int j = 0; j < 8; j++)
			s[j] = *scale;
		for (; i + SOME <= n; i += SOME) {
			for (int j = 0; j < SOME; j++)
				wide[j] = code[i + j];
			for (int j = 0; j < SOME; j += 8) {
				memcpy(&at, wide + j, sizeof(at));
				if (each)
					memcpy(&s, scale + i + j, sizeof(s));
				v = __builtin_shuffle(low, high, at) * s;
				memcpy(out + i + j, &v, sizeof(v));
			}
		}
		for (; i < n; i++)
			out[i] = value[code[i]] * scale[each ? i : 0];
	})
#endif

void ql_grid_decode(const struct ql_grid_table *g, int variant, int bits, const uint8_t *code, const float *scale,
	bool each, int64_t n, float *out)
{
#ifndef __clang__
	if (bits <= 4 && variant > 0) {
		look_up_few[variant](g->value, code, scale, each, n, out);
		return;
	}
#endif
	(void)bits;
	if (each)
		look_up_each[variant](g->value, code, scale, n, out);
	else
		look_up_one[variant](g->value, code, *scale, n, out);
}
