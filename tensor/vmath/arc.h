/* SPDX-License-Identifier: MIT
 * Arc functions for float32, in double and rounded once, by the rules of vmath.h: errors of at most 0.51 units in the last place.
 */
#ifndef QUOLL_TENSOR_VMATH_ARC_H
#define QUOLL_TENSOR_VMATH_ARC_H

#include "tensor/vmath/vmath.h"

/* Exported C has its own sqrt, which rounds like the processor's. */
QL_INLINE double ql_sqrt(double x)
{
	return sqrt(x);
}

/* x / (1 + sqrt(1 + x^2)) is the tangent of half the angle: applied twice, then the series for |t| <= tan(pi / 16). */
QL_INLINE double ql_arctangent(double x)
{
	double size = x < 0 ? -x : x, t = size > 1 ? 1 / size : size, z, s = 1.0 / 17;

	for (int i = 0; i < 2; i++)
		t = t / (1 + ql_sqrt(1 + t * t));
	z = t * t;
	for (int i = 15; i > 0; i -= 2)
		s = 1.0 / i - z * s;
	s = 4 * t * s;
	s = size > 1 ? 1.5707963267948966 - s : s;
	return x < 0 ? -s : s;
}

QL_INLINE float ql_asin(float a)
{
	double x = (double)a;
	float angle = a == 0 ? a : (float)ql_arctangent(x / ql_sqrt((1 - x) * (1 + x)));

	return x * x <= 1 ? angle : NAN;
}

QL_INLINE float ql_acos(float a)
{
	double x = (double)a;
	float angle = (float)(2 * ql_arctangent(ql_sqrt((1 - x) / (1 + x))));

	return x * x <= 1 ? angle : NAN;
}

/* The angle of the point (x, y) from -pi to pi; axes and infinities as C99 has them. */
QL_INLINE float ql_atan2(float y, float x)
{
	double up = (double)fabsf(y), along = (double)fabsf(x), t = up == along ? 1 : up / along, angle;

	angle = ql_arctangent(up == 0 ? 0 : t);
	angle = copysignf(1, x) < 0 ? 3.1415926535897931 - angle : angle;
	return ((x != x) | (y != y)) ? x + y : copysignf((float)angle, y);
}

QL_INLINE float ql_atan(float a)
{
	return a == 0 ? a : (float)ql_arctangent((double)a);
}

#endif
