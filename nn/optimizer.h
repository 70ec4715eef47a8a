/* SPDX-License-Identifier: MIT
 * Steps of optimizers, in place over lists of float tensors, each in one pass over memory; and the norm of
 * gradients.
 *
 * The state (momentum, moments) has the shape of its parameter, contiguous, in float64 for a float64 parameter,
 * else in float32. Parameters of 16 bits are computed in float32 and rounded once per step. The bits do not depend
 * on the instruction set or the threads. Interrupts wait until a started step is complete.
 */
#ifndef QUOLL_NN_OPTIMIZER_H
#define QUOLL_NN_OPTIMIZER_H

#include "tensor/tensor.h"

#define QL_TRAINED_STATES 3

/* One parameter with its gradient; both of the same shape. */
struct ql_trained {
	struct ql_tensor *value, *gradient;
	/* sgd: momentum or NULL; adam: first and second moment; rmsprop: mean of squares, momentum or NULL, mean or NULL; adagrad: sum of
	 * squares */
	struct ql_tensor *state[QL_TRAINED_STATES];
	int64_t step; /* adam, adagrad: number of this step of this tensor, from 1 */
};

/* Applied to every gradient first: multiplied by scale, then clamped to -limit..limit (0: no limit). */
struct ql_clip {
	double scale, limit;
};

struct ql_sgd {
	struct ql_clip clip;
	double lr, momentum, decay;
	bool nesterov;
};

struct ql_adam {
	struct ql_clip clip;
	double lr, beta1, beta2, eps, decay;
	bool decoupled; /* decay scales the parameter (AdamW) instead of adding to the gradient */
};

struct ql_rmsprop {
	struct ql_clip clip;
	double lr, alpha, eps, momentum, decay;
	bool centered; /* divides by the deviation instead of the root of the mean square */
};

struct ql_adagrad {
	struct ql_clip clip;
	double lr, lr_decay, eps, decay;
};

enum ql_status ql_sgd_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_sgd *options);
enum ql_status ql_adam_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_adam *options);
enum ql_status ql_rmsprop_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_rmsprop *options);
enum ql_status ql_adagrad_step(struct ql_ctx *ctx, int n, struct ql_trained *list, const struct ql_adagrad *options);
/* The square root of the sum of squares of all elements, accumulated in float64 in a fixed order. */
enum ql_status ql_gradient_norm(struct ql_ctx *ctx, int n, struct ql_tensor *const *list, double *norm);
/* Applies `clip` to the tensors themselves. */
enum ql_status ql_gradient_clip(struct ql_ctx *ctx, int n, struct ql_tensor *const *list, const struct ql_clip *clip);

#endif
