/* SPDX-License-Identifier: MIT
 * NumPy's .npy (numpy/lib/format.py describes versions 1.0 to 3.0): "\x93NUMPY", two version bytes, the
 *length of the header (2 bytes in version 1, else 4), the header as a Python dict literal such as
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * and the elements. Only numbers are read: object arrays hold pickles, which are programs.
 */
#include "tensor/io/npy.h"

#include <stdio.h>
#include <string.h>

#include "tensor/io/format.h"
#include "tensor/view.h"

#define HEADER_MAX 65535 /* bytes accepted; NumPy itself stops at 10,000 */

struct header {
	struct ql_element_wire wire;
	bool fortran;
	int rank;
	int64_t shape[QL_MAX_RANK];
	bool has_descr, has_order, has_shape;
};

struct cursor {
	struct ql_ctx *ctx;
	const char *at; /* ends with a zero byte, which no rule below accepts */
};

static const struct {
	const char *code;
	struct ql_element_wire wire;
} types[] = {
	{"f4", {QL_float32, 4, false, false}},
	{"f8", {QL_float64, 8, false, false}},
	{"f2", {QL_float16, 2, false, false}},
	{"i1", {QL_int8, 1, false, false}},
	{"u1", {QL_uint8, 1, false, false}},
	{"i2", {QL_int16, 2, false, false}},
	{"u2", {QL_uint16, 2, false, false}},
	{"i4", {QL_int32, 4, false, false}},
	{"i8", {QL_int64, 8, false, false}},
	{"b1", {QL_bool, 1, false, false}},
	{"u4", {QL_int64, 4, false, true}},
	{"u8", {QL_int64, 8, false, true}},
};

static void skip_space(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')
		c->at++;
}

static bool accept(struct cursor *c, char symbol)
{
	skip_space(c);
	if (*c->at != symbol)
		return false;
	c->at++;
	return true;
}

static enum ql_status wanted(struct cursor *c, const char *what)
{
	return ql_fail(c->ctx, QL_ERR_FORMAT, "header: wanted %s, got '%.20s'", what, c->at);
}

/* A quoted string without escapes, which no header of numbers needs. */
static enum ql_status read_string(struct cursor *c, const char *what, char *out, size_t room)
{
	char quote;
	size_t n = 0;

	skip_space(c);
	quote = *c->at;
	if (quote != '\'' && quote != '"')
		return wanted(c, what);
	c->at++;
	for (; *c->at && *c->at != quote; c->at++) {
		if (*c->at == '\\' || n + 1 == room)
			return wanted(c, what);
		out[n++] = *c->at;
	}
	out[n] = '\0';
	return accept(c, quote) ? QL_OK : wanted(c, "a closing quote");
}

static enum ql_status read_size(struct cursor *c, int64_t *out)
{
	int64_t value = 0;

	skip_space(c);
	if (*c->at < '0' || *c->at > '9')
		return wanted(c, "a size of 0 or more");
	for (; *c->at >= '0' && *c->at <= '9'; c->at++)
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c->at - '0', &value))
			return ql_fail(
				c->ctx, QL_ERR_FORMAT, "header: shape: wanted sizes below 2^63, got a larger one");
	if (*c->at == 'L') /* a suffix of Python 2 */
		c->at++;
	*out = value;
	return QL_OK;
}

static enum ql_status read_shape(struct cursor *c, struct header *h)
{
	enum ql_status status = QL_OK;

	if (!accept(c, '('))
		return wanted(c, "a tuple of sizes");
	while (!status && !accept(c, ')')) {
		if (h->rank == QL_MAX_RANK)
			return ql_fail(
				c->ctx, QL_ERR_UNSUPPORTED, "shape: wanted at most %d axes, got more", QL_MAX_RANK);
		status = read_size(c, &h->shape[h->rank++]);
		if (!status && !accept(c, ',')) /* a trailing comma is allowed */
			return accept(c, ')') ? QL_OK : wanted(c, "',' or ')'");
	}
	return status;
}

static enum ql_status read_descr(struct cursor *c, struct header *h)
{
	char text[32], *code = text;
	enum ql_status status;

	skip_space(c);
	if (*c->at == '[')
		return ql_fail(
			c->ctx, QL_ERR_UNSUPPORTED, "dtype: wanted plain numbers, got records (a structured dtype)");
	status = read_string(c, "a dtype such as '<f4'", text, sizeof(text));
	if (status)
		return status;
	if (*code && strchr("<>=|", *code))
		code++;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].code, code)) {
			h->wire = types[i].wire;
			h->wire.big_endian = text[0] == '>' && h->wire.bytes > 1;
			return QL_OK;
		}
	if (strchr(text, 'O'))
		return ql_fail(c->ctx, QL_ERR_UNSUPPORTED,
			"dtype: wanted plain numbers, got Python objects, whose loading would run code of "
			"the file");
	return ql_fail(
		c->ctx, QL_ERR_UNSUPPORTED, "dtype: wanted one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1, got '%s'", text);
}

static enum ql_status read_order(struct cursor *c, struct header *h)
{
	skip_space(c);
	h->fortran = !strncmp(c->at, "True", 4);
	if (!h->fortran && strncmp(c->at, "False", 5))
		return wanted(c, "True or False as fortran_order");
	c->at += h->fortran ? 4 : 5;
	return QL_OK;
}

static enum ql_status read_field(struct cursor *c, struct header *h)
{
	char key[32];
	bool *seen;
	enum ql_status status = read_string(c, "the key descr, fortran_order or shape", key, sizeof(key));

	if (status)
		return status;
	seen = !strcmp(key, "descr")           ? &h->has_descr
	       : !strcmp(key, "fortran_order") ? &h->has_order
	       : !strcmp(key, "shape")         ? &h->has_shape
					       : NULL;
	if (!seen)
		return ql_fail(
			c->ctx, QL_ERR_FORMAT, "header: wanted the keys descr, fortran_order, shape, got '%s'", key);
	if (*seen)
		return ql_fail(c->ctx, QL_ERR_FORMAT, "header: wanted every key once, got '%s' twice", key);
	*seen = true;
	if (!accept(c, ':'))
		return wanted(c, "':'");
	return seen == &h->has_descr ? read_descr(c, h) : seen == &h->has_order ? read_order(c, h) : read_shape(c, h);
}

static enum ql_status read_dict(struct cursor *c, struct header *h)
{
	enum ql_status status = QL_OK;

	if (!accept(c, '{'))
		return wanted(c, "'{'");
	while (!status && !accept(c, '}')) {
		status = read_field(c, h);
		if (!status && !accept(c, ',')) {
			if (!accept(c, '}'))
				return wanted(c, "',' or '}'");
			break;
		}
	}
	skip_space(c);
	if (!status && *c->at)
		return wanted(c, "nothing after '}'");
	if (!status && !(h->has_descr && h->has_order && h->has_shape))
		return ql_fail(
			c->ctx, QL_ERR_FORMAT, "header: wanted the keys descr, fortran_order, shape, one is missing");
	return status;
}

/* Length of the header from the first bytes. */
static enum ql_status read_length(struct ql_stream *s, uint32_t *length)
{
	struct ql_ctx *ctx = s->reader->ctx;
	uint8_t head[12];
	enum ql_status status = ql_stream_read(s, head, 10, "npy header");

	if (status)
		return status;
	if (memcmp(head, "\x93NUMPY", 6))
		return ql_fail(ctx, QL_ERR_FORMAT, "header: wanted the magic \\x93NUMPY, got another start");
	if (head[6] < 1 || head[6] > 3 || head[7] != 0)
		return ql_fail(
			ctx, QL_ERR_FORMAT, "header: wanted version 1.0, 2.0 or 3.0, got %u.%u", head[6], head[7]);
	*length = ql_le16(head + 8);
	if (head[6] > 1) {
		status = ql_stream_read(s, head + 10, 2, "npy header");
		*length = ql_le32(head + 8);
	}
	if (!status && (*length > HEADER_MAX || *length > s->left))
		return ql_fail(ctx, QL_ERR_FORMAT, "header: wanted at most %llu bytes, got a length of %u",
			(unsigned long long)(s->left < HEADER_MAX ? s->left : HEADER_MAX), *length);
	return status;
}

static enum ql_status read_header(struct ql_stream *s, struct header *h)
{
	struct ql_ctx *ctx = s->reader->ctx;
	struct cursor c = {.ctx = ctx};
	uint32_t length = 0;
	enum ql_status status = read_length(s, &length);
	char *text;

	*h = (struct header){0};
	if (status)
		return status;
	text = ql_alloc(ctx, (size_t)length + 1);
	if (!text)
		return QL_ERR_MEMORY;
	status = ql_stream_read(s, text, length, "npy header");
	text[length] = '\0';
	c.at = text;
	if (!status && strlen(text) != length)
		status = ql_fail(ctx, QL_ERR_FORMAT, "header: wanted text, got a zero byte");
	if (!status)
		status = read_dict(&c, h);
	ql_free(ctx, text);
	return status;
}

/* Column-major elements are row-major elements of the reversed shape. */
static enum ql_status read_fortran(struct ql_stream *s, struct header *h, struct ql_tensor **out)
{
	struct ql_ctx *ctx = s->reader->ctx;
	struct ql_tensor *reversed = NULL, *view = NULL;
	int64_t shape[QL_MAX_RANK];
	int order[QL_MAX_RANK];
	enum ql_status status;

	for (int d = 0; d < h->rank; d++) {
		order[d] = h->rank - 1 - d;
		shape[d] = h->shape[order[d]];
	}
	status = ql_elements_read(s, &h->wire, h->rank, shape, &reversed);
	if (!status)
		status = ql_view_permute(ctx, "load", reversed, order, &view);
	if (!status)
		status = ql_tensor_contiguous(ctx, view, out);
	ql_tensor_release(ctx, reversed);
	ql_tensor_release(ctx, view);
	return status;
}

enum ql_status ql_npy_read(struct ql_stream *s, struct ql_tensor **out)
{
	struct header h;
	enum ql_status status = read_header(s, &h);

	*out = NULL;
	if (!status && h.fortran && h.rank > 1)
		status = read_fortran(s, &h, out);
	else if (!status)
		status = ql_elements_read(s, &h.wire, h.rank, h.shape, out);
	if (!status)
		status = ql_stream_finish(s);
	if (status) {
		ql_tensor_release(s->reader->ctx, *out);
		*out = NULL;
	}
	return status;
}

static const char *code_of(unsigned dtype)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].wire.dtype == dtype && !types[i].wire.is_unsigned)
			return types[i].code;
	return NULL;
}

enum ql_status ql_npy_check(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	if (t->q)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"wanted a plain tensor, got a quantized one; save :codes() or :dequantize(), or use "
			".safetensors, which "
			"keeps scales");
	if (!code_of(t->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"wanted a dtype that NumPy has, got %s; use :to 'float32' or .safetensors",
			ql_dtype_name(t->dtype));
	return QL_OK;
}

/* Header text of t, padded so that the elements start at a multiple of 64; returns its total length. */
static size_t make_header(const struct ql_tensor *t, char out[QL_NPY_HEADER_MAX])
{
	size_t n = 10, end;

	n += (size_t)snprintf(out + n, QL_NPY_HEADER_MAX - n, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
		ql_dtypes[t->dtype].bits > 8 ? "<" : "|", code_of(t->dtype));
	for (int d = 0; d < t->rank; d++)
		n += (size_t)snprintf(out + n, QL_NPY_HEADER_MAX - n, d ? " %lld," : "%lld,", (long long)t->shape[d]);
	if (t->rank > 1)
		n--; /* only a tuple of one keeps its comma */
	n += (size_t)snprintf(out + n, QL_NPY_HEADER_MAX - n, "), }");
	end = (n + 1 + 63) / 64 * 64;
	memset(out + n, ' ', end - n);
	out[end - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)((end - 10) & 255);
	out[9] = (char)((end - 10) >> 8);
	return end;
}

enum ql_status ql_npy_write(struct ql_writer *w, struct ql_tensor *t)
{
	char header[QL_NPY_HEADER_MAX];
	enum ql_status status = ql_writer_put(w, header, make_header(t, header));

	return status ? status : ql_elements_write(w, t);
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct ql_stream s;
	struct ql_tensor *t = NULL;
	enum ql_status status = ql_stream_open(&s, r, 0, r->size, QL_STORED, 0);

	if (!status)
		status = ql_npy_read(&s, &t);
	ql_stream_close(&s);
	if (!status)
		status = ql_named_add(r->ctx, out, "", t);
	ql_tensor_release(r->ctx, t);
	return status;
}

static enum ql_status save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags)
{
	enum ql_status status = ql_npy_check(w->ctx, list->at[0].tensor);

	(void)flags;
	return status ? status : ql_npy_write(w, list->at[0].tensor);
}

const struct ql_format ql_format_npy = {
	.doc = {.name = "npy",
		.usage = "tensor.load 'x.npy'",
		.text = "One tensor as NumPy's np.save writes it: float16/32/64, integers, bool; either byte "
			"order and either element order. uint32 and uint64 are read as int64. bfloat16, float8, "
			"packed and quantized tensors do not exist in NumPy: use .safetensors.",
		.example = "file = os.tmpname() .. '.npy'\ntensor.save(file, tensor{1, 2, 3})\n"
			   "print(tensor.load(file):size(1))  --> 3"},
	.extensions = ".npy",
	.single = true,
	.load = load,
	.save = save,
};
