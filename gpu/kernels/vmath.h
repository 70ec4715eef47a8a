/* SPDX-License-Identifier: MIT
 * The functions of tensor/vmath in device code, so the bits of the CPU. Their header of loops for the CPU is left out by its
 * own guard.
 */
#ifndef QUOLL_GPU_KERNELS_VMATH_H
#define QUOLL_GPU_KERNELS_VMATH_H

#include <cuda_runtime.h>

#define QUOLL_TENSOR_VMATH_SIMD_H
#define QL_INLINE __device__ static __forceinline__

#include "tensor/vmath/below.h"
#include "tensor/vmath/log.h"

#endif
