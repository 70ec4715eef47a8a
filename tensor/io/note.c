/* SPDX-License-Identifier: MIT
 * Quantization parameters as text, and back. Words are checked against each other here, tensors in note_apply.c.
 */
#include "tensor/io/note.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/op.h"
#include "tensor/ragged.h"

#define WORD_MAX 256

/* Words in the order of writing; bit i of the set of seen words is word i. */
enum word {
	DTYPE,
	SHAPE,
	SCHEME,
	BITS,
	LO,
	HI,
	OCTAVES,
	AXIS,
	BLOCK,
	BLOCK_AXIS,
	FROM,
	NAN_COUNT,
	INF_COUNT,
	VERSION,
	FORMAT,
	SCALING,
	OVERFLOW,
	ROWS,
	WORDS
};

static const char *const names[WORDS] = {"dtype", "shape", "scheme", "bits", "lo", "hi", "octaves", "axis", "block",
	"block_axis", "from", "nan", "inf", "version", "format", "scaling", "overflow", "rows"};

#define PLAIN_WORDS (1u << DTYPE | 1u << SHAPE)
#define FIRST_WORDS ((1u << VERSION) - 1u) /* of version 1, which is not written */
#define SECOND_WORDS ((1u << ROWS) - 1u)
#define THIRD_WORDS ((1u << WORDS) - 1u)

bool ql_note_needed(const struct ql_tensor *t)
{
	return t->q || ql_dtype_is_packed(t->dtype);
}

/* True for params that version 1 cannot express. */
static bool is_second(const struct ql_qparams *q)
{
	return q->format || q->codes.grid || q->codes.scaling || q->codes.overflow || q->shift || q->scale->q ||
	       ql_dtypes[q->scale->dtype].bits < 16;
}

void ql_note_write(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_text *out)
{
	const struct ql_format_words *words = ctx->quant ? ctx->quant->formats : NULL;
	const struct ql_qparams *q = t->q;
	int64_t nan, inf;

	ql_text_add(out, "dtype=%s shape=(", ql_dtype_name(t->dtype));
	for (int d = 0; d < t->rank; d++)
		ql_text_add(out, d ? ",%lld" : "%lld", (long long)t->shape[d]);
	ql_text_add(out, ")");
	if (!q)
		return;
	ql_qparams_counts(q, &nan, &inf);
	ql_text_add(out, " scheme=%s bits=%d lo=%d hi=%d octaves=%.9g axis=%d block=%d block_axis=%d",
		q->scheme->doc.name, q->codes.bits, q->codes.lo, q->codes.hi, (double)q->codes.octaves, q->axis,
		q->block, q->block_axis);
	ql_text_add(out, " from=%s nan=%lld inf=%lld", ql_dtype_name(q->from), (long long)nan, (long long)inf);
	if (words && (is_second(q) || ql_ragged_wanted(t)))
		ql_text_add(out, " version=%d format=%s scaling=%s overflow=%d%s", ql_ragged_wanted(t) ? 3 : 2,
			q->format ? words->name(q->format) : "-", words->scaling_name(q->codes.scaling),
			q->codes.overflow, ql_ragged_wanted(t) ? " rows=channels" : "");
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

static enum ql_status read_format(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	const struct ql_format_words *words = ctx->quant ? ctx->quant->formats : NULL;

	note->q.format = words && strcmp(text, "-") ? words->by_name(ctx, text) : NULL;
	if (note->q.format || !strcmp(text, "-"))
		return QL_OK;
	return words ? words->missing(ctx, text) : bad_word(ctx, "a file without formats", text);
}

static enum ql_status read_scaling(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	const struct ql_format_words *words = ctx->quant ? ctx->quant->formats : NULL;

	return words && words->scaling_by_name(text, &note->q.codes.scaling)
		       ? QL_OK
		       : bad_word(ctx, "a known rule of scales (a newer Quoll may have written it)", text);
}

static enum ql_status read_version(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	note->version = !strcmp(text, "2") ? 2 : !strcmp(text, "3") ? 3 : 0;
	return note->version ? QL_OK : bad_word(ctx, "version 2 or 3 (a newer Quoll may have written it)", text);
}

static enum ql_status read_rows(struct ql_ctx *ctx, const char *text, struct ql_note *note)
{
	note->ragged = true;
	return strcmp(text, "channels") ? bad_word(ctx, "rows=channels", text) : QL_OK;
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
	case VERSION: return read_version(ctx, text, note);
	case ROWS: return read_rows(ctx, text, note);
	case FORMAT: return read_format(ctx, text, note);
	case SCALING: return read_scaling(ctx, text, note);
	case OVERFLOW:
		status = read_int(ctx, text, 0, 1, &n);
		q->codes.overflow = n == 1;
		return status;
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

/* The range must be one that the scheme produces, or integers within it: decoders index tables of its length. */
static bool is_range(const struct ql_note *note)
{
	const struct ql_codes *codes = &note->q.codes;

	for (int wide = 0; wide < 2; wide++) {
		struct ql_codes range = *codes;

		note->q.scheme->range(note->dtype, wide, &range);
		if (range.lo == codes->lo && range.hi == codes->hi)
			return true;
		if (wide && note->q.scheme->affine && !note->q.scheme->mean && !note->q.scheme->shift) /* bounded */
			return range.lo <= codes->lo && codes->lo < codes->hi && codes->hi <= range.hi;
	}
	return false;
}

/* Checks the range of the codes and the granularity against dtype and shape. */
static enum ql_status check_note(struct ql_ctx *ctx, struct ql_note *note)
{
	const struct ql_dtype_info *d = &ql_dtypes[note->dtype];
	struct ql_qparams *q = &note->q;
	enum ql_status status;
	bool fits = q->block ? q->axis < 0 && q->block_axis >= 0 && q->block_axis < note->rank
			     : q->block_axis < 0 && q->axis < note->rank;

	if (!q->scheme->accepts(note->dtype))
		return ql_fail(ctx, QL_ERR_FORMAT, "quantization note: wanted a dtype that the scheme %s has, got %s",
			q->scheme->doc.name, d->name);
	status = ctx->quant->formats->complete(ctx, note->dtype, q);
	if (status)
		return status;
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

/* True for all words of the version, and for the two of packed elements. */
static bool has_words(unsigned seen, int version)
{
	switch (version) {
	case 3: return seen == THIRD_WORDS;
	case 2: return seen == SECOND_WORDS;
	default: return seen == FIRST_WORDS || seen == PLAIN_WORDS;
	}
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
	if (!status && !has_words(seen, note->version))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted dtype and shape, or all %d words of version %d, one is %s",
			note->version == 3   ? WORDS
			: note->version == 2 ? ROWS
					     : VERSION,
			note->version ? note->version : 1,
			note->version < 3 && note->ragged ? "not one of them" : "missing");
	note->quantized = seen != PLAIN_WORDS;
	return status || !note->quantized ? status : check_note(ctx, note);
}
