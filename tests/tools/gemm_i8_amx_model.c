/* SPDX-License-Identifier: MIT
 * The AMX kernel on a plain C model of the tile instructions, so that tests/kernels.c can run its code on every processor.
 */
#define QL_AMX_MODEL
#define gemm_i8_amx gemm_i8_amx_model

#include "tensor/kernels/gemm_i8_amx.c" /* NOLINT(bugprone-suspicious-include) */
