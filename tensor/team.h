/* SPDX-License-Identifier: MIT
 * The OpenMP team that runs parallel loops. It belongs to the process, not to a context, and to the thread that
 * used it first.
 */
#ifndef QUOLL_TENSOR_TEAM_H
#define QUOLL_TENSOR_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* `me` is 0 for the caller, else the number of the thread. */
typedef void ql_team_fn(void *arg, int me);

/* Starts a team of `n` threads including the caller. Returns their number: fewer if the system cannot start them. */
int ql_team_ready(int n);
/* Runs fn on all threads of the team; on the caller only when the team is busy or belongs to another thread. */
void ql_team_run(ql_team_fn *fn, void *arg);
/* Nanoseconds of work above which sharing it pays now: less while the threads are awake. Measured when the team
 * starts; QUOLL_TEAM_NS overrides it. */
int64_t ql_team_pays(void);

/* Pins the calling thread and the team's threads to one processor each, distinct cores first, or unpins them.
 * False: the system refuses. */
bool ql_team_pin(bool on);
bool ql_team_pinned(void);
/* Number of processors that this process may use. */
int ql_team_processors(void);

#endif
