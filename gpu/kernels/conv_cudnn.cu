/* SPDX-License-Identifier: MIT
 * conv2d, conv2d_input and conv2d_weight by cuDNN, where it is installed and the products need no order: float32 by fused
 * multiply-adds (no TF32), float16 and bfloat16 with sums in float32. Its functions have the types of its header; a build without
 * the header leaves the kernel out.
 *
 * The calls of one convolution each (cudnnConvolutionForward and its like) are deprecated since cuDNN 9, but they are in all of
 * its versions, and decide layout, algorithm and workspace without an engine being built; the graph interface can follow where
 * a measurement asks for it. Of the algorithms that the heuristic lists, the first one is taken that adds products as they are
 * (Winograd and FFT would miss the stated tolerance), in the same order every time. Nothing is tried by time.
 *
 * A bias is written into the result first, to which the library then adds: so it is rounded once.
 */
#include "gpu/kernels/act.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/window.h"

#if (!defined(QL_EMULATION) || defined(QL_CUDNN_MOCK)) && __has_include(<cudnn.h>)
#define HAVE_CUDNN 1
#else
#define HAVE_CUDNN 0
#endif

#if HAVE_CUDNN

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>

#include "gpu/cuda/library.h"

#define MOST_WORKSPACE ((size_t)256 << 20)
#define KEPT 128 /* convolutions whose algorithm is kept; a net of some 40 layers has three for each */
#define THREADS 256
#define LISTED 8 /* algorithms */

/* ---- the library ---- */

/* X(name): cudnn<name> */
#define FUNCTIONS(X) \
	X(Create) \
	X(SetStream) \
	X(CreateTensorDescriptor) \
	X(DestroyTensorDescriptor) \
	X(SetTensor4dDescriptorEx) \
	X(CreateFilterDescriptor) \
	X(DestroyFilterDescriptor) \
	X(SetFilter4dDescriptor) \
	X(CreateConvolutionDescriptor) \
	X(DestroyConvolutionDescriptor) \
	X(SetConvolution2dDescriptor) \
	X(SetConvolutionGroupCount) \
	X(SetConvolutionMathType) \
	X(GetConvolutionForwardAlgorithm_v7) \
	X(GetConvolutionForwardWorkspaceSize) \
	X(ConvolutionForward) \
	X(GetConvolutionBackwardDataAlgorithm_v7) \
	X(GetConvolutionBackwardDataWorkspaceSize) \
	X(ConvolutionBackwardData) \
	X(GetConvolutionBackwardFilterAlgorithm_v7) \
	X(GetConvolutionBackwardFilterWorkspaceSize) \
	X(ConvolutionBackwardFilter)

static struct {
#define X(name) __typeof__(&cudnn##name) name;
	FUNCTIONS(X)
#undef X
} dnn;

static bool create(void **made) { return !dnn.Create(reinterpret_cast<cudnnHandle_t *>(made)); }

static const char *const names[] = {
#define X(name) "cudnn" #name,
	FUNCTIONS(X)
#undef X
	NULL};

/* The macro's number is a string here: the header names the file that fits its types. */
#define TEXT(x) #x
#define FILE_OF(major) "libcudnn.so." TEXT(major)
static struct ql_library library = {.file = FILE_OF(CUDNN_MAJOR), .names = names, .functions = &dnn, .create = create};

/* The handle of the current device; NULL: there is none. */
static cudnnHandle_t handle() { return static_cast<cudnnHandle_t>(ql_library_handle(&library)); }

/* ---- a call as the library sees it ---- */

enum direction { FORWARD, INPUT, WEIGHT };

/* All that decides the algorithm; images as n, c, h, w. */
struct convolution {
	int32_t direction, type, groups;
	int32_t x[4], x_step[4], y[4], y_step[4], w[4], pad[2], stride[2], dilation[2];
};

/* A call: operands and result in their parts of a convolution. */
struct job {
	convolution c;
	void *x, *w, *y; /* of a gradient one of them is the result */
	const void *bias;
	int32_t bias_type, type, act; /* type: enum ql_element */
	uint32_t count, plane, channels;
};

static bool type_of(const struct ql_gpu_tensor *t, int32_t *type)
{
	switch (ql_element_of(t->dtype)) {
	case QL_E_float32: *type = CUDNN_DATA_FLOAT; return true;
	case QL_E_float16: *type = CUDNN_DATA_HALF; return true;
	case QL_E_bfloat16: *type = CUDNN_DATA_BFLOAT16; return true;
	default: return false;
	}
}

/* Sizes and strides; axes of one element get the stride of a dense tensor. */
static bool images_of(const struct ql_gpu_tensor *t, int32_t size[4], int32_t step[4])
{
	int64_t dense = 1, last = 0;

	if (ql_count(t) < 1 || ql_count(t) > INT32_MAX)
		return false;
	for (int d = 3; d >= 0; d--) {
		int64_t stride = t->shape[d] == 1 ? dense : t->stride[d];

		if (stride < 1 || stride > INT32_MAX)
			return false;
		size[d] = (int32_t)t->shape[d];
		step[d] = (int32_t)stride;
		last += (t->shape[d] - 1) * stride;
		dense = stride * t->shape[d] > dense ? stride * t->shape[d] : dense;
		if (last > INT32_MAX || dense > INT32_MAX)
			return false;
	}
	return true;
}

static bool geometry_of(const struct ql_gpu_call *call, const struct ql_gpu_tensor *x, const struct ql_gpu_tensor *w,
	const struct ql_gpu_tensor *y, convolution *c, struct ql_gpu_plan *p)
{
	ql_gpu_window v = ql_window_of(call, &x->shape[2], &w->shape[2], 1);
	int64_t groups = ql_option_integer(call, "groups", 1);

	for (int d = 0; d < 2; d++) {
		if (v.before[d] != v.after[d])
			return ql_refuse(p, "padding that differs on two sides");
		if (v.before[d] > INT32_MAX || v.stride[d] > INT32_MAX || v.dilation[d] > INT32_MAX)
			return ql_refuse(p, "numbers of more than 31 bits");
		if (v.out[d] != y->shape[2 + d])
			return ql_refuse(p, "shapes that do not fit");
		c->pad[d] = (int32_t)v.before[d];
		c->stride[d] = (int32_t)v.stride[d];
		c->dilation[d] = (int32_t)v.dilation[d];
	}
	if (groups < 1 || groups > INT32_MAX || x->shape[1] != w->shape[1] * groups || w->shape[0] % groups ||
		y->shape[1] != w->shape[0] || x->shape[0] != y->shape[0])
		return ql_refuse(p, "shapes that do not fit");
	c->groups = (int32_t)groups;
	if (!images_of(x, c->x, c->x_step) || !images_of(y, c->y, c->y_step) || !ql_dense(w) || ql_count(w) < 1 ||
		ql_count(w) > INT32_MAX)
		return ql_refuse(p, "operands that cuDNN does not take");
	for (int d = 0; d < 4; d++)
		c->w[d] = (int32_t)w->shape[d];
	return true;
}

/* Functions of a result of 16 bits would be of a rounded sum, but for those that rounding passes. */
static bool epilogue_of(const struct ql_gpu_call *call, job *j, struct ql_gpu_plan *p)
{
	const struct ql_gpu_option *act = ql_option(call, "act");
	const struct ql_gpu_tensor *bias = call->n_in > 2 ? &call->in[2] : NULL;
	bool wide = j->type == QL_E_float32;

	j->act = ql_act_of(act ? act->s : NULL);
	if (j->act < 0 || (!wide && j->act != QL_ACT_none && j->act != QL_ACT_relu && j->act != QL_ACT_relu6))
		return ql_refuse(p, "an activation that would be of a rounded sum");
	if (!bias)
		return true;
	j->bias = bias->at;
	j->bias_type = ql_element_of(bias->dtype);
	if (bias->codes || (bias->flags & QL_GPU_NUMBER) || bias->rank != 1 || !ql_dense(bias) ||
		bias->shape[0] != j->c.w[0] ||
		(j->bias_type != j->type && !(wide && (j->bias_type == QL_E_float16 || j->bias_type == QL_E_bfloat16))))
		return ql_refuse(p, "wanted a dense bias of the result's dtype");
	return true;
}

/* Tensor cores read 16 bytes at once. */
static bool aligned(const struct ql_gpu_tensor *t)
{
	return ((uintptr_t)t->at & 15) == 0;
}

static bool job_of(const struct ql_gpu_call *call, job *j, struct ql_gpu_plan *p)
{
	bool weight = !strcmp(call->op, "conv2d_weight"), input = !strcmp(call->op, "conv2d_input");
	const struct ql_gpu_tensor *in = call->in, *out = call->out, *x = input ? out : &in[weight];
	const struct ql_gpu_tensor *w = weight ? out : &in[1], *y = input || weight ? in : out;
	int32_t type[3];

	memset(j, 0, sizeof(*j)); /* compared by bytes */
	if (call->flags & QL_GPU_ORDERED)
		return ql_refuse(p, "products are added in order");
	if (call->n_in < 2 || !ql_images_float(&in[0]) || !ql_images_float(&in[1]) || !ql_images_float(out) ||
		!type_of(x, &type[0]) || !type_of(w, &type[1]) || !type_of(y, &type[2]) || type[0] != type[1] ||
		type[0] != type[2])
		return ql_refuse(p, "wanted float32, float16 or bfloat16, all the same");
	if (!ql_dense(out) || !aligned(&in[0]) || !aligned(&in[1]))
		return ql_refuse(p, "operands that are not at multiples of 16 bytes");
	if (!geometry_of(call, x, w, y, &j->c, p))
		return false;
	j->c.direction = weight ? WEIGHT : input ? INPUT : FORWARD;
	j->c.type = type[0];
	j->type = ql_element_of(out->dtype);
	j->x = x->at;
	j->w = w->at;
	j->y = y->at;
	j->count = (uint32_t)ql_count(y);
	j->plane = (uint32_t)(y->shape[2] * y->shape[3]);
	j->channels = (uint32_t)y->shape[1];
	return j->c.direction != FORWARD || epilogue_of(call, j, p);
}

/* ---- algorithms ---- */

struct chosen {
	convolution key;
	int device, algo;
	bool ready;
	size_t workspace;
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t desc;
};

static chosen kept[KEPT];
static int next_kept;

static void drop(chosen *c)
{
	for (cudnnTensorDescriptor_t images : {c->x, c->y})
		if (images)
			dnn.DestroyTensorDescriptor(images);
	if (c->w)
		dnn.DestroyFilterDescriptor(c->w);
	if (c->desc)
		dnn.DestroyConvolutionDescriptor(c->desc);
	*c = {};
}

static bool describe_images(
	const convolution &v, const int32_t size[4], const int32_t step[4], cudnnTensorDescriptor_t *out)
{
	return !dnn.CreateTensorDescriptor(out) &&
	       !dnn.SetTensor4dDescriptorEx(*out, (cudnnDataType_t)v.type, size[0], size[1], size[2], size[3], step[0],
		       step[1], step[2], step[3]);
}

static bool describe(const convolution &v, chosen *c)
{
	return describe_images(v, v.x, v.x_step, &c->x) && describe_images(v, v.y, v.y_step, &c->y) &&
	       !dnn.CreateFilterDescriptor(&c->w) &&
	       !dnn.SetFilter4dDescriptor(
		       c->w, (cudnnDataType_t)v.type, CUDNN_TENSOR_NCHW, v.w[0], v.w[1], v.w[2], v.w[3]) &&
	       !dnn.CreateConvolutionDescriptor(&c->desc) &&
	       !dnn.SetConvolution2dDescriptor(c->desc, v.pad[0], v.pad[1], v.stride[0], v.stride[1], v.dilation[0],
		       v.dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT) &&
	       !dnn.SetConvolutionGroupCount(c->desc, v.groups) &&
	       !dnn.SetConvolutionMathType(c->desc, v.type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
}

/* Which algorithms add products as they are. */
static bool is_sum(cudnnConvolutionFwdAlgo_t algo)
{
	return algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
	       algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM || algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
	       algo == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}
static bool is_sum(cudnnConvolutionBwdDataAlgo_t algo)
{
	return algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
}
static bool is_sum(cudnnConvolutionBwdFilterAlgo_t algo)
{
	return algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
}

static cudnnStatus_t workspace_of(chosen *c, cudnnConvolutionFwdAlgo_t algo)
{
	return dnn.GetConvolutionForwardWorkspaceSize(handle(), c->x, c->w, c->desc, c->y, algo, &c->workspace);
}
static cudnnStatus_t workspace_of(chosen *c, cudnnConvolutionBwdDataAlgo_t algo)
{
	return dnn.GetConvolutionBackwardDataWorkspaceSize(handle(), c->w, c->y, c->desc, c->x, algo, &c->workspace);
}
static cudnnStatus_t workspace_of(chosen *c, cudnnConvolutionBwdFilterAlgo_t algo)
{
	return dnn.GetConvolutionBackwardFilterWorkspaceSize(handle(), c->x, c->y, c->desc, c->w, algo, &c->workspace);
}

/* Takes the first of the listed algorithms that may be used, with its kind of products. */
template <typename T> static bool take(const convolution &v, const T *list, int listed, chosen *c)
{
	bool wide = v.type == CUDNN_DATA_FLOAT;

	for (int i = 0; i < listed; i++) {
		bool cores = list[i].mathType == CUDNN_TENSOR_OP_MATH;

		if (list[i].status || list[i].determinism != CUDNN_DETERMINISTIC || !is_sum(list[i].algo) ||
			list[i].mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || (wide && cores))
			continue;
		if (dnn.SetConvolutionMathType(c->desc, wide ? CUDNN_FMA_MATH : list[i].mathType) ||
			workspace_of(c, list[i].algo) || c->workspace > MOST_WORKSPACE)
			continue;
		c->algo = list[i].algo;
		return true;
	}
	return false;
}

static bool search(const convolution &v, chosen *c)
{
	cudnnConvolutionFwdAlgoPerf_t forward[LISTED];
	cudnnConvolutionBwdDataAlgoPerf_t input[LISTED];
	cudnnConvolutionBwdFilterAlgoPerf_t weight[LISTED];
	int n = 0;

	switch (v.direction) {
	case FORWARD:
		return !dnn.GetConvolutionForwardAlgorithm_v7(
			       handle(), c->x, c->w, c->desc, c->y, LISTED, &n, forward) &&
		       take(v, forward, n, c);
	case INPUT:
		return !dnn.GetConvolutionBackwardDataAlgorithm_v7(
			       handle(), c->w, c->y, c->desc, c->x, LISTED, &n, input) &&
		       take(v, input, n, c);
	default:
		return !dnn.GetConvolutionBackwardFilterAlgorithm_v7(
			       handle(), c->x, c->y, c->desc, c->w, LISTED, &n, weight) &&
		       take(v, weight, n, c);
	}
}

/* The algorithm for a convolution on the current device; NULL: the library has none. */
static chosen *choose(const convolution &v)
{
	int device;
	chosen *c = &kept[next_kept];

	if (!ql_library_ready(&library) || !handle() || cudaGetDevice(&device))
		return NULL;
	for (chosen &k : kept)
		if (k.ready && k.device == device && !memcmp(&k.key, &v, sizeof(v)))
			return &k;
	drop(c);
	if (!describe(v, c) || !search(v, c)) {
		drop(c);
		return NULL;
	}
	memcpy(&c->key, &v, sizeof(v));
	c->device = device;
	c->ready = true;
	next_kept = (next_kept + 1) % KEPT;
	return c;
}

/* ---- the call ---- */

QL_KERNEL(THREADS) spread_bias(job j)
{
	for (uint32_t i = (uint32_t)ql_thread(); i < j.count; i += (uint32_t)ql_threads())
		ql_store_small(j.type, j.y, i, ql_load_f32(j.bias_type, j.bias, i / j.plane % j.channels));
}

QL_KERNEL(THREADS) activate(job j)
{
	for (uint32_t i = (uint32_t)ql_thread(); i < j.count; i += (uint32_t)ql_threads())
		ql_store_small(j.type, j.y, i, ql_activate(j.act, ql_load_f32(j.type, j.y, i)));
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const chosen *c;
	job j;

	if (!job_of(call, &j, p))
		return false;
	if (!ql_library_ready(&library))
		return ql_refuse(p, "cuDNN is not installed");
	c = choose(j.c);
	if (!c)
		return ql_refuse(p, "cuDNN has no algorithm for it");
	p->path = call->in[0].dtype;
	p->workspace = c->workspace;
	return true;
}

static cudnnStatus_t convolve(const struct ql_gpu_call *call, const job &j, const chosen *c)
{
	const float one = 1, added = j.bias ? 1 : 0;

	switch (j.c.direction) {
	case FORWARD:
		return dnn.ConvolutionForward(handle(), &one, c->x, j.x, c->w, j.w, c->desc,
			(cudnnConvolutionFwdAlgo_t)c->algo, call->workspace, c->workspace, &added, c->y, j.y);
	case INPUT:
		return dnn.ConvolutionBackwardData(handle(), &one, c->w, j.w, c->y, j.y, c->desc,
			(cudnnConvolutionBwdDataAlgo_t)c->algo, call->workspace, c->workspace, &added, c->x, j.x);
	default:
		return dnn.ConvolutionBackwardFilter(handle(), &one, c->x, j.x, c->y, j.y, c->desc,
			(cudnnConvolutionBwdFilterAlgo_t)c->algo, call->workspace, c->workspace, &added, c->w, j.w);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan unused = {};
	job j;
	const chosen *c = job_of(call, &j, &unused) ? choose(j.c) : NULL;
	cudaError_t error = c ? cudaSuccess : cudaErrorNotSupported;
	dim3 blocks = ql_blocks(j.count, THREADS, (int64_t)8 * place->processors + 1);

	if (!error && j.bias)
		error = ql_launch_free(spread_bias, blocks, dim3(THREADS), place->stream, j);
	if (!error && (dnn.SetStream(handle(), place->stream) || convolve(call, j, c))) {
		error = cudaGetLastError();
		error = error ? error : cudaErrorNotSupported;
	}
	if (!error && j.act)
		error = ql_launch_free(activate, blocks, dim3(THREADS), place->stream, j);
	return error;
}

#else

static bool plan(const struct ql_gpu_call *, struct ql_gpu_plan *p)
{
	return ql_refuse(p, "built without cuDNN");
}

static cudaError_t run(const struct ql_gpu_place *, const struct ql_gpu_call *)
{
	return cudaErrorNotSupported;
}

#endif

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_conv_cudnn;
const struct ql_gpu_kernel ql_gpu_kernel_conv_cudnn = {
	"conv2d conv2d_input conv2d_weight", "conv_cudnn", "cudnn", QL_GPU_TOLERANCE, 80, plan, run};
