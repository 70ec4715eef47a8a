/* SPDX-License-Identifier: MIT
 * The part of the CUDA driver that kernels use by cudaGetDriverEntryPointByVersion: maps of tensors for copies by
 * coordinates. Own declarations; names and numbers are those of NVIDIA's documentation of the driver.
 */
#ifndef QUOLL_GPU_EMU_CUDA_H
#define QUOLL_GPU_EMU_CUDA_H

#include <stdint.h>

typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 } CUresult;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;

typedef enum { CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0 } CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 } CUtensorMapInterleave;
typedef enum { CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_128B = 3 } CUtensorMapSwizzle;
typedef enum { CU_TENSOR_MAP_L2_PROMOTION_NONE = 0, CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 } CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 } CUtensorMapFloatOOBfill;

/* 128 bytes at a multiple of 64, as in the driver; what is in them is our own. */
typedef struct CUtensorMap_st {
	alignas(64) const unsigned char *at;
	uint32_t rank, swizzle, box[3];
	uint64_t shape[3], stride[3]; /* stride[0]: 1 */
	uint64_t rest[5];
} CUtensorMap;

#ifdef __cplusplus
extern "C"
#endif
	CUresult
	cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
		const cuuint64_t *shape, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
		CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
		CUtensorMapFloatOOBfill fill);

#endif
