/* SPDX-License-Identifier: MIT
 * rope and its gradient (nn/ops/rope.c): neighbouring pairs of a row are turned by (position - 1) base^(-2i / d), backwards for the
 * gradient. A thread finds the sine and cosine of a pair at a position, in double, and turns it in EACH rows. Sines come from
 * the C library of the device, so the last bit of one in many millions may be another than the CPU's.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define EACH 8
#define BASE 10000

struct turn {
	ql_strided rest; /* all axes but the positions and the pairs: of x and y */
	const void *x;
	void *y;
	int64_t positions, d, x_position, y_position, x_column; /* sizes; strides */
	double base, start, direction;
	int32_t type;
};

/* By the terms of turn_f32: sums of two products, each rounded. */
template <typename T> QL_DEVICE void rotate(T a, T b, T c, T s, T out[2])
{
	out[0] = a * c + b * -s;
	out[1] = b * c + a * s;
}

QL_DEVICE void turn_pair(const turn &t, int64_t x, int64_t y, double c, double s)
{
	if (t.type == QL_E_float64) {
		const double *from = static_cast<const double *>(t.x) + x;
		double out[2];

		rotate(from[0], from[t.x_column], c, s, out);
		static_cast<double *>(t.y)[y] = out[0];
		static_cast<double *>(t.y)[y + 1] = out[1];
	} else {
		float out[2];

		rotate(ql_load_small(t.type, t.x, x), ql_load_small(t.type, t.x, x + t.x_column), (float)c, (float)s,
			out);
		ql_store_small(t.type, t.y, y, out[0]);
		ql_store_small(t.type, t.y, y + 1, out[1]);
	}
}

QL_KERNEL(THREADS) turn_rows(turn t)
{
	int64_t pairs = t.d / 2, group = t.positions * pairs, groups = (t.rest.count + EACH - 1) / EACH;

	for (int64_t i = ql_thread(); i < group * groups; i += ql_threads()) {
		int64_t pair = i % pairs, position = i / pairs % t.positions, first = i / group * EACH;
		double frequency = pow(t.base, -(double)(2 * pair) / (double)t.d);
		double angle = ((double)position + t.start - 1 + QL_BUG(rope_start)) * frequency;
		double c = cos(angle), s = t.direction * sin(angle);

		for (int64_t r = first; r < first + EACH && r < t.rest.count; r++) {
			int64_t at[QL_STRIDED_MOST];

			ql_strided_at(t.rest, r, at);
			turn_pair(t, at[0] + position * t.x_position + 2 * pair * t.x_column,
				at[1] + position * t.y_position + 2 * pair, c, s);
		}
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in, *y = call->out;
	int type = ql_element_of(x->dtype);

	if (x->codes || y->codes)
		return ql_refuse(p, "rotation of codes");
	if (call->n_in > 1 || ql_option(call, "style") || ql_option(call, "dims"))
		return ql_refuse(p, "rotation with style, dims or tables");
	if (x->flags & QL_GPU_NUMBER || !ql_element_float(type) || x->rank < 2)
		return ql_refuse(p, "wanted plain floats on the device");
	if (ql_element_of(y->dtype) != type || !ql_dense(y))
		return ql_refuse(p, "wanted a dense result of the operand's dtype");
	p->path = type == QL_E_float64 ? "float64" : "float32";
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *x = call->in, *y = call->out;
	int axis = (int)ql_option_integer(call, "axis", x->rank - 2), last = x->rank - 1;
	int64_t items;
	turn t = {};

	t.rest = ql_strided_of(x, y, ~(1u << axis | 1u << last));
	t.x = x->at;
	t.y = y->at;
	t.positions = x->shape[axis];
	t.d = x->shape[last];
	t.x_position = x->stride[axis];
	t.y_position = y->stride[axis];
	t.x_column = x->stride[last];
	t.base = ql_option_number(call, "base", BASE);
	t.start = (double)ql_option_integer(call, "start", 1);
	t.direction = strcmp(call->op, "rope") ? -1 : 1;
	t.type = ql_element_of(x->dtype);
	items = t.positions * (t.d / 2) * ((t.rest.count + EACH - 1) / EACH);
	if (items == 0)
		return cudaSuccess;
	return ql_launch_free(turn_rows, ql_blocks(items, THREADS), dim3(THREADS), place->stream, t);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_rope;
const struct ql_gpu_kernel ql_gpu_kernel_rope = {"rope rope_back", "rope", "simt", QL_GPU_TOLERANCE, 80, plan, run};
