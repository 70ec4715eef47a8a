/* SPDX-License-Identifier: MIT
 * The only file that opens libzmq (4.x, MPL-2.0; never linked). QUOLL_ZMQ names another file than
 * libzmq.so.5.
 */
#include "interp/jupyter/zmq.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define INSTALL "; install it with: apt-get install --no-install-recommends libzmq5"

/* Our layouts, numbers and prototypes against the header, on machines that have it. */
#if defined(__has_include)
#if __has_include(<zmq.h>)
#include <zmq.h>
_Static_assert(sizeof(struct ql_zmq_message) == sizeof(zmq_msg_t), "zmq.h has another zmq_msg_t");
_Static_assert(sizeof(struct ql_zmq_item) == sizeof(zmq_pollitem_t) &&
		       offsetof(struct ql_zmq_item, revents) == offsetof(zmq_pollitem_t, revents),
	"zmq.h has another zmq_pollitem_t");
_Static_assert(QL_ZMQ_REP == ZMQ_REP && QL_ZMQ_ROUTER == ZMQ_ROUTER && QL_ZMQ_XPUB == ZMQ_XPUB, "kinds of sockets");
_Static_assert(QL_ZMQ_FD == ZMQ_FD && QL_ZMQ_LINGER == ZMQ_LINGER && QL_ZMQ_MAXMSGSIZE == ZMQ_MAXMSGSIZE &&
		       QL_ZMQ_SNDHWM == ZMQ_SNDHWM && QL_ZMQ_XPUB_VERBOSE == ZMQ_XPUB_VERBOSE &&
		       QL_ZMQ_IPV6 == ZMQ_IPV6 && QL_ZMQ_ROUTER_HANDOVER == ZMQ_ROUTER_HANDOVER,
	"options of sockets");
_Static_assert(
	QL_ZMQ_DONTWAIT == ZMQ_DONTWAIT && QL_ZMQ_SNDMORE == ZMQ_SNDMORE && QL_ZMQ_POLLIN == ZMQ_POLLIN, "flags");
#define F(name, result, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters), \
		"zmq.h declares " #name " otherwise");
QL_ZMQ_FUNCTIONS(F, zmq_msg_t, zmq_pollitem_t)
#undef F
#endif
#endif

static bool find_functions(void *library, struct ql_zmq *z)
{
	bool all = true;

#define F(name, result, parameters) \
	*(void **)&z->name = dlsym(library, #name); \
	all = all && z->name;
	QL_ZMQ_FUNCTIONS(F, , )
#undef F
	return all;
}

const struct ql_zmq *ql_zmq_open(char *error, size_t size)
{
	static struct ql_zmq z;
	static void *library;
	const char *wanted = getenv("QUOLL_ZMQ"), *name = wanted && *wanted ? wanted : "libzmq.so.5";
	int major = 0, minor, patch;

	if (library)
		return &z;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(error, size, "%s" INSTALL, dlerror());
		return NULL;
	}
	if (find_functions(library, &z))
		z.zmq_version(&major, &minor, &patch);
	if (major == 4)
		return &z;
	snprintf(error, size, "%s is no libzmq of version 4" INSTALL, name);
	dlclose(library);
	library = NULL;
	return NULL;
}

bool ql_zmq_describe(char *text, size_t size)
{
	const struct ql_zmq *z = ql_zmq_open(text, size);
	int major, minor, patch;

	if (!z)
		return false;
	z->zmq_version(&major, &minor, &patch);
	snprintf(text, size, "libzmq %d.%d.%d: `quoll kernel install` makes Jupyter know this program", major, minor,
		patch);
	return true;
}
