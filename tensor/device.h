/* SPDX-License-Identifier: MIT
 * Devices that own memory and run ops. Only the CPU is always available; others are loaded at run time (gpu/device.h).
 */
#ifndef QUOLL_TENSOR_DEVICE_H
#define QUOLL_TENSOR_DEVICE_H

#include "tensor/attr.h"
#include "tensor/base.h"

struct ql_call;

#define QL_DEVICE_OPERANDS 64 /* operands and results that a call of find and run has at most */

struct ql_device {
	struct ql_doc doc; /* name: "cpu", "cuda:0", "cudaemu" */
	/* The host cannot read the memory: addresses are of the device, and the functions below are not NULL. All of them
	 * take the device's own context, in which errors are stored. */
	bool remote;
	struct ql_ctx *ctx;
	void *state;
	/* Gives uninitialized bytes; NULL with an error when there is no memory. `free` does not wait for work that uses them.
	 * Both count their bytes in ctx->memory.held, as ql_alloc does. */
	void *(*alloc)(struct ql_ctx *ctx, const struct ql_device *d, size_t bytes);
	void (*free)(struct ql_ctx *ctx, const struct ql_device *d, void *block, size_t bytes);
	/* In the order of the device's work. read waits; write returns when `host` may be reused. */
	enum ql_status (*read)(const struct ql_device *d, void *host, const void *at, size_t bytes);
	enum ql_status (*write)(const struct ql_device *d, void *at, const void *host, size_t bytes);
	enum ql_status (*copy)(const struct ql_device *d, void *to, const void *from, size_t bytes);
	enum ql_status (*fill)(const struct ql_device *d, void *at, uint8_t value, size_t bytes);
	/* Waits for all work; reports errors of ops that have run since the last wait. */
	enum ql_status (*sync)(const struct ql_device *d);
	/* Whether the device has a kernel for some calls of the op of that name. */
	bool (*has)(const struct ql_device *d, const char *op);
	/* Chooses the kernel of a call whose results are inferred; sets call->path and call->kernel. NULL: none, and
	 * call->reason says why. The plan is valid until the next call of find. */
	const void *(*find)(const struct ql_device *d, struct ql_call *call);
	/* Queues the call, whose results are allocated. */
	enum ql_status (*run)(const struct ql_device *d, struct ql_call *call, const void *plan);
	/* Between record_begin and record_end what is queued does not run, but is kept with the bytes that write was given;
	 * record_run queues all of it. read and sync fail meanwhile. *bytes: of the memory that it keeps, with what was freed
	 * meanwhile. record_begin NULL: the device has no recordings. */
	enum ql_status (*record_begin)(const struct ql_device *d);
	enum ql_status (*record_end)(const struct ql_device *d, void **recorded, size_t *bytes);
	enum ql_status (*record_run)(const struct ql_device *d, void *recorded);
	void (*record_free)(const struct ql_device *d, void *recorded);
	/* Closes the device and frees d; there are no storages left on it. */
	void (*close)(struct ql_device *d);
	struct ql_device *next; /* in ctx->devices */
};

extern const struct ql_device ql_device_cpu;

/* The device called `name`; errors name `what`, function and argument, and say why it is not there. */
enum ql_status ql_device_by_name(struct ql_ctx *ctx, const char *what, const char *name, const struct ql_device **out);
/* Waits for all work of the devices that are open. The first error; the other devices are waited for, too. */
enum ql_status ql_devices_sync(struct ql_ctx *ctx);

#endif
