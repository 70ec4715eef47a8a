/* SPDX-License-Identifier: MIT
 * The steps of a recurrent layer, forward and backward; shared by recurrent.c and recurrent_back.c.
 *
 * Every element has the same bits for any division among the threads.
 */
#ifndef QUOLL_NN_RECURRENT_STEPS_H
#define QUOLL_NN_RECURRENT_STEPS_H

#include "nn/recurrent.h"
#include "tensor/gemm/gemm.h"

#define QL_RECURRENT_IN 8 /* maximum operands */
#define QL_STEPS_BLOCK 24 /* maximum sequences per task: w_hh is read once per block and step */

/* Sizes and layout; rows count (batch, step) pairs. */
struct ql_sequences {
	int64_t batch, steps, input, hidden, rows;
	int64_t row, step; /* distance in rows of sequences and of steps */
	int first;         /* index of w_ih among the operands */
	int lengths;       /* index of the lengths; 0: none */
	bool bias, reverse;
	unsigned dtype; /* dtype of the computation */
	size_t size;    /* bytes of its elements */
};

struct ql_sequences ql_sequences_of(const struct ql_call *call, const struct ql_recurrent_cell *cell);

/* Gives the lengths as int64, NULL if there are none; fails if one is not within the steps. */
enum ql_status ql_sequences_lengths(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_sequences *g, struct ql_tensor **out);

/* A matrix (k, n) by which rows of h or of gradients are multiplied at each step. */
struct ql_steps_factor {
	int64_t n, k;
	bool given;                       /* the products of the only step are there already */
	struct ql_gemm_f32_panels panels; /* float32 */
	const double *b;                  /* float64; else NULL */
	int64_t b_row, b_col;
	const struct ql_gemm_i8 *kernel; /* int8; else NULL. See recurrent_int.c */
	const struct ql_quantize *quantize;
	const int8_t *panels_int;
	const int32_t *column_sums; /* (n), times 128 */
	const float *scales;        /* (n) */
	uint8_t *codes;             /* (batch, lda): rows of h */
	int64_t lda;
	int variant;
};

/* Of w, or its transpose; codes are always transposed. */
enum ql_status ql_steps_factor_of(struct ql_ctx *ctx, struct ql_tensor *w, bool transposed, struct ql_steps_factor *f);

/* True if w_hh supports the integer product; else sets *reason. */
bool ql_steps_int_fits(const struct ql_tensor *w, const char **reason);
/* Makes the factor from the transpose of a dense w (n, k) that fits. */
enum ql_status ql_steps_factor_int(
	struct ql_ctx *ctx, const struct ql_tensor *w, int64_t batch, struct ql_steps_factor *f);
/* Multiplies rows first..first+m-1 of the batch by columns from..to-1, and others beside them; m <= QL_STEPS_BLOCK. */
void ql_steps_multiply_int(const struct ql_steps_factor *f, int64_t from, int64_t to, int64_t first, int64_t m,
	const float *a, int64_t a_row, float *c, int64_t ldc);

/* Forward: from h and c to y and kept; backward: from dy and kept to din and dhidden. All dense, of the geometry's
 * dtype. Steps count in the order of the forward computation. */
struct ql_steps {
	struct ql_ctx *ctx;
	const struct ql_recurrent_cell *cell;
	struct ql_sequences g;
	struct ql_steps_factor w;
	struct ql_steps_factor late; /* backward of a cell with `early`: the rows of the other gates, which w has not */
	const int64_t *lengths;      /* (batch); NULL: all have all steps */
	bool back, second;           /* second: the second stage of a step of a cell with `early` */
	int64_t block;               /* sequences of a task */
	int64_t now;                 /* the step that all threads take together */
	const char *h, *c;           /* (batch, hidden): before the first step */
	char *y, *kept;              /* (rows, hidden), (rows, width hidden) */
	const char *bias_in, *bias_hidden;
	char *product; /* (batch, gates hidden): scratch */
	char *reset; /* (batch, hidden): scratch of a cell with `early`: the state that is multiplied, or its gradient */
	const char *dy;
	char *dh, *carry;    /* (batch, hidden) */
	char *din, *dhidden; /* (rows, gates hidden) */
};

/* Element `index` of an array of the job's dtype. */
static inline void *ql_steps_at(const struct ql_steps *j, const char *array, int64_t index)
{
	return (char *)(uintptr_t)array + (size_t)index * j->g.size;
}

/* The row of sequence b at step t. */
static inline int64_t ql_steps_row(const struct ql_steps *j, int64_t b, int64_t t)
{
	return b * j->g.row + (j->g.reverse ? j->g.steps - 1 - t : t) * j->g.step;
}

/* The first step of sequence b, and the one after its last. */
static inline int64_t ql_steps_begin(const struct ql_steps *j, int64_t b)
{
	return j->lengths && j->g.reverse ? j->g.steps - j->lengths[b] : 0;
}
static inline int64_t ql_steps_end(const struct ql_steps *j, int64_t b)
{
	return j->lengths && !j->g.reverse ? j->lengths[b] : j->g.steps;
}

/* Runs all steps; sets back, block and now. */
enum ql_status ql_steps_run(struct ql_ctx *ctx, struct ql_steps *j, bool backward);

/* C (m, n) = A (m, k) B (k, n) in double, strides in elements; slow, for checks. */
void ql_steps_product_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, const double *b,
	int64_t b_row, int64_t b_col, double *c, int64_t ldc);
/* Gives t decoded, dense and in `dtype`. */
enum ql_status ql_recurrent_plain(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out);

#endif
