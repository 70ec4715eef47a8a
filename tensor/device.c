/* SPDX-License-Identifier: MIT
 * The CPU device; what concerns all devices.
 */
#include "tensor/device.h"

#include <string.h>

static void *cpu_alloc(struct ql_ctx *ctx, const struct ql_device *d, size_t bytes)
{
	(void)d;
	return ql_alloc(ctx, bytes);
}

static void cpu_free(struct ql_ctx *ctx, const struct ql_device *d, void *block, size_t bytes)
{
	(void)d;
	(void)bytes;
	ql_free(ctx, block);
}

const struct ql_device ql_device_cpu = {
	.doc = {.name = "cpu",
		.usage = "x:to 'cpu'",
		.text = "The processor this program runs on.",
		.example = "print(tensor{1}:device())  --> cpu"},
	.alloc = cpu_alloc,
	.free = cpu_free,
};

enum ql_status ql_device_by_name(struct ql_ctx *ctx, const char *what, const char *name, const struct ql_device **out)
{
	if (!strcmp(name, ql_device_cpu.doc.name)) {
		*out = &ql_device_cpu;
		return QL_OK;
	}
	if (ctx->find_device)
		return ctx->find_device(ctx, what, name, out);
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "%s: wanted cpu, got '%.40s'", what, name);
}

enum ql_status ql_devices_sync(struct ql_ctx *ctx)
{
	char first[sizeof(ctx->err)];
	enum ql_status failed = QL_OK;

	for (const struct ql_device *d = ctx->devices; d; d = d->next) {
		enum ql_status status = d->sync(d);

		if (!status || failed)
			continue;
		failed = status;
		memcpy(first, ctx->err, sizeof(first));
	}
	if (failed)
		memcpy(ctx->err, first, sizeof(first));
	return failed;
}
