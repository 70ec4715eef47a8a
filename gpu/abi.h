/* SPDX-License-Identifier: MIT
 * What a device plug-in offers: one exported function that gives a table of functions. Plain C without any type of CUDA,
 * so that the program builds and runs where there is none.
 *
 * Ops go by name, so a new op changes nothing here. `op_find` maps a name to a number, `plan` chooses a kernel for
 * dtypes and shapes or says why there is none, `run` queues it. The caller takes "none" as the reason to run the op
 * on the host, which the ledger shows.
 *
 * A plug-in built for another QL_GPU_ABI is refused. Fields may be added at the end of a struct without a new number:
 * `size`, the first field, says whether the other side has them.
 *
 * Functions return enum ql_gpu_status; last_error turns a failure into words. None of them ends the process. An error
 * from which the device cannot recover stays: later calls return QL_GPU_LOST. Addresses on the device are never read
 * by the caller.
 */
#ifndef QUOLL_GPU_ABI_H
#define QUOLL_GPU_ABI_H

#include <stddef.h>
#include <stdint.h>

#define QL_GPU_ABI 2
#define QL_GPU_ENTRY "ql_gpu_entry"
#define QL_GPU_MAX_RANK 8

enum ql_gpu_status {
	QL_GPU_OK,
	QL_GPU_PENDING, /* stream_query: work is left */
	QL_GPU_MEMORY,  /* out of memory; the device stays usable */
	QL_GPU_FAILED,  /* this call failed; the device stays usable */
	QL_GPU_LOST     /* the device cannot be used any more */
};

struct ql_gpu_device; /* an opened device; of the plug-in */
struct ql_gpu_stream; /* a queue of work on it */
struct ql_gpu_event;  /* a moment in a stream */
struct ql_gpu_graph;  /* a recorded sequence of calls */

/* What probe found. A device that cannot be used has `why` filled. */
struct ql_gpu_info {
	char name[96];
	char why[160];              /* "": usable */
	int32_t cc_major, cc_minor; /* compute capability: 9, 0 */
	int32_t processors;         /* streaming multiprocessors */
	int32_t driver, runtime;    /* versions as 1000 * major + 10 * minor */
	uint64_t memory;            /* bytes */
};

struct ql_gpu_codes;

/* flags of a tensor */
#define QL_GPU_NUMBER 1u  /* one number, in i and f: there is no memory */
#define QL_GPU_INTEGER 2u /* of a number: it is i */
#define QL_GPU_SAME 4u    /* a result that is operand 0: the op works in place */

/* An operand or result: strided elements. */
struct ql_gpu_tensor {
	void *at;   /* element 0; packed dtypes: bit 0 of a byte. NULL in `plan` */
	void *base; /* its allocation and the bytes of that */
	uint64_t bytes;
	const char *dtype;
	uint32_t flags;
	int32_t rank;
	int64_t shape[QL_GPU_MAX_RANK], stride[QL_GPU_MAX_RANK]; /* strides in elements */
	int64_t i;
	double f;
	const struct ql_gpu_codes *codes; /* how the elements map to reals; NULL: they are plain numbers */
};

/* The values of codes that are no integers, as struct ql_grid_table of tensor/grid.h; the arrays are on the host. */
struct ql_gpu_grid {
	int32_t n, ranks;
	int32_t zero, nan; /* codes */
	float unit, least;
	int32_t reciprocal;
	const float *value;  /* n */
	const float *edge;   /* n */
	const uint8_t *code; /* of the rank */
	int32_t exponent, mantissa, bias, most,
		infinity; /* of a floating-point grid; exponent 0: the grid is a table */
};

/* flags of codes */
#define QL_GPU_FIND 1u       /* result: the kernel finds scale and zero point and writes them */
#define QL_GPU_OVERFLOW 2u   /* floating point beyond its range becomes infinity or NaN; else it saturates */
#define QL_GPU_AFFINE 4u     /* x = (q - zero_point) * scale */
#define QL_GPU_STOCHASTIC 8u /* result of quantize: rounded at random, by the words from `first` of the call on */

/* x = (value(q) - zero_point) * scale + shift. Layout of scale, zero_point and shift as in tensor/qparams.h, contiguous.
 * Scales may be codes themselves. */
struct ql_gpu_codes {
	size_t size;
	uint32_t flags;
	const char *scheme, *format; /* for messages only; format may be NULL */
	const char *from;            /* dtype before quantization */
	int32_t bits, lo, hi;
	int32_t scaling;          /* enum ql_scaling of quant/format.h */
	int32_t axis, block_axis; /* 0-based; -1: none */
	int64_t block;            /* 0: no blocks */
	float octaves;
	const struct ql_gpu_grid *grid;                         /* NULL: codes are integers */
	const struct ql_gpu_tensor *scale, *zero_point, *shift; /* NULL: 1, 0, 0 */
	const struct ql_gpu_tensor *each_bits;                  /* int8, of each channel; NULL: all have `bits` */
	int64_t *counts;  /* on the device: NaN and infinite elements of what was quantized; NULL: not wanted */
	int32_t fit;      /* with QL_GPU_FIND: enum ql_gpu_fit */
	int32_t rounding; /* result of a product: enum ql_requant of quant/spec.h */
};

/* How scale and zero point follow from the finite values under a scale. */
enum ql_gpu_fit {
	QL_GPU_FIT_HOST,    /* by another rule: the host finds them */
	QL_GPU_FIT_LARGEST, /* from max |x|; the zero point is 0, or the middle of unsigned codes */
	QL_GPU_FIT_RANGE    /* from the range with 0; the zero point is where 0 is */
};

enum ql_gpu_option_type {
	QL_GPU_OPTION_INTEGER, /* i; also bool, and an axis, 0-based */
	QL_GPU_OPTION_NUMBER,  /* f */
	QL_GPU_OPTION_TEXT,    /* s; also a dtype */
	QL_GPU_OPTION_INTEGERS,
	QL_GPU_OPTION_NUMBERS,
	QL_GPU_OPTION_AXES /* i: a mask of 0-based axes */
};

/* An option of the op, as declared in its struct ql_attr. Options that were not given are left out. */
struct ql_gpu_option {
	const char *name;
	int32_t type, n;
	int64_t i;
	double f;
	const char *s;
	const int64_t *ints; /* n */
	const double *numbers;
};

/* flags of a call */
#define QL_GPU_ORDERED 1u /* products add one rounded product after the other, in order of k */

/* One application of an op. Kernels neither wait nor read anything back, so a call can be captured into a graph. */
struct ql_gpu_call {
	size_t size;
	const char *op;
	int32_t n_in, n_out, n_options;
	uint32_t flags;
	const struct ql_gpu_tensor *in, *out;
	const struct ql_gpu_option *options;
	void *workspace;      /* on the device, plan->workspace bytes */
	uint64_t serial;      /* of the call, for faults */
	uint64_t seed, first; /* random numbers: seed and position (tensor/rng.h) */
};

/* How exactly a kernel repeats the result of the CPU (gpu/README.md). */
enum ql_gpu_exact { QL_GPU_BITS, QL_GPU_TOLERANCE };

/* Chosen for dtypes, shapes and options; valid until the device is closed or force() is called. */
struct ql_gpu_plan {
	size_t size;
	const void *kernel;
	const char *name, *path; /* for the ledger: "gemm_i8_mma", "int8" */
	uint64_t workspace;
	int32_t exact;
	char why[160];  /* of a refusal */
	int32_t faults; /* not 0: the kernel may note a fault */
};

/* What a kernel found in values: the first index out of range, class out of range, division by 0, overflow. */
enum ql_gpu_fault_kind {
	QL_GPU_FAULT_NONE,
	QL_GPU_FAULT_INDEX,
	QL_GPU_FAULT_CLASS,
	QL_GPU_FAULT_DIVISION,
	QL_GPU_FAULT_OVERFLOW
};
struct ql_gpu_fault {
	uint64_t serial;                /* of the call */
	int32_t kind;                   /* enum ql_gpu_fault_kind */
	int64_t position, value, limit; /* element of the last operand, in row-major order; values are 1 to limit */
};

struct ql_gpu_kernel_info {
	const char *name, *op, *family; /* family: simt, dp4a, mma, wgmma, cublas, cudnn */
	int32_t exact, cc;              /* cc: 80 for compute capability 8.0 */
};

struct ql_gpu_memory {
	uint64_t total, free; /* of the device */
	uint64_t now, peak;   /* given by alloc */
};

struct ql_gpu_vtable {
	size_t size;                /* of this struct in the plug-in */
	uint32_t abi;               /* QL_GPU_ABI */
	const char *name, *version; /* "cuda", "0.1.0"; devices are called name:0, name:1, and name is name:0 */

	/* Fills at most `room` entries and returns how many devices there are; below 0: none, `why` (160
	 * bytes) says. */
	int32_t (*probe)(struct ql_gpu_info *out, int32_t room, char *why);
	int32_t (*open)(int32_t index, struct ql_gpu_device **out);
	void (*close)(struct ql_gpu_device *d);
	/* One line about the last failure and, where known, the op that caused it. d NULL: of open. */
	void (*last_error)(struct ql_gpu_device *d, char *text, size_t size);

	/* Memory is in order of the stream that asks for it: free does not wait for work before it. */
	int32_t (*alloc)(struct ql_gpu_stream *s, uint64_t bytes, void **at);
	int32_t (*free)(struct ql_gpu_stream *s, void *at);
	int32_t (*memory)(struct ql_gpu_device *d, struct ql_gpu_memory *out);
	int32_t (*memory_reset)(struct ql_gpu_device *d); /* peak = now */

	/* Host memory may be reused when the function returns: the plug-in has its own pinned buffers. to_host waits. */
	int32_t (*to_device)(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes);
	int32_t (*to_host)(struct ql_gpu_stream *s, void *host, const void *at, uint64_t bytes);
	int32_t (*copy)(struct ql_gpu_stream *s, void *at, const void *from, uint64_t bytes);
	int32_t (*fill)(struct ql_gpu_stream *s, void *at, uint8_t value, uint64_t bytes);

	int32_t (*stream_open)(struct ql_gpu_device *d, struct ql_gpu_stream **out);
	void (*stream_close)(struct ql_gpu_stream *s);
	int32_t (*stream_sync)(struct ql_gpu_stream *s);
	int32_t (*stream_query)(struct ql_gpu_stream *s); /* QL_GPU_OK: idle; QL_GPU_PENDING */
	int32_t (*event_open)(struct ql_gpu_device *d, struct ql_gpu_event **out);
	void (*event_close)(struct ql_gpu_event *e);
	int32_t (*event_record)(struct ql_gpu_stream *s, struct ql_gpu_event *e);
	int32_t (*event_elapsed)(struct ql_gpu_event *from, struct ql_gpu_event *to, double *seconds);

	/* Number of the op of that name; -1: there is no kernel for it. */
	int32_t (*op_find)(const char *name);
	/* QL_GPU_FAILED: no kernel takes this call, plan->why says why. */
	int32_t (*plan)(struct ql_gpu_device *d, int32_t op, const struct ql_gpu_call *call, struct ql_gpu_plan *plan);
	int32_t (*run)(struct ql_gpu_stream *s, const struct ql_gpu_call *call, const struct ql_gpu_plan *plan);
	/* The first fault since the last question; waits. kind QL_GPU_FAULT_NONE: none. */
	int32_t (*fault)(struct ql_gpu_stream *s, struct ql_gpu_fault *out);

	/* Kernel i from 0; QL_GPU_FAILED behind the last one. */
	int32_t (*kernels)(int32_t i, struct ql_gpu_kernel_info *out);
	/* Uses kernels of these families only, separated by spaces; NULL: all that the device has. */
	int32_t (*force)(struct ql_gpu_device *d, const char *families);

	/* What is queued between begin and end is not run but recorded, with its addresses, numbers and random positions; run
	 * queues all of it at once, any number of times. So are bytes that to_device copies meanwhile. Copies to the host and what
	 * waits are refused.
	 * Memory that is given or freed between begin and end stays until the graph is closed, and memory that the caller
	 * still has is its own then. A graph is closed before its stream. */
	int32_t (*graph_begin)(struct ql_gpu_stream *s);
	int32_t (*graph_end)(struct ql_gpu_stream *s, struct ql_gpu_graph **out);
	int32_t (*graph_run)(struct ql_gpu_stream *s, struct ql_gpu_graph *g);
	void (*graph_close)(struct ql_gpu_graph *g);
};

/* `abi` is what the caller wants; NULL when the plug-in has another. The table lives as long as the process. */
typedef const struct ql_gpu_vtable *ql_gpu_entry_fn(uint32_t abi);

#endif
