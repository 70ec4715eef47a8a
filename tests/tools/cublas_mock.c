/* SPDX-License-Identifier: MIT
 * A libcublasLt that multiplies on the host by plain loops, from the header's descriptions: it checks what gemm_cublas.cu asks for.
 * float32 only. MOCK_REFUSE in the environment: there is no algorithm.
 */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

struct desc {
	int32_t turn_a, turn_b, epilogue;
	const float *bias;
};

struct layout {
	uint64_t rows, columns;
	int64_t pitch, batch;
	int32_t batches;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	static int one;

	*handle = (cublasLtHandle_t)&one;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
	if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*desc = calloc(1, sizeof(struct desc));
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
	free(desc);
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(
	cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const void *value, size_t size)
{
	struct desc *d = (struct desc *)desc;

	switch (name) {
	case CUBLASLT_MATMUL_DESC_TRANSA: memcpy(&d->turn_a, value, size); break;
	case CUBLASLT_MATMUL_DESC_TRANSB: memcpy(&d->turn_b, value, size); break;
	case CUBLASLT_MATMUL_DESC_EPILOGUE: memcpy(&d->epilogue, value, size); break;
	case CUBLASLT_MATMUL_DESC_BIAS_POINTER: memcpy(&d->bias, value, size); break;
	case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: break;
	default: return CUBLAS_STATUS_INVALID_VALUE;
	}
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(
	cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t pitch)
{
	struct layout *l = calloc(1, sizeof(*l));

	if (type != CUDA_R_32F || pitch < (int64_t)rows)
		return CUBLAS_STATUS_INVALID_VALUE;
	*l = (struct layout){rows, columns, pitch, 0, 1};
	*layout = (cublasLtMatrixLayout_t)l;
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	free(layout);
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(
	cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void *value, size_t size)
{
	struct layout *l = (struct layout *)layout;

	if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
		memcpy(&l->batches, value, size);
	else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
		memcpy(&l->batch, value, size);
	else
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	*preference = calloc(1, 8);
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
	free(preference);
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
	cublasLtMatmulPreferenceAttributes_t name, const void *value, size_t size)
{
	uint32_t aligned = 0;

	(void)preference;
	if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
		return CUBLAS_STATUS_SUCCESS;
	memcpy(&aligned, value, size);
	return aligned >= 4 && aligned <= 256 && (aligned & (aligned - 1)) == 0 ? CUBLAS_STATUS_SUCCESS
										: CUBLAS_STATUS_INVALID_VALUE;
}

static int fits(const struct desc *d, const struct layout *a, const struct layout *b, const struct layout *c)
{
	uint64_t m = d->turn_a == CUBLAS_OP_T ? a->columns : a->rows,
		 k = d->turn_a == CUBLAS_OP_T ? a->rows : a->columns;
	uint64_t n = d->turn_b == CUBLAS_OP_T ? b->rows : b->columns,
		 kb = d->turn_b == CUBLAS_OP_T ? b->columns : b->rows;

	return m == c->rows && n == c->columns && k == kb && a->batches == c->batches && b->batches == c->batches;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
	cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *results, int *found)
{
	(void)handle, (void)d, (void)preference, (void)wanted;
	*found = 0;
	if (getenv("MOCK_REFUSE"))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!fits((struct desc *)desc, (struct layout *)a, (struct layout *)b, (struct layout *)c))
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(results, 0, sizeof(*results));
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static float at(const float *x, const struct layout *l, int turned, uint64_t row, uint64_t column)
{
	return turned == CUBLAS_OP_T ? x[(int64_t)row * l->pitch + (int64_t)column]
				     : x[(int64_t)column * l->pitch + (int64_t)row];
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
	cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c,
	cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo,
	void *workspace, size_t bytes, cudaStream_t stream)
{
	const struct desc *d = (struct desc *)desc;
	const struct layout *x = (struct layout *)la, *y = (struct layout *)lb, *z = (struct layout *)ld;
	uint64_t inner = d->turn_a == CUBLAS_OP_T ? x->rows : x->columns;

	(void)handle, (void)c, (void)lc, (void)algo, (void)workspace, (void)bytes, (void)stream;
	if (*(const float *)alpha != 1 || *(const float *)beta != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int32_t i = 0; i < z->batches; i++)
		for (uint64_t column = 0; column < z->columns; column++)
			for (uint64_t row = 0; row < z->rows; row++) {
				float sum = 0;

				for (uint64_t k = 0; k < inner; k++)
					sum += at((const float *)a + i * x->batch, x, d->turn_a, row, k) *
					       at((const float *)b + i * y->batch, y, d->turn_b, k, column);
				if (d->epilogue == CUBLASLT_EPILOGUE_BIAS || d->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
					sum += d->bias[row];
				if (d->epilogue == CUBLASLT_EPILOGUE_RELU || d->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
					sum = sum < 0 ? 0 : sum;
				((float *)out)[i * z->batch + (int64_t)column * z->pitch + (int64_t)row] = sum;
			}
	return CUBLAS_STATUS_SUCCESS;
}
