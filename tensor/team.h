/* SPDX-License-Identifier: MIT
 * The threads that run parallel loops. They belong to the process, not to a context, and work for the thread that
 * used them first.
 */
#ifndef QUOLL_TENSOR_TEAM_H
#define QUOLL_TENSOR_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* `me` is 0 for the caller, else the number of the thread, which may be n or more. */
typedef void ql_team_fn(void *arg, int me);

/* Starts a team of `n` threads including the caller. Returns their number: fewer if the system cannot start them. */
int ql_team_ready(int n);
/* Runs fn on the caller and on up to n - 1 threads that are there before the caller has finished; on the caller only when
 * the team is busy or belongs to another thread. What fn does must therefore be claimed, not dealt out by `me`. */
void ql_team_run(int n, ql_team_fn *fn, void *arg);
/* True when sharing a loop of so much work pays now: any while the threads are awake. What waking them costs is
 * measured when the team starts; QUOLL_TEAM_NS sets the least work instead. To be asked once for each loop. */
bool ql_team_pays(int64_t work_ns);

/* Pins the calling thread and the team's threads to one processor each, distinct cores first, or unpins them.
 * False: the system refuses. */
bool ql_team_pin(bool on);
bool ql_team_pinned(void);
/* Number of processors that this process may use. */
int ql_team_processors(void);

#endif
