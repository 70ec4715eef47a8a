/* SPDX-License-Identifier: MIT
 * libzmq, opened when a kernel starts and never before. Numbers are those of zmq.h.
 */
#ifndef QUOLL_INTERP_JUPYTER_ZMQ_H
#define QUOLL_INTERP_JUPYTER_ZMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ql_zmq_message {
	_Alignas(void *) unsigned char opaque[64];
};

struct ql_zmq_item {
	void *socket;
	int fd;
	short events, revents;
};

enum { QL_ZMQ_REP = 4, QL_ZMQ_ROUTER = 6, QL_ZMQ_XPUB = 9 };
enum { QL_ZMQ_FD = 14, QL_ZMQ_LINGER = 17, QL_ZMQ_MAXMSGSIZE = 22, QL_ZMQ_SNDHWM = 23 };
enum { QL_ZMQ_XPUB_VERBOSE = 40, QL_ZMQ_IPV6 = 42, QL_ZMQ_ROUTER_HANDOVER = 56 };
enum { QL_ZMQ_DONTWAIT = 1, QL_ZMQ_SNDMORE = 2, QL_ZMQ_POLLIN = 1 };

/* name, result, parameters; with the names of the two structs, which are typedefs in zmq.h */
#define QL_ZMQ_FUNCTIONS(F, MESSAGE, ITEM) \
	F(zmq_version, void, (int *, int *, int *)) \
	F(zmq_errno, int, (void)) \
	F(zmq_strerror, const char *, (int)) \
	F(zmq_ctx_new, void *, (void)) \
	F(zmq_ctx_shutdown, int, (void *)) \
	F(zmq_ctx_term, int, (void *)) \
	F(zmq_socket, void *, (void *, int)) \
	F(zmq_close, int, (void *)) \
	F(zmq_bind, int, (void *, const char *)) \
	F(zmq_setsockopt, int, (void *, int, const void *, size_t)) \
	F(zmq_getsockopt, int, (void *, int, void *, size_t *)) \
	F(zmq_send, int, (void *, const void *, size_t, int)) \
	F(zmq_msg_init, int, (MESSAGE *)) \
	F(zmq_msg_close, int, (MESSAGE *)) \
	F(zmq_msg_recv, int, (MESSAGE *, void *, int)) \
	F(zmq_msg_data, void *, (MESSAGE *)) \
	F(zmq_msg_size, size_t, (const MESSAGE *)) \
	F(zmq_msg_more, int, (const MESSAGE *)) \
	F(zmq_poll, int, (ITEM *, int, long))

struct ql_zmq {
#define F(name, result, parameters) result(*name) parameters;
	QL_ZMQ_FUNCTIONS(F, struct ql_zmq_message, struct ql_zmq_item)
#undef F
};

/* NULL, with the reason in `error`, with the Debian package to install, when there is none. */
const struct ql_zmq *ql_zmq_open(char *error, size_t size);
/* One line for `quoll doctor`; true: a kernel can be run. */
bool ql_zmq_describe(char *text, size_t size);

#endif
