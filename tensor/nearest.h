/* SPDX-License-Identifier: MIT
 * "did you mean": all messages about an unknown word of a list use these functions.
 */
#ifndef QUOLL_TENSOR_NEAREST_H
#define QUOLL_TENSOR_NEAREST_H

#include "tensor/base.h"

/* Suggests the nearest of the space-separated `words`: "; did you mean 'x'?", or "" when none is close. The result
 * is in `text`. */
const char *ql_nearest(const char *word, const char *words, char text[96]);

/* Fails with "what: wanted one of words, got 'got'; did you mean 'x'?" */
enum ql_status ql_fail_choice(struct ql_ctx *ctx, const char *what, const char *words, const char *got);

#endif
