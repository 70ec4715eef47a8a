/* SPDX-License-Identifier: MIT
 * Threads: the interpreter's has the shell and stdin sockets; the service thread has control, the
 * subscriptions and what child processes print; the heartbeat's has only its own socket and answers whatever
 * the others do. iopub is used by two of them, under the kernel's lock (libzmq allows a socket to move
 * between threads with a full fence).
 *
 * The service thread sleeps until something comes: its poll also has the file descriptor of iopub, which
 * tells of subscriptions, and an eventfd. A subscription may be noticed by either thread; who publishes
 * looks, too.
 */
#include "interp/jupyter/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "interp/jupyter/iopub.h"
#include "interp/jupyter/surroundings.h"
#include "interp/jupyter/zmq.h"
#include "interp/host/width.h"

#define QL_LINGER 1000      /* milliseconds for messages that are on their way at the end */
#define QL_QUEUE 16384      /* messages kept for a client that does not take them */
#define QL_PARENT_LOOK 1000 /* milliseconds */
#define QL_LEAVE_LOOK 200   /* the same while the kernel is to leave */

struct serving {
	const struct ql_zmq *z;
	struct ql_connection connection;
	struct ql_jupyter kernel;
	struct ql_surroundings process;
	void *context, *socket[QL_CHANNELS];
	int iopub_fd, wake_main, wake_service;
	pthread_t service, heartbeat;
	bool serving, beating; /* the threads run */
	atomic_bool ended;
};

/* ---- frames in and out ---- */

static void send_frames(void *self, enum ql_channel channel, const struct ql_envelope *frames)
{
	struct serving *s = self;
	int sent = 0;

	for (int i = 0; i < frames->n && sent >= 0; i++) {
		int flags = i + 1 < frames->n ? QL_ZMQ_SNDMORE : 0;

		do
			sent = s->z->zmq_send(s->socket[channel], frames->frame[i].at, frames->frame[i].n, flags);
		while (sent < 0 && s->z->zmq_errno() == EINTR);
	}
}

/* Takes one message, if there is one. One with too many frames or bytes is taken in full and left empty. */
static bool receive(struct serving *s, enum ql_channel channel, struct ql_envelope *out)
{
	struct ql_zmq_message part;
	bool more = true, good = true, any = false;
	size_t bytes = 0;

	out->n = 0;
	while (more) {
		int n;

		s->z->zmq_msg_init(&part);
		do
			n = s->z->zmq_msg_recv(&part, s->socket[channel], QL_ZMQ_DONTWAIT);
		while (n < 0 && s->z->zmq_errno() == EINTR);
		more = n >= 0 && s->z->zmq_msg_more(&part);
		any = any || n >= 0;
		if (n >= 0) {
			bytes += s->z->zmq_msg_size(&part);
			good = good && bytes <= QL_MESSAGE_MAX_BYTES &&
			       ql_envelope_add(out, s->z->zmq_msg_data(&part), s->z->zmq_msg_size(&part));
		}
		s->z->zmq_msg_close(&part);
	}
	if (!good)
		ql_envelope_free(out);
	return any;
}

static int wait_message(void *self, enum ql_channel channel, int milliseconds, struct ql_envelope *out)
{
	struct serving *s = self;
	struct ql_zmq_item items[2] = {
		{s->socket[channel], 0, QL_ZMQ_POLLIN, 0}, {NULL, s->wake_main, QL_ZMQ_POLLIN, 0}};
	eventfd_t unused;

	if (receive(s, channel, out))
		return out->n > 0;
	s->z->zmq_poll(items, 2, milliseconds);
	if (items[1].revents)
		eventfd_read(s->wake_main, &unused);
	return receive(s, channel, out) && out->n > 0;
}

static void wake(void *self, bool shell)
{
	struct serving *s = self;

	eventfd_write(shell ? s->wake_main : s->wake_service, 1);
}

/* Messages on iopub are subscriptions: 1 and the topic. With the kernel's lock held. */
static void welcome(struct serving *s)
{
	struct ql_envelope frames;

	while (receive(s, QL_CHANNEL_IOPUB, &frames)) {
		if (frames.n == 1 && frames.frame[0].n && frames.frame[0].at[0] == 1)
			ql_iopub_welcome(&s->kernel, frames.frame[0].at + 1, frames.frame[0].n - 1);
		ql_envelope_free(&frames);
	}
}

static void send_any(void *self, enum ql_channel channel, const struct ql_envelope *frames)
{
	struct serving *s = self;

	send_frames(self, channel, frames);
	if (channel == QL_CHANNEL_IOPUB && !s->ended)
		eventfd_write(s->wake_service, 1);
}

/* ---- the threads ---- */

static int soonest(int a, int b)
{
	return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static void *serve(void *argument)
{
	struct serving *s = argument;
	struct ql_jupyter *k = &s->kernel;
	struct ql_zmq_item items[5] = {{s->socket[QL_CHANNEL_CONTROL], 0, QL_ZMQ_POLLIN, 0},
		{NULL, s->iopub_fd, QL_ZMQ_POLLIN, 0}, {NULL, s->wake_service, QL_ZMQ_POLLIN, 0},
		{NULL, k->pipe[0], QL_ZMQ_POLLIN, 0}, {NULL, k->pipe[1], QL_ZMQ_POLLIN, 0}};
	int due = 0;

	while (!s->ended) {
		struct ql_envelope frames;
		eventfd_t unused;

		s->z->zmq_poll(items, 5, soonest(due, k->leave ? QL_LEAVE_LOOK : QL_PARENT_LOOK));
		if (items[2].revents)
			eventfd_read(s->wake_service, &unused);
		pthread_mutex_lock(&k->lock);
		welcome(s);
		pthread_mutex_unlock(&k->lock);
		if (receive(s, QL_CHANNEL_CONTROL, &frames) && frames.n)
			ql_jupyter_take(k, QL_CHANNEL_CONTROL, &frames);
		due = ql_iopub_pump(k);
		ql_surroundings_look(&s->process);
	}
	return NULL;
}

/* Sends back what comes, part by part, until the context ends. */
static void *beat(void *argument)
{
	struct serving *s = argument;
	struct ql_zmq_message part;
	bool alive = true;

	while (alive) {
		int more;

		s->z->zmq_msg_init(&part);
		alive = s->z->zmq_msg_recv(&part, s->socket[QL_CHANNEL_HEARTBEAT], 0) >= 0 ||
			s->z->zmq_errno() == EINTR;
		more = s->z->zmq_msg_more(&part) ? QL_ZMQ_SNDMORE : 0;
		s->z->zmq_send(
			s->socket[QL_CHANNEL_HEARTBEAT], s->z->zmq_msg_data(&part), s->z->zmq_msg_size(&part), more);
		s->z->zmq_msg_close(&part);
	}
	s->z->zmq_close(s->socket[QL_CHANNEL_HEARTBEAT]);
	return NULL;
}

/* Signals are for the interpreter's thread: the others begin with all blocked. */
static bool start(pthread_t *thread, void *(*run)(void *), struct serving *s)
{
	sigset_t all, before;
	bool good;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	good = pthread_create(thread, NULL, run, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return good;
}

/* ---- beginning and end ---- */

static void set_option(struct serving *s, void *socket, int option, int value)
{
	s->z->zmq_setsockopt(socket, option, &value, sizeof(value));
}

static bool open_socket(struct serving *s, enum ql_channel channel, int kind, char error[QL_CONNECTION_ERROR])
{
	int64_t most = QL_MESSAGE_MAX_BYTES;
	char address[160];
	void *socket = s->z->zmq_socket(s->context, kind);

	ql_connection_address(&s->connection, channel, address, sizeof(address));
	s->socket[channel] = socket;
	if (socket) {
		set_option(s, socket, QL_ZMQ_LINGER, QL_LINGER);
		set_option(s, socket, QL_ZMQ_IPV6, strchr(s->connection.ip, ':') != NULL);
		s->z->zmq_setsockopt(socket, QL_ZMQ_MAXMSGSIZE, &most, sizeof(most));
		if (kind == QL_ZMQ_ROUTER)
			set_option(s, socket, QL_ZMQ_ROUTER_HANDOVER, 1);
		if (kind == QL_ZMQ_XPUB) {
			set_option(s, socket, QL_ZMQ_XPUB_VERBOSE, 1);
			set_option(s, socket, QL_ZMQ_SNDHWM, QL_QUEUE);
		}
		if (s->z->zmq_bind(socket, address) == 0)
			return true;
	}
	snprintf(error, QL_CONNECTION_ERROR, "kernel: %s: %s", address, s->z->zmq_strerror(s->z->zmq_errno()));
	return false;
}

static bool open_sockets(struct serving *s, char error[QL_CONNECTION_ERROR])
{
	static const int kinds[QL_CHANNELS] = {QL_ZMQ_ROUTER, QL_ZMQ_ROUTER, QL_ZMQ_ROUTER, QL_ZMQ_XPUB, QL_ZMQ_REP};
	size_t size = sizeof(s->iopub_fd);
	char why[256];

	s->z = ql_zmq_open(why, sizeof(why));
	if (!s->z) {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: %s", why);
		return false;
	}
	s->context = s->z->zmq_ctx_new();
	s->wake_main = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->wake_service = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!s->context || s->wake_main < 0 || s->wake_service < 0) {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: %s", strerror(errno));
		return false;
	}
	for (int i = 0; i < QL_CHANNELS; i++)
		if (!open_socket(s, (enum ql_channel)i, kinds[i], error))
			return false;
	s->z->zmq_getsockopt(s->socket[QL_CHANNEL_IOPUB], QL_ZMQ_FD, &s->iopub_fd, &size);
	return true;
}

static void close_all(struct serving *s)
{
	if (s->serving) {
		s->ended = true;
		wake(s, false);
		pthread_join(s->service, NULL);
	}
	for (int i = 0; i < QL_CHANNELS; i++)
		if (s->socket[i] && !(s->beating && i == QL_CHANNEL_HEARTBEAT))
			s->z->zmq_close(s->socket[i]);
	if (s->context)
		s->z->zmq_ctx_shutdown(s->context);
	if (s->beating)
		pthread_join(s->heartbeat, NULL);
	while (s->context && s->z->zmq_ctx_term(s->context) && s->z->zmq_errno() == EINTR)
		;
	if (s->wake_main > 0)
		close(s->wake_main);
	if (s->wake_service > 0)
		close(s->wake_service);
}

/* The sockets are bound and the kernel has begun. */
static bool run(struct serving *s, char error[QL_CONNECTION_ERROR])
{
	struct ql_jupyter *k = &s->kernel;
	struct ql_wire_frame nothing = {NULL, 0};

	if (!ql_surroundings_begin(&s->process, k, s->wake_main, error))
		return false;
	s->serving = start(&s->service, serve, s);
	s->beating = s->serving && start(&s->heartbeat, beat, s);
	if (s->beating) {
		ql_iopub_status(k, nothing, "starting");
		ql_jupyter_run(k);
	} else {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: no thread could be started");
	}
	ql_iopub_flush(k);
	return s->beating;
}

bool ql_jupyter_serve(struct ql_state *state, const char *file, int *code, char error[QL_CONNECTION_ERROR])
{
	struct serving *s = calloc(1, sizeof(*s));
	struct ql_port port = {send_any, wait_message, wake, s};
	const char *warning = NULL;
	bool good;

	snprintf(error, QL_CONNECTION_ERROR, "kernel: not enough memory");
	if (!s)
		return false;
	ql_width_fix();
	good = ql_connection_read(file, &s->connection, error, &warning) && open_sockets(s, error);
	if (good && warning)
		fprintf(stderr, "quoll kernel: warning: %s\n", warning);
	if (good && (good = ql_jupyter_begin(&s->kernel, state, &port, s->connection.key, error))) {
		good = run(s, error);
		close_all(s);
		ql_surroundings_end(&s->process);
		*code = s->kernel.code;
		ql_jupyter_end(&s->kernel);
	} else {
		close_all(s);
	}
	free(s);
	return good;
}
