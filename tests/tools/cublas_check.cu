/* SPDX-License-Identifier: MIT
 * gemm_cublas with a library that multiplies on the host (cublas_mock.c): operands in every layout, batches, bias, relu. The numbers
 * are small integers, so every order of sums gives the same.
 */
#include <cuda_runtime.h>

/* Also in library.c (gemm_cublas.sh): there may be no device. */
extern "C" cudaError_t only_device(int *device)
{
	*device = 0;
	return cudaSuccess;
}
#define cudaGetDevice only_device
#include "gpu/kernels/gemm_cublas.cu"

#include <stdlib.h>

#include "tests/check.h"

#define MOST 20000

static float a[MOST], b[MOST], bias[200], got[MOST];

/* (batches, rows, columns) with rows or columns next to each other; `pitch` more elements between lines. */
static ql_gpu_tensor operand(float *at, int64_t batches, int64_t rows, int64_t columns, bool turned, int64_t pitch, bool repeated)
{
	ql_gpu_tensor t = {};
	int64_t line = (turned ? rows : columns) + pitch;

	t.at = at;
	t.dtype = "float32";
	t.rank = 3;
	t.shape[0] = batches;
	t.shape[1] = rows;
	t.shape[2] = columns;
	t.stride[0] = repeated ? 0 : line * (turned ? columns : rows);
	t.stride[1] = turned ? 1 : line;
	t.stride[2] = turned ? line : 1;
	return t;
}

static float element(const ql_gpu_tensor &t, int64_t i, int64_t row, int64_t column)
{
	return static_cast<const float *>(t.at)[i * t.stride[0] + row * t.stride[1] + column * t.stride[2]];
}

static void expect(const ql_gpu_call &call, const ql_gpu_tensor &x, const ql_gpu_tensor &y, bool turned, bool relu)
{
	int64_t m = x.shape[1], n = turned ? y.shape[1] : y.shape[2], k = x.shape[2];
	ql_gpu_plan p = {};
	ql_gpu_place place = {};

	if (!CHECK(ql_gpu_kernel_gemm_cublas.plan(&call, &p), "refused: %s", p.why))
		return;
	memset(got, 0xAB, sizeof(got));
	CHECK(!ql_gpu_kernel_gemm_cublas.run(&place, &call), "run");
	for (int64_t i = 0; i < x.shape[0]; i++)
		for (int64_t r = 0; r < m; r++)
			for (int64_t c = 0; c < n; c++) {
				float sum = call.n_in > 2 ? bias[c] : 0;

				for (int64_t j = 0; j < k; j++)
					sum += element(x, i, r, j) * (turned ? element(y, i, c, j) : element(y, i, j, c));
				sum = relu && sum < 0 ? 0 : sum;
				if (!CHECK(got[(i * m + r) * n + c] == sum, "batch %d, row %d, column %d: %g, wanted %g",
					    (int)i, (int)r, (int)c, (double)got[(i * m + r) * n + c], (double)sum))
					return;
			}
}

static void matmul(int64_t batches, int64_t m, int64_t n, int64_t k, int form)
{
	ql_gpu_tensor in[2] = {operand(a, batches, m, k, form & 1, form & 4 ? 3 : 0, form & 8),
		operand(b, batches, k, n, form & 2, form & 4 ? 1 : 0, form & 16)};
	ql_gpu_tensor out = operand(got, batches, m, n, false, 0, false);
	ql_gpu_call call = {};

	call.op = "matmul";
	call.in = in;
	call.n_in = 2;
	call.out = &out;
	call.n_out = 1;
	expect(call, in[0], in[1], false, false);
}

static void linear(int64_t m, int64_t n, int64_t k, int form)
{
	ql_gpu_tensor in[3] = {operand(a, 1, m, k, form & 1, form & 4 ? 3 : 0, false),
		operand(b, 1, n, k, form & 2, form & 4 ? 1 : 0, false), {}};
	ql_gpu_tensor weights = in[1], out = operand(got, 1, m, n, false, 0, false);
	ql_gpu_option act = {"act", QL_GPU_OPTION_TEXT, 0, 0, 0, "relu"};
	ql_gpu_call call = {};

	in[1].rank = 2;
	memmove(in[1].shape, in[1].shape + 1, 2 * sizeof(int64_t));
	memmove(in[1].stride, in[1].stride + 1, 2 * sizeof(int64_t));
	in[2].at = bias;
	in[2].dtype = "float32";
	in[2].rank = 1;
	in[2].shape[0] = n;
	in[2].stride[0] = 1;
	call.op = "linear";
	call.in = in;
	call.n_in = form & 8 ? 3 : 2;
	call.out = &out;
	call.n_out = 1;
	call.options = &act;
	call.n_options = form & 16 ? 1 : 0;
	expect(call, in[0], weights, true, form & 16);
}

static void refusals()
{
	ql_gpu_tensor in[2] = {operand(a, 1, 4, 6, false, 0, false), operand(b, 1, 6, 5, false, 0, false)},
		      out = operand(got, 1, 4, 5, false, 0, false);
	ql_gpu_call call = {};
	ql_gpu_plan p = {};

	call.op = "matmul";
	call.in = in;
	call.n_in = 2;
	call.out = &out;
	call.n_out = 1;
	call.flags = QL_GPU_ORDERED;
	CHECK(!ql_gpu_kernel_gemm_cublas.plan(&call, &p) && strstr(p.why, "order"), "%s", p.why);
	call.flags = 0;
	in[1].stride[1] = 7;
	in[1].stride[2] = 2; /* neither axis is dense */
	CHECK(!ql_gpu_kernel_gemm_cublas.plan(&call, &p) && p.why[0], "%s", p.why);
	in[1] = operand(b, 1, 6, 5, false, 2, false);
	setenv("MOCK_REFUSE", "1", 1);
	CHECK(!ql_gpu_kernel_gemm_cublas.plan(&call, &p) && strstr(p.why, "no algorithm"), "%s", p.why);
	unsetenv("MOCK_REFUSE");
	CHECK(ql_gpu_kernel_gemm_cublas.plan(&call, &p), "%s", p.why);
}

int main()
{
	static const int64_t sizes[][4] = {{1, 1, 1, 1}, {1, 5, 7, 9}, {3, 4, 1, 6}, {4, 1, 8, 3}, {2, 16, 12, 20}};

	for (int i = 0; i < MOST; i++) {
		a[i] = (float)(i * 7919 % 15 - 7);
		b[i] = (float)(i * 104729 % 13 - 6);
		bias[i % 200] = (float)(i % 9 - 4);
	}
	for (const int64_t *s : sizes) {
		CASE("%d x (%d, %d, %d)", (int)s[0], (int)s[1], (int)s[2], (int)s[3]);
		for (int form = 0; form < 32; form++) {
			matmul(s[0], s[1], s[2], s[3], form);
			linear(s[1], s[2], s[3], form);
		}
	}
	CASE("refusals");
	refusals();
	return check_end();
}
