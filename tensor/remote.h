/* SPDX-License-Identifier: MIT
 * Tensors whose elements are in the memory of a device that the host cannot read: moving them, and copies of their bytes
 * in the host's memory (mirrors), which are kept until the bytes are written.
 */
#ifndef QUOLL_TENSOR_REMOTE_H
#define QUOLL_TENSOR_REMOTE_H

#include "tensor/tensor.h"

static inline bool ql_is_remote(const struct ql_tensor *t)
{
	return t->storage->remote;
}

/* The device that owns the elements. */
static inline const struct ql_device *ql_tensor_device(const struct ql_tensor *t)
{
	return t->storage->device;
}

/* The bytes in the host's memory for a few elements; NULL if they cannot be read: ctx->unread then says
 * why, with which the next op fails. */
const void *ql_storage_bytes(const struct ql_storage *s);
/* Fails, once, if bytes that ql_storage_bytes was asked for since the last call could not be read. */
enum ql_status ql_check_read(struct ql_ctx *ctx);

/* Gives t as a tensor of the host with the same strides: t itself, or a header of its mirror whose quant params are on the
 * host, too. It must not be written to, and is valid until t is written. The header has t's tape node. */
enum ql_status ql_tensor_host(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out);
/* Gives t on the device: an alias when it is there, else a contiguous copy with quant params on that device. */
enum ql_status ql_tensor_to(
	struct ql_ctx *ctx, struct ql_tensor *t, const struct ql_device *device, struct ql_tensor **out);
/* Gives params whose scales, zero points and shifts are on the device: q itself if they are. Codebooks and bits per
 * channel are always in the host's memory. */
enum ql_status ql_qparams_to(
	struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device, struct ql_qparams **out);
/* The same for numbers that the caller has just made and never changes: copied once, as long as they are used. */
enum ql_status ql_qparams_given(
	struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device, struct ql_qparams **out);
/* Releases what that keeps, before devices are closed. */
void ql_given_free(struct ql_ctx *ctx);

/* Adds a row of the ledger for what the host does with elements of a device, after gpu.fallback. */
enum ql_status ql_remote_note(struct ql_ctx *ctx, const char *op, const struct ql_device *d, const char *why);

/* ql_tensor_copy where one of the storages or both are remote; they are not the same. */
enum ql_status ql_remote_copy(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src);
/* ql_decode of a remote tensor; the result is on its device. */
enum ql_status ql_remote_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out);
/* ql_encode where x or t is remote; `encode` is called with tensors of the host. */
typedef enum ql_status ql_encode_fn(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf);
enum ql_status ql_remote_encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	ql_encode_fn *encode, int64_t *nan, int64_t *inf);

/* Copies all bytes of t's storage into that of `block`, on the same device, from byte `offset` on. */
enum ql_status ql_remote_put(struct ql_ctx *ctx, struct ql_tensor *block, size_t offset, const struct ql_tensor *t);
/* Drops what a failed op has written into the mirror: the bytes of the device hold. */
static inline void ql_storage_forget(struct ql_storage *s)
{
	if (s->remote)
		s->remote->mirrored = s->version - 1;
}

/* Copies the bytes of a mirror that was written to back to its storage. */
enum ql_status ql_storage_return(struct ql_ctx *ctx, struct ql_storage *s);

#endif
