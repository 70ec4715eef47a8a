/* SPDX-License-Identifier: MIT
 * Ops on tensors without values.
 */
#include "tensor/meta.h"

#include <pthread.h>
#include <sys/mman.h>

#include "tensor/device_run.h"

/* ---- memory: pages that are only there when they are touched ---- */

/* Parts of one reservation, one behind the other, until none of them is used any more: asking the system for each takes longer than
 * inferring an op. Where it has not so many addresses, or they are used up, each tensor has its own. */
#define REGION ((size_t)64 << 30)
#define PART ((size_t)64)

static struct {
	pthread_mutex_t lock;
	char *at;
	size_t used, parts;
	bool tried;
} region = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void *take_part(size_t bytes)
{
	void *part = NULL;

	pthread_mutex_lock(&region.lock);
	if (!region.tried)
		region.at = map(REGION);
	region.tried = true;
	if (region.at && bytes <= REGION - region.used) {
		part = region.at + region.used;
		region.used += (bytes + PART - 1) / PART * PART;
		region.parts++;
	}
	pthread_mutex_unlock(&region.lock);
	return part;
}

/* False: it is no part of the region. */
static bool give_part(const char *block)
{
	bool is_part;

	pthread_mutex_lock(&region.lock);
	is_part = region.at && block >= region.at && block < region.at + REGION;
	if (is_part && --region.parts == 0) {
		madvise(region.at, region.used, MADV_DONTNEED);
		region.used = 0;
	}
	pthread_mutex_unlock(&region.lock);
	return is_part;
}

static void *reserve(struct ql_ctx *ctx, const struct ql_device *d, size_t bytes)
{
	void *at = bytes <= REGION - PART ? take_part(bytes ? bytes : 1) : NULL;

	(void)d;
	if (!at)
		at = map(bytes ? bytes : 1);
	if (!at)
		ql_fail(ctx, QL_ERR_MEMORY, "out of memory: wanted addresses of %zu bytes, the system has none", bytes);
	return at;
}

static void release(struct ql_ctx *ctx, const struct ql_device *d, void *block, size_t bytes)
{
	(void)ctx;
	(void)d;
	if (!give_part(block))
		munmap(block, bytes ? bytes : 1);
}

const struct ql_device ql_device_meta = {
	.doc = {.name = "meta",
		.usage = "",
		.text = "No place: tensors without values, of which only shapes are computed.",
		.example = ""},
	.alloc = reserve,
	.free = release,
};

/* ---- ops ---- */

/* Replaces a result that was computed by one without values; views of operands are such already. */
static enum ql_status forget(struct ql_ctx *ctx, struct ql_tensor **result)
{
	struct ql_tensor *t = *result, *bare;
	enum ql_status status;

	if (!t || ql_is_meta(t))
		return QL_OK;
	status = ql_tensor_new_on(ctx, &ql_device_meta, t->dtype, t->rank, t->shape, &bare);
	if (status)
		return status;
	bare->q = t->q ? ql_qparams_keep(t->q) : NULL;
	ql_tensor_release(ctx, t);
	*result = bare;
	return QL_OK;
}

static enum ql_status forget_results(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < QL_MAX_OUT && !status; i++)
		status = forget(ctx, &call->out[i]);
	for (int i = 0; call->list && i < call->n_out && !status; i++)
		status = forget(ctx, &call->list[i]);
	return status;
}

/* Infers the results and allocates them; *reason is set if only eval can. */
static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call, const char **reason)
{
	enum ql_status status = call->op->infer(ctx, call);

	for (int i = 0; i < call->n_out && !status; i++)
		status = ql_shape_check(ctx, call->op->doc.name, call->result[i].rank, call->result[i].shape);
	if (!status)
		status = ql_call_allocate(ctx, call, reason);
	if (*reason)
		ql_call_drop(ctx, call);
	return status;
}

enum ql_status ql_meta_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *reason = "there is no rule of results";
	enum ql_status status = QL_OK;

	if (!(call->op->flags & QL_VIEW) && !call->into && ql_call_has_results(call)) {
		reason = NULL;
		status = infer(ctx, call, &reason);
	}
	if (status || !reason)
		return status;
	call->device = &ql_device_cpu;
	status = ql_op_eval(ctx, call);
	return status ? status : forget_results(ctx, call);
}
