/* SPDX-License-Identifier: MIT
 * For mse, which tries the range of entropy: most of the time it can be told that it would not be the best one.
 */
#ifndef QUOLL_QUANT_OBSERVERS_ENTROPY_H
#define QUOLL_QUANT_OBSERVERS_ENTROPY_H

#include "quant/ranges/observer.h"

/* Gives the range of entropy, or false if it is one that mse does not want: `wanted` says so of a range, and it wants none
 * whose threshold is below `least`, nor the range of all values. For views without `even`. */
bool ql_entropy_range(const struct ql_view *v, double least, bool (*wanted)(void *arg, double lo, double hi), void *arg,
	double *lo, double *hi);

#endif
