/* SPDX-License-Identifier: MIT
 * The kernel norm_codes against the integer path of the core (quant/paths/norm_int.c): equal codes of layernorm and rmsnorm, for rows of
 * any length, views, codes of 4, 8 and 16 bits, with and without weight and bias, and scales for which eps has few bits.
 */
#include "gpu/device.h"
#include "quant/ranges/quantize.h"
#include "tensor/remote.h"
#include "tensor/view.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;
static struct ql_ctx *ctx;
static const struct ql_device *device;

extern const struct ql_op ql_op_layernorm, ql_op_rmsnorm;

/* The test cannot go on without what it sets up. */
static void need(enum ql_status status)
{
	if (status) {
		printf("%s\n", ctx->err);
		exit(1);
	}
}

static struct ql_tensor *floats(int rank, const int64_t *shape, float scale)
{
	struct ql_tensor *t = NULL;

	need(ql_tensor_new(ctx, QL_float32, rank, shape, &t));
	for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
		((float *)ql_tensor_data(t))[i] = gpu_draw_float() * scale;
	return t;
}

static struct ql_tensor *codes(const char *text, int64_t rows, int64_t columns, float scale)
{
	struct ql_tensor *x = floats(2, (const int64_t[]){rows, columns}, scale), *q = NULL;
	struct ql_spec spec;

	need(ql_spec_parse(ctx, text, &spec));
	need(ql_quantize(ctx, x, &spec, &q));
	ql_tensor_release(ctx, x);
	return q;
}

static struct ql_call apply(const struct ql_op *op, struct ql_tensor **in, int n, const char *out)
{
	static struct ql_value attr[8];
	static struct ql_spec spec;
	struct ql_call call = {.op = op, .in = in, .n_in = n, .attr = attr};
	const struct ql_attr *a = op->doc.attrs;

	memset(attr, 0, sizeof(attr));
	need(ql_spec_parse(ctx, out, &spec));
	for (int i = 0; a && a[i].type != QL_ATTR_END; i++)
		if (!strcmp(a[i].name, "out"))
			attr[i] = (struct ql_value){.set = true, .spec = &spec};
	need(ql_op_apply(ctx, &call));
	return call;
}

static void expect(const struct ql_tensor *got, const struct ql_tensor *want)
{
	for (int64_t i = 0; i < ql_tensor_nelem(want); i++)
		if (!CHECK(ql_tensor_at_f64(got, i) == ql_tensor_at_f64(want, i), "code %d: %g, wanted %g", (int)i,
			    ql_tensor_at_f64(got, i), ql_tensor_at_f64(want, i)))
			return;
}

/* in: codes, weight, bias; of layernorm all, of rmsnorm the first two at most */
static void compare(struct ql_tensor **in, int n, const char *out)
{
	const struct ql_op *op = n == 3 || gpu_draw() % 2 ? &ql_op_layernorm : &ql_op_rmsnorm;
	struct ql_tensor *there[3] = {NULL}, *back = NULL, *plain[2];
	struct ql_call want = apply(op, in, n, out), got;

	for (int i = 0; i < n; i++)
		need(ql_tensor_to(ctx, in[i], device, &there[i]));
	got = apply(op, there, n, out);
	CHECK(!strcmp(want.kernel, "norm_int") && !strcmp(got.kernel, "norm_codes") && !strcmp(got.path, "integer"),
		"%s and %s, %s", want.kernel, got.kernel, got.reason ? got.reason : "");
	need(ql_tensor_to(ctx, got.out[0], &ql_device_cpu, &back));
	need(ql_tensor_alias(ctx, back, &plain[0]));
	need(ql_tensor_alias(ctx, want.out[0], &plain[1]));
	for (int i = 0; i < 2; i++) {
		ql_qparams_release(ctx, plain[i]->q);
		plain[i]->q = NULL;
	}
	expect(plain[0], plain[1]);
	for (int i = 0; i < 2; i++)
		ql_tensor_release(ctx, plain[i]);
	for (int i = 0; i < n; i++)
		ql_tensor_release(ctx, there[i]);
	ql_tensor_release(ctx, back);
	ql_tensor_release(ctx, got.out[0]);
	ql_tensor_release(ctx, want.out[0]);
}

static void try_rows(const char *spec, int64_t rows, int64_t columns, float scale)
{
	static const char *const outs[] = {"int8 scale=0.03", "uint8 scale=0.02 zero_point=120", "int16 scale=0.0003"};
	struct ql_tensor *in[3] = {
		codes(spec, rows, columns, scale), floats(1, &columns, 0.2f), floats(1, &columns, 0.1f)};
	struct ql_tensor *turned = codes(spec, columns, rows, scale), *view = NULL, *given[3];

	need(ql_view_permute(ctx, "test", turned, (const int[]){1, 0}, &view));
	for (int n = 1; n <= 3; n++)
		for (int o = 0; o < 3; o++) {
			CASE("%s, %d rows of %d times %g, %d operands, %s", spec, (int)rows, (int)columns,
				(double)scale, n, outs[o]);
			compare(in, n, outs[o]);
			memcpy(given, in, sizeof(given));
			given[0] = view;
			if (!ql_dtype_is_packed(view->dtype))
				compare(given, n, outs[o]);
		}
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, in[i]);
	ql_tensor_release(ctx, turned);
	ql_tensor_release(ctx, view);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_load(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	need(ql_gpu_open(ctx, g.v, 0, "cudaemu", &device));
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		try_rows("int8", 5, 1, 1);
		try_rows("uint8", 17, 31, 1);
		try_rows("int8", 3, 32, 1e-3f);
		try_rows("uint8", 9, 130, 50);
		try_rows("int16", 4, 77, 1);
		try_rows("int4", 6, 64, 1);
	}
	ql_ctx_free(ctx);
	return check_end();
}
