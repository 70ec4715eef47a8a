/* SPDX-License-Identifier: MIT
 * Dispatching: which request is answered by whom, with status messages around. A message that is not well
 * signed is dropped and noted in the log; one of an unknown type is left alone, as the protocol wants it.
 */
#include "interp/jupyter/jupyter.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "interp/host/interrupt.h"
#include "interp/jupyter/execute.h"
#include "interp/jupyter/input.h"
#include "interp/jupyter/iopub.h"
#include "interp/prelude/prelude.h"

#define QL_KERNEL_ABORTED 256    /* messages of the queue that are looked at after an error */
#define QL_KERNEL_GRACE 10       /* milliseconds for what was sent before the error, but has not come in yet */
#define QL_KERNEL_LEAVE 4        /* seconds to end in */
#define QL_KERNEL_COMPLAINTS 100 /* lines in the log */

/* ---- replies ---- */

static void log_line(struct ql_jupyter *k, const char *what, const char *why)
{
	static atomic_int lines;

	if (k->log && atomic_fetch_add(&lines, 1) < QL_KERNEL_COMPLAINTS)
		fprintf(k->log, "quoll kernel: %s: %s\n", what, why);
}

void ql_jupyter_reply(struct ql_jupyter *k, enum ql_channel channel, const struct ql_message *m, const char *type,
	struct ql_wire *content)
{
	struct ql_wire_frame nothing = {NULL, 0};
	struct ql_envelope frames = {.n = 0};
	bool made;

	pthread_mutex_lock(&k->lock);
	made = ql_message_make(&k->signer, m->frames.frame, m->identities, type, m->parent, nothing, content, &frames);
	pthread_mutex_unlock(&k->lock);
	if (made)
		k->port.send(k->port.self, channel, &frames);
	else
		log_line(k, type, "no memory");
	ql_envelope_free(&frames);
	ql_wire_free(content);
}

void ql_jupyter_error(struct ql_wire *out, const char *name, const char *text)
{
	ql_wire_put(out, "{\"status\":\"error\",\"ename\":");
	ql_wire_quote_0(out, name);
	ql_wire_put(out, ",\"evalue\":");
	ql_wire_quote_0(out, text);
	ql_wire_put(out, ",\"traceback\":[]}");
}

/* ---- requests that need no Lua: they are answered on any channel ---- */

static void answer_info(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct ql_wire c = {0};

	ql_wire_put(&c, "{\"status\":\"ok\",\"protocol_version\":\"" QL_PROTOCOL "\",\"implementation\":\"quoll\","
			"\"implementation_version\":\"" QUOLL_VERSION "\",\"language_info\":{\"name\":\"lua\",");
	ql_wire_put(&c, "\"version\":\"" LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE "\","
			"\"mimetype\":\"text/x-lua\",\"file_extension\":\".lua\",\"pygments_lexer\":\"lua\","
			"\"codemirror_mode\":\"lua\",\"nbconvert_exporter\":\"script\"},");
	ql_wire_put(&c, "\"banner\":\"Quoll " QUOLL_VERSION ", " LUA_VERSION ": quantization-aware tensors. "
			"help() explains, ?name describes a name\",\"help_links\":[{\"text\":\"Lua 5.4\","
			"\"url\":\"https://www.lua.org/manual/5.4/\"}],\"debugger\":false,\"supported_features\":[]}");
	ql_jupyter_reply(k, channel, m, "kernel_info_reply", &c);
}

static void answer_comms(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct ql_wire c = {0};

	ql_wire_put(&c, "{\"status\":\"ok\",\"comms\":{}}");
	ql_jupyter_reply(k, channel, m, "comm_info_reply", &c);
}

/* There is no target that a comm could be opened to: it is closed again, as the protocol wants it. */
static void refuse_comm(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	const char *id = ql_wire_member(m->content, "comm_id");
	struct ql_wire c = {0};

	(void)channel;
	if (!id)
		return;
	ql_wire_put(&c, "{\"comm_id\":");
	ql_wire_quote_0(&c, id);
	ql_wire_put(&c, ",\"data\":{}}");
	ql_iopub_publish(k, "comm_close", &c);
}

static void answer_debug(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	const char *command = ql_wire_member(m->content, "command");
	struct ql_wire c = {0};

	ql_wire_print(&c, "{\"seq\":1,\"type\":\"response\",\"request_seq\":%lld,\"success\":false,\"command\":",
		ql_wire_integer(m->content, "seq", 0));
	ql_wire_quote_0(&c, command ? command : "");
	ql_wire_put(&c, ",\"message\":\"this kernel has no debugger\",\"body\":{}}");
	ql_jupyter_reply(k, channel, m, "debug_reply", &c);
}

void ql_jupyter_interrupt(void)
{
	kill(getpgrp() == getpid() ? 0 : getpid(), SIGINT);
}

static void answer_interrupt(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct ql_wire c = {0};

	ql_jupyter_interrupt();
	ql_wire_put(&c, "{\"status\":\"ok\"}");
	ql_jupyter_reply(k, channel, m, "interrupt_reply", &c);
}

static void answer_shutdown(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	bool restart = ql_wire_flag(m->content, "restart", false);
	struct ql_wire reply = {0}, told = {0};

	ql_wire_print(&reply, "{\"status\":\"ok\",\"restart\":%s}", restart ? "true" : "false");
	ql_wire_add(&told, reply.at, reply.n);
	ql_iopub_publish_for(k, m->parent, "shutdown_reply", &told);
	ql_jupyter_reply(k, channel, m, "shutdown_reply", &reply);
	k->leave = true;
	alarm(QL_KERNEL_LEAVE); /* what cannot be interrupted must not keep the process */
	if (channel == QL_CHANNEL_CONTROL)
		ql_jupyter_interrupt();
	k->port.wake(k->port.self, true);
}

/* ---- dispatching ---- */

static const struct request {
	const char *type, *reply;
	ql_request_fn *run;
	bool anywhere; /* also on the control channel, on its thread */
} requests[] = {
	{"execute_request", "execute_reply", ql_request_execute, false},
	{"complete_request", "complete_reply", ql_request_complete, false},
	{"inspect_request", "inspect_reply", ql_request_inspect, false},
	{"is_complete_request", "is_complete_reply", ql_request_is_complete, false},
	{"history_request", "history_reply", ql_request_history, false},
	{"kernel_info_request", "kernel_info_reply", answer_info, true},
	{"comm_info_request", "comm_info_reply", answer_comms, true},
	{"comm_open", NULL, refuse_comm, false},
	{"debug_request", "debug_reply", answer_debug, true},
	{"interrupt_request", "interrupt_reply", answer_interrupt, true},
	{"shutdown_request", "shutdown_reply", answer_shutdown, true},
};

static const struct request *find_request(const char *type)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (!strcmp(requests[i].type, type))
			return &requests[i];
	return NULL;
}

static void refuse_content(
	struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m, const char *reply, const char *why)
{
	struct ql_wire content = {0};
	char text[200];

	snprintf(text, sizeof(text), "%.80s: wanted an object as content, got %s", m->type, why);
	ql_jupyter_error(&content, "MessageError", text);
	ql_jupyter_reply(k, channel, m, reply, &content);
}

static void run_request(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m, const char *why)
{
	const struct request *r = find_request(m->type);

	if (!r || (channel == QL_CHANNEL_CONTROL && !r->anywhere)) {
		log_line(k, "a message of a type that is not known here was left alone", m->type);
		return;
	}
	if (channel == QL_CHANNEL_SHELL) {
		ql_interrupt_clear(k->state); /* one that came too late for the request before */
		ql_iopub_parent(k, m->parent);
		k->request = m;
	}
	ql_iopub_status(k, m->parent, "busy");
	if (!m->content && r->reply)
		refuse_content(k, channel, m, r->reply, why);
	else if (m->content)
		r->run(k, channel, m);
	ql_iopub_status(k, m->parent, "idle");
	if (channel == QL_CHANNEL_SHELL)
		k->request = NULL;
}

static bool read_message(struct ql_jupyter *k, struct ql_envelope *frames, struct ql_message *m, const char **why)
{
	const char *bad;

	*why = NULL;
	pthread_mutex_lock(&k->lock);
	bad = ql_message_read(&k->signer, frames, m, why);
	pthread_mutex_unlock(&k->lock);
	if (bad && *bad)
		log_line(k, "a message was dropped", bad);
	return !bad || !*bad;
}

void ql_jupyter_take(struct ql_jupyter *k, enum ql_channel channel, struct ql_envelope *frames)
{
	struct ql_message m;
	const char *why;

	if (!read_message(k, frames, &m, &why))
		return;
	run_request(k, channel, &m, why);
	ql_message_free(&m);
}

static void abort_one(struct ql_jupyter *k, struct ql_message *m)
{
	struct ql_wire content = {0};

	ql_iopub_status(k, m->parent, "busy");
	ql_wire_put(&content, "{\"status\":\"aborted\"}");
	ql_jupyter_reply(k, QL_CHANNEL_SHELL, m, "execute_reply", &content);
	ql_iopub_status(k, m->parent, "idle");
}

void ql_jupyter_abort_queue(struct ql_jupyter *k, struct ql_message *failed, struct ql_wire *reply)
{
	static struct ql_envelope queue[QL_KERNEL_ABORTED];
	int n = 0;

	while (n < QL_KERNEL_ABORTED && k->port.wait(k->port.self, QL_CHANNEL_SHELL, QL_KERNEL_GRACE, &queue[n]) > 0)
		n++;
	ql_jupyter_reply(k, QL_CHANNEL_SHELL, failed, "execute_reply", reply);
	for (int i = 0; i < n; i++) {
		struct ql_message m;
		const char *why;

		if (!read_message(k, &queue[i], &m, &why))
			continue;
		if (!strcmp(m.type, "execute_request"))
			abort_one(k, &m);
		else
			run_request(k, QL_CHANNEL_SHELL, &m, why);
		ql_message_free(&m);
	}
}

void ql_jupyter_run(struct ql_jupyter *k)
{
	struct ql_envelope frames = {.n = 0};

	while (!k->leave) {
		ql_interrupt_clear(k->state); /* a Ctrl-C with nothing to interrupt */
		if (k->session.leave)         /* the cell `exit`: the front end was told */
			k->session.leave = false;
		if (k->port.wait(k->port.self, QL_CHANNEL_SHELL, 1000, &frames) > 0)
			ql_jupyter_take(k, QL_CHANNEL_SHELL, &frames);
	}
}

/* ---- beginning and end ---- */

static int begin_lua(lua_State *L)
{
	struct ql_jupyter *k = lua_touserdata(L, 1);

	ql_session_begin(&k->session, k->state);
	ql_execute_open(L, k);
	return 0;
}

bool ql_jupyter_begin(struct ql_jupyter *k, struct ql_state *state, const struct ql_port *port, const char *key,
	char error[QL_CONNECTION_ERROR])
{
	lua_State *L = state->L;

	*k = (struct ql_jupyter){.state = state, .port = *port, .pipe = {-1, -1}};
	k->listener = (struct ql_listener){.take = ql_execute_heard, .self = k, .children = QL_CHILDREN_APART};
	pthread_mutex_init(&k->lock, NULL);
	snprintf(error, QL_CONNECTION_ERROR, "kernel: not enough memory");
	lua_pushcfunction(L, begin_lua);
	lua_pushlightuserdata(L, k);
	if (lua_pcall(L, 1, 0, 0)) {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: %s", lua_tostring(L, -1));
		lua_pop(L, 1);
	} else if (ql_signer_begin(&k->signer, key) && ql_input_begin(k) && ql_output_listen(L, &k->listener, true)) {
		setvbuf(stdout, NULL, _IONBF, 0); /* nothing may wait here: iopub.c gathers */
		return true;
	}
	ql_jupyter_end(k);
	return false;
}

void ql_jupyter_end(struct ql_jupyter *k)
{
	lua_State *L = k->state->L;

	ql_execute_close(L);
	ql_output_end(L, &k->listener);
	ql_input_end(k);
	ql_signer_end(&k->signer);
	ql_recall_free(&k->history);
	ql_wire_free(&k->parent);
	ql_wire_free(&k->pending);
	ql_wire_free(&k->typed);
	pthread_mutex_destroy(&k->lock);
}
