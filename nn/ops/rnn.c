/* SPDX-License-Identifier: MIT
 * A plain recurrent layer (Elman 1990): h = act(x w_ih' + b_ih + h w_hh' + b_hh), act tanh or relu. Saved for
 * backward: h.
 */
#include <math.h>
#include <string.h>

#include "nn/recurrent.h"
#include "tensor/vmath/act.h"

#define FORWARD(real, act) \
	{ \
		const real *restrict hidden = row->hidden, *restrict bias = row->bias_in; \
		const real *restrict bias_hidden = row->bias_hidden; \
		real *restrict in = row->kept, *restrict h = row->h; \
\
		for (int64_t j = 0; j < row->n; j++) { \
			real a = in[j] + bias[j] + (hidden[j] + bias_hidden[j]); \
\
			h[j] = in[j] = act; \
		} \
	}
#define BACKWARD(real, slope) \
	{ \
		const real *restrict kept = row->kept, *restrict dy = row->dy, *restrict dh = row->dh; \
		real *restrict d = row->din; \
\
		for (int64_t j = 0; j < row->n; j++) { \
			real h = kept[j]; \
\
			d[j] = (dy[j] + dh[j]) * (slope); \
		} \
	}
QL_SIMD(void, tanh_f32, (const struct ql_cell_row *row), FORWARD(float, ql_tanh(a)))
static void tanh_f64(const struct ql_cell_row *row) FORWARD(double, tanh(a)) QL_SIMD(void, tanh_back_f32, (const struct ql_cell_back *row), BACKWARD(float, 1 - h * h)) static void tanh_back_f64(const struct ql_cell_back *row) BACKWARD(double,
			1 - h * h) QL_SIMD(void, relu_f32, (const struct ql_cell_row *row), FORWARD(float, a < 0 ? 0 : a)) static void relu_f64(const struct ql_cell_row *row)
					FORWARD(double, a < 0 ? 0 : a) QL_SIMD(void, relu_back_f32, (const struct ql_cell_back *row), BACKWARD(float, h > 0 ? 1.0f : 0.0f)) static void relu_back_f64(const struct
								ql_cell_back *row) BACKWARD(double, h > 0 ? 1.0 : 0.0)

									static const
								struct ql_recurrent_cell tanh_cell = {.gates = 1,
									.width = 1,
									.f32 = tanh_f32,
									.f64 = tanh_f64,
									.back_f32 = tanh_back_f32,
									.back_f64 = tanh_back_f64};
static const struct ql_recurrent_cell relu_cell = {
	.gates = 1, .width = 1, .f32 = relu_f32, .f64 = relu_f64, .back_f32 = relu_back_f32, .back_f64 = relu_back_f64};

static const struct ql_recurrent_cell *cell_of(const struct ql_call *call)
{
	return strcmp(ql_call_string(call, "act", "tanh"), "relu") ? &tanh_cell : &relu_cell;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_recurrent_infer(ctx, call, cell_of(call));
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_recurrent_eval(ctx, call, cell_of(call));
}

static uint32_t decodes(const struct ql_call *call)
{
	return ql_recurrent_decodes(call, cell_of(call));
}

static const struct ql_attr attrs[] = {
	QL_RECURRENT_ATTRS,
	{"act", QL_ATTR_STRING, 0, "tanh relu", "activation of the cell (default tanh)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

QL_RECURRENT_BACK(tanh_back, "rnn_back", tanh_cell);
QL_RECURRENT_BACK(relu_back, "rnn_back", relu_cell);

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_recurrent_cell *cell = cell_of(&b->call);

	return ql_recurrent_backward(b, cell, cell == &tanh_cell ? &tanh_back : &relu_back);
}

const struct ql_op ql_op_rnn = {
	.doc = {.name = "rnn",
		.usage =
			"y, h = nn.rnn(x, h, w_ih, w_hh, b_ih, b_hh, {batchfirst=, states=, reverse=, lengths=, act=})",
		.text = "A plain recurrent layer over whole sequences: h = act(x w_ih' + b_ih + h w_hh' + b_hh). " QL_RECURRENT_TEXT
			"There is one gate. h (batch, hidden) is the state before the first step, the result h that after the last.",
		.example =
			"y = nn.rnn(tensor.ones(1, 3, 1), tensor.zeros(1, 1), tensor.ones(1, 1), tensor.ones(1, 1), {act='relu'})\n"
			"print(y:view(3))  --> float32(3)  1  2  3",
		.attrs = attrs},
	.arity_min = 4,
	.arity_max = 7,
	.outputs = 2,
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer,
	.eval = eval,
	.decodes = decodes,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE_ALL | QL_SAVE_RESULT,
};
