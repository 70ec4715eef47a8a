/* SPDX-License-Identifier: MIT
 * A layer of gated recurrent units (Cho et al. 2014), in PyTorch's form, with the reset gate after the product:
 *   r, z = sigmoid(x w_ih' + b_ih + h w_hh' + b_hh),   n = tanh(x w_in' + b_in + r (h w_hn' + b_hn)),
 *   h = (1 - z) n + z h
 * Saved for backward: r z n and h w_hn' + b_hn. With resetafter=false it is the form of the paper's first version,
 * with the reset gate before the product, n = tanh(x w_in' + b_in + (r h) w_hn' + b_hn), and r z n are saved.
 */
#include <math.h>

#include "nn/recurrent.h"
#include "tensor/vmath/act.h"

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

#define SUM_IN(in, g) ((in)[j] + bias[(g)*n + j])
#define SUM_HIDDEN(g) (hidden[(g)*n + j] + bias_hidden[(g)*n + j])

#define FORWARD(independent, real, squash, tangent) \
	{ \
		const int64_t n = row->n; \
		const real *restrict hidden = row->hidden, *restrict bias = row->bias_in; \
		const real *restrict bias_hidden = row->bias_hidden, *restrict before = row->before; \
		real *restrict kr = QL_PART(real, row->kept, 0), *restrict kz = QL_PART(real, row->kept, 1); \
		real *restrict kn = QL_PART(real, row->kept, 2), *restrict ks = QL_PART(real, row->kept, 3); \
		real *restrict h = row->h; \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real r = squash(SUM_IN(kr, 0) + SUM_HIDDEN(0)), z = squash(SUM_IN(kz, 1) + SUM_HIDDEN(1)); \
			real side = SUM_HIDDEN(2), new = tangent(SUM_IN(kn, 2) + r * side); \
\
			kr[j] = r; \
			kz[j] = z; \
			kn[j] = new; \
			ks[j] = side; \
			h[j] = (1 - z) * new + z *before[j]; \
		} \
	}
QL_SIMD(void, forward_f32, (const struct ql_cell_row *row), FORWARD(QL_INDEPENDENT, float, ql_sigmoid, ql_tanh))
static void forward_f64(const struct ql_cell_row *row) FORWARD(, double, sigmoid, tanh)

#define BACKWARD(independent, real) \
	{ \
		const int64_t n = row->n; \
		const real *restrict kept = row->kept, *restrict before = row->before; \
		const real *restrict dy = row->dy, *restrict dh = row->dh; \
		real *restrict carry = row->carry, *restrict in_r = QL_PART(real, row->din, 0); \
		real *restrict in_z = QL_PART(real, row->din, 1), *restrict in_n = QL_PART(real, row->din, 2); \
		real *restrict hidden_r = QL_PART(real, row->dhidden, 0), *restrict hidden_z = \
										  QL_PART(real, row->dhidden, 1); \
		real *restrict hidden_n = QL_PART(real, row->dhidden, 2); \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real r = kept[j], z = kept[n + j], new = kept[2 * n + j], side = kept[3 * n + j]; \
			real up = dy[j] + dh[j] + carry[j], dnew = up * (1 - z) * (1 - new *new); \
			real dr = dnew * side * (r * (1 - r)), dz = up * (before[j] - new) * (z * (1 - z)); \
\
			in_r[j] = hidden_r[j] = dr; \
			in_z[j] = hidden_z[j] = dz; \
			in_n[j] = dnew; \
			hidden_n[j] = dnew * r; \
			carry[j] = up * z; \
		} \
	}
	QL_SIMD(void, backward_f32, (const struct ql_cell_back *row), BACKWARD(QL_INDEPENDENT, float)) static void backward_f64(const struct ql_cell_back *row)
					BACKWARD(, double)

						static const struct ql_recurrent_cell cell = {.gates = 3,
							.width = 4,
							.split = true,
							.f32 = forward_f32,
							.f64 = forward_f64,
							.back_f32 = backward_f32,
							.back_f64 = backward_f64};

/* ---- the reset gate before the product ---- */

#define RESET(independent, real, squash) \
	{ \
		const int64_t n = row->n; \
		const real *restrict hidden = row->hidden, *restrict bias = row->bias_in; \
		const real *restrict bias_hidden = row->bias_hidden, *restrict before = row->before; \
		real *restrict kr = QL_PART(real, row->kept, 0), *restrict kz = QL_PART(real, row->kept, 1); \
		real *restrict reset = row->reset; \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real r = squash(SUM_IN(kr, 0) + SUM_HIDDEN(0)), z = squash(SUM_IN(kz, 1) + SUM_HIDDEN(1)); \
\
			kr[j] = r; \
			kz[j] = z; \
			reset[j] = r * before[j]; \
		} \
	}
QL_SIMD(void, reset_f32, (const struct ql_cell_row *row), RESET(QL_INDEPENDENT, float, ql_sigmoid))
static void reset_f64(const struct ql_cell_row *row) RESET(, double, sigmoid)

#define AFTER_RESET(independent, real, tangent) \
	{ \
		const int64_t n = row->n; \
		const real *restrict hidden = row->hidden, *restrict bias = row->bias_in; \
		const real *restrict bias_hidden = row->bias_hidden, *restrict before = row->before; \
		const real *restrict kz = QL_PART(const real, row->kept, 1); \
		real *restrict kn = QL_PART(real, row->kept, 2), *restrict h = row->h; \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real z = kz[j], new = tangent(SUM_IN(kn, 2) + SUM_HIDDEN(2)); \
\
			kn[j] = new; \
			h[j] = (1 - z) * new + z *before[j]; \
		} \
	}
	QL_SIMD(void, after_reset_f32, (const struct ql_cell_row *row), AFTER_RESET(QL_INDEPENDENT, float, ql_tanh)) static void after_reset_f64(const struct ql_cell_row *row) AFTER_RESET(,
				double, tanh)

#define AFTER_RESET_BACK(independent, real) \
	{ \
		const int64_t n = row->n; \
		const real *restrict kept = row->kept, *restrict before = row->before; \
		const real *restrict dy = row->dy, *restrict dh = row->dh; \
		real *restrict carry = row->carry, *restrict in_z = QL_PART(real, row->din, 1); \
		real *restrict in_n = QL_PART(real, row->din, 2); \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real z = kept[n + j], new = kept[2 * n + j], up = dy[j] + dh[j] + carry[j]; \
\
			in_z[j] = up * (before[j] - new) * (z * (1 - z)); \
			in_n[j] = up * (1 - z) * (1 - new *new); \
			carry[j] = up * z; \
		} \
	}
				QL_SIMD(void, after_reset_back_f32, (const struct ql_cell_back *row), AFTER_RESET_BACK(QL_INDEPENDENT, float)) static void after_reset_back_f64(const struct
							ql_cell_back *row) AFTER_RESET_BACK(, double)

#define RESET_BACK(independent, real) \
	{ \
		const int64_t n = row->n; \
		const real *restrict kept = row->kept, *restrict before = row->before, *restrict dreset = row->dreset; \
		real *restrict carry = row->carry, *restrict in_r = row->din; \
\
		independent for (int64_t j = 0; j < n; j++) \
		{ \
			real r = kept[j]; \
\
			in_r[j] = dreset[j] * before[j] * (r * (1 - r)); \
			carry[j] += dreset[j] * r; \
		} \
	}
							QL_SIMD(void, reset_back_f32, (const struct ql_cell_back *row), RESET_BACK(QL_INDEPENDENT, float)) static void reset_back_f64(const struct
										ql_cell_back *row) RESET_BACK(, double)

											static const
										struct ql_recurrent_cell early_cell = {
											.gates = 3,
											.width = 3,
											.early = 2,
											.f32 = after_reset_f32,
											.f64 = after_reset_f64,
											.back_f32 =
												after_reset_back_f32,
											.back_f64 =
												after_reset_back_f64,
											.reset_f32 = reset_f32,
											.reset_f64 = reset_f64,
											.reset_back_f32 =
												reset_back_f32,
											.reset_back_f64 =
												reset_back_f64};

static const struct ql_recurrent_cell *cell_of(const struct ql_call *call)
{
	return ql_call_bool(call, "resetafter", true) ? &cell : &early_cell;
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

static const struct ql_attr attrs[] = {QL_RECURRENT_ATTRS,
	{"resetafter", QL_ATTR_BOOL, 0, NULL,
		"the reset gate multiplies the product of h (default true), not h before it"},
	{NULL, QL_ATTR_END, 0, NULL, NULL}};

QL_RECURRENT_BACK(gru_back, "gru_back", cell);
QL_RECURRENT_BACK(early_back, "gru_back", early_cell);

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_recurrent_cell *c = cell_of(&b->call);

	return ql_recurrent_backward(b, c, c == &cell ? &gru_back : &early_back);
}

const struct ql_op ql_op_gru = {
	.doc = {.name = "gru",
		.usage =
			"y, h = nn.gru(x, h, w_ih, w_hh, b_ih, b_hh, {batchfirst=, states=, reverse=, lengths=, resetafter=})",
		.text = "A layer of gated recurrent units over whole sequences. " QL_RECURRENT_TEXT
			"h (batch, hidden) is the state before the first step, the result h that after the last. Gates are in the order "
			"r z n, and the reset gate multiplies the product of h with its bias, as in PyTorch; with resetafter=false it "
			"multiplies h before the product (ONNX's linear_before_reset=0, Keras's reset_after=False).",
		.example =
			"y, h = nn.gru(tensor.ones(1, 2, 2), tensor.zeros(1, 1), tensor.ones(3, 2), tensor.ones(3, 1))\n"
			"print(y:view(2), h:item() == y[1][2][1]:item())  --> float32(2)  0.1149  0.2070 true",
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
