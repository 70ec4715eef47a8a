/* SPDX-License-Identifier: MIT
 * Runs ops on a device, and on the host what the device has no kernel for.
 */
#include "tensor/device_run.h"

#include <stdio.h>
#include <string.h>

#include "tensor/codec.h"
#include "tensor/fallback.h"
#include "tensor/ledger.h"
#include "tensor/meta.h"
#include "tensor/recording.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"
#include "tensor/tape.h"

/* ---- the device of a call ---- */

static enum ql_status place_of_attr(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *name = ql_call_string(call, "device", NULL);
	char what[64];

	call->device = ctx->device && ctx->depth == 0 ? ctx->device : &ql_device_cpu;
	if (!name)
		return QL_OK;
	snprintf(what, sizeof(what), "%s: device", call->op->doc.name);
	return ql_device_by_name(ctx, what, name, &call->device);
}

static enum ql_status fail_mixed(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_device *a, const struct ql_device *b)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted operands on one device, got %s and %s; use :to '%s'",
		call->op->doc.name, a->doc.name, b->doc.name, a->remote ? a->doc.name : b->doc.name);
}

enum ql_status ql_call_place(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_device *found = NULL;
	bool meta = false;

	if (call->n_in == 0 && !call->into)
		return place_of_attr(ctx, call);
	for (int i = call->into ? -1 : 0; i < call->n_in; i++) {
		const struct ql_tensor *t = i < 0 ? call->into : call->in[i];
		const struct ql_device *device = t->storage->device;

		meta |= device == &ql_device_meta;
		if (device == found || device == &ql_device_meta || (t->rank == 0 && !device->remote))
			continue;
		if (found)
			return fail_mixed(ctx, call, found, device);
		found = device;
	}
	call->device = meta ? &ql_device_meta : found ? found : &ql_device_cpu;
	return QL_OK;
}

/* ---- on the host ---- */

/* The operands of a call as tensors of the host. */
struct mirrored {
	struct ql_call call;
	struct ql_tensor **in; /* n_in + 1: the last one is `into`, or NULL */
	uint64_t *version;     /* of their storages before the call */
	struct ql_value *attr;
};

static struct ql_tensor *given(const struct ql_call *call, int i)
{
	return i < call->n_in ? call->in[i] : call->into;
}

/* Tensors among the attributes are needed on the host, too. */
static enum ql_status mirror_attrs(struct ql_ctx *ctx, const struct ql_call *call, struct mirrored *m)
{
	const struct ql_attr *a = call->op->doc.attrs;
	enum ql_status status = QL_OK;
	int n = 0;

	while (a && call->attr && a[n].type != QL_ATTR_END)
		n++;
	if (n == 0)
		return QL_OK;
	m->attr = ql_scratch_take(ctx, ql_size_array(n, sizeof(*m->attr)));
	if (!m->attr)
		return QL_ERR_MEMORY;
	memcpy(m->attr, call->attr, ql_size_array(n, sizeof(*m->attr)));
	for (int i = 0; i < n; i++)
		if (a[i].type == QL_ATTR_TENSOR)
			m->attr[i].tensor = NULL;
	m->call.attr = m->attr;
	for (int i = 0; i < n && !status; i++)
		if (a[i].type == QL_ATTR_TENSOR && call->attr[i].set)
			status = ql_tensor_host(ctx, call->attr[i].tensor, &m->attr[i].tensor);
	return status;
}

static void drop_attrs(struct ql_ctx *ctx, struct mirrored *m)
{
	const struct ql_attr *a = m->call.op->doc.attrs;

	for (int i = 0; m->attr && a[i].type != QL_ATTR_END; i++)
		if (a[i].type == QL_ATTR_TENSOR)
			ql_tensor_release(ctx, m->attr[i].tensor);
}

static enum ql_status mirror_operands(struct ql_ctx *ctx, const struct ql_call *call, struct mirrored *m)
{
	int n = call->n_in + 1;
	enum ql_status status;

	m->in = ql_scratch_take(ctx, ql_size_array(n, sizeof(*m->in)));
	m->version = ql_scratch_take(ctx, ql_size_array(n, sizeof(*m->version)));
	if (!m->in || !m->version)
		return QL_ERR_MEMORY;
	memset(m->in, 0, ql_size_array(n, sizeof(*m->in)));
	m->call = *call;
	m->call.in = m->in;
	m->call.device = &ql_device_cpu;
	status = mirror_attrs(ctx, call, m);
	for (int i = 0; i < n && !status; i++) {
		if (!given(call, i))
			continue;
		status = ql_tensor_host(ctx, given(call, i), &m->in[i]);
		for (int j = 0; j < i && !status; j++)
			if (given(call, i) == given(call, j)) { /* the same tensor stays the same */
				ql_tensor_release(ctx, m->in[i]);
				m->in[i] = ql_tensor_keep(m->in[j]);
				break;
			}
	}
	for (int i = 0; i < n && !status; i++)
		m->version[i] = m->in[i] ? m->in[i]->storage->version : 0;
	m->call.into = m->in[n - 1];
	return status;
}

/* The same of the scales of codes that an op has written together with them. */
static enum ql_status return_params(struct ql_ctx *ctx, const struct ql_call *call, int i, const struct ql_qparams *q)
{
	struct ql_tensor *part[3] = {q ? q->scale : NULL, q ? q->zero_point : NULL, q ? q->shift : NULL};
	enum ql_status status = QL_OK;

	if (!call->op->writes || i >= call->n_in || !(call->op->writes(call) & QL_SAVE(i)))
		return QL_OK;
	for (int k = 0; k < 3 && !status; k++)
		if (part[k] && ql_is_remote(part[k]))
			status = ql_storage_return(ctx, part[k]->storage);
	return status;
}

/* Copies operands that the op has written back to the device: once for each storage. */
static enum ql_status return_written(struct ql_ctx *ctx, const struct ql_call *call, struct mirrored *m)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i <= call->n_in && !status; i++) {
		struct ql_tensor *t = given(call, i);
		bool done = false;

		if (!t || !ql_is_remote(t) || m->in[i]->storage->version == m->version[i])
			continue;
		for (int j = 0; j < i; j++)
			done |= given(call, j) && given(call, j)->storage == t->storage;
		if (!done)
			status = ql_storage_return(ctx, t->storage);
		if (!status)
			status = return_params(ctx, call, i, t->q);
	}
	return status;
}

/* After a failure: operands are what they were on the device. */
static void forget_written(const struct ql_call *call, const struct mirrored *m)
{
	for (int i = 0; i <= call->n_in; i++)
		if (m->in[i] && given(call, i) && m->in[i]->storage->version != m->version[i])
			ql_storage_forget(given(call, i)->storage);
}

/* Gives a header of t's storage with the shape of `like`, a view of t's mirror. */
static enum ql_status same_view(struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_tensor *host,
	struct ql_tensor *like, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_alias(ctx, t, out);

	if (status)
		return status;
	(*out)->dtype = like->dtype;
	(*out)->rank = like->rank;
	(*out)->offset = like->offset;
	memcpy((*out)->shape, like->shape, sizeof(like->shape));
	memcpy((*out)->stride, like->stride, sizeof(like->stride));
	if (like->q == host->q)
		return QL_OK;
	ql_qparams_release(ctx, (*out)->q);
	(*out)->q = NULL;
	return like->q ? ql_qparams_to(ctx, like->q, t->storage->device, &(*out)->q) : QL_OK;
}

/* Replaces a result in the host's memory by one on the device: the given operand where the op gave that. */
static enum ql_status move_result(
	struct ql_ctx *ctx, const struct ql_call *call, struct mirrored *m, struct ql_tensor **result)
{
	struct ql_tensor *host = *result, *moved = NULL;
	enum ql_status status = QL_OK;

	for (int i = 0; host && i <= call->n_in && !moved && !status; i++) {
		struct ql_tensor *t = given(call, i);

		if (!t)
			continue;
		if (host == m->in[i])
			moved = ql_tensor_keep(t);
		else if (host->storage == m->in[i]->storage)
			status = same_view(ctx, t, m->in[i], host, &moved);
	}
	if (host && !moved && !status)
		status = ql_tensor_to(ctx, host, call->device, &moved);
	ql_tensor_release(ctx, host);
	*result = moved;
	return status;
}

static enum ql_status move_results(struct ql_ctx *ctx, struct ql_call *call, struct mirrored *m)
{
	enum ql_status status = QL_OK, one;

	call->n_out = m->call.n_out;
	call->list = m->call.list;
	call->random = m->call.random;
	memcpy(call->result, m->call.result, sizeof(call->result));
	memcpy(call->out, m->call.out, sizeof(call->out));
	if (call->into) { /* the result is in the operand */
		ql_call_drop(ctx, call);
		return QL_OK;
	}
	for (int i = 0; i < QL_MAX_OUT; i++) {
		one = move_result(ctx, call, m, &call->out[i]);
		status = status ? status : one;
	}
	for (int i = 0; call->list && i < call->n_out; i++) {
		one = move_result(ctx, call, m, &call->list[i]);
		status = status ? status : one;
	}
	return status;
}

enum ql_status ql_device_fallback(
	struct ql_ctx *ctx, const char *name, const struct ql_device *device, const char *reason)
{
	if (ctx->host_fallback == QL_FALLBACK_WARN)
		ql_warn(ctx, "%s: runs on the host: %s: %s", name, device->doc.name, reason);
	if (ctx->host_fallback != QL_FALLBACK_ERROR)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_UNSUPPORTED,
		"%s: wanted a kernel of %s, got none: %s; gpu.fallback 'silent' runs it on the host", name,
		device->doc.name, reason);
}

static enum ql_status run_on_host(struct ql_ctx *ctx, struct ql_call *call, const char *reason)
{
	struct mirrored m = {.attr = NULL};
	enum ql_status status = ql_device_fallback(ctx, call->op->doc.name, call->device, reason);
	bool ready;

	if (!status)
		status = mirror_operands(ctx, call, &m);
	ready = !status;
	if (!status)
		status = ql_op_eval(ctx, &m.call);
	if (!status) {
		status = move_results(ctx, call, &m);
		call->kernel = m.call.kernel ? m.call.kernel : "ref";
	} else if (m.call.op) {
		ql_call_drop(ctx, &m.call);
	}
	if (!status)
		status = return_written(ctx, call, &m);
	if (status && ready)
		forget_written(call, &m);
	for (int i = 0; m.in && i <= call->n_in; i++)
		ql_tensor_release(ctx, m.in[i]);
	if (m.call.op)
		drop_attrs(ctx, &m);
	call->path = "host";
	call->reason = reason;
	return status;
}

/* ---- on the device ---- */

/* The spec of the call's result, or NULL. */
static const struct ql_spec *wanted_spec(const struct ql_call *call)
{
	const struct ql_attr *a = call->op->doc.attrs;

	for (int i = 0; a && call->attr && a[i].type != QL_ATTR_END; i++)
		if (a[i].type == QL_ATTR_SPEC && call->attr[i].set && !(a[i].flags & QL_NOT_RESULT))
			return call->attr[i].spec;
	return NULL;
}

/* Whether the kernel may write into the operand, element by element. */
static bool overwrites(const struct ql_call *call)
{
	return call->into && call->op->may_overwrite && ql_tensor_is_contiguous(call->into) &&
	       call->op->may_overwrite(call);
}

/* Codes under the params of operand 0. */
static enum ql_status allocate_kept(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	enum ql_status status =
		ql_tensor_new_on(ctx, call->device, call->in[0]->dtype, r->rank, r->shape, &call->out[0]);

	if (!status)
		call->out[0]->q = ql_qparams_keep(call->in[0]->q);
	return status;
}

/* The plain numbers that are quantized, if the call does nothing else. */
static struct ql_tensor *encoded(const struct ql_call *call)
{
	return call->op->flags & QL_ENCODES && !call->in[0]->q ? call->in[0] : NULL;
}

enum ql_status ql_call_allocate(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	const struct ql_spec *spec = wanted_spec(call);
	bool keeps = !spec && ql_call_keeps_params(ctx, call);
	enum ql_status status = QL_OK;

	call->fit = QL_FIT_OTHER;
	if (overwrites(call))
		call->out[0] = ql_tensor_keep(call->into);
	for (int i = 0; i < call->n_out && !status; i++) {
		const struct ql_result *r = &call->result[i];

		if (call->out[i])
			continue;
		if (keeps && i == 0)
			status = allocate_kept(ctx, call);
		else if (!spec || i)
			status = ql_tensor_new_on(ctx, call->device, r->dtype, r->rank, r->shape, &call->out[i]);
		else
			status = ctx->quant->result(ctx, spec, ql_operand_dtype(call->in[0]), encoded(call), r->rank,
				r->shape, call->device, &call->out[0], &call->fit);
		if (!status && !call->out[i]) {
			*reason = "the host finds the scales of this spec";
			return QL_OK;
		}
	}
	return status;
}

/* What was made of the bytes that the kernel writes into is out of date. */
static void count_writes(const struct ql_call *call)
{
	uint32_t written = call->op->writes ? call->op->writes(call) : 0;

	for (int i = 0; i < call->n_in && i < 31; i++)
		if (written & QL_SAVE(i))
			call->in[i]->storage->version++;
	if (call->into && call->out[0] == call->into)
		call->into->storage->version++;
}

static enum ql_status run_kernel(struct ql_ctx *ctx, struct ql_call *call, const void *plan)
{
	enum ql_status status;

	count_writes(call);
	if (ctx->recording)
		ql_recording_call(ctx, call);
	ql_call_draw(ctx, call);
	status = call->device->run(call->device, call, plan);
	return !status && call->into ? ql_call_write_into(ctx, call) : status;
}

/* Infers the results and runs a kernel of the device; *reason is set if there is none, and nothing has changed. */
static enum ql_status try_device(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	const void *plan;
	enum ql_status status = ql_call_check_into(ctx, call);

	if (!status)
		status = call->op->infer(ctx, call);
	for (int i = 0; i < call->n_out && !status; i++)
		status = ql_shape_check(ctx, call->op->doc.name, call->result[i].rank, call->result[i].shape);
	if (!status)
		status = ql_call_allocate(ctx, call, reason);
	if (status || *reason)
		return status;
	plan = call->device->find(call->device, call);
	if (plan)
		return run_kernel(ctx, call, plan);
	*reason = call->reason;
	ql_call_drop(ctx, call);
	return QL_OK;
}

bool ql_call_has_results(const struct ql_call *call)
{
	bool codes = wanted_spec(call);

	return call->op->infer && !(call->op->flags & QL_LIST_OUT) && !(codes && call->n_in == 0) &&
	       !(call->into && (call->into->q || codes));
}

/* ---- decoded operands ---- */

/* Whether the host would decode the operands, too; *reason says why. */
static bool decodes(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	return ql_call_quantized(call) && !(call->op->flags & QL_NATIVE) && !call->into && !wanted_spec(call) &&
	       !ql_call_path(ctx, call, reason);
}

/* Runs the call with decoded operands, which stay on the device. */
static enum ql_status run_decoded(struct ql_ctx *ctx, struct ql_call *call, const char *reason)
{
	size_t bytes = ql_size_array(call->n_in, sizeof(*call->in));
	struct ql_tensor **given_in = call->in, **copy = ql_scratch_take(ctx, bytes),
			 **decoded = ql_scratch_take(ctx, bytes);
	enum ql_status status;

	if (!copy || !decoded)
		return QL_ERR_MEMORY;
	memcpy(copy, given_in, bytes);
	memset(decoded, 0, bytes);
	call->in = copy;
	ctx->nograd++; /* gradients pass the given operands */
	ctx->depth++;
	status = ql_fallback(ctx, call, reason, 0, decoded);
	ctx->depth--;
	ctx->nograd--;
	for (int i = 0; i < call->n_in && !status; i++) /* ql_tape_wanted is to answer the same */
		if (decoded[i] && given_in[i]->node) {
			decoded[i]->node = given_in[i]->node;
			decoded[i]->node_output = given_in[i]->node_output;
			decoded[i]->node->refs++;
		}
	if (!status)
		status = ql_device_eval(ctx, call);
	ql_fallback_done(ctx, call->n_in, decoded);
	call->in = given_in;
	if (status || (call->path && !strcmp(call->path, "host")))
		return status;
	call->path = "fallback";
	call->reason = reason;
	return QL_OK;
}

/* ---- tables ---- */

/* The quantized operand of an elementwise op with out= whose other operands are numbers; -1: it is another call. */
static int table_operand(const struct ql_call *call)
{
	return call->op->flags & QL_ELEMENTWISE && wanted_spec(call) && !call->into && !ql_call_attr(call, "act")
		       ? ql_call_one_quantized(call)
		       : -1;
}

/* Decodes operand i, runs the op and quantizes its result, all on the device. The host looks codes up in a table of the results of
 * just that, so the codes are the same. *done is false, and nothing has changed, if only the host finds the scales. */
static enum ql_status run_by_value(struct ql_ctx *ctx, struct ql_call *call, int i, bool *done)
{
	const struct ql_attr *a = call->op->doc.attrs;
	struct ql_call plain = *call;
	struct ql_tensor **in = ql_scratch_take(ctx, ql_size_array(call->n_in, sizeof(*in))), *real = NULL;
	struct ql_value *attr;
	const struct ql_result *r = &call->result[0]; /* of infer */
	enum ql_fit_rule fit;
	enum ql_status status;
	int n = 0;

	*done = false;
	status = ctx->quant->result(ctx, wanted_spec(call), ql_operand_dtype(call->in[i]), NULL, r->rank, r->shape,
		call->device, &call->out[0], &fit);
	if (status || !call->out[0] || fit != QL_FIT_OTHER) { /* the range is not known before */
		ql_call_drop(ctx, call);
		return status;
	}
	*done = true;
	while (a[n].type != QL_ATTR_END)
		n++;
	attr = ql_scratch_take(ctx, ql_size_array(n, sizeof(*attr)));
	if (!in || !attr)
		return QL_ERR_MEMORY;
	memcpy(in, call->in, ql_size_array(call->n_in, sizeof(*in)));
	memcpy(attr, call->attr, ql_size_array(n, sizeof(*attr)));
	for (int k = 0; k < n; k++)
		attr[k].set &= a[k].type != QL_ATTR_SPEC;
	plain.in = in;
	plain.attr = attr;
	ctx->nograd++;
	ctx->depth++;
	status = ql_decode(ctx, call->in[i], &real);
	in[i] = real;
	if (!status)
		status = ql_device_eval(ctx, &plain);
	if (!status)
		status = ql_encode(ctx, plain.out[0], call->out[0], NULL, NULL);
	ctx->depth--;
	ctx->nograd--;
	call->path = plain.path;
	call->kernel = plain.kernel;
	call->reason = plain.reason;
	ql_call_drop(ctx, &plain);
	ql_tensor_release(ctx, real);
	return status;
}

enum ql_status ql_device_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *reason = "the device has no kernel of the op", *why = NULL;
	bool refused = false;
	bool has = call->device->has(call->device, call->op->doc.name);
	unsigned flags = call->op->flags;
	bool done;
	enum ql_status status = QL_OK;

	if (flags & QL_VIEW || (call->op->same && call->op->same(call)))
		return ql_op_eval(ctx, call);
	if (!ql_call_quantized(call))
		status = ql_call_check_integer(ctx, call, NULL);
	if (status)
		return status;
	if (has && ql_call_has_results(call)) {
		reason = NULL;
		status = try_device(ctx, call, &reason);
		if (status || !reason)
			return status;
		refused = true;
		call->n_out = 1;
		call->path = call->kernel = call->reason = NULL;
	}
	if (flags & QL_ANYWHERE && call->op->host_only && call->op->host_only(call))
		return run_on_host(ctx, call, call->op->host_only(call));
	if (flags & QL_ANYWHERE && (flags & QL_NATIVE || !ql_call_quantized(call)) &&
		!(refused && ql_call_quantized(call)))
		return ql_op_eval(ctx, call);
	if (has && table_operand(call) >= 0) {
		status = run_by_value(ctx, call, table_operand(call), &done);
		if (status || done)
			return status;
	}
	if ((has || flags & QL_ANYWHERE) && decodes(ctx, call, &why))
		return run_decoded(ctx, call, why);
	return run_on_host(ctx, call, reason);
}
