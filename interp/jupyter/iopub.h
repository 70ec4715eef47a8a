/* SPDX-License-Identifier: MIT
 * What a kernel broadcasts. Printed text is gathered and sent as few `stream` messages: when something else
 * is to be sent, when there is much of it, or after QL_IOPUB_DELAY. Order is kept: whatever a child process
 * has printed by then goes before what the interpreter puts out next.
 */
#ifndef QUOLL_INTERP_JUPYTER_IOPUB_H
#define QUOLL_INTERP_JUPYTER_IOPUB_H

#include "interp/jupyter/jupyter.h"

#define QL_IOPUB_DELAY 50                /* milliseconds */
#define QL_IOPUB_MUCH ((size_t)64 << 10) /* bytes */

/* Outputs from here on belong to the request with that header. */
void ql_iopub_parent(struct ql_jupyter *k, struct ql_wire_frame parent);
/* Text printed by the interpreter's thread; name 0: stdout, 1: stderr. */
void ql_iopub_write(struct ql_jupyter *k, int name, const char *text, size_t n);
/* Sends what was printed until now. */
void ql_iopub_flush(struct ql_jupyter *k);
/* Sends a message that belongs to the present parent, after all that was printed. Frees what the content
 * holds. */
void ql_iopub_publish(struct ql_jupyter *k, const char *type, struct ql_wire *content);
/* The same for another parent: of a request on the control channel. */
void ql_iopub_publish_for(struct ql_jupyter *k, struct ql_wire_frame parent, const char *type, struct ql_wire *content);
/* "busy" or "idle", of a request of any channel. */
void ql_iopub_status(struct ql_jupyter *k, struct ql_wire_frame parent, const char *state);
/* Sends a message with the topic and no parent, for who has just subscribed. Wants the lock held. */
void ql_iopub_welcome(struct ql_jupyter *k, const char *topic, size_t n);
/* For the service thread: takes what children have printed, sends what is due. Returns the milliseconds until
 * it has to be called again, -1: nothing waits. */
int ql_iopub_pump(struct ql_jupyter *k);

#endif
