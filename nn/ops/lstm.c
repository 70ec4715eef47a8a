/* SPDX-License-Identifier: MIT
 * A layer of long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000), gates
 * in PyTorch's order i f g o:
 *   i, f, o = sigmoid(…), g = tanh(…) of x w_ih' + b_ih + h w_hh' + b_hh,   c = f c + i g,   h = o tanh(c)
 * Saved for backward: i f g o and c after the step.
 */
#include <math.h>

#include "nn/recurrent.h"
#include "tensor/vmath/act.h"

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

#define SUM(in, g) ((in)[j] + bias[(g)*n + j] + (hidden[(g)*n + j] + bias_hidden[(g)*n + j]))

#define FORWARD(independent, real, squash, tangent) \
	{ \
		const int64_t n = row->n; \
		const real *restrict hidden = row->hidden, *restrict bias = row->bias_in; \
		const real *restrict bias_hidden = row->bias_hidden, *restrict before = row->before; \
		real *restrict ki = QL_PART(real, row->kept, 0), *restrict kf = QL_PART(real, row->kept, 1); \
		real *restrict kg = QL_PART(real, row->kept, 2), *restrict ko = QL_PART(real, row->kept, 3); \
		real *restrict kc = QL_PART(real, row->kept, 4), *restrict h = row->h; \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real i = squash(SUM(ki, 0)), f = squash(SUM(kf, 1)), g = tangent(SUM(kg, 2)), \
			     o = squash(SUM(ko, 3)); \
			real c = f * before[j] + i * g; \
\
			ki[j] = i; \
			kf[j] = f; \
			kg[j] = g; \
			ko[j] = o; \
			kc[j] = c; \
			h[j] = o * tangent(c); \
		} \
	}
QL_SIMD(void, forward_f32, (const struct ql_cell_row *row), FORWARD(QL_INDEPENDENT, float, ql_sigmoid, ql_tanh))
static void forward_f64(const struct ql_cell_row *row) FORWARD(, double, sigmoid, tanh)

#define BACKWARD(independent, real, tangent) \
	{ \
		const int64_t n = row->n; \
		const real *restrict kept = row->kept, *restrict before = row->before; \
		const real *restrict dy = row->dy, *restrict dh = row->dh; \
		real *restrict carry = row->carry, *restrict di = QL_PART(real, row->din, 0); \
		real *restrict df = QL_PART(real, row->din, 1), *restrict dg = QL_PART(real, row->din, 2); \
		real *restrict d_out = QL_PART(real, row->din, 3); \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real i = kept[j], f = kept[n + j], g = kept[2 * n + j], o = kept[3 * n + j]; \
			real t = tangent(kept[4 * n + j]), up = dy[j] + dh[j]; \
			real dc = carry[j] + up * o * (1 - t * t); \
\
			di[j] = dc * g * (i * (1 - i)); \
			df[j] = dc * before[j] * (f * (1 - f)); \
			dg[j] = dc * i * (1 - g * g); \
			d_out[j] = up * t * (o * (1 - o)); \
			carry[j] = dc * f; \
		} \
	}
	QL_SIMD(void, backward_f32, (const struct ql_cell_back *row), BACKWARD(QL_INDEPENDENT, float, ql_tanh)) static void backward_f64(const struct ql_cell_back *row)
					BACKWARD(, double, tanh)

						static const struct ql_recurrent_cell cell = {.gates = 4,
							.width = 5,
							.c = true,
							.f32 = forward_f32,
							.f64 = forward_f64,
							.back_f32 = backward_f32,
							.back_f64 = backward_f64};

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_recurrent_infer(ctx, call, &cell);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_recurrent_eval(ctx, call, &cell);
}

static uint32_t decodes(const struct ql_call *call)
{
	return ql_recurrent_decodes(call, &cell);
}

static const struct ql_attr attrs[] = {QL_RECURRENT_ATTRS, {NULL, QL_ATTR_END, 0, NULL, NULL}};

QL_RECURRENT_BACK(lstm_back, "lstm_back", cell);

static enum ql_status backward(struct ql_back *b)
{
	return ql_recurrent_backward(b, &cell, &lstm_back);
}

const struct ql_op ql_op_lstm = {
	.doc = {.name = "lstm",
		.usage =
			"y, h, c = nn.lstm(x, h, c, w_ih, w_hh, b_ih, b_hh, {batchfirst=, states=, reverse=, lengths=})",
		.text = "A layer of LSTM over whole sequences. " QL_RECURRENT_TEXT
			"h and c (batch, hidden) are the states before the first step, the results h and c those after the last. Gates "
			"are in the order i f g o.",
		.example = "x, h = tensor.ones(1, 3, 2), tensor.zeros(1, 1)\n"
			   "y = nn.lstm(x, h, h, tensor.ones(4, 2), tensor.ones(4, 1))\n"
			   "print(y:view(3))  --> float32(3)  0.6083  0.8726  0.9353",
		.attrs = attrs},
	.arity_min = 5,
	.arity_max = 8,
	.outputs = 3,
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer,
	.eval = eval,
	.decodes = decodes,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE_ALL | QL_SAVE_RESULT,
};
