/* SPDX-License-Identifier: MIT
 * Codes whose values are those of a table or of a small floating-point format, by the arithmetic of tensor/grid.c and
 * tensor/stochastic.c. The table goes with the launch; blocks keep it in shared memory, where threads look up different entries.
 */
#ifndef QUOLL_GPU_KERNELS_TABLE_H
#define QUOLL_GPU_KERNELS_TABLE_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/scales.h"

#define QL_TABLE_MOST 256
#define QL_TABLE_LEAST_SCALE 1e-38f

/* As struct ql_gpu_grid. Codes beyond n decode to 0. */
struct ql_table_numbers {
	float value[QL_TABLE_MOST]; /* of codes */
	float edge[QL_TABLE_MOST];  /* from rank to rank; NaN behind the last */
	uint8_t code[QL_TABLE_MOST];
	int32_t ranks, steps; /* steps: of the search, a power of two above the ranks */
	int32_t zero, nan;
	int32_t exponent, mantissa, bias, most, infinity; /* exponent 0: search the edges */
	int32_t reciprocal, overflow;
};

/* What device code reads. */
struct ql_table {
	const ql_table_numbers *at;
};

/* Copies the numbers into shared memory, by all threads of a block. */
QL_DEVICE ql_table ql_table_take(const ql_table_numbers &numbers, ql_table_numbers *shared)
{
	for (int i = (int)threadIdx.x; i < QL_TABLE_MOST; i += (int)blockDim.x) {
		shared->value[i] = numbers.value[i];
		shared->edge[i] = numbers.edge[i];
		shared->code[i] = numbers.code[i];
	}
	if (threadIdx.x == 0) {
		shared->ranks = numbers.ranks;
		shared->steps = numbers.steps;
		shared->zero = numbers.zero;
		shared->nan = numbers.nan;
		shared->exponent = numbers.exponent;
		shared->mantissa = numbers.mantissa;
		shared->bias = numbers.bias;
		shared->most = numbers.most;
		shared->infinity = numbers.infinity;
		shared->reciprocal = numbers.reciprocal;
		shared->overflow = numbers.overflow;
	}
	if (!QL_BUG(table_barrier))
		__syncthreads();
	return {shared};
}

/* round_minifloat of tensor/grid.c. */
QL_DEVICE int32_t ql_table_round(const ql_table_numbers &f, float t)
{
	uint32_t mantissa = (uint32_t)f.mantissa, least = 128u - (uint32_t)f.bias, most = (uint32_t)f.most;
	uint32_t beyond = !f.overflow ? most : f.infinity ? (uint32_t)f.infinity : f.nan ? (uint32_t)f.nan : most;
	uint32_t shift = (uint32_t)f.exponent + mantissa, cap = ((most >> mantissa) + least + 1) << 23;
	uint32_t bits = ql_bits_of(t), sign = bits >> 31, rest = bits & 0x7fffffffu;
	uint32_t clamped = rest < cap ? rest : cap, e = clamped >> 23;
	float a;

	e = e > least ? e : least;
	a = ql_float_of(clamped) * ql_float_of((254u + mantissa - e) << 23) + 0x1.8p23f;
	uint32_t q = (ql_bits_of(a) & 0x3fffffu) + ((e - least) << mantissa);

	q = q > most ? beyond : q;
	q |= sign << shift;
	if (rest > 0x7f800000u)
		return f.nan ? (int32_t)((uint32_t)f.nan | sign << shift) : f.zero;
	return (int32_t)q;
}

/* The code whose value is nearest to x / scale. */
QL_DEVICE int32_t ql_table_nearest(const ql_table &table, float x, float scale)
{
	const ql_table_numbers &f = *table.at;
	float t = f.reciprocal ? x * (1 / (scale > QL_TABLE_LEAST_SCALE ? scale : QL_TABLE_LEAST_SCALE)) : x / scale;
	int32_t rank = 0;

	if (f.exponent)
		return ql_table_round(f, t);
	for (int32_t step = f.steps / 2; step > 0; step /= 2) /* edges behind the last are NaN: never reached */
		rank += t >= f.edge[rank + step - 1] ? step : 0;
	return t != t ? f.nan : f.code[rank];
}

/* One of the two values around t, by the random u. */
QL_DEVICE int32_t ql_table_random(const ql_table &table, float t, float u)
{
	const ql_table_numbers &f = *table.at;
	int32_t low = 0, high = f.ranks - 1;
	float a, b;

	if (t != t)
		return f.nan;
	while (low < high) {
		int32_t middle = (low + high + 1) / 2;

		if (f.value[f.code[middle]] <= t)
			low = middle;
		else
			high = middle - 1;
	}
	if (low == f.ranks - 1)
		return f.code[low];
	a = f.value[f.code[low]];
	b = f.value[f.code[low + 1]];
	return f.code[u * (b - a) < t - a ? low + 1 : low];
}

/* True if kernels convert these codes of a table; else says why not. */
static inline bool ql_table_fits(const struct ql_gpu_tensor *t, struct ql_gpu_plan *plan)
{
	const struct ql_gpu_codes *c = t->codes;
	int element = ql_element_of(t->dtype);

	if (element < 0 || ql_element_get(element).kind != QL_E_UINT || ql_element_get(element).bits > 8)
		return ql_refuse(plan, "codes of a table that are no unsigned integers of at most 8 bits");
	if (c->each_bits || c->zero_point)
		return ql_refuse(plan, "codes of a table with zero points or bits of channels");
	return (c->scale && ql_plain_parameter(c->scale, true) && ql_plain_parameter(c->shift, true)) ||
	       ql_refuse(plan, "scales that are codes or views");
}

/* The numbers of the codes' grid. */
static inline ql_table_numbers ql_table_of(const struct ql_gpu_codes *c)
{
	const struct ql_gpu_grid *g = c->grid;
	ql_table_numbers t = {};
	int32_t n = g->n < QL_TABLE_MOST ? g->n : QL_TABLE_MOST, ranks = g->ranks < n ? g->ranks : n;

	for (int32_t i = 0; i < QL_TABLE_MOST; i++) {
		t.value[i] = i < n ? g->value[i] : 0;
		t.edge[i] = i < ranks - 1 ? g->edge[i] : NAN;
		t.code[i] = i < ranks ? g->code[i] : 0;
	}
	for (t.steps = 1; t.steps < ranks; t.steps *= 2)
		;
	t.ranks = ranks;
	t.zero = g->zero;
	t.nan = g->nan;
	t.exponent = g->exponent;
	t.mantissa = g->mantissa;
	t.bias = g->bias;
	t.most = g->most;
	t.infinity = g->infinity;
	t.reciprocal = g->reciprocal;
	t.overflow = (c->flags & QL_GPU_OVERFLOW) != 0;
	return t;
}

#endif
