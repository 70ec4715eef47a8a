/* SPDX-License-Identifier: MIT
 * labels: full
 * The ghost: a device plug-in whose memory the host cannot read and that has no kernels, so that every op runs on
 * copies in the host's memory. Addresses are kept as they are, but with a bit set that no pointer has: reading one is a
 * fault. QUOLL_TEST_GPU says what it finds: "version" another interface, "none" no driver, "empty" no device,
 * "unusable" one it refuses, "memory" one of 1 MiB, else one that works.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/abi.h"

#define HIDDEN ((uintptr_t)1 << 62)

ql_gpu_entry_fn ql_gpu_entry;

struct ql_gpu_device {
	struct ql_gpu_memory memory;
	const char *error;
};

struct ql_gpu_stream {
	struct ql_gpu_device *device;
};

static int is(const char *what)
{
	const char *wanted = getenv("QUOLL_TEST_GPU");

	return wanted && !strcmp(wanted, what);
}

static int32_t probe(struct ql_gpu_info *out, int32_t room, char *why)
{
	if (is("none")) {
		strcpy(why, "the driver does not answer");
		return -1;
	}
	if (is("empty") || room < 1)
		return 0;
	*out = (struct ql_gpu_info){.cc_major = 9, .processors = 132, .memory = 1 << 30};
	strcpy(out->name, "Test GPU");
	if (is("unusable"))
		strcpy(out->why, "compute capability too low");
	return 1;
}

static int32_t open_device(int32_t index, struct ql_gpu_device **out)
{
	if (index)
		return QL_GPU_FAILED;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return QL_GPU_MEMORY;
	(*out)->memory.total = is("memory") ? 1 << 20 : 1 << 30;
	return QL_GPU_OK;
}

static void close_device(struct ql_gpu_device *d)
{
	free(d);
}

static void last_error(struct ql_gpu_device *d, char *text, size_t size)
{
	if (size > 0)
		strncpy(text, d && d->error ? d->error : "no such device", size - 1)[size - 1] = '\0';
}

/* ---- memory: each block begins with its size ---- */

static void *seen(const void *at)
{
	return (void *)((uintptr_t)at & ~HIDDEN);
}

static int32_t alloc_bytes(struct ql_gpu_stream *s, uint64_t bytes, void **at)
{
	struct ql_gpu_memory *m = &s->device->memory;
	uint64_t *block = m->now + bytes <= m->total ? malloc(bytes + 64) : NULL;

	if (!block) {
		s->device->error = "out of memory";
		return QL_GPU_MEMORY;
	}
	*block = bytes;
	memset((char *)block + 64, 0xcd, bytes);
	m->now += bytes;
	m->peak = m->peak > m->now ? m->peak : m->now;
	*at = (void *)((uintptr_t)((char *)block + 64) | HIDDEN);
	return QL_GPU_OK;
}

static int32_t free_bytes(struct ql_gpu_stream *s, void *at)
{
	uint64_t *block = (uint64_t *)(void *)((char *)seen(at) - 64);

	s->device->memory.now -= *block;
	free(block);
	return QL_GPU_OK;
}

static int32_t memory(struct ql_gpu_device *d, struct ql_gpu_memory *out)
{
	*out = d->memory;
	out->free = d->memory.total - d->memory.now;
	return QL_GPU_OK;
}

static int32_t memory_reset(struct ql_gpu_device *d)
{
	d->memory.peak = d->memory.now;
	return QL_GPU_OK;
}

static int32_t to_device(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes)
{
	(void)s;
	memcpy(seen(at), host, bytes);
	return QL_GPU_OK;
}

static int32_t to_host(struct ql_gpu_stream *s, void *host, const void *at, uint64_t bytes)
{
	(void)s;
	memcpy(host, seen(at), bytes);
	return QL_GPU_OK;
}

static int32_t copy(struct ql_gpu_stream *s, void *at, const void *from, uint64_t bytes)
{
	(void)s;
	memmove(seen(at), seen(from), bytes);
	return QL_GPU_OK;
}

static int32_t fill(struct ql_gpu_stream *s, void *at, uint8_t value, uint64_t bytes)
{
	(void)s;
	memset(seen(at), value, bytes);
	return QL_GPU_OK;
}

/* ---- streams ---- */

static int32_t stream_open(struct ql_gpu_device *d, struct ql_gpu_stream **out)
{
	*out = malloc(sizeof(**out));
	if (!*out)
		return QL_GPU_MEMORY;
	(*out)->device = d;
	return QL_GPU_OK;
}

static void stream_close(struct ql_gpu_stream *s)
{
	free(s);
}

static int32_t idle(struct ql_gpu_stream *s)
{
	(void)s;
	return QL_GPU_OK;
}

static int32_t op_find(const char *name)
{
	(void)name;
	return -1;
}

static const struct ql_gpu_vtable table = {
	.size = sizeof(table),
	.abi = QL_GPU_ABI,
	.name = "ghost",
	.version = "1",
	.probe = probe,
	.open = open_device,
	.close = close_device,
	.last_error = last_error,
	.alloc = alloc_bytes,
	.free = free_bytes,
	.memory = memory,
	.memory_reset = memory_reset,
	.to_device = to_device,
	.to_host = to_host,
	.copy = copy,
	.fill = fill,
	.stream_open = stream_open,
	.stream_close = stream_close,
	.stream_sync = idle,
	.stream_query = idle,
	.op_find = op_find,
};

const struct ql_gpu_vtable *ql_gpu_entry(uint32_t abi)
{
	return abi != QL_GPU_ABI || is("version") ? NULL : &table;
}
