/* SPDX-License-Identifier: MIT
 * ql_op_apply: infer -> choose -> allocate -> run -> record. The choice is the only branch that a user must know:
 * an integer path if one matches, else the fallback for quantized operands, else the plain kernel.
 */
#include "tensor/op.h"

#include <stdio.h>
#include <string.h>

#include "tensor/codec.h"
#include "tensor/deferred.h"
#include "tensor/device_run.h"
#include "tensor/fallback.h"
#include "tensor/images.h"
#include "tensor/ledger.h"
#include "tensor/meta.h"
#include "tensor/ragged.h"
#include "tensor/remote.h"
#include "tensor/rng.h"
#include "tensor/scratch.h"
#include "tensor/tape.h"

const struct ql_op *ql_op_by_name(const struct ql_op *const *table, const char *name)
{
	for (; *table; table++)
		if (!strcmp((*table)->doc.name, name))
			return *table;
	return NULL;
}

/* ---- operands ---- */

bool ql_call_quantized(const struct ql_call *call)
{
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i]->q)
			return true;
	return false;
}

int ql_call_one_quantized(const struct ql_call *call)
{
	int found = -1;

	for (int i = 0; i < call->n_in; i++) {
		const struct ql_tensor *t = call->in[i];

		if (!t->q && t->rank == 0)
			continue;
		if (found >= 0 || !t->q)
			return -1;
		found = i;
	}
	return found;
}

/* ---- attributes ---- */

const struct ql_value *ql_call_attr(const struct ql_call *call, const char *name)
{
	const struct ql_attr *a = call->op->doc.attrs;

	for (int i = 0; a && call->attr && a[i].type != QL_ATTR_END; i++)
		if (a[i].name[0] == name[0] && !strcmp(a[i].name, name)) /* most differ in the first letter */
			return call->attr[i].set ? &call->attr[i] : NULL;
	return NULL;
}

int64_t ql_call_int(const struct ql_call *call, const char *name, int64_t otherwise)
{
	const struct ql_value *v = ql_call_attr(call, name);

	return v ? v->i : otherwise;
}

double ql_call_float(const struct ql_call *call, const char *name, double otherwise)
{
	const struct ql_value *v = ql_call_attr(call, name);

	return v ? v->f : otherwise;
}

int ql_call_outputs(const struct ql_call *call)
{
	if (call->op->gives)
		return call->op->gives(call);
	return call->op->outputs ? call->op->outputs : 1;
}

bool ql_call_bool(const struct ql_call *call, const char *name, bool otherwise)
{
	const struct ql_value *v = ql_call_attr(call, name);

	return v ? v->b : otherwise;
}

const char *ql_call_string(const struct ql_call *call, const char *name, const char *otherwise)
{
	const struct ql_value *v = ql_call_attr(call, name);

	return v ? v->s : otherwise;
}

enum ql_status ql_call_axis(struct ql_ctx *ctx, const struct ql_call *call, const char *name, int *axis)
{
	const struct ql_value *v = ql_call_attr(call, name);
	char what[96];

	if (!v)
		return QL_OK;
	strncpy(what, call->op->doc.name, sizeof(what) - 1);
	what[sizeof(what) - 1] = '\0';
	strncat(what, ": ", sizeof(what) - strlen(what) - 1);
	strncat(what, name, sizeof(what) - strlen(what) - 1);
	return ql_axis(ctx, what, v->i, call->in[0]->rank, axis);
}

/* ---- inference ---- */

unsigned ql_operand_dtype(const struct ql_tensor *t)
{
	return t->q ? QL_float32 : t->dtype;
}

void ql_result_set(struct ql_call *call, int i, unsigned dtype, int rank, const int64_t *shape)
{
	call->result[i].dtype = dtype;
	call->result[i].rank = rank;
	for (int d = 0; d < rank; d++)
		call->result[i].shape[d] = shape[d];
}

enum ql_status ql_infer_broadcast(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_result *r = &call->result[0];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	r->rank = 0;
	for (int i = 0; i < call->n_in; i++)
		r->rank = call->in[i]->rank > r->rank ? call->in[i]->rank : r->rank;
	for (int d = 0; d < r->rank; d++)
		r->shape[d] = 1;
	for (int i = 0; i < call->n_in; i++) {
		const struct ql_tensor *t = call->in[i];
		int shift = r->rank - t->rank;

		for (int d = 0; d < t->rank; d++) {
			if (t->shape[d] == 1 || t->shape[d] == r->shape[d + shift])
				continue;
			if (r->shape[d + shift] != 1)
				return ql_fail(ctx, QL_ERR_SHAPE,
					"%s: wanted shapes that broadcast (equal or 1, from the last axis), got %s and %s",
					call->op->doc.name, ql_shape_text(call->in[0]->rank, call->in[0]->shape, a),
					ql_shape_text(t->rank, t->shape, b));
			r->shape[d + shift] = t->shape[d];
		}
	}
	return QL_OK;
}

enum ql_status ql_infer_same(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *t = call->in[0];

	(void)ctx;
	ql_result_set(call, 0, ql_operand_dtype(t), t->rank, t->shape);
	return QL_OK;
}

/* ---- applying ---- */

void ql_call_drop(struct ql_ctx *ctx, struct ql_call *call)
{
	for (int i = 0; i < QL_MAX_OUT; i++) {
		ql_tensor_release(ctx, call->out[i]);
		call->out[i] = NULL;
	}
	for (int i = 0; call->list && i < call->n_out; i++)
		ql_tensor_release(ctx, call->list[i]);
	ql_free(ctx, call->list);
	call->list = NULL;
}

static bool serves(const struct ql_path *path, const char *op)
{
	return !path->op || !strcmp(path->op, op);
}

/* Bits of the paths that serve an op. Names are compared at the first call of the op only, because this runs before every
 * one: the address of a name stands for it. */
static uint64_t paths_of(struct ql_ctx *ctx, const char *op)
{
	struct ql_served *s = &ctx->served[(uintptr_t)op * 0x9e3779b97f4a7c15u >> 58];

	if (s->op == op && s->quant == ctx->quant)
		return s->paths;
	*s = (struct ql_served){.op = op, .quant = ctx->quant};
	for (int i = 0; i < QL_PATHS_MOST && ctx->quant->paths[i]; i++)
		if (serves(ctx->quant->paths[i], op))
			s->paths |= UINT64_C(1) << i;
	return s->paths;
}

const struct ql_path *ql_call_path(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	uint64_t left = ctx->quant ? paths_of(ctx, call->op->doc.name) : 0;

	*reason = "the op has no integer kernel";
	for (; left; left &= left - 1) {
		const struct ql_path *path = ctx->quant->paths[__builtin_ctzll(left)];

		if (path->match(call, reason))
			return path;
	}
	return NULL;
}

bool ql_call_keeps_params(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_path *const *p = ctx->quant && call->n_in && call->in[0]->q ? ctx->quant->paths : NULL;
	const char *unused;

	for (; p && *p; p++)
		if ((*p)->keeps && serves(*p, call->op->doc.name) && (*p)->match(call, &unused))
			return true;
	return false;
}

static bool is_left(uint32_t left, int operand)
{
	return operand < 32 && left >> operand & 1;
}

/* Runs `eval` with the operands' codes in memory as their dtype has them; those of `left` (bits), and with `images` those of images, as
 * they are. */
static enum ql_status eval_dense(struct ql_ctx *ctx, struct ql_call *call, ql_eval_fn *eval, bool images, uint32_t left)
{
	enum ql_status status = QL_OK;
	int opened = 0;

	for (; opened < call->n_in && !status; opened += !status)
		if (!is_left(left, opened) &&
			(!images || !ql_is_closed(call->in[opened]) || !ql_images_last(call->in[opened])))
			status = ql_closed_open(ctx, call->in[opened]->storage);
	if (call->into && call->out[0] == call->into)
		call->into->storage->version++;
	if (!status)
		status = eval(ctx, call);
	while (opened-- > 0)
		if (!is_left(left, opened))
			ql_closed_close(ctx, call->in[opened]->storage);
	return status;
}

static enum ql_status allocate_and_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = QL_OK;

	if (call->into && call->op->may_overwrite && call->op->may_overwrite(call))
		call->out[0] = ql_tensor_keep(call->into);
	if (!(call->op->flags & QL_LIST_OUT) && !call->op->allocates)
		for (int i = 0; i < call->n_out && !status; i++)
			if (!call->out[i])
				status = ql_tensor_new_on(ctx, call->device, call->result[i].dtype,
					call->result[i].rank, call->result[i].shape, &call->out[i]);
	if (status)
		return status;
	if (call->op->flags & QL_CLOSED)
		return call->op->eval(ctx, call);
	return eval_dense(ctx, call, call->op->eval, false, call->op->decodes ? call->op->decodes(call) : 0);
}

static enum ql_status run_fallback(struct ql_ctx *ctx, struct ql_call *call, const char *reason)
{
	struct ql_tensor **given = call->in, **copy, **decoded;
	size_t bytes = ql_size_array(call->n_in, sizeof(*copy));
	enum ql_status status;

	copy = ql_scratch_take(ctx, bytes);
	decoded = ql_scratch_take(ctx, bytes);
	if (!copy || !decoded)
		return QL_ERR_MEMORY;
	memcpy(copy, given, bytes);
	memset(decoded, 0, bytes);
	call->in = copy;
	status = ql_fallback(ctx, call, reason, call->op->decodes ? call->op->decodes(call) : 0, decoded);
	if (!status)
		status = allocate_and_eval(ctx, call);
	ql_fallback_done(ctx, call->n_in, decoded);
	call->in = given;
	call->path = "fallback";
	call->reason = reason;
	return status;
}

/* Applies out=spec after the op ran in float. */
static enum ql_status quantize_result(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *spec = ql_call_attr(call, "out");
	struct ql_tensor *q;
	enum ql_status status;

	if (!spec)
		spec = ql_call_attr(call, "quant");
	if (!spec || !spec->spec || !call->out[0] || call->out[0]->q || !ctx->quant)
		return QL_OK;
	status = ctx->quant->quantize(ctx, call->out[0], spec->spec, &q);
	if (status)
		return status;
	ql_tensor_release(ctx, call->out[0]);
	call->out[0] = q;
	return QL_OK;
}

enum ql_status ql_call_check_integer(struct ql_ctx *ctx, const struct ql_call *call, const char *reason)
{
	const struct ql_attr *a = call->op->doc.attrs;

	for (int i = 0; a && call->attr && a[i].type != QL_ATTR_END; i++)
		if (a[i].flags & QL_INTEGER_ONLY && call->attr[i].set)
			return ql_fail(ctx, QL_ERR_UNSUPPORTED,
				"%s: %s: wanted quantized operands and out= that an integer kernel takes, got none: %s",
				call->op->doc.name, a[i].name, reason ? reason : "no operand is quantized");
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_path *path = NULL;
	const char *reason = NULL;
	enum ql_status status;

	if (call->op->flags & QL_VIEW) {
		call->path = "view";
		call->kernel = "none";
		return QL_OK;
	}
	/* plain integers may also have a path: exact products */
	if (!(call->op->flags & QL_NATIVE))
		path = ql_call_path(ctx, call, &reason);
	if (call->op->flags & QL_WAITING && !(path && path->waiting)) {
		status = ql_deferred_settle(ctx, call->in[0]->storage);
		if (status)
			return status;
	}
	if (path) {
		call->path = path->name; /* eval may set a more specific name */
		return path->closed ? path->eval(ctx, call) : eval_dense(ctx, call, path->eval, path->images, 0);
	}
	status = ql_call_check_integer(ctx, call, reason);
	if (status)
		return status;
	if (ql_call_quantized(call) && !(call->op->flags & QL_NATIVE))
		status = run_fallback(ctx, call, reason);
	else
		status = allocate_and_eval(ctx, call);
	return status ? status : quantize_result(ctx, call);
}

/* In-place form: the result goes into `into`, under its own dtype or quant params. */
static enum ql_status convert_into(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *to = call->into, *from = call->out[0];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (to == from) /* already overwritten */
		return QL_OK;
	if (!ql_tensor_same_shape(to, from))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s_: wanted a result of the tensor's own shape %s, got %s",
			call->op->doc.name, ql_shape_text(to->rank, to->shape, a),
			ql_shape_text(from->rank, from->shape, b));
	if (to->q && !from->q)
		return ql_encode(ctx, from, to, NULL, NULL);
	if (to->q && ql_qparams_equal(to->q, from->q))
		return ql_tensor_copy(ctx, to, from);
	if (ql_dtype_is_integer(to->dtype) && ql_dtype_is_float(from->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"%s_: wanted a result that fits %s, got %s; use the form without underscore",
			call->op->doc.name, ql_dtype_name(to->dtype), ql_dtype_name(from->dtype));
	return ql_tensor_copy(ctx, to, from);
}

enum ql_status ql_call_write_into(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status;

	ctx->finishing = true;
	status = convert_into(ctx, call);
	ctx->finishing = false;
	return status;
}

enum ql_status ql_call_check_into(struct ql_ctx *ctx, const struct ql_call *call)
{
	char what[64];
	enum ql_status status = QL_OK;

	if (!call->into)
		return QL_OK;
	snprintf(what, sizeof(what), "%s_", call->op->doc.name);
	for (int i = 0; i < call->n_in && !status; i++)
		status = ql_tape_check_write(ctx, what, call->into, call->in[i]);
	if (status || !ql_tensor_overlaps_itself(call->into))
		return status;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s_: wanted a tensor whose elements are all distinct, got an expanded view", call->op->doc.name);
}

/* Releases the results for backward only: the node, if any, keeps them. */
static void drop_private(struct ql_ctx *ctx, struct ql_call *call)
{
	int given = ql_call_outputs(call);

	if (call->op->flags & QL_LIST_OUT)
		return;
	for (int i = given; i < call->n_out && i < QL_MAX_OUT; i++) {
		ql_tensor_release(ctx, call->out[i]);
		call->out[i] = NULL;
	}
}

/* Results whose channels differ in bits are stored so. Within another op they stay dense: it reads their elements. */
static enum ql_status pack_results(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = QL_OK;

	if (ctx->depth || call->into || call->op->flags & QL_VIEW)
		return QL_OK;
	for (int i = 0; i < QL_MAX_OUT && !status; i++)
		if (call->out[i])
			status = ql_ragged_pack(ctx, call->out[i]);
	for (int i = 0; call->list && i < call->n_out && !status; i++)
		status = ql_ragged_pack(ctx, call->list[i]);
	return status;
}

static void record(struct ql_ctx *ctx, struct ql_call *call, uint64_t operands)
{
	uint32_t row;

	if (call->op->flags & (QL_VIEW | QL_NATIVE) && !call->kernel)
		return;
	row = ql_ledger_count(ctx, call->op->doc.name, call->path ? call->path : "float32",
		call->kernel ? call->kernel : "ref", call->reason, operands);
	if (call->op->flags & QL_VIEW)
		return; /* a view keeps the origin of its values */
	for (int i = 0; i < QL_MAX_OUT; i++)
		if (call->out[i])
			call->out[i]->origin = row;
	if (call->into)
		call->into->origin = row;
}

void ql_call_draw(struct ql_ctx *ctx, struct ql_call *call)
{
	if (!call->op->draws)
		return;
	call->random.seed = ctx->seed;
	call->random.first = ql_rng_take(ctx, call->op->draws(call));
}

enum ql_status ql_op_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	bool deferred = false;
	enum ql_status status = ql_call_check_into(ctx, call);

	if (!status && call->op->infer)
		status = call->op->infer(ctx, call);
	for (int i = 0; i < call->n_out && !status && !(call->op->flags & (QL_LIST_OUT | QL_VIEW)); i++)
		status = ql_shape_check(ctx, call->op->doc.name, call->result[i].rank, call->result[i].shape);
	if (!status && ctx->deferring && call->op->defer)
		status = call->op->defer(ctx, call, &deferred);
	if (deferred)
		return status;
	if (!status)
		status = ql_deferred_settle_call(ctx, call);
	if (!status)
		ql_call_draw(ctx, call);
	ctx->nograd++; /* ops called by eval must not record nodes */
	ctx->depth++;
	if (!status)
		status = run(ctx, call);
	ctx->depth--;
	ctx->nograd--;
	if (!status)
		status = pack_results(ctx, call);
	if (!status && call->into)
		status = ql_call_write_into(ctx, call);
	return status;
}

enum ql_status ql_op_apply(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	uint64_t operands = ql_ledger_key(call);
	enum ql_status status;
	bool meta = false;

	call->n_out = 1;
	call->path = call->kernel = call->reason = NULL;
	call->list = NULL;
	memset(call->out, 0, sizeof(call->out));
	status = ql_check_read(ctx);
	if (!status)
		status = ql_call_place(ctx, call);
	meta = !status && call->device == &ql_device_meta;
	if (!status)
		status = call->device->remote ? ql_device_eval(ctx, call)
			 : meta               ? ql_meta_eval(ctx, call)
					      : ql_op_eval(ctx, call);
	if (!status && !call->into && ql_tape_wanted(ctx, call))
		status = ql_tape_record(ctx, call);
	drop_private(ctx, call);
	status = ql_failed_in(ctx, call->op->doc.name, status);
	if (status)
		ql_call_drop(ctx, call);
	else if (!meta)
		record(ctx, call, operands);
	if (!status && call->into) {
		ql_call_drop(ctx, call);
		call->out[0] = ql_tensor_keep(call->into);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

/* Applies a call whose operand `at` is *t, which becomes its result. */
static enum ql_status apply_next(struct ql_ctx *ctx, struct ql_call *call, int at, struct ql_tensor **t)
{
	struct ql_tensor *inner = *t;
	enum ql_status status;

	call->in[at] = inner;
	status = ql_op_apply(ctx, call);
	*t = call->out[0];
	ql_tensor_release(ctx, inner);
	return status;
}

enum ql_status ql_op_apply_joined(struct ql_ctx *ctx, struct ql_call *first, struct ql_join *join)
{
	struct ql_call *last = join->third ? join->third : join->second;
	struct ql_tensor *t;
	enum ql_status status;

	join->done = false;
	first->join = join;
	status = ql_op_apply(ctx, first);
	first->join = NULL;
	if (status)
		return status;
	t = first->out[0];
	first->out[0] = NULL;
	if (!join->done) {
		status = apply_next(ctx, join->second, join->at, &t);
		return status || !join->third ? status : apply_next(ctx, join->third, 0, &t);
	}
	last->out[0] = t;
	if (join->third)
		record(ctx, join->second, join->operands);
	if (join->third)
		join->third->in[0] = t;
	record(ctx, last, join->third ? ql_ledger_key(last) : join->operands);
	return QL_OK;
}

enum ql_status ql_op_run(
	struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *b, struct ql_tensor **out)
{
	struct ql_tensor *in[2] = {a, b};
	struct ql_call call = {.op = op, .in = in, .n_in = b ? 2 : a ? 1 : 0};
	enum ql_status status = ql_op_apply(ctx, &call);

	*out = call.out[0];
	return status;
}
