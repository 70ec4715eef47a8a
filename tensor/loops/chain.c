/* SPDX-License-Identifier: MIT
 * Chains of elementwise ops of float32 (tensor/deferred.h). To compute a result, the ops that it needs are put in order, each gets a
 * buffer for its pieces that is free by then, and threads claim pieces of PIECE elements as in map.c: operands are read in place, or
 * repeated in a buffer (numbers, and rows that are broadcast), and the last op writes the result. The row functions are the ops' own,
 * so each element has the bits that the ops give one by one.
 */
#include "tensor/deferred.h"

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/parallel.h"
#include "tensor/tape.h"

#define PIECE 1024
#define CHUNK 32768 /* elements claimed at a time */
#define LEAST 16384 /* elements of a result: a smaller chain stays in cache as it is */
#define BUFFERS 8   /* pieces beside the operands; a chain that needs more is divided */

#define STEPS 32 /* ops of a chain; a longer one is divided */

struct deferred {
	struct ql_deferred base;
	const struct ql_map *map;
	const char *op;
	struct ql_map_args args;
	int steps; /* at most so many ops are needed */
	float number[QL_MAP_MAX];
	bool repeats[QL_MAP_MAX]; /* a row that is broadcast over leading axes */
};

static const struct ql_closed_kind kind;

static struct deferred *of_storage(const struct ql_storage *s)
{
	return s->closed && s->closed->kind == &kind ? (struct deferred *)s->closed : NULL;
}

/* ---- which calls can wait ---- */

/* The shape of t is that of the last axes of the result, and its elements are in that order. */
static bool repeats(const struct ql_tensor *t, const struct ql_result *r)
{
	if (t->rank > r->rank || !ql_tensor_is_contiguous(t))
		return false;
	for (int d = 0; d < t->rank; d++)
		if (t->shape[d] != r->shape[r->rank - t->rank + d])
			return false;
	return true;
}

static bool takes_operand(const struct ql_call *call, int i)
{
	const struct ql_tensor *t = call->in[i];

	if (call->weak >> i & 1)
		return true;
	return t->dtype == QL_float32 && !t->q && !t->storage->remote &&
	       (!t->storage->closed || of_storage(t->storage)) &&
	       (ql_tensor_nelem(t) == 1 || repeats(t, &call->result[0]));
}

static bool has_options(const struct ql_call *call)
{
	const struct ql_value *out = ql_call_attr(call, "out");

	return out && out->spec;
}

static bool takes(const struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_map *map = ql_map_of(call->op);
	const struct ql_result *r = &call->result[0];
	int64_t n = 1;
	bool whole = false;

	if (!map || ctx->depth || ctx->recorded || call->into || call->n_out > 1 || map->result == QL_MAP_BOOL ||
		r->dtype != QL_float32 || has_options(call) || ql_tape_wanted(ctx, call))
		return false;
	for (int d = 0; d < r->rank; d++)
		n *= r->shape[d];
	for (int i = 0; i < call->n_in; i++) {
		if (!takes_operand(call, i))
			return false;
		whole = whole || (!(call->weak >> i & 1) && ql_tensor_nelem(call->in[i]) == n);
	}
	return whole && n >= LEAST;
}

/* ---- a result that waits ---- */

static void forget(struct ql_ctx *ctx, struct ql_closed *c)
{
	ql_deferred_unlink(ctx, (struct ql_deferred *)c);
	ql_free(ctx, c);
}

static enum ql_status compute(struct ql_ctx *ctx, const struct ql_closed *c, void *out);

/* Elements are never asked for one by one: who reads them settles the storage first. */
static int64_t no_element(const struct ql_closed *c, int64_t at)
{
	(void)c;
	(void)at;
	return 0;
}

static const struct ql_closed_kind kind = {
	.unpack = compute, .once = true, .waits = true, .get = no_element, .free = forget};

/* An operand for d. Numbers and tensors of one element are read now. */
static enum ql_status keep_operand(struct ql_ctx *ctx, struct deferred *d, const struct ql_call *call, int i)
{
	struct ql_tensor *t = call->in[i];
	struct ql_deferred *base = &d->base;
	const int k = base->n_in;
	enum ql_status status;

	if (call->weak >> i & 1 || ql_tensor_nelem(t) == 1) {
		status = ql_deferred_settle(ctx, t->storage);
		if (!status)
			ql_dtypes[t->dtype].to_f32(t->storage->data, t->offset, 1, 1, &d->number[k]);
		base->n_in += !status;
		return status;
	}
	/* an alias: the tensor itself may be given other elements by x:copy_ and the like */
	status = ql_tensor_alias(ctx, t, &base->in[k]);
	if (status)
		return status;
	base->n_in++;
	base->version[k] = t->storage->version;
	d->repeats[k] = ql_tensor_nelem(t) != base->base.codes;
	if (of_storage(t->storage))
		d->steps += of_storage(t->storage)->steps;
	return QL_OK;
}

/* Operands whose chains would become too long are computed now. */
static enum ql_status divide(struct ql_ctx *ctx, const struct ql_call *call)
{
	int steps = 1;

	for (int i = 0; i < call->n_in; i++) {
		const struct deferred *d = of_storage(call->in[i]->storage);

		steps += d ? d->steps : 0;
	}
	for (int i = 0; i < call->n_in && steps > STEPS; i++) {
		enum ql_status status = ql_deferred_settle(ctx, call->in[i]->storage);

		if (status)
			return status;
	}
	return QL_OK;
}

static enum ql_status start(struct ql_ctx *ctx, const struct ql_call *call, struct deferred *d)
{
	struct ql_closed *closed = &d->base.base;
	const char *domain;
	enum ql_status status;

	d->map = call->op->impl;
	d->op = call->op->doc.name;
	d->steps = 1;
	closed->kind = &kind;
	closed->dtype = QL_float32;
	closed->codes = 1;
	for (int i = 0; i < call->result[0].rank; i++)
		closed->codes *= call->result[0].shape[i];
	closed->dense = closed->bytes = ql_size_array(closed->codes, sizeof(float));
	status = ql_map_describe(ctx, call, &domain, &d->args);
	for (int i = 0; i < call->n_in && !status; i++)
		status = keep_operand(ctx, d, call, i);
	return status;
}

enum ql_status ql_map_defer(struct ql_ctx *ctx, struct ql_call *call, bool *deferred)
{
	enum ql_status status = QL_OK;
	struct deferred *d;

	*deferred = takes(ctx, call);
	if (*deferred)
		status = divide(ctx, call);
	if (!*deferred || status)
		return status;
	d = ql_alloc_zeroed(ctx, sizeof(*d));
	if (!d)
		return QL_ERR_MEMORY;
	ql_deferred_link(ctx, &d->base);
	status = start(ctx, call, d);
	if (!status)
		status = ql_tensor_closed(
			ctx, QL_float32, call->result[0].rank, call->result[0].shape, &d->base.base, &call->out[0]);
	if (status) {
		forget(ctx, &d->base.base);
		return status;
	}
	d->base.storage = call->out[0]->storage;
	call->path = "float32";
	call->kernel = "chain";
	return QL_OK;
}

/* ---- computing ---- */

/* One op of the chain. */
struct step {
	const struct deferred *d;
	int from[QL_MAP_MAX]; /* the step that gives an operand; -1: none */
	int last;             /* the last step that reads the result */
	int buffer;
};

struct chain {
	struct step step[STEPS];
	int n, variant;
	int64_t elements;
	float *out;
};

/* Adds d, behind all that it needs; gives its number. */
static int add_step(struct chain *c, const struct deferred *d)
{
	struct step s = {.d = d};

	for (int i = 0; i < c->n; i++)
		if (c->step[i].d == d)
			return i;
	for (int k = 0; k < d->base.n_in; k++) {
		const struct deferred *of = d->base.in[k] ? of_storage(d->base.in[k]->storage) : NULL;

		s.from[k] = of ? add_step(c, of) : -1;
	}
	for (int k = 0; k < d->base.n_in; k++)
		if (s.from[k] >= 0)
			c->step[s.from[k]].last = c->n;
	s.last = c->n;
	c->step[c->n] = s;
	return c->n++;
}

/* Gives each step but the last a buffer that no step needs any more. False: there are too few. */
static bool place_steps(struct chain *c)
{
	int until[BUFFERS];

	for (int b = 0; b < BUFFERS; b++)
		until[b] = -1;
	for (int i = 0; i < c->n - 1; i++) {
		int b = 0;

		while (b < BUFFERS && until[b] >= i)
			b++;
		if (b == BUFFERS)
			return false;
		until[b] = c->step[i].last;
		c->step[i].buffer = b;
	}
	return true;
}

/* n elements of a row that repeats, from element `at` of the result on. */
static void repeat(const struct ql_tensor *t, int64_t at, int64_t n, float *out)
{
	const float *row = (const float *)t->storage->data + t->offset;
	int64_t length = ql_tensor_nelem(t);

	for (int64_t i = 0, m; i < n; i += m) {
		int64_t from = (at + i) % length;

		m = ql_min64(n - i, length - from);
		memcpy(out + i, row + from, (size_t)m * sizeof(*out));
	}
}

static void compute_piece(const struct chain *c, int64_t at, int64_t n)
{
	_Alignas(64) float buffer[BUFFERS][PIECE], other[QL_MAP_MAX][PIECE];

	for (int i = 0; i < c->n; i++) {
		const struct step *s = &c->step[i];
		const float *in[QL_MAP_MAX] = {NULL};

		for (int k = 0; k < s->d->base.n_in; k++) {
			const struct ql_tensor *t = s->d->base.in[k];

			in[k] = other[k];
			if (s->from[k] >= 0)
				in[k] = buffer[c->step[s->from[k]].buffer];
			else if (t && !s->d->repeats[k])
				in[k] = (const float *)t->storage->data + t->offset + at;
			else if (t)
				repeat(t, at, n, other[k]);
			else
				for (int64_t e = 0; e < n; e++)
					other[k][e] = s->d->number[k];
		}
		s->d->map->f32[c->variant](n, i == c->n - 1 ? c->out + at : buffer[s->buffer], in, &s->d->args);
	}
}

static void compute_body(void *arg, int64_t begin, int64_t end)
{
	const struct chain *c = arg;

	for (int64_t i = begin; i < end; i++)
		compute_piece(c, i * PIECE, ql_min64(PIECE, c->elements - i * PIECE));
}

static int64_t work_ns(const struct chain *c)
{
	int64_t per_16 = 0;

	for (int i = 0; i < c->n; i++)
		per_16 += c->step[i].d->map->ns_per_16 ? c->step[i].d->map->ns_per_16 : 8;
	return ql_mul64(c->elements / 16 + 1, per_16);
}

/* A row that repeats is read as a tensor, so it is computed first; and operands must be as they were. */
static enum ql_status prepare(struct ql_ctx *ctx, const struct deferred *d)
{
	enum ql_status status = QL_OK;

	for (int k = 0; k < d->base.n_in && !status; k++) {
		const struct ql_tensor *t = d->base.in[k];
		const struct deferred *of = t ? of_storage(t->storage) : NULL;

		if (!t)
			continue;
		if (of && d->repeats[k])
			status = ql_deferred_settle(ctx, t->storage);
		else if (of)
			status = prepare(ctx, of);
		else if (t->storage->version != d->base.version[k])
			status = ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: wanted the operands of a fused result as they were when it was asked for, got one that "
				"has been written to",
				d->op);
	}
	return status;
}

static enum ql_status compute(struct ql_ctx *ctx, const struct ql_closed *closed, void *out)
{
	const struct deferred *d = (const struct deferred *)closed;
	struct chain c = {.variant = ctx->kernels->simd->variant, .elements = closed->codes, .out = out};
	enum ql_status status = prepare(ctx, d);

	if (status)
		return status;
	add_step(&c, d);
	for (int k = 0; k < d->base.n_in && !place_steps(&c); k++) {
		status = d->base.in[k] ? ql_deferred_settle(ctx, d->base.in[k]->storage) : QL_OK;
		if (status)
			return status;
		c.n = 0;
		add_step(&c, d);
	}
	return ql_parallel_for(ctx, ql_ceil_div(c.elements, PIECE), CHUNK / PIECE, work_ns(&c), compute_body, &c);
}
