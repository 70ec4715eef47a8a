/* SPDX-License-Identifier: MIT
 * Faults that kernels note come out at the next wait with the words of the CPU: a device whose kernels only note them.
 */
#include "gpu/device.h"
#include "tensor/base.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/abi.h"
#include "tensor/op.h"
#include "tensor/remote.h"

static struct ql_gpu_fault noted;
static int questions;

static int32_t open_device(int32_t index, struct ql_gpu_device **out)
{
	*out = NULL;
	return index ? QL_GPU_FAILED : QL_GPU_OK;
}
static void close_device(struct ql_gpu_device *d)
{
	(void)d;
}
static void last_error(struct ql_gpu_device *d, char *text, size_t size)
{
	(void)d;
	snprintf(text, size, "failed");
}
static int32_t alloc_bytes(struct ql_gpu_stream *s, uint64_t bytes, void **at)
{
	(void)s;
	*at = calloc(1, bytes);
	return *at ? QL_GPU_OK : QL_GPU_MEMORY;
}
static int32_t free_bytes(struct ql_gpu_stream *s, void *at)
{
	(void)s;
	free(at);
	return QL_GPU_OK;
}
static int32_t copy(struct ql_gpu_stream *s, void *to, const void *from, uint64_t bytes)
{
	(void)s;
	memcpy(to, from, bytes);
	return QL_GPU_OK;
}
static int32_t fill(struct ql_gpu_stream *s, void *at, uint8_t value, uint64_t bytes)
{
	(void)s;
	memset(at, value, bytes);
	return QL_GPU_OK;
}
static int32_t stream_open(struct ql_gpu_device *d, struct ql_gpu_stream **out)
{
	(void)d;
	*out = NULL;
	return QL_GPU_OK;
}
static void stream_close(struct ql_gpu_stream *s)
{
	(void)s;
}
static int32_t idle(struct ql_gpu_stream *s)
{
	(void)s;
	return QL_GPU_OK;
}
static int32_t op_find(const char *name)
{
	return strcmp(name, "embedding") && strcmp(name, "neg") ? -1 : 0;
}
static int32_t plan(struct ql_gpu_device *d, int32_t op, const struct ql_gpu_call *call, struct ql_gpu_plan *out)
{
	(void)d, (void)op;
	out->name = "noting";
	out->faults = !strcmp(call->op, "embedding");
	return QL_GPU_OK;
}
/* Notes the first id that is out of range. */
static int32_t run(struct ql_gpu_stream *s, const struct ql_gpu_call *call, const struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *ids = &call->in[call->n_in - 1];
	const int64_t *id = ids->at;

	(void)s;
	for (int64_t i = 0; p->faults && i < ids->shape[0] * ids->shape[1]; i++)
		if (!noted.kind && (id[i] < 1 || id[i] > call->in[0].shape[0]))
			noted = (struct ql_gpu_fault){call->serial, QL_GPU_FAULT_INDEX, i, id[i], call->in[0].shape[0]};
	return QL_GPU_OK;
}
static int32_t fault(struct ql_gpu_stream *s, struct ql_gpu_fault *out)
{
	(void)s;
	questions++;
	*out = noted;
	noted = (struct ql_gpu_fault){0};
	return QL_GPU_OK;
}

static const struct ql_gpu_vtable table = {.size = sizeof(table),
	.abi = QL_GPU_ABI,
	.name = "noting",
	.open = open_device,
	.close = close_device,
	.last_error = last_error,
	.alloc = alloc_bytes,
	.free = free_bytes,
	.to_device = copy,
	.to_host = copy,
	.copy = copy,
	.fill = fill,
	.stream_open = stream_open,
	.stream_close = stream_close,
	.stream_sync = idle,
	.stream_query = idle,
	.op_find = op_find,
	.plan = plan,
	.run = run,
	.fault = fault};

static struct ql_ctx *ctx;
static const struct ql_device *device;

static struct ql_tensor *there(unsigned dtype, int rank, const int64_t *shape, const void *data)
{
	struct ql_tensor *host = NULL, *out = NULL;
	size_t bytes = (size_t)ql_dtypes[dtype].bits / 8;

	for (int d = 0; d < rank; d++)
		bytes *= (size_t)shape[d];
	if (!CHECK(!ql_tensor_new(ctx, dtype, rank, shape, &host), "%s", ctx->err))
		exit(check_end());
	memcpy(ql_tensor_data(host), data, bytes);
	CHECK(!ql_tensor_to(ctx, host, device, &out), "%s", ctx->err);
	ql_tensor_release(ctx, host);
	return out;
}

static struct ql_tensor *run_op(const char *name, struct ql_tensor *a, struct ql_tensor *b)
{
	struct ql_tensor *out = NULL;

	CHECK(!ql_op_run(ctx, ql_op_by_name(ql_ops, name), a, b, &out), "%s: %s", name, ctx->err);
	return out;
}

static const char words[] = "embedding: ids: wanted 1 to 3, the rows of the table, got 9 at position (2, 1)";

static void at_wait(struct ql_tensor *table_of, struct ql_tensor *ids)
{
	struct ql_tensor *y = run_op("embedding", table_of, ids), *z = run_op("neg", y, NULL), *host = NULL;

	CASE("a wait says it once");
	CHECK(device->sync(device) && !strcmp(ctx->err, words), "%s", ctx->err);
	CHECK(!device->sync(device) && questions == 1, "%d questions", questions);
	CASE("a copy to the host says it");
	ql_tensor_release(ctx, y);
	y = run_op("embedding", table_of, ids);
	CHECK(ql_tensor_host(ctx, z, &host) && !strcmp(ctx->err, words), "%s", ctx->err);
	CHECK(!ql_tensor_host(ctx, z, &host), "%s", ctx->err);
	ql_tensor_release(ctx, y);
	ql_tensor_release(ctx, z);
	ql_tensor_release(ctx, host);
}

/* Getters have no status. */
static void at_next_op(struct ql_tensor *table_of, struct ql_tensor *ids)
{
	const int64_t first[QL_MAX_RANK] = {0};
	struct ql_tensor *y = run_op("embedding", table_of, ids), *z = NULL;
	double value = ql_tensor_get_f64(y, first);

	CASE("after a getter the next op says it");
	CHECK(value != value, "%g", value);
	CHECK(ql_op_run(ctx, ql_op_by_name(ql_ops, "neg"), y, NULL, &z) && !strcmp(ctx->err, words), "%s", ctx->err);
	z = run_op("neg", y, NULL);
	ql_tensor_release(ctx, y);
	ql_tensor_release(ctx, z);
}

int main(void)
{
	const int64_t id[] = {1, 2, 9, 3};
	struct ql_tensor *rows, *ids;

	ctx = ql_ctx_new(1);
	if (!CHECK(ctx && !ql_gpu_open(ctx, &table, 0, "noting", &device), "open"))
		return check_end();
	rows = there(QL_float32, 2, (const int64_t[]){3, 2}, (const float[6]){1, 2, 3, 4, 5, 6});
	ids = there(QL_int64, 2, (const int64_t[]){2, 2}, id);
	at_wait(rows, ids);
	at_next_op(rows, ids);
	ql_tensor_release(ctx, rows);
	ql_tensor_release(ctx, ids);
	ql_ctx_free(ctx);
	return check_end();
}
