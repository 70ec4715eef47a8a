/* SPDX-License-Identifier: MIT
 * What a device that is loaded at run time offers: one exported function that gives a table of functions.
 * Plain C without any type of CUDA, so that the program builds and runs where there is none.
 *
 * Ops go by name through `supports` and `run`, so a new op changes nothing here; the core takes the answer
 * "no" as the reason of a fallback (copy to the CPU), which the ledger shows. A plug-in built for another
 * QL_GPU_ABI is refused; fields may be added at the end of the table without a new number, which `size`
 * tells.
 *
 * Every function that can fail returns 0 or a code of the plug-in, which last_error turns into words; none of
 * them ends the process. An error that the device cannot recover from stays: later calls return it again.
 * Pointers named `device` are addresses on the device and are never read by the caller.
 */
#ifndef QUOLL_GPU_ABI_H
#define QUOLL_GPU_ABI_H

#include <stddef.h>
#include <stdint.h>

#define QL_GPU_ABI 1
#define QL_GPU_ENTRY "ql_gpu_entry"
#define QL_GPU_MAX_RANK 8

struct ql_gpu_device; /* an opened device; of the plug-in */
struct ql_gpu_stream; /* a queue of work on it */
struct ql_gpu_event;  /* a moment in a stream */

/* What probe found. A device that cannot be used has `why` filled. */
struct ql_gpu_info {
	char name[96];
	char why[160];              /* "": usable */
	int32_t cc_major, cc_minor; /* compute capability: 9, 0 */
	int32_t processors;         /* streaming multiprocessors */
	int32_t driver, runtime;    /* versions as 1000 * major + 10 * minor */
	uint64_t memory;            /* bytes */
};

/* An operand or result: strided elements, and how codes map to reals when it is quantized. Layout of scale
 * and zero_point as in tensor/qparams.h; both are contiguous. */
struct ql_gpu_tensor {
	void *device; /* element 0 */
	const char *dtype;
	int32_t rank;
	int64_t shape[QL_GPU_MAX_RANK], stride[QL_GPU_MAX_RANK]; /* strides in elements */
	const char *scheme;                                      /* NULL: plain numbers */
	int32_t bits, lo, hi;
	int32_t axis, block_axis; /* 0-based; -1: none */
	int64_t block;            /* 0: no blocks */
	const char *scale_dtype;
	void *scale, *zero_point; /* on the device; zero_point NULL: 0 */
};

/* An option of the op, as declared in its struct ql_attr. */
struct ql_gpu_option {
	const char *name;
	enum { QL_GPU_INTEGER, QL_GPU_NUMBER, QL_GPU_TEXT, QL_GPU_INTEGERS } type;
	int64_t i;
	double f;
	const char *s;
	const int64_t *ints;
	int32_t n_ints;
};

/* One application of an op; in `supports` the device pointers are NULL. Ops are safe to be captured into a
 * graph: they do not wait, and read nothing back. */
struct ql_gpu_call {
	size_t size; /* of this struct */
	const char *op;
	int32_t n_in, n_out, n_options;
	const struct ql_gpu_tensor *in, *out;
	const struct ql_gpu_option *options;
	void *workspace; /* on the device, at least as large as `supports` asked for */
	uint64_t workspace_bytes;
};

struct ql_gpu_memory {
	uint64_t total, free; /* of the device */
	uint64_t now, peak;   /* handed out by alloc */
};

struct ql_gpu_vtable {
	size_t size;                /* of this struct in the plug-in */
	uint32_t abi;               /* QL_GPU_ABI */
	const char *name, *version; /* "cuda", "0.1.0" */

	/* Fills at most `room` entries and returns how many devices there are; below 0: none, `why` (160
	 * bytes) says. */
	int32_t (*probe)(struct ql_gpu_info *out, int32_t room, char *why);
	int32_t (*open)(int32_t index, struct ql_gpu_device **out);
	void (*close)(struct ql_gpu_device *d);
	/* One line about `code` and, where known, the op that caused it. */
	void (*last_error)(struct ql_gpu_device *d, int32_t code, char *text, size_t size);

	/* Memory is in order of the stream that asks for it: free does not wait for work before it. */
	int32_t (*alloc)(struct ql_gpu_stream *s, uint64_t bytes, void **device);
	int32_t (*free)(struct ql_gpu_stream *s, void *device);
	int32_t (*memory)(struct ql_gpu_device *d, struct ql_gpu_memory *out);
	int32_t (*host_alloc)(struct ql_gpu_device *d, uint64_t bytes, void **out); /* pinned */
	void (*host_free)(struct ql_gpu_device *d, void *block);

	/* Queued; host memory has to stay until the stream has passed. */
	int32_t (*to_device)(struct ql_gpu_stream *s, void *device, const void *host, uint64_t bytes);
	int32_t (*to_host)(struct ql_gpu_stream *s, void *host, const void *device, uint64_t bytes);
	int32_t (*copy)(struct ql_gpu_stream *s, void *device, const void *from, uint64_t bytes);
	int32_t (*fill)(struct ql_gpu_stream *s, void *device, uint8_t value, uint64_t bytes);

	int32_t (*stream_open)(struct ql_gpu_device *d, struct ql_gpu_stream **out);
	void (*stream_close)(struct ql_gpu_stream *s);
	int32_t (*stream_sync)(struct ql_gpu_stream *s);
	int32_t (*event_open)(struct ql_gpu_device *d, struct ql_gpu_event **out);
	void (*event_close)(struct ql_gpu_event *e);
	int32_t (*event_record)(struct ql_gpu_stream *s, struct ql_gpu_event *e);
	int32_t (*event_wait)(struct ql_gpu_stream *s, struct ql_gpu_event *e); /* s waits for e */
	int32_t (*event_elapsed)(struct ql_gpu_event *from, struct ql_gpu_event *to, double *seconds);

	/* The kernel's name when run would take this call, else NULL and `why` (160 bytes) says; *workspace:
	 * bytes that run wants. */
	const char *(*supports)(
		struct ql_gpu_device *d, const struct ql_gpu_call *call, uint64_t *workspace, char *why);
	int32_t (*run)(struct ql_gpu_stream *s, const struct ql_gpu_call *call);
};

/* `abi` is what the caller wants; NULL when the plug-in has another. The table lives as long as the process.
 */
typedef const struct ql_gpu_vtable *ql_gpu_entry_fn(uint32_t abi);

#endif
