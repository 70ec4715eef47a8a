/* SPDX-License-Identifier: MIT
 * The inputs of this kernel with their results as text, for history_request. They are kept as long as it
 * runs.
 */
#ifndef QUOLL_INTERP_JUPYTER_RECALL_H
#define QUOLL_INTERP_JUPYTER_RECALL_H

#include "interp/jupyter/wire.h"

#define QL_RECALL_INPUTS 10000 /* the oldest go */
#define QL_RECALL_OUTPUT 4096  /* bytes kept of a result */

struct ql_recall_entry {
	int line; /* execution_count */
	struct ql_wire input, output;
};

struct ql_recall {
	struct ql_recall_entry *entry; /* a ring */
	int first, n;
};

/* Does nothing when there is no memory. */
void ql_recall_add(struct ql_recall *h, int line, const char *input);
/* The result of the newest input, when it has that line. */
void ql_recall_result(struct ql_recall *h, int line, const char *output, size_t n);
void ql_recall_free(struct ql_recall *h);

#endif
