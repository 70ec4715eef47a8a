/* SPDX-License-Identifier: MIT
 * The only parallel loop. Threads claim chunks dynamically, so a busy core delays only its own chunk; the interrupt
 * flag is polled before each chunk. A loop with less work than starting the team costs on this machine (team.h)
 * runs on the calling thread.
 */
#ifndef QUOLL_TENSOR_PARALLEL_H
#define QUOLL_TENSOR_PARALLEL_H

#include "tensor/base.h"

#define QL_PARALLEL_MIN_NS \
	4000 /* on any machine: moving a smaller loop's data to other cores costs more than it saves */

/* body works on items begin..end-1 and may neither fail, allocate nor call back into the host. */
typedef void ql_parallel_fn(void *arg, int64_t begin, int64_t end);

/* Runs body over 0..n-1 in chunks of `grain` items. `work_ns` estimates the whole loop on one thread.
 * QL_ERR_INTERRUPTED when the flag was seen (the result is then incomplete). */
enum ql_status ql_parallel_for(
	struct ql_ctx *ctx, int64_t n, int64_t grain, int64_t work_ns, ql_parallel_fn *body, void *arg);

#endif
