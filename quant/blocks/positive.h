/* SPDX-License-Identifier: MIT
 * Encodes the scales of a superblock if importance is given: ggml's weighted search for values >= 0.
 */
#ifndef QUOLL_QUANT_BLOCKS_POSITIVE_H
#define QUOLL_QUANT_BLOCKS_POSITIVE_H

#include "quant/blocks/block.h"

/* Rounds |v| < 2^22 half to even; other values give an unspecified integer of at most 23 bits. */
int ql_positive_round(float v);
/* Encodes n <= QL_TILE_BLOCKS values v with weights w as 0..top; returns their scale. */
float ql_positive_search(int n, int top, const float *v, const float *w, uint8_t *code);
/* Multiplies the importance of a superblock's elements by sqrt(factor * mean(x * x) + x * x). */
void ql_positive_weights(struct ql_block_tile *t, int factor);

#endif
