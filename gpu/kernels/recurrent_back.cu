/* SPDX-License-Identifier: MIT
 * lstm_back, gru_back, rnn_back: the steps of recurrent layers backward (nn/recurrent_back.c), a launch for each: the product
 * of the gradients of the step after with w_hh, then the cell. w_hh is transposed first, so that both operands have the summed
 * axis contiguous.
 */
#include "gpu/kernels/steps.h"

template <typename T> struct backward {
	int64_t batch, hidden, row, step, t, steps; /* struct geometry; t -1: only the product behind the first step */
	const T *dy, *dh;                           /* dh: the gradient of the last h */
	const T *kept, *first, *y;                  /* first: c or h before the first step; y: of cells without c */
	T *carry, *din, *dhidden;
	T *out;                   /* gradient of the first h */
	number_lines<T> after, w; /* dhidden of the step after; w_hh transposed */
	bool split;
};

/* The cells: `up` is the gradient of h without carry, `before` the state before; gives the new carry. */
template <typename T> QL_DEVICE T lstm_at(const T *kept, int64_t n, T before, T up, T carry, T *din)
{
	T i = kept[0], f = kept[n], g = kept[2 * n], o = kept[3 * n], t = tangent(kept[4 * n]);
	T dc = carry + up * o * (1 - t * t);

	din[0] = dc * g * (i * (1 - i));
	din[n] = dc * before * (f * (1 - f));
	din[2 * n] = dc * i * (1 - g * g);
	din[3 * n] = up * t * (o * (1 - o));
	return dc * f;
}

template <typename T> QL_DEVICE T gru_at(const T *kept, int64_t n, T before, T up, T carry, T *din, T *dhidden)
{
	T r = kept[0], z = kept[n], fresh = kept[2 * n], side = kept[3 * n], all = up + carry;
	T dnew = all * (1 - z) * (1 - fresh * fresh), dr = dnew * side * (r * (1 - r));
	T dz = all * (before - fresh) * (z * (1 - z));

	din[0] = dhidden[0] = dr;
	din[n] = dhidden[n] = dz;
	din[2 * n] = dnew;
	dhidden[2 * n] = dnew * r;
	return all * z;
}

/* Sequence b, unit u at step t, dh from the product behind it. */
template <int CELL, typename T> QL_DEVICE void step_at(const backward<T> &f, int64_t b, int64_t u, T dh)
{
	constexpr int G = CELL == LSTM ? 4 : CELL == GRU ? 3 : 1, WIDTH = CELL == LSTM ? 5 : CELL == GRU ? 4 : 1;
	int64_t row = b * f.row + f.t * f.step, n = f.hidden, at = b * n + u, last = row - f.step;
	const T *kept = f.kept + row * WIDTH * n + u;
	T carry = CELL == LSTM || (CELL == GRU && f.t < f.steps - 1) ? f.carry[at] : 0;
	T up, before = 0, *din = f.din + row * G * n + u;

	if (f.t < 0) {
		f.out[at] = CELL == LSTM ? dh : dh + carry;
		return;
	}
	up = f.dy[row * n + u] + dh;
	if (CELL == LSTM || CELL == GRU)
		before = f.t == 0       ? f.first[at]
			 : CELL == LSTM ? f.kept[(last * WIDTH + WIDTH - 1) * n + u]
					: f.y[last * n + u];
	if constexpr (CELL == LSTM)
		f.carry[at] = lstm_at(kept, n, before, up, carry, din);
	else if constexpr (CELL == GRU)
		f.carry[at] = gru_at(kept, n, before, up, carry, din, f.dhidden + row * G * n + u);
	else
		din[0] = up * (CELL == TANH ? 1 - kept[0] * kept[0] : kept[0] > 0 ? 1 : 0);
}

template <int CELL, bool ORDERED, typename T> QL_KERNEL(THREADS) backward_step(backward<T> f)
{
	constexpr int G = CELL == LSTM ? 4 : CELL == GRU ? 3 : 1, S = ORDERED ? 1 : 8;
	using memory = tile_memory<T, 1, S>;
	QL_SHARED(memory, t);
	int64_t across = (f.hidden + UNITS - 1) / UNITS, all = tiles_of(f.batch, f.hidden);

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x) {
		int64_t row = i / across * ROWS, unit = i % across * UNITS;
		int64_t b = row + threadIdx.x / UNITS, u = unit + threadIdx.x % UNITS;
		T sum[1] = {0};

		if (f.t < f.steps - 1)
			tile_product<ORDERED, T, 1, S>(t, f.after, f.w, row, unit, f.hidden, G * f.hidden, sum);
		if (b < f.batch && u < f.hidden)
			step_at<CELL>(f, b, u, f.t < f.steps - 1 ? sum[0] : f.dh[b * f.hidden + u]);
	}
}

/* ---- the call ---- */

struct operands {
	struct geometry g;
	const struct ql_gpu_tensor *dy, *dh, *dc, *kept, *w, *first, *y;
};

static bool operands_of(const struct ql_gpu_call *call, struct operands *o, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in;

	*o = {};
	if (call->n_in != 6 || in[0].rank != 3 || in[1].rank != 2)
		return ql_refuse(p, "wanted six operands");
	if (!ql_option_integer(call, "resetafter", 1))
		return ql_refuse(p, "a reset before the product");
	o->g = geometry_of(call, &in[0], &in[1]);
	o->dy = &in[0];
	o->dh = &in[1];
	o->dc = o->g.two ? &in[2] : NULL;
	in += o->g.two ? 3 : 2;
	o->kept = &in[0];
	o->w = &in[1];
	o->first = &in[2];
	o->y = o->g.two ? NULL : &in[3];
	if (o->kept->codes || ql_element_of(o->kept->dtype) != o->g.element || !ql_dense(o->kept))
		return ql_refuse(p, "wanted the saved values as the layer gave them");
	return true;
}

template <typename T> static const T *plain(struct ql_inner *p, const struct operands *o, const struct ql_gpu_tensor *t)
{
	return t ? static_cast<const T *>(ql_inner_plain(p, t, o->g.element)) : NULL;
}

/* w_hh (gates hidden, hidden) as dense lines for each unit. */
template <typename T> static number_lines<T> transposed(struct ql_inner *p, const struct operands *o)
{
	int64_t n = o->g.hidden, sums = o->g.gates * n, shape[2] = {n, sums};
	T *to = static_cast<T *>(ql_inner_take(p, n * sums, sizeof(T)));
	struct ql_gpu_tensor w = *o->w;

	if (w.codes)
		w = ql_dense_tensor(ql_inner_plain(p, o->w, o->g.element), o->g.element, 2, o->w->shape);
	w.shape[0] = shape[0];
	w.shape[1] = shape[1];
	w.stride[0] = o->w->codes ? 1 : o->w->stride[1];
	w.stride[1] = o->w->codes ? n : o->w->stride[0];
	ql_inner_copy(p, &w, o->g.element, to);
	return lines_of(static_cast<const T *>(to), n, sums, sums);
}

template <typename T>
static backward<T> begin(struct ql_inner *p, const struct operands *o, const struct ql_gpu_tensor *out)
{
	struct backward<T> f = {
	};

	f.batch = o->g.batch;
	f.hidden = o->g.hidden;
	f.row = o->g.row;
	f.step = o->g.step;
	f.steps = o->g.steps;
	f.dy = plain<T>(p, o, o->dy);
	f.dh = plain<T>(p, o, o->dh);
	f.kept = static_cast<const T *>(o->kept->at);
	f.first = plain<T>(p, o, o->first);
	f.y = plain<T>(p, o, o->y);
	f.w = transposed<T>(p, o);
	f.din = static_cast<T *>(out[0].at);
	f.out = static_cast<T *>(out[1].at);
	f.dhidden = o->g.split ? static_cast<T *>(out[2].at) : f.din;
	f.carry = static_cast<T *>(o->g.two ? out[2].at : ql_inner_take(p, o->g.batch * o->g.hidden, sizeof(T)));
	if (o->g.two)
		ql_inner_copy(p, o->dc, o->g.element, f.carry);
	return f;
}

/* Steps from the last to the first: their rows count down from those of the last one. */
template <typename T> static void turn(struct backward<T> *f, const struct geometry *g)
{
	int64_t last = (g->steps - 1) * g->step, n = g->hidden;

	f->step = -g->step;
	f->dy += last * n;
	f->kept += last * g->width * n;
	f->y = f->y ? f->y + last * n : NULL;
	f->dhidden += last * g->gates * n;
	f->din += last * g->gates * n;
}

template <int CELL, typename T>
static cudaError_t launch(const struct ql_gpu_place *place, bool ordered, const struct backward<T> &f)
{
	dim3 blocks = ql_blocks(tiles_of(f.batch, f.hidden), 1);

	if (ordered || sizeof(T) == 8)
		return ql_launch(backward_step<CELL, true, T>, blocks, dim3(THREADS), sizeof(tile_memory<T, 1, 1>),
			place->stream, f);
	if constexpr (sizeof(T) == 4)
		return ql_launch(backward_step<CELL, false, T>, blocks, dim3(THREADS), sizeof(tile_memory<T, 1, 8>),
			place->stream, f);
	return cudaErrorInvalidValue;
}

template <typename T>
static cudaError_t launch_step(const struct ql_gpu_place *place, int cell, bool ordered, const struct backward<T> &f)
{
	switch (cell) {
	case LSTM: return launch<LSTM>(place, ordered, f);
	case GRU: return launch<GRU>(place, ordered, f);
	case TANH: return launch<TANH>(place, ordered, f);
	default: return launch<RELU>(place, ordered, f);
	}
}

template <typename T>
static void run_parts(struct ql_inner *p, const struct operands *o, const struct ql_gpu_call *call)
{
	struct backward<T> f = begin<T>(p, o, call->out);
	int64_t sums = o->g.gates * o->g.hidden;

	if (!p->place || o->g.batch * o->g.hidden == 0)
		return;
	if (o->g.reverse)
		turn(&f, &o->g);
	for (f.t = o->g.steps - 1; f.t >= -1 && ql_inner_good(p); f.t--) {
		int64_t behind = QL_BUG(recurrent_behind) ? f.t : f.t + 1;

		f.after = lines_of(
			static_cast<const T *>(f.dhidden) + behind * f.step * sums, f.batch, f.row * sums, sums);
		p->error = launch_step(p->place, o->g.cell, p->flags & QL_GPU_ORDERED, f);
	}
}

static void all_parts(struct ql_inner *p, const struct operands *o, const struct ql_gpu_call *call)
{
	if (o->g.element == QL_E_float64)
		run_parts<double>(p, o, call);
	else
		run_parts<float>(p, o, call);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_inner parts = {};
	struct operands o;

	if (!operands_of(call, &o, p))
		return false;
	for (int i = 0; i < call->n_out; i++)
		if (!ql_dense(&call->out[i]) || ql_element_of(call->out[i].dtype) != o.g.element)
			return ql_refuse(p, "wanted dense results of the saved values' type");
	parts.flags = call->flags;
	parts.plan = p;
	all_parts(&parts, &o, call);
	if (parts.refused)
		return false;
	if (o.g.element == QL_E_float64 || !(call->flags & QL_GPU_ORDERED))
		p->exact = QL_GPU_TOLERANCE;
	p->workspace = parts.used;
	p->path = ql_element_get(o.g.element).name;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan plan = {};
	struct ql_inner parts = {};
	struct operands o;

	if (!operands_of(call, &o, &plan))
		return cudaErrorInvalidValue;
	parts.place = place;
	parts.workspace = static_cast<char *>(call->workspace);
	parts.flags = call->flags;
	parts.plan = &plan;
	all_parts(&parts, &o, call);
	return parts.refused ? cudaErrorInvalidValue : parts.error;
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_recurrent_back;
const struct ql_gpu_kernel ql_gpu_kernel_recurrent_back = {
	"lstm_back gru_back rnn_back", "recurrent_back", "simt", QL_GPU_BITS, 80, plan, run};
