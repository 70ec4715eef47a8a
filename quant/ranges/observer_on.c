/* SPDX-License-Identifier: MIT
 * Observers whose histogram stays on the device of the tensors that they observe: a kernel adds each tensor to it, and the host
 * reads it when somebody asks. For one scale, and kinds that need nothing else of a batch.
 */
#include "quant/ranges/observer.h"

#include "quant/ranges/observe.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/op.h"
#include "tensor/recording.h"
#include "tensor/remote.h"

#define MOMENTS 8 /* count, others, lo, hi, sum, sumsq, sumabs, low */

static const struct ql_attr attrs[] = {
	{"parts", QL_ATTR_INT, 0, NULL, "parts of the values that are summed apart"},
	{"shift", QL_ATTR_INT, 0, NULL, "of struct ql_ruler"},
	{"per_octave", QL_ATTR_INT, 0, NULL, "of struct ql_ruler"},
	{"octaves", QL_ATTR_INT, 0, NULL, "of the window"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static uint32_t writes(const struct ql_call *call)
{
	(void)call;
	return QL_SAVE(1) | QL_SAVE(2);
}

/* An op in no table, which only devices have (gpu/kernels/observe.cu). */
static const struct ql_op observe = {
	.doc = {.name = "observe", .attrs = attrs}, .arity_min = 3, .arity_max = 3, .writes = writes};

static const char *refusal(const struct ql_observer *o, const struct ql_tensor *x)
{
	const struct ql_device *d = x->storage->device;
	const struct ql_observer_kind *kind = o->spec.observer;

	if (!d->has(d, observe.doc.name))
		return "the device has no kernel of the op";
	if (o->spec.axis || o->spec.each_bits)
		return "an observer of several scales";
	if (kind->update || kind->even)
		return "an observer that needs more than the histogram";
	if (o->scales && !o->there.counts)
		return "an observer that has seen tensors of the host";
	if (o->there.counts && o->there.counts->storage->device != d)
		return "an observer that has seen tensors of another device";
	return NULL;
}

bool ql_observer_stays(const struct ql_observer *o, const struct ql_tensor *x, const char **why)
{
	*why = refusal(o, x);
	return !*why;
}

void ql_observer_leave(struct ql_ctx *ctx, struct ql_observer *o)
{
	ql_tensor_release(ctx, o->there.counts);
	ql_tensor_release(ctx, o->there.moments);
	o->there = (struct ql_observed_there){.counts = NULL};
}

static enum ql_status make_there(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_device *device)
{
	const int64_t cells = ql_mul64(o->ruler.cells, 2), moments = MOMENTS;
	enum ql_status status = QL_OK;

	if (o->there.counts)
		return QL_OK;
	status = ql_tensor_zeros_on(ctx, device, QL_int64, 1, &cells, &o->there.counts);
	if (!status)
		status = ql_tensor_zeros_on(ctx, device, QL_float64, 1, &moments, &o->there.moments);
	if (status)
		ql_observer_leave(ctx, o);
	return status;
}

/* Dense float32 on the device. */
static enum ql_status plain_values(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->q)
		return ql_decode(ctx, x, out);
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x)) {
		*out = ql_tensor_keep(x);
		return QL_OK;
	}
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x, const char **why)
{
	const struct ql_device *d = x->storage->device;
	struct ql_tensor *in[] = {x, o->there.counts, o->there.moments};
	const struct ql_value attr[] = {{.set = true, .i = ql_observe_parts(ql_tensor_nelem(x))},
		{.set = true, .i = o->ruler.shift}, {.set = true, .i = o->ruler.per_octave},
		{.set = true, .i = QL_HISTOGRAM_OCTAVES}};
	struct ql_call call = {.op = &observe, .in = in, .n_in = 3, .attr = attr, .device = d};
	const void *plan = d->find(d, &call);
	enum ql_status status;

	*why = plan ? NULL : call.reason;
	if (!plan)
		return QL_OK;
	if (ctx->recording)
		ql_recording_call(ctx, &call);
	status = d->run(d, &call, plan);
	if (status)
		return status;
	o->there.counts->storage->version++;
	o->there.moments->storage->version++;
	o->there.ahead = true;
	o->batches++;
	ql_ledger_count(ctx, "observe", call.path, call.kernel, NULL, 0);
	return QL_OK;
}

enum ql_status ql_observer_update_there(
	struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x, const char **why)
{
	struct ql_tensor *plain = NULL;
	enum ql_status status = make_there(ctx, o, x->storage->device);

	if (!status)
		status = plain_values(ctx, x, &plain);
	if (!status)
		status = run(ctx, o, plain, why);
	ql_tensor_release(ctx, plain);
	return status;
}

enum ql_status ql_observer_sync(struct ql_ctx *ctx, const struct ql_observer *seen)
{
	struct ql_observer *o = (struct ql_observer *)(uintptr_t)seen; /* what it has seen stays the same */
	struct ql_tensor *counts = NULL, *moments = NULL;
	struct ql_histogram *h;
	enum ql_status status;

	if (!o->there.ahead)
		return QL_OK;
	h = &o->seen[0].histogram;
	status = ql_tensor_host(ctx, o->there.counts, &counts);
	if (!status)
		status = ql_tensor_host(ctx, o->there.moments, &moments);
	if (!status) {
		const int64_t *n = ql_tensor_data(counts);
		const double *m = ql_tensor_data(moments);

		for (int64_t i = 0; i < 2 * (int64_t)o->ruler.cells; i++)
			h->weight[i] = (double)n[i];
		h->moments = (struct ql_moments){.count = (int64_t)m[0],
			.nonfinite = (int64_t)m[1],
			.lo = m[2],
			.hi = m[3],
			.sum = m[4],
			.sumsq = m[5],
			.sumabs = m[6]};
		h->low = (int32_t)m[7];
		o->there.ahead = false;
	}
	ql_tensor_release(ctx, counts);
	ql_tensor_release(ctx, moments);
	return status;
}
