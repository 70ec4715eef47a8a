/* SPDX-License-Identifier: MIT
 * The loops of optimizers' rules over dense elements, and the numbers that they read.
 */
#ifndef QUOLL_NN_OPTIMIZER_RULES_H
#define QUOLL_NN_OPTIMIZER_RULES_H

#include <stdint.h>

/* Constants of a step, computed once per tensor; gpu/kernels/optimizer.cu has them in this order. */
struct ql_step_numbers {
	double scale, limit, lr, momentum, decay;
	double keep1, keep2, root, eps, shrink; /* adam: 1 - beta1, 1 - beta2, sqrt(1 - beta2^t), eps, 1 - lr decay */
	double nesterov;                        /* 0, 1 */
};
#define QL_STEP_NUMBERS ((int)(sizeof(struct ql_step_numbers) / sizeof(double)))

/* n elements: value p, gradient g, states s, v and w (NULL: none) */
typedef void ql_step_f32_fn(
	int64_t n, float *p, const float *g, float *s, float *v, float *w, const struct ql_step_numbers *k);
typedef void ql_step_f64_fn(
	int64_t n, double *p, const double *g, double *s, double *v, double *w, const struct ql_step_numbers *k);

struct ql_step_rule {
	ql_step_f32_fn *const *f32;
	ql_step_f64_fn *f64;
	int states;
	int ns_per_16;
};

extern const struct ql_step_rule ql_step_sgd, ql_step_adam, ql_step_rmsprop, ql_step_adagrad, ql_step_clip;

#endif
