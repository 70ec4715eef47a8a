/* SPDX-License-Identifier: MIT
 * The line engine. Dense lines of the domain's type are used in place; others are converted in a buffer. Where
 * neighbouring lines are interleaved in memory (any axis but the last), GROUP of them are read and written
 * together, so that every cache line is accessed once.
 */
#include "tensor/loops/lines.h"

#include <stdatomic.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/walk.h"

#define GROUP 16                        /* lines at a time: 64 bytes of floats */
#define GROUP_BYTES ((int64_t)16 << 20) /* a group that needs more gets fewer lines */
#define LONGEST ((int64_t)1 << 48)      /* elements of a line: sizes computed from them do not overflow */
#define CHUNK 32768                     /* elements claimed at a time */

enum domain { F32, F64, I64 };
enum { IN, OUT, INDEX, ENDS }; /* INDEX: or the second operand */

/* One side of the work: the operand or a result. */
struct end {
	const struct ql_dtype_info *dtype;
	void *base;
	int64_t n, stride; /* elements of a line and their distance */
	int64_t side;      /* distance of neighbouring lines */
	size_t size;       /* bytes of an element in a buffer */
	size_t buffer;     /* where its buffer starts in a slot */
	enum domain domain;
	bool direct; /* lines are used in place */
};

struct lines_job {
	const struct ql_ctx *ctx;
	const struct ql_lines *kind;
	ql_line_fn *run;
	struct ql_walk walk; /* over lines; the last axis holds the neighbours */
	struct end end[ENDS];
	int ends, variant;
	int64_t group, groups; /* lines together; groups per row of the walk */
	const void *args;
	char *slots; /* memory of one running body each */
	size_t slot_bytes, work;
	atomic_flag *taken;
	int slot_count;
};

struct ql_tensor ql_line_axis(const struct ql_tensor *t, int axis)
{
	struct ql_tensor h = *t;

	if (t->rank == 0) {
		h.rank = 1;
		h.shape[0] = h.stride[0] = 1;
		return h;
	}
	for (int d = axis; d < t->rank - 1; d++) {
		h.shape[d] = t->shape[d + 1];
		h.stride[d] = t->stride[d + 1];
	}
	h.shape[t->rank - 1] = t->shape[axis];
	h.stride[t->rank - 1] = t->stride[axis];
	return h;
}

enum ql_status ql_line_attr(struct ql_ctx *ctx, const struct ql_call *call, int *axis)
{
	*axis = call->in[0]->rank ? call->in[0]->rank - 1 : 0;
	return ql_call_axis(ctx, call, "axis", axis);
}

enum ql_status ql_lines_over(
	struct ql_ctx *ctx, const struct ql_tensor *t, unsigned mask, struct ql_tensor *lines, struct ql_tensor **copy)
{
	struct ql_tensor h = *t;
	int64_t n = 1;
	int at = 0, kept = t->rank - __builtin_popcount(mask);
	bool one = true;

	for (int pass = 0; pass < 2; pass++)
		for (int d = 0; d < t->rank; d++)
			if ((int)(mask >> d & 1) == pass) {
				h.shape[at] = t->shape[d];
				h.stride[at++] = t->stride[d];
			}
	for (int d = kept; d < t->rank; d++) {
		n *= h.shape[d];
		one = one && (d + 1 == t->rank || h.stride[d] == h.stride[d + 1] * h.shape[d + 1]);
	}
	*copy = NULL;
	if (!one) { /* rows of packed integers are filled to whole bytes */
		unsigned dtype = ql_dtype_is_packed(t->dtype) ? QL_int8 : t->dtype;
		enum ql_status status = ql_tensor_new(ctx, dtype, h.rank, h.shape, copy);

		if (!status)
			status = ql_tensor_copy(ctx, *copy, &h);
		if (status)
			return status;
		h = **copy;
	}
	h.stride[kept] = t->rank > kept ? h.stride[t->rank - 1] : 1;
	h.shape[kept] = n;
	h.rank = (uint8_t)(kept + 1);
	*lines = h;
	return QL_OK;
}

struct ql_tensor ql_lines_results(const struct ql_tensor *out, const struct ql_tensor *in, int64_t m)
{
	struct ql_tensor h = *out;
	int64_t next = 1;

	h.rank = in->rank;
	for (int d = in->rank - 2; d >= 0; d--) {
		h.shape[d] = in->shape[d];
		h.stride[d] = next;
		next *= in->shape[d];
	}
	h.shape[in->rank - 1] = m;
	h.stride[in->rank - 1] = next;
	return h;
}

/* ---- moving lines ---- */

static void to_buffer(const struct end *e, int64_t at, int64_t stride, int64_t n, void *out)
{
	if (e->domain == F32)
		e->dtype->to_f32(e->base, at, stride, n, out);
	else if (e->domain == F64)
		e->dtype->to_f64(e->base, at, stride, n, out);
	else
		e->dtype->to_i64(e->base, at, stride, n, out);
}

static void from_buffer(const struct end *e, int64_t at, int64_t stride, int64_t n, const void *in)
{
	if (e->domain == F32)
		e->dtype->from_f32(e->base, at, stride, n, in);
	else if (e->domain == F64)
		e->dtype->from_f64(e->base, at, stride, n, in);
	else
		e->dtype->from_i64(e->base, at, stride, n, in);
}

/* Copies element i of every line of a group: adjacent in `row`, n apart in the buffer. */
static inline void spread(const struct end *e, int64_t i, int64_t lines, const void *row, void *buffer)
{
	if (e->size == 4)
		for (int64_t g = 0; g < lines; g++)
			memcpy((char *)buffer + (g * e->n + i) * 4, (const char *)row + g * 4, 4);
	else
		for (int64_t g = 0; g < lines; g++)
			memcpy((char *)buffer + (g * e->n + i) * 8, (const char *)row + g * 8, 8);
}

static inline void collect(const struct end *e, int64_t i, int64_t lines, void *row, const void *buffer)
{
	if (e->size == 4)
		for (int64_t g = 0; g < lines; g++)
			memcpy((char *)row + g * 4, (const char *)buffer + (g * e->n + i) * 4, 4);
	else
		for (int64_t g = 0; g < lines; g++)
			memcpy((char *)row + g * 8, (const char *)buffer + (g * e->n + i) * 8, 8);
}

/* Lines g < lines begin at at + g * side; they are consecutive in the buffer. */
static void gather(const struct end *e, int64_t at, int64_t lines, void *buffer)
{
	uint64_t row[GROUP];

	if (lines == 1) {
		to_buffer(e, at, e->stride, e->n, buffer);
		return;
	}
	for (int64_t i = 0; i < e->n; i++) {
		to_buffer(e, at + i * e->stride, e->side, lines, row);
		spread(e, i, lines, row, buffer);
	}
}

static void scatter(const struct end *e, int64_t at, int64_t lines, const char *buffer)
{
	uint64_t row[GROUP];

	if (lines == 1 || e->stride == 1) {
		for (int64_t g = 0; g < lines; g++)
			from_buffer(e, at + g * e->side, e->stride, e->n, buffer + (size_t)(g * e->n) * e->size);
		return;
	}
	for (int64_t i = 0; i < e->n; i++) {
		collect(e, i, lines, row, buffer);
		from_buffer(e, at + i * e->stride, e->side, lines, row);
	}
}

/* The address of line g of the group: in place or in the buffer. */
static void *line_of(const struct end *e, int64_t at, int64_t g, char *slot)
{
	if (e->direct)
		return (char *)e->base + (size_t)(at + g * e->side) * e->size;
	return slot + e->buffer + (size_t)(g * e->n) * e->size;
}

static bool is_operand(const struct lines_job *j, int k)
{
	return k == IN || (k == INDEX && j->kind->pair);
}

static void run_group(const struct lines_job *j, int64_t item, char *slot)
{
	int64_t first = item % j->groups * j->group, lines = ql_min64(j->group, j->walk.row - first), at[QL_MAX_WALK];

	ql_walk_row(&j->walk, item / j->groups, at);
	for (int k = 0; k < j->ends; k++)
		at[k] += first * ql_walk_stride(&j->walk, k);
	for (int k = IN; k < j->ends; k++)
		if (is_operand(j, k) && !j->end[k].direct)
			gather(&j->end[k], at[k], lines, slot + j->end[k].buffer);
	for (int64_t g = 0; g < lines; g++) {
		struct ql_line line = {.n = j->end[IN].n,
			.m = j->end[OUT].n,
			.args = j->args,
			.variant = j->variant,
			.ctx = j->ctx,
			.in = line_of(&j->end[IN], at[IN], g, slot),
			.out = line_of(&j->end[OUT], at[OUT], g, slot),
			.work = slot ? slot + j->work : NULL};

		if (j->ends > INDEX && j->kind->pair)
			line.with = line_of(&j->end[INDEX], at[INDEX], g, slot);
		else if (j->ends > INDEX)
			line.index = line_of(&j->end[INDEX], at[INDEX], g, slot);
		j->run(&line);
	}
	for (int k = OUT; k < j->ends; k++)
		if (!is_operand(j, k) && !j->end[k].direct)
			scatter(&j->end[k], at[k], lines, slot + j->end[k].buffer);
}

static void lines_body(void *arg, int64_t begin, int64_t end)
{
	struct lines_job *j = arg;
	int s = 0;

	/* at most slot_count bodies run at a time */
	while (j->slot_bytes && atomic_flag_test_and_set(&j->taken[s]))
		s = (s + 1) % j->slot_count;
	for (int64_t i = begin; i < end; i++)
		run_group(j, i, j->slot_bytes ? j->slots + (size_t)s * j->slot_bytes : NULL);
	if (j->slot_bytes)
		atomic_flag_clear(&j->taken[s]);
}

/* ---- geometry ---- */

/* The last axis of the walk is that of neighbouring lines: the one along which the operand is dense. */
static void start_walk(struct lines_job *j, struct ql_tensor *const *t)
{
	int rank = t[IN]->rank - 1, side = -1, order[QL_MAX_RANK], n = 0;
	bool dense = t[IN]->stride[rank] == 1 || t[IN]->shape[rank] == 1;

	for (int d = 0; d < rank && !dense; d++)
		if (t[IN]->stride[d] == 1 && t[IN]->shape[d] > 1)
			side = d;
	for (int d = 0; d < rank; d++)
		if (d != side)
			order[n++] = d;
	if (side >= 0)
		order[n++] = side;
	j->walk = (struct ql_walk){.rank = rank, .operands = j->ends};
	for (int d = 0; d < rank; d++) {
		j->walk.shape[d] = t[IN]->shape[order[d]];
		for (int k = 0; k < j->ends; k++)
			j->walk.stride[k][d] = t[k]->stride[order[d]];
	}
	for (int k = 0; k < j->ends; k++)
		j->walk.offset[k] = t[k]->offset;
	ql_walk_finish(&j->walk, side >= 0);
	j->group = side >= 0 ? GROUP : 1;
}

static size_t size_of(enum domain domain)
{
	return domain == F32 ? sizeof(float) : sizeof(int64_t);
}

static unsigned dtype_of(enum domain domain)
{
	return domain == F32 ? QL_float32 : domain == F64 ? QL_float64 : QL_int64;
}

static void start_end(const struct lines_job *j, struct end *e, int k, const struct ql_tensor *t, enum domain domain)
{
	int last = t->rank - 1;

	*e = (struct end){.dtype = &ql_dtypes[t->dtype],
		.base = t->storage->data,
		.n = t->shape[last],
		.stride = t->stride[last],
		.side = ql_walk_stride(&j->walk, k),
		.size = size_of(domain),
		.domain = domain};
	e->direct = t->dtype == dtype_of(domain) && (e->stride == 1 || e->n == 1);
}

/* Assigns offsets in a slot: buffers of the ends that need one, then the op's work memory. */
static bool plan_slots(struct lines_job *j, int threads)
{
	uint64_t bytes = 0, part;

	for (int k = 0; k < j->ends; k++) {
		struct end *e = &j->end[k];

		if (e->n > LONGEST)
			return false;
		e->buffer = bytes;
		if (e->direct)
			continue;
		while (j->group > 1 && j->group * e->n > GROUP_BYTES / (int64_t)e->size)
			j->group /= 2;
		if (!ql_size_align(ql_size_array(ql_mul64(e->n, j->group), e->size), 64, &part))
			return false;
		bytes += part;
	}
	j->work = bytes;
	if (j->kind->work)
		bytes += j->kind->work(j->end[IN].n, j->end[OUT].n);
	if (!ql_size_align(bytes, 64, &bytes))
		return false;
	j->slot_bytes = bytes;
	j->groups = ql_ceil_div(j->walk.row, j->group);
	j->slot_count = (int)ql_min64(threads, j->walk.rows * j->groups);
	return true;
}

static enum ql_status take_slots(struct ql_ctx *ctx, struct lines_job *j)
{
	uint64_t bytes;

	if (!ql_size_mul(j->slot_bytes, (uint64_t)j->slot_count, &bytes) || bytes > (uint64_t)1 << 56)
		return ql_fail(ctx, QL_ERR_MEMORY, "out of memory: lines of %lld elements", (long long)j->end[IN].n);
	j->slots = ql_scratch_take(ctx, bytes);
	j->taken = ql_scratch_array(ctx, j->slot_count, sizeof(*j->taken));
	if (!j->slots || !j->taken)
		return QL_ERR_MEMORY;
	for (int i = 0; i < j->slot_count; i++)
		atomic_flag_clear(&j->taken[i]);
	return QL_OK;
}

/* ---- running ---- */

static enum domain domain_of(const struct ql_lines *kind, unsigned dtype)
{
	if (ql_dtype_is_integer(dtype)) {
		if (kind->i64)
			return I64;
		return ql_dtypes[dtype].bits > 24 ? F64 : F32;
	}
	return dtype == QL_float64 ? F64 : F32;
}

static enum ql_status run_lines(struct ql_ctx *ctx, struct ql_call *call, const struct ql_lines *kind,
	struct ql_tensor *const *t, int ends, const void *args)
{
	static const char *const paths[] = {"float32", "float64", "int64"};
	enum domain domain = domain_of(kind, t[IN]->dtype);
	struct lines_job j = {
		.ctx = ctx, .kind = kind, .ends = ends, .args = args, .variant = ctx->kernels->simd->variant};
	int64_t items, each;
	enum ql_status status = QL_OK;

	call->path = paths[domain];
	call->kernel = domain == F32 ? ctx->kernels->simd->name : "ref";
	j.run = domain == F32 ? kind->f32 : domain == F64 ? kind->f64 : kind->i64;
	start_walk(&j, t);
	for (int k = 0; k < ends; k++)
		start_end(&j, &j.end[k], k, t[k], k == INDEX && !kind->pair ? I64 : domain);
	if (!plan_slots(&j, ctx->threads))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "%s: wanted lines that fit in memory, got %lld elements",
			call->op->doc.name, (long long)j.end[IN].n);
	items = j.walk.rows * j.groups;
	if (items == 0 || j.end[OUT].n == 0)
		return QL_OK;
	if (j.slot_bytes)
		status = take_slots(ctx, &j);
	if (status)
		return status;
	each = ql_max64(1, j.end[IN].n * j.group);
	return ql_parallel_for(ctx, items, ql_max64(1, CHUNK / each),
		ql_min64(items * each, LONGEST) * kind->ns_per_element, lines_body, &j);
}

/* Neighbouring lines of a packed result share bytes, so it is computed as int8 first. */
enum ql_status ql_lines_run(struct ql_ctx *ctx, struct ql_call *call, const struct ql_lines *kind,
	const struct ql_tensor *in, struct ql_tensor *out, struct ql_tensor *index, const void *args)
{
	struct ql_tensor operand = *in, *t[ENDS] = {&operand, out, index}, *wide;
	int ends = index ? ENDS : INDEX;
	enum ql_status status;

	if (!ql_dtype_is_packed(out->dtype))
		return run_lines(ctx, call, kind, t, ends, args);
	status = ql_tensor_new(ctx, QL_int8, out->rank, out->shape, &wide);
	t[OUT] = wide;
	if (!status)
		status = run_lines(ctx, call, kind, t, ends, args);
	if (!status)
		status = ql_tensor_copy(ctx, out, wide);
	ql_tensor_release(ctx, wide);
	return status;
}
