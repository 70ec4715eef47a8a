/* SPDX-License-Identifier: MIT
 * Strips of codes (tensor/kernels/kernels.h): codes of up to 4 bits take 4, others 8, as unsigned numbers; those of a signed dtype
 * have its least code subtracted. Scales are float16 where all have such values, else float32. They may be written by a slice, which
 * does not change the version of the codes' storage, so that the kept block has a stamp of all that it was made from besides codes.
 *
 * Strips of all codes of a storage take their place (tensor/closed.h): the kept block then has scales only. Those of a view, and of
 * codes in whose place there are panels (i8_stored.c) already, are in the kept block.
 */
#include "tensor/gemm/strips.h"

#include <math.h>
#include <string.h>

#include "tensor/codes.h"
#include "tensor/closed.h"
#include "tensor/grid.h"
#include "tensor/parallel.h"
#include "tensor/ragged.h"
#include "tensor/scratch.h"
#include "tensor/storage.h"

#define PIECE 256   /* codes of a row that are unpacked to bytes at a time */
#define HEAD 384    /* keeps what follows aligned */
#define LEAST 4096  /* bytes; smaller codes stay */
#define PACK_NS 0.6 /* per code */

static int strip_bits(unsigned dtype)
{
	return ql_dtypes[dtype].bits <= 4 ? 4 : 8;
}

static bool is_signed(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_INT;
}

/* Less its least number a code of b bits is the code with its highest bit inverted. */
static uint64_t flip_of(unsigned dtype)
{
	return is_signed(dtype) ? 0x0101010101010101u << (ql_dtypes[dtype].bits - 1) : 0;
}

static uint64_t mask_of(unsigned dtype)
{
	return 0x0101010101010101u * ((1u << ql_dtypes[dtype].bits) - 1);
}

static void get(unsigned dtype, const void *rows, int64_t at, int64_t n, int8_t *codes)
{
	if (ql_dtypes[dtype].bits == 8)
		memcpy(codes, (const int8_t *)rows + at, (size_t)n);
	else
		ql_codes_get(dtype, rows, at, n, codes);
}

static void put(unsigned dtype, void *rows, int64_t at, int64_t n, const uint8_t *codes)
{
	if (ql_dtypes[dtype].bits == 8)
		memcpy((uint8_t *)rows + at, codes, (size_t)n);
	else
		ql_codes_put(dtype, rows, at, n, codes);
}

/* Eight codes of a column to and from its groups, of which the first is at `to`. */
static void put_eight(int bits, uint64_t codes, uint8_t *to)
{
	uint32_t low = (uint32_t)codes, high = (uint32_t)(codes >> 32);

	if (bits == 4) {
		low |= high << 4;
		memcpy(to, &low, 4);
		return;
	}
	memcpy(to, &low, 4);
	memcpy(to + 64, &high, 4);
}

static uint64_t get_eight(int bits, const uint8_t *from)
{
	uint32_t low, high;

	memcpy(&low, from, 4);
	if (bits == 4)
		return (low & 0x0f0f0f0fu) | (uint64_t)(low >> 4 & 0x0f0f0f0fu) << 32;
	memcpy(&high, from + 64, 4);
	return low | (uint64_t)high << 32;
}

/* Packs codes of `columns` <= 16 rows, `pitch` elements apart from element `at` on, k codes each. Columns and k that are missing have
 * the code 0 of the strip. */
static void pack(unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t k, uint8_t *strip)
{
	int bits = strip_bits(dtype);
	uint64_t flip = flip_of(dtype), mask = mask_of(dtype), x;
	int8_t codes[PIECE];

	memset(strip, 0, (size_t)(ql_ceil_div(k, 8) * QL_STRIP * bits));
	for (int c = 0; c < columns; c++)
		for (int64_t l = 0; l < k; l += PIECE) {
			int64_t n = ql_min64(PIECE, k - l);
			uint8_t *to = strip + l / 8 * QL_STRIP * bits + 4 * c;

			get(dtype, rows, at + c * pitch + l, n, codes);
			for (int64_t i = 0; i < n; i += 8, to += QL_STRIP * bits) {
				x = flip; /* becomes 0 */
				memcpy(&x, codes + i, (size_t)ql_min64(8, n - i));
				put_eight(bits, (x ^ flip) & mask, to);
			}
		}
}

/* The way back. */
static void unpack(unsigned dtype, const uint8_t *strip, int columns, int64_t k, void *rows, int64_t at, int64_t pitch)
{
	int bits = strip_bits(dtype);
	uint64_t flip = flip_of(dtype), x;
	uint8_t codes[PIECE];

	for (int c = 0; c < columns; c++)
		for (int64_t l = 0; l < k; l += PIECE) {
			int64_t n = ql_min64(PIECE, k - l);
			const uint8_t *from = strip + l / 8 * QL_STRIP * bits + 4 * c;

			for (int64_t i = 0; i < n; i += 8, from += QL_STRIP * bits) {
				x = get_eight(bits, from) ^ flip;
				memcpy(codes + i, &x, 8);
			}
			put(dtype, rows, at + c * pitch + l, n, codes);
		}
}

/* ---- in the place of codes ---- */

struct stored {
	struct ql_closed base;
	struct ql_strips strips; /* without scales */
};

_Static_assert(sizeof(struct stored) <= HEAD, "the description has room in front");

static int64_t get_one(const struct ql_closed *c, int64_t at)
{
	const struct ql_strips *s = &((const struct stored *)c)->strips;
	int64_t row = at / s->k, l = at % s->k;
	const uint8_t *group = s->codes + row / QL_STRIP * s->bytes + l / 8 * QL_STRIP * s->form.bits;
	int64_t least = is_signed(c->dtype) ? (int64_t)1 << (ql_dtypes[c->dtype].bits - 1) : 0;

	return (int64_t)(get_eight(s->form.bits, group + 4 * (row % QL_STRIP)) >> l % 8 * 8 & 0xff) - least;
}

struct unpacking {
	const struct stored *from;
	void *dense;
};

static void unpack_body(void *arg, int64_t begin, int64_t end)
{
	const struct unpacking *u = arg;
	const struct ql_strips *s = &u->from->strips;
	unsigned dtype = u->from->base.dtype;

	for (int64_t i = begin; i < end; i++)
		unpack(dtype, s->codes + i * s->bytes, (int)ql_min64(QL_STRIP, s->n - i * QL_STRIP), s->k, u->dense,
			i * QL_STRIP * s->k, s->k);
}

static enum ql_status unpack_all(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	struct unpacking u = {(const struct stored *)c, dense};
	const struct ql_strips *s = &u.from->strips;
	bool before = ctx->finishing;
	enum ql_status status;

	ctx->finishing = true; /* not interrupted half way */
	status = ql_parallel_for(
		ctx, ql_ceil_div(s->n, QL_STRIP), 1, (int64_t)(PACK_NS * (double)c->codes), unpack_body, &u);
	ctx->finishing = before;
	return status;
}

static void drop(struct ql_ctx *ctx, struct ql_closed *c)
{
	ql_free(ctx, c);
}

static const struct ql_closed_kind kind = {.unpack = unpack_all, .get = get_one, .free = drop};

/* The strips that t's storage holds, if they are those of t; else NULL. While it is open its codes may be written. */
static const struct stored *stored_of(const struct ql_tensor *t)
{
	const struct stored *s = (const struct stored *)t->storage->closed;

	return ql_is_closed(t) && s->base.kind == &kind && !t->offset && s->base.dtype == t->dtype &&
			       s->strips.n == t->shape[0] && s->strips.k == t->shape[1]
		       ? s
		       : NULL;
}

/* Only the outermost op may move the codes of its operand. Rows that end within their last byte may be those of a view, which cuts
 * longer ones there. */
static bool can_store(const struct ql_ctx *ctx, const struct ql_tensor *t)
{
	return ctx->depth == 1 && t->storage->bytes >= LEAST && ql_dtype_pitch(t->dtype, t->shape[1]) == t->shape[1] &&
	       ql_can_close(t);
}

/* ---- scales ---- */

/* All that strips are made from besides the codes. */
struct stamp {
	const void *scheme, *grid;
	int64_t block, axis;
	uint64_t of[6], version[6];
};

static void add_to(struct stamp *s, int *n, const struct ql_tensor *t)
{
	for (; t && *n < 6; t = t->q ? t->q->scale : NULL) {
		s->of[*n] = (uint64_t)(uintptr_t)t->storage;
		s->version[(*n)++] = t->storage->version;
	}
}

static struct stamp stamp_of(const struct ql_qparams *q)
{
	struct stamp s;
	int n = 0;

	memset(&s, 0, sizeof(s));
	s.scheme = q->scheme;
	s.grid = q->codes.grid;
	s.block = q->block;
	s.axis = q->axis;
	add_to(&s, &n, q->scale);
	add_to(&s, &n, q->shift);
	add_to(&s, &n, q->zero_point);
	return s;
}

struct kept {
	struct ql_strips strips;
	struct stamp stamp;
	float value[16]; /* of 4-bit integers with one zero point: looking them up is one instruction */
};
_Static_assert(sizeof(struct kept) <= HEAD, "the description has room in front");

/* Whether scales with levels have more of them than a stamp. */
static bool is_deep(const struct ql_tensor *t)
{
	return t && t->q && (t->q->shift || t->q->zero_point || t->q->scale->q);
}

/* Whether strips can have the codes and scales of t, and their form. */
static bool form_of(const struct ql_tensor *t, struct ql_strips *s)
{
	const struct ql_qparams *q = t->q;
	unsigned bits = ql_dtypes[t->dtype].bits;
	bool codes = (q->scheme->affine || q->codes.grid) && bits <= 8 && !ql_dtype_is_binary(t->dtype);
	bool blocks = q->block && q->block_axis == 1;

	*s = (struct ql_strips){.n = t->shape[0], .k = t->shape[1]};
	if (s->n == 0 || s->k == 0 || !codes || q->bits || is_deep(q->scale) || is_deep(q->shift) ||
		!ql_tensor_is_contiguous(t) || ql_ragged_of(t->storage) ||
		(q->block ? !blocks || q->block % 8 : q->axis > 0))
		return false;
	s->form.bits = strip_bits(t->dtype);
	s->form.block = blocks && q->block < s->k ? q->block : ql_ceil_div(s->k, 8) * 8;
	s->blocks = ql_ceil_div(s->k, s->form.block);
	s->bytes = ql_ceil_div(s->k, 8) * QL_STRIP * s->form.bits;
	return true;
}

struct numbers {
	const struct ql_qparams *q;
	float *scale, *shift;
	int32_t *zero;
};

static enum ql_status read_numbers(struct ql_ctx *ctx, const struct ql_qparams *q, struct numbers *x)
{
	int64_t n = ql_tensor_nelem(q->scale);
	enum ql_status status;

	*x = (struct numbers){.q = q, .scale = ql_scratch_array(ctx, n, sizeof(*x->scale))};
	if (q->shift)
		x->shift = ql_scratch_array(ctx, n, sizeof(*x->shift));
	if (q->zero_point)
		x->zero = ql_scratch_array(ctx, n, sizeof(*x->zero));
	if (!x->scale || (q->shift && !x->shift) || (q->zero_point && !x->zero))
		return QL_ERR_MEMORY;
	status = ql_qparams_scales(ctx, q->scale, x->scale);
	if (!status && q->shift)
		status = ql_qparams_scales(ctx, q->shift, x->shift);
	if (!status && q->zero_point)
		ql_qparams_zeros(q->zero_point, x->zero);
	return status;
}

/* Zero points in codes of strips: one for all in s->form.middle, or *each. False: not in 0..255. */
static bool place_zeros(unsigned dtype, struct numbers *x, int64_t n, struct ql_strips *s, bool *each)
{
	int32_t least = is_signed(dtype) ? 1 << (ql_dtypes[dtype].bits - 1) : 0;

	*each = false;
	s->form.middle = least + (x->zero && n ? x->zero[0] : 0);
	for (int64_t i = 0; x->zero && i < n; i++) {
		x->zero[i] += least;
		if (x->zero[i] < 0 || x->zero[i] > 255)
			return false;
		*each = *each || x->zero[i] != s->form.middle;
	}
	if (*each)
		s->form.middle = 0;
	return s->form.middle >= 0 && s->form.middle <= 255;
}

/* Whether n numbers are float16, so that they take half of the memory. */
static bool all_half(const float *x, int64_t n)
{
	for (int64_t i = 0; x && i < n; i++)
		if (ql_f16_to_f32(ql_f32_to_f16(x[i])) != x[i])
			return false;
	return true;
}

static void put_number(const struct ql_strips *s, char *to, int64_t i, float x)
{
	if (s->form.half)
		((uint16_t *)(void *)to)[i] = ql_f32_to_f16(x);
	else
		((float *)(void *)to)[i] = x;
}

static void put_numbers(const struct ql_strips *s, const struct numbers *x)
{
	for (int64_t j = 0; j < ql_ceil_div(s->n, QL_STRIP) * QL_STRIP; j++)
		for (int64_t b = 0; b < s->blocks; b++) {
			int64_t to = (j / QL_STRIP * s->blocks + b) * QL_STRIP + j % QL_STRIP;
			int64_t from = x->q->block ? j * s->blocks + b : x->q->axis == 0 ? j : 0;
			bool there = j < s->n;

			put_number(s, s->scale, to, there ? x->scale[from] : 0);
			if (s->shift)
				put_number(s, s->shift, to, there ? x->shift[from] : 0);
			if (s->zero)
				s->zero[to] = there ? (uint8_t)x->zero[from] : 0;
		}
}

/* ---- making and keeping ---- */

struct packing {
	struct ql_strips *s;
	unsigned dtype;
	const void *rows;
	int64_t at, pitch;
};

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;

	for (int64_t i = begin; i < end; i++)
		pack(p->dtype, p->rows, p->at + i * QL_STRIP * p->pitch, p->pitch,
			(int)ql_min64(QL_STRIP, p->s->n - i * QL_STRIP), p->s->k, p->s->codes + i * p->s->bytes);
}

static enum ql_status pack_all(struct ql_ctx *ctx, struct ql_storage *codes, struct packing *p)
{
	double numbers = (double)(p->s->n * p->s->k);
	enum ql_status status =
		ql_closed_open(ctx, codes); /* products of integers may have put panels in their place */

	if (status)
		return status;
	p->rows = codes->data;
	status = ql_parallel_for(ctx, ql_ceil_div(p->s->n, QL_STRIP), 1, (int64_t)(PACK_NS * numbers), pack_body, p);
	ql_closed_close(ctx, codes);
	return status;
}

/* Puts strips in the place of the codes of t; s->codes stays NULL without memory for them. */
static enum ql_status store(struct ql_ctx *ctx, struct ql_tensor *t, struct packing *p)
{
	struct ql_strips *s = p->s;
	uint64_t bytes = HEAD + (uint64_t)(ql_ceil_div(s->n, QL_STRIP) * s->bytes); /* size: see take_block */
	struct stored *stored = ql_alloc(ctx, bytes);
	enum ql_status status;

	if (!stored)
		return QL_OK;
	s->codes = (uint8_t *)stored + HEAD;
	status = pack_all(ctx, t->storage, p);
	if (status) {
		ql_free(ctx, stored);
		return status;
	}
	*stored = (struct stored){.base = {.kind = &kind,
					  .dtype = t->dtype,
					  .codes = s->n * s->k,
					  .dense = t->storage->bytes,
					  .bytes = bytes},
		.strips = {.n = s->n, .k = s->k, .form = {.bits = s->form.bits}, .bytes = s->bytes, .codes = s->codes}};
	ql_storage_close(ctx, t->storage, &stored->base);
	return QL_OK;
}

/* Gives one block with all parts, or NULL in *block when out of memory; without codes where s->codes will be elsewhere. */
static void take_block(struct ql_ctx *ctx, struct ql_strips *s, bool with_codes, bool shift, bool zeros, char **block)
{
	uint64_t strips = (uint64_t)ql_ceil_div(s->n, QL_STRIP), each, scales, codes, all, both;

	*block = NULL;
	if (!ql_size_mul(strips, (uint64_t)s->bytes, &codes) || !ql_size_mul(strips, (uint64_t)s->blocks, &each) ||
		!ql_size_mul(each, QL_STRIP, &each) || !ql_size_mul(each, s->form.half ? 2 : 4, &scales) ||
		!ql_size_mul(scales, shift ? 2 : 1, &both))
		return;
	codes = with_codes ? codes : 0;
	if (!ql_size_add(HEAD, codes, &all) || !ql_size_add(all, both, &all) ||
		!ql_size_add(all, zeros ? each : 0, &all))
		return;
	*block = ql_alloc(ctx, all);
	if (!*block)
		return;
	s->codes = with_codes ? (uint8_t *)*block + HEAD : NULL;
	s->scale = *block + HEAD + codes;
	s->shift = shift ? s->scale + scales : NULL;
	s->zero = zeros ? (uint8_t *)s->scale + both : NULL;
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

/* Whether codes of 8 bits are all finite numbers of the format. */
static bool all_finite(const struct ql_minifloat *f, const struct ql_strips *s)
{
	int64_t bytes = ql_ceil_div(s->n, QL_STRIP) * s->bytes;
	uint8_t mask = (uint8_t)((1u << (f->exponent + f->mantissa)) - 1), most = 0;

	for (int64_t i = 0; i < bytes; i++) {
		uint8_t size = s->codes[i] & mask;

		most = size > most ? size : most;
	}
	return most <= f->most;
}

static void place_values(const struct ql_qparams *q, struct kept *kept)
{
	struct ql_strip *form = &kept->strips.form;
	const struct ql_minifloat *f = q->codes.grid ? q->codes.grid->minifloat : NULL;

	for (int i = 0; i < 16; i++)
		kept->value[i] = (float)(i - form->middle);
	if (f && form->bits == 8 && all_finite(f, &kept->strips)) {
		form->mini = true;
		form->sign = (uint8_t)(f->exponent + f->mantissa);
		form->mantissa = f->mantissa;
		form->unit = ldexpf(1, 127 - f->bias);
	}
}

/* Gives s its codes: in the block that was taken, or of the storage, which may hold them already. */
static enum ql_status place_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_strips *s)
{
	struct packing p = {.s = s, .dtype = t->dtype, .at = t->offset, .pitch = ql_dtype_pitch(t->dtype, t->shape[1])};
	const struct stored *stored = stored_of(t);

	if (!stored)
		return s->codes ? pack_all(ctx, t->storage, &p) : store(ctx, t, &p);
	s->codes = stored->strips.codes;
	return QL_OK;
}

static enum ql_status make(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_strips *s, struct ql_derived *place)
{
	int64_t n = ql_tensor_nelem(t->q->scale);
	struct kept *kept;
	struct numbers x;
	bool zeros;
	char *block;
	enum ql_status status = read_numbers(ctx, t->q, &x);

	if (status || !place_zeros(t->dtype, &x, n, s, &zeros))
		return status;
	s->form.half = all_half(x.scale, n) && all_half(x.shift, n);
	take_block(ctx, s, !stored_of(t) && !can_store(ctx, t), t->q->shift != NULL, zeros, &block);
	if (!block)
		return QL_OK;
	put_numbers(s, &x);
	status = place_codes(ctx, t, s);
	if (status || !s->codes) {
		ql_free(ctx, block);
		s->codes = NULL;
		return status;
	}
	kept = (struct kept *)(void *)block;
	*kept = (struct kept){*s, stamp_of(t->q), {0}};
	place_values(t->q, kept);
	*s = kept->strips;
	place->data = block;
	return QL_OK;
}

/* Another tensor of the same codes may have other scales, and its scales may have been written. */
static bool still_good(const struct kept *kept, const struct ql_tensor *t)
{
	struct stamp now = stamp_of(t->q);

	return !memcmp(&kept->stamp, &now, sizeof(now));
}

bool ql_strips_take(const struct ql_tensor *t)
{
	struct ql_strips unused;

	return t->q && t->rank == 2 && form_of(t, &unused);
}

enum ql_status ql_strips_keep(struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_derived *place;
	enum ql_status status = QL_OK;

	if (!form_of(lines, out))
		return QL_OK;
	place = place_of(ctx, lines);
	if (place && place->data && !still_good(place->data, lines)) {
		ql_free(ctx, place->data);
		place->data = NULL;
	}
	if (place && place->data)
		*out = ((const struct kept *)place->data)->strips;
	else if (place && (at_once || place->asked))
		status = make(ctx, lines, out, place);
	if (out->codes && lines->q->codes.grid)
		out->form.value = lines->q->codes.grid->value;
	else if (out->codes && out->form.bits == 4 && !out->shift && !out->zero)
		out->form.value = ((const struct kept *)place->data)->value;
	ql_scratch_release(ctx, mark);
	return status;
}

struct ql_strip ql_strips_at(const struct ql_strips *s, int64_t i)
{
	struct ql_strip strip = s->form;
	int64_t at = i * QL_STRIP * s->blocks;

	strip.codes = s->codes + i * s->bytes;
	strip.scale = s->scale + at * (s->form.half ? 2 : 4);
	strip.shift = s->shift ? s->shift + at * (s->form.half ? 2 : 4) : NULL;
	strip.zero = s->zero ? s->zero + at : NULL;
	return strip;
}
