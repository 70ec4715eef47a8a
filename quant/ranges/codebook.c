/* SPDX-License-Identifier: MIT
 * Codebooks by k-means of the scaled values x / scale in -1..1, weighted by scale^2, because errors of x are scale
 * times as large. Values are counted in bins of width 2 / BINS; the clusters of bins are optimal
 * (quant/ranges/kmeans.h), and the means are those of the values in each cluster.
 */
#include "quant/ranges/codebook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/importance.h"
#include "quant/ranges/kmeans.h"
#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define BINS 16384
#define SLOTS 16                /* partial histograms */
#define PART ((int64_t)1 << 18) /* values of one sum: the same for every number of threads */
#define PIECE 512
#define ONE 0x1p20 /* weight of the largest scale; weights are integers, so sums do not depend on their order */

struct job {
	const struct ql_grain *g;
	const float *x, *scale, *importance; /* importance: of columns, NULL: 1 */
	double *weight;                      /* of each scale, 0 to ONE */
	double most;                         /* the largest importance */
	int64_t n, part, columns;            /* part: values per slot */
	int64_t *count;                      /* weights of the bins (SLOTS, BINS) */
	double *sum;                         /* weighted values of clusters (parts, k) */
	uint8_t cluster[BINS];               /* of each bin */
	int k;
};

/* Consecutive scaled values and their weights. */
struct piece {
	float t[PIECE];
	int64_t w[PIECE];
};

/* Reads at most PIECE values from `at` on; returns their number. */
static int64_t read_piece(const struct job *j, int64_t at, int64_t end, struct piece *p)
{
	int64_t c = at % j->g->row, run, s = ql_grain_scale(j->g, at / j->g->row, c, &run);
	int64_t n = ql_min64(ql_min64(run, j->g->row - c), ql_min64(PIECE, end - at));
	bool each = j->g->kind >= QL_GRAIN_COLUMN;

	for (int64_t i = 0; i < n; i++) {
		int64_t k = each ? s + i : s;
		float t = j->x[at + i] / j->scale[k];
		double w = j->importance ? j->weight[k] * ((double)j->importance[(at + i) % j->columns] / j->most)
					 : j->weight[k];

		p->w[i] = j->x[at + i] - j->x[at + i] == 0 && t == t ? (int64_t)w : 0;
		p->t[i] = p->w[i] ? fminf(fmaxf(t, -1), 1) : 0;
	}
	return n;
}

static int bin_of(float t)
{
	int bin = (int)((t + 1) * (BINS / 2));

	return bin < BINS ? bin : BINS - 1;
}

static void count_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	struct piece p;

	for (int64_t slot = begin; slot < end; slot++) {
		int64_t *count = j->count + slot * BINS, stop = ql_min64(j->n, (slot + 1) * j->part), n;

		for (int64_t at = slot * j->part; at < stop; at += n) {
			n = read_piece(j, at, stop, &p);
			for (int64_t i = 0; i < n; i++)
				count[bin_of(p.t[i])] += p.w[i];
		}
	}
}

static void sum_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	struct piece p;

	for (int64_t part = begin; part < end; part++) {
		double *sum = j->sum + part * j->k;
		int64_t stop = ql_min64(j->n, (part + 1) * PART), n;

		for (int64_t at = part * PART; at < stop; at += n) {
			n = read_piece(j, at, stop, &p);
			for (int64_t i = 0; i < n; i++)
				sum[j->cluster[bin_of(p.t[i])]] += (double)p.w[i] * (double)p.t[i];
		}
	}
}

/* Sums the weights of the bins in slot 0. */
static enum ql_status count(struct ql_ctx *ctx, struct job *j)
{
	int64_t slots = ql_max64(1, ql_min64(SLOTS, j->n / PART));
	enum ql_status status;

	j->count = ql_scratch_array(ctx, slots, BINS * sizeof(*j->count));
	if (!j->count)
		return QL_ERR_MEMORY;
	memset(j->count, 0, (size_t)slots * BINS * sizeof(*j->count)); /* size: at most SLOTS */
	j->part = ql_ceil_div(j->n, slots);
	status = ql_parallel_for(ctx, slots, 1, j->n * 2, count_body, j);
	for (int64_t i = BINS; i < slots * BINS; i++)
		j->count[i % BINS] += j->count[i];
	return status;
}

/* Divides the bins of nonzero weight into clusters and sums the weight of each. Returns the number of clusters; -1 if
 * out of memory. */
static int divide(struct ql_ctx *ctx, struct job *j, double total[QL_GRID_MAX])
{
	double *value = ql_scratch_array(ctx, BINS, 2 * sizeof(*value)), *weight = value + BINS;
	int *bin = ql_scratch_array(ctx, BINS, sizeof(*bin));
	int n = 0, runs, first[QL_GRID_MAX + 1];

	if (!value || !bin)
		return -1;
	for (int i = 0; i < BINS; i++)
		if (j->count[i]) {
			value[n] = (i + 0.5) * (2.0 / BINS) - 1;
			weight[n] = (double)j->count[i];
			bin[n++] = i;
		}
	if (!n)
		return 0;
	runs = ql_kmeans(ctx, value, weight, n, j->k, first);
	first[runs] = n;
	for (int r = 0; r < runs; r++) {
		total[r] = 0;
		for (int i = first[r]; i < first[r + 1]; i++) {
			j->cluster[bin[i]] = (uint8_t)r;
			total[r] += weight[i];
		}
	}
	return runs ? runs : -1;
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* The means of the clusters; codes without a cluster are 0. */
static enum ql_status means(struct ql_ctx *ctx, struct job *j, int runs, const double *total, float *value)
{
	int64_t parts = ql_ceil_div(j->n, PART);
	enum ql_status status;

	j->sum = ql_scratch_array(ctx, parts, (uint64_t)j->k * sizeof(*j->sum)); /* size: k is at most 256 */
	if (!j->sum)
		return QL_ERR_MEMORY;
	memset(j->sum, 0, (size_t)(parts * j->k) * sizeof(*j->sum)); /* size: as above */
	status = ql_parallel_for(ctx, parts, 1, j->n * 2, sum_body, j);
	for (int r = 0; r < j->k; r++) {
		double sum = 0;

		for (int64_t p = 0; r < runs && p < parts; p++)
			sum += j->sum[p * j->k + r];
		value[r] = r < runs ? (float)(sum / total[r]) : 0;
	}
	qsort(value, (size_t)j->k, sizeof(*value), ascending);
	return status;
}

/* Weights of the scales from their squares. */
static enum ql_status weigh(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_qparams *q, struct job *j)
{
	int64_t n = ql_tensor_nelem(q->scale);
	float *scale = ql_scratch_array(ctx, n, sizeof(*scale));
	double most = 0;
	enum ql_status status;

	j->weight = ql_scratch_array(ctx, n, sizeof(*j->weight));
	if (!scale || !j->weight)
		return QL_ERR_MEMORY;
	status = ql_qparams_scales(ctx, q->scale, scale);
	if (!status)
		status = ql_importance(ctx, spec, j->columns, &j->importance);
	for (int64_t i = 0; i < n && !status; i++)
		most = fmax(most, (double)scale[i]);
	for (int64_t i = 0; i < n && !status && most == 0; i++)
		j->weight[i] = 0; /* x is all zeros */
	for (int64_t i = 0; i < n && !status && most > 0; i++)
		j->weight[i] = ONE * ((double)scale[i] / most) * ((double)scale[i] / most);
	for (int64_t i = 0; i < j->columns && !status && j->importance; i++)
		j->most = fmax(j->most, (double)j->importance[i]);
	j->scale = scale;
	return status;
}

/* Learns the k values of least error. Leaves `value` unchanged if all weights are 0 or all means are equal. */
static enum ql_status learn(struct ql_ctx *ctx, struct job *j, float *value)
{
	double total[QL_GRID_MAX];
	float learned[QL_GRID_MAX];
	enum ql_status status = count(ctx, j);
	int runs = status ? -1 : divide(ctx, j, total);

	if (runs <= 0)
		return status || runs == 0 ? status : QL_ERR_MEMORY;
	status = means(ctx, j, runs, total, learned);
	if (!status && learned[0] < learned[j->k - 1])
		memcpy(value, learned, (size_t)j->k * sizeof(*value)); /* size: at most 256 */
	return status;
}

static enum ql_status learn_from(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_qparams *q, float *value)
{
	const struct ql_grain g = ql_grain_of(x->rank, x->shape, QL_float32, q->axis, q->block_axis, q->block);
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job *j = ql_scratch_take(ctx, sizeof(*j));
	enum ql_status status = j ? QL_OK : QL_ERR_MEMORY;

	if (!status) {
		*j = (struct job){.g = &g,
			.x = ql_tensor_data(x),
			.n = ql_tensor_nelem(x),
			.columns = x->rank ? x->shape[x->rank - 1] : 1,
			.k = q->codes.grid->n};
		status = weigh(ctx, spec, q, j);
	}
	if (!status && j->n && !(j->importance && j->most == 0))
		status = learn(ctx, j, value);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_codebook_learn(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_qparams *q)
{
	const struct ql_grid_table *grid = q->codes.grid;
	struct ql_tensor *values;
	enum ql_status status = QL_OK;

	if (!grid || !grid->learned)
		return QL_OK;
	status = ql_tensor_new(ctx, QL_float32, 1, &(int64_t){grid->n}, &values);
	if (status)
		return status;
	memcpy(ql_tensor_data(values), grid->value, (size_t)grid->n * sizeof(float)); /* size: at most 256 */
	if (x)
		status = learn_from(ctx, spec, x, q, ql_tensor_data(values));
	if (!status)
		status = ql_qparams_set_values(ctx, q, values);
	ql_tensor_release(ctx, values);
	return status;
}

uint64_t ql_codebook_bytes(const struct ql_spec *spec)
{
	if (!spec->grid || !spec->grid->learned)
		return 0;
	return (uint64_t)spec->grid->n * sizeof(float); /* size: n is at most 256 */
}
