/* SPDX-License-Identifier: MIT
 * The process of a kernel: where its file descriptors lead, its signals, its parent.
 */
#ifndef QUOLL_INTERP_JUPYTER_SURROUNDINGS_H
#define QUOLL_INTERP_JUPYTER_SURROUNDINGS_H

#include <signal.h>
#include <sys/types.h>

#include "interp/jupyter/jupyter.h"

struct ql_surroundings {
	struct ql_jupyter *kernel;
	int saved[3]; /* 0 1 2 as they were */
	pid_t parent; /* 0: it is not watched */
	bool begun;
};

/* From here on children read nothing and print into the kernel's pipes, SIGINT interrupts cells (a second one
 * does not end the process) and SIGTERM makes the kernel leave. `wake` is an eventfd that wakes the
 * interpreter's thread. False, with the reason in `error`: no file descriptors. */
bool ql_surroundings_begin(struct ql_surroundings *p, struct ql_jupyter *k, int wake, char error[QL_CONNECTION_ERROR]);
/* For the service thread, now and then: leaves when the parent is gone. While the kernel is to leave,
 * interrupts it again and again: the first one is lost when a cell is just about to start a child. */
void ql_surroundings_look(struct ql_surroundings *p);
/* All as it was; children that still run get SIGTERM when they are of a group of ours. */
void ql_surroundings_end(struct ql_surroundings *p);

#endif
