/* SPDX-License-Identifier: MIT
 * .npy: files of NumPy 2.4 as literals, every dtype, rank and view through a file, and malformed files.
 */
#include "tensor/view.h"
#include "tests/tensor/io/files.h"

/* What np.save wrote; the header is filled up with spaces to a multiple of 64. */
static struct bytes numpy_file(unsigned version, const char *dict, const void *data, size_t n)
{
	struct bytes b = {0};
	size_t length = strlen(dict) + 1, head = version == 1 ? 10 : 12, pad = (64 - (head + length) % 64) % 64;

	add_text(&b, "\x93NUMPY");
	add_le(&b, 2, version);
	add_le(&b, version == 1 ? 2 : 4, length + pad);
	add_text(&b, dict);
	for (; pad > 0; pad--)
		add_text(&b, " ");
	add_text(&b, "\n");
	add(&b, data, n);
	return b;
}

static void check_values(
	const char *what, struct bytes b, unsigned dtype, int rank, const int64_t *shape, const double *values)
{
	struct ql_named_list list;
	struct ql_tensor wanted = {.rank = (uint8_t)rank};

	CASE("NumPy's file: %s", what);
	list = load_bytes("x.npy", &b);
	free(b.at);
	for (int d = 0; d < rank; d++)
		wanted.shape[d] = shape[d];
	if (CHECK(list.n == 1 && !list.at[0].name[0], "%lld entries", (long long)list.n)) {
		const struct ql_tensor *t = list.at[0].tensor;

		CHECK(t->dtype == dtype && ql_tensor_same_shape(t, &wanted), "%s",
			ql_tensor_text(t, (char[QL_SHAPE_TEXT]){0}));
		CHECK(ql_tensor_is_contiguous(t), "strides");
		for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
			CHECK(ql_tensor_at_f64(t, i) == values[i], "%lld: %g", (long long)i, ql_tensor_at_f64(t, i));
	}
	ql_named_clear(ctx, &list);
}

#define NUMPY(version, dict, data) numpy_file(version, dict, data, sizeof(data) - 1)

static void literals(void)
{
	static const int64_t two_three[] = {2, 3}, two[] = {2};

	check_values("float32",
		NUMPY(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
			"\x00\x00\xc0?\x00\x00\x00\xc0\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@"),
		QL_float32, 2, two_three, (const double[]){1.5, -2, 3, 4, 5, 6});
	check_values("int16, big-endian, column-major",
		NUMPY(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
			"\x00\x01\x00\x04\xff\xfe\x00\x05\x00\x03\x02X"),
		QL_int16, 2, two_three, (const double[]){1, -2, 3, 4, 5, 600});
	check_values("uint32",
		NUMPY(1, "{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }",
			"\x00\x00\x00\x01\xff\xff\xff\xff"),
		QL_int64, 1, two, (const double[]){1, 4294967295.0});
	check_values("uint64",
		NUMPY(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }",
			"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40"),
		QL_int64, 1, two, (const double[]){1, 4611686018427387904.0});
	check_values("a bool without axes", NUMPY(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\x01"),
		QL_bool, 0, NULL, (const double[]){1});
	check_values("a bool that is 7", NUMPY(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\x07"),
		QL_bool, 0, NULL, (const double[]){1});
	check_values("version 2",
		NUMPY(2, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
			"\x07\x00\x00\x00\x08\x00\x00\x00"),
		QL_int32, 1, two, (const double[]){7, 8});
	check_values("version 3",
		NUMPY(3, "{'descr': '=i4', 'fortran_order': False, 'shape': (2,), }",
			"\x07\x00\x00\x00\x08\x00\x00\x00"),
		QL_int32, 1, two, (const double[]){7, 8});
	check_values("Python 2",
		NUMPY(1, "{\"shape\": (2L,), \"fortran_order\": False, \"descr\": \"|i1\"}", "\x07\xf8"), QL_int8, 1,
		two, (const double[]){7, -8});
}

/* The exact bytes that np.save writes for the same array. */
static void written(void)
{
	struct ql_tensor *t = counting(QL_int32, 1, (const int64_t[]){2});
	struct bytes wanted = NUMPY(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
			     "\x00\x00\x00\x00\x25\x00\x00\x00"),
		     got;

	CASE("the bytes are NumPy's");
	save_one(path_of("x.npy"), t);
	got = read_file(path_of("x.npy"));
	CHECK(got.n == wanted.n && !memcmp(got.at, wanted.at, got.n), "%zu bytes, wanted %zu", got.n, wanted.n);
	free(got.at);
	free(wanted.at);
	ql_tensor_release(ctx, t);
}

static void round_trip(struct ql_tensor *t)
{
	struct ql_named_list list;

	if (!save_one(path_of("x.npy"), t))
		return;
	list = load_path(path_of("x.npy"));
	if (list.n == 1)
		CHECK(same_elements(t, list.at[0].tensor), "%s", ql_tensor_text(t, (char[QL_SHAPE_TEXT]){0}));
	ql_named_clear(ctx, &list);
}

static void all_shapes(void)
{
	static const int64_t shapes[][QL_MAX_RANK] = {{0}, {5}, {3, 4}, {2, 3, 4}, {2, 1, 3, 3}, {1, 2, 1, 2, 3},
		{2, 1, 1, 2, 1, 3}, {1, 1, 2, 1, 2, 1, 3}, {2, 1, 2, 1, 2, 1, 1, 3}};

	for (unsigned dtype = 0; dtype < QL_DTYPE_COUNT; dtype++) {
		if (!numpy_has(dtype))
			continue;
		CASE("%s in every rank, empty, and as a view", ql_dtype_name(dtype));
		for (int rank = 0; rank <= QL_MAX_RANK; rank++) {
			struct ql_tensor *t = counting(dtype, rank, shapes[rank]), *view;

			round_trip(t);
			if (rank >= 2) {
				int order[QL_MAX_RANK] = {rank - 1};

				for (int d = 1; d < rank; d++)
					order[d] = d - 1;
				ql_view_permute(ctx, "test", t, order, &view);
				round_trip(view);
				ql_tensor_release(ctx, view);
			}
			if (rank >= 1) {
				ql_view_narrow(ctx, "test", t, rank - 1, 1, 2, &view);
				round_trip(view);
				ql_tensor_release(ctx, view);
				ql_view_narrow(ctx, "test", t, rank - 1, 1, 0, &view);
				round_trip(view);
				ql_tensor_release(ctx, view);
			}
			ql_tensor_release(ctx, t);
		}
	}
}

/* One row of a large tensor makes a small file (torch7-distro #45: the whole storage was written). */
static void views_are_small(void)
{
	struct ql_tensor *t = counting(QL_float32, 2, (const int64_t[]){1000, 10}), *row;
	struct bytes b;

	CASE("a view saves its elements only");
	ql_view_select(ctx, "test", t, 0, 500, &row);
	save_one(path_of("x.npy"), row);
	b = read_file(path_of("x.npy"));
	CHECK(b.n == 128 + 40, "%zu bytes", b.n);
	free(b.at);
	ql_tensor_release(ctx, row);
	ql_tensor_release(ctx, t);
}

static void refuse_save(struct ql_tensor *t, const char *name, const char *reason)
{
	CHECK(save_named(path_of("no.npy"), name, t, 0) != QL_OK, "saved");
	CHECK(strstr(ctx->err, reason) && strstr(ctx->err, "no.npy"), "%s", ctx->err);
	CHECK(access(path_of("no.npy"), F_OK), "a file was left");
}

static void not_written(void)
{
	struct ql_spec spec;
	struct ql_tensor *t = counting(QL_float32, 2, (const int64_t[]){2, 3}), *q, *half;

	CASE("what NumPy has not is refused");
	ql_spec_parse(ctx, "int8/1", &spec);
	ql_quantize(ctx, t, &spec, &q);
	refuse_save(q, "", ":codes() or :dequantize(), or use .safetensors");
	for (unsigned dtype = 0; dtype < QL_DTYPE_COUNT; dtype++)
		if (!numpy_has(dtype)) {
			half = counting(dtype, 1, (const int64_t[]){3});
			refuse_save(half, "", ql_dtype_name(dtype));
			ql_tensor_release(ctx, half);
		}
	refuse_save(t, "w", "without a name");
	ql_tensor_release(ctx, q);
	ql_tensor_release(ctx, t);
}

static void refuse_dict(const char *dict, const char *reason)
{
	struct bytes b = numpy_file(1, dict, "\1\2\3\4\5\6\7\10", 8);

	refuse("bad.npy", &b, reason);
	free(b.at);
}

#define SHAPED(shape) "{'descr': '|u1', 'fortran_order': False, 'shape': " shape ", }"
#define TYPED(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (8,), }"

static void bad_headers(void)
{
	static const char *const dicts[][2] = {
		{SHAPED("(9,)"), "wanted 9 bytes"},
		{SHAPED("(7,)"), "1 bytes more"},
		{SHAPED("(2, 2)"), "4 bytes more"},
		{SHAPED("(0,)"), "8 bytes more"},
		{SHAPED("(4294967296, 4294967296)"), "below 2^64"},
		{SHAPED("(2305843009213693952, 8)"), "below 2^64"},
		{SHAPED("(2305843009213693952,)"), "wanted 2305843009213693952 bytes"},
		{SHAPED("(9223372036854775807,)"), "wanted 9223372036854775807 bytes"},
		{SHAPED("(9223372036854775808,)"), "below 2^63"},
		{SHAPED("(99999999999999999999999999,)"), "below 2^63"},
		{SHAPED("(0, 9223372036854775807, 9223372036854775807)"), "below 2^64"},
		{SHAPED("(0, 9223372036854775807)"), "fits in memory"},
		{SHAPED("(-1,)"), "size of 0 or more"},
		{SHAPED("(8.0,)"), "',' or ')'"},
		{SHAPED("(8"), "size of 0 or more"},
		{SHAPED("(8 8)"), "',' or ')'"},
		{SHAPED("(8,"), "size of 0 or more"},
		{SHAPED("8"), "a tuple"},
		{SHAPED("[8]"), "a tuple"},
		{SHAPED("(None,)"), "size of 0 or more"},
		{SHAPED("(,)"), "size of 0 or more"},
		{SHAPED("(1,1,1,1,1,1,1,1,8)"), "at most 8 axes"},
		{SHAPED("((((((((8))))))))"), "size of 0 or more"},
		{TYPED("'|O'"), "Python objects"},
		{TYPED("[('a', '<f4'), ('b', '<i4')]"), "structured dtype"},
		{TYPED("'<c8'"), "got '<c8'"},
		{TYPED("'<f3'"), "got '<f3'"},
		{TYPED("'<U2'"), "got '<U2'"},
		{TYPED("'|S8'"), "got '|S8'"},
		{TYPED("'<M8[ns]'"), "got '<M8[ns]'"},
		{TYPED("'<V2'"), "got '<V2'"},
		{TYPED("'<f16'"), "got '<f16'"},
		{TYPED("''"), "got ''"},
		{TYPED("'<'"), "got '<'"},
		{TYPED("8"), "a dtype such as"},
		{TYPED("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"), "a dtype such as"},
		{"{'descr': '|u1', 'fortran_order': false, 'shape': (8,)}", "True or False"},
		{"{'descr': '|u1', 'fortran_order': 0, 'shape': (8,)}", "True or False"},
		{"{'descr': '|u1', 'shape': (8,)}", "one is missing"},
		{"{}", "one is missing"},
		{"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (8,)}", "'descr' twice"},
		{"{'descr': '|u1', 'fortran_order': False, 'shape': (8,), 'more': 1}", "got 'more'"},
		{"{'descr' '|u1', 'fortran_order': False, 'shape': (8,)}", "':'"},
		{"{'descr': '|u1' 'fortran_order': False, 'shape': (8,)}", "',' or '}'"},
		{"{'descr': '|u1', 'fortran_order': False, 'shape': (8,)} 1", "nothing after"},
		{"{descr: '|u1', 'fortran_order': False, 'shape': (8,)}", "the key"},
		{"{'des\\x63r': '|u1', 'fortran_order': False, 'shape': (8,)}", "the key"},
		{"__import__('os').system('true')", "'{'"},
		{"{'descr': '|u1', 'fortran_order': False, 'shape': (8,)", "',' or '}'"},
		{"{'descr': '|u", "a dtype such as"},
		{"", "'{'"},
	};

	for (size_t i = 0; i < sizeof(dicts) / sizeof(dicts[0]); i++) {
		CASE("header %s", dicts[i][0]);
		refuse_dict(dicts[i][0], dicts[i][1]);
	}
}

/* Cut, lengthened and changed bytes. */
static void bad_bytes(void)
{
	struct bytes good = numpy_file(1, SHAPED("(8,)"), "\1\2\3\4\5\6\7\10", 8), b;
	char deep[4000];

	CASE("every beginning of a file");
	refuse_truncated("cut.npy", &good);
	CASE("every byte changed");
	mutate("changed.npy", &good);
	CASE("a byte too many");
	b = copy_of(&good);
	add_zeros(&b, 1);
	refuse("bad.npy", &b, "1 bytes more");
	CASE("magic and version");
	set_le(&b, 0, 1, 'N');
	refuse("bad.npy", &b, "magic");
	set_le(&b, 0, 1, 0x93);
	set_le(&b, 6, 1, 4);
	refuse("bad.npy", &b, "version");
	set_le(&b, 6, 2, 0x0101);
	refuse("bad.npy", &b, "version");
	set_le(&b, 6, 2, 0);
	refuse("bad.npy", &b, "version");
	CASE("length of the header");
	set_le(&b, 6, 2, 1);
	set_le(&b, 8, 2, 65535);
	refuse("bad.npy", &b, "a length of 65535");
	set_le(&b, 6, 2, 2);
	set_le(&b, 8, 4, 0xffffffffu);
	refuse("bad.npy", &b, "a length of 4294967295");
	set_le(&b, 8, 4, 0x7fffffff);
	refuse("bad.npy", &b, "a length of 2147483647");
	set_le(&b, 6, 2, 1);
	set_le(&b, 8, 2, 0);
	refuse("bad.npy", &b, "'{'");
	CASE("a zero byte and control characters in the header");
	free(b.at);
	b = copy_of(&good);
	set_le(&b, 12, 1, 0);
	refuse("bad.npy", &b, "zero byte");
	set_le(&b, 12, 1, '\x1b');
	refuse("bad.npy", &b, "wanted the");
	CASE("nesting");
	memset(deep, '(', sizeof(deep));
	memcpy(deep, "{'shape': ", 10);
	deep[sizeof(deep) - 1] = '\0';
	refuse_dict(deep, "size of 0 or more");
	CASE("an unsigned number above int64");
	free(b.at);
	b = numpy_file(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\0\0\0\0\x80", 8);
	refuse("bad.npy", &b, "9223372036854775808");
	free(b.at);
	free(good.at);
}

static void memory(void)
{
	struct ql_tensor *t = counting(QL_float32, 2, (const int64_t[]){30, 40}), *view;

	CASE("every allocation fails in turn");
	ql_view_permute(ctx, "test", t, (const int[]){1, 0}, &view);
	save_one(path_of("x.npy"), view);
	sweep_memory(path_of("x.npy"), path_of("copy.npy"));
	ql_tensor_release(ctx, view);
	ql_tensor_release(ctx, t);
}

int main(void)
{
	size_t before = start();

	literals();
	written();
	all_shapes();
	views_are_small();
	not_written();
	bad_headers();
	bad_bytes();
	memory();
	printf("%d malformed files\n", cases);
	return finish(before);
}
