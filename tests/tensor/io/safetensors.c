/* SPDX-License-Identifier: MIT
 * .safetensors: a file of the Python package (0.8) as literal, every dtype, rank and view, quantized tensors
 * with all their parameters, and malformed files.
 */
#include <math.h>

#include "tensor/qparams.h"
#include "tensor/view.h"
#include "tests/tensor/io/files.h"

/* safetensors.numpy.save({'a': int8 [[1, -2], [3, 4]], 'b': float32 [0.5, 1.5], 'e': int64 of shape (0, 3)},
 * {'k': 'v'}) */
static const char python[] = "\xc0\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{\"k\":\"v\"},\"e\":{"
			     "\"dtype\":\"I64\",\"shape\":[0"
			     ",3],\"data_offsets\":[0,0]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
			     "offsets\":[0,8]},\"a\":{\"d"
			     "type\":\"I8\",\"shape\":[2,2],\"data_offsets\":[8,12]}}   "
			     "\x00\x00\x00\x3f\x00\x00\xc0\x3f\x01\xfe\x03"
			     "\x04";

/* A file of any header and n bytes of data 1, 2, 3, … */
static struct bytes file_of(const char *header, size_t n)
{
	struct bytes b = {0};

	add_le(&b, 8, strlen(header));
	add_text(&b, header);
	for (size_t i = 0; i < n; i++)
		add_le(&b, 1, i + 1);
	return b;
}

static void literal(void)
{
	struct bytes b = {(uint8_t *)(uintptr_t)python, sizeof(python) - 1};
	struct ql_named_list list;
	const struct ql_tensor *x;

	CASE("the Python package's file");
	list = load_bytes("x.safetensors", &b);
	if (CHECK(list.n == 3 && !strcmp(list.at[0].name, "e") && !strcmp(list.at[2].name, "a"), "order")) {
		CHECK(list.at[0].tensor->dtype == QL_int64 && list.at[0].tensor->shape[1] == 3, "e");
		x = ql_named_find(&list, "b");
		CHECK(x->dtype == QL_float32 && ql_tensor_at_f64(x, 1) == 1.5, "b");
		x = ql_named_find(&list, "a");
		CHECK(x->dtype == QL_int8 && x->rank == 2 && ql_tensor_at_f64(x, 1) == -2, "a");
	}
	ql_named_clear(ctx, &list);
	CASE("every beginning of a file");
	refuse_truncated("cut.safetensors", &b);
	CASE("every byte changed");
	mutate("changed.safetensors", &b);
}

static void add_one(struct ql_named_list *list, struct ql_tensor *t)
{
	char name[32];

	snprintf(name, sizeof(name), "t%lld", (long long)list->n);
	ql_named_add(ctx, list, name, t);
	ql_tensor_release(ctx, t);
}

/* Contiguous, permuted, narrowed, expanded and empty. */
static void add_views(struct ql_named_list *list, struct ql_tensor *t)
{
	int order[QL_MAX_RANK] = {t->rank - 1}, last = t->rank - 1;
	int64_t wide[QL_MAX_RANK];
	struct ql_tensor *view;
	int64_t step = ql_dtype_is_packed(t->dtype) ? 8 : 1;

	for (int d = 1; d < t->rank; d++)
		order[d] = d - 1;
	if (t->rank >= 2 && !ql_view_permute(ctx, "test", t, order, &view))
		add_one(list, view);
	if (t->rank >= 1 && !ql_view_narrow(ctx, "test", t, last, step, t->shape[last] - step, &view))
		add_one(list, view);
	if (t->rank >= 1 && !ql_view_narrow(ctx, "test", t, last, 0, 0, &view))
		add_one(list, view);
	for (int d = 0; d < t->rank; d++)
		wide[d] = t->shape[d] == 1 ? 3 : t->shape[d];
	if (!ql_view_expand(ctx, "test", t, t->rank, wide, &view))
		add_one(list, view);
	add_one(list, t);
}

static void compare_lists(const struct ql_named_list *list)
{
	struct ql_named_list back;
	char text[QL_SHAPE_TEXT];

	if (!save_list(path_of("x.safetensors"), list, 0))
		return;
	back = load_path(path_of("x.safetensors"));
	CHECK(back.n == list->n, "%lld entries of %lld", (long long)back.n, (long long)list->n);
	for (int64_t i = 0; i < back.n && i < list->n; i++) {
		const struct ql_tensor *a = list->at[i].tensor, *b = back.at[i].tensor;

		CHECK(!strcmp(list->at[i].name, back.at[i].name), "%s", back.at[i].name);
		CHECK(same_elements(a, b), "%s", ql_tensor_text(a, text));
		if (!CHECK(!a->q == !b->q, "%s", ql_tensor_text(b, text)) || !a->q)
			continue;
		CHECK(ql_qparams_equal(a->q, b->q), "params of %s", ql_tensor_text(a, text));
		CHECK(a->q->codes.bits == b->q->codes.bits && a->q->from == b->q->from &&
				a->q->nan_count == b->q->nan_count && a->q->inf_count == b->q->inf_count,
			"facts of %s", ql_tensor_text(a, text));
		CHECK(a->q->scale->dtype == b->q->scale->dtype, "scale of %s", ql_tensor_text(a, text));
	}
	ql_named_clear(ctx, &back);
}

static void all_shapes(void)
{
	static const int64_t shapes[][QL_MAX_RANK] = {{0}, {17}, {3, 11}, {2, 3, 9}, {2, 1, 3, 10}, {1, 2, 1, 2, 13},
		{2, 1, 1, 2, 1, 9}, {1, 1, 2, 1, 2, 1, 16}, {2, 1, 2, 1, 2, 1, 1, 11}};

	for (unsigned dtype = 0; dtype < QL_DTYPE_COUNT; dtype++) {
		struct ql_named_list list = {0};

		CASE("%s in every rank, empty, and as views", ql_dtype_name(dtype));
		for (int rank = 0; rank <= QL_MAX_RANK; rank++)
			add_views(&list, counting(dtype, rank, shapes[rank]));
		compare_lists(&list);
		ql_named_clear(ctx, &list);
	}
}

static void quantized(void)
{
	static const char *const specs[] = {"int8", "int8/1", "int8/2", "int8:16", "int8/1:2", "uint8", "uint8/1",
		"uint8:8", "int16", "uint16/2", "int4", "int4/1", "int4:32", "int4/2:2", "uint4", "uint4/2", "uint4:8",
		"binary", "binary/1", "binary:8"};
	static const int64_t shape[] = {5, 3, 21};
	struct ql_tensor *x = counting(QL_float32, 3, shape), *q;
	float *value = x->storage->data;
	struct ql_spec spec;

	for (int64_t i = 0; i < ql_tensor_nelem(x); i++)
		value[i] = (value[i] - 40) * 0.37f;
	value[4] = value[5] = (float)NAN;
	value[7] = (float)INFINITY;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct ql_named_list list = {0};

		CASE("quantized by %s, and views of it", specs[i]);
		if (!CHECK(!ql_spec_parse(ctx, specs[i], &spec) && !ql_quantize(ctx, x, &spec, &q), "%s", ctx->err))
			continue;
		CHECK(q->q->nan_count == 2 && q->q->inf_count == 1, "counts");
		add_views(&list, q);
		compare_lists(&list);
		ql_named_clear(ctx, &list);
	}
	ql_tensor_release(ctx, x);
}

/* Fields that the short spec has not. */
static void other_fields(void)
{
	struct ql_tensor *x = counting(QL_float16, 2, (const int64_t[]){4, 9}), *q = NULL;
	struct ql_spec_fields fields[] = {
		{.dtype = "int8", .scheme = "log", .octaves = 12.3},
		{.dtype = "int4", .scheme = "log", .has_axis = true, .axis = 2},
		{.dtype = "int8", .scheme = "asymmetric", .has_block = true, .block = 4},
		{.dtype = "uint8", .scheme = "symmetric"},
		{.bits = 5},
		{.bits = 11, .has_axis = true, .axis = 1},
		{.dtype = "int8", .has_scale = true, .scale = 0.01, .has_zero_point = true, .zero_point = 3},
	};
	struct ql_spec spec;
	struct ql_named_list list = {0};

	CASE("scheme log, odd bits, explicit scales");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (CHECK(!ql_spec_make(ctx, &fields[i], &spec) && !ql_quantize(ctx, x, &spec, &q), "%s", ctx->err))
			add_one(&list, q);
	CHECK(list.at[0].tensor->q->from == QL_float16, "from");
	compare_lists(&list);
	CASE("every allocation fails in turn");
	sweep_memory(path_of("x.safetensors"), path_of("copy.safetensors"));
	ql_named_clear(ctx, &list);
	ql_tensor_release(ctx, x);
}

static void names(void)
{
	static const char *const strange[] = {
		"a\"b\\c\n\t/", "\x01\x1f\x7f", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "::quoll", "w::scales", " "};
	struct ql_tensor *t = counting(QL_uint8, 1, (const int64_t[]){1}), *q;
	struct ql_named_list list = {0};
	struct ql_spec spec;

	CASE("names");
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		ql_named_add(ctx, &list, strange[i], t);
	compare_lists(&list);
	CHECK(save_named(path_of("no.safetensors"), "__metadata__", t, 0) && strstr(ctx->err, "reserves"), "%s",
		ctx->err);
	CHECK(save_named(path_of("no.safetensors"), "\xed\xa0\x80", t, 0) && strstr(ctx->err, "UTF-8"), "%s", ctx->err);
	ql_named_add(ctx, &list, " ", t);
	CHECK(ql_file_save(ctx, path_of("no.safetensors"), &list, 0) && strstr(ctx->err, "twice"), "%s", ctx->err);
	ql_named_clear(ctx, &list);
	ql_spec_parse(ctx, "int8", &spec);
	ql_quantize(ctx, t, &spec, &q);
	ql_named_add(ctx, &list, "w", q);
	ql_named_add(ctx, &list, "w::scale", t);
	CHECK(ql_file_save(ctx, path_of("no.safetensors"), &list, 0) && strstr(ctx->err, "'w::scale' twice"), "%s",
		ctx->err);
	ql_named_clear(ctx, &list);
	save_one(path_of("x.safetensors"), t);
	list = load_path(path_of("x.safetensors"));
	CHECK(list.n == 1 && !strcmp(list.at[0].name, "tensor"), "a tensor without a name");
	ql_named_clear(ctx, &list);
	CASE("nothing");
	compare_lists(&list);
	ql_tensor_release(ctx, q);
	ql_tensor_release(ctx, t);
}

static void refuse_header(const char *header, size_t n, const char *reason)
{
	struct bytes b = file_of(header, n);

	CASE("header %.100s", header);
	refuse("bad.safetensors", &b, reason);
	free(b.at);
}

/* one tensor "x" */
#define X(dtype, shape, offsets) "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(a, b) \
	"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" a "}," \
	"\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" b "}}"

struct bad_header {
	const char *header, *reason;
	size_t n; /* bytes of data behind it */
};

static void refuse_headers(const struct bad_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		refuse_header(headers[i].header, headers[i].n, headers[i].reason);
}

#define REFUSE_HEADERS(headers) refuse_headers(headers, sizeof(headers) / sizeof((headers)[0]))

static void bad_objects(void)
{
	static const struct bad_header headers[] = {
		{"", "'{'", 0},
		{" {}", "'{'", 0},
		{"[]", "'{'", 0},
		{"null", "'{'", 0},
		{"{", "a string", 0},
		{"{}x", "nothing after", 0},
		{"{}{}", "nothing after", 0},
		{"{} ", "wanted 0 bytes", 1},
		{"{,}", "a string", 0},
		{"{\"x\"}", "':'", 0},
		{"{\"x\":}", "a value", 0},
		{"{\"x\":1}", "an object", 0},
		{"{\"x\":\"y\"}", "an object", 0},
		{"{\"x\":[]}", "an object", 0},
		{"{\"x\":{}}", "keys dtype, shape", 0},
		{"{\"x\":{\"dtype\":\"U8\"}}", "keys dtype, shape", 0},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}", "',' or '}'", 4},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},}", "a string", 4},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"shape\":[4],\"data_offsets\":[0,4]}}", "once, got 'shape'",
			4},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"more\":1}}", "got 'more'", 4},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4] \"data_offsets\":[0,4]}}", "JSON object", 4},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]]}", "JSON object", 4},
	};

	REFUSE_HEADERS(headers);
}

static void bad_dtypes(void)
{
	static const struct bad_header headers[] = {
		{X("\"U7\"", "[4]", "[0,4]"), "got 'U7'", 4},
		{X("\"F4\"", "[4]", "[0,4]"), "got 'F4'", 4},
		{X("\"u8\"", "[4]", "[0,4]"), "got 'u8'", 4},
		{X("\"\"", "[4]", "[0,4]"), "got ''", 4},
		{X("8", "[4]", "[0,4]"), "wanted a string", 4},
		{X("null", "[4]", "[0,4]"), "wanted a string", 4},
		{X("\"\\u0000U8\"", "[4]", "[0,4]"), "got ''", 4},
	};

	REFUSE_HEADERS(headers);
}

static void bad_shapes(void)
{
	static const struct bad_header headers[] = {
		{X("\"U8\"", "4", "[0,4]"), "wanted a list", 4},
		{X("\"U8\"", "{}", "[0,4]"), "wanted a list", 4},
		{X("\"U8\"", "[\"4\"]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[-4]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[4.5]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[[4]]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[1e999]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[9007199254740993]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[18446744073709551620]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[2305843009213693952]", "[0,4]"), "whole numbers", 4},
		{X("\"U8\"", "[4294967296,4294967296]", "[0,0]"), "below 2^64", 0},
		{X("\"F64\"", "[4503599627370496,4096]", "[0,0]"), "below 2^64", 0},
		{X("\"F32\"", "[4503599627370496,1024]", "[0,0]"), "below 2^64", 0},
		{X("\"U8\"", "[0,4503599627370496,4503599627370496]", "[0,0]"), "below 2^64", 0},
		{X("\"U8\"", "[0,4503599627370496,1000]", "[0,0]"), "fits in memory", 0},
		{X("\"U8\"", "[4503599627370496]", "[0,4]"), "wanted 4503599627370496 bytes", 4},
		{X("\"U8\"", "[1,1,1,1,1,1,1,1,4]", "[0,4]"), "at most 8 axes", 4},
		{X("\"U8\"", "[5]", "[0,4]"), "wanted 5 bytes", 4},
		{X("\"F32\"", "[4]", "[0,4]"), "wanted 16 bytes", 4},
		{X("\"U8\"", "[]", "[0,4]"), "wanted 1 bytes", 4},
	};

	REFUSE_HEADERS(headers);
}

static void bad_offsets(void)
{
	static const struct bad_header headers[] = {
		{X("\"U8\"", "[4]", "[0,5]"), "a range in 0 to 4", 4},
		{X("\"U8\"", "[4]", "[4,0]"), "a range", 4},
		{X("\"U8\"", "[4]", "[0]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[0,4,4]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[0,\"4\"]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[-4,0]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[18446744073709551612,18446744073709551616]"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "{\"a\":0,\"b\":4}"), "two whole numbers", 4},
		{X("\"U8\"", "[4]", "[1,5]"), "a gap", 5},
		{X("\"U8\"", "[4]", "[0,4]"), "data: wanted 4 bytes", 5},
		{TWO("[0,4]", "[0,4]"), "of its own", 4},
		{TWO("[0,4]", "[2,6]"), "of its own", 6},
		{TWO("[0,4]", "[5,9]"), "a gap", 9},
		{TWO("[4,8]", "[5,9]"), "a gap", 9},
	};

	REFUSE_HEADERS(headers);
}

static void bad_names(void)
{
	static const struct bad_header headers[] = {
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"x\":{\"dtype\":\"U8\","
		 "\"shape\":[4],\"data_offsets\":[4,8]}}",
			"'x': wanted every name once", 8},
		{"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"\\u0078\":{\"dtype\":"
		 "\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
			"'x': wanted every name once", 8},
		{"{\"x\\u0000\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\\ud800\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\\ud800\\u0041\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\\udc00\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\\x41\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\\u12\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "escape", 4},
		{"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "UTF-8", 4},
		{"{\"\xc0\x80\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "UTF-8", 4},
		{"{\"\xed\xa0\x80\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "UTF-8", 4},
		{"{\"\xf4\x90\x80\x80\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "UTF-8", 4},
		{"{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "control characters", 4},
		{"{\"\\u001b[2J\\n\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,5]}}", "tensor '?[2J?'", 4},
		{"{\"\\u009b2J\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,5]}}", "2J'", 4},
		{"{\"abc", "'\"'", 0},
		{"{\"abc\\", "'\"'", 0},
	};

	REFUSE_HEADERS(headers);
}

static void bad_metadata(void)
{
	static const struct bad_header headers[] = {
		{"{\"__metadata__\":1}", "an object", 0},
		{"{\"__metadata__\":{\"a\":1}}", "wanted a string", 0},
		{"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", "wanted a string", 0},
		{"{\"__metadata__\":{\"a\"}}", "':'", 0},
		{"{\"__metadata__\":{},\"__metadata__\":{}}", "got it twice", 0},
		{"{\"__metadata__\":{},\"\\u005f_metadata__\":{\"long enough\":\"to be taken for one of the "
		 "tensors\"}}",
			"got it twice", 0},
		{"{\"__metadata__\":{\"x::quoll\":\"dtype=int8 shape=(1)\"}}", "there is none", 0},
	};

	REFUSE_HEADERS(headers);
}

static void bad_headers(void)
{
	bad_objects();
	bad_dtypes();
	bad_shapes();
	bad_offsets();
	bad_names();
	bad_metadata();
}

/* Long, deep, and with a length field that lies. */
static void bad_sizes(void)
{
	static const uint64_t lengths[] = {
		100000001, UINT64_C(1) << 32, UINT64_C(1) << 61, UINT64_MAX, UINT64_MAX - 7, 200};
	size_t n = 300000;
	struct bytes b;
	char *text = malloc(n + 100);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		CASE("a header of %llu bytes", (unsigned long long)lengths[i]);
		b = file_of("{}", 100);
		set_le(&b, 0, 8, lengths[i]);
		refuse("bad.safetensors", &b, "got a length of");
		free(b.at);
	}
	memset(text, '[', n);
	memcpy(text, "{\"x\":", 5);
	text[n] = '\0';
	refuse_header(text, 0, "32 nested brackets");
	memcpy(text, "{\"x\":{\"dtype\":", 14);
	refuse_header(text, 0, "32 nested brackets");
	memcpy(text, "{\"__metadata__\":{\"a\":", 21);
	refuse_header(text, 0, "32 nested brackets");
	memset(text, ' ', n);
	memcpy(text, "{\"x\":{\"dtype\":", 14);
	strcpy(text + n - 60, "\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}");
	refuse_header(text, 4, "at most 4096 bytes");
	for (size_t i = 0; i < n; i += 6)
		memcpy(text + i, i ? "\"\":{}," : "{     ", 6);
	text[n - 1] = '}';
	refuse_header(text, 0, "keys dtype, shape");
	for (size_t i = 0; i < n; i += 2)
		memcpy(text + i, i < 20 ? "  " : "1,", 2);
	memcpy(text, "{\"x\":{\"shape\":[", 15);
	refuse_header(text, 0, "closing bracket");
	free(text);
}

#define W "\"w\":{\"dtype\":\"I8\",\"shape\":[2,4],\"data_offsets\":[0,8]}"
#define PACKED(shape) "\"w\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":[0,4]}"
#define NOTE(text) "{\"__metadata__\":{\"w::quoll\":\"" text "\"},"
#define WORDS(dtype, scheme, bits, lo, hi, axis, block, block_axis) \
	"dtype=" dtype " shape=(2,4) scheme=" scheme " bits=" bits " lo=" lo " hi=" hi " octaves=16 axis=" axis \
	" block=" block " block_axis=" block_axis " from=float32 nan=0 inf=0"
#define INT8(axis, block, block_axis) WORDS("int8", "symmetric", "8", "-127", "127", axis, block, block_axis)
#define SCALE(dtype, shape, end) \
	",\"w::scale\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[8," end "]}}"

/* Notes that say what no quantizer makes. The data are codes 1 to 8 and, as scale, the bytes 9 10 11 12 …,
 * which are small positive floats. */
struct bad_note {
	const char *header, *reason;
	size_t n;
};

static const struct bad_note bad_words_notes[] = {
	{NOTE("") W "}", "one is missing", 8},
	{NOTE("dtype=int8") W "}", "one is missing", 8},
	{NOTE("dtype=int8 shape=(2,4) scheme=symmetric") W "}", "one is missing", 8},
	{NOTE("dtype=int8 dtype=int8") W "}", "every word once", 8},
	{NOTE("dtype=int9 shape=(2,4)") W "}", "a dtype", 8},
	{NOTE("dtype=int8 shape=(4,2)") W "}", "wanted the dtype and shape", 8},
	{NOTE("dtype=uint8 shape=(2,4)") W "}", "wanted the dtype and shape", 8},
	{NOTE("dtype=int8 shape=2,4") W "}", "sizes in parentheses", 8},
	{NOTE("dtype=int8 shape=(2,)") W "}", "sizes in parentheses", 8},
	{NOTE("dtype=int8 shape=(2,4") W "}", "sizes in parentheses", 8},
	{NOTE("dtype=int8 shape=(99999999999999999999)") W "}", "sizes in parentheses", 8},
	{NOTE("dtype=int8 shape=(1,1,1,1,1,1,1,2,4)") W "}", "sizes in parentheses", 8},
	{NOTE("dtype=int8  shape=(2,4)") W "}", "known words", 8},
	{NOTE("dtype=int8 shape=(2,4) colour=red") W "}", "newer Quoll", 8},
	{NOTE("dtype") W "}", "known words", 8},
	{"{\"__metadata__\":{\"w::quoll\":\"dtype=int8 shape=(2,4)\",\"w::quoll\":\"\"}," W "}", "got two", 8},
};

static const struct bad_note bad_grain_notes[] = {
	{NOTE(INT8("-1", "0", "-1")) W "}", "wanted a tensor 'w::scale'", 8},
	{NOTE(INT8("-1", "0", "-1")) W SCALE("F32", "[1]", "12"), "wanted shape ()", 12},
	{NOTE(INT8("0", "0", "-1")) W SCALE("F32", "[1]", "12"), "wanted shape (2)", 12},
	{NOTE(INT8("-1", "4", "1")) W SCALE("F32", "[2,2]", "24"), "wanted shape (2, 1)", 24},
	{NOTE(INT8("-1", "0", "-1")) W SCALE("F16", "[]", "10"), "wanted float32", 10},
	{NOTE(INT8("-1", "0", "-1")) W SCALE("I32", "[]", "12"), "wanted float32", 12},
	{NOTE(INT8("2", "0", "-1")) W SCALE("F32", "[]", "12"), "an axis below 2", 12},
	{NOTE(INT8("8", "0", "-1")) W SCALE("F32", "[]", "12"), "from -1 to 7", 12},
	{NOTE(INT8("-2", "0", "-1")) W SCALE("F32", "[]", "12"), "from -1 to 7", 12},
	{NOTE(INT8("0", "4", "1")) W SCALE("F32", "[]", "12"), "an axis below 2", 12},
	{NOTE(INT8("-1", "4", "2")) W SCALE("F32", "[]", "12"), "an axis below 2", 12},
	{NOTE(INT8("-1", "4", "-1")) W SCALE("F32", "[]", "12"), "an axis below 2", 12},
	{NOTE(INT8("-1", "0", "1")) W SCALE("F32", "[]", "12"), "an axis below 2", 12},
	{NOTE(INT8("-1", "-4", "1")) W SCALE("F32", "[]", "12"), "from 0 to", 12},
	{NOTE(INT8("-1", "4294967300", "1")) W SCALE("F32", "[]", "12"), "from 0 to", 12},
};

static const struct bad_note bad_codes_notes[] = {
	{NOTE(WORDS("int8", "cubic", "8", "-127", "127", "-1", "0", "-1")) W SCALE("F32", "[]", "12"),
		"a known quantization scheme", 12},
	{NOTE(WORDS("int8", "binary", "8", "-127", "127", "-1", "0", "-1")) W SCALE("F32", "[]", "12"), "scheme binary",
		12},
	{NOTE(WORDS("int8", "log", "4", "-127", "127", "-1", "0", "-1")) W SCALE("F32", "[]", "12"),
		"codes of scheme log", 12},
	{NOTE(WORDS("int8", "symmetric", "9", "-255", "255", "-1", "0", "-1")) W SCALE("F32", "[]", "12"), "9 bits",
		12},
	{NOTE(WORDS("int8", "symmetric", "1", "0", "0", "-1", "0", "-1")) W SCALE("F32", "[]", "12"), "1 bits", 12},
	{NOTE(WORDS("int8", "symmetric", "17", "0", "0", "-1", "0", "-1")) W SCALE("F32", "[]", "12"), "from 1 to 16",
		12},
	{NOTE(WORDS("int8", "symmetric", "8", "-128", "300", "-1", "0", "-1")) W SCALE("F32", "[]", "12"),
		"from -128 to 300", 12},
	{NOTE(WORDS("int8", "symmetric", "8", "x", "127", "-1", "0", "-1")) W SCALE("F32", "[]", "12"), "whole number",
		12},
	{NOTE(WORDS("int8", "symmetric", "3", "-3", "3", "-1", "0", "-1")) W SCALE("F32", "[]", "12"),
		"wanted -3 to 3, got 4", 12},
	{NOTE(WORDS("float32", "symmetric", "8", "-127", "127", "-1", "0",
		 "-1")) "\"w\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]}}",
		"scheme symmetric", 32},
};

static const struct bad_note bad_packed_notes[] = {
	{NOTE("dtype=int4 shape=(2,4)") PACKED("[4]") "}", "packed int4", 4},
	{NOTE("dtype=int4 shape=(2,5)") PACKED("[2,2]") "}", "packed int4", 4},
	{NOTE("dtype=int4 shape=(2,9223372036854775807)") PACKED("[2,2]") "}", "packed int4", 4},
	{NOTE("dtype=int4 shape=(2,3)") PACKED("[2,2]") "}", "", 4},
	{NOTE("dtype=binary shape=(2,9)") PACKED("[2,2]") "}", "zero bits", 4},
	{NOTE("dtype=binary shape=(2,9)") "\"w\":{\"dtype\":\"I8\",\"shape\":[2,2],\"data_offsets\":["
					  "0,4]}}",
		"packed binary", 4},
};

static void bad_notes(const struct bad_note *notes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct bytes b = file_of(notes[i].header, notes[i].n);

		CASE("%.*s", 100, notes[i].header + 29);
		if (!notes[i].reason[0]) /* the padding of int4 rows: bytes 2 and 4 must be below 16, and they
					    are */
			set_le(&b, b.n - 1, 1, 0x14);
		refuse("bad.safetensors", &b, notes[i].reason);
		free(b.at);
	}
}

static void bad_scales(void)
{
	static const uint32_t scales[] = {0x7fc00000, 0x7f800000, 0xff800000, 0xbf800000, 0};

	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		struct bytes b = file_of(NOTE(INT8("-1", "0", "-1")) W SCALE("F32", "[]", "12"), 12);

		CASE("a scale of bits %08x", scales[i]);
		set_le(&b, b.n - 4, 4, scales[i]);
		refuse("bad.safetensors", &b, "finite numbers above 0");
		free(b.at);
	}
}

static void unsigned_data(void)
{
	struct bytes b = file_of(X("\"U32\"", "[2]", "[0,8]"), 8);
	struct ql_named_list list;

	CASE("U32 and U64");
	set_le(&b, b.n - 4, 4, 0xffffffffu);
	list = load_bytes("x.safetensors", &b);
	CHECK(list.at[0].tensor->dtype == QL_int64 && ql_tensor_at_f64(list.at[0].tensor, 1) == 4294967295.0, "U32");
	ql_named_clear(ctx, &list);
	free(b.at);
	b = file_of(X("\"U64\"", "[1]", "[0,8]"), 8);
	list = load_bytes("x.safetensors", &b);
	CHECK(ql_tensor_at_f64(list.at[0].tensor, 0) == (double)0x0807060504030201, "U64");
	ql_named_clear(ctx, &list);
	set_le(&b, b.n - 1, 1, 0x80);
	refuse("bad.safetensors", &b, "up to 2^63-1");
	free(b.at);
}

int main(void)
{
	size_t before = start();

	literal();
	all_shapes();
	quantized();
	other_fields();
	names();
	bad_headers();
	bad_sizes();
	bad_notes(bad_words_notes, sizeof(bad_words_notes) / sizeof(bad_words_notes[0]));
	bad_notes(bad_grain_notes, sizeof(bad_grain_notes) / sizeof(bad_grain_notes[0]));
	bad_notes(bad_codes_notes, sizeof(bad_codes_notes) / sizeof(bad_codes_notes[0]));
	bad_notes(bad_packed_notes, sizeof(bad_packed_notes) / sizeof(bad_packed_notes[0]));
	bad_scales();
	unsigned_data();
	printf("%d malformed files\n", cases);
	return finish(before);
}
