/* SPDX-License-Identifier: MIT
 * The context, statuses with a message, the counted allocator and checked size arithmetic: what every
 * other file stands on.
 *
 * Ownership words in declarations: *borrows* (default, unsaid), *keeps* (adds a reference), *gives*
 * (the caller releases).
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
	QL_ERR_ARGUMENT,    /* an option or value is wrong */
	QL_ERR_SHAPE,       /* shapes do not fit together */
	QL_ERR_DTYPE,       /* the dtype does not fit */
	QL_ERR_OVERFLOW,    /* a size or an exact integer result does not fit */
	QL_ERR_MEMORY,      /* no memory, or the limit of ql_memory is reached */
	QL_ERR_IO,          /* the operating system refused */
	QL_ERR_FORMAT,      /* a file is malformed */
	QL_ERR_UNSUPPORTED, /* legal, but not possible in this build, machine or mode */
	QL_ERR_INTERRUPTED  /* Ctrl-C was seen by a kernel */
};

/* Counters of all bytes that went through ql_alloc. `limit` 0 means none. `fail_after` > 0 counts down
 * at each allocation; the one that reaches 0 fails (tests). `held` is `now` with the rounding of blocks and the bytes on
 * other devices: the host's collector runs when it has grown (interp/collect.c) from `held_before`, what its last run
 * left, by a step and `held_more`. */
struct ql_memory {
	size_t now, peak, limit;
	size_t held, held_before, held_more;
	uint64_t count;
	uint64_t fail_after;
};

struct ql_cache;
struct ql_node;
struct ql_scratch;
struct ql_ledger;
struct ql_kernels;
struct ql_quant;

enum ql_fallback_mode { QL_FALLBACK_SILENT, QL_FALLBACK_WARN, QL_FALLBACK_ERROR };

/* One per process in practice; everything mutable lives here, so that the library has no globals. */
struct ql_ctx {
	char err[1024]; /* message of the last status other than QL_OK */
	struct ql_memory memory;
	volatile sig_atomic_t interrupted;   /* set by the host's signal handler, polled per tile */
	bool finishing;                      /* polls say no: a tensor that is written to must not stay half written */
	struct ql_node *dying;               /* nodes of the tape that are being freed, see tape.c */
	bool freeing;                        /* somebody frees them */
	uint64_t nodes;                      /* of the tape so far */
	int nograd;                          /* above 0: nothing is recorded */
	int ordered;                         /* above 0: `kernels` has ordered products, see kernels.h */
	bool recorded;                       /* the host wants to know each call that it makes (interp/record.h) */
	int threads;                         /* upper bound for ql_parallel_for */
	uint64_t seed, rng_position;         /* see rng.h */
	enum ql_fallback_mode fallback;
	struct ql_cache *cache;              /* freed blocks kept for reuse */
	struct ql_scratch *scratch;          /* temporaries of the running operation */
	struct ql_ledger *ledger;            /* what ran where, and why */
	const struct ql_kernels *kernels;    /* the CPU's kernel table */
	const struct ql_quant *quant;        /* integer paths and the quantizer, set by quant/ (op.h) */
	void (*warn)(struct ql_ctx *, const char *text); /* NULL: warnings are dropped */
	void *host;                          /* for the program that embeds the library */
};

/* Work should stop: the user asked for it, and no tensor is half written. The result is then thrown away. */
static inline bool ql_stopped(const struct ql_ctx *ctx)
{
	return ctx->interrupted && !ctx->finishing;
}

/* gives a context; NULL when there is no memory. `threads` 0: one per available core. */
struct ql_ctx *ql_ctx_new(int threads);
void ql_ctx_free(struct ql_ctx *ctx);

/* Stores the formatted message and returns `status`: `return ql_fail(ctx, QL_ERR_SHAPE, "matmul: …")`.
 * Form of a message: function: argument: wanted …, got … */
enum ql_status ql_fail(struct ql_ctx *ctx, enum ql_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ql_warn(struct ql_ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 64-byte aligned, counted; NULL with a message in ctx->err on failure. Zero bytes give a valid pointer.
 * Blocks of 2 MiB and more ask for huge pages; freed blocks are kept for reuse (see base.c). */
void *ql_alloc(struct ql_ctx *ctx, size_t bytes);
void *ql_alloc_zeroed(struct ql_ctx *ctx, size_t bytes);
void *ql_realloc(struct ql_ctx *ctx, void *block, size_t bytes);
/* n elements of `size` bytes; a product that overflows, or a negative n, is out of memory. */
void *ql_alloc_array(struct ql_ctx *ctx, int64_t n, size_t size);
void *ql_alloc_array_zeroed(struct ql_ctx *ctx, int64_t n, size_t size);
void *ql_realloc_array(struct ql_ctx *ctx, void *block, int64_t n, size_t size);
void ql_free(struct ql_ctx *ctx, void *block);
/* Gives the kept blocks back to the system. */
void ql_cache_drop(struct ql_ctx *ctx);
char *ql_strdup(struct ql_ctx *ctx, const char *text);

/* Checked arithmetic for all sizes: false (and an unspecified *out) on overflow of uint64. */
bool ql_size_add(uint64_t a, uint64_t b, uint64_t *out);
bool ql_size_mul(uint64_t a, uint64_t b, uint64_t *out);
bool ql_size_align(uint64_t a, uint64_t alignment, uint64_t *out);
/* Bytes of n elements of `size`; SIZE_MAX, which no allocation gives, on overflow or when n is negative. */
size_t ql_size_array(int64_t n, size_t size);

/* Sums and products of counts that are 0 or more: INT64_MAX on overflow, which no allocation gives. */
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
