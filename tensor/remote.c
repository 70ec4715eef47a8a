/* SPDX-License-Identifier: MIT
 * Tensors in the memory of a device: mirrors, moves and copies. Whatever the device has no kernel for goes through the
 * host's memory.
 */
#include "tensor/remote.h"

#include <string.h>

#include "tensor/codec.h"
#include "tensor/device_run.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/op.h"
#include "tensor/ragged.h"
#include "tensor/recording.h"
#include "tensor/tape.h"

#define REMEMBERED 1024 /* bytes of what is copied to a device of which the host keeps a copy */

/* ---- mirrors ---- */

/* Sets *out, borrowed, to a storage in the host's memory with the bytes of s: s itself, or its mirror. */
static enum ql_status mirror_of(struct ql_ctx *ctx, struct ql_storage *s, struct ql_storage **out)
{
	struct ql_remote *r = s->remote;
	enum ql_status status;

	*out = s;
	if (!r)
		return QL_OK;
	if (ctx->recording)
		ql_recording_known(ctx, s);
	if (r->mirror && r->mirror->refs > 1 && r->mirrored != s->version) { /* others still read the old bytes */
		ql_storage_release(ctx, r->mirror);
		r->mirror = NULL;
	}
	if (!r->mirror) {
		r->mirror = ql_storage_new(ctx, &ql_device_cpu, s->bytes);
		r->mirrored = s->version - 1;
	}
	if (!r->mirror)
		return QL_ERR_MEMORY;
	r->mirror->pins = 1; /* its bytes are copied from and to the device */
	*out = r->mirror;
	if (r->mirrored == s->version)
		return QL_OK;
	status = s->device->read(s->device, r->mirror->data, r->at, s->bytes);
	if (status)
		return status;
	r->mirror->version++;
	r->mirrored = s->version;
	return QL_OK;
}

const void *ql_storage_bytes(const struct ql_storage *s)
{
	struct ql_ctx *ctx;
	struct ql_storage *host;

	if (!s->remote)
		return s->data;
	ctx = s->device->ctx;
	/* the mirror is a cache: reading a constant storage may fill it */
	if (!mirror_of(ctx, (struct ql_storage *)(uintptr_t)s, &host))
		return host->data;
	memcpy(ctx->unread, ctx->err, sizeof(ctx->unread));
	return NULL;
}

enum ql_status ql_check_read(struct ql_ctx *ctx)
{
	if (!ctx->unread[0])
		return QL_OK;
	memcpy(ctx->err, ctx->unread, sizeof(ctx->err));
	ctx->unread[0] = '\0';
	return QL_ERR_UNSUPPORTED;
}

enum ql_status ql_storage_return(struct ql_ctx *ctx, struct ql_storage *s)
{
	struct ql_remote *r = s->remote;
	enum ql_status status;

	if (ctx->recording)
		return ql_recording_refuse(ctx, "the host writes into memory of the device");
	status = s->device->write(s->device, r->at, r->mirror->data, s->bytes);
	r->mirrored = ++s->version;
	return status;
}

/* ---- moving ---- */

typedef enum ql_status move_fn(
	struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_device *device, struct ql_tensor **out);

/* Gives q with the tensors that follow the codes moved. */
static enum ql_status move_params(struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device,
	move_fn *move, struct ql_qparams **out)
{
	struct ql_qparams *copy = ql_qparams_copy(ctx, q);
	struct ql_tensor **const part[] = {&copy->scale, &copy->zero_point, &copy->shift};
	enum ql_status status = QL_OK;

	*out = copy;
	if (!copy)
		return QL_ERR_MEMORY;
	for (size_t i = 0; i < sizeof(part) / sizeof(*part) && !status; i++) {
		struct ql_tensor *moved;

		if (!*part[i])
			continue;
		status = move(ctx, *part[i], device, &moved);
		if (status)
			break;
		ql_tensor_release(ctx, *part[i]);
		*part[i] = moved;
	}
	if (status) {
		ql_qparams_release(ctx, copy);
		*out = NULL;
	}
	return status;
}

static enum ql_status to_host(
	struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_device *device, struct ql_tensor **out)
{
	(void)device;
	return ql_tensor_host(ctx, t, out);
}

enum ql_status ql_tensor_host(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_storage *host;
	enum ql_status status;

	*out = NULL;
	if (!ql_is_remote(t)) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	status = mirror_of(ctx, t->storage, &host);
	if (!status)
		status = ql_tensor_alias(ctx, t, out);
	if (status)
		return status;
	ql_storage_release(ctx, (*out)->storage);
	(*out)->storage = ql_storage_keep(host);
	if (t->node) {
		(*out)->node = t->node;
		(*out)->node_output = t->node_output;
		t->node->refs++;
	}
	if (t->q) {
		ql_qparams_release(ctx, (*out)->q);
		status = move_params(ctx, t->q, &ql_device_cpu, to_host, &(*out)->q);
	}
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_qparams_to(
	struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device, struct ql_qparams **out)
{
	if (q->scale->storage->device == device) {
		*out = ql_qparams_keep(q);
		return QL_OK;
	}
	return move_params(ctx, q, device, ql_tensor_to, out);
}

/* Bytes from the first element to the last one of a contiguous tensor. */
static size_t dense_bytes(const struct ql_tensor *t)
{
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

	if (t->rank == 0)
		return (ql_dtypes[t->dtype].bits + 7u) / 8;
	return row ? (size_t)ql_rows_bytes(ql_tensor_nelem(t) / row, row, t->dtype) : 0;
}

/* Whether t can be written as one piece of bytes: it is contiguous, and no byte has elements of another view. */
static bool is_one_piece(const struct ql_tensor *t)
{
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

	return ql_tensor_is_contiguous(t) &&
	       (row % ql_dtype_group(t->dtype) == 0 || dense_bytes(t) == t->storage->bytes);
}

static size_t offset_bytes(const struct ql_tensor *t)
{
	return (size_t)t->offset * ql_dtypes[t->dtype].bits / 8; /* size: within the storage */
}

static void *address(const struct ql_tensor *t)
{
	return (char *)t->storage->remote->at + offset_bytes(t);
}

/* Gives the elements of a remote t as a contiguous tensor of the host. */
static enum ql_status download(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_tensor *host;
	enum ql_status status;

	if (!ql_tensor_is_contiguous(t)) {
		status = ql_tensor_host(ctx, t, &host);
		if (!status)
			status = ql_tensor_cast(ctx, host, t->dtype, out);
		ql_tensor_release(ctx, host);
		return status;
	}
	status = ql_tensor_new(ctx, t->dtype, t->rank, t->shape, out);
	if (!status)
		status =
			t->storage->device->read(t->storage->device, (*out)->storage->data, address(t), dense_bytes(t));
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* Keeps the bytes that were written to a whole storage as its mirror, so that reading a few numbers (a scale, a shape) waits for
 * nothing. Without memory there is none. */
static void remember(struct ql_ctx *ctx, struct ql_storage *s, const void *bytes)
{
	struct ql_remote *r = s->remote;

	if (s->bytes > REMEMBERED || r->mirror)
		return;
	r->mirror = ql_storage_new(ctx, &ql_device_cpu, s->bytes);
	if (!r->mirror)
		return;
	memcpy(r->mirror->data, bytes, s->bytes);
	r->mirrored = s->version;
}

/* Gives a copy on the device of a tensor of the host. */
static enum ql_status upload(
	struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_device *device, struct ql_tensor **out)
{
	struct ql_tensor *dense;
	const void *from = NULL;
	bool ready = ql_tensor_is_contiguous(t) && !ql_is_closed(t);
	enum ql_status status = QL_OK;

	*out = NULL;
	if (ready)
		dense = ql_tensor_keep(t);
	else
		status = ql_tensor_cast(ctx, t, t->dtype, &dense);
	if (!status)
		status = ql_tensor_new_on(ctx, device, t->dtype, t->rank, t->shape, out);
	if (!status)
		from = (const char *)dense->storage->data + offset_bytes(dense);
	if (!status)
		status = device->write(device, (*out)->storage->remote->at, from, dense_bytes(dense));
	if (!status && dense_bytes(dense) == (*out)->storage->bytes)
		remember(ctx, (*out)->storage, from);
	ql_tensor_release(ctx, dense);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_tensor_to(
	struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_device *device, struct ql_tensor **out)
{
	struct ql_tensor *host = NULL;
	enum ql_status status;

	if (t->storage->device == device)
		return ql_tensor_alias(ctx, t, out);
	*out = NULL;
	status = ql_is_remote(t) ? download(ctx, t, &host) : ql_tensor_alias(ctx, t, &host);
	if (!status && device->remote)
		status = upload(ctx, host, device, out);
	else if (!status)
		*out = ql_tensor_keep(host);
	ql_tensor_release(ctx, host);
	if (!status && t->q) {
		ql_qparams_release(ctx, (*out)->q);
		status = ql_qparams_to(ctx, t->q, device, &(*out)->q);
	}
	if (!status && t->q && !device->remote)
		status = ql_ragged_pack(ctx, *out);
	if (!status)
		(*out)->origin = t->origin;
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* ---- kernels of the device ---- */

/* What is queued next reads `from` (NULL: nothing on a device) and writes into the remote `to`. */
static void note(const struct ql_tensor *to, const struct ql_tensor *from)
{
	struct ql_ctx *ctx = to->storage->device->ctx;

	if (!ctx->recording)
		return;
	if (from)
		ql_recording_note(ctx, from, false);
	ql_recording_note(ctx, to, true);
}

static const char NO_KERNEL[] = "the device has no kernel of the op";

/* Runs the kernel of that name with one operand into `out`, if there is one, else *why says why not. */
static enum ql_status run_kernel(const struct ql_op *op, struct ql_tensor *in, struct ql_tensor *out, const char **why)
{
	const struct ql_device *d = out->storage->device;
	struct ql_call call = {.op = op, .in = &in, .n_in = 1, .device = d, .n_out = 1};
	const void *plan = NULL;

	*why = NO_KERNEL;
	if (!d->has(d, op->doc.name))
		return QL_OK;
	ql_result_set(&call, 0, out->dtype, out->rank, out->shape);
	call.out[0] = out;
	plan = d->find(d, &call);
	*why = plan ? NULL : call.reason;
	if (!plan)
		return QL_OK;
	out->storage->version++;
	note(out, in);
	return d->run(d, &call, plan);
}

enum ql_status ql_remote_note(struct ql_ctx *ctx, const char *op, const struct ql_device *d, const char *why)
{
	enum ql_status status = ql_device_fallback(ctx, op, d, why);

	if (!status)
		ql_ledger_count(ctx, op, "host", ctx->kernels->simd->name, why, 0);
	return status;
}

static const struct ql_op copy_op = {.doc = {.name = "copy"}};
static const struct ql_op decode_op = {.doc = {.name = "dequantize"}};
static const struct ql_op encode_op = {.doc = {.name = "encode"}};

/* ---- copying ---- */

/* Copies a tensor of the host into the remote dst. */
static enum ql_status copy_up(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	struct ql_tensor *dense = NULL, view = *dst;
	struct ql_storage *host;
	enum ql_status status;

	if (is_one_piece(dst)) {
		status = ql_tensor_cast(ctx, src, dst->dtype, &dense);
		note(dst, NULL);
		if (!status)
			status = dst->storage->device->write(
				dst->storage->device, address(dst), dense->storage->data, dense_bytes(dense));
		ql_tensor_release(ctx, dense);
		dst->storage->version++;
		return status;
	}
	status = mirror_of(ctx, dst->storage, &host);
	if (status)
		return status;
	view.storage = host;
	status = ql_tensor_copy(ctx, &view, src);
	if (status)
		ql_storage_forget(dst->storage);
	return status ? status : ql_storage_return(ctx, dst->storage);
}

/* Whether all elements are one in the host's memory. */
static bool is_number(const struct ql_tensor *t)
{
	for (int d = 0; d < t->rank; d++)
		if (t->shape[d] > 1 && t->stride[d] != 0)
			return false;
	return !ql_is_remote(t) && !ql_is_closed(t);
}

enum ql_status ql_remote_copy(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	struct ql_tensor plain = *src, *host;
	const char *why = NULL;
	enum ql_status status;

	if (ql_tensor_nelem(dst) == 0)
		return QL_OK;
	if (dst->storage->device == src->storage->device && dst->dtype == src->dtype && is_one_piece(dst) &&
		ql_tensor_is_contiguous(src)) {
		dst->storage->version++;
		note(dst, src);
		return dst->storage->device->copy(dst->storage->device, address(dst), address(src), dense_bytes(dst));
	}
	plain.q = NULL; /* the stored numbers */
	plain.node = NULL;
	if (dst->storage->device == src->storage->device || is_number(src)) {
		struct ql_tensor to = *dst, from = plain;

		to.q = NULL;
		from.rank = is_number(src) ? 0 : src->rank; /* a number travels with the call */
		status = run_kernel(&copy_op, &from, &to, &why);
		if (!status && why)
			status = ql_remote_note(ctx, "copy", dst->storage->device, why);
		if (status || !why)
			return status;
	}
	if (!ql_is_remote(src))
		return copy_up(ctx, dst, &plain);
	status = ql_tensor_host(ctx, &plain, &host);
	if (!status)
		status = ql_is_remote(dst) ? copy_up(ctx, dst, host) : ql_tensor_copy(ctx, dst, host);
	ql_tensor_release(ctx, host);
	return status;
}

enum ql_status ql_remote_put(struct ql_ctx *ctx, struct ql_tensor *block, size_t offset, const struct ql_tensor *t)
{
	struct ql_storage *to = block->storage;

	(void)ctx;
	to->version++;
	note(block, t);
	return to->device->copy(to->device, (char *)to->remote->at + offset, t->storage->remote->at, t->storage->bytes);
}

/* ---- codes ---- */

enum ql_status ql_remote_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_tensor codes = *t, *host = NULL, *real = NULL;
	enum ql_status status;
	const char *why = NULL;

	codes.node = NULL;
	status = ql_tensor_new_on(ctx, t->storage->device, QL_float32, t->rank, t->shape, out);
	if (!status)
		status = run_kernel(&decode_op, &codes, *out, &why);
	if (!status && !why)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	if (!status)
		status = ql_remote_note(ctx, "dequantize", t->storage->device, why);
	if (status)
		return status;
	status = ql_tensor_host(ctx, &codes, &host);
	if (!status)
		status = ql_decode(ctx, host, &real);
	if (!status)
		status = ql_tensor_to(ctx, real, t->storage->device, out);
	ql_tensor_release(ctx, host);
	ql_tensor_release(ctx, real);
	return status;
}

enum ql_status ql_remote_encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	ql_encode_fn *encode, int64_t *nan, int64_t *inf)
{
	struct ql_tensor plain = *x, *real = NULL, *codes = NULL;
	enum ql_status status = QL_OK;
	const char *why = "rounding at random, or counts of what is not finite";

	plain.node = NULL;
	if (x->storage->device == t->storage->device && !nan && !inf && encode == ql_encode) {
		status = run_kernel(&encode_op, &plain, t, &why);
		if (status || !why)
			return status;
	}
	if (ql_is_remote(x))
		status = ql_remote_note(ctx, "encode", x->storage->device, why);
	if (!status)
		status = ql_tensor_host(ctx, &plain, &real);
	if (!status && !ql_is_remote(t))
		status = encode(ctx, real, t, nan, inf);
	else if (!status)
		status = ql_tensor_new(ctx, t->dtype, t->rank, t->shape, &codes);
	if (!status && codes)
		status = move_params(ctx, t->q, &ql_device_cpu, to_host, &codes->q);
	if (!status && codes)
		status = encode(ctx, real, codes, nan, inf);
	if (!status && codes)
		status = ql_remote_copy(ctx, t, codes);
	ql_tensor_release(ctx, real);
	ql_tensor_release(ctx, codes);
	return status;
}
