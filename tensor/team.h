/* SPDX-License-Identifier: MIT
 * The threads that run parallel loops beside the caller. They belong to the process, not to a context: one loop uses
 * them at a time, another one runs on its caller's thread meanwhile.
 */
#ifndef QUOLL_TENSOR_TEAM_H
#define QUOLL_TENSOR_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* `me` is 0 for the caller, else the number of the thread. */
typedef void ql_team_fn(void *arg, int me);

/* Starts threads until `n` with the caller are there; gives how many are, which is less where the system refuses. */
int ql_team_ready(int n);
/* Runs fn here, and on up to n - 1 others that arrive before it is done here; returns when all of them are done. */
void ql_team_run(int n, ql_team_fn *fn, void *arg);
/* Nanoseconds of work from which it pays to share it with n - 1 others now: awake ones come at once. Measured when the
 * threads were started; QUOLL_TEAM_NS sets it. */
int64_t ql_team_pays(int n);

/* Pins the calling thread and those of the team to a processor each, distinct cores first, or lets them go again. False:
 * the system refuses. */
bool ql_team_pin(bool on);
bool ql_team_pinned(void);
/* Processors that this process may use. */
int ql_team_processors(void);

#endif
