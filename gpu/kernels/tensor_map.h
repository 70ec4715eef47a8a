/* SPDX-License-Identifier: MIT
 * Maps of matrices for ql_tensor_copy (ptx.h), made by a function of the driver that is asked for by name: nothing is linked
 * with the driver.
 */
#ifndef QUOLL_GPU_KERNELS_TENSOR_MAP_H
#define QUOLL_GPU_KERNELS_TENSOR_MAP_H

#include <cuda.h>
#include <cuda_runtime.h>

typedef CUresult ql_encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
	const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
	CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* Matrices of bytes; strides are multiples of 16 below 2^40. */
struct ql_byte_matrices {
	const void *at;
	int64_t k, lines, batches;
	int64_t line, batch; /* bytes between them */
};

/* Boxes of `rows` lines, at most 256, of 128 bytes, with the 128-byte swizzle; what lies beyond the ends is 0. */
static inline cudaError_t ql_tensor_map(const ql_byte_matrices &m, uint32_t rows, CUtensorMap *map)
{
	const cuuint64_t shape[3] = {(cuuint64_t)m.k, (cuuint64_t)m.lines, (cuuint64_t)m.batches};
	const cuuint64_t stride[2] = {(cuuint64_t)m.line, (cuuint64_t)m.batch};
	const cuuint32_t box[3] = {128, rows, 1}, step[3] = {1, 1, 1};
	cudaDriverEntryPointQueryResult found;
	void *encode = NULL;
	cudaError_t error =
		cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);

	if (error)
		return error;
	if (found != cudaDriverEntryPointSuccess || !encode)
		return cudaErrorNotSupported;
	return reinterpret_cast<ql_encode_fn *>(encode)(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<void *>(m.at),
		       shape, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
		       ? cudaErrorInvalidValue
		       : cudaSuccess;
}

#endif
