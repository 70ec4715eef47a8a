/* SPDX-License-Identifier: MIT
 * Lists are cut into calls of at most ITEMS tensors. The device gets dense tensors: what is not is copied there, and copied
 * back behind the step.
 */
#include "nn/optimizer_device.h"

#include "tensor/device_run.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"

#define ITEMS 16 /* of a step; as in gpu/kernels/optimizer.cu */
#define STATES QL_TRAINED_STATES
#define TENSORS (2 + STATES) /* of an item */

static enum ql_status check_place(
	struct ql_ctx *ctx, const char *what, const struct ql_device *device, const struct ql_tensor *t)
{
	const struct ql_device *other = t ? ql_tensor_device(t) : device;

	if (other == device)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted all tensors on one device, got %s and %s; use :to '%s'", what,
		device->doc.name, other->doc.name, device->remote ? device->doc.name : other->doc.name);
}

enum ql_status ql_optimizer_place(
	struct ql_ctx *ctx, const char *what, int n, const struct ql_trained *list, bool *remote)
{
	const struct ql_device *device = n ? ql_tensor_device(list[0].value) : &ql_device_cpu;
	enum ql_status status = QL_OK;

	*remote = device->remote;
	for (int i = 0; i < n && !status; i++) {
		status = check_place(ctx, what, device, list[i].value);
		if (!status)
			status = check_place(ctx, what, device, list[i].gradient);
		for (int s = 0; s < STATES && !status; s++)
			status = check_place(ctx, what, device, list[i].state[s]);
	}
	return status;
}

/* An op of no table, without a tape. */
static enum ql_status apply(struct ql_ctx *ctx, struct ql_call *call)
{
	enum ql_status status;

	ctx->nograd++;
	status = ql_op_apply(ctx, call);
	ctx->nograd--;
	return status;
}

/* ---- steps ---- */

/* Gives the tensors of an item in dense memory. */
static enum ql_status dense_item(struct ql_ctx *ctx, const struct ql_trained *t, struct ql_trained *out)
{
	enum ql_status status = ql_tensor_contiguous(ctx, t->value, &out->value);

	if (!status && t->gradient != t->value)
		status = ql_tensor_contiguous(ctx, t->gradient, &out->gradient);
	for (int k = 0; k < STATES; k++)
		out->state[k] = t->state[k];
	return status;
}

/* The next items. */
static enum ql_status step_some(struct ql_ctx *ctx, const struct ql_op *op, int n, const struct ql_trained *dense,
	const double *numbers, int each)
{
	struct ql_tensor *in[ITEMS * TENSORS];
	struct ql_value attr = {.set = true, .numbers = {n * each, numbers}};
	struct ql_call call = {.op = op, .in = in, .attr = &attr};

	for (int i = 0; i < n; i++) {
		in[call.n_in++] = dense[i].value;
		if (dense[i].gradient)
			in[call.n_in++] = dense[i].gradient;
		for (int k = 0; k < STATES; k++)
			if (dense[i].state[k])
				in[call.n_in++] = dense[i].state[k];
	}
	return apply(ctx, &call);
}

/* Behind the step: the bytes have changed; copies go back. */
static enum ql_status finish_item(struct ql_ctx *ctx, const struct ql_trained *t, const struct ql_trained *dense)
{
	t->value->storage->version++;
	for (int k = 0; k < STATES; k++)
		if (t->state[k])
			t->state[k]->storage->version++;
	return dense->value == t->value ? QL_OK : ql_tensor_copy(ctx, t->value, dense->value);
}

enum ql_status ql_optimizer_step_on(
	struct ql_ctx *ctx, const struct ql_op *op, int n, struct ql_trained *list, const double *numbers, int each)
{
	struct ql_trained *dense = ql_scratch_array(ctx, n, sizeof(*dense));
	enum ql_status status = dense ? QL_OK : QL_ERR_MEMORY;
	int made = 0;

	for (; made < n && !status; made++) {
		dense[made] = (struct ql_trained){.step = 0};
		status = dense_item(ctx, &list[made], &dense[made]);
	}
	ctx->finishing = true; /* all or nothing */
	for (int i = 0; i < n && !status; i += ITEMS)
		status = step_some(
			ctx, op, n - i < ITEMS ? n - i : ITEMS, dense + i, numbers + (ptrdiff_t)i * each, each);
	for (int i = 0; i < n && !status; i++)
		status = finish_item(ctx, &list[i], &dense[i]);
	ctx->finishing = false;
	for (int i = 0; i < made; i++) {
		ql_tensor_release(ctx, dense[i].value);
		ql_tensor_release(ctx, dense[i].gradient);
	}
	return status;
}

/* ---- rules without a kernel ---- */

enum ql_status ql_optimizer_fetch(
	struct ql_ctx *ctx, const char *what, int n, const struct ql_trained *list, struct ql_trained **host)
{
	struct ql_trained *made = ql_scratch_array(ctx, n, sizeof(*made));
	enum ql_status status = ql_device_fallback(ctx, what, ql_tensor_device(list[0].value), "it has no kernel");

	*host = made;
	if (!made)
		return QL_ERR_MEMORY;
	for (int i = 0; i < n; i++)
		made[i] = (struct ql_trained){.step = list[i].step};
	for (int i = 0; i < n && !status; i++) {
		status = ql_tensor_to(ctx, list[i].value, &ql_device_cpu, &made[i].value);
		if (!status)
			status = ql_tensor_to(ctx, list[i].gradient, &ql_device_cpu, &made[i].gradient);
		for (int k = 0; k < STATES && !status; k++)
			if (list[i].state[k])
				status = ql_tensor_to(ctx, list[i].state[k], &ql_device_cpu, &made[i].state[k]);
	}
	return status ? status : ql_remote_note(ctx, what, ql_tensor_device(list[0].value), "it has no kernel");
}

enum ql_status ql_optimizer_return(
	struct ql_ctx *ctx, int n, const struct ql_trained *list, struct ql_trained *host, enum ql_status status)
{
	ctx->finishing = true; /* all or nothing */
	for (int i = 0; i < n && host; i++) {
		if (!status)
			status = ql_tensor_copy(ctx, list[i].value, host[i].value);
		for (int k = 0; k < STATES && !status; k++)
			if (list[i].state[k])
				status = ql_tensor_copy(ctx, list[i].state[k], host[i].state[k]);
	}
	ctx->finishing = false;
	for (int i = 0; i < n && host; i++) {
		ql_tensor_release(ctx, host[i].value);
		ql_tensor_release(ctx, host[i].gradient);
		for (int k = 0; k < STATES; k++)
			ql_tensor_release(ctx, host[i].state[k]);
	}
	return status;
}

/* ---- norms ---- */

static enum ql_status squares_some(struct ql_ctx *ctx, const struct ql_op *op, int n, struct ql_tensor *const *list,
	struct ql_tensor *sums, int64_t first)
{
	struct ql_tensor *in[QL_DEVICE_OPERANDS] = {NULL};
	struct ql_value attr = {.set = true, .i = first};
	struct ql_call call = {.op = op, .in = in, .n_in = n + 1, .attr = &attr};
	enum ql_status status = QL_OK;
	int made = 0;

	while (made < n && !status) {
		status = ql_tensor_contiguous(ctx, list[made], &in[made]);
		made += !status;
	}
	in[n] = sums;
	if (!status)
		status = apply(ctx, &call);
	sums->storage->version++;
	for (int i = 0; i < made; i++)
		ql_tensor_release(ctx, in[i]);
	return status;
}

/* Waits for the one element of t. */
static enum ql_status read_one(struct ql_ctx *ctx, struct ql_tensor *t, double *out)
{
	struct ql_tensor *host;
	enum ql_status status = ql_tensor_host(ctx, t, &host);

	if (!status)
		*out = ql_tensor_at_f64(host, 0);
	ql_tensor_release(ctx, host);
	return status;
}

enum ql_status ql_optimizer_norm_on(struct ql_ctx *ctx, const struct ql_op *squares, const struct ql_op *root, int n,
	struct ql_tensor *const *list, int64_t chunk, double *norm)
{
	const struct ql_device *device = ql_tensor_device(list[0]);
	struct ql_tensor *sums, *out = NULL;
	struct ql_call call = {.op = root, .in = &sums, .n_in = 1};
	int64_t chunks = 0, first = 0;
	enum ql_status status;

	for (int i = 0; i < n; i++)
		chunks += ql_ceil_div(ql_tensor_nelem(list[i]), chunk);
	status = ql_tensor_new_on(ctx, device, QL_float64, 1, &chunks, &sums);
	if (status)
		return status;
	for (int i = 0, some; i < n && !status; i += some) {
		some = n - i < QL_DEVICE_OPERANDS - 1 ? n - i : QL_DEVICE_OPERANDS - 1;
		status = squares_some(ctx, squares, some, list + i, sums, first);
		for (int k = i; k < i + some; k++)
			first += ql_ceil_div(ql_tensor_nelem(list[k]), chunk);
	}
	if (!status)
		status = apply(ctx, &call);
	if (!status) {
		out = call.out[0];
		status = read_one(ctx, out, norm);
	}
	ql_tensor_release(ctx, out);
	ql_tensor_release(ctx, sums);
	return status;
}
