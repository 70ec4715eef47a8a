/* SPDX-License-Identifier: MIT
 * Observers of many tensors: batches are added to a histogram per scale.
 */
#include "quant/ranges/observer.h"

#include <math.h>
#include <string.h>

#include "quant/ranges/observe.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/view.h"
#include "tensor/remote.h"

enum ql_status ql_observer_new(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_observer **out)
{
	struct ql_observer *o;
	char text[QL_SPEC_TEXT];

	*out = NULL;
	if (!spec->scheme)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "observer: wanted a spec with codes, got %s", ql_dtype_name(spec->dtype));
	if (spec->block)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"observer: block: wanted none, because blocks differ from tensor to tensor, got %s",
			ql_spec_text(spec, text));
	if (spec->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"observer: scale: wanted none, because the observer is to find it, got one; q:spec() is "
			"the spec of a tensor without its numbers");
	o = ql_alloc_zeroed(ctx, sizeof(*o));
	if (!o)
		return QL_ERR_MEMORY;
	o->spec = *spec;
	o->ruler = ql_ruler_of(spec->bins);
	*out = o;
	return QL_OK;
}

void ql_observer_reset(struct ql_ctx *ctx, struct ql_observer *o)
{
	if (o->seen) {
		ql_free(ctx, o->seen->histogram.weight);
		ql_free(ctx, o->seen->all.count);
		ql_free(ctx, o->seen->kept);
	}
	ql_free(ctx, o->seen);
	ql_observer_leave(ctx, o);
	o->seen = NULL;
	o->scales = o->batches = o->warned = 0;
}

void ql_observer_free(struct ql_ctx *ctx, struct ql_observer *o)
{
	if (!o)
		return;
	ql_observer_reset(ctx, o);
	ql_free(ctx, o);
}

/* Allocates bins of magnitudes and stored values for all scales, for kinds that need them. */
static enum ql_status make_bins(struct ql_ctx *ctx, struct ql_observer *o, int64_t scales)
{
	int fine = scales == 1 ? QL_EVEN_FINE : QL_EVEN_EACH;
	double *count;
	float *kept;

	if (!o->spec.observer->even || scales == 0)
		return QL_OK;
	o->room = ql_max64(2 * o->spec.bins, QL_EVEN_KEPT / scales / 2 * 2);
	count = ql_alloc_array_zeroed(ctx, ql_mul64(scales, fine), sizeof(*count));
	kept = count ? ql_alloc_array(ctx, ql_mul64(scales, o->room), sizeof(*kept)) : NULL;
	if (!kept) {
		ql_free(ctx, count);
		return QL_ERR_MEMORY;
	}
	for (int64_t s = 0; s < scales; s++) {
		o->seen[s].all = (struct ql_even){.bins = fine, .count = count + s * fine};
		o->seen[s].kept = kept + s * o->room;
		o->seen[s].once = (struct ql_even){.bins = o->spec.bins, .count = (double *)(void *)o->seen[s].kept};
	}
	return QL_OK;
}

/* Allocates all scales; their weights are in one block. */
static enum ql_status make_room(struct ql_ctx *ctx, struct ql_observer *o, int64_t scales)
{
	uint64_t bytes;
	double *weight;
	enum ql_status status = QL_ERR_MEMORY;

	if (!ql_size_mul((uint64_t)scales, ql_histogram_bytes(&o->ruler), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "observer: wanted fewer than %lld scales", (long long)scales);
	o->seen = ql_alloc_array_zeroed(ctx, scales, sizeof(*o->seen));
	weight = o->seen ? ql_alloc_zeroed(ctx, bytes) : NULL;
	for (int64_t s = 0; s < scales && weight; s++)
		o->seen[s] = (struct ql_observed){
			.histogram = {.ruler = o->ruler, .weight = weight + s * 2 * o->ruler.cells}};
	if (weight)
		status = make_bins(ctx, o, scales);
	if (!status) {
		o->scales = scales;
		return QL_OK;
	}
	ql_free(ctx, weight);
	ql_free(ctx, o->seen);
	o->seen = NULL;
	return status;
}

static enum ql_status fit_to(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_tensor *x, struct ql_grain *g)
{
	int axis = -1;
	enum ql_status status = o->spec.axis ? ql_axis(ctx, "observer: axis", o->spec.axis, x->rank, &axis) : QL_OK;

	if (status)
		return status;
	*g = ql_grain_of(x->rank, x->shape, QL_float32, axis, -1, 0);
	if (o->spec.each_bits && ql_tensor_nelem(o->spec.each_bits) != g->scales)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"observer: bits: wanted a number for each of the %lld channels of axis %d, got %lld",
			(long long)g->scales, o->spec.axis, (long long)ql_tensor_nelem(o->spec.each_bits));
	if (o->scales && o->scales != g->scales)
		return ql_fail(ctx, QL_ERR_SHAPE, "observer: wanted %lld on axis %d as in the batches before, got %lld",
			(long long)o->scales, o->spec.axis, (long long)g->scales);
	status = ql_observe_check(ctx, g);
	if (!status && !o->scales && g->scales)
		status = make_room(ctx, o, g->scales);
	return status;
}

struct update {
	struct ql_observer *o;
	const struct ql_rule *rule;
	const struct ql_grain *g;
	const float *x;
	struct ql_observe_slot *slots;
	int64_t first;
};

/* Reserves memory for `n` more values. NULL: not all earlier values were stored, or there is no space. `before` is
 * the state before this batch. */
static float *keep(const struct ql_observer *o, struct ql_observed *seen, const struct ql_moments *before, int64_t n)
{
	float *to = seen->kept + seen->n_kept;

	if (before->count + before->nonfinite != seen->n_kept || n > o->room - seen->n_kept)
		return NULL;
	seen->n_kept += n;
	return to;
}

static void count_bins(
	const struct update *u, struct ql_observed *seen, const struct ql_strand *strand, const struct ql_tally *t)
{
	double most = fmax(fabs(t->moments.lo), fabs(t->moments.hi));
	int64_t n = t->moments.count + t->moments.nonfinite;
	const struct ql_moments *before = &seen->histogram.moments;
	float *to;

	if (!u->o->spec.observer->even)
		return;
	to = keep(u->o, seen, before, n);
	if (!to && before->count + before->nonfinite == 0) {
		ql_even_take(&seen->once, most, u->x, strand);
		seen->n_once = n;
	}
	for (int64_t run = 0; run < strand->runs && to; run++)
		for (int64_t i = 0; i < strand->n; i++)
			*to++ = u->x[strand->offset + run * strand->between + i * strand->stride];
	if (t->moments.count > 0)
		ql_even_update(&seen->all, most, u->x, strand);
}

static void update_body(void *arg, int64_t begin, int64_t end)
{
	const struct update *u = arg;

	for (int64_t i = begin; i < end; i++) {
		struct ql_observed *seen = &u->o->seen[u->first + i];
		struct ql_strand strand = ql_strand_of(u->g, u->first + i);
		struct ql_tally *t = &u->slots[i].tally;

		if (u->g->scales > 1) /* else already counted in parts */
			ql_tally_take(t, &u->o->ruler, u->rule->variant, u->x, &strand);
		if (u->o->spec.observer->update)
			u->o->spec.observer->update(u->rule, seen->own, &seen->histogram, t);
		count_bins(u, seen, &strand, t);
		ql_histogram_add(&seen->histogram, t);
	}
}

static enum ql_status update(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_grain *g, const float *x)
{
	struct ql_observe_slot slots[QL_OBSERVE_SLOTS];
	struct ql_rule rule;
	struct update u = {o, &rule, g, x, slots, 0};
	int64_t n = g->rows * g->row;
	enum ql_status status = ql_rule_of(ctx, &o->spec, &rule);

	if (!status)
		status = ql_observe_slots(ctx, &o->ruler, o->spec.bins, QL_OBSERVE_SLOTS, slots);
	if (!status && g->scales == 1)
		status = ql_count_parts(
			ctx, &(struct ql_parts){
				     .ruler = &o->ruler, .x = x, .n = n, .variant = rule.variant, .slots = slots});
	ctx->finishing = true; /* update all scales or none */
	for (; u.first < g->scales && !status; u.first += QL_OBSERVE_SLOTS) {
		int64_t m = ql_min64(QL_OBSERVE_SLOTS, g->scales - u.first);

		status = ql_parallel_for(ctx, m, 1, (n * 2 / g->scales + 60000) * m, update_body, &u);
	}
	ctx->finishing = false;
	o->batches += !status;
	return status;
}

static enum ql_status decoded(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->q)
		return ql_decode(ctx, x, out);
	*out = ql_tensor_keep(x);
	return QL_OK;
}

/* Gives the values as contiguous float32. With one scale per index of the last axis, moves that axis first, so that
 * the values of a scale are contiguous (20 times faster than gathering them). */
static enum ql_status values(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_grain *g, struct ql_tensor **out)
{
	struct ql_tensor *plain = NULL, *turned = NULL;
	int order[QL_MAX_RANK];
	enum ql_status status = decoded(ctx, x, &plain);

	for (int d = 0; d < x->rank; d++)
		order[d] = d == 0 ? x->rank - 1 : d - 1;
	if (!status && g->kind == QL_GRAIN_COLUMN && x->rank > 1) {
		status = ql_view_permute(ctx, "update", plain, order, &turned);
		if (!status)
			*g = ql_grain_of(turned->rank, turned->shape, QL_float32, 0, -1, 0);
	}
	if (!status && !turned && plain->dtype == QL_float32 && ql_tensor_is_contiguous(plain))
		*out = ql_tensor_keep(plain);
	else if (!status)
		status = ql_tensor_cast(ctx, turned ? turned : plain, QL_float32, out);
	ql_tensor_release(ctx, turned);
	ql_tensor_release(ctx, plain);
	return status;
}

static enum ql_status update_from(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	bool fresh = o->scales == 0;
	struct ql_tensor *v = NULL;
	struct ql_grain g;
	enum ql_status status = QL_OK;

	if (!x->q && !ql_dtype_is_float(x->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"update: wanted floats or a quantized tensor, got plain %s; use :to 'float32'",
			ql_dtype_name(x->dtype));
	status = fit_to(ctx, o, x, &g);
	if (!status)
		status = values(ctx, x, &g, &v);
	if (!status && ql_tensor_nelem(x) > 0)
		status = update(ctx, o, &g, ql_tensor_data(v));
	ql_tensor_release(ctx, v);
	ql_scratch_release(ctx, mark);
	if (fresh && (status || ql_tensor_nelem(x) == 0))
		ql_observer_reset(ctx, o);
	return status;
}

/* Adds the values on the device of x; *why is set, and nothing has changed, if only the host can. */
static enum ql_status update_there(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x, const char **why)
{
	bool fresh = o->scales == 0;
	struct ql_grain g;
	enum ql_status status;

	if (!ql_observer_stays(o, x, why))
		return QL_OK;
	status = fit_to(ctx, o, x, &g);
	if (!status)
		status = ql_observer_update_there(ctx, o, x, why);
	if (fresh && (status || *why))
		ql_observer_reset(ctx, o);
	return status;
}

/* Adds the values of a tensor of the host, which then has all. */
static enum ql_status update_here(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x)
{
	enum ql_status status = ql_observer_sync(ctx, o);

	if (status)
		return status;
	ql_observer_leave(ctx, o);
	return update_from(ctx, o, x);
}

enum ql_status ql_observer_update(struct ql_ctx *ctx, struct ql_observer *o, struct ql_tensor *x)
{
	bool is_observed = ql_is_remote(x) && (x->q || ql_dtype_is_float(x->dtype)) && ql_tensor_nelem(x) > 0;
	const char *why = NULL;
	struct ql_tensor *host;
	enum ql_status status = is_observed ? update_there(ctx, o, x, &why) : QL_OK;

	if (status || (is_observed && !why))
		return status;
	if (is_observed)
		status = ql_remote_note(ctx, "observe", x->storage->device, why);
	if (!status)
		status = ql_tensor_host(ctx, x, &host);
	if (status)
		return status;
	status = update_here(ctx, o, host);
	ql_tensor_release(ctx, host);
	return status;
}

static void merge_bins(const struct ql_observer *o, struct ql_observed *to, const struct ql_observed *from)
{
	const struct ql_moments *m = &from->histogram.moments;
	int64_t n = m->count + m->nonfinite;
	float *kept = n == from->n_kept ? keep(o, to, &to->histogram.moments, n) : NULL;

	if (kept) {
		memcpy(kept, from->kept, (size_t)n * sizeof(*kept));
	} else if (n == from->n_once && to->histogram.moments.count + to->histogram.moments.nonfinite == 0) {
		memcpy(to->once.count, from->once.count, (size_t)from->once.bins * sizeof(*to->once.count));
		to->once.top = from->once.top;
		to->n_once = n;
	}
	ql_even_merge(&to->all, &from->all);
}

enum ql_status ql_observer_merge(struct ql_ctx *ctx, struct ql_observer *o, const struct ql_observer *other)
{
	const struct ql_observer_kind *kind = o->spec.observer;
	char a[QL_SPEC_TEXT], b[QL_SPEC_TEXT];
	enum ql_status status;

	if (!ql_spec_equal(&o->spec, &other->spec))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "merge: wanted two observers of one spec, got %s and %s",
			ql_spec_text(&o->spec, a), ql_spec_text(&other->spec, b));
	if (o == other)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "merge: wanted another observer, got the same one twice");
	if (other->scales == 0)
		return QL_OK;
	status = ql_observer_sync(ctx, o);
	if (!status)
		status = ql_observer_sync(ctx, other);
	if (!status)
		status = o->scales ? QL_OK : make_room(ctx, o, other->scales);
	if (status)
		return status;
	if (o->scales != other->scales)
		return ql_fail(ctx, QL_ERR_SHAPE, "merge: wanted as many scales, got %lld and %lld",
			(long long)o->scales, (long long)other->scales);
	ql_observer_leave(ctx, o);
	for (int64_t s = 0; s < o->scales; s++) {
		struct ql_observed *to = &o->seen[s], *from = &other->seen[s];

		if (kind->merge)
			kind->merge(to->own, to->histogram.moments.count, from->own, from->histogram.moments.count);
		if (kind->even)
			merge_bins(o, to, from);
		ql_histogram_merge(&to->histogram, &from->histogram);
	}
	o->batches += other->batches;
	return QL_OK;
}
