/* SPDX-License-Identifier: MIT
 * IDX, plain and gzipped, by name and by content, and malformed files.
 */

#include "tests/tensor/io/deflate.h"

static struct bytes idx_of(unsigned type, unsigned rank, const int64_t *shape, size_t n)
{
	struct bytes b = {0};

	add_be(&b, 4, type << 8 | rank);
	for (unsigned d = 0; d < rank; d++)
		add_be(&b, 4, (uint64_t)shape[d]);
	for (size_t i = 0; i < n; i++)
		add_le(&b, 1, i);
	return b;
}

static void check_type(unsigned type, unsigned dtype, size_t bytes, const double *wanted)
{
	struct bytes b = idx_of(type, 1, (const int64_t[]){2}, 2 * bytes), z = gzip(&b);
	struct ql_named_list list;

	CASE("type %02x", type);
	for (int zipped = 0; zipped < 2; zipped++) {
		list = load_bytes(zipped ? "t-ubyte.gz" : "t.idx", zipped ? &z : &b);
		if (CHECK(list.n == 1, "nothing")) {
			const struct ql_tensor *t = list.at[0].tensor;

			CHECK(t->dtype == dtype && t->rank == 1 && t->shape[0] == 2, "%s", ql_dtype_name(t->dtype));
			for (int i = 0; i < 2; i++)
				CHECK(ql_tensor_at_f64(t, i) == wanted[i], "%g", ql_tensor_at_f64(t, i));
		}
		ql_named_clear(ctx, &list);
	}
	free(b.at);
	free(z.at);
}

/* The bytes 0, 1, 2, … read big-endian; the values were computed with struct.unpack in Python. */
static void types(void)
{
	check_type(0x08, QL_uint8, 1, (const double[]){0, 1});
	check_type(0x09, QL_int8, 1, (const double[]){0, 1});
	check_type(0x0b, QL_int16, 2, (const double[]){1, 515});
	check_type(0x0c, QL_int32, 4, (const double[]){66051, 67438087});
	check_type(0x0d, QL_float32, 4, (const double[]){9.25571648671185e-41, 1.5636842486455404e-36});
	check_type(0x0e, QL_float64, 8, (const double[]){1.40159977307889e-309, 5.924543410270741e-270});
}

static void by_content(void)
{
	struct bytes b = idx_of(0x08, 3, (const int64_t[]){2, 3, 4}, 24), z = gzip(&b), twice = {0};
	struct ql_named_list list;
	const struct ql_format *format;

	CASE("by name and by content");
	list = load_bytes("train-images-idx3-ubyte", &b);
	CHECK(list.n == 1 && list.at[0].tensor->rank == 3 && ql_tensor_at_f64(list.at[0].tensor, 23) == 23, "plain");
	ql_named_clear(ctx, &list);
	list = load_bytes("TRAIN-IMAGES-IDX3-UBYTE.GZ", &z);
	CHECK(list.n == 1, "upper case");
	ql_named_clear(ctx, &list);
	CHECK(!ql_file_load(ctx, write_file("digits.dat", b.at, b.n), &list, &format) &&
			!strcmp(format->doc.name, "idx"),
		"%s", ctx->err);
	ql_named_clear(ctx, &list);
	CASE("a gzip file in two members");
	add(&twice, z.at, z.n);
	free(z.at);
	z = (struct bytes){b.at, 20};
	twice.n = 0;
	{
		struct bytes first = gzip(&z), rest = {b.at + 20, b.n - 20}, second = gzip(&rest);

		add(&twice, first.at, first.n);
		add(&twice, second.at, second.n);
		free(first.at);
		free(second.at);
	}
	list = load_bytes("x-ubyte.gz", &twice);
	CHECK(list.n == 1 && ql_tensor_at_f64(list.at[0].tensor, 23) == 23, "members");
	ql_named_clear(ctx, &list);
	free(twice.at);
	free(b.at);
}

static void malformed(void)
{
	struct bytes good = idx_of(0x08, 2, (const int64_t[]){3, 4}, 12), b;

	CASE("every beginning, every byte changed");
	refuse_truncated("cut.idx", &good);
	mutate("changed.idx", &good);
	CASE("a byte too many");
	b = copy_of(&good);
	add_zeros(&b, 1);
	refuse("bad.idx", &b, "1 bytes more");
	CASE("header");
	set_le(&b, 0, 1, 1);
	refuse("bad.idx", &b, "got 01 00 08 02");
	set_le(&b, 0, 1, 0);
	set_le(&b, 2, 1, 0x0a);
	refuse("bad.idx", &b, "a type of");
	set_le(&b, 2, 1, 0x08);
	set_le(&b, 3, 1, 0);
	refuse("bad.idx", &b, "01 to 08 axes");
	set_le(&b, 3, 1, 9);
	refuse("bad.idx", &b, "01 to 08 axes");
	set_le(&b, 3, 1, 255);
	refuse("bad.idx", &b, "01 to 08 axes");
	CASE("sizes");
	set_le(&b, 3, 1, 2);
	set_le(&b, 4, 8, UINT64_MAX);
	refuse("bad.idx", &b, "wanted 18446744065119617025 bytes");
	free(b.at);
	b = idx_of(0x0e, 8, (const int64_t[]){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 1, 1, 1, 1}, 8);
	refuse("bad.idx", &b, "below 2^64");
	free(b.at);
	b = idx_of(0x0e, 2, (const int64_t[]){0x80000000, 0x40000000}, 8); /* 2^61 of 8 bytes */
	refuse("bad.idx", &b, "below 2^64");
	free(b.at);
	b = idx_of(0x08, 3, (const int64_t[]){0, 0xffffffff, 0xffffffff}, 0);
	refuse("bad.idx", &b, "fits in memory");
	free(b.at);
	free(good.at);
}

static void malformed_gzip(void)
{
	struct bytes good = idx_of(0x08, 2, (const int64_t[]){30, 40}, 1200), z = gzip(&good), b, large;

	CASE("gzip: every beginning, every byte changed");
	for (size_t n = 0; n < z.n; n++)
		refuse_within("cut-ubyte.gz", &(struct bytes){z.at, n}, n + ROOM + 1200, "");
	mutate("changed-ubyte.gz", &z);
	CASE("gzip: something behind the end");
	b = copy_of(&z);
	add_text(&b, "more");
	refuse_within("bad-ubyte.gz", &b, b.n + ROOM + 1200, "compressed data");
	CASE("gzip: checksum and length");
	b.n -= 4;
	b.at[b.n - 1] ^= 1;
	refuse_within("bad-ubyte.gz", &b, b.n + ROOM + 1200, "length check");
	b.at[b.n - 5] ^= 1;
	refuse_within("bad-ubyte.gz", &b, b.n + ROOM + 1200, "data check");
	free(b.at);
	CASE("gzip: more data than the header says");
	add_zeros(&good, 1);
	b = gzip(&good);
	refuse_within("bad-ubyte.gz", &b, b.n + ROOM + 1200, "got more");
	free(b.at);
	CASE("gzip: a bomb by its header");
	large = idx_of(0x08, 2, (const int64_t[]){0xffffffff, 0xffffffff}, 0);
	b = gzip(&large);
	refuse("bad-ubyte.gz", &b, "wanted 18446744065119617025 bytes");
	free(b.at);
	free(large.at);
	large = idx_of(0x08, 1, (const int64_t[]){100000000}, 1000);
	b = gzip(&large);
	refuse("bad-ubyte.gz", &b, "wanted 100000000 bytes");
	free(b.at);
	CASE("gzip: a bomb of zeros");
	add_zeros(&large, 50000000);
	b = gzip(&large);
	set_le(&large, 4, 4, 0x40420f00); /* 1,000,000 of them, big-endian */
	free(b.at);
	b = gzip(&large);
	refuse_within("bad-ubyte.gz", &b, b.n + ROOM + 1000000, "got more");
	free(b.at);
	free(large.at);
	free(z.at);
	free(good.at);
}

static void memory(void)
{
	struct bytes b = idx_of(0x0c, 2, (const int64_t[]){30, 10}, 1200), z = gzip(&b);

	CASE("every allocation fails in turn");
	sweep_memory(write_file("x-ubyte.gz", z.at, z.n), NULL);
	free(b.at);
	free(z.at);
}

int main(void)
{
	size_t before = start();

	types();
	by_content();
	malformed();
	malformed_gzip();
	memory();
	printf("%d malformed files\n", cases);
	return finish(before);
}
