/* SPDX-License-Identifier: MIT
 * io.read at a kernel: stdin is a stream of ours that asks the front end for a line.
 */
#ifndef QUOLL_INTERP_JUPYTER_INPUT_H
#define QUOLL_INTERP_JUPYTER_INPUT_H

#include "interp/jupyter/jupyter.h"

/* False: there is no memory. */
bool ql_input_begin(struct ql_jupyter *k);
void ql_input_end(struct ql_jupyter *k);

#endif
