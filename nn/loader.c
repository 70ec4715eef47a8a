/* SPDX-License-Identifier: MIT
 * A pass over a data set. Two slots hold the tensors of the next two batches; the calling thread allocates them
 * (and owns all memory and reference counts), the loader's thread fills their bytes in turn. A batch that is
 * returned frees its slot for the batch after next.
 *
 * The thread pays if filling a batch costs clearly more than waking it (about 50 us): by default it is started for
 * an estimated 100 us per batch and at least three batches. Without it the calling thread fills batches with
 * ql_parallel_for.
 */
#include "nn/loader.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "nn/loader_fill.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/qparams.h"
#include "tensor/closed.h"

#define SLOTS 2
#define PREFETCH_NS 100000
#define TICK_NS 20000000 /* between two polls of the interrupt flag */

struct slot {
	struct ql_tensor *x, *y;
	uint8_t *x_data, *y_data; /* where the thread writes */
	bool ready;
};

struct ql_loader {
	struct ql_ctx *ctx;
	struct ql_tensor *x, *y; /* kept: f borrows their bytes */
	bool x_opened, y_opened; /* ql_closed_open */
	struct ql_filler f;
	int64_t *order;
	float *table;
	int64_t next; /* next batch to return */
	struct slot slot[SLOTS];

	/* shared with the thread, under the lock */
	bool threaded, stop;
	int64_t made; /* batches given to the thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given, filled;
};

/* ---- checks ---- */

static bool is_image(const struct ql_tensor *x)
{
	return x->rank == 4 && x->dtype == QL_uint8;
}

static enum ql_status check_images(struct ql_ctx *ctx, const struct ql_loader_plan *p)
{
	bool augment = p->crop || p->flip || p->cutout;
	char text[QL_SHAPE_TEXT];

	if (!augment && !p->normalize)
		return QL_OK;
	if (p->order != QL_LOADER_SAMPLES || !is_image(p->x))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"loader: %s: wanted images, uint8 (n, channels, height, width), got %s",
			augment ? "augment" : "normalize", ql_tensor_text(p->x, text));
	if (p->x->q && (p->x->q->axis >= 0 || p->x->q->block_axis >= 0 || !ql_qparams_affine(p->x->q)))
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"loader: %s: wanted images with one scale and codes that are multiples of it, got %s",
			augment ? "augment" : "normalize", ql_tensor_text(p->x, text));
	if (p->x->shape[1] > QL_LOADER_CHANNELS)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "loader: wanted images of at most %d channels, got %lld",
			QL_LOADER_CHANNELS, (long long)p->x->shape[1]);
	if (p->crop < 0 || p->crop >= INT32_MAX / 4 || p->cutout < 0 || p->cutout >= INT32_MAX / 4)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"loader: augment: wanted a crop and cutout of 0 or more pixels, got %lld and %lld",
			(long long)p->crop, (long long)p->cutout);
	for (int64_t c = 0; p->normalize && c < p->x->shape[1]; c++)
		if (!(p->deviation[c] > 0) || !(p->mean[c] - p->mean[c] == 0))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"loader: normalize: wanted finite means and std above 0, got %g and %g",
				(double)p->mean[c], (double)p->deviation[c]);
	return QL_OK;
}

static enum ql_status check_samples(struct ql_ctx *ctx, const struct ql_loader_plan *p)
{
	char text[QL_SHAPE_TEXT];

	for (const struct ql_tensor *t = p->x; t; t = t == p->x ? p->y : NULL) {
		if (t->rank < 1 || !ql_tensor_is_contiguous(t) || ql_dtype_is_packed(t->dtype))
			return ql_fail(ctx, QL_ERR_DTYPE,
				"loader: wanted samples along the first axis, whole bytes each, got %s",
				ql_tensor_text(t, text));
		if (t->q && (t->q->axis == 0 || t->q->block_axis >= 0))
			return ql_fail(ctx, QL_ERR_UNSUPPORTED,
				"loader: wanted one scale for all samples, got %s; use :dequantize()",
				ql_tensor_text(t, text));
	}
	if (p->y && p->y->shape[0] != p->x->shape[0])
		return ql_fail(ctx, QL_ERR_SHAPE, "loader: wanted as many targets as samples, got %lld and %lld",
			(long long)p->y->shape[0], (long long)p->x->shape[0]);
	return QL_OK;
}

static enum ql_status check_tokens(struct ql_ctx *ctx, const struct ql_loader_plan *p)
{
	const struct ql_tensor *x = p->x;
	char text[QL_SHAPE_TEXT];

	if (x->rank != 1 || x->q || !ql_dtype_is_integer(x->dtype) || ql_dtype_is_packed(x->dtype) ||
		!ql_tensor_is_contiguous(x))
		return ql_fail(ctx, QL_ERR_DTYPE, "loader: steps: wanted tokens, plain integers (n), got %s",
			ql_tensor_text(x, text));
	if (p->steps < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "loader: steps: wanted 1 or more, got %lld", (long long)p->steps);
	return QL_OK;
}

static int64_t batches_of(const struct ql_loader_plan *p)
{
	int64_t n = p->x->shape[0], steps;

	if (p->order == QL_LOADER_STREAMS) {
		steps = ql_max64(0, n / p->batch - 1);
		return p->drop ? steps / p->steps : ql_ceil_div(steps, p->steps);
	}
	if (p->order == QL_LOADER_WINDOWS)
		n = ql_max64(0, n - 1) / p->steps;
	return p->drop ? n / p->batch : ql_ceil_div(n, p->batch);
}

enum ql_status ql_loader_check(struct ql_ctx *ctx, const struct ql_loader_plan *p, int64_t *batches)
{
	enum ql_status status;

	if (p->batch < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "loader: batch: wanted 1 or more, got %lld", (long long)p->batch);
	status = p->order == QL_LOADER_SAMPLES ? check_samples(ctx, p) : check_tokens(ctx, p);
	if (!status)
		status = check_images(ctx, p);
	if (!status)
		*batches = batches_of(p);
	return status;
}

/* ---- the thread ---- */

static bool stopped(struct ql_loader *l)
{
	bool stop;

	pthread_mutex_lock(&l->lock);
	stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	return stop;
}

/* Row by row, so that closing need not wait long. */
static void fill(struct ql_loader *l, int64_t batch)
{
	struct slot *s = &l->slot[batch % SLOTS];
	int64_t rows = ql_filler_height(&l->f, batch);

	for (int64_t row = 0; row < rows && (row % 32 || !stopped(l)); row++)
		ql_filler_rows(&l->f, batch, row, row + 1, s->x_data, s->y_data);
}

static void *work(void *arg)
{
	struct ql_loader *l = arg;

	for (int64_t batch = 0; batch < l->f.batches; batch++) {
		pthread_mutex_lock(&l->lock);
		while (!l->stop && l->made <= batch)
			pthread_cond_wait(&l->given, &l->lock);
		pthread_mutex_unlock(&l->lock);
		if (stopped(l))
			break;
		fill(l, batch);
		pthread_mutex_lock(&l->lock);
		l->slot[batch % SLOTS].ready = true;
		pthread_cond_signal(&l->filled);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

static void free_lock(struct ql_loader *l)
{
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->given);
	pthread_cond_destroy(&l->filled);
}

/* Blocks signals in the thread: the thread that runs Lua handles them. */
static bool start_thread(struct ql_loader *l)
{
	pthread_condattr_t clock;
	sigset_t all, before;
	bool started;

	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->given, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&l->filled, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	started = pthread_create(&l->thread, NULL, work, l) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!started)
		free_lock(l);
	return started;
}

static enum ql_status await(struct ql_loader *l, struct slot *s)
{
	struct timespec until;
	bool ready;

	pthread_mutex_lock(&l->lock);
	while (!s->ready && !l->ctx->interrupted) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += TICK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&l->filled, &l->lock, &until);
	}
	ready = s->ready;
	s->ready = false;
	pthread_mutex_unlock(&l->lock);
	return ready ? QL_OK : ql_fail(l->ctx, QL_ERR_INTERRUPTED, "interrupted");
}

/* ---- batches ---- */

static enum ql_status make_like(struct ql_loader *l, const struct ql_tensor *t, int64_t batch, struct ql_tensor **out)
{
	unsigned dtype = l->table && t == l->x ? QL_float32 : t->dtype;
	int64_t shape[QL_MAX_RANK];
	enum ql_status status;
	int rank = t->rank;

	memcpy(shape, t->shape, sizeof(shape));
	shape[0] = ql_filler_height(&l->f, batch);
	if (l->f.plan.order != QL_LOADER_SAMPLES) {
		shape[1] = ql_filler_steps(&l->f, batch);
		rank = 2;
	}
	status = ql_tensor_new(l->ctx, dtype, rank, shape, out);
	if (!status && t->q && dtype == t->dtype)
		(*out)->q = ql_qparams_keep(t->q);
	return status;
}

/* Allocates the tensors of a batch in its slot. */
static enum ql_status make(struct ql_loader *l, int64_t batch)
{
	struct slot *s = &l->slot[batch % SLOTS];
	const struct ql_tensor *y = l->f.plan.order == QL_LOADER_SAMPLES ? l->y : l->x;
	enum ql_status status;

	ql_tensor_release(l->ctx, s->x); /* of a failed attempt */
	ql_tensor_release(l->ctx, s->y);
	s->x = s->y = NULL;
	status = make_like(l, l->x, batch, &s->x);
	if (!status && y)
		status = make_like(l, y, batch, &s->y);
	if (status)
		return status;
	s->x_data = ql_tensor_data(s->x);
	s->y_data = s->y ? ql_tensor_data(s->y) : NULL;
	return QL_OK;
}

/* Gives the thread all batches that have a free slot. */
static enum ql_status give(struct ql_loader *l)
{
	enum ql_status status = QL_OK;

	while (l->made < ql_min64(l->next + SLOTS, l->f.batches)) {
		status = make(l, l->made);
		if (status)
			break;
		pthread_mutex_lock(&l->lock);
		l->made++;
		pthread_cond_signal(&l->given);
		pthread_mutex_unlock(&l->lock);
	}
	return status;
}

struct rows {
	struct ql_loader *l;
	int64_t batch;
};

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
	const struct rows *r = arg;
	struct slot *s = &r->l->slot[r->batch % SLOTS];

	ql_filler_rows(&r->l->f, r->batch, begin, end, s->x_data, s->y_data);
}

/* Estimated nanoseconds on one thread, measured on CIFAR-10: 0.1 per byte gathered, 0.4 augmented, 0.7 normalized. */
static int64_t cost(const struct ql_filler *f, int64_t rows)
{
	bool augment = f->plan.crop || f->plan.flip || f->plan.cutout;
	/* size: an estimate of time in floating point, no memory */
	double bytes = (double)f->x_bytes * (f->plan.order == QL_LOADER_SAMPLES ? 1.0 : 2.0 * (double)f->plan.steps);

	return (int64_t)((double)rows * (50 + bytes * (0.1 + (augment ? 0.4 : 0) + (f->table ? 0.7 : 0))));
}

static enum ql_status fill_here(struct ql_loader *l, int64_t batch)
{
	int64_t rows = ql_filler_height(&l->f, batch);
	struct rows r = {l, batch};
	enum ql_status status = make(l, batch);

	return status ? status : ql_parallel_for(l->ctx, rows, 16, cost(&l->f, rows), fill_rows, &r);
}

enum ql_status ql_loader_next(struct ql_loader *l, struct ql_tensor **x, struct ql_tensor **y)
{
	struct slot *s = &l->slot[l->next % SLOTS];
	enum ql_status status;

	*x = *y = NULL;
	if (l->next >= l->f.batches)
		return QL_OK;
	status = l->threaded ? give(l) : fill_here(l, l->next);
	if (!status && l->threaded)
		status = await(l, s);
	if (status)
		return status;
	*x = s->x;
	*y = s->y;
	s->x = s->y = NULL;
	l->next++;
	if (l->threaded)
		give(l); /* the next call tries again and reports out of memory */
	return QL_OK;
}

bool ql_loader_prefetches(const struct ql_loader *l)
{
	return l->threaded;
}

/* ---- opening and closing ---- */

static int64_t row_bytes(const struct ql_tensor *t)
{
	int64_t n = ql_dtypes[t->dtype].bits / 8;

	for (int d = 1; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

static void set_filler(struct ql_loader *l, const struct ql_loader_plan *p, int64_t batches)
{
	struct ql_filler *f = &l->f;

	*f = (struct ql_filler){.plan = *p, .n = p->x->shape[0], .batches = batches};
	f->x = ql_tensor_data(p->x);
	f->x_bytes = row_bytes(p->x);
	f->variant = l->ctx->kernels->simd->variant;
	if (p->y) {
		f->y = ql_tensor_data(p->y);
		f->y_bytes = row_bytes(p->y);
	}
	if (is_image(p->x)) {
		f->channels = p->x->shape[1];
		f->height = p->x->shape[2];
		f->width = p->x->shape[3];
	}
}

/* Cutout writes the code nearest to the mean, if given, so that the square is about 0 after normalization. */
static void set_codes(struct ql_filler *f, float scale, int32_t zero)
{
	f->zero = (uint8_t)zero;
	for (int64_t c = 0; c < f->channels && c < QL_LOADER_CHANNELS; c++) {
		float code = f->plan.normalize ? f->plan.mean[c] / scale + (float)zero + 0.5f : (float)zero;

		f->blank[c] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
	}
}

static enum ql_status prepare(struct ql_loader *l, const struct ql_loader_plan *p)
{
	struct ql_qparams *q = p->x->q;
	float scale = 1;
	int32_t zero = 0;
	uint64_t bytes;

	if (is_image(p->x) && q && q->axis < 0 && q->block_axis < 0 && ql_qparams_affine(q)) {
		scale = (float)ql_tensor_get_f64(q->scale, NULL);
		zero = q->zero_point ? (int32_t)ql_tensor_get_i64(q->zero_point, NULL) : 0;
	}
	set_codes(&l->f, scale, zero);
	if (p->normalize) {
		l->f.table = l->table = ql_alloc_array(l->ctx, l->f.channels, 256 * sizeof(float));
		if (!l->table)
			return QL_ERR_MEMORY;
		ql_filler_table(p, l->f.channels, scale, zero, l->table);
	}
	if (p->shuffle && p->order == QL_LOADER_SAMPLES) {
		if (!ql_size_mul((uint64_t)l->f.n, sizeof(int64_t), &bytes))
			return ql_fail(l->ctx, QL_ERR_OVERFLOW, "loader: too many samples");
		l->f.order = l->order = ql_alloc(l->ctx, (size_t)bytes);
		if (!l->order)
			return QL_ERR_MEMORY;
		ql_filler_shuffle(l->f.variant, p->seed, l->f.n, l->order);
	}
	return QL_OK;
}

/* The thread reads elements of the tensors until the loader is closed. */
static enum ql_status open_data(struct ql_loader *l)
{
	enum ql_status status = ql_closed_open(l->ctx, l->x->storage);

	l->x_opened = !status;
	if (!status && l->y) {
		status = ql_closed_open(l->ctx, l->y->storage);
		l->y_opened = !status;
	}
	return status;
}

static enum ql_status start(struct ql_loader *l)
{
	bool pays = l->f.batches >= 3 && cost(&l->f, ql_filler_height(&l->f, 0)) >= PREFETCH_NS;

	if (l->f.batches == 0 || l->f.plan.prefetch == 0 || (l->f.plan.prefetch < 0 && !pays))
		return QL_OK;
	l->threaded = start_thread(l);
	if (!l->threaded)
		return ql_fail(l->ctx, QL_ERR_MEMORY, "loader: the system gives no thread; use prefetch=false");
	return give(l);
}

enum ql_status ql_loader_open(struct ql_ctx *ctx, const struct ql_loader_plan *plan, struct ql_loader **out)
{
	int64_t batches = 0;
	enum ql_status status = ql_loader_check(ctx, plan, &batches);
	struct ql_loader *l;

	*out = NULL;
	if (status)
		return status;
	l = ql_alloc_zeroed(ctx, sizeof(*l));
	if (!l)
		return QL_ERR_MEMORY;
	l->ctx = ctx;
	l->x = ql_tensor_keep(plan->x);
	l->y = plan->y ? ql_tensor_keep(plan->y) : NULL;
	status = open_data(l);
	if (!status) {
		set_filler(l, plan, batches);
		status = prepare(l, plan);
	}
	if (!status)
		status = start(l);
	if (status) {
		ql_loader_close(l);
		return status;
	}
	*out = l;
	return QL_OK;
}

static void end_thread(struct ql_loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->given);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	free_lock(l);
}

void ql_loader_close(struct ql_loader *l)
{
	struct ql_ctx *ctx;

	if (!l)
		return;
	ctx = l->ctx;
	if (l->threaded)
		end_thread(l);
	for (int i = 0; i < SLOTS; i++) {
		ql_tensor_release(ctx, l->slot[i].x);
		ql_tensor_release(ctx, l->slot[i].y);
	}
	if (l->x_opened)
		ql_closed_close(ctx, l->x->storage);
	if (l->y_opened)
		ql_closed_close(ctx, l->y->storage);
	ql_tensor_release(ctx, l->x);
	ql_tensor_release(ctx, l->y);
	ql_free(ctx, l->order);
	ql_free(ctx, l->table);
	ql_free(ctx, l);
}
