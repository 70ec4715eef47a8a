/* SPDX-License-Identifier: MIT
 * A Jupyter kernel: takes requests, runs them in a session of the interpreter, answers. It knows no socket:
 * messages come and go through a port (sockets.h has that of libzmq, the tests one of their own).
 *
 * Two threads use it. The interpreter's thread takes what comes on the shell channel; the service thread what
 * comes on the control channel, also while a cell runs, and what child processes print. `lock` guards what
 * both use.
 */
#ifndef QUOLL_INTERP_JUPYTER_JUPYTER_H
#define QUOLL_INTERP_JUPYTER_JUPYTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "interp/jupyter/connection.h"
#include "interp/jupyter/recall.h"
#include "interp/jupyter/message.h"
#include "interp/host/output.h"
#include "interp/repl/session.h"

struct ql_port {
	/* Borrows the frames. iopub: with the kernel's lock held; others: on the channel's own thread. */
	void (*send)(void *self, enum ql_channel channel, const struct ql_envelope *frames);
	/* Waits for a message on the shell or stdin channel, at most that many milliseconds: 1: here it is;
	 * 0: there is none, or something else wants to be looked at (a signal, ql_jupyter.leave). */
	int (*wait)(void *self, enum ql_channel channel, int milliseconds, struct ql_envelope *out);
	/* Makes the waiting of the interpreter's thread (`shell`) or of the service thread end. */
	void (*wake)(void *self, bool shell);
	void *self;
};

/* What the cell that runs has put out. */
struct ql_execution {
	bool silent, failed;
	struct ql_wire error; /* members of the error message: "ename":…,"evalue":…,"traceback":[…] */
};

struct ql_jupyter {
	struct ql_state *state;
	struct ql_session session;
	struct ql_listener listener;
	struct ql_port port;
	FILE *log; /* for what cannot be reported otherwise; NULL: nowhere */
	struct ql_recall history;

	/* of the interpreter's thread */
	const struct ql_message *request; /* that it works on; NULL: none */
	struct ql_execution *execution;   /* NULL: no cell runs */
	struct ql_wire *capture;          /* takes what is printed, when not NULL */
	bool input_allowed, exiting;      /* exiting: os.exit(code) was called */
	int code;
	struct ql_wire typed; /* what io.read has not taken yet */
	size_t typed_taken;
	FILE *real_input, *input;

	pthread_mutex_t lock;
	struct ql_signer signer;
	struct ql_wire parent;   /* header that outputs belong to */
	struct ql_wire pending;  /* of a stream: printed and not yet sent */
	int pending_name;        /* 0 stdout, 1 stderr */
	long long pending_since; /* milliseconds */
	int pipe[2];             /* what children print on 1 and 2; -1: none */

	atomic_bool leave;
};

/* False, with the reason in `error`: there is no memory. The kernel begins to listen to the output and to stand in for
 * stdin. */
bool ql_jupyter_begin(struct ql_jupyter *k, struct ql_state *state, const struct ql_port *port, const char *key,
	char error[QL_CONNECTION_ERROR]);
void ql_jupyter_end(struct ql_jupyter *k);
/* Takes the frames of one message and does what it asks for. Never raises. */
void ql_jupyter_take(struct ql_jupyter *k, enum ql_channel channel, struct ql_envelope *frames);
/* Takes messages of the shell until the kernel is to leave. */
void ql_jupyter_run(struct ql_jupyter *k);

/* Interrupts the cell that runs, and its child processes when the group is ours, as it is under Jupyter. */
void ql_jupyter_interrupt(void);

/* For the handlers of requests: the reply to `m` goes to who asked. Frees what the content holds. */
void ql_jupyter_reply(struct ql_jupyter *k, enum ql_channel channel, const struct ql_message *m, const char *type,
	struct ql_wire *content);
/* Writes {"status":"error",…. */
void ql_jupyter_error(struct ql_wire *out, const char *name, const char *text);

/* Handlers, by the file they are in. */
typedef void ql_request_fn(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m);
ql_request_fn ql_request_execute;                                              /* execute.c */
ql_request_fn ql_request_complete, ql_request_inspect, ql_request_is_complete; /* code.c */
ql_request_fn ql_request_history;                                              /* recall.c */

/* The text of ?name; detail 1: with source. False: nothing is known of it. code.c. Never raises. */
bool ql_inspect(struct ql_jupyter *k, const char *code, size_t n, size_t position, int detail, struct ql_wire *out);
/* Sends the reply to `failed`, then aborts the execute_requests that were sent before it. */
void ql_jupyter_abort_queue(struct ql_jupyter *k, struct ql_message *failed, struct ql_wire *reply);

#endif
