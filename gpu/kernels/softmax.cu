/* SPDX-License-Identifier: MIT
 * softmax and logsoftmax along an axis and their gradients, with the formulas and the order of tensor/ops/softmax.c: a warp a
 * line, or the eight warps of a block for lines of more than 1024 elements (gpu/kernels/line.h).
 */
#include "gpu/kernels/line.h"
#include "gpu/kernels/strided.h"
#include "gpu/kernels/vmath.h"

enum what { SOFTMAX, LOGSOFTMAX, SOFTMAX_SLOPE, LOGSOFTMAX_SLOPE, WHATS };

static const char *const names[WHATS] = {"softmax", "logsoftmax", "softmax_slope", "logsoftmax_slope"};

struct work {
	ql_strided from, to; /* the first elements of lines: of both operands, of the result */
	ql_line_at in, with, out;
	int64_t lines, n;
};

/* Where the line that begins `offset` elements behind the first one is. */
QL_DEVICE ql_line_at line_at(const ql_line_at &first, int64_t offset)
{
	ql_line_at line = first;
	int bytes = first.element == QL_E_float32 ? 4 : 2;

	line.at = static_cast<const char *>(first.at) + offset * bytes;
	return line;
}

/* exp(x - largest) / sum, or x - largest - log(sum) */
template <bool LOG, int W, int R, typename ROOM>
QL_DEVICE void normalize(const work &k, ROOM &room, const ql_line_at &in, const ql_line_at &out)
{
	ql_line<R> x;
	float y[QL_LINE_EACH], most = -INFINITY, by;
	double sum[1], rest;
	auto fetch = [&](int64_t run) { x.fetch(run, k.n); };
	auto store = [&](int64_t run) { ql_line_put(out, run, k.n, y); };

	x.template start<W>(in, k.n);
	ql_line_pass<W, R>(k.n, fetch, [&](int64_t, int j, int s) { most = x.get(j, s) > most ? x.get(j, s) : most; });
	most = ql_line_largest<W>(room, most);
	ql_line_sum<W, R, 1>(
		room, k.n, QL_LINE_PART, fetch,
		[&](int64_t, int j, int s, float *lane) {
			float e = ql_exp_below(x.get(j, s), most);

			if (R && !LOG)
				x.get(j, s) = e;
			lane[0] += e;
		},
		sum);
	if (LOG) {
		rest = ql_log_f64(ldexp(sum[0], -QL_EXP_SCALE));
		ql_line_pass<W, R>(
			k.n, fetch,
			[&](int64_t, int j, int s) { y[s] = (float)((double)x.get(j, s) - (double)most - rest); },
			store);
		return;
	}
	by = (float)(1 / sum[0]);
	ql_line_pass<W, R>(
		k.n, fetch,
		[&](int64_t, int j, int s) { y[s] = (R ? x.get(j, s) : ql_exp_below(x.get(j, s), most)) * by; }, store);
}

/* Gradients: y (g - sum of g y), or g - e^y times the sum of g. */
template <bool LOG, int W, int R, typename ROOM>
QL_DEVICE void slope(const work &k, ROOM &room, const ql_line_at &in, const ql_line_at &with, const ql_line_at &out)
{
	ql_line<R> g, y;
	float dx[QL_LINE_EACH], all;
	double sum[1];
	auto fetch = [&](int64_t run) {
		g.fetch(run, k.n);
		y.fetch(run, k.n);
	};

	g.template start<W>(in, k.n);
	y.template start<W>(with, k.n);
	ql_line_sum<W, R, 1>(
		room, k.n, QL_LINE_PART, fetch,
		[&](int64_t, int j, int s, float *lane) { lane[0] += LOG ? g.get(j, s) : g.get(j, s) * y.get(j, s); },
		sum);
	all = (float)sum[0];
	ql_line_pass<W, R>(
		k.n, fetch,
		[&](int64_t, int j, int s) {
			dx[s] = LOG ? g.get(j, s) - ql_exp(y.get(j, s)) * all : y.get(j, s) * (g.get(j, s) - all);
		},
		[&](int64_t run) { ql_line_put(out, run, k.n, dx); });
}

/* Four runs a warp need a few registers more than two blocks leave them. */
template <int WHAT, int W, int R> QL_KERNEL(QL_LINE_THREADS, R == 4 ? 1 : 2) lines(work k)
{
	typedef ql_line_room<float, 1> room_type;
	QL_SHARED(room_type, room);

	for (int64_t i = ql_line_first<W>(); i < k.lines; i += ql_line_teams<W>()) {
		int64_t from[QL_STRIDED_MOST], to[QL_STRIDED_MOST];
		ql_line_at in, with, out;

		ql_strided_at(k.from, i, from);
		ql_strided_at(k.to, i, to);
		in = line_at(k.in, from[0]);
		with = line_at(k.with, from[1]);
		out = line_at(k.out, to[0]);
		if (WHAT == SOFTMAX || WHAT == LOGSOFTMAX)
			normalize<WHAT == LOGSOFTMAX, W, R>(k, room, in, out);
		else
			slope<WHAT == LOGSOFTMAX_SLOPE, W, R>(k, room, in, with, out);
	}
}

/* ---- the call ---- */

static enum what what_of(const char *op)
{
	int i = 0;

	while (strcmp(names[i], op))
		i++;
	return (enum what)i;
}

static int axis_of(const struct ql_gpu_call *call)
{
	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, "axis"))
			return (int)call->options[i].i;
	return call->in[0].rank - 1;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *t[] = {&call->in[0], &call->out[0], &call->in[1]};

	for (int i = 0; i < call->n_in + 1; i++) {
		int element = ql_element_of(t[i]->dtype);

		if (t[i]->codes || (t[i]->flags & QL_GPU_NUMBER))
			return ql_refuse(p, "wanted plain numbers on the device");
		if (element == QL_E_float64)
			return ql_refuse(p, "float64, whose functions are those of the host's library");
		if (!ql_line_type(element))
			return ql_refuse(p, "elements that are no floats of 16 or 32 bits");
	}
	if (t[0]->rank == 0)
		return ql_refuse(p, "a single number");
	p->path = "float32";
	return true;
}

static ql_line_at first_line(const struct ql_gpu_tensor *t, int axis)
{
	return ql_line_at{t->at, t->stride[axis], ql_element_of(t->dtype), 0};
}

template <int WHAT> static cudaError_t launch(const struct ql_gpu_place *place, const work &k)
{
#define LAUNCH(W, R) \
	ql_launch(lines<WHAT, W, R>, ql_line_blocks(k.lines, W), dim3(QL_LINE_THREADS), \
		sizeof(struct ql_line_room<float, 1>), place->stream, k)
	if constexpr (WHAT == SOFTMAX_SLOPE || WHAT == LOGSOFTMAX_SLOPE)
		return k.n <= QL_LINE_RUN ? LAUNCH(1, 1) : LAUNCH(8, 0);
	else
		return QL_LINE_DISPATCH(k.n, LAUNCH);
#undef LAUNCH
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *in = call->in, *with = call->n_in > 1 ? &call->in[1] : NULL, *out = call->out;
	int axis = axis_of(call);
	uint32_t others = ~(1u << axis);
	struct work k = {};

	k.from = ql_strided_of(in, with, others);
	k.to = ql_strided_of(out, NULL, others);
	k.in = first_line(in, axis);
	k.with = first_line(with ? with : in, axis);
	k.out = first_line(out, axis);
	k.lines = k.to.count;
	k.n = in->shape[axis];
	if (k.lines == 0 || k.n == 0)
		return cudaSuccess;
	switch (what_of(call->op)) {
	case SOFTMAX: return launch<SOFTMAX>(place, k);
	case LOGSOFTMAX: return launch<LOGSOFTMAX>(place, k);
	case SOFTMAX_SLOPE: return launch<SOFTMAX_SLOPE>(place, k);
	default: return launch<LOGSOFTMAX_SLOPE>(place, k);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_softmax;
const struct ql_gpu_kernel ql_gpu_kernel_softmax = {
	"softmax logsoftmax softmax_slope logsoftmax_slope", "softmax", "simt", QL_GPU_BITS, 80, plan, run};
