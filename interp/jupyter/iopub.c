/* SPDX-License-Identifier: MIT
 * Everything here holds the kernel's lock while it touches the pending text, the pipes and the channel.
 * Functions that end in _locked want it held.
 */
#include "interp/jupyter/iopub.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tensor/utf8.h"

#define QL_PIPE_AT_ONCE ((size_t)1 << 20) /* bytes taken from a child before others get their turn */

static const char *const names[] = {"stdout", "stderr"};

static long long milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void send_locked(struct ql_jupyter *k, const char *topic, size_t n, const char *type,
	struct ql_wire_frame parent, const struct ql_wire *content)
{
	struct ql_wire_frame identity = {(char *)(uintptr_t)topic, n}, nothing = {NULL, 0};
	struct ql_envelope frames = {.n = 0};

	if (!ql_message_make(&k->signer, &identity, 1, type, parent, nothing, content, &frames)) {
		if (k->log)
			fprintf(k->log, "quoll kernel: no memory for a message of type %s\n", type);
		return;
	}
	k->port.send(k->port.self, QL_CHANNEL_IOPUB, &frames);
	ql_envelope_free(&frames);
}

/* ---- streams ---- */

/* Bytes at the end that begin a character of UTF-8. */
static size_t unfinished(const struct ql_wire *w)
{
	for (size_t n = 1; n <= 3 && n <= w->n; n++)
		if (((unsigned char)w->at[w->n - n] & 0xC0) != 0x80)
			return ql_utf8_length(w->at + w->n - n, n) < 0 ? n : 0;
	return 0;
}

/* `all`: also the beginning of a character, which will not be finished. */
static void flush_locked(struct ql_jupyter *k, bool all)
{
	size_t rest = all ? 0 : unfinished(&k->pending);
	struct ql_wire_frame parent = {k->parent.at, k->parent.n};
	const char *name = names[k->pending_name];
	struct ql_wire content = {0};

	if (k->pending.n == rest)
		return;
	ql_wire_print(&content, "{\"name\":\"%s\",\"text\":", name);
	ql_wire_quote(&content, k->pending.at, k->pending.n - rest);
	ql_wire_put(&content, "}");
	send_locked(k, "stream", 6, "stream", parent, &content);
	ql_wire_free(&content);
	memmove(k->pending.at, k->pending.at + k->pending.n - rest, rest);
	k->pending.n = rest;
	k->pending.failed = false;
	k->pending_since = milliseconds();
}

static void append_locked(struct ql_jupyter *k, int name, const char *text, size_t n)
{
	if (k->pending.n && k->pending_name != name)
		flush_locked(k, true);
	if (!k->pending.n)
		k->pending_since = milliseconds();
	k->pending_name = name;
	ql_wire_add(&k->pending, text, n);
	if (k->pending.failed || k->pending.n >= QL_IOPUB_MUCH)
		flush_locked(k, false);
}

static void drain_locked(struct ql_jupyter *k)
{
	char text[16384];

	for (int i = 0; i < 2; i++) {
		size_t taken = 0;
		ssize_t n = 0;

		if (k->pipe[i] < 0)
			continue;
		while (taken < QL_PIPE_AT_ONCE && (n = read(k->pipe[i], text, sizeof(text))) > 0) {
			append_locked(k, i, text, (size_t)n);
			taken += (size_t)n;
		}
	}
}

/* ---- from outside ---- */

void ql_iopub_parent(struct ql_jupyter *k, struct ql_wire_frame parent)
{
	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	flush_locked(k, true);
	k->parent.n = 0;
	k->parent.failed = false;
	ql_wire_add(&k->parent, parent.at, parent.n);
	pthread_mutex_unlock(&k->lock);
}

void ql_iopub_write(struct ql_jupyter *k, int name, const char *text, size_t n)
{
	bool first;

	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	first = !k->pending.n;
	append_locked(k, name, text, n);
	first = first && k->pending.n;
	pthread_mutex_unlock(&k->lock);
	if (first) /* the service thread is to look when it is due */
		k->port.wake(k->port.self, false);
}

void ql_iopub_flush(struct ql_jupyter *k)
{
	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	flush_locked(k, true);
	pthread_mutex_unlock(&k->lock);
}

void ql_iopub_publish(struct ql_jupyter *k, const char *type, struct ql_wire *content)
{
	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	flush_locked(k, true);
	send_locked(k, type, strlen(type), type, (struct ql_wire_frame){k->parent.at, k->parent.n}, content);
	pthread_mutex_unlock(&k->lock);
	ql_wire_free(content);
}

void ql_iopub_publish_for(struct ql_jupyter *k, struct ql_wire_frame parent, const char *type, struct ql_wire *content)
{
	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	flush_locked(k, true);
	send_locked(k, type, strlen(type), type, parent, content);
	pthread_mutex_unlock(&k->lock);
	ql_wire_free(content);
}

void ql_iopub_status(struct ql_jupyter *k, struct ql_wire_frame parent, const char *state)
{
	struct ql_wire content = {0};

	ql_wire_print(&content, "{\"execution_state\":\"%s\"}", state);
	ql_iopub_publish_for(k, parent, "status", &content);
}

void ql_iopub_welcome(struct ql_jupyter *k, const char *topic, size_t n)
{
	struct ql_wire_frame nothing = {NULL, 0};
	struct ql_wire content = {0};

	ql_wire_put(&content, "{\"subscription\":");
	ql_wire_quote(&content, topic, n);
	ql_wire_put(&content, "}");
	send_locked(k, topic, n, "iopub_welcome", nothing, &content);
	ql_wire_free(&content);
}

int ql_iopub_pump(struct ql_jupyter *k)
{
	long long left = -1;

	pthread_mutex_lock(&k->lock);
	drain_locked(k);
	if (k->pending.n) {
		left = k->pending_since + QL_IOPUB_DELAY - milliseconds();
		if (left <= 0)
			flush_locked(k, false);
		left = left > 0 ? left : k->pending.n ? QL_IOPUB_DELAY : -1;
	}
	pthread_mutex_unlock(&k->lock);
	return (int)left;
}
