/* SPDX-License-Identifier: MIT
 * Synthetic data sets: they need no file, and the same n and seed give the same bits on every machine.
 */
#ifndef QUOLL_NN_SYNTH_H
#define QUOLL_NN_SYNTH_H

#include "tensor/tensor.h"

#define QL_SYNTH_STATES 27 /* of the Markov chain: a blank and the letters */

/* Gives x, plain uint8 (n, 1, 28, 28), and y, int64 (n) from 1 to 10: the digits 0 to 9. */
enum ql_status ql_synth_digits(
	struct ql_ctx *ctx, int64_t n, uint64_t seed, struct ql_tensor **x, struct ql_tensor **y);
/* Gives x, plain uint8 (n, 3, 32, 32), and y, int64 (n) from 1 to 10: the shapes of synth_images.c. */
enum ql_status ql_synth_shapes(
	struct ql_ctx *ctx, int64_t n, uint64_t seed, struct ql_tensor **x, struct ql_tensor **y);
/* Gives n tokens, int32 from 1 to QL_SYNTH_STATES, of a Markov chain, and its float64 (states, states) transition
 * probabilities, one row per state. `chain` seeds the chain, `seed` the text. *entropy: entropy rate in nats per
 * token. */
enum ql_status ql_synth_markov(struct ql_ctx *ctx, int64_t n, uint64_t chain, uint64_t seed, struct ql_tensor **tokens,
	struct ql_tensor **matrix, double *entropy);

#endif
