/* SPDX-License-Identifier: MIT
 * One loop runs over all tensors of a list in chunks of CHUNK elements.
 */
#include "nn/optimizer.h"

#include <math.h>
#include <string.h>

#include "nn/optimizer_device.h"
#include "nn/optimizer_rules.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define CHUNK 8192
#define PIECE 1024 /* elements of 16 bits converted at a time */
#define LANES 16   /* of a sum of squares */

/* ---- one loop over all tensors ---- */

/* One tensor of the loop; data dense, of one dtype, the states of the wider one. */
struct item {
	char *value;
	const char *gradient;
	char *state[QL_TRAINED_STATES];
	unsigned dtype;
	size_t size;      /* bytes of an element */
	int64_t n, first; /* elements; number of its first chunk */
	struct ql_step_numbers numbers;
	double *sums;           /* for the norm: one per chunk */
	struct ql_tensor *copy; /* the computed copy, to write back */
};

struct loop {
	struct ql_ctx *ctx;
	const struct ql_step_rule *rule;
	struct item *item;
	int items;
	int64_t chunks;
};

static const struct item *item_of(const struct loop *l, int64_t chunk)
{
	int lo = 0, hi = l->items;

	while (hi - lo > 1) {
		int middle = (lo + hi) / 2;

		if (l->item[middle].first <= chunk)
			lo = middle;
		else
			hi = middle;
	}
	return &l->item[lo];
}

/* State k from element i on; NULL: none */
static float *state_f32(const struct item *t, int k, int64_t i)
{
	return t->state[k] ? (float *)t->state[k] + i : NULL;
}

static double *state_f64(const struct item *t, int k, int64_t i)
{
	return t->state[k] ? (double *)t->state[k] + i : NULL;
}

/* Steps 16-bit values in float32, one piece at a time. */
static void step_half(const struct item *t, ql_step_f32_fn *step, int64_t begin, int64_t end)
{
	float value[PIECE], gradient[PIECE];
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];

	for (int64_t i = begin; i < end; i += PIECE) {
		int64_t n = ql_min64(PIECE, end - i);

		d->to_f32(t->value, i, 1, n, value);
		d->to_f32(t->gradient, i, 1, n, gradient);
		step(n, value, gradient, state_f32(t, 0, i), state_f32(t, 1, i), state_f32(t, 2, i), &t->numbers);
		d->from_f32(t->value, i, 1, n, value);
	}
}

static void step_body(void *arg, int64_t begin, int64_t end)
{
	const struct loop *l = arg;
	ql_step_f32_fn *f32 = l->rule->f32[l->ctx->kernels->simd->variant];

	for (int64_t chunk = begin; chunk < end; chunk++) {
		const struct item *t = item_of(l, chunk);
		int64_t i = (chunk - t->first) * CHUNK, stop = ql_min64(i + CHUNK, t->n);

		if (t->dtype == QL_float64)
			l->rule->f64(stop - i, (double *)t->value + i, (const double *)t->gradient + i,
				state_f64(t, 0, i), state_f64(t, 1, i), state_f64(t, 2, i), &t->numbers);
		else if (t->dtype == QL_float32)
			f32(stop - i, (float *)t->value + i, (const float *)t->gradient + i, state_f32(t, 0, i),
				state_f32(t, 1, i), state_f32(t, 2, i), &t->numbers);
		else
			step_half(t, f32, i, stop);
	}
}

/* ---- checks ---- */

static enum ql_status check_state(
	struct ql_ctx *ctx, const char *what, const struct ql_tensor *value, const struct ql_tensor *state)
{
	unsigned dtype = value->dtype == QL_float64 ? QL_float64 : QL_float32;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (state && state->dtype == dtype && !state->q && ql_tensor_same_shape(state, value) &&
		ql_tensor_is_contiguous(state))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: state: wanted a dense %s%s, got %s", what, ql_dtype_name(dtype),
		ql_shape_text(value->rank, value->shape, a), state ? ql_tensor_text(state, b) : "none");
}

/* `states` has a bit for each state that the rule needs. */
static enum ql_status check_trained(struct ql_ctx *ctx, const char *what, const struct ql_trained *t, unsigned states)
{
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	enum ql_status status = QL_OK;

	if (!ql_dtype_is_float(t->value->dtype) || t->value->q || ql_tensor_overlaps_itself(t->value))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: wanted plain float parameters with distinct elements, got %s",
			what, ql_tensor_text(t->value, a));
	if (t->gradient->q || t->gradient->dtype != t->value->dtype || !ql_tensor_same_shape(t->gradient, t->value))
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted gradients like their parameters, got %s for %s", what,
			ql_tensor_text(t->gradient, a), ql_tensor_text(t->value, b));
	for (int i = 0; i < QL_TRAINED_STATES && !status; i++)
		if (states >> i & 1)
			status = check_state(ctx, what, t->value, t->state[i]);
	return status;
}

/* ---- running ---- */

/* Stores tensors to release at the end in `keep`. */
static enum ql_status fill_item(struct ql_ctx *ctx, struct loop *l, const struct ql_trained *t, struct ql_tensor **keep)
{
	struct item *to = &l->item[l->items];
	struct ql_tensor *dense;
	enum ql_status status = ql_tensor_contiguous(ctx, t->gradient, keep);

	if (status)
		return status;
	status = ql_tensor_contiguous(ctx, t->value, &dense);
	if (status)
		return status;
	*to = (struct item){.value = ql_tensor_data(dense),
		.gradient = ql_tensor_data(*keep),
		.dtype = t->value->dtype,
		.size = ql_dtypes[t->value->dtype].bits / 8,
		.n = ql_tensor_nelem(t->value),
		.first = l->chunks};
	to->copy = dense;
	for (int i = 0; i < QL_TRAINED_STATES; i++)
		to->state[i] = t->state[i] ? ql_tensor_data(t->state[i]) : NULL;
	l->chunks += ql_ceil_div(to->n, CHUNK);
	l->items++;
	return QL_OK;
}

/* Writes back the copy of a value that is not contiguous. */
static enum ql_status write_back(struct ql_ctx *ctx, struct ql_tensor *value, struct ql_tensor *dense)
{
	value->storage->version++;
	return dense == value ? QL_OK : ql_tensor_copy(ctx, value, dense);
}

static enum ql_status run(struct ql_ctx *ctx, struct loop *l)
{
	double work = (double)l->chunks * CHUNK / 16 * l->rule->ns_per_16;

	return ql_parallel_for(ctx, l->chunks, 1, work < 1e18 ? (int64_t)work : INT64_MAX, step_body, l);
}

/* numbers[i] belongs to tensor i; tensors of the host. */
static enum ql_status apply_here(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_step_rule *rule,
	const struct ql_step_numbers *numbers)
{
	struct ql_tensor **keep = ql_scratch_array(ctx, n, sizeof(*keep));
	struct loop l = {.ctx = ctx, .rule = rule, .item = ql_scratch_array(ctx, n, sizeof(*l.item))};
	enum ql_status status = keep && l.item ? QL_OK : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		keep[i] = NULL;
		status = fill_item(ctx, &l, &list[i], &keep[i]);
		if (status)
			ql_tensor_release(ctx, keep[i]);
		else
			l.item[i].numbers = numbers[i];
	}
	ctx->finishing = true; /* all or nothing */
	if (!status)
		status = run(ctx, &l);
	for (int i = 0; i < l.items; i++) {
		if (!status)
			status = write_back(ctx, list[i].value, l.item[i].copy);
		for (int s = 0; s < QL_TRAINED_STATES; s++)
			if (list[i].state[s])
				list[i].state[s]->storage->version++;
	}
	ctx->finishing = false;
	for (int i = 0; i < l.items; i++) {
		ql_tensor_release(ctx, keep[i]);
		ql_tensor_release(ctx, l.item[i].copy);
	}
	return status;
}

/* ---- steps as ops, which devices have kernels for ---- */

/* Operands: for each tensor value and gradient (of clip only the gradient), then the states. They are written; there are no
 * results. */
static enum ql_status step_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	call->n_out = 0;
	return QL_OK;
}

static enum ql_status step_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *numbers = ql_call_attr(call, "numbers");
	int n = numbers->numbers.n / QL_STEP_NUMBERS, each = call->n_in / n;
	struct ql_trained *list = ql_scratch_array(ctx, n, sizeof(*list));
	struct ql_step_numbers *k = ql_scratch_array(ctx, n, sizeof(*k));

	if (!list || !k)
		return QL_ERR_MEMORY;
	memcpy(k, numbers->numbers.at, ql_size_array(n, sizeof(*k)));
	for (int i = 0; i < n; i++) {
		struct ql_tensor **in = call->in + (size_t)i * (size_t)each; /* size: below n_in */

		list[i] = (struct ql_trained){.value = in[0],
			.gradient = in[each > 1],
			.state = {each > 2 ? in[2] : NULL, each > 3 ? in[3] : NULL}};
	}
	call->kernel = ctx->kernels->simd->name;
	return apply_here(ctx, n, list, call->op->impl, k);
}

static const struct ql_attr step_attrs[] = {
	{"numbers", QL_ATTR_NUMBERS, QL_REQUIRED, NULL, "struct ql_step_numbers, for each tensor"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

#define STEP_OP(step, rule) \
	{ \
		.doc = {.name = step, .attrs = step_attrs}, .flags = QL_NATIVE, .infer = step_infer, \
		.eval = step_eval, .impl = &(rule) \
	}
static const struct ql_op sgd_op = STEP_OP("sgd_step", ql_step_sgd), adam_op = STEP_OP("adam_step", ql_step_adam),
			  clip_op = STEP_OP("gradient_clip", ql_step_clip);

/* numbers[i] belongs to tensor i. */
static enum ql_status apply(struct ql_ctx *ctx, const char *what, const struct ql_op *op, int n,
	struct ql_trained *list, const struct ql_step_numbers *numbers)
{
	bool remote;
	enum ql_status status = ql_optimizer_place(ctx, what, n, list, &remote);

	if (status || !remote)
		return status ? status : apply_here(ctx, n, list, op->impl, numbers);
	return ql_optimizer_step_on(ctx, op, n, list, &numbers->scale, QL_STEP_NUMBERS);
}

static struct ql_step_numbers numbers_of(const struct ql_clip *clip, double lr, double decay)
{
	return (struct ql_step_numbers){.scale = clip->scale,
		.limit = clip->limit > 0 ? clip->limit : INFINITY,
		.lr = lr,
		.decay = decay,
		.shrink = 1};
}

/* Checks all arguments before writing. */
static enum ql_status check_all(
	struct ql_ctx *ctx, const char *what, int n, const struct ql_trained *list, unsigned states)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < n && !status; i++)
		status = check_trained(ctx, what, &list[i], states);
	return status;
}

enum ql_status ql_sgd_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_sgd *options)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_step_numbers *numbers = ql_scratch_array(ctx, n, sizeof(*numbers));
	enum ql_status status = numbers ? check_all(ctx, "sgd", n, list, options->momentum != 0) : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		numbers[i] = numbers_of(&options->clip, options->lr, options->decay);
		numbers[i].momentum = options->momentum;
		numbers[i].nesterov = options->nesterov ? 1 : 0;
	}
	if (!status)
		status = apply(ctx, "sgd", &sgd_op, n, list, numbers);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_adam_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_adam *o)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_step_numbers *numbers = ql_scratch_array(ctx, n, sizeof(*numbers));
	const char *what = o->decoupled ? "adamw" : "adam";
	enum ql_status status = numbers ? check_all(ctx, what, n, list, 3) : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		double t = (double)list[i].step;

		numbers[i] = numbers_of(&o->clip, o->lr / (1 - pow(o->beta1, t)), o->decoupled ? 0 : o->decay);
		numbers[i].keep1 = 1 - o->beta1;
		numbers[i].momentum = o->beta2;
		numbers[i].keep2 = 1 - o->beta2;
		numbers[i].root = sqrt(1 - pow(o->beta2, t));
		numbers[i].eps = o->eps;
		numbers[i].shrink = o->decoupled ? 1 - o->lr * o->decay : 1;
	}
	if (!status)
		status = apply(ctx, what, &adam_op, n, list, numbers);
	ql_scratch_release(ctx, mark);
	return status;
}

/* A rule without a kernel of devices. */
static enum ql_status apply_on_host(struct ql_ctx *ctx, const char *what, const struct ql_step_rule *rule, int n,
	struct ql_trained *list, const struct ql_step_numbers *numbers)
{
	struct ql_trained *host;
	bool remote;
	enum ql_status status = ql_optimizer_place(ctx, what, n, list, &remote);

	if (status || !remote)
		return status ? status : apply_here(ctx, n, list, rule, numbers);
	status = ql_optimizer_fetch(ctx, what, n, list, &host);
	if (!status)
		status = apply_here(ctx, n, host, rule, numbers);
	return ql_optimizer_return(ctx, n, list, host, status);
}

enum ql_status ql_rmsprop_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_rmsprop *o)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_step_numbers *numbers = ql_scratch_array(ctx, n, sizeof(*numbers));
	unsigned states = 1u | (o->momentum != 0 ? 2u : 0) | (o->centered ? 4u : 0);
	enum ql_status status = numbers ? check_all(ctx, "rmsprop", n, list, states) : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		numbers[i] = numbers_of(&o->clip, o->lr, o->decay);
		numbers[i].root = o->alpha;
		numbers[i].keep1 = 1 - o->alpha;
		numbers[i].momentum = o->momentum;
		numbers[i].eps = o->eps;
	}
	if (!status)
		status = apply_on_host(ctx, "rmsprop", &ql_step_rmsprop, n, list, numbers);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_adagrad_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_adagrad *o)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_step_numbers *numbers = ql_scratch_array(ctx, n, sizeof(*numbers));
	enum ql_status status = numbers ? check_all(ctx, "adagrad", n, list, 1) : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		numbers[i] = numbers_of(&o->clip, o->lr / (1 + (double)(list[i].step - 1) * o->lr_decay), o->decay);
		numbers[i].eps = o->eps;
	}
	if (!status)
		status = apply_on_host(ctx, "adagrad", &ql_step_adagrad, n, list, numbers);
	ql_scratch_release(ctx, mark);
	return status;
}

/* ---- gradients ---- */

enum ql_status ql_gradient_clip(struct ql_ctx *ctx, int n, struct ql_tensor *const *list, const struct ql_clip *clip)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_step_numbers *numbers = ql_scratch_array(ctx, n, sizeof(*numbers));
	struct ql_trained *trained = ql_scratch_array(ctx, n, sizeof(*trained));
	enum ql_status status = numbers && trained ? QL_OK : QL_ERR_MEMORY;

	for (int i = 0; i < n && !status; i++) {
		trained[i] = (struct ql_trained){.value = list[i], .gradient = list[i]};
		numbers[i] = numbers_of(clip, 0, 0);
	}
	if (!status)
		status = check_all(ctx, "clip", n, trained, 0);
	if (!status)
		status = apply(ctx, "clip", &clip_op, n, trained, numbers);
	ql_scratch_release(ctx, mark);
	return status;
}

/* Squares of float32 are exact in float64; element i goes to lane i mod LANES, lanes are added in order. */
QL_SIMD(double, squares, (int64_t n, const float *restrict x), {
	double lane[LANES] = {0}, sum = 0;
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++)
			lane[l] += (double)x[i + l] * (double)x[i + l];
	for (; i < n; i++)
		lane[i % LANES] += (double)x[i] * (double)x[i];
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
})

static double squares_of(const struct loop *l, const struct item *t, int64_t begin, int64_t end)
{
	float piece[PIECE];
	double sum = 0;

	if (t->dtype == QL_float32)
		return squares[l->ctx->kernels->simd->variant](end - begin, (const float *)t->gradient + begin);
	for (int64_t i = begin; i < end && t->dtype == QL_float64; i++)
		sum += ((const double *)t->gradient)[i] * ((const double *)t->gradient)[i];
	for (int64_t i = begin; i < end && t->dtype != QL_float64; i += PIECE) {
		int64_t n = ql_min64(PIECE, end - i);

		ql_dtypes[t->dtype].to_f32(t->gradient, i, 1, n, piece);
		sum += squares[l->ctx->kernels->simd->variant](n, piece);
	}
	return sum;
}

static void norm_body(void *arg, int64_t begin, int64_t end)
{
	const struct loop *l = arg;

	for (int64_t chunk = begin; chunk < end; chunk++) {
		const struct item *t = item_of(l, chunk);
		int64_t i = (chunk - t->first) * CHUNK;

		t->sums[chunk - t->first] = squares_of(l, t, i, ql_min64(i + CHUNK, t->n));
	}
}

static enum ql_status norm_items(struct ql_ctx *ctx, struct loop *l, int n, struct ql_tensor *const *list)
{
	enum ql_status status;

	for (int i = 0; i < n; i++) {
		struct ql_tensor *dense;

		status = ql_tensor_contiguous(ctx, list[i], &dense);
		if (status)
			return status;
		l->item[l->items] = (struct item){.gradient = ql_tensor_data(dense),
			.dtype = dense->dtype,
			.n = ql_tensor_nelem(dense),
			.first = l->chunks,
			.copy = dense};
		l->chunks += ql_ceil_div(l->item[l->items++].n, CHUNK);
	}
	return QL_OK;
}

/* One sum for each chunk of all tensors, in order. */
static enum ql_status sums_of(struct ql_ctx *ctx, int n, struct ql_tensor *const *list, double *sums)
{
	struct loop l = {.ctx = ctx, .item = ql_scratch_array(ctx, n, sizeof(*l.item))};
	enum ql_status status = l.item ? norm_items(ctx, &l, n, list) : QL_ERR_MEMORY;

	for (int i = 0; i < l.items && !status; i++)
		l.item[i].sums = sums + l.item[i].first;
	if (!status)
		status = ql_parallel_for(ctx, l.chunks, 1, l.chunks * CHUNK / 8, norm_body, &l);
	for (int i = 0; i < l.items; i++)
		ql_tensor_release(ctx, l.item[i].copy);
	return status;
}

static double root_of_all(int64_t n, const double *sums)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += sums[i];
	return sqrt(sum);
}

/* Operands: tensors, then the sums of all chunks; those of these tensors from `first` on are written. */
static enum ql_status squares_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *sums = call->in[call->n_in - 1];

	call->kernel = ctx->kernels->simd->name;
	sums->storage->version++;
	return sums_of(ctx, call->n_in - 1, call->in, (double *)ql_tensor_data(sums) + ql_call_int(call, "first", 0));
}

static enum ql_status norm_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	ql_result_set(call, 0, QL_float64, 0, NULL);
	return QL_OK;
}

static enum ql_status norm_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	call->kernel = ctx->kernels->simd->name;
	*(double *)ql_tensor_data(call->out[0]) =
		root_of_all(ql_tensor_nelem(call->in[0]), ql_tensor_data(call->in[0]));
	return QL_OK;
}

static const struct ql_attr squares_attrs[] = {
	{"first", QL_ATTR_INT, QL_REQUIRED, NULL, "number of the first chunk"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
static const struct ql_op squares_op = {.doc = {.name = "gradient_squares", .attrs = squares_attrs},
				  .flags = QL_NATIVE,
				  .infer = step_infer,
				  .eval = squares_eval},
			  norm_op = {.doc = {.name = "gradient_norm"}, .infer = norm_infer, .eval = norm_eval};

enum ql_status ql_gradient_norm(struct ql_ctx *ctx, int n, struct ql_tensor *const *list, double *norm)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_trained *trained = ql_scratch_array(ctx, n, sizeof(*trained));
	enum ql_status status = trained ? QL_OK : QL_ERR_MEMORY;
	int64_t chunks = 0;
	double *sums = NULL;
	bool remote = false;
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < n && !status; i++) {
		trained[i] = (struct ql_trained){.value = list[i], .gradient = list[i]};
		chunks += ql_ceil_div(ql_tensor_nelem(list[i]), CHUNK);
		if (!ql_dtype_is_float(list[i]->dtype) || list[i]->q)
			status = ql_fail(ctx, QL_ERR_DTYPE, "norm: wanted plain float tensors, got %s",
				ql_tensor_text(list[i], text));
	}
	if (!status)
		status = ql_optimizer_place(ctx, "norm", n, trained, &remote);
	if (!status && remote) {
		status = ql_optimizer_norm_on(ctx, &squares_op, &norm_op, n, list, CHUNK, norm);
	} else if (!status) {
		sums = ql_scratch_array(ctx, chunks, sizeof(*sums));
		status = sums ? sums_of(ctx, n, list, sums) : QL_ERR_MEMORY;
		*norm = status ? 0 : root_of_all(chunks, sums);
	}
	ql_scratch_release(ctx, mark);
	return status;
}
