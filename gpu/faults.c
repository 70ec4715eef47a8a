/* SPDX-License-Identifier: MIT
 * The calls of the last kernels that may note faults, and the messages of those that did.
 */
#include "gpu/faults.h"

#include <string.h>

/* Room for a call: what is recorded now runs later. */
static struct ql_gpu_suspect *place_for(struct ql_ctx *ctx, struct ql_gpu_faults *f, uint64_t serial)
{
	struct ql_gpu_suspects *r = f->recording;
	struct ql_gpu_suspect *more;

	if (!r)
		return &f->call[serial % QL_GPU_FAULTS_KEPT];
	if (r->n == r->room) {
		more = ql_realloc_array(ctx, r->call, r->room ? 2 * r->room : 8, sizeof(*more));
		if (!more)
			return NULL;
		r->room = r->room ? 2 * r->room : 8;
		r->call = more;
	}
	return &r->call[r->n++];
}

static const struct ql_gpu_suspect *find(const struct ql_gpu_faults *f, uint64_t serial)
{
	const struct ql_gpu_suspect *s = &f->call[serial % QL_GPU_FAULTS_KEPT];

	if (s->serial == serial)
		return s;
	for (const struct ql_gpu_suspects *r = f->recorded; r; r = r->next)
		for (int i = 0; i < r->n; i++)
			if (r->call[i].serial == serial)
				return &r->call[i];
	return NULL;
}

void ql_gpu_faults_add(struct ql_ctx *ctx, struct ql_gpu_faults *f, const struct ql_call *call, uint64_t serial)
{
	struct ql_gpu_suspect *s = place_for(ctx, f, serial);
	const struct ql_tensor *last = call->in[call->n_in - 1];
	const struct ql_value *axis = ql_call_attr(call, "axis");

	f->any |= !f->recording;
	if (!s)
		return;
	*s = (struct ql_gpu_suspect){.serial = serial, .op = call->op, .rank = last->rank, .axis = -1};
	if (axis)
		s->axis = (int)(axis->i < 0 ? axis->i + call->in[0]->rank : axis->i - 1);
	memcpy(s->shape, last->shape, sizeof(s->shape));
}

/* Where the op is not known any more, or has no words of its own. */
static enum ql_status fail_plainly(struct ql_ctx *ctx, const char *op, const struct ql_gpu_fault *fault)
{
	long long value = fault->value, limit = fault->limit, position = fault->position;

	switch (fault->kind) {
	case QL_GPU_FAULT_DIVISION:
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted a divisor other than 0 for integers, got 0", op);
	case QL_GPU_FAULT_OVERFLOW:
		return ql_fail(ctx, QL_ERR_OVERFLOW, "%s: wanted sums that fit the dtype, got a larger one", op);
	default:
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted 1 to %lld, got %lld at element %lld", op, limit, value,
			position + 1);
	}
}

enum ql_status ql_gpu_faults_fail(struct ql_ctx *ctx, const struct ql_gpu_faults *f, const struct ql_gpu_fault *fault)
{
	const struct ql_gpu_suspect *s = find(f, fault->serial);
	struct ql_fault found = {.position = fault->position, .value = fault->value, .limit = fault->limit};

	if (!s)
		return fail_plainly(ctx, "an op on the device", fault);
	found.rank = s->rank;
	found.axis = s->axis;
	found.shape = s->shape;
	if (s->op->fault && (fault->kind == QL_GPU_FAULT_INDEX || fault->kind == QL_GPU_FAULT_CLASS))
		return s->op->fault(ctx, s->op->doc.name, &found);
	return fail_plainly(ctx, s->op->doc.name, fault);
}
