// SPDX-License-Identifier: MIT
// Times of cuBLASLt to compare with, for scripts/gpu_check.lua: gpu_anchor M N K KIND... prints a line "name seconds" or
// "name missing why" for each kind of product (M x K) (N x K)':
//   int8              to int32; all operands are rows of k elements, the only layout that the library has for int8 on sm_90
//   int8+dequantize   and a pass that scales it and adds a bias, to float16
//   f16 bf16          to the same, sums in float32
//   fp8               to bfloat16
//   backward          the gradients of f16: two products and the sum over the rows of dY (M x N)
// gpu_anchor copy prints the bytes a second of a copy within the device, read and write counted.
// Values are random. A launch of a graph makes many calls; operands rotate, so that they are not in the cache; medians.
#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/cuda/library.h"

#define WORKSPACE ((size_t)32 << 20)
#define ROTATED ((size_t)200 << 20) // bytes of operands, more than any cache
#define MOST_SETS 16
#define SECONDS 0.01 // of a sample, at least
#define MOST_CALLS 512
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

enum step { PRODUCT, SCALE, BACKWARD };

struct kind {
	const char *name;
	cudaDataType_t in, out, scale;
	cublasComputeType_t compute;
	int bytes; // of an element of the operands
	step next;
};

static const kind kinds[] = {{"int8", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, PRODUCT},
	{"int8+dequantize", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, SCALE},
	{"f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, PRODUCT},
	{"bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, PRODUCT},
	{"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, PRODUCT},
	{"backward", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, BACKWARD}};

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

// ---- kernels ----

struct __align__(8) half4
{
	__half2 a, b;
};

__global__ void scale_sums(
	const int4 *sum, const float *row, const float *column, const float *bias, half4 *out, int64_t m, int64_t n)
{
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < m * n / 4;
		i += (int64_t)gridDim.x * blockDim.x) {
		int64_t j = i * 4 % n;
		int4 s = sum[i];
		float by = row[i * 4 / n];
		float4 c = *reinterpret_cast<const float4 *>(column + j),
		       d = *reinterpret_cast<const float4 *>(bias + j);

		out[i] = {__floats2half2_rn((float)s.x * (by * c.x) + d.x, (float)s.y * (by * c.y) + d.y),
			__floats2half2_rn((float)s.z * (by * c.z) + d.z, (float)s.w * (by * c.w) + d.w)};
	}
}

#define PARTS 64 // of the rows

__global__ void sum_part(const __half2 *y, float2 *part, int64_t m, int64_t pairs)
{
	int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, each = (m + PARTS - 1) / PARTS;
	float2 sum = {0, 0};

	if (j >= pairs)
		return;
	for (int64_t i = blockIdx.y * each; i < m && i < (blockIdx.y + 1) * each; i++) {
		float2 v = __half22float2(y[i * pairs + j]);

		sum.x += v.x;
		sum.y += v.y;
	}
	part[blockIdx.y * pairs + j] = sum;
}

__global__ void add_parts(const float2 *part, float2 *out, int64_t pairs)
{
	int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	float2 sum = {0, 0};

	if (j >= pairs)
		return;
	for (int i = 0; i < PARTS; i++)
		sum.x += part[i * pairs + j].x, sum.y += part[i * pairs + j].y;
	out[j] = sum;
}

// ---- products ----

// A product whose result has m rows and n columns, columns one after the other, as the library sees it.
struct gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algo;
};

static bool layout(cublasLtMatrixLayout_t *out, cudaDataType type, int64_t rows, int64_t columns)
{
	return lt.MatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)columns, rows) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(
	gemm *g, cublasLtHandle_t handle, const kind &t, int64_t m, int64_t n, int64_t k, bool turn_a, bool turn_b)
{
	cublasOperation_t a = turn_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t best;
	size_t workspace = WORKSPACE;
	int found = 0;

	if (lt.MatmulDescCreate(&g->desc, t.compute, t.scale) ||
		lt.MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof(a)) ||
		lt.MatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof(b)) ||
		!layout(&g->a, t.in, turn_a ? k : m, turn_a ? m : k) ||
		!layout(&g->b, t.in, turn_b ? n : k, turn_b ? k : n) || !layout(&g->c, t.out, m, n) ||
		lt.MatmulPreferenceCreate(&preference) ||
		lt.MatmulPreferenceSetAttribute(
			preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)) ||
		lt.MatmulAlgoGetHeuristic(handle, g->desc, g->a, g->b, g->c, g->c, preference, 1, &best, &found) ||
		found < 1)
		return false;
	g->algo = best.algo;
	return true;
}

struct work {
	int64_t m, n, k;
	int sets;
	char *x[MOST_SETS], *w[MOST_SETS], *dy[MOST_SETS]; // random bytes
	char *y, *dx, *dw, *scaled, *workspace;
	float *row, *column, *bias, *part;
	cublasLtHandle_t handle;
	cudaStream_t stream;
	gemm forward, input, weight;
};

static bool multiply(const work &p, const kind &t, const gemm &g, const void *a, const void *b, void *c)
{
	int one = 1, zero = 0;
	float one_f = 1, zero_f = 0;
	bool whole = t.scale == CUDA_R_32I;

	return !lt.Matmul(p.handle, g.desc, whole ? (const void *)&one : &one_f, a, g.a, b, g.b,
		whole ? (const void *)&zero : &zero_f, c, g.c, c, g.c, &g.algo, p.workspace, WORKSPACE, p.stream);
}

// Queues one call with the operands of a set.
static bool call(const work &p, const kind &t, int set)
{
	if (t.next == BACKWARD) {
		int64_t pairs = p.n / 2;
		dim3 blocks((unsigned)((pairs + 127) / 128), PARTS);

		sum_part<<<blocks, 128, 0, p.stream>>>((const __half2 *)p.dy[set], (float2 *)p.part, p.m, pairs);
		add_parts<<<blocks.x, 128, 0, p.stream>>>((const float2 *)p.part, (float2 *)p.bias, pairs);
		return multiply(p, t, p.input, p.w[set], p.dy[set], p.dx) &&
		       multiply(p, t, p.weight, p.x[set], p.dy[set], p.dw);
	}
	if (!multiply(p, t, p.forward, p.w[set], p.x[set], p.y))
		return false;
	if (t.next == SCALE)
		scale_sums<<<2048, 256, 0, p.stream>>>(
			(const int4 *)p.y, p.row, p.column, p.bias, (half4 *)p.scaled, p.m, p.n);
	return true;
}

// Seconds of a launch, or of `calls` calls without a graph; below 0: it failed.
static double seconds(const work &p, const kind &t, cudaGraphExec_t graph, int calls)
{
	static cudaEvent_t from, to;
	float milliseconds = 0;
	bool good = true;

	if (!from && (cudaEventCreate(&from) || cudaEventCreate(&to)))
		return -1;
	cudaEventRecord(from, p.stream);
	if (graph)
		good = !cudaGraphLaunch(graph, p.stream);
	for (int i = 0; i < calls && !graph && good; i++)
		good = call(p, t, i % p.sets);
	cudaEventRecord(to, p.stream);
	if (!good || cudaEventSynchronize(to) || cudaEventElapsedTime(&milliseconds, from, to))
		return -1;
	return milliseconds / 1e3;
}

static cudaGraphExec_t record(const work &p, const kind &t, int calls)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	bool good = !cudaStreamBeginCapture(p.stream, cudaStreamCaptureModeRelaxed);

	for (int i = 0; i < calls && good; i++)
		good = call(p, t, i % p.sets);
	if (cudaStreamEndCapture(p.stream, &graph) || !good || cudaGraphInstantiate(&exec, graph, 0))
		return NULL;
	return exec;
}

// Median seconds of a call; below 0: *why says why not.
static double measure(work *p, const kind &t, const char **why)
{
	std::vector<double> times;
	cudaGraphExec_t graph = NULL;
	double once = 0;
	int calls;
	bool good = t.next == BACKWARD ? describe(&p->input, p->handle, t, p->k, p->m, p->n, false, false) &&
						 describe(&p->weight, p->handle, t, p->k, p->n, p->m, false, true)
				       : describe(&p->forward, p->handle, t, p->n, p->m, p->k, true, false);

	*why = "cuBLASLt has no algorithm for it";
	if (!good)
		return -1;
	for (int i = 0; i < 2 && once >= 0; i++) // the first one warms up
		once = seconds(*p, t, NULL, p->sets) / p->sets;
	calls = once > 0 ? (int)std::min((double)MOST_CALLS, SECONDS / once) : 1;
	calls = (calls + p->sets - 1) / p->sets * p->sets;
	if (once >= 0)
		graph = record(*p, t, calls);
	*why = "cuBLASLt refuses the product, or a graph of it";
	for (int i = 0; i <= SAMPLES && graph; i++) {
		double s = seconds(*p, t, graph, calls);

		if (s < 0)
			break;
		if (i)
			times.push_back(s / calls);
	}
	if (times.size() < SAMPLES) {
		cudaError_t error = cudaGetLastError();

		*why = error ? cudaGetErrorString(error) : *why;
		return -1;
	}
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

// Bytes that are finite numbers of every type that is measured.
static std::vector<unsigned char> drawn(size_t bytes)
{
	std::vector<unsigned char> host(bytes);
	uint32_t state = 1;

	for (unsigned char &byte : host) {
		state = state * 1664525u + 1013904223u;
		byte = (unsigned char)(state >> 24 & 0xbf); // below 2 in size as float8, float16 and bfloat16
	}
	return host;
}

static cudaError_t fill(void *to, const std::vector<unsigned char> &from, size_t bytes)
{
	return cudaMemcpy(to, from.data(), bytes, cudaMemcpyHostToDevice);
}

// Room for the widest of the kinds, and for what only one of them needs.
static cudaError_t make(work *p, bool backward)
{
	size_t x = (size_t)(p->m * p->k) * 2, w = (size_t)(p->n * p->k) * 2, y = (size_t)(p->m * p->n) * 4;
	std::vector<unsigned char> host = drawn(std::max({x, w, backward ? y / 2 : 0, (size_t)(p->m + p->n) * 4}));
	cudaError_t error = cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking);
	auto give = [&](void *to, size_t bytes) { error = error ? error : cudaMalloc((void **)to, bytes); };

	p->sets = (int)std::min((size_t)MOST_SETS, ROTATED / (x + w) + 1);
	for (int i = 0; i < p->sets; i++) {
		give(&p->x[i], x);
		give(&p->w[i], w);
		error = error ? error : fill(p->x[i], host, x);
		error = error ? error : fill(p->w[i], host, w);
		if (backward)
			give(&p->dy[i], y / 2);
		error = error || !backward ? error : fill(p->dy[i], host, y / 2);
	}
	give(&p->y, y);
	give(&p->dx, backward ? x : 1);
	give(&p->dw, backward ? w : 1);
	give(&p->part, backward ? (size_t)p->n * 4 * PARTS : 1);
	give(&p->scaled, y / 2);
	give(&p->workspace, WORKSPACE);
	for (float **v : {&p->row, &p->column, &p->bias})
		give(v, (size_t)(p->m + p->n) * 4);
	for (float *v : {p->row, p->column, p->bias})
		error = error ? error : cudaMemset(v, 0, (size_t)(p->m + p->n) * 4);
	return error;
}

static int copy_rate()
{
	size_t bytes = (size_t)1 << 30;
	char *from = NULL, *to = NULL;
	float milliseconds = 0;
	std::vector<float> times;
	cudaEvent_t begin, end;
	cudaError_t error = cudaMalloc(&from, bytes);

	error = error ? error : cudaMalloc(&to, bytes);
	error = error ? error : cudaMemset(from, 1, bytes);
	error = error ? error : cudaEventCreate(&begin);
	error = error ? error : cudaEventCreate(&end);
	for (int i = 0; i < 2 * SAMPLES && !error; i++) {
		cudaEventRecord(begin);
		cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
		cudaEventRecord(end);
		error = cudaEventSynchronize(end);
		error = error ? error : cudaEventElapsedTime(&milliseconds, begin, end);
		times.push_back(milliseconds);
	}
	std::sort(times.begin(), times.end());
	if (error)
		printf("copy missing %s\n", cudaGetErrorString(error));
	else
		printf("copy %.9g\n", 2e3 * (double)bytes / times[SAMPLES]);
	return 0;
}

int main(int argc, char **argv)
{
	work p = {};
	const char *why = NULL;
	cudaError_t error;
	bool backward = false;

	if (argc == 2 && !strcmp(argv[1], "copy"))
		return copy_rate();
	if (argc < 5 || (p.m = atoll(argv[1])) < 1 || (p.n = atoll(argv[2])) < 4 || (p.k = atoll(argv[3])) < 4 ||
		p.n % 4) {
		fprintf(stderr, "usage: gpu_anchor M N K KIND..., N a multiple of 4\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		backward = backward || !strcmp(argv[i], "backward");
	why = open_library();
	error = why ? cudaSuccess : make(&p, backward);
	why = error ? cudaGetErrorString(error) : why;
	if (!why && lt.Create(&p.handle))
		why = "cuBLASLt does not start";
	for (int i = 4; i < argc; i++)
		for (const kind &t : kinds) {
			const char *reason = why;
			double each;

			if (strcmp(argv[i], t.name))
				continue;
			each = reason ? -1 : measure(&p, t, &reason);
			if (each < 0)
				printf("%s missing %s\n", t.name, reason);
			else
				printf("%s %.9g\n", t.name, each);
			fflush(stdout);
		}
	return 0;
}
