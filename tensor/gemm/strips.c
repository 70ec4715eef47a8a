/* SPDX-License-Identifier: MIT
 * Strips of codes (tensor/kernels/kernels.h) of a weight. All codes of a storage are replaced by strips (strip_store.c), unless there
 * are panels in their place (i8_stored.c), which have the same groups of codes, further apart. Nothing holds a second copy: of a view, and
 * of codes in the block of their storage (1 KiB) or with many tails, strips are made for a product that needs them (blocks of
 * integers), in scratch memory; other products read such codes as they are.
 *
 * How values are found is kept with the storage, unless the codes are few. The other parts of a strip are read where the tensor has them. Another tensor of the same codes may have other ones, and zero points
 * may be written by a slice, which does not change the version of the codes' storage: what is kept has a stamp of what it was made from.
 */
#include "tensor/gemm/strips.h"

#include <string.h>

#include "tensor/closed.h"
#include "tensor/codec.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/strip_codes.h"
#include "tensor/gemm/strip_store.h"
#include "tensor/grid.h"
#include "tensor/ragged.h"
#include "tensor/scratch.h"
#include "tensor/storage.h"

#define KEPT 256 /* bytes of a `kept` without a table */
#define MANY 24  /* times what is kept: bytes of codes from which on it is, and a second product is waited for */
#define ALIGN 64

/* Where the storage of t has its codes, as s->codes and s->nr; false: as they are. */
static bool find_codes(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_strips *s)
{
	const uint8_t *stored = ql_strips_stored(t);
	struct ql_tensor b = *t; /* as the product has it: (k, n) */
	struct ql_gemm_i8_panels panels;

	b.shape[0] = t->shape[1];
	b.shape[1] = t->shape[0];
	b.stride[0] = t->stride[1];
	b.stride[1] = t->stride[0];
	s->nr = 0;
	s->codes = stored;
	if (stored || !ql_gemm_i8_stored(ctx, &b, &panels) || !panels.kernel || panels.kernel->nr % QL_STRIP)
		return stored;
	s->codes = panels.data;
	s->nr = panels.kernel->nr;
	return true;
}

/* ---- form ---- */

/* Whether strips can have the codes and scales of t, and their form. */
static bool form_of(const struct ql_tensor *t, struct ql_strips *s)
{
	const struct ql_qparams *q = t->q;
	bool codes = (q->scheme->affine || q->codes.grid || q->scheme->table_fill) && ql_dtypes[t->dtype].bits <= 8;
	bool blocks = q->block && q->block_axis == 1;

	*s = (struct ql_strips){.n = t->shape[0], .k = t->shape[1], .dtype = t->dtype};
	if (s->n == 0 || s->k == 0 || !codes || q->bits || !ql_tensor_is_contiguous(t) || ql_ragged_of(t->storage) ||
		(q->block ? !blocks || q->block % 8 : q->axis > 0))
		return false;
	s->form.bits = ql_strip_form_bits(t->dtype);
	s->form.block = blocks && q->block < s->k ? q->block : ql_ceil_div(s->k, 8) * 8;
	s->blocks = ql_ceil_div(s->k, s->form.block);
	s->bytes = ql_strip_bytes(t->dtype, s->k);
	return true;
}

/* What a block is made from besides codes. */
struct stamp {
	const void *scheme, *grid, *zero;
	uint64_t version; /* of zero */
	int64_t offset;
};

static struct stamp stamp_of(const struct ql_qparams *q)
{
	struct stamp s;

	memset(&s, 0, sizeof(s)); /* compared as bytes */
	s.scheme = q->scheme;
	s.grid = q->codes.grid;
	s.zero = q->zero_point ? q->zero_point->storage : NULL;
	s.version = q->zero_point ? q->zero_point->storage->version : 0;
	s.offset = q->zero_point ? q->zero_point->offset : 0;
	return s;
}

struct kept {
	struct stamp stamp;
	struct ql_strip form;
	const uint8_t *codes; /* in scratch memory; NULL: those of the storage */
	bool each;            /* strips have zero points */
	float value
		[]; /* of a scheme with a table, and of 4-bit integers with one zero point: looking 16 up is one instruction */
};
#define VALUES 256 /* numbers after a `kept`, 16 of 4 bits */
_Static_assert(sizeof(struct kept) + 16 * sizeof(float) <= KEPT, "16 numbers have room");

/* Unsigned zero points: one for all in kept->form.middle, or each. False: not in 0..255. */
static enum ql_status place_zeros(struct ql_ctx *ctx, const struct ql_tensor *t, struct kept *kept, bool *fit)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int32_t least = ql_strip_least(t->dtype), lo = least, hi = least;
	int64_t n = t->q->zero_point ? ql_tensor_nelem(t->q->zero_point) : 0;
	int32_t *zero = ql_scratch_array(ctx, n, sizeof(*zero));

	if (!zero && n)
		return QL_ERR_MEMORY;
	if (n)
		ql_qparams_zeros(t->q->zero_point, zero);
	for (int64_t i = 0; i < n; i++) {
		int32_t z = zero[i] + least;

		lo = i == 0 || z < lo ? z : lo;
		hi = i == 0 || z > hi ? z : hi;
	}
	ql_scratch_release(ctx, mark);
	kept->each = lo != hi;
	kept->form.middle = kept->each ? 0 : lo;
	*fit = lo >= 0 && hi <= 255;
	return QL_OK;
}

/* The zero points as bytes: where they are, or a copy. */
static enum ql_status read_zeros(struct ql_ctx *ctx, const struct ql_qparams *q, struct ql_strips *s)
{
	const struct ql_tensor *t = q->zero_point;
	int64_t n = ql_tensor_nelem(t);
	int32_t *wide;
	uint8_t *bytes;

	s->zero_step = q->block ? s->blocks : q->axis == 0;
	s->zero_add = (uint8_t)ql_strip_least(s->dtype);
	if (ql_dtypes[t->dtype].bits == 8 && t->storage->data && t->storage->device == &ql_device_cpu &&
		ql_tensor_is_contiguous(t)) {
		s->zero = (const uint8_t *)t->storage->data + t->offset;
		return QL_OK;
	}
	wide = ql_scratch_array(ctx, n, sizeof(*wide));
	bytes = ql_scratch_array(ctx, n, 1);
	if (!wide || !bytes)
		return QL_ERR_MEMORY;
	ql_qparams_zeros(t, wide);
	for (int64_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)wide[i];
	s->zero = bytes;
	return QL_OK;
}

/* ---- making and keeping ---- */

/* Bytes of a `kept`. */
static uint64_t kept_bytes(const struct ql_qparams *q, const struct ql_strips *s)
{
	return KEPT + (q->scheme->table_fill && s->form.bits == 8 ? VALUES * sizeof(float) : 0);
}

static const char maker = 's'; /* strips do not depend on the kernel */

static struct ql_derived *place_of(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_derived_key key = {.maker = &maker,
		.offset = t->offset,
		.dtype = t->dtype,
		.stride = {t->stride[0], t->stride[1]},
		.size = {t->shape[0], t->shape[1]}};

	return ql_storage_derived(ctx, t->storage, &key);
}

/* Whether the codes of s, which read 8 bits, are all finite numbers of the format. */
static bool all_finite(const struct ql_strips *s, const struct ql_minifloat *f)
{
	bool plain = ql_strip_is_plain(s->dtype), finite = true;
	_Alignas(ALIGN) uint8_t groups[QL_STRIP_DEPTH * QL_STRIP];

	for (int64_t i = 0; i < ql_ceil_div(s->n, QL_STRIP) && finite; i++)
		for (int64_t l = 0; l < s->k && finite; l += QL_STRIP_DEPTH) {
			const uint8_t *strip = s->codes + i * s->bytes;
			int64_t n = ql_min64(QL_STRIP_DEPTH, s->k - l);

			if (!plain)
				ql_strip_expand(s->variant, s->dtype, strip, l, l + n, groups);
			finite = ql_strip_all_finite(
				s->variant, f, plain ? strip + l * QL_STRIP : groups, ql_ceil_div(n, 4) * 4 * QL_STRIP);
		}
	return finite;
}

/* The values under a scale of 1, of a scheme whose values are this table's times the scale. */
static enum ql_status fill_table(struct ql_ctx *ctx, const struct ql_tensor *t, int n, float *value)
{
	struct ql_codes codes = t->q->codes;
	enum ql_status status = ql_codes_table(ctx, t->q->scheme, &codes);

	for (int32_t i = 0; i < n && !status; i++) {
		int32_t code = i - ql_strip_least(t->dtype);

		t->q->scheme->decode(&code, 1, 1, 0, &codes, value + i);
	}
	return status;
}

/* How the kernels find values; s has its codes. */
static enum ql_status place_values(
	struct ql_ctx *ctx, const struct ql_tensor *t, const struct ql_strips *s, struct kept *kept)
{
	struct ql_strip *form = &kept->form;
	const struct ql_qparams *q = t->q;
	const struct ql_minifloat *f = q->codes.grid ? q->codes.grid->minifloat : NULL;
	enum ql_status status = QL_OK;

	if (f && form->bits == 8 && all_finite(s, f))
		ql_strip_set_mini(form, f);
	if (q->scheme->table_fill)
		status = fill_table(ctx, t, form->bits == 4 ? 16 : VALUES, kept->value);
	else
		for (int i = 0; i < 16 && form->bits == 4; i++)
			kept->value[i] =
				ql_dtype_is_binary(t->dtype) ? (i == 1 ? 1.0f : -1.0f) : (float)(i - form->middle);
	if (form->bits == 8 && (q->codes.grid || q->scheme->table_fill))
		form->mirror = ql_strip_mirror(q->codes.grid ? q->codes.grid->value : kept->value);
	return status;
}

/* Gives s its codes: those in the place of t's, or else strips in scratch memory. */
static enum ql_status place_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_strips *s)
{
	uint8_t *strips;

	if (find_codes(ctx, t, s))
		return QL_OK;
	if (ql_strips_can_store(ctx, t))
		return ql_strips_store(ctx, t, &s->codes);
	s->codes = strips = ql_scratch_take(ctx, (uint64_t)ql_strips_bytes(t));
	return strips ? ql_strips_pack(ctx, t, strips) : QL_ERR_MEMORY;
}

/* With `place` to be kept there, else in scratch memory. *out stays NULL without memory, or where zero points do not fit. */
static enum ql_status make(
	struct ql_ctx *ctx, struct ql_tensor *t, struct ql_strips *s, struct ql_derived *place, const struct kept **out)
{
	struct kept one = {.form = s->form}, *kept = NULL;
	struct ql_strips unused;
	uint64_t bytes = kept_bytes(t->q, s);
	bool fit = false;
	enum ql_status status = place_zeros(ctx, t, &one, &fit);

	if (status || !fit)
		return status;
	status = place_codes(ctx, t, s);
	if (!status && s->codes)
		kept = place ? ql_alloc(ctx, bytes) : ql_scratch_take(ctx, bytes);
	if (!kept)
		return status;
	one.stamp = stamp_of(t->q);
	one.codes = find_codes(ctx, t, &unused) ? NULL : s->codes;
	*kept = one;
	status = place_values(ctx, t, s, kept);
	if (!status)
		*out = kept;
	if (place && status)
		ql_free(ctx, kept);
	else if (place)
		place->data = kept;
	return status;
}

static bool still_good(struct ql_ctx *ctx, const struct kept *kept, const struct ql_tensor *t)
{
	struct stamp now = stamp_of(t->q);
	struct ql_strips unused;

	return !memcmp(&kept->stamp, &now, sizeof(now)) && find_codes(ctx, t, &unused);
}

bool ql_strips_take(const struct ql_tensor *t)
{
	struct ql_strips unused;

	return t->q && t->rank == 2 && form_of(t, &unused);
}

/* Makes s, whose codes are kept, ready for reading. */
static enum ql_status open_scales(
	struct ql_ctx *ctx, const struct ql_tensor *lines, const struct kept *kept, struct ql_strips *s)
{
	const struct ql_qparams *q = lines->q;
	int64_t block = s->form.block;
	enum ql_status status = ql_strip_scales_open(ctx, q, q->scale, s->blocks, &s->scale);

	if (!status)
		status = ql_strip_scales_open(ctx, q, q->shift, s->blocks, &s->shift);
	if (!status && kept->each)
		status = read_zeros(ctx, q, s);
	s->form = kept->form;
	s->form.block = block;
	s->form.half = s->scale.kind == QL_SCALES_F16 && (!q->shift || s->shift.kind == QL_SCALES_F16);
	if (q->codes.grid)
		s->form.value = q->codes.grid->value;
	else if (q->scheme->table_fill || (s->form.bits == 4 && !q->shift && !s->zero))
		s->form.value = kept->value;
	return status;
}

/* What was or is now kept of `lines`; NULL: not yet. */
static enum ql_status keep_long(
	struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *s, const struct kept **kept)
{
	struct ql_derived *place = place_of(ctx, lines);

	if (place && place->data && !still_good(ctx, place->data, lines)) {
		ql_free(ctx, place->data);
		place->data = NULL;
	}
	if (place && !place->data && (at_once || place->asked))
		return make(ctx, lines, s, place, kept);
	*kept = place ? place->data : NULL;
	return QL_OK;
}

/* What strips of `lines` need besides codes, and out->codes; NULL: nothing. */
static enum ql_status keep(
	struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *out, const struct kept **kept)
{
	enum ql_status status;
	bool held;

	*kept = NULL;
	if (!form_of(lines, out))
		return QL_OK;
	out->variant = ctx->kernels->simd->variant;
	held = find_codes(ctx, lines, out) || ql_strips_can_store(ctx, lines);
	out->codes = NULL;
	out->nr = 0;
	if (!held && !at_once)
		return QL_OK;
	if (held && lines->storage->bytes >= MANY * kept_bytes(lines->q, out))
		status = keep_long(ctx, lines, at_once, out, kept);
	else
		status = make(ctx, lines, out, NULL, kept);
	out->codes = status || !*kept ? NULL : (*kept)->codes;
	if (*kept && !out->codes)
		find_codes(ctx, lines, out);
	return status;
}

enum ql_status ql_strips_keep(struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *out)
{
	const struct kept *kept;
	enum ql_status status = keep(ctx, lines, at_once, out, &kept);

	return kept ? open_scales(ctx, lines, kept, out) : status;
}

enum ql_status ql_strips_keep_codes(struct ql_ctx *ctx, struct ql_tensor *lines, struct ql_strips *out)
{
	const struct kept *unused;

	*out = (struct ql_strips){0};
	return ql_dtypes[lines->dtype].bits < 8 || ql_strips_stored(lines) ? keep(ctx, lines, false, out, &unused)
									   : QL_OK;
}

/* ---- reading ---- */

/* Bytes of the parts for `blocks` blocks, one after the other, each aligned as the first. */
static int64_t number_bytes(const struct ql_strips *s, int64_t blocks)
{
	return blocks * QL_STRIP * (s->form.half ? 2 : 4);
}

static int64_t aligned(int64_t bytes)
{
	return ql_ceil_div(bytes, ALIGN) * ALIGN;
}

uint64_t ql_strips_work(const struct ql_strips *s)
{
	int64_t codes = ql_ceil_div(s->k, QL_STRIP_CHUNK) * QL_STRIP_CHUNK * QL_STRIP / 8 * s->form.bits;

	return (uint64_t)(aligned(number_bytes(s, s->blocks)) * (s->shift.kind ? 2 : 1) +
			  aligned(s->blocks * QL_STRIP) + (ql_strip_is_plain(s->dtype) && !s->nr ? 0 : codes));
}

/* The groups from row `first` on. */
static const uint8_t *groups_of(const struct ql_strips *s, int64_t i, int64_t first, int64_t end, char *work)
{
	const uint8_t *strip = s->codes + i * s->bytes;
	int64_t from = 0, column = i * QL_STRIP;

	if (s->nr) {
		strip = s->codes + column / s->nr * (ql_ceil_div(s->k, 4) * 4 * s->nr) + column % s->nr * 4;
		ql_strip_from_panel(s->variant, strip, 4 * s->nr, first, end, (uint8_t *)work);
		return (uint8_t *)work;
	}
	if (!ql_strip_is_plain(s->dtype)) {
		from = first / QL_STRIP_CHUNK * QL_STRIP_CHUNK;
		ql_strip_expand(s->variant, s->dtype, strip, from, end, (uint8_t *)work);
		strip = (const uint8_t *)work;
	}
	return strip + (first - from) / 8 * QL_STRIP * s->form.bits;
}

/* All of a strip but its codes, which may take what follows *work. */
static struct ql_strip read_numbers(const struct ql_strips *s, int64_t i, int64_t block, int64_t blocks, char **work)
{
	struct ql_strip strip = s->form;
	int64_t bytes = aligned(number_bytes(s, blocks)), row = i * QL_STRIP;
	int rows = (int)ql_min64(QL_STRIP, s->n - row);

	strip.scale = *work;
	ql_strip_scales_read(&s->scale, s->variant, strip.half, row, rows, block, blocks, *work);
	*work += bytes;
	if (s->shift.kind) {
		strip.shift = *work;
		ql_strip_scales_read(&s->shift, s->variant, strip.half, row, rows, block, blocks, *work);
		*work += bytes;
	}
	if (s->zero) {
		strip.zero = (uint8_t *)*work;
		ql_strip_bytes_read(
			s->zero + row * s->zero_step, s->zero_step, s->zero_add, rows, block, blocks, (uint8_t *)*work);
		*work += aligned(blocks * QL_STRIP);
	}
	return strip;
}

struct ql_strip ql_strips_read(const struct ql_strips *s, int64_t i, int64_t l, int64_t end, char *work, int64_t *first)
{
	int64_t block = l / s->form.block, blocks = (end - 1) / s->form.block + 1 - block;
	struct ql_strip strip = read_numbers(s, i, block, blocks, &work);

	*first = blocks == 1 ? l : block * strip.block; /* a block begins at row 0 */
	strip.codes = groups_of(s, i, *first, end, work);
	return strip;
}

struct ql_strip ql_strips_read_held(const struct ql_strips *s, int64_t i, char *work)
{
	int bits = ql_dtypes[s->dtype].bits;
	bool held = !s->nr && !ql_strip_is_plain(s->dtype) && bits < 7 && (!s->form.look || bits == 6);
	struct ql_strip strip = read_numbers(s, i, 0, s->blocks, &work);

	strip.held = held ? bits : 0;
	strip.codes = held ? s->codes + i * s->bytes : groups_of(s, i, 0, s->k, work);
	return strip;
}

void ql_strips_panels(const struct ql_strips *s, int64_t first, int64_t columns, int nr, uint8_t flip, uint8_t *panels)
{
	int64_t pitch = ql_ceil_div(s->k, 4) * 4 * nr, whole = columns / nr * nr;

	if (whole < columns)
		memset(panels + whole / nr * pitch, 0, (size_t)pitch);
	for (int64_t c = 0; c < columns; c += QL_STRIP)
		ql_strip_panel(s->variant, s->dtype, s->codes + (first + c) / QL_STRIP * s->bytes, s->k, flip, 4 * nr,
			panels + c / nr * pitch + c % nr * 4);
}
