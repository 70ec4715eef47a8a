/* SPDX-License-Identifier: MIT
 * The OpenMP team that runs parallel loops. It belongs to the process, not to a context: to the thread that used it first.
 */
#ifndef QUOLL_TENSOR_TEAM_H
#define QUOLL_TENSOR_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* `me` is 0 for the caller, else the number of the thread. */
typedef void ql_team_fn(void *arg, int me);

/* Makes a team of `n` threads with the caller. Returns how many it has: fewer where the system refuses to start them. */
int ql_team_ready(int n);
/* Runs fn on all threads of the team; on the caller alone when the team is in use or belongs to another thread. */
void ql_team_run(ql_team_fn *fn, void *arg);
/* Nanoseconds of work from which sharing it pays now: less while the threads are awake. Measured when the team was started;
 * QUOLL_TEAM_NS sets it. */
int64_t ql_team_pays(void);

/* Pins the calling thread and those of the team to a processor each, distinct cores first, or lets them go again. False:
 * the system refuses. */
bool ql_team_pin(bool on);
bool ql_team_pinned(void);
/* Processors that this process may use. */
int ql_team_processors(void);

#endif
