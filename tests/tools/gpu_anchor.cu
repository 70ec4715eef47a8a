// SPDX-License-Identifier: MIT
// Times of cuBLASLt to compare with, for scripts/gpu_check.lua: gpu_anchor M N K prints a line "name seconds" or "name missing why"
// for each product (M x K) (N x K)': int8 to int32, the same with a pass that scales it to float32, bfloat16, and FP8 to bfloat16.
// All operands are rows of k elements, the only layout that the library has for int8 on sm_90. Values are random.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/cuda/library.h"

#define WORKSPACE ((size_t)32 << 20)
#define CALLS 10
#define SAMPLES 7

#define FUNCTIONS(X) \
	X(Create) \
	X(MatmulDescCreate) \
	X(MatmulDescSetAttribute) \
	X(MatrixLayoutCreate) \
	X(MatmulPreferenceCreate) \
	X(MatmulPreferenceSetAttribute) \
	X(MatmulAlgoGetHeuristic) \
	X(Matmul)

static struct {
#define X(name) __typeof__(&cublasLt##name) name;
	FUNCTIONS(X)
#undef X
} lt;

struct kind {
	const char *name;
	cudaDataType_t in, out, scale;
	cublasComputeType_t compute;
	int bytes; // of an element of the operands
	bool scaled;
};

static const char *open_library()
{
	std::string file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
	void *library = ql_library_open(file.c_str());

	if (!library)
		return "cuBLASLt is not installed";
#define X(name) \
	lt.name = reinterpret_cast<__typeof__(lt.name)>(dlsym(library, "cublasLt" #name)); \
	if (!lt.name) \
		return "cuBLASLt lacks a function";
	FUNCTIONS(X)
#undef X
	return NULL;
}

__global__ void scale_sums(const int4 *sum, const float *row, const float *column, float4 *out, int64_t m, int64_t n)
{
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < m * n / 4;
		i += (int64_t)gridDim.x * blockDim.x) {
		int64_t j = i * 4 % n;
		int4 s = sum[i];
		float by = row[i * 4 / n];
		float4 c = *reinterpret_cast<const float4 *>(column + j);

		out[i] = {(float)s.x * (by * c.x), (float)s.y * (by * c.y), (float)s.z * (by * c.z),
			(float)s.w * (by * c.w)};
	}
}

static bool layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, int64_t rows, int64_t columns)
{
	return lt.MatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows) == CUBLAS_STATUS_SUCCESS;
}

struct product {
	int64_t m, n, k;
	void *x, *w, *y, *scaled, *workspace;
	float *row, *column;
	cublasLtHandle_t handle;
};

// Median seconds of a call; below 0: *why says why not.
static double measure(const product &p, const kind &t, const char **why)
{
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t w, x, y;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t best;
	cublasOperation_t turned = CUBLAS_OP_T;
	size_t workspace = WORKSPACE;
	int found = 0, one = 1, zero = 0;
	float one_f = 1, zero_f = 0;
	const void *alpha = t.scale == CUDA_R_32I ? (const void *)&one : &one_f;
	const void *beta = t.scale == CUDA_R_32I ? (const void *)&zero : &zero_f;
	std::vector<double> times;
	cudaEvent_t from, to;

	if (lt.MatmulDescCreate(&desc, t.compute, t.scale) ||
		lt.MatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof(turned)) ||
		!layout(&w, t.in, p.k, p.n) || !layout(&x, t.in, p.k, p.m) || !layout(&y, t.out, p.n, p.m) ||
		lt.MatmulPreferenceCreate(&preference) ||
		lt.MatmulPreferenceSetAttribute(
			preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)) ||
		lt.MatmulAlgoGetHeuristic(p.handle, desc, w, x, y, y, preference, 1, &best, &found) || found < 1) {
		*why = "cuBLASLt has no algorithm for it";
		return -1;
	}
	cudaEventCreate(&from);
	cudaEventCreate(&to);
	for (int s = 0; s <= SAMPLES; s++) { // the first one warms up
		float milliseconds = 0;

		cudaEventRecord(from);
		for (int i = 0; i < CALLS; i++) {
			if (lt.Matmul(p.handle, desc, alpha, p.w, w, p.x, x, beta, p.y, y, p.y, y, &best.algo,
				    p.workspace, WORKSPACE, 0)) {
				*why = "cuBLASLt refuses the product";
				return -1;
			}
			if (t.scaled)
				scale_sums<<<2048, 256>>>(static_cast<const int4 *>(p.y), p.row, p.column,
					static_cast<float4 *>(p.scaled), p.m, p.n);
		}
		cudaEventRecord(to);
		if (cudaEventSynchronize(to) || cudaEventElapsedTime(&milliseconds, from, to)) {
			*why = cudaGetErrorString(cudaGetLastError());
			return -1;
		}
		if (s)
			times.push_back(milliseconds / 1e3 / CALLS);
	}
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

// Bytes that are finite numbers of every type that is measured.
static cudaError_t draw(void *to, size_t bytes)
{
	std::vector<unsigned char> host(bytes);
	uint32_t state = 1;

	for (unsigned char &byte : host) {
		state = state * 1664525u + 1013904223u;
		byte = (unsigned char)(state >> 24 & 0xbf); // below 2 in size as float8 and bfloat16
	}
	return cudaMemcpy(to, host.data(), bytes, cudaMemcpyHostToDevice);
}

static cudaError_t make(product *p)
{
	size_t x = (size_t)(p->m * p->k) * 2, w = (size_t)(p->n * p->k) * 2, y = (size_t)(p->m * p->n) * 4;
	cudaError_t error = cudaMalloc(&p->x, x);

	for (auto piece : {std::make_pair(&p->w, w), std::make_pair(&p->y, y), std::make_pair(&p->scaled, y),
		     std::make_pair(&p->workspace, WORKSPACE), std::make_pair((void **)&p->row, (size_t)p->m * 4),
		     std::make_pair((void **)&p->column, (size_t)p->n * 4)})
		error = error ? error : cudaMalloc(piece.first, piece.second);
	error = error ? error : cudaMemset(p->row, 0, (size_t)p->m * 4);
	error = error ? error : cudaMemset(p->column, 0, (size_t)p->n * 4);
	error = error ? error : draw(p->x, x);
	return error ? error : draw(p->w, w);
}

int main(int argc, char **argv)
{
	static const kind kinds[] = {{"int8", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, false},
		{"int8+dequantize", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, true},
		{"bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, false},
		{"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, false}};
	product p = {};
	const char *why = NULL;
	cudaError_t error;

	if (argc != 4 || (p.m = atoll(argv[1])) < 4 || (p.n = atoll(argv[2])) < 4 || (p.k = atoll(argv[3])) < 4 ||
		p.n % 4) {
		fprintf(stderr, "usage: gpu_anchor M N K, N a multiple of 4\n");
		return 2;
	}
	error = make(&p);
	why = error ? cudaGetErrorString(error) : open_library();
	if (!why && lt.Create(&p.handle))
		why = "cuBLASLt does not start";
	for (const kind &t : kinds) {
		const char *reason = why;
		double seconds = reason ? -1 : measure(p, t, &reason);

		if (seconds < 0)
			printf("%s missing %s\n", t.name, reason);
		else
			printf("%s %.9g\n", t.name, seconds);
	}
	return 0;
}
