/* SPDX-License-Identifier: MIT
 * The context, statuses with a message, the counting allocator and checked size arithmetic: the base of every other
 * file.
 *
 * Ownership words in declarations: *borrows* (default, unsaid), *keeps* (adds a reference), *gives* (the caller
 * releases).
 */
#ifndef QUOLL_TENSOR_BASE_H
#define QUOLL_TENSOR_BASE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QL_MAX_RANK 8

enum ql_status {
	QL_OK = 0,
	QL_ERR_ARGUMENT,    /* invalid option or value */
	QL_ERR_SHAPE,       /* incompatible shapes */
	QL_ERR_DTYPE,       /* wrong dtype */
	QL_ERR_OVERFLOW,    /* a size or an exact integer result overflows */
	QL_ERR_MEMORY,      /* out of memory, or ql_memory.limit is reached */
	QL_ERR_IO,          /* the operating system reported an error */
	QL_ERR_FORMAT,      /* a file is malformed */
	QL_ERR_UNSUPPORTED, /* legal, but not possible in this build, machine or mode */
	QL_ERR_INTERRUPTED  /* Ctrl-C was seen by a kernel */
};

/* Bytes in use, and the most since the peak was set to them. */
struct ql_level {
	size_t now, peak;
};

/* Counters of all bytes allocated by ql_alloc. `limit` 0 means no limit. `fail_after` > 0 counts down at each
 * allocation; the allocation that reaches 0 fails (for tests). `held` is `now` plus the rounding of blocks and the
 * bytes on other devices. The host's garbage collector runs (interp/host/collect.c) when `held` exceeds
 * `held_before`, its value after the last run, by a step and `held_more`. */
struct ql_memory {
	size_t now, peak, limit;
	size_t held, held_before, held_more;
	struct ql_level devices; /* bytes on other devices, all together */
	uint64_t count;
	uint64_t fail_after;
};

struct ql_cache;
struct ql_given;
struct ql_node;
struct ql_scratch;
struct ql_ledger;
struct ql_kernels;
struct ql_quant;
struct ql_tables;
struct ql_device;
struct ql_recording;

enum ql_fallback_mode { QL_FALLBACK_SILENT, QL_FALLBACK_WARN, QL_FALLBACK_ERROR };

/* One per process in practice. Holds all mutable state, so the library has no globals. */
/* Which integer paths serve an op (op.c). */
struct ql_served {
	const char *op; /* its name */
	const struct ql_quant *quant;
	uint64_t paths; /* bits */
};

struct ql_ctx {
	char err[1024]; /* message of the last status other than QL_OK */
	/* Why a getter could not read an element of a device, which then is NaN or 0: the next op fails with it. "": none */
	char unread[1024];
	struct ql_memory memory;
	volatile sig_atomic_t interrupted; /* set by the host's signal handler, polled per tile */
	bool finishing;        /* ignore interrupts: a tensor being written in place must not stay half written */
	struct ql_node *dying; /* list of tape nodes being freed, see tape.c */
	bool freeing;          /* a caller is freeing that list */
	uint64_t nodes;        /* tape nodes created so far */
	int depth;             /* ops that are being applied: one within the other */
	bool lends;            /* the outermost op has no codes of its operands by their address: closed.h */
	int nograd;            /* above 0: nothing is recorded */
	int ordered;           /* above 0: `kernels` has ordered products, see kernels.h */
	bool recorded;         /* the host records each call (interp/bind/record.h) */
	int deferring;         /* above 0: elementwise ops may wait (deferred.h) */
	struct ql_deferred *deferred;        /* a list: the results that wait */
	int threads;                         /* upper bound for ql_parallel_for */
	uint64_t seed, rng_position;         /* see rng.h */
	enum ql_fallback_mode fallback;      /* of quantized operands without an integer kernel */
	enum ql_fallback_mode host_fallback; /* of ops without a kernel of their operands' device */
	const struct ql_device *device;      /* where constructors place tensors; NULL: the CPU */
	struct ql_device *devices;           /* those that are open, but the CPU */
	struct ql_recording *recording;      /* the one that is being made, or NULL (recording.h) */
	struct ql_recording *recordings;     /* a list: those that are made */
	uint64_t recordings_made;
	struct ql_given *given; /* params on them that stay (given.c); NULL: none */
	/* Finds a device other than the CPU; set by the host. NULL: there are none. */
	enum ql_status (*find_device)(
		struct ql_ctx *ctx, const char *what, const char *name, const struct ql_device **out);
	struct ql_cache *cache;                          /* freed blocks, for reuse */
	struct ql_scratch *scratch;                      /* temporaries of the running operation */
	struct ql_ledger *ledger;                        /* what ran where, and why */
	const struct ql_kernels *kernels;                /* the CPU's kernel table */
	const struct ql_quant *quant;                    /* integer paths and the quantizer, set by quant/ (op.h) */
	struct ql_served served[64];                     /* by a hash of the name's address */
	struct ql_tables *tables;                        /* one block: see quant/integer/tables.h; NULL: none */
	void (*warn)(struct ql_ctx *, const char *text); /* NULL: warnings are dropped */
	void *host;                                      /* for the program that embeds the library */
	struct ql_user_format *formats;                  /* made by the user: quant/user_format.h */
};

/* True when work should stop: the user interrupted, and no tensor is half written. The result is discarded. */
static inline bool ql_stopped(const struct ql_ctx *ctx)
{
	return ctx->interrupted && !ctx->finishing;
}

/* Gives a context; NULL when out of memory. `threads` 0: one per available core. */
struct ql_ctx *ql_ctx_new(int threads);
void ql_ctx_free(struct ql_ctx *ctx);

/* Stores the formatted message and returns `status`: `return ql_fail(ctx, QL_ERR_SHAPE, "matmul: …")`.
 * Form of a message: function: argument: wanted …, got … */
enum ql_status ql_fail(struct ql_ctx *ctx, enum ql_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns `status`; the message of one for memory gets the name of the function, which ql_alloc does not know. */
enum ql_status ql_failed_in(struct ql_ctx *ctx, const char *function, enum ql_status status);
void ql_warn(struct ql_ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 64-byte aligned, counted; NULL with a message in ctx->err on failure. Zero bytes give a valid pointer.
 * Blocks of 2 MiB and more use huge pages where possible; freed blocks are cached for reuse (see base.c). */
void *ql_alloc(struct ql_ctx *ctx, size_t bytes);
void *ql_alloc_zeroed(struct ql_ctx *ctx, size_t bytes);
void *ql_realloc(struct ql_ctx *ctx, void *block, size_t bytes);
/* n elements of `size` bytes; an overflow or a negative n fails as out of memory. */
void *ql_alloc_array(struct ql_ctx *ctx, int64_t n, size_t size);
void *ql_alloc_array_zeroed(struct ql_ctx *ctx, int64_t n, size_t size);
void *ql_realloc_array(struct ql_ctx *ctx, void *block, int64_t n, size_t size);
void ql_free(struct ql_ctx *ctx, void *block);
char *ql_strdup(struct ql_ctx *ctx, const char *text);
/* Creates and frees the block cache of a context; called by ctx.c. */
enum ql_status ql_cache_init(struct ql_ctx *ctx);
void ql_cache_free(struct ql_ctx *ctx);

/* Checked arithmetic for all sizes: false (and an unspecified *out) on overflow of uint64. */
bool ql_size_add(uint64_t a, uint64_t b, uint64_t *out);
bool ql_size_mul(uint64_t a, uint64_t b, uint64_t *out);
bool ql_size_align(uint64_t a, uint64_t alignment, uint64_t *out);
/* Bytes of n elements of `size`; SIZE_MAX on overflow or negative n; no allocation of that size succeeds. */
size_t ql_size_array(int64_t n, size_t size);

/* Sums and products of counts >= 0. INT64_MAX on overflow; no allocation of that size succeeds. */
static inline int64_t ql_add64(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline int64_t ql_mul64(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t ql_min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t ql_max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ceil(a / b) for a >= 0, b > 0 */
static inline int64_t ql_ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

#endif
