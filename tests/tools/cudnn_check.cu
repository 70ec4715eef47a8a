/* SPDX-License-Identifier: MIT
 * conv_cudnn with a library that convolves on the host (cudnn_mock.c): geometry, views, groups, bias, functions of the result and
 * the gradients, in all three dtypes. The numbers are small integers, so every order of sums gives the same; products of float16 are
 * so large that a bias must be added before the sum is rounded.
 */
#include <cuda_runtime.h>

#include "gpu/kernels/conv_cudnn.cu"

#include <stdlib.h>

#include "tests/check.h"

/* ---- the device ---- */

dim3 ql_emu_thread, ql_emu_block, ql_emu_block_dim, ql_emu_grid_dim;
unsigned char *ql_emu_shared;
int ql_emu_bug;

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}
cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}
/* All threads of a block in turn. */
cudaError_t ql_emu_launch(dim3 grid, dim3 block, size_t, bool, cudaStream_t, std::function<void()> body)
{
	ql_emu_grid_dim = grid;
	ql_emu_block_dim = block;
	for (ql_emu_block = {0, 0, 0}; ql_emu_block.x < grid.x; ql_emu_block.x++)
		for (ql_emu_thread = {0, 0, 0}; ql_emu_thread.x < block.x; ql_emu_thread.x++)
			body();
	return cudaSuccess;
}

/* ---- calls ---- */

#define MOST 20000
#define STREAM ((cudaStream_t)0x40) /* as cudnn_mock.c wants it */

struct shape {
	int64_t n, c, h, w, o, kh, kw, pad[2], stride[2], dilation[2], groups;
};

static const char *const dtypes[] = {"float32", "float16", "bfloat16"};
static const char *const ops[] = {"conv2d", "conv2d_input", "conv2d_weight"};
alignas(16) static unsigned char x[4 * MOST], w[4 * MOST], y[4 * MOST], got[4 * MOST];
alignas(16) static unsigned char bias[4 * 64], room[4096];
static float sum[MOST];

static ql_gpu_tensor images(void *at, const char *dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
	ql_gpu_tensor t = {};

	t.at = at;
	t.dtype = dtype;
	t.rank = 4;
	t.shape[0] = a, t.shape[1] = b, t.shape[2] = c, t.shape[3] = d;
	t.stride[0] = b * c * d, t.stride[1] = c * d, t.stride[2] = d, t.stride[3] = 1;
	return t;
}

/* The same with the channels of a pixel next to each other, or with gaps between rows. */
static void rearrange(ql_gpu_tensor *t, int form)
{
	int64_t b = t->shape[1], c = t->shape[2], d = t->shape[3];

	if (form == 1)
		t->stride[0] = b * c * d, t->stride[1] = 1, t->stride[2] = d * b, t->stride[3] = b;
	else if (form == 2)
		t->stride[0] = b * c * (d + 3) + 5, t->stride[1] = c * (d + 3), t->stride[2] = d + 3;
}

static float at(const ql_gpu_tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return ql_load_f32(
		ql_element_of(t.dtype), t.at, a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3]);
}

static int64_t dense(const ql_gpu_tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return ((a * t.shape[1] + b) * t.shape[2] + c) * t.shape[3] + d;
}

/* sum: of the products of each element of the result */
static void add_products(
	const shape &s, const ql_gpu_tensor &tx, const ql_gpu_tensor &tw, const ql_gpu_tensor &ty, int which)
{
	int64_t outputs = s.o / s.groups, channels = s.c / s.groups;

	memset(sum, 0, sizeof(sum));
	for (int64_t n = 0; n < s.n; n++)
		for (int64_t o = 0; o < s.o; o++)
			for (int64_t i = 0; i < ty.shape[2] * ty.shape[3]; i++)
				for (int64_t k = 0; k < channels * s.kh * s.kw; k++) {
					int64_t c = k / (s.kh * s.kw), p = k / s.kw % s.kh, q = k % s.kw;
					int64_t row = i / ty.shape[3] * s.stride[0] - s.pad[0] + p * s.dilation[0];
					int64_t column = i % ty.shape[3] * s.stride[1] - s.pad[1] + q * s.dilation[1];
					int64_t channel = o / outputs * channels + c;
					int64_t r = i / ty.shape[3], e = i % ty.shape[3];

					if (row < 0 || row >= s.h || column < 0 || column >= s.w)
						continue;
					if (which == FORWARD)
						sum[dense(ty, n, o, r, e)] +=
							at(tx, n, channel, row, column) * at(tw, o, c, p, q);
					else if (which == INPUT)
						sum[dense(tx, n, channel, row, column)] +=
							at(ty, n, o, r, e) * at(tw, o, c, p, q);
					else
						sum[dense(tw, o, c, p, q)] +=
							at(ty, n, o, r, e) * at(tx, n, channel, row, column);
				}
}

/* What a call has, in the order of its op. */
struct request {
	ql_gpu_tensor in[3], out;
	ql_gpu_option option[5];
	ql_gpu_call call;
};

static void ask(request *r, const shape &s, const char *dtype, int which, int form, const char *act)
{
	int64_t kernel[2] = {s.dilation[0] * (s.kh - 1) + 1, s.dilation[1] * (s.kw - 1) + 1};
	int64_t down = (s.h + 2 * s.pad[0] - kernel[0]) / s.stride[0] + 1;
	int64_t across = (s.w + 2 * s.pad[1] - kernel[1]) / s.stride[1] + 1;
	ql_gpu_tensor tx = images(x, dtype, s.n, s.c, s.h, s.w), tw = images(w, dtype, s.o, s.c / s.groups, s.kh, s.kw),
		      ty = images(y, dtype, s.n, s.o, down, across);

	*r = request();
	r->option[0] = {"pad", QL_GPU_OPTION_INTEGERS, 2, 0, 0, NULL, s.pad, NULL};
	r->option[1] = {"stride", QL_GPU_OPTION_INTEGERS, 2, 0, 0, NULL, s.stride, NULL};
	r->option[2] = {"dilation", QL_GPU_OPTION_INTEGERS, 2, 0, 0, NULL, s.dilation, NULL};
	r->option[3] = {"groups", QL_GPU_OPTION_INTEGER, 0, s.groups, 0, NULL, NULL, NULL};
	r->option[4] = {"act", QL_GPU_OPTION_TEXT, 0, 0, 0, act, NULL, NULL};
	rearrange(&tx, which == INPUT ? 0 : form);
	rearrange(&ty, which == FORWARD ? 0 : form);
	r->in[0] = which == FORWARD ? tx : ty;
	r->in[1] = which == WEIGHT ? tx : tw;
	r->out = which == FORWARD ? ty : which == INPUT ? tx : tw;
	r->out.at = got;
	r->call.op = ops[which];
	r->call.in = r->in;
	r->call.n_in = 2;
	r->call.out = &r->out;
	r->call.n_out = 1;
	r->call.options = r->option;
	r->call.n_options = act ? 5 : 4;
	r->call.workspace = room;
}

static void with_bias(request *r, const char *dtype)
{
	r->in[2].at = bias;
	r->in[2].dtype = dtype;
	r->in[2].rank = 1;
	r->in[2].shape[0] = r->in[1].shape[0];
	r->in[2].stride[0] = 1;
	r->call.n_in = 3;
}

/* The sum as an element of this dtype, after the bias and the function of the call. */
static float wanted(const request &r, const char *dtype, int64_t i)
{
	int64_t channel = i / (r.out.shape[2] * r.out.shape[3]) % r.out.shape[1];
	uint32_t bits = 0;
	float value = sum[i];

	if (r.call.n_in > 2)
		value += ql_load_f32(ql_element_of(r.in[2].dtype), bias, channel);
	if (r.call.n_options > 4)
		value = value < 0 ? 0 : value > 6 && !strcmp(r.option[4].s, "relu6") ? 6 : value;
	ql_store_small(ql_element_of(dtype), &bits, 0, value);
	return ql_load_f32(ql_element_of(dtype), &bits, 0);
}

static void fill(int element, void *to, int64_t n, int64_t by, int64_t modulo, float scale)
{
	for (int64_t i = 0; i < n; i++)
		ql_store_small(element, to, i, (float)(i * by % modulo - modulo / 2) * scale);
}

static void expect(const shape &s, const char *dtype, int which, int form, const char *act, const char *biased)
{
	request r;
	ql_gpu_plan p = {};
	ql_gpu_place place = {};

	ask(&r, s, dtype, which, form, act);
	if (biased)
		with_bias(&r, biased);
	place.stream = STREAM;
	place.processors = 2;
	memset(got, 0xAB, sizeof(got));
	if (!CHECK(ql_gpu_kernel_conv_cudnn.plan(&r.call, &p), "%s refused: %s", ops[which], p.why))
		return;
	CHECK(p.workspace >= 1000 && p.workspace <= sizeof(room) && !strcmp(p.path, dtype), "%d bytes, path %s",
		(int)p.workspace, p.path);
	if (!CHECK(!ql_gpu_kernel_conv_cudnn.run(&place, &r.call), "%s: run", ops[which]))
		return;
	add_products(s,
		which == FORWARD ? r.in[0]
		: which == INPUT ? r.out
				 : r.in[1],
		which == WEIGHT ? r.out : r.in[1], which == FORWARD ? r.out : r.in[0], which);
	for (int64_t i = 0; i < ql_count(&r.out); i++) {
		float is = ql_load_f32(ql_element_of(dtype), got, i), should = wanted(r, dtype, i);

		if (!CHECK(is == should, "%s %s, form %d: element %d: %g, wanted %g", ops[which], dtype, form, (int)i,
			    (double)is, (double)should))
			return;
	}
}

static bool refuses(const request &r, const char *why)
{
	ql_gpu_plan p = {};

	return CHECK(
		!ql_gpu_kernel_conv_cudnn.plan(&r.call, &p) && strstr(p.why, why), "wanted '%s', got '%s'", why, p.why);
}

static void refusals()
{
	const shape s = {1, 2, 5, 5, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1};
	const int64_t uneven[] = {1, 0, 1, 1};
	ql_gpu_place place = {};
	ql_gpu_plan p = {};
	request r;

	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.call.flags = QL_GPU_ORDERED;
	refuses(r, "in order");
	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.option[0].ints = uneven;
	r.option[0].n = 4;
	r.out = images(got, "float32", s.n, s.o, s.h - 1, s.w);
	refuses(r, "padding");
	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.in[1].dtype = "float16";
	refuses(r, "all the same");
	r.in[0].dtype = r.in[1].dtype = r.out.dtype = "float64";
	refuses(r, "wanted float32");
	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.in[0].at = x + 4;
	refuses(r, "16 bytes");
	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.in[0].stride[0] = r.in[0].stride[1] = 0;
	refuses(r, "does not take");
	ask(&r, s, "float16", FORWARD, 0, "gelu");
	refuses(r, "rounded sum");
	ask(&r, s, "float16", FORWARD, 0, NULL);
	with_bias(&r, "float32");
	refuses(r, "bias");
	ask(&r, s, "float32", FORWARD, 0, NULL);
	r.in[0].shape[0] = r.out.shape[0] = 0;
	refuses(r, "does not take");
	ask(&r, {1, 2, 6, 6, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1}, "float32", FORWARD, 0, NULL);
	setenv("MOCK_REFUSE", "1", 1);
	refuses(r, "no algorithm");
	unsetenv("MOCK_REFUSE");
	CHECK(ql_gpu_kernel_conv_cudnn.plan(&r.call, &p), "%s", p.why);
	place.stream = STREAM;
	setenv("MOCK_FAIL", "1", 1);
	CHECK(ql_gpu_kernel_conv_cudnn.run(&place, &r.call) == cudaErrorNotSupported, "a failure is reported");
	unsetenv("MOCK_FAIL");
}

int main()
{
	static const shape shapes[] = {
		{1, 1, 1, 1, 1, 1, 1, {0, 0}, {1, 1}, {1, 1}, 1},
		{2, 3, 7, 9, 5, 3, 2, {1, 0}, {2, 1}, {1, 2}, 1},
		{3, 4, 6, 8, 6, 3, 3, {1, 2}, {1, 3}, {2, 1}, 2},
		{1, 5, 9, 4, 5, 3, 1, {2, 0}, {1, 1}, {1, 1}, 5},
		{9, 2, 1, 12, 3, 1, 5, {0, 2}, {1, 2}, {1, 1}, 1},
	};

	for (const char *dtype : dtypes) {
		int element = ql_element_of(dtype);
		float scale = element == QL_E_float16 ? 64 : 1;

		fill(element, x, MOST, 7919, 15, scale);
		fill(element, w, MOST, 104729, 13, 1);
		fill(element, y, MOST, 6101, 11, scale);
		fill(element, bias, 64, 7, 9, 1);
		for (const shape &s : shapes) {
			CASE("%s: %d images of %d x %d x %d", dtype, (int)s.n, (int)s.c, (int)s.h, (int)s.w);
			for (int which = 0; which < 3; which++)
				for (int form = 0; form < 3; form++)
					expect(s, dtype, which, form, NULL, NULL);
			for (const char *act : {(const char *)NULL, "relu", "relu6"})
				for (int form = 0; form < 3; form++)
					expect(s, dtype, FORWARD, form, act, dtype);
			expect(s, dtype, FORWARD, 0, "relu", NULL);
		}
	}
	CASE("a bias of float16");
	fill(QL_E_float32, x, MOST, 7919, 15, 1);
	fill(QL_E_float32, w, MOST, 104729, 13, 1);
	fill(QL_E_float16, bias, 64, 7, 9, 0.5f);
	expect(shapes[1], "float32", FORWARD, 0, "relu", "float16");
	CASE("refusals");
	refusals();
	return check_end();
}
