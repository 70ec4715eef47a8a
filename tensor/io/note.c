/* SPDX-License-Identifier: MIT
 * Quantization parameters as text, and parsing them with checks that prevent a crafted file from passing values to
 * a kernel that no quantizer produces.
 */
#include "tensor/io/note.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/grain.h"
#include "tensor/op.h"

#define PIECE 512 /* codes checked at a time */
#define WORD_MAX 256

/* Words in the order of writing; bit i of the set of seen words is word i. */
enum word { DTYPE, SHAPE, SCHEME, BITS, LO, HI, OCTAVES, AXIS, BLOCK, BLOCK_AXIS, FROM, NAN_COUNT, INF_COUNT, WORDS };

static const char *const names[WORDS] = {
	"dtype", "shape", "scheme", "bits", "lo", "hi", "octaves", "axis", "block", "block_axis", "from", "nan", "inf"};

#define PLAIN_WORDS (1u << DTYPE | 1u << SHAPE)
#define ALL_WORDS ((1u << WORDS) - 1u)

bool ql_note_needed(const struct ql_tensor *t)
{
	return t->q || ql_dtype_is_packed(t->dtype);
}

void ql_note_write(const struct ql_tensor *t, struct ql_text *out)
{
	const struct ql_qparams *q = t->q;

	ql_text_add(out, "dtype=%s shape=(", ql_dtype_name(t->dtype));
	for (int d = 0; d < t->rank; d++)
		ql_text_add(out, d ? ",%lld" : "%lld", (long long)t->shape[d]);
	ql_text_add(out, ")");
	if (!q)
		return;
	ql_text_add(out, " scheme=%s bits=%d lo=%d hi=%d octaves=%.9g axis=%d block=%d block_axis=%d",
		q->scheme->doc.name, q->codes.bits, q->codes.lo, q->codes.hi, (double)q->codes.octaves, q->axis,
		q->block, q->block_axis);
	ql_text_add(out, " from=%s nan=%lld inf=%lld", ql_dtype_name(q->from), (long long)q->nan_count,
		(long long)q->inf_count);
}

static enum ql_status bad_word(struct ql_ctx *ctx, const char *wanted, const char *word)
{
	return ql_fail(ctx, QL_ERR_FORMAT, "quantization note: wanted %s, got '%.60s'", wanted, word);
}

static enum ql_status read_int(struct ql_ctx *ctx, const char *text, int64_t lo, int64_t hi, int64_t *out)
{
	char wanted[80], *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	if (end != text && !*end && !errno && *out >= lo && *out <= hi)
		return QL_OK;
	snprintf(wanted, sizeof(wanted), "a whole number from %lld to %lld", (long long)lo, (long long)hi);
	return bad_word(ctx, wanted, text);
}

static enum ql_status read_shape(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	const char *p = text;
	char *end;

	errno = 0; /* errno may hold an older error if no size is parsed */
	if (*p++ != '(')
		return bad_word(ctx, "sizes in parentheses", text);
	while (*p >= '0' && *p <= '9' && note->rank < QL_MAX_RANK) {
		note->shape[note->rank++] = strtoll(p, &end, 10);
		p = end;
		if (errno || *p != ',')
			break;
		p++;
	}
	if (errno || strcmp(p, ")") || p[-1] == ',')
		return bad_word(ctx, "up to 8 sizes in parentheses", text);
	return QL_OK;
}

static enum ql_status read_dtype(struct ql_ctx *ctx, const char *text, unsigned *out)
{
	int dtype = ql_dtype_by_name(text);

	if (dtype < 0)
		return bad_word(ctx, "a dtype", text);
	*out = (unsigned)dtype;
	return QL_OK;
}

static enum ql_status read_scheme(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	const struct ql_scheme *(*find)(const char *) = ctx->quant ? ctx->quant->scheme : NULL;

	note->q.scheme = find ? find(text) : NULL;
	return note->q.scheme ? QL_OK : bad_word(ctx, "a known quantization scheme", text);
}

static enum ql_status read_octaves(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	char *end;

	note->q.codes.octaves = strtof(text, &end);
	if (end == text || *end || !(note->q.codes.octaves >= 0 && note->q.codes.octaves <= 4096))
		return bad_word(ctx, "octaves from 0 to 4096", text);
	return QL_OK;
}

static enum ql_status read_word(struct ql_ctx *ctx, enum word word, const char *text, struct ql_note *note)
{
	struct ql_qparams *q = &note->q;
	enum ql_status status = QL_OK;
	unsigned dtype = 0;
	int64_t n = 0;

	switch (word) {
	case DTYPE: return read_dtype(ctx, text, &note->dtype);
	case SHAPE: return read_shape(ctx, text, note);
	case SCHEME: return read_scheme(ctx, text, note);
	case OCTAVES: return read_octaves(ctx, text, note);
	case FROM:
		status = read_dtype(ctx, text, &dtype);
		q->from = (uint8_t)dtype;
		return status;
	case BITS:
		status = read_int(ctx, text, 1, 16, &n);
		q->codes.bits = (uint8_t)n;
		return status;
	case LO:
		status = read_int(ctx, text, INT32_MIN, INT32_MAX, &n);
		q->codes.lo = (int32_t)n;
		return status;
	case HI:
		status = read_int(ctx, text, INT32_MIN, INT32_MAX, &n);
		q->codes.hi = (int32_t)n;
		return status;
	case AXIS:
		status = read_int(ctx, text, -1, QL_MAX_RANK - 1, &n);
		q->axis = (int8_t)n;
		return status;
	case BLOCK:
		status = read_int(ctx, text, 0, INT32_MAX, &n);
		q->block = (int32_t)n;
		return status;
	case BLOCK_AXIS:
		status = read_int(ctx, text, -1, QL_MAX_RANK - 1, &n);
		q->block_axis = (int8_t)n;
		return status;
	case NAN_COUNT: return read_int(ctx, text, 0, INT64_MAX, &q->nan_count);
	case INF_COUNT: return read_int(ctx, text, 0, INT64_MAX, &q->inf_count);
	case WORDS: break;
	}
	return QL_OK;
}

static int word_of(const char *name)
{
	for (int i = 0; i < WORDS; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* The next "name=value": copies both to `word`, the name zero-terminated, and returns the value. NULL: none. */
static char *split(char word[WORD_MAX], const char **text)
{
	size_t n = strcspn(*text, " ");
	char *equals;

	if (n == 0 || n >= WORD_MAX)
		return NULL;
	memcpy(word, *text, n);
	word[n] = '\0';
	*text += n + ((*text)[n] == ' ');
	equals = strchr(word, '=');
	if (!equals)
		return NULL;
	*equals = '\0';
	return equals + 1;
}

/* The range must be one that the scheme produces: decoders index tables of its length. */
static bool is_range(const struct ql_note *note)
{
	const struct ql_codes *codes = &note->q.codes;

	for (int wide = 0; wide < 2; wide++) {
		struct ql_codes range = *codes;

		note->q.scheme->range(note->dtype, wide, &range);
		if (range.lo == codes->lo && range.hi == codes->hi)
			return true;
	}
	return false;
}

/* Checks the range of the codes and the granularity against dtype and shape. */
static enum ql_status check_note(struct ql_ctx *ctx, const struct ql_note *note)
{
	const struct ql_dtype_info *d = &ql_dtypes[note->dtype];
	const struct ql_qparams *q = &note->q;
	bool fits = q->block ? q->axis < 0 && q->block_axis >= 0 && q->block_axis < note->rank
			     : q->block_axis < 0 && q->axis < note->rank;

	if (!q->scheme->accepts(note->dtype))
		return ql_fail(ctx, QL_ERR_FORMAT, "quantization note: wanted a dtype that the scheme %s has, got %s",
			q->scheme->doc.name, d->name);
	if (q->codes.bits > d->bits || (q->codes.bits < 2 && d->bits > 1) || !is_range(note))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted the codes of scheme %s in %s, got %d bits from %d to %d",
			q->scheme->doc.name, d->name, q->codes.bits, q->codes.lo, q->codes.hi);
	if (!fits)
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted an axis below %d, got axis %d, block %d along %d", note->rank,
			q->axis, q->block, q->block_axis);
	return QL_OK;
}

enum ql_status ql_note_read(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	unsigned seen = 0;
	char name[WORD_MAX], *value;
	enum ql_status status = QL_OK;
	int word;

	*note = (struct ql_note){0};
	while (!status && *text) {
		value = split(name, &text);
		word = value ? word_of(name) : -1;
		if (word < 0)
			return bad_word(
				ctx, "known words name=value (a newer Quoll may have written it)", value ? name : text);
		if (seen & 1u << word)
			return bad_word(ctx, "every word once", name);
		seen |= 1u << word;
		status = read_word(ctx, (enum word)word, value, note);
	}
	if (!status && seen != PLAIN_WORDS && seen != ALL_WORDS)
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted dtype and shape, or all 13 words, one is missing");
	note->quantized = seen == ALL_WORDS;
	return status || !note->quantized ? status : check_note(ctx, note);
}

/* Binary has scale 0 if all values were 0. */
static enum ql_status check_values(struct ql_ctx *ctx, const struct ql_tensor *scale, bool zero_allowed)
{
	int64_t total = ql_tensor_nelem(scale), n;
	float value[PIECE];

	for (int64_t begin = 0; begin < total; begin += n) {
		n = ql_min64(PIECE, total - begin);
		ql_dtypes[scale->dtype].to_f32(scale->storage->data, begin, 1, n, value);
		for (int64_t i = 0; i < n; i++)
			if (!isfinite(value[i]) || value[i] < 0 || (value[i] == 0 && !zero_allowed))
				return ql_fail(ctx, QL_ERR_FORMAT, "scale: wanted finite numbers above 0, got %g",
					(double)value[i]);
	}
	return QL_OK;
}

static enum ql_status check_scale(struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale)
{
	const struct ql_qparams *q = &note->q;
	struct ql_tensor wanted = {0};
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	wanted.rank = (uint8_t)ql_grain_shape(note->rank, note->shape, q->axis, q->block_axis, q->block, wanted.shape);
	if (!ql_tensor_same_shape(scale, &wanted))
		return ql_fail(ctx, QL_ERR_FORMAT, "scale: wanted shape %s, got %s",
			ql_shape_text(wanted.rank, wanted.shape, a), ql_shape_text(scale->rank, scale->shape, b));
	if (scale->dtype != QL_float32 && !(scale->dtype == QL_float16 && q->block))
		return ql_fail(ctx, QL_ERR_FORMAT, "scale: wanted float32%s, got %s", q->block ? " or float16" : "",
			ql_dtype_name(scale->dtype));
	return check_values(ctx, scale, ql_dtype_is_binary(note->dtype));
}

/* Checks integers of a contiguous tensor against a range; skipped when it covers the dtype. */
static enum ql_status check_range(
	struct ql_ctx *ctx, const char *what, int64_t lo, int64_t hi, const struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1, rows = row ? ql_tensor_nelem(t) / row : 0;
	int64_t pitch = t->rank > 1 ? t->stride[t->rank - 2] : row, value[PIECE], n;

	if (lo <= d->lo && hi >= d->hi)
		return QL_OK;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t begin = 0; begin < row; begin += n) {
			n = ql_min64(PIECE, row - begin);
			d->to_i64(t->storage->data, r * pitch + begin, 1, n, value);
			for (int64_t i = 0; i < n; i++)
				if (value[i] < lo || value[i] > hi)
					return ql_fail(ctx, QL_ERR_FORMAT, "%s: wanted %lld to %lld, got %lld", what,
						(long long)lo, (long long)hi, (long long)value[i]);
		}
	return QL_OK;
}

static enum ql_status check_zero(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale, const struct ql_tensor *zero)
{
	const struct ql_dtype_info *d = &ql_dtypes[note->dtype];

	if (!zero)
		return QL_OK;
	if (!note->q.scheme->zero)
		return ql_fail(ctx, QL_ERR_FORMAT, "zero_point: wanted none for the scheme %s, got one",
			note->q.scheme->doc.name);
	if (zero->dtype != ql_dtype_whole(note->dtype) || !ql_tensor_same_shape(zero, scale))
		return ql_fail(ctx, QL_ERR_FORMAT, "zero_point: wanted the dtype %s and the scale's shape, got others",
			ql_dtype_name(ql_dtype_whole(note->dtype)));
	return check_range(ctx, "zero_point", d->lo, d->hi, zero);
}

/* Checks the bits of each channel of an affine per-axis tensor: at most those of the note. */
static enum ql_status check_bits(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale, const struct ql_tensor *bits)
{
	if (!bits)
		return QL_OK;
	if (note->q.axis < 0 || !note->q.scheme->affine)
		return ql_fail(ctx, QL_ERR_FORMAT, "bits: wanted none for the scheme %s %s, got some",
			note->q.scheme->doc.name, note->q.axis < 0 ? "without an axis" : "");
	if (bits->dtype != QL_int8 || !ql_tensor_same_shape(bits, scale))
		return ql_fail(ctx, QL_ERR_FORMAT, "bits: wanted int8 and the scale's shape, got others");
	return check_range(ctx, "bits", 2, note->q.codes.bits, bits);
}

/* Checks n codes of scale s, or (each) of scales s and following. */
static enum ql_status check_codes(
	struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *code, int64_t n, int64_t s, bool each)
{
	struct ql_codes codes = {0};

	for (int64_t i = 0; i < n; i++) {
		if (each || i == 0)
			codes = ql_qparams_codes(t->q, t->dtype, s + (each ? i : 0));
		if (code[i] < codes.lo || code[i] > codes.hi)
			return ql_fail(ctx, QL_ERR_FORMAT, "codes: wanted %d to %d in a channel of %d bits, got %lld",
				codes.lo, codes.hi, codes.bits, (long long)code[i]);
	}
	return QL_OK;
}

/* Checks the codes of a contiguous tensor with a range per channel. */
static enum ql_status check_channels(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	struct ql_grain g = ql_grain_of(t->rank, t->shape, t->dtype, t->q->axis, -1, 0);
	int64_t code[PIECE], n, run;
	enum ql_status status = QL_OK;

	for (int64_t r = 0; r < g.rows; r++)
		for (int64_t begin = 0; begin < g.row && !status; begin += n) {
			int64_t s = ql_grain_scale(&g, r, begin, &run);

			n = ql_min64(PIECE, g.row - begin);
			ql_dtypes[t->dtype].to_i64(t->storage->data, r * g.pitch + begin, 1, n, code);
			status = check_codes(ctx, t, code, n, s, g.kind == QL_GRAIN_COLUMN);
		}
	return status;
}

enum ql_status ql_note_apply(struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t,
	struct ql_tensor *scale, struct ql_tensor *zero_point, struct ql_tensor *bits)
{
	enum ql_status status = check_scale(ctx, note, scale);

	if (!status)
		status = check_zero(ctx, note, scale, zero_point);
	if (!status)
		status = check_bits(ctx, note, scale, bits);
	/* integer kernels rely on codes being in range */
	if (!status)
		status = check_range(ctx, "codes", note->q.codes.lo, note->q.codes.hi, t);
	if (status)
		return status;
	t->q = ql_alloc(ctx, sizeof(*t->q));
	if (!t->q)
		return QL_ERR_MEMORY;
	*t->q = note->q;
	t->q->refs = 1;
	t->q->scale = ql_tensor_keep(scale);
	t->q->zero_point = zero_point ? ql_tensor_keep(zero_point) : NULL;
	t->q->bits = bits ? ql_tensor_keep(bits) : NULL;
	ql_qparams_settle(ctx, t->q, t->dtype);
	return bits ? check_channels(ctx, t) : QL_OK;
}
