/* SPDX-License-Identifier: MIT
 * A kernel on libzmq: its five sockets, the threads that serve them, and the process around it (output of
 * children, signals, a parent that dies).
 */
#ifndef QUOLL_INTERP_JUPYTER_SOCKETS_H
#define QUOLL_INTERP_JUPYTER_SOCKETS_H

#include "interp/jupyter/jupyter.h"

/* Runs the kernel of a connection file until it is told to leave; returns its exit code. False, with the reason in
 * `error`: it could not be started. */
bool ql_jupyter_serve(struct ql_state *state, const char *file, int *code, char error[QL_CONNECTION_ERROR]);

#endif
