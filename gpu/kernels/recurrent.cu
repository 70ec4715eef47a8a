/* SPDX-License-Identifier: MIT
 * lstm, gru and rnn over whole sequences: one product of x and w_ih for all steps, then a launch for each step, the product
 * of h and w_hh with the cell behind it. The cells are those of nn/ops/lstm.c, gru.c and rnn.c.
 *
 * With states='int8' h is quantized at each step, every sequence by its own largest |h|, and multiplied in integers, as
 * nn/recurrent_int.c does: a block finds the scales of its rows anew, which saves a launch. Operands that are not dense
 * numbers of the type of the computation are brought to that in the workspace, once for all steps.
 */
#include "gpu/kernels/steps.h"
#include "gpu/kernels/scales.h"

#define MAX_K 65536 /* as nn/recurrent_int.c */

enum product { ORDERED_SUMS, PARTED_SUMS, CODES };

#define GATES(cell) ((cell) == LSTM ? 4 : (cell) == GRU ? 3 : 1)
/* Parts of k: as many as the registers of a thread have room for sums. */
#define PARTS(cell, product, T) ((product) == ORDERED_SUMS || sizeof(T) == 8 ? 1 : GATES(cell) == 1 ? 8 : 4)

/* ---- a step ---- */

template <typename T> struct forward {
	int64_t batch, hidden, row, step; /* struct geometry */
	const T *in;                      /* (rows, gates hidden): x times w_ih */
	number_lines<T> h, w;             /* (batch, hidden), before the step; w_hh */
	code_lines codes;                 /* w_hh, with `scales`; per_line 1: one for each line, else 0 */
	ql_scales scales;
	int64_t per_line;
	T *after, *c; /* h and c after it */
	const T *c_before;
	const T *bias_in, *bias_hidden; /* NULL: none */
	T *kept;                        /* NULL: not wanted */
	void *y, *last_h, *last_c;      /* last_*: NULL before the last step */
	int32_t to;                     /* type of y, last_h, last_c */
	int64_t t;
};

/* Finds the scales of the rows of h in the tile. */
QL_DEVICE void row_scales(const number_lines<float> &h, int64_t row, float scale[ROWS])
{
	int64_t line = row + threadIdx.x / UNITS;
	float most = 0, s;

	for (int64_t i = threadIdx.x % UNITS * 4; i < h.k; i += UNITS * 4) {
		float x[4];

		h.four(line, i, x);
		QL_UNROLL
		for (int e = 0; e < 4; e++)
			most = fabsf(x[e]) > most && fabsf(x[e]) <= FLT_MAX ? fabsf(x[e]) : most;
	}
	for (int d = UNITS / 2; d; d >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	s = (float)((double)most / 127);
	s = most == 0 ? 1 : s < FLT_MIN ? FLT_MIN : s;
	__syncthreads(); /* all have read those of the last tile */
	if (threadIdx.x % UNITS == 0)
		scale[threadIdx.x / UNITS] = s;
	if (!QL_BUG(recurrent_scale))
		__syncthreads();
}

/* The products of h and w_hh for this thread's sequence and unit. */
template <int G, int S, int PRODUCT, typename T>
QL_DEVICE void hidden_sums(const forward<T> &f, int64_t row, int64_t unit, T sum[G])
{
	using memory = tile_memory<T, G, S>;
	QL_SHARED(memory, t);

	tile_product<PRODUCT == ORDERED_SUMS, T, G, S>(t, f.h, f.w, row, unit, f.hidden, f.hidden, sum);
}
template <int G, int S> QL_DEVICE void code_sums(const forward<float> &f, int64_t row, int64_t unit, float sum[G])
{
	using memory = tile_memory<int32_t, G, S>;
	QL_SHARED(memory, t);
	int64_t u = unit + threadIdx.x % UNITS;
	int32_t exact[G];

	row_scales(f.h, row, t.scale);
	tile_product<false, int32_t, G, S>(
		t, state_lines{f.h, row, t.scale}, f.codes, row, unit, f.hidden, (f.hidden + 3) / 4, exact);
	QL_UNROLL
	for (int g = 0; g < G; g++) {
		int64_t line = u < f.hidden ? g * f.hidden + u : 0;

		sum[g] = (float)exact[g] * (t.scale[threadIdx.x / UNITS] * ql_scale_at(f.scales, line * f.per_line));
	}
}

/* in and hidden: the sums with their biases; kept: the values for backward; gives h. */
template <int CELL, typename T> QL_DEVICE T apply(const T *in, const T *hidden, T before, T *kept)
{
	if constexpr (CELL == LSTM) {
		T i = squash(in[0] + hidden[0]), f = squash(in[1] + hidden[1]), g = tangent(in[2] + hidden[2]);
		T o = squash(in[3] + hidden[3]), c = f * before + i * g;

		kept[0] = i;
		kept[1] = f;
		kept[2] = g;
		kept[3] = o;
		kept[4] = c;
		return o * tangent(c);
	} else if constexpr (CELL == GRU) {
		T r = squash(in[0] + hidden[0]), z = squash(in[1] + hidden[1]), fresh = tangent(in[2] + r * hidden[2]);

		kept[0] = r;
		kept[1] = z;
		kept[2] = fresh;
		kept[3] = hidden[2];
		return (1 - z) * fresh + z * before;
	} else {
		T a = in[0] + hidden[0];

		kept[0] = CELL == TANH ? tangent(a) : a < 0 ? 0 : a;
		return kept[0];
	}
}

/* A result in its own type. */
template <typename T> QL_DEVICE void store(int32_t to, void *at, int64_t i, T x)
{
	if (sizeof(T) == 8)
		static_cast<double *>(at)[i] = (double)x;
	else
		ql_store_small(to, at, i, (float)x);
}

/* Sequence b, unit u. */
template <int CELL, typename T> QL_DEVICE void step_at(const forward<T> &f, int64_t b, int64_t u, const T *sum)
{
	constexpr int G = GATES(CELL), WIDTH = CELL == LSTM ? 5 : CELL == GRU ? 4 : 1;
	int64_t row = b * f.row + f.t * f.step, n = f.hidden, at = b * n + u;
	T in[G], hidden[G], kept[WIDTH], h;

	QL_UNROLL
	for (int g = 0; g < G; g++) {
		T bias_in = f.bias_in ? f.bias_in[g * n + u] : 0,
		  bias_hidden = f.bias_hidden ? f.bias_hidden[g * n + u] : 0;

		in[g] = f.in[(row * G + g) * n + u] + bias_in;
		hidden[g] = sum[g] + bias_hidden;
	}
	h = apply<CELL>(in, hidden, CELL == LSTM ? f.c_before[at] : f.h.at[at], kept);
	QL_UNROLL
	for (int i = 0; i < WIDTH; i++)
		if (f.kept)
			f.kept[(row * WIDTH + i) * n + u] = kept[i];
	f.after[at] = h;
	store(f.to, f.y, row * n + u, h);
	if (f.last_h)
		store(f.to, f.last_h, at, h);
	if (CELL != LSTM)
		return;
	f.c[at] = kept[WIDTH - 1];
	if (f.last_c)
		store(f.to, f.last_c, at, kept[WIDTH - 1]);
}

template <int CELL, int PRODUCT, typename T> QL_KERNEL(THREADS) forward_step(forward<T> f)
{
	constexpr int G = GATES(CELL), S = PARTS(CELL, PRODUCT, T);
	int64_t across = (f.hidden + UNITS - 1) / UNITS, all = tiles_of(f.batch, f.hidden);

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x) {
		int64_t row = i / across * ROWS, unit = i % across * UNITS;
		int64_t b = row + threadIdx.x / UNITS, u = unit + threadIdx.x % UNITS;
		T sum[G];

		if constexpr (PRODUCT == CODES)
			code_sums<G, S>(f, row, unit, sum);
		else
			hidden_sums<G, S, PRODUCT>(f, row, unit, sum);
		if (b < f.batch && u < f.hidden)
			step_at<CELL>(f, b, u, sum);
	}
}

/* ---- the call ---- */

/* Operands by their place in the call. */
struct operands {
	struct geometry g;
	const struct ql_gpu_tensor *x, *h, *c, *w_in, *w_hidden, *bias_in, *bias_hidden;
	int64_t input;
	bool codes; /* the product of h is one of codes */
};

/* As ql_steps_int_fits of nn/recurrent_int.c; the codes are read where they are, so they are dense. */
static bool is_int8(const struct ql_gpu_tensor *w)
{
	struct ql_gpu_plan unused = {};

	return w->codes && ql_element_of(w->dtype) == QL_E_int8 && ql_scales_fit(w, &unused) && !w->codes->zero_point &&
	       !w->codes->shift && !w->codes->block && w->codes->axis != 1 && w->shape[1] <= MAX_K && ql_dense(w);
}

static bool operands_of(const struct ql_gpu_call *call, struct operands *o, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *rest;

	*o = {};
	if (call->n_in < 4 || in[0].rank != 3 || in[1].rank != 2)
		return ql_refuse(p, "wanted x with 3 axes and h (batch, hidden)");
	if (!ql_option_integer(call, "resetafter", 1))
		return ql_refuse(p, "a reset before the product");
	o->g = geometry_of(call, &in[0], &in[1]);
	o->x = &in[0];
	o->h = &in[1];
	o->c = o->g.two ? &in[2] : NULL;
	rest = in + (o->g.two ? 3 : 2);
	o->w_in = &rest[0];
	o->w_hidden = &rest[1];
	if ((call->n_in - (o->g.two ? 3 : 2)) % 2)
		return ql_refuse(p, "lengths of sequences");
	if (call->n_in == (o->g.two ? 7 : 6)) {
		o->bias_in = &rest[2];
		o->bias_hidden = &rest[3];
	}
	o->input = o->x->shape[2];
	if (!ql_option(call, "states"))
		return true;
	if (!o->w_hidden->codes) /* an error, which the host raises */
		return ql_refuse(p, "w_hh is not quantized");
	o->codes = is_int8(o->w_hidden);
	return true;
}

/* Gives the product of x and w_ih, (rows, gates hidden), by linear; *codes: it is one of codes. */
static void *project(struct ql_inner *p, const struct operands *o, bool *codes)
{
	int64_t sums = o->g.gates * o->g.hidden, shape[3] = {o->x->shape[0], o->x->shape[1], sums};
	void *at = ql_inner_take(p, o->g.rows * sums, ql_element_get(o->g.element).bits / 8);
	struct ql_gpu_tensor out = ql_dense_tensor(at, o->g.element, 3, shape), in[2] = {*o->x, *o->w_in};
	struct ql_gpu_tensor bytes[2] = {ql_bytes_of(o->x), ql_bytes_of(o->w_in)};

	*codes = in[0].codes && in[1].codes;
	if (*codes && !ql_inner_can(p, "linear", bytes, 2, &out)) {
		p->plan->exact = QL_GPU_TOLERANCE; /* the CPU may multiply them in integers */
		*codes = false;
	}
	for (int i = 0; i < 2; i++)
		in[i] = *codes ? ql_inner_bytes(p, &in[i])
			       : ql_dense_tensor(ql_inner_plain(p, &in[i], o->g.element), o->g.element, in[i].rank,
					 in[i].shape);
	ql_inner_op(p, "linear", in, 2, &out);
	return at;
}

/* The first step. next: memory for what is h before a step and after it, by turns. */
template <typename T>
static forward<T> begin(struct ql_inner *p, const struct operands *o, const struct ql_gpu_tensor *out, T *next[2])
{
	int64_t n = o->g.hidden, all = o->g.batch * n;
	struct forward<T> f = {
	};

	f.batch = o->g.batch;
	f.hidden = n;
	f.row = o->g.row;
	f.step = o->g.step;
	for (int i = 0; i < 2; i++)
		next[i] = static_cast<T *>(ql_inner_take(p, all, sizeof(T)));
	f.h = lines_of(static_cast<const T *>(ql_inner_plain(p, o->h, o->g.element)), o->g.batch, n, n);
	if (o->c) {
		f.c = static_cast<T *>(ql_inner_take(p, all, sizeof(T)));
		f.c_before = static_cast<const T *>(ql_inner_plain(p, o->c, o->g.element));
	}
	if (o->codes) {
		f.codes = {static_cast<const int8_t *>(o->w_hidden->at), o->g.gates * n, n, n,
			n % 16 == 0 && (uintptr_t)o->w_hidden->at % 16 == 0};
		f.scales = ql_scales_of(o->w_hidden->codes);
		f.per_line = o->w_hidden->codes->axis == 0;
	} else {
		f.w = lines_of(
			static_cast<const T *>(ql_inner_plain(p, o->w_hidden, o->g.element)), o->g.gates * n, n, n);
	}
	if (o->bias_in) {
		f.bias_in = static_cast<const T *>(ql_inner_plain(p, o->bias_in, o->g.element));
		f.bias_hidden = static_cast<const T *>(ql_inner_plain(p, o->bias_hidden, o->g.element));
	}
	f.y = out[0].at;
	f.to = ql_element_of(out[0].dtype);
	return f;
}

template <int CELL, int PRODUCT, typename T>
static cudaError_t launch(const struct ql_gpu_place *place, const struct forward<T> &f)
{
	constexpr int G = GATES(CELL), S = PARTS(CELL, PRODUCT, T);

	return ql_launch(forward_step<CELL, PRODUCT, T>, ql_blocks(tiles_of(f.batch, f.hidden), 1), dim3(THREADS),
		sizeof(tile_memory<T, G, S>), place->stream, f);
}

template <int CELL>
static cudaError_t launch_for(
	const struct ql_gpu_place *place, const struct operands *o, bool ordered, const struct forward<float> &f)
{
	if (o->codes)
		return launch<CELL, CODES>(place, f);
	return ordered ? launch<CELL, ORDERED_SUMS>(place, f) : launch<CELL, PARTED_SUMS>(place, f);
}
template <int CELL>
static cudaError_t launch_for(
	const struct ql_gpu_place *place, const struct operands *, bool, const struct forward<double> &f)
{
	return launch<CELL, ORDERED_SUMS>(place, f);
}

template <typename T>
static cudaError_t launch_step(
	const struct ql_gpu_place *place, const struct operands *o, bool ordered, const forward<T> &f)
{
	switch (o->g.cell) {
	case LSTM: return launch_for<LSTM>(place, o, ordered, f);
	case GRU: return launch_for<GRU>(place, o, ordered, f);
	case TANH: return launch_for<TANH>(place, o, ordered, f);
	default: return launch_for<RELU>(place, o, ordered, f);
	}
}

/* The whole call; *codes: the product of x is one of codes. */
template <typename T>
static void run_parts(struct ql_inner *p, const struct operands *o, const struct ql_gpu_call *call, bool *codes)
{
	int given = o->g.two ? 3 : 2;
	struct forward<T> f;
	const T *in = static_cast<const T *>(project(p, o, codes));
	T *next[2];

	f = begin(p, o, call->out, next);
	f.in = in;
	f.kept = call->n_out > given ? static_cast<T *>(call->out[given].at) : NULL;
	if (!p->place || o->g.batch * o->g.hidden == 0)
		return;
	for (int64_t i = 0; i < o->g.steps && ql_inner_good(p); i++) {
		if (i > 0) {
			f.h = lines_of(static_cast<const T *>(f.after), f.batch, f.hidden, f.hidden);
			f.c_before = f.c;
		}
		f.t = o->g.reverse ? o->g.steps - 1 - i : i;
		f.after = next[i % 2];
		if (i == o->g.steps - 1) {
			f.last_h = call->out[1].at;
			f.last_c = o->c ? call->out[2].at : NULL;
		}
		p->error = launch_step(p->place, o, p->flags & QL_GPU_ORDERED, f);
	}
}

static void all_parts(struct ql_inner *p, const struct operands *o, const struct ql_gpu_call *call, bool *codes)
{
	if (o->g.element == QL_E_float64)
		run_parts<double>(p, o, call, codes);
	else
		run_parts<float>(p, o, call, codes);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_inner parts = {};
	struct operands o;
	bool codes;

	if (!operands_of(call, &o, p))
		return false;
	for (int i = 0; i < call->n_out; i++)
		if (!ql_dense(&call->out[i]) || !ql_element_float(ql_element_of(call->out[i].dtype)))
			return ql_refuse(p, "wanted dense results of floats");
	parts.flags = call->flags;
	parts.plan = p;
	all_parts(&parts, &o, call, &codes);
	if (parts.refused)
		return false;
	if (o.g.element == QL_E_float64 || (!o.codes && !(call->flags & QL_GPU_ORDERED)))
		p->exact = QL_GPU_TOLERANCE; /* float64: by the functions of the C library */
	p->workspace = parts.used;
	p->path = codes && o.codes ? "int8" : codes || o.codes ? "mixed" : ql_element_get(o.g.element).name;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan plan = {};
	struct ql_inner parts = {};
	struct operands o;
	bool codes;

	if (!operands_of(call, &o, &plan))
		return cudaErrorInvalidValue;
	parts.place = place;
	parts.workspace = static_cast<char *>(call->workspace);
	parts.flags = call->flags;
	parts.plan = &plan;
	all_parts(&parts, &o, call, &codes);
	return parts.refused ? cudaErrorInvalidValue : parts.error;
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_recurrent;
const struct ql_gpu_kernel ql_gpu_kernel_recurrent = {"lstm gru rnn", "recurrent", "simt", QL_GPU_BITS, 80, plan, run};
