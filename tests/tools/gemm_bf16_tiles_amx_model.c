/* SPDX-License-Identifier: MIT
 * The AMX kernel of bfloat16 numbers on a plain C model of the tile instructions, so that tests/kernels_bf16.c can run its code on every
 * processor.
 */
#define QL_AMX_MODEL
#define gemm_bf16_tiles_amx gemm_bf16_tiles_amx_model

#include "tensor/kernels/gemm_bf16_tiles_amx.c" /* NOLINT(bugprone-suspicious-include) */
