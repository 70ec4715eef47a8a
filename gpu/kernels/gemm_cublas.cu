/* SPDX-License-Identifier: MIT
 * Products of dense floats by cuBLASLt, where it is installed and the products need no order: float32 sums of float32 (no TF32), float16
 * and bfloat16, whose results may be float32, with bias and relu. The library has columns one after the other, so it computes the transposed result, b^T a^T, whose
 * columns are our rows. Its functions have the types of its header; a build without the header leaves the kernel out.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/strided.h"

#if !defined(QL_EMULATION) && __has_include(<cublasLt.h>)
#define HAVE_CUBLAS 1
#else
#define HAVE_CUBLAS 0
#endif

#if HAVE_CUBLAS

#include <cublasLt.h>

#include "gpu/cuda/library.h"

#define WORKSPACE ((uint64_t)32 << 20)
#define KEPT 64 /* products whose algorithm is kept */

/* ---- the library ---- */

/* X(name): cublasLt<name> */
#define FUNCTIONS(X) \
	X(Create) \
	X(MatmulDescCreate) \
	X(MatmulDescDestroy) \
	X(MatmulDescSetAttribute) \
	X(MatrixLayoutCreate) \
	X(MatrixLayoutDestroy) \
	X(MatrixLayoutSetAttribute) \
	X(MatmulPreferenceCreate) \
	X(MatmulPreferenceDestroy) \
	X(MatmulPreferenceSetAttribute) \
	X(MatmulAlgoGetHeuristic) \
	X(Matmul)

static struct {
#define X(name) __typeof__(&cublasLt##name) name;
	FUNCTIONS(X)
#undef X
} lt;

static bool create(void **made) { return !lt.Create(reinterpret_cast<cublasLtHandle_t *>(made)); }

static const char *const names[] = {
#define X(name) "cublasLt" #name,
	FUNCTIONS(X)
#undef X
	NULL};

/* The macro's number is a string here: the header names the file that fits its types. */
#define TEXT(x) #x
#define FILE_OF(major) "libcublasLt.so." TEXT(major)
static struct ql_library library = {.file = FILE_OF(CUBLAS_VER_MAJOR), .names = names, .functions = &lt, .create = create};

/* The handle of the current device; NULL: there is none. */
static cublasLtHandle_t handle() { return static_cast<cublasLtHandle_t>(ql_library_handle(&library)); }

/* ---- a call as the library sees it ---- */

/* A matrix whose columns are one after the other. */
struct matrix {
	cudaDataType_t type;
	bool turned; /* what is multiplied is its transposed form */
	int64_t rows, columns, pitch, batch; /* pitch, batch: elements between columns and matrices */
};

/* All that decides the algorithm. */
struct product {
	int64_t m, n, k, batches;
	struct matrix first, second, result; /* first: of b, second: of a */
	bool bias, relu;
	uint32_t aligned[4]; /* bytes: first, second, result, bias */
};

static bool type_of(const struct ql_gpu_tensor *t, cudaDataType_t *type)
{
	switch (ql_element_of(t->dtype)) {
	case QL_E_float32: *type = CUDA_R_32F; return true;
	case QL_E_float16: *type = CUDA_R_16F; return true;
	case QL_E_bfloat16: *type = CUDA_R_16BF; return true;
	default: return false;
	}
}

static uint32_t alignment(const void *at)
{
	uintptr_t bits = (uintptr_t)at | 256;

	return at ? (uint32_t)(bits & -bits) : 16;
}

/* The last two axes (l lines, k) of t; of rank 1 it is one line. `line` and `summed` are numbers of axes from the end. */
static bool matrix_of(const struct ql_gpu_tensor *t, int64_t lines, int64_t k, int64_t line, int64_t step, matrix *x)
{
	*x = {};
	if (t->codes || (t->flags & QL_GPU_NUMBER) || !type_of(t, &x->type))
		return false;
	line = lines == 1 ? k : line;
	step = k == 1 ? 1 : step;
	if (step == 1 && line >= k) { /* k elements of a line follow each other: a column */
		*x = {x->type, true, k, lines, line, 0};
		return true;
	}
	line = lines == 1 ? 1 : line;
	if (line != 1 || step < lines)
		return false;
	*x = {x->type, false, lines, k, step, 0};
	return true;
}

/* The distance of matrices along the axes before the last `matrix` ones; false: it is not one distance. */
static bool batch_of(const struct ql_gpu_tensor *t, int matrix, int64_t batches, int64_t *distance)
{
	struct ql_strided s = ql_strided_of(t, NULL, t->rank > matrix ? (1u << (t->rank - matrix)) - 1 : 0);

	*distance = s.count == 1 ? 0 : s.stride[0][0];
	return s.count == 1 || (s.rank == 1 && s.count == batches && s.stride[0][0] >= 0);
}

static int64_t size_at(const struct ql_gpu_tensor *t, int from_end)
{
	return from_end < t->rank ? t->shape[t->rank - 1 - from_end] : 1;
}
static int64_t stride_at(const struct ql_gpu_tensor *t, int from_end)
{
	return from_end < t->rank ? t->stride[t->rank - 1 - from_end] : 0;
}

/* linear: all axes of x before the last are rows, if they follow each other. */
static bool linear_of(const struct ql_gpu_call *call, product *x)
{
	const struct ql_gpu_tensor *a = &call->in[0], *w = &call->in[1];
	struct ql_strided rows = ql_strided_of(a, NULL, a->rank > 1 ? (1u << (a->rank - 1)) - 1 : 0);

	if (a->rank < 1 || w->rank != 2 || rows.rank != 1)
		return false;
	x->m = rows.count;
	x->n = w->shape[0];
	x->k = w->shape[1];
	x->batches = 1;
	return size_at(a, 0) == x->k && matrix_of(w, x->n, x->k, w->stride[0], w->stride[1], &x->first) &&
	       matrix_of(a, x->m, x->k, rows.stride[0][0], stride_at(a, 0), &x->second);
}

static bool matmul_of(const struct ql_gpu_call *call, product *x)
{
	const struct ql_gpu_tensor *a = &call->in[0], *b = &call->in[1];

	if (a->rank < 2 || b->rank < 2)
		return false;
	x->m = size_at(a, 1);
	x->n = size_at(b, 0);
	x->k = size_at(a, 0);
	x->batches = x->m && x->n ? ql_count(&call->out[0]) / (x->m * x->n) : 0;
	return size_at(b, 1) == x->k && x->batches <= INT32_MAX &&
	       matrix_of(b, x->n, x->k, stride_at(b, 0), stride_at(b, 1), &x->first) &&
	       matrix_of(a, x->m, x->k, stride_at(a, 1), stride_at(a, 0), &x->second) &&
	       batch_of(b, 2, x->batches, &x->first.batch) && batch_of(a, 2, x->batches, &x->second.batch);
}

static bool bias_of(const struct ql_gpu_call *call, product *x)
{
	const char *act = NULL;
	const struct ql_gpu_tensor *bias = &call->in[2];
	cudaDataType_t type;

	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, "act"))
			act = call->options[i].s;
	x->relu = act && !strcmp(act, "relu");
	x->bias = call->n_in > 2;
	if (act && !x->relu)
		return false;
	return !x->bias || (bias->rank == 1 && !bias->codes && type_of(bias, &type) && type == x->result.type &&
				   bias->shape[0] == x->n && ql_dense(bias));
}

static bool product_of(const struct ql_gpu_call *call, product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *out = &call->out[0];

	memset(x, 0, sizeof(*x)); /* compared by bytes */
	if (call->flags & QL_GPU_ORDERED)
		return ql_refuse(p, "products are added in order");
	if (call->n_in < 2 || out->codes || !ql_dense(out) || !type_of(out, &x->result.type) ||
		!(strcmp(call->op, "linear") ? matmul_of(call, x) : linear_of(call, x)) || !bias_of(call, x))
		return ql_refuse(p, "operands that cuBLASLt does not take");
	if (x->first.type != x->second.type || (x->result.type != x->first.type && x->result.type != CUDA_R_32F))
		return ql_refuse(p, "operands of different dtypes");
	if (x->m == 0 || x->n == 0 || x->k == 0 || x->batches == 0 || x->m > INT32_MAX || x->n > INT32_MAX ||
		x->k > INT32_MAX)
		return ql_refuse(p, "no elements, or more than 2^31");
	x->result.rows = x->result.pitch = x->n;
	x->result.columns = x->m;
	x->result.batch = x->m * x->n;
	x->aligned[0] = alignment(call->in[1].at);
	x->aligned[1] = alignment(call->in[0].at);
	x->aligned[2] = alignment(out->at);
	x->aligned[3] = x->bias ? alignment(call->in[2].at) : 256;
	return true;
}

/* ---- algorithms ---- */

struct chosen {
	product key;
	int device;
	bool ready;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t first, second, result;
	cublasLtMatmulAlgo_t algo;
};

static chosen kept[KEPT];
static int next_kept;

static void drop(chosen *c)
{
	if (c->desc)
		lt.MatmulDescDestroy(c->desc);
	for (cublasLtMatrixLayout_t layout : {c->first, c->second, c->result})
		if (layout)
			lt.MatrixLayoutDestroy(layout);
	*c = {};
}

static bool layout(const matrix &x, int64_t batches, cublasLtMatrixLayout_t *out)
{
	int32_t count = (int32_t)batches;

	return !lt.MatrixLayoutCreate(out, x.type, (uint64_t)x.rows, (uint64_t)x.columns, x.pitch) &&
	       !lt.MatrixLayoutSetAttribute(
		       *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)) &&
	       !lt.MatrixLayoutSetAttribute(
		       *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x.batch, sizeof(x.batch));
}

template <typename T> static bool set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, T value)
{
	return !lt.MatmulDescSetAttribute(desc, name, &value, sizeof(value));
}

static bool describe(const product &x, chosen *c)
{
	cublasLtEpilogue_t epilogue = x.relu ? (x.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU)
				      : x.bias ? CUBLASLT_EPILOGUE_BIAS
					       : CUBLASLT_EPILOGUE_DEFAULT;

	return !lt.MatmulDescCreate(&c->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) &&
	       set(c->desc, CUBLASLT_MATMUL_DESC_TRANSA, x.first.turned ? CUBLAS_OP_T : CUBLAS_OP_N) &&
	       set(c->desc, CUBLASLT_MATMUL_DESC_TRANSB, x.second.turned ? CUBLAS_OP_N : CUBLAS_OP_T) &&
	       set(c->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
	       (!x.bias || set(c->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, x.result.type)) &&
	       layout(x.first, x.batches, &c->first) && layout(x.second, x.batches, &c->second) &&
	       layout(x.result, x.batches, &c->result);
}

static bool search(const product &x, chosen *c)
{
	static const cublasLtMatmulPreferenceAttributes_t least[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
	const uint32_t aligned[] = {x.aligned[0], x.aligned[1], x.aligned[2], x.aligned[2]};
	cublasLtMatmulPreference_t preference = NULL;
	cublasLtMatmulHeuristicResult_t best;
	uint64_t workspace = WORKSPACE;
	int found = 0;
	bool good = !lt.MatmulPreferenceCreate(&preference) &&
		    !lt.MatmulPreferenceSetAttribute(
			    preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));

	for (int i = 0; i < 4 && good; i++)
		good = !lt.MatmulPreferenceSetAttribute(
			preference, least[i], &aligned[i], sizeof(aligned[i]));
	good = good && !lt.MatmulAlgoGetHeuristic(handle(), c->desc, c->first, c->second, c->result, c->result,
			       preference, 1, &best, &found);
	if (preference)
		lt.MatmulPreferenceDestroy(preference);
	if (!good || found < 1)
		return false;
	c->algo = best.algo;
	return true;
}

/* The algorithm for a product on the current device; NULL: the library has none. */
static chosen *choose(const product &x)
{
	int device;
	chosen *c = &kept[next_kept];

	if (!ql_library_ready(&library) || !handle() || cudaGetDevice(&device))
		return NULL;
	for (chosen &k : kept)
		if (k.ready && k.device == device && !memcmp(&k.key, &x, sizeof(x)))
			return &k;
	drop(c);
	if (!describe(x, c) || !search(x, c)) {
		drop(c);
		return NULL;
	}
	memcpy(&c->key, &x, sizeof(x));
	c->device = device;
	c->ready = true;
	next_kept = (next_kept + 1) % KEPT;
	return c;
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	product x;

	if (!product_of(call, &x, p))
		return false;
	if (!ql_library_ready(&library))
		return ql_refuse(p, "cuBLASLt is not installed");
	if (!choose(x))
		return ql_refuse(p, "cuBLASLt has no algorithm for it");
	p->path = call->in[0].dtype;
	p->workspace = WORKSPACE;
	return true;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan unused = {};
	const float one = 1, zero = 0;
	product x;
	chosen *c = product_of(call, &x, &unused) ? choose(x) : NULL;
	const void *bias = x.bias ? call->in[2].at : NULL;

	if (!c || (bias && !set(c->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)))
		return cudaErrorNotSupported;
	if (lt.Matmul(handle(), c->desc, &one, call->in[1].at, c->first, call->in[0].at, c->second, &zero,
		    call->out[0].at, c->result, call->out[0].at, c->result, &c->algo, call->workspace, WORKSPACE,
		    place->stream))
		return cudaErrorLaunchFailure;
	return cudaSuccess;
}

#else

static bool plan(const struct ql_gpu_call *, struct ql_gpu_plan *p)
{
	return ql_refuse(p, "built without cuBLASLt");
}

static cudaError_t run(const struct ql_gpu_place *, const struct ql_gpu_call *)
{
	return cudaErrorNotSupported;
}

#endif

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_cublas;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_cublas = {
	"linear matmul", "gemm_cublas", "cublas", QL_GPU_TOLERANCE, 80, plan, run};
