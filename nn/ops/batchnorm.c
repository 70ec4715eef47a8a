/* SPDX-License-Identifier: MIT
 * Batch normalization (Ioffe and Szegedy 2015, arXiv 1502.03167): y = (x - mean) / sqrt(var + eps) * weight + bias
 * per channel (nn/channels.h). The backward reads x and the gradient once for all sums (including the statistics,
 * so that only x is saved) and once more for the result.
 */
#include <math.h>

#include "nn/channels.h"
#include "tensor/autograd/back.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"

/* ---- operands ---- */

static bool in_training(const struct ql_call *call)
{
	return ql_call_bool(call, "training", false);
}

static double epsilon(const struct ql_call *call)
{
	return ql_call_float(call, "eps", 1e-5);
}

static double at(const struct ql_tensor *t, int64_t c)
{
	return ql_tensor_get_f64(t, &c);
}

static void put(struct ql_tensor *t, int64_t c, double value)
{
	ql_dtypes[t->dtype].from_f64(t->storage->data, t->offset + c * t->stride[0], 1, 1, &value);
}

static enum ql_status check_vectors(struct ql_ctx *ctx, const struct ql_call *call)
{
	static const char *const names[] = {"x", "weight", "bias", "mean", "var"};
	const struct ql_tensor *x = call->in[0];
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < call->n_in; i++) {
		const struct ql_tensor *t = call->in[i];

		if (!ql_dtype_is_float(ql_operand_dtype(t)) || (t->q && i > 0))
			return ql_fail(ctx, QL_ERR_DTYPE, "batchnorm: %s: wanted floats, got %s", names[i],
				ql_tensor_text(t, text));
		if (i > 0 && (t->rank != 1 || t->shape[0] != x->shape[1]))
			return ql_fail(ctx, QL_ERR_SHAPE, "batchnorm: %s: wanted shape (%lld), got %s", names[i],
				(long long)x->shape[1], ql_shape_text(t->rank, t->shape, text));
	}
	return QL_OK;
}

static enum ql_status check_options(struct ql_ctx *ctx, const struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	double momentum = ql_call_float(call, "momentum", 0.1);
	int64_t m = x->shape[0];
	char text[QL_SHAPE_TEXT];

	for (int d = 2; d < x->rank; d++)
		m *= x->shape[d];
	if (!(epsilon(call) > 0))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "batchnorm: eps: wanted a number above 0, got %g", epsilon(call));
	if (!(momentum >= 0 && momentum <= 1))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "batchnorm: momentum: wanted a number from 0 to 1, got %g", momentum);
	if (call->n_in == 4 || (!in_training(call) && call->n_in < 5))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "batchnorm: wanted mean and var%s",
			call->n_in == 4 ? "" : ", or training=true");
	if (in_training(call) && m < 2 && x->shape[1] > 0)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"batchnorm: wanted more than one number per channel for training, got x %s",
			ql_shape_text(x->rank, x->shape, text));
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (x->rank < 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "batchnorm: x: wanted (n, c, …), got %s",
			ql_shape_text(x->rank, x->shape, text));
	status = check_vectors(ctx, call);
	if (!status)
		status = check_options(ctx, call);
	for (int i = 3; i < call->n_in && in_training(call) && !status; i++)
		status = ql_tape_check_write(ctx, "batchnorm", call->in[i], NULL);
	return status ? status : ql_infer_same(ctx, call);
}

/* ---- forward ---- */

/* Updates the running statistics with the batch's; their variance is unbiased unless unbiased=false. */
static void update(struct ql_channels *j, struct ql_tensor *mean, struct ql_tensor *var, double momentum, bool unbiased)
{
	double m = (double)j->n * (double)j->length;

	for (int64_t c = 0; c < j->channels; c++) {
		double now, spread;

		ql_channels_moments(j, c, &now, &spread);
		put(mean, c, (1 - momentum) * at(mean, c) + momentum * now);
		put(var, c, (1 - momentum) * at(var, c) + momentum * spread * (unbiased ? m / (m - 1) : 1));
	}
	mean->storage->version++;
	var->storage->version++;
}

/* The rounding error of a float32 mean may be large compared with the deviation: b compensates for it. */
static double rounded(const struct ql_channels *j, double mean)
{
	return j->wide ? mean : (double)(float)mean;
}

static void set_lines(struct ql_channels *j, const struct ql_call *call)
{
	for (int64_t c = 0; c < j->channels; c++) {
		double mean, var;

		if (in_training(call)) {
			ql_channels_moments(j, c, &mean, &var);
		} else {
			mean = at(call->in[3], c);
			var = at(call->in[4], c);
		}
		j->line[c] = (struct ql_channel_line){
			.mean = rounded(j, mean), .a = at(call->in[1], c) / sqrt(var + epsilon(call))};
		j->line[c].b = at(call->in[2], c) - (mean - j->line[c].mean) * j->line[c].a;
	}
}

static enum ql_status compute(struct ql_call *call, struct ql_channels *j)
{
	enum ql_status status = QL_OK;

	if (in_training(call))
		status = ql_channels_sum(j);
	if (status)
		return status;
	set_lines(j, call);
	status = ql_channels_apply(j);
	if (!status && in_training(call) && call->n_in == 5)
		update(j, call->in[3], call->in[4], ql_call_float(call, "momentum", 0.1),
			ql_call_bool(call, "unbiased", true));
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0], *x = NULL, *y = NULL;
	bool half = out->dtype != QL_float32 && out->dtype != QL_float64;
	struct ql_channels j;
	enum ql_status status = ql_channels_take(ctx, &j, &call->result[0]);

	call->path = ql_dtype_name(j.wide ? QL_float64 : QL_float32);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[0], j.wide ? QL_float64 : QL_float32, &x);
	if (!status && half)
		status = ql_tensor_new(ctx, QL_float32, out->rank, out->shape, &y);
	if (!status) {
		j.x = ql_tensor_data(x);
		j.out = ql_tensor_data(half ? y : out);
		status = compute(call, &j);
	}
	if (!status && half)
		status = ql_tensor_copy(ctx, out, y);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

/* ---- gradients: an op in no table ---- */

/* With xhat = (x - mean) r, r = 1 / sqrt(var + eps), and means over the m numbers of a channel, in training
 * dx = weight r (g - mean(g) - xhat mean(g xhat)); with given statistics dx = weight r g. */
static void set_gradients(struct ql_channels *j, const struct ql_call *call)
{
	bool training = in_training(call);
	double m = (double)j->n * (double)j->length;

	for (int64_t c = 0; c < j->channels; c++) {
		double mean, var, r, product;

		if (training) {
			ql_channels_moments(j, c, &mean, &var);
		} else {
			mean = at(call->in[3], c);
			var = at(call->in[4], c);
		}
		r = 1 / sqrt(var + epsilon(call));
		product = (j->sums[c].product - (mean - j->shift[c]) * j->sums[c].g) * r; /* sum of g xhat */
		put(call->out[1], c, product);
		put(call->out[2], c, j->sums[c].g);
		j->line[c] = (struct ql_channel_line){.mean = rounded(j, mean), .a = at(call->in[2], c) * r};
		if (training) {
			j->line[c].slope = product / m * r;
			j->line[c].b = j->sums[c].g / m - (mean - j->line[c].mean) * j->line[c].slope;
		}
	}
}

/* Operands: the gradient of the result, x, weight and, unless training, mean and var. Results: the gradients of x,
 * weight and bias. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[1];
	unsigned dtype = ql_dense_dtype(call->in[0]->dtype);

	(void)ctx;
	ql_result_set(call, 0, dtype, x->rank, x->shape);
	ql_result_set(call, 1, dtype, 1, &x->shape[1]);
	ql_result_set(call, 2, dtype, 1, &x->shape[1]);
	call->n_out = 3;
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL, *g = NULL;
	struct ql_channels j;
	enum ql_status status = ql_channels_take(ctx, &j, &call->result[0]);

	call->path = ql_dtype_name(call->result[0].dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_dense_of(ctx, call->in[1], call->result[0].dtype, &x);
	if (!status)
		status = ql_dense_of(ctx, call->in[0], call->result[0].dtype, &g);
	if (!status) {
		j.backward = true;
		j.x = ql_tensor_data(x);
		j.g = ql_tensor_data(g);
		j.out = ql_tensor_data(call->out[0]);
		status = ql_channels_sum(&j);
	}
	if (!status) {
		set_gradients(&j, call);
		status = ql_channels_apply(&j);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_attr attrs[] = {
	{"eps", QL_ATTR_FLOAT, 0, NULL, "added to the variance (default 1e-5)"},
	{"training", QL_ATTR_BOOL, 0, NULL, "use the batch's statistics and update mean and var (default false)"},
	{"momentum", QL_ATTR_FLOAT, 0, NULL, "share of the batch in the new mean and var (default 0.1)"},
	{"unbiased", QL_ATTR_BOOL, 0, NULL,
		"var is updated with the variance over m - 1 (default true), else over m, as in ONNX"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_op batchnorm_back = {
	.doc = {.name = "batchnorm_back", .attrs = attrs},
	.arity_min = 3,
	.arity_max = 5,
	.outputs = 3,
	.flags = QL_NATIVE,
	.infer = back_infer,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *in[5] = {ql_back_grad(b, 0), ql_back_in(b, 0), ql_back_in(b, 1)}, *out[QL_MAX_OUT];
	bool training = in_training(&b->call);

	for (int i = 3; i < 5 && !training; i++)
		in[i] = ql_back_in(b, i);
	ql_back_all(b, &batchnorm_back, in, training ? 3 : 5, NULL, out);
	for (int i = 0; i < 3; i++)
		ql_back_give(b, i, out[i]);
	return b->status;
}

/* In training, mean and var are updated in place and not read by backward. */
static uint32_t saves(const struct ql_call *call)
{
	return QL_SAVE(0) | QL_SAVE(1) | (in_training(call) ? 0 : QL_SAVE(3) | QL_SAVE(4));
}

/* mean and var */
static uint32_t writes(const struct ql_call *call)
{
	return in_training(call) && call->n_in == 5 ? QL_SAVE(3) | QL_SAVE(4) : 0;
}

const struct ql_op ql_op_batchnorm = {
	.doc = {.name = "batchnorm",
		.usage = "nn.batchnorm(x, weight, bias, mean, var, {training=, momentum=, unbiased=, eps=})",
		.text = "Normalizes each channel of x (n, c, …): (x - mean) / sqrt(var + eps) * weight + bias, with vectors of c "
			"numbers. With training=true mean and (biased) variance are those of the batch, and mean and var are "
			"changed in place: (1 - momentum) of the old plus momentum of the batch's, with the unbiased variance, as "
			"in PyTorch; they may then be left out. Otherwise mean and var are used as they are.",
		.example =
			"x, one, zero = tensor{{1}, {3}}, tensor{1}, tensor{0}\n"
			"print(nn.batchnorm(x, one, zero, {training=true}):view(2))  --> float32(2)  -1.0000   1.0000\n"
			"print(nn.batchnorm(x, one, zero, tensor{1}, tensor{4}):view(2))  --> float32(2)  0.0000  1.0000",
		.attrs = attrs},
	.arity_min = 3,
	.arity_max = 5,
	.flags = QL_FUNCTION | QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = saves,
	.writes = writes,
};
