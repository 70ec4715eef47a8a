/* SPDX-License-Identifier: MIT
 * Elementwise ops by the functions of their op files (tensor/loops/map.h), which scripts/device_rows.lua takes out of them into
 * rows.inc: the same operations in the same order, so the bits of the CPU. Dense float32 operands and numbers: a kernel for
 * each function that takes no longer than reading them, EACH elements a thread. Everything else: one kernel per domain with all functions, one element a thread; in
 * float32 EACH neighbours, which are read together where they lie together. The caller says the domain and what it made of the
 * op's attributes (options domain, p and i).
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"
#include "tensor/loops/map_args.h"

#define THREADS 256
#define EACH 4
#define OPERANDS 3

typedef void row_f32(int64_t n, float *out, const float *const *in, const struct ql_map_args *args);
typedef void row_f64(int64_t n, double *out, const double *const *in, const struct ql_map_args *args);
typedef bool row_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args);

#define QL_MARK_ROW QL_DEVICE
#define QL_MARK_INLINE QL_DEVICE
#define restrict __restrict__
#define _Bool bool
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtautological-compare" /* isnan of integers */
#include "gpu/kernels/rows.inc"
#pragma GCC diagnostic pop
#undef restrict
#undef _Bool

/* Instead of a function that an op has not. */
QL_DEVICE void absent(int64_t n, float *out, const float *const *, const struct ql_map_args *)
{
	memset(out, 0, (size_t)n * sizeof(*out));
}
QL_DEVICE void absent(int64_t n, double *out, const double *const *, const struct ql_map_args *)
{
	memset(out, 0, (size_t)n * sizeof(*out));
}
QL_DEVICE bool absent(int64_t n, int64_t *out, const int64_t *const *, const struct ql_map_args *)
{
	memset(out, 0, (size_t)n * sizeof(*out));
	return false;
}

/* ---- dense float32 ---- */

struct dense {
	float *out;
	const float *in[OPERANDS]; /* NULL: the number */
	float number[OPERANDS];
	int64_t n;
	bool vectors; /* all are aligned to EACH elements */
	struct ql_map_args args;
};

/* EACH elements from i on; 0 behind the last one. */
QL_DEVICE void load_each(const dense &d, int k, int64_t i, bool whole, float x[EACH])
{
	if (d.in[k] && whole) {
		uint4 v = *reinterpret_cast<const uint4 *>(d.in[k] + i);

		x[0] = ql_float_of(v.x);
		x[1] = ql_float_of(v.y);
		x[2] = ql_float_of(v.z);
		x[3] = ql_float_of(v.w);
		return;
	}
	QL_UNROLL
	for (int j = 0; j < EACH; j++)
		x[j] = !d.in[k] ? d.number[k] : i + j < d.n ? d.in[k][i + j] : 0;
}

template <row_f32 *ROW, int N> QL_KERNEL(THREADS) dense_rows(dense d)
{
	for (int64_t i = ql_thread() * EACH; i < d.n; i += ql_threads() * EACH) {
		float x[N][EACH], y[EACH];
		const float *in[N];
		bool whole = d.vectors && i + EACH <= d.n;

		QL_UNROLL
		for (int k = 0; k < N; k++) {
			in[k] = x[k];
			load_each(d, k, i, whole, x[k]);
		}
		ROW(EACH, y, in, &d.args);
		if (whole) {
			*reinterpret_cast<uint4 *>(d.out + i) =
				uint4{ql_bits_of(y[0]), ql_bits_of(y[1]), ql_bits_of(y[2]), ql_bits_of(y[3])};
			continue;
		}
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			if (i + j < d.n - QL_BUG(rows_tail))
				d.out[i + j] = y[j];
	}
}

template <row_f32 *ROW, int N> static cudaError_t launch_dense(cudaStream_t stream, const dense &d)
{
	return ql_launch_free(dense_rows<ROW, N>, ql_blocks(d.n, THREADS * EACH), dim3(THREADS), stream, d);
}

/* ---- everything else ---- */

struct operand {
	const void *at; /* NULL: the number */
	int32_t element;
	float f32;
	double f64;
	int64_t i64;
	int64_t stride[QL_GPU_MAX_RANK]; /* of the result's axes */
};

struct elements {
	void *out;
	int32_t to, row, n_in, rank;
	bool together; /* EACH neighbours have one offset in each operand, and are aligned */
	int64_t count, shape[QL_GPU_MAX_RANK];
	struct operand in[OPERANDS];
	struct ql_map_args args;
};

/* The number of each op in QL_ROWS. */
enum row_number {
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) ROW_##op,
	QL_ROWS(X)
#undef X
};

QL_DEVICE void load(const operand &o, int64_t at, float *x)
{
	*x = o.at ? ql_load_f32(o.element, o.at, at) : o.f32;
}
QL_DEVICE void load(const operand &o, int64_t at, double *x)
{
	*x = o.at ? ql_load_f64(o.element, o.at, at) : o.f64;
}
QL_DEVICE void load(const operand &o, int64_t at, int64_t *x)
{
	*x = o.at ? ql_load_i64(o.element, o.at, at) : o.i64;
}

/* One element, without the loop of the function. A switch: calls by a table would go through memory. */
QL_DEVICE float apply_f32(const elements &e, const float *const *in)
{
	float y = 0;

	switch (e.row) {
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) \
	case ROW_##op: f32(1, &y, in, &e.args); break;
		QL_ROWS(X)
#undef X
	}
	return y;
}
QL_DEVICE void apply(const elements &e, int64_t i, const double *const *in)
{
	double y = 0;

	switch (e.row) {
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) \
	case ROW_##op: f64(1, &y, in, &e.args); break;
		QL_ROWS(X)
#undef X
	}
	ql_store_f64(e.to, e.out, i, y);
}
QL_DEVICE void apply(const elements &e, int64_t i, const int64_t *const *in)
{
	int64_t y = 0;
	bool good = false;

	switch (e.row) {
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) \
	case ROW_##op: good = i64(1, &y, in, &e.args); break;
		QL_ROWS(X)
#undef X
	}
	if (good)
		ql_store_i64(e.to, e.out, i, y);
}

QL_DEVICE void offsets_of(const elements &e, int64_t i, int64_t offset[OPERANDS])
{
	offset[0] = offset[1] = offset[2] = 0;
	for (int d = e.rank - 1; d >= 0; d--) {
		int64_t rest = d ? i / e.shape[d] : 0, at = i - rest * e.shape[d];

		i = rest;
		QL_UNROLL
		for (int k = 0; k < OPERANDS; k++)
			offset[k] += at * e.in[k].stride[d];
	}
}

template <typename T> QL_KERNEL(THREADS) any_rows(const __grid_constant__ elements e)
{
	for (int64_t i = ql_thread(); i < e.count; i += ql_threads()) {
		T x[OPERANDS] = {0, 0, 0};
		const T *in[OPERANDS];
		int64_t offset[OPERANDS];

		offsets_of(e, i, offset);
		QL_UNROLL
		for (int k = 0; k < OPERANDS; k++) {
			in[k] = &x[k];
			if (k < e.n_in)
				load(e.in[k], offset[k], &x[k]);
		}
		apply(e, i, in);
	}
}

/* ---- float32, EACH elements ---- */

/* EACH neighbours of the last axis from `at` on. */
QL_DEVICE void load_neighbours(const operand &o, int64_t at, int64_t step, float x[EACH])
{
	uint2 two = {0, 0};

	if (step == 0) {
		x[0] = o.at ? ql_load_f32(o.element, o.at, at) : o.f32;
		x[1] = x[2] = x[3] = x[0];
	} else if (o.element == QL_E_float32) {
		uint4 v = *reinterpret_cast<const uint4 *>(static_cast<const float *>(o.at) + at);

		x[0] = ql_float_of(v.x);
		x[1] = ql_float_of(v.y);
		x[2] = ql_float_of(v.z);
		x[3] = ql_float_of(v.w);
	} else {
		two = *reinterpret_cast<const uint2 *>(static_cast<const uint16_t *>(o.at) + at);
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			x[j] = ql_load_small(o.element, &two, j);
	}
}

QL_DEVICE void store_neighbours(int to, void *out, int64_t i, const float y[EACH])
{
	uint2 two;

	if (to == QL_E_float32) {
		*reinterpret_cast<uint4 *>(static_cast<float *>(out) + i) =
			uint4{ql_bits_of(y[0]), ql_bits_of(y[1]), ql_bits_of(y[2]), ql_bits_of(y[3])};
		return;
	}
	QL_UNROLL
	for (int j = 0; j < EACH; j++)
		ql_store_small(to, &two, j, y[j]);
	*reinterpret_cast<uint2 *>(static_cast<uint16_t *>(out) + i) = two;
}

QL_KERNEL(THREADS) each_rows(const __grid_constant__ elements e)
{
	for (int64_t i = ql_thread() * EACH; i < e.count; i += ql_threads() * EACH) {
		float x[OPERANDS][EACH], y[EACH];
		int64_t offset[OPERANDS];

		if (e.together) {
			offsets_of(e, i, offset);
			QL_UNROLL
			for (int k = 0; k < OPERANDS; k++)
				if (k < e.n_in)
					load_neighbours(e.in[k], offset[k], e.rank ? e.in[k].stride[e.rank - 1] : 0, x[k]);
		} else {
			QL_ROLLED
			for (int j = 0; j < EACH; j++) {
				offsets_of(e, i + j < e.count ? i + j : i, offset);
				QL_UNROLL
				for (int k = 0; k < OPERANDS; k++)
					if (k < e.n_in)
						load(e.in[k], offset[k], &x[k][j]);
			}
		}
		QL_ROLLED
		for (int j = 0; j < EACH; j++) {
			const float *in[OPERANDS] = {&x[0][j], &x[1][j], &x[2][j]};

			y[j] = apply_f32(e, in);
		}
		if (e.together)
			store_neighbours(e.to, e.out, i, y);
		for (int j = 0; !e.together && j < EACH && i + j < e.count - QL_BUG(rows_each); j++)
			ql_store_f32(e.to, e.out, i + j, y[j]);
	}
}

/* ---- the ops ---- */

struct row {
	const char *op, *f32, *f64, *i64;
	int32_t operands, fails, f32_library, f64_library;
	cudaError_t (*dense)(cudaStream_t stream, const dense &d); /* NULL: each_rows reads them as fast as they are computed */
};

#define OWN_0(f32, operands) NULL
#define OWN_1(f32, operands) launch_dense<f32, operands>
static const struct row rows[] = {
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) \
	{#op, #f32, #f64, #i64, operands, fails, f32_library, f64_library, OWN_##own(f32, operands)},
	QL_ROWS(X)
#undef X
};
#define ROWS ((int32_t)(sizeof(rows) / sizeof(rows[0])))

static const char names[] =
#define X(op, operands, f32, f64, i64, fails, f32_library, f64_library, own) #op " "
	QL_ROWS(X)
#undef X
	;

static int32_t row_of(const char *op)
{
	for (int32_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].op, op))
			return i;
	return -1;
}

static const struct ql_gpu_option *option(const struct ql_gpu_call *call, const char *name)
{
	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, name))
			return &call->options[i];
	return NULL;
}

static const char *domain_of(const struct ql_gpu_call *call)
{
	const struct ql_gpu_option *o = option(call, "domain");

	return o && o->type == QL_GPU_OPTION_TEXT ? o->s : "float32";
}

static bool plan_operands(const struct ql_gpu_call *call, bool integer, struct ql_gpu_plan *p)
{
	for (int32_t i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];

		if (t->codes)
			return ql_refuse(p, "wanted plain numbers, got codes");
		if (integer && (t->flags & (QL_GPU_NUMBER | QL_GPU_INTEGER)) == QL_GPU_NUMBER)
			return ql_refuse(p, "a float among integers");
		if (!(t->flags & QL_GPU_NUMBER) && !ql_element_whole(ql_element_of(t->dtype)))
			return ql_refuse(p, "elements of less than a byte");
	}
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct row *r = &rows[row_of(call->op)];
	const char *domain = domain_of(call);
	bool wide = !strcmp(domain, "float64"), integer = !strcmp(domain, "int64");

	if (call->n_in != r->operands || call->n_out != 1)
		return ql_refuse(p, call->n_out > 1 ? "a second result, for the gradient" : "other operands");
	if (!plan_operands(call, integer, p))
		return false;
	if (!ql_dense(&call->out[0]))
		return ql_refuse(p, "the result is a view");
	if (!strcmp(integer ? r->i64 : wide ? r->f64 : r->f32, "absent"))
		return ql_refuse(p, "the op has no function of this domain");
	if (integer && r->fails)
		return ql_refuse(p, "the operand may be one that the op refuses");
	p->path = integer ? "int64" : wide ? "float64" : "float32";
	if (wide ? r->f64_library : !integer && r->f32_library)
		p->exact = QL_GPU_TOLERANCE;
	return true;
}

/* ---- running ---- */

static void fill_args(const struct ql_gpu_call *call, struct ql_map_args *args)
{
	const struct ql_gpu_option *p = option(call, "p"), *i = option(call, "i");

	if (p && p->numbers && p->n <= 4)
		memcpy(args->p, p->numbers, (size_t)p->n * sizeof(*p->numbers));
	if (i && i->ints && i->n <= 2)
		memcpy(args->i, i->ints, (size_t)i->n * sizeof(*i->ints));
}

/* A number of the host in each domain, converted as the host does. */
static void fill_number(const struct ql_gpu_tensor *t, struct operand *o)
{
	bool integer = t->flags & QL_GPU_INTEGER;

	o->f32 = integer ? (float)t->i : (float)t->f;
	o->f64 = integer ? (double)t->i : t->f;
	o->i64 = t->i; /* of integers alone, see plan */
}

static void fill_operand(const struct ql_gpu_tensor *t, const struct ql_gpu_tensor *out, struct operand *o)
{
	if (t->flags & QL_GPU_NUMBER) {
		fill_number(t, o);
		return;
	}
	o->at = t->at;
	o->element = ql_element_of(t->dtype);
	for (int d = 0; d < t->rank; d++)
		o->stride[out->rank - t->rank + d] = t->shape[d] == 1 ? 0 : t->stride[d];
}

/* Drops axes of size 1 and joins axes that follow each other in all operands. */
static void join_axes(struct elements *e)
{
	int n = 0;

	for (int d = 0; d < e->rank; d++) {
		bool joins = n > 0;

		if (e->shape[d] == 1)
			continue;
		for (int k = 0; k < OPERANDS && joins; k++)
			joins = e->in[k].stride[n - 1] == e->in[k].stride[d] * e->shape[d];
		n -= joins;
		e->shape[n] = (joins ? e->shape[n] : 1) * e->shape[d];
		for (int k = 0; k < OPERANDS; k++)
			e->in[k].stride[n] = e->in[k].stride[d];
		n++;
	}
	e->rank = n;
}

static struct elements elements_of(const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *out = call->out;
	struct elements e = {};

	e.out = out->at;
	e.to = ql_element_of(out->dtype);
	e.row = row_of(call->op);
	e.n_in = call->n_in;
	e.rank = out->rank;
	e.count = ql_count(out);
	memcpy(e.shape, out->shape, sizeof(e.shape));
	for (int k = 0; k < call->n_in; k++)
		fill_operand(&call->in[k], out, &e.in[k]);
	fill_args(call, &e.args);
	join_axes(&e);
	return e;
}

/* Whether all operands are dense float32 or numbers. */
static bool is_dense(const elements &e, dense *d)
{
	uintptr_t addresses = (uintptr_t)e.out;

	if (e.to != QL_E_float32 || e.rank > 1)
		return false;
	for (int k = 0; k < e.n_in; k++) {
		const struct operand *o = &e.in[k];

		if (o->at && (o->element != QL_E_float32 || (e.rank && o->stride[0] != 1)))
			return false;
		d->in[k] = static_cast<const float *>(o->at);
		d->number[k] = o->f32;
		addresses |= (uintptr_t)o->at;
	}
	d->out = static_cast<float *>(e.out);
	d->n = e.count;
	d->vectors = addresses % (EACH * sizeof(float)) == 0;
	d->args = e.args;
	return true;
}

/* Whether the last axis of an operand or of the result is taken EACH elements at a time. */
static bool in_neighbours(const void *at, int element, const int64_t *stride, int rank)
{
	if (!at || !rank)
		return true;
	for (int d = 0; d < rank - 1; d++)
		if (stride[d] % EACH && stride[rank - 1])
			return false;
	return stride[rank - 1] == 0 ||
	       (stride[rank - 1] == 1 && (uintptr_t)at % ((size_t)EACH * ql_element_get(element).bits / 8) == 0 &&
		       (element == QL_E_float32 || element == QL_E_float16 || element == QL_E_bfloat16));
}

static bool are_together(const elements &e)
{
	static const int64_t dense = 1;
	bool good = e.count % EACH == 0 && (!e.rank || e.shape[e.rank - 1] % EACH == 0) &&
		    in_neighbours(e.out, e.to, &dense, 1);

	for (int k = 0; k < e.n_in; k++)
		good = good && in_neighbours(e.in[k].at, e.in[k].element, e.in[k].stride, e.rank);
	return good;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const char *domain = domain_of(call);
	struct elements e = elements_of(call);
	dim3 blocks = ql_blocks(e.count, THREADS);
	struct dense d = {};

	if (e.count == 0)
		return cudaSuccess;
	if (!strcmp(domain, "int64"))
		return ql_launch_free(any_rows<int64_t>, blocks, dim3(THREADS), place->stream, e);
	if (!strcmp(domain, "float64"))
		return ql_launch_free(any_rows<double>, blocks, dim3(THREADS), place->stream, e);
	if (rows[e.row].dense && is_dense(e, &d))
		return rows[e.row].dense(place->stream, d);
	e.together = are_together(e);
	return ql_launch_free(each_rows, ql_blocks(e.count, THREADS * EACH), dim3(THREADS), place->stream, e);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_rows;
const struct ql_gpu_kernel ql_gpu_kernel_rows = {names, "rows", "simt", QL_GPU_BITS, 80, plan, run};
