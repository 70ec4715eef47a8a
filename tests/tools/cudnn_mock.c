/* SPDX-License-Identifier: MIT
 * A libcudnn that convolves on the host by plain loops, from the header's descriptions: it checks what conv_cudnn.cu asks for.
 * Of the algorithms that it lists only one may be taken: not those that change products, have no fixed order, use other products
 * or fail. MOCK_REFUSE in the environment: there is no algorithm; MOCK_FAIL: convolutions fail.
 */
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#define STREAM ((cudaStream_t)0x40) /* as cudnn_check.cu has it */
#define WORKSPACE(algo) (1000 + (size_t)(algo))

struct images {
	cudnnDataType_t type;
	int size[4], step[4];
};
struct convolution {
	int pad[2], stride[2], dilation[2], groups;
	cudnnMathType_t math;
};

static cudaStream_t current;

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	*handle = (cudnnHandle_t)&current;
	return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	*(cudaStream_t *)handle = stream;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

#define DESCRIPTOR(Name, type) \
	cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t *d) \
	{ \
		*d = (cudnn##Name##Descriptor_t)calloc(1, sizeof(type)); \
		return CUDNN_STATUS_SUCCESS; \
	} \
	cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t d) \
	{ \
		free(d); \
		return CUDNN_STATUS_SUCCESS; \
	}
DESCRIPTOR(Tensor, struct images)
DESCRIPTOR(Filter, struct images)
DESCRIPTOR(Convolution, struct convolution)

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, int c, int h, int w,
	int n_step, int c_step, int h_step, int w_step)
{
	*(struct images *)d = (struct images){type, {n, c, h, w}, {n_step, c_step, h_step, w_step}};
	return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(
	cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int k, int c, int h, int w)
{
	*(struct images *)d = (struct images){type, {k, c, h, w}, {c * h * w, h * w, w, 1}};
	return format == CUDNN_TENSOR_NCHW ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int down,
	int across, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	*(struct convolution *)d =
		(struct convolution){{pad_h, pad_w}, {down, across}, {dilation_h, dilation_w}, 1, CUDNN_DEFAULT_MATH};
	return mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT ? CUDNN_STATUS_SUCCESS
									      : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
	((struct convolution *)d)->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
	((struct convolution *)d)->math = math;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- elements ---- */

static float load(const struct images *t, const void *at, const int i[4])
{
	int64_t e = 0;
	uint32_t bits;
	float value;

	for (int d = 0; d < 4; d++)
		e += (int64_t)i[d] * t->step[d];
	if (t->type == CUDNN_DATA_FLOAT)
		return ((const float *)at)[e];
	if (t->type == CUDNN_DATA_HALF)
		return (float)((const _Float16 *)at)[e];
	bits = (uint32_t)((const uint16_t *)at)[e] << 16;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* at[i] = sum + added * at[i], rounded once; bfloat16 here only gets numbers that need no rounding, or whose lower half is 0 */
static void store(const struct images *t, void *at, const int i[4], float sum, float added)
{
	int64_t e = 0;
	uint32_t bits;

	for (int d = 0; d < 4; d++)
		e += (int64_t)i[d] * t->step[d];
	if (added != 0) /* what is not added is not read */
		sum += added * load(t, at, i);
	if (t->type == CUDNN_DATA_FLOAT) {
		((float *)at)[e] = sum;
	} else if (t->type == CUDNN_DATA_HALF) {
		((_Float16 *)at)[e] = (_Float16)sum;
	} else {
		memcpy(&bits, &sum, sizeof(bits));
		((uint16_t *)at)[e] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
	}
}

/* ---- algorithms ---- */

static int fits(const struct images *x, const struct images *w, const struct images *y, const struct convolution *c)
{
	for (int d = 0; d < 2; d++)
		if ((x->size[2 + d] + 2 * c->pad[d] - c->dilation[d] * (w->size[2 + d] - 1) - 1) / c->stride[d] + 1 !=
			y->size[2 + d])
			return 0;
	return x->type == w->type && x->type == y->type && x->size[0] == y->size[0] &&
	       x->size[1] == w->size[1] * c->groups && w->size[0] == y->size[1] && w->size[0] % c->groups == 0;
}

static cudnnMathType_t math_of(const struct images *x)
{
	return x->type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
}

#define CAN(x, w, y, c, algo, wanted) \
	(fits((struct images *)(x), (struct images *)(w), (struct images *)(y), (struct convolution *)(c)) && \
		(algo) == (wanted) && ((struct convolution *)(c))->math == math_of((struct images *)(x)))

/* What may not be taken, then what may: `fast` is not made of the same products, `loose` has no fixed order, `failed` cannot be,
 * `other` has other products. */
#define LIST(type, fast, loose, failed, other, good) \
	const cudnnMathType_t math = math_of((const struct images *)x), \
			      unlike = math == CUDNN_FMA_MATH ? CUDNN_TENSOR_OP_MATH \
							      : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; \
	const type all[] = {{.algo = (fast), .determinism = CUDNN_DETERMINISTIC, .mathType = math}, \
		{.algo = (loose), .determinism = CUDNN_NON_DETERMINISTIC, .mathType = math}, \
		{.algo = (failed), \
			.status = CUDNN_STATUS_NOT_SUPPORTED, \
			.determinism = CUDNN_DETERMINISTIC, \
			.mathType = math}, \
		{.algo = (other), .determinism = CUDNN_DETERMINISTIC, .mathType = unlike}, \
		{.algo = (good), .determinism = CUDNN_DETERMINISTIC, .mathType = math}}; \
	const int count = (int)(sizeof(all) / sizeof(all[0])); \
\
	(void)handle; \
	*found = 0; \
	if (getenv("MOCK_REFUSE")) \
		return CUDNN_STATUS_NOT_SUPPORTED; \
	if (!fits((const struct images *)x, (const struct images *)w, (const struct images *)y, \
		    (const struct convolution *)c)) \
		return CUDNN_STATUS_BAD_PARAM; \
	*found = wanted < count ? wanted : count; \
	memcpy(list, all, (size_t)*found * sizeof(all[0])); \
	return CUDNN_STATUS_SUCCESS

#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define INPUT CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define WEIGHT CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
	const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t y,
	int wanted, int *found, cudnnConvolutionFwdAlgoPerf_t *list)
{
	LIST(cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
		CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, FORWARD);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
	const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t x,
	int wanted, int *found, cudnnConvolutionBwdDataAlgoPerf_t *list)
{
	LIST(cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
		CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, INPUT);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t w,
	int wanted, int *found, cudnnConvolutionBwdFilterAlgoPerf_t *list)
{
	LIST(cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
		CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
		CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, WEIGHT);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
	const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t y,
	cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
	(void)handle;
	*bytes = WORKSPACE(algo);
	return fits((struct images *)x, (struct images *)w, (struct images *)y, (struct convolution *)c)
		       ? CUDNN_STATUS_SUCCESS
		       : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
	const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t x,
	cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
	(void)handle;
	*bytes = WORKSPACE(algo);
	return fits((struct images *)x, (struct images *)w, (struct images *)y, (struct convolution *)c)
		       ? CUDNN_STATUS_SUCCESS
		       : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
	const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t w,
	cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
	(void)handle;
	*bytes = WORKSPACE(algo);
	return fits((struct images *)x, (struct images *)w, (struct images *)y, (struct convolution *)c)
		       ? CUDNN_STATUS_SUCCESS
		       : CUDNN_STATUS_BAD_PARAM;
}

/* ---- convolutions ---- */

/* One of the three, which is the result. */
struct call {
	const struct images *x, *w, *y;
	const void *x_at, *w_at, *y_at;
	const struct convolution *c;
};

static cudnnStatus_t ready(cudnnHandle_t handle, const void *alpha, void *workspace, size_t bytes, size_t wanted)
{
	if (getenv("MOCK_FAIL") || *(cudaStream_t *)handle != STREAM || *(const float *)alpha != 1 || !workspace ||
		bytes != wanted)
		return CUDNN_STATUS_EXECUTION_FAILED;
	memset(workspace, 0xCD, bytes);
	return CUDNN_STATUS_SUCCESS;
}

/* The pixel of x for the pixel i and the tap k; 0: it is outside. */
static int source(const struct call *v, const int y[4], const int w[4], int x[4])
{
	x[0] = y[0];
	x[1] = y[1] / (v->w->size[0] / v->c->groups) * v->w->size[1] + w[1];
	for (int d = 0; d < 2; d++) {
		x[2 + d] = y[2 + d] * v->c->stride[d] - v->c->pad[d] + w[2 + d] * v->c->dilation[d];
		if (x[2 + d] < 0 || x[2 + d] >= v->x->size[2 + d])
			return 0;
	}
	return 1;
}

static int next(const struct images *t, int i[4])
{
	for (int d = 3; d >= 0; d--) {
		if (++i[d] < t->size[d])
			return 1;
		i[d] = 0;
	}
	return 0;
}

static int place(const struct images *t, const int i[4])
{
	return ((i[0] * t->size[1] + i[1]) * t->size[2] + i[2]) * t->size[3] + i[3];
}

/* All products, each added to its element of the result; which: 0 y, 1 x, 2 w. */
static cudnnStatus_t convolve(const struct call *v, int which, void *out, float added)
{
	const struct images *t = which == 0 ? v->y : which == 1 ? v->x : v->w;
	float *sum = calloc((size_t)(t->size[0] * t->size[1] * t->size[2] * t->size[3]), sizeof(*sum));
	int y[4] = {0}, w[4], x[4], o[4] = {0};

	if (!sum)
		return CUDNN_STATUS_ALLOC_FAILED;
	do {
		memset(w, 0, sizeof(w));
		do {
			w[0] = y[1]; /* the filter of this channel: the others are passed over */
			if (!source(v, y, w, x))
				continue;
			if (which == 0)
				sum[place(t, y)] += load(v->x, v->x_at, x) * load(v->w, v->w_at, w);
			else if (which == 1)
				sum[place(t, x)] += load(v->y, v->y_at, y) * load(v->w, v->w_at, w);
			else
				sum[place(t, w)] += load(v->y, v->y_at, y) * load(v->x, v->x_at, x);
		} while (next(v->w, w) && w[0] == y[1]);
	} while (next(v->y, y));
	do
		store(t, out, o, sum[place(t, o)], added);
	while (next(t, o));
	free(sum);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
	const void *x_at, const cudnnFilterDescriptor_t w, const void *w_at, const cudnnConvolutionDescriptor_t c,
	cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes, const void *beta,
	const cudnnTensorDescriptor_t y, void *y_at)
{
	const struct call v = {
		(struct images *)x, (struct images *)w, (struct images *)y, x_at, w_at, NULL, (struct convolution *)c};

	if (!CAN(x, w, y, c, algo, FORWARD))
		return CUDNN_STATUS_BAD_PARAM;
	if (ready(handle, alpha, workspace, bytes, WORKSPACE(algo)))
		return CUDNN_STATUS_EXECUTION_FAILED;
	return convolve(&v, 0, y_at, *(const float *)beta);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w,
	const void *w_at, const cudnnTensorDescriptor_t y, const void *y_at, const cudnnConvolutionDescriptor_t c,
	cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes, const void *beta,
	const cudnnTensorDescriptor_t x, void *x_at)
{
	const struct call v = {
		(struct images *)x, (struct images *)w, (struct images *)y, NULL, w_at, y_at, (struct convolution *)c};

	if (!CAN(x, w, y, c, algo, INPUT))
		return CUDNN_STATUS_BAD_PARAM;
	if (ready(handle, alpha, workspace, bytes, WORKSPACE(algo)))
		return CUDNN_STATUS_EXECUTION_FAILED;
	return convolve(&v, 1, x_at, *(const float *)beta);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
	const void *x_at, const cudnnTensorDescriptor_t y, const void *y_at, const cudnnConvolutionDescriptor_t c,
	cudnnConvolutionBwdFilterAlgo_t algo, void *workspace, size_t bytes, const void *beta,
	const cudnnFilterDescriptor_t w, void *w_at)
{
	const struct call v = {
		(struct images *)x, (struct images *)w, (struct images *)y, x_at, NULL, y_at, (struct convolution *)c};

	if (!CAN(x, w, y, c, algo, WEIGHT))
		return CUDNN_STATUS_BAD_PARAM;
	if (ready(handle, alpha, workspace, bytes, WORKSPACE(algo)))
		return CUDNN_STATUS_EXECUTION_FAILED;
	return convolve(&v, 2, w_at, *(const float *)beta);
}
