/* SPDX-License-Identifier: MIT
 * The convolution on AMX on a plain C model of the tile instructions, so that tests/kernels_conv.c can run its code on every processor.
 */
#define QL_AMX_MODEL
#define conv_i8_amx conv_i8_amx_model

#include "tensor/kernels/conv_i8_amx.c" /* NOLINT(bugprone-suspicious-include) */
