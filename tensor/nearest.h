/* SPDX-License-Identifier: MIT
 * "did you mean": every message about a word that is not one of a list is made with these.
 */
#ifndef QUOLL_TENSOR_NEAREST_H
#define QUOLL_TENSOR_NEAREST_H

#include "tensor/base.h"

/* "; did you mean 'x'?" for an unknown word among the space-separated `words`: "" when nothing is near. `text` holds the
 * result. */
const char *ql_nearest(const char *word, const char *words, char text[96]);

/* Fails with "what: wanted one of words, got 'got'; did you mean 'x'?" */
enum ql_status ql_fail_choice(struct ql_ctx *ctx, const char *what, const char *words, const char *got);

#endif
