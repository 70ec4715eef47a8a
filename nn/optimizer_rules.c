/* SPDX-License-Identifier: MIT
 * The formulas are PyTorch's, operation by operation: SGD (momentum without dampening, Nesterov), Adam (Kingma and Ba 2014) and
 * AdamW (Loshchilov and Hutter 2017) with bias correction, RMSprop (Hinton 2012, and Graves 2013 with a mean), Adagrad (Duchi et
 * al. 2011).
 */
#include "nn/optimizer_rules.h"

#include <math.h>

#include "tensor/vmath/simd.h"

#define CLIPPED(real) \
	real d = g[i] * scale; \
	d = d > limit ? limit : d; \
	d = d < -limit ? -limit : d

#define NUMBERS(real) \
	const real scale = (real)k->scale, limit = (real)k->limit, lr = (real)k->lr, decay = (real)k->decay

#define SGD(real) \
	{ \
		NUMBERS(real); \
		const real momentum = (real)k->momentum, ahead = (real)k->nesterov; \
\
		(void)v, (void)w; \
		if (!s) { \
			for (int64_t i = 0; i < n; i++) { \
				CLIPPED(real); \
				d = d + decay * p[i]; \
				p[i] = p[i] - lr * d; \
			} \
			return; \
		} \
		for (int64_t i = 0; i < n; i++) { \
			CLIPPED(real); \
			d = d + decay * p[i]; \
			s[i] = momentum * s[i] + d; \
			d = ahead != 0 ? d + momentum * s[i] : s[i]; \
			p[i] = p[i] - lr * d; \
		} \
	}

#define ADAM(real, root_of) \
	{ \
		NUMBERS(real); \
		const real keep1 = (real)k->keep1, beta2 = (real)k->momentum, keep2 = (real)k->keep2; \
		const real root = (real)k->root, eps = (real)k->eps, shrink = (real)k->shrink; \
\
		(void)w; \
		for (int64_t i = 0; i < n; i++) { \
			CLIPPED(real); \
			real x = p[i] * shrink; \
			d = d + decay * x; \
			s[i] = s[i] + keep1 * (d - s[i]); \
			v[i] = v[i] * beta2 + keep2 * d * d; \
			p[i] = x - lr * s[i] / (root_of(v[i]) / root + eps); \
		} \
	}

/* s: mean of squares, v: momentum or NULL, w: mean or NULL, with which the variance divides, which rounding could make negative */
#define RMSPROP(real, root_of) \
	{ \
		NUMBERS(real); \
		const real alpha = (real)k->root, keep1 = (real)k->keep1, momentum = (real)k->momentum, \
			   eps = (real)k->eps; \
\
		for (int64_t i = 0; i < n; i++) { \
			CLIPPED(real); \
			d = d + decay * p[i]; \
			s[i] = s[i] * alpha + keep1 * d * d; \
			real square = s[i]; \
			if (w) { \
				w[i] = w[i] + keep1 * (d - w[i]); \
				square = square - w[i] * w[i]; \
				square = square < 0 ? 0 : square; \
			} \
			d = d / (root_of(square) + eps); \
			if (v) \
				d = v[i] = v[i] * momentum + d; \
			p[i] = p[i] - lr * d; \
		} \
	}

/* s: sum of squares */
#define ADAGRAD(real, root_of) \
	{ \
		NUMBERS(real); \
		const real eps = (real)k->eps; \
\
		(void)v, (void)w; \
		for (int64_t i = 0; i < n; i++) { \
			CLIPPED(real); \
			d = d + decay * p[i]; \
			s[i] = s[i] + d * d; \
			p[i] = p[i] - lr * d / (root_of(s[i]) + eps); \
		} \
	}

#define STEP_F32(name, ...) \
	QL_SIMD(void, name, (int64_t n, float *restrict p, const float *restrict g, float *restrict s, float *restrict v, \
		float *restrict w, const struct ql_step_numbers *k), __VA_ARGS__)
#define STEP_F64(name, ...) \
	static void name(int64_t n, double *restrict p, const double *restrict g, double *restrict s, \
		double *restrict v, double *restrict w, const struct ql_step_numbers *k) __VA_ARGS__

STEP_F32(sgd_f32, SGD(float))
STEP_F64(sgd_f64, SGD(double))
STEP_F32(adam_f32, ADAM(float, sqrtf))
STEP_F64(adam_f64, ADAM(double, sqrt))
STEP_F32(rmsprop_f32, RMSPROP(float, sqrtf))
STEP_F64(rmsprop_f64, RMSPROP(double, sqrt))
STEP_F32(adagrad_f32, ADAGRAD(float, sqrtf))
STEP_F64(adagrad_f64, ADAGRAD(double, sqrt))

/* Clips gradients: p is the gradient. */
#define CLIP(real) \
	{ \
		NUMBERS(real); \
\
		(void)s, (void)v, (void)w, (void)lr, (void)decay, (void)g; \
		for (int64_t i = 0; i < n; i++) { \
			real d = p[i] * scale; \
			d = d > limit ? limit : d; \
			p[i] = d < -limit ? -limit : d; \
		} \
	}
STEP_F32(clip_f32, CLIP(float))
STEP_F64(clip_f64, CLIP(double))

const struct ql_step_rule ql_step_sgd = {sgd_f32, sgd_f64, 1, 6};
const struct ql_step_rule ql_step_adam = {adam_f32, adam_f64, 2, 12};
const struct ql_step_rule ql_step_rmsprop = {rmsprop_f32, rmsprop_f64, 3, 12};
const struct ql_step_rule ql_step_adagrad = {adagrad_f32, adagrad_f64, 1, 12};
const struct ql_step_rule ql_step_clip = {clip_f32, clip_f64, 0, 3};
