/* SPDX-License-Identifier: MIT
 * .npz: archives of NumPy 2.4 as literals, stored and deflated, 64-bit records, and malformed archives.
 */
#include <zlib.h>

#include "tests/tensor/io/deflate.h"

/* np.savez(f, a=np.array([[1, -2], [3, 4]], 'i1'), b=np.array([0.5, 1.5], 'f4')) */
static const char savez[] =
	"PK\x03\x04-\x00\x00\x00\x00\x00\x00\x00!\x00%j>"
	"\xf0\xff\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00\x61"
	".npy\x01\x00\x10\x00\x84\x00\x00\x00\x00\x00\x00\x00\x84\x00\x00\x00\x00\x00\x00\x00\x93NUMPY\x01"
	"\x00"
	"v\x00{'descr': '|i1', 'fortran_order': False, 'shape': (2, 2), }                                    "
	" "
	"                     "
	"\x0a\x01\xfe\x03\x04PK\x03\x04-\x00\x00\x00\x00\x00\x00\x00!\x00\xa1\x65[\xf2\xff"
	"\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00\x62."
	"npy\x01\x00\x10\x00\x88\x00\x00\x00\x00\x00\x00\x00\x88"
	"\x00\x00\x00\x00\x00\x00\x00\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
	"("
	"2,), }                                                            "
	"\x0a\x00\x00\x00\x3f\x00\x00\xc0\x3f"
	"PK\x01\x02-\x03-\x00\x00\x00\x00\x00\x00\x00!\x00%j>"
	"\xf0\x84\x00\x00\x00\x84\x00\x00\x00\x05\x00\x00\x00"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00\x61.npyPK\x01\x02-\x03-"
	"\x00\x00\x00\x00\x00\x00"
	"\x00!\x00\xa1\x65["
	"\xf2\x88\x00\x00\x00\x88\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	"\x80\x01\xbb\x00\x00\x00\x62."
	"npyPK\x05\x06\x00\x00\x00\x00\x02\x00\x02\x00\x66\x00\x00\x00z\x01\x00\x00"
	"\x00\x00";

/* np.savez_compressed of the same */
static const char savez_compressed[] =
	"PK\x03\x04-\x00\x00\x00\x08\x00\x00\x00!\x00%j>"
	"\xf0\xff\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00\x61"
	".npy\x01\x00\x10\x00\x84\x00\x00\x00\x00\x00\x00\x00J\x00\x00\x00\x00\x00\x00\x00\x9b\xec\x17\xea"
	"\x1b"
	"\x10\xc9\xc8P\xc6P\xad\x9e\x92Z\x9c\\\xa4n\xa5\xa0^\x93i\xa8\xae\xa3\xa0\x9e\x96_TR\x94\x98\x17\x9f_"
	"\x94"
	"\x92\x0a\x12wK\xcc)N\x05\x8a\x17g$\x16\xa4\x02\xf9\x1a\x46:\x0a\x46\x9a:\x0a\xb5\x0a\x64\x03."
	"\xc6\x7f"
	"\xcc,\x00PK\x03\x04-\x00\x00\x00\x08\x00\x00\x00!\x00\xa1\x65["
	"\xf2\xff\xff\xff\xff\xff\xff\xff\xff\x05"
	"\x00\x14\x00\x62."
	"npy\x01\x00\x10\x00\x88\x00\x00\x00\x00\x00\x00\x00L\x00\x00\x00\x00\x00\x00\x00\x9b"
	"\xec\x17\xea\x1b\x10\xc9\xc8P\xc6P\xad\x9e\x92Z\x9c\\\xa4n\xa5\xa0n\x93\x66\xa2\xae\xa3\xa0\x9e\x96_"
	"T"
	"R\x94\x98\x17\x9f_\x94\x92\x0a\x12wK\xcc)N\x05\x8a\x17g$\x16\xa4\x02\xf9\x1a\x46:\x9a:"
	"\x0a\xb5\x0a\x14"
	"\x00.\x06\x06\x06{\x06\x86\x03\xf6\x00PK\x01\x02-\x03-\x00\x00\x00\x08\x00\x00\x00!\x00%j>"
	"\xf0J\x00\x00"
	"\x00\x84\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00\x61."
	"npyP"
	"K\x01\x02-\x03-\x00\x00\x00\x08\x00\x00\x00!\x00\xa1\x65["
	"\xf2L\x00\x00\x00\x88\x00\x00\x00\x05\x00\x00"
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x81\x00\x00\x00\x62."
	"npyPK\x05\x06\x00\x00\x00\x00\x02\x00"
	"\x02\x00\x66\x00\x00\x00\x04\x01\x00\x00\x00\x00";

#define LITERAL(text) \
	(struct bytes) \
	{ \
		(uint8_t *)(uintptr_t)text, sizeof(text) - 1 \
	}

static void check_literal(const char *what, struct bytes b)
{
	struct ql_named_list list;
	const struct ql_tensor *t, *u;

	CASE("NumPy's file: %s", what);
	list = load_bytes("x.npz", &b);
	t = ql_named_find(&list, "a");
	u = ql_named_find(&list, "b");
	if (CHECK(list.n == 2 && t && u && !strcmp(list.at[0].name, "a"), "%lld entries", (long long)list.n)) {
		CHECK(t->dtype == QL_int8 && t->rank == 2 && t->shape[0] == 2 && ql_tensor_at_f64(t, 1) == -2, "a");
		CHECK(u->dtype == QL_float32 && u->rank == 1 && ql_tensor_at_f64(u, 1) == 1.5, "b");
	}
	ql_named_clear(ctx, &list);
}

/* An archive being built; each entry can be described wrongly. */
struct archive {
	struct bytes file, directory;
	unsigned n;
};

struct entry {
	const char *name, *local_name; /* local_name NULL: the same */
	size_t n_name;                 /* 0: the length of name */
	unsigned method, flags;
	const void *data;
	size_t n;
	uint64_t size, packed, offset; /* as the directory tells; zero: the truth */
	uint32_t crc;
	unsigned local_magic, local_extra, extra; /* declared lengths of extra fields */
	bool big;                                 /* with 64-bit fields in the directory, whatever the values */
};

static void add_entry(struct archive *a, const struct entry *e)
{
	const char *local = e->local_name ? e->local_name : e->name;
	size_t n_name = e->n_name ? e->n_name : strlen(e->name), n_local = e->local_name ? strlen(local) : n_name;
	uint64_t offset = e->offset ? e->offset : a->file.n, size = e->size ? e->size : e->n;
	uint64_t packed = e->packed ? e->packed : e->n;
	bool big = e->big || size > 0xfffffffe || packed > 0xfffffffe || offset > 0xfffffffe;

	add_le(&a->file, 4, e->local_magic ? e->local_magic : 0x04034b50);
	add_le(&a->file, 2, 20);
	add_le(&a->file, 2, e->flags);
	add_le(&a->file, 2, e->method);
	add_zeros(&a->file, 16);
	add_le(&a->file, 2, n_local);
	add_le(&a->file, 2, e->local_extra);
	add(&a->file, local, n_local);
	add(&a->file, e->data, e->n);
	add_le(&a->directory, 4, 0x02014b50);
	add_le(&a->directory, 4, 20 | 20 << 16);
	add_le(&a->directory, 2, e->flags);
	add_le(&a->directory, 2, e->method);
	add_zeros(&a->directory, 4);
	add_le(&a->directory, 4, e->crc);
	add_le(&a->directory, 4, big ? 0xffffffffu : packed);
	add_le(&a->directory, 4, big ? 0xffffffffu : size);
	add_le(&a->directory, 2, n_name);
	add_le(&a->directory, 2, e->extra ? e->extra : big ? 28 : 0);
	add_zeros(&a->directory, 10);
	add_le(&a->directory, 4, big ? 0xffffffffu : offset);
	add(&a->directory, e->name, n_name);
	if (big) {
		add_le(&a->directory, 4, 1 | 24 << 16);
		add_le(&a->directory, 8, size);
		add_le(&a->directory, 8, packed);
		add_le(&a->directory, 8, offset);
	}
	a->n++;
}

/* The whole file; frees the archive. */
static struct bytes finished(struct archive *a)
{
	struct bytes b = a->file;
	size_t offset = b.n;

	add(&b, a->directory.at, a->directory.n);
	add_le(&b, 4, 0x06054b50);
	add_le(&b, 4, 0);
	add_le(&b, 4, a->n | a->n << 16);
	add_le(&b, 4, a->directory.n);
	add_le(&b, 4, offset);
	add_le(&b, 2, 0);
	free(a->directory.at);
	return b;
}

/* An .npy file of n bytes; values are zero. */
static struct bytes npy_of(size_t n)
{
	struct bytes b = {0};
	char dict[128];
	int length = snprintf(dict, sizeof(dict), "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu,), }\n", n);

	add_text(&b, "\x93NUMPY\x01");
	add_le(&b, 1, 0);
	add_le(&b, 2, (uint64_t)length);
	add(&b, dict, (size_t)length);
	add_zeros(&b, n);
	return b;
}

static uint32_t crc_of(const struct bytes *b)
{
	return (uint32_t)crc32(0, b->at, (uInt)b->n);
}

static void refuse_entry(const struct entry *e, size_t memory, const char *reason)
{
	struct archive a = {0};
	struct bytes b;

	add_entry(&a, e);
	b = finished(&a);
	refuse_within("bad.npz", &b, b.n + ROOM + memory, reason);
	free(b.at);
}

static void good_archives(void)
{
	struct bytes npy = npy_of(5), packed = deflated(&npy), b;
	struct archive a = {0};
	struct ql_named_list list;

	CASE("64-bit fields of the directory");
	add_entry(&a, &(struct entry){.name = "x.npy", .data = npy.at, .n = npy.n, .crc = crc_of(&npy), .big = true});
	add_entry(&a, &(struct entry){.name = "\xc3\xbc/y.npy",
			      .method = 8,
			      .data = packed.at,
			      .n = packed.n,
			      .size = npy.n,
			      .crc = crc_of(&npy)});
	b = finished(&a);
	list = load_bytes("x.npz", &b);
	free(b.at);
	CHECK(list.n == 2 && ql_named_find(&list, "\xc3\xbc/y"), "%lld entries", (long long)list.n);
	ql_named_clear(ctx, &list);
	CASE("an archive without entries");
	b = (struct bytes){0};
	add_le(&b, 4, 0x06054b50);
	add_zeros(&b, 18);
	list = load_bytes("x.npz", &b);
	CHECK(list.n == 0, "%lld entries", (long long)list.n);
	ql_named_clear(ctx, &list);
	free(b.at);
	free(npy.at);
	free(packed.at);
}

static void bad_entries(void)
{
	struct bytes npy = npy_of(5), large = npy_of(200000), packed = deflated(&large), twice = copy_of(&npy);
	uint32_t crc = crc_of(&npy);
	const struct entry good = {.name = "x.npy", .data = npy.at, .n = npy.n, .crc = crc};
	const struct entry squeezed = {
		.name = "x.npy", .method = 8, .data = packed.at, .n = packed.n, .size = large.n, .crc = crc_of(&large)};
	struct entry e;

#define BAD(from, what, memory, reason, ...) \
	do { \
		CASE("entry: %s", what); \
		e = from; \
		__VA_ARGS__; \
		refuse_entry(&e, memory, reason); \
	} while (0)

	BAD(good, "checksum", 0, "checksum", e.crc = ~crc);
	BAD(good, "encrypted", 0, "encrypted", e.flags = 1);
	BAD(good, "method 12", 0, "method 12", e.method = 12);
	BAD(good, "two sizes", 0, "one size", e.size = npy.n + 1);
	BAD(good, "stored beyond the file", 0, "place outside", e.size = e.packed = 10000);
	BAD(good, "2^61 bytes", 0, "place outside", e.size = e.packed = UINT64_C(1) << 61);
	BAD(good, "2^64-1 bytes", 0, "place outside", e.size = e.packed = UINT64_MAX);
	BAD(good, "offset outside", 0, "the file ends", e.offset = 100000);
	BAD(good, "offset 2^64-2", 0, "the file ends", e.offset = UINT64_MAX - 1);
	BAD(good, "offset at other bytes", 0, "local header", e.offset = 3);
	BAD(good, "local magic", 0, "local header", e.local_magic = 0x04034b51);
	BAD(good, "local name", 0, "same name", e.local_name = "y.npy");
	BAD(good, "local name of another length", 0, "local header", e.local_name = "yy.npy");
	BAD(good, "local extra field too long", 0, "place outside", e.local_extra = 60000);
	BAD(good, "extra field too long", 0, "part of one", e.extra = 60000);
	BAD(good, "no .npy", 0, ".npy", e.name = "readme.txt");
	BAD(good, "a short name", 0, ".npy", e.name = "x");
	BAD(good, "no UTF-8", 0, "UTF-8", e.name = "\xff.npy");
	BAD(good, "an escape sequence as name", 0, "??[2Jx", e.name = "\x1b\n[2Jx");
	BAD(good, "a zero byte in the name", 0, "zero bytes", (e.name = "x\0.npy", e.n_name = 6));
	BAD(good, "less data than the header says", 0, "wanted 5 bytes", (e.n--, e.crc = 0));
	BAD(good, "no npy inside", 0, "magic",
		(e.data = "nothing of this kind, but long enough for a header", e.n = 50));
	add_zeros(&twice, 1);
	BAD(good, "more data than the header says", 0, "1 bytes more", (e.data = twice.at, e.n = twice.n));
	BAD(squeezed, "deflated to more than declared", large.n, "wanted 200000 bytes", e.size = 100);
	BAD(squeezed, "deflated to a byte more than declared", large.n, "wanted", e.size--);
	BAD(squeezed, "deflated to a byte less than declared", large.n, "", e.size++);
	BAD(squeezed, "a bomb by its declared ratio", 0, "1100 to 1", e.size = packed.n * 1100 + 1);
	BAD(squeezed, "a bomb of 9 GiB", 0, "8 GiB", e.size = UINT64_C(9) << 30);
	BAD(squeezed, "a bomb of 2^63", 0, "GiB", e.size = UINT64_C(1) << 63);
	BAD(squeezed, "deflated data cut off", large.n, "too early", e.n = packed.n - 20);
	BAD(squeezed, "other bytes", large.n, "compressed data", (e.data = npy.at, e.n = npy.n, e.size = 300));
	BAD(squeezed, "checksum of deflated data", large.n, "checksum", e.crc++);
#undef BAD
	free(npy.at);
	free(large.at);
	free(packed.at);
	free(twice.at);
}

static void bad_directories(void)
{
	struct bytes b, npy = npy_of(5), packed = {0};
	const struct entry good = {.name = "x.npy", .data = npy.at, .n = npy.n, .crc = crc_of(&npy)};
	struct entry other = good;
	struct archive a = {0};

	CASE("a name twice");
	add_entry(&a, &good);
	add_entry(&a, &good);
	b = finished(&a);
	refuse("bad.npz", &b, "twice");
	free(b.at);
	CASE("two entries with the same bytes");
	a = (struct archive){0};
	add_entry(&a, &good);
	other.local_name = "x.npy";
	other.name = "x.npy";
	add_entry(&a, &other);
	set_le(&a.directory, 46 + 5 + 42, 4, 0);
	b = finished(&a);
	refuse("bad.npz", &b, "data of its own");
	CASE("the end record");
	set_le(&b, b.n - 14, 2, 1);
	refuse("bad.npz", &b, "one part");
	set_le(&b, b.n - 14, 4, 100 | 100 << 16);
	refuse("bad.npz", &b, "at most 2 entries");
	set_le(&b, b.n - 14, 4, 1 | 1 << 16);
	refuse("bad.npz", &b, "more bytes");
	set_le(&b, b.n - 18, 2, 1);
	refuse("bad.npz", &b, "one part");
	set_le(&b, b.n - 18, 2, 0);
	set_le(&b, b.n - 10, 4, 0xfffffff0);
	refuse("bad.npz", &b, "another place");
	set_le(&b, b.n - 10, 4, 10);
	refuse("bad.npz", &b, "another place");
	set_le(&b, b.n - 6, 4, 0xfffffff0);
	refuse("bad.npz", &b, "another place");
	set_le(&b, b.n - 2, 2, 7);
	refuse("bad.npz", &b, "found none");
	free(b.at);
	CASE("inflated sizes that are too large only together");
	a = (struct archive){0};
	add_zeros(&packed, 5 << 20);
	for (int i = 0; i < 3; i++) {
		char name[] = "0.npy";

		name[0] = (char)('0' + i);
		add_entry(&a, &(struct entry){.name = name,
				      .method = 8,
				      .data = packed.at,
				      .n = packed.n,
				      .size = UINT64_C(4) << 30});
	}
	b = finished(&a);
	refuse("bad.npz", &b, "8 GiB of inflated data in all");
	free(b.at);
	free(packed.at);
	free(npy.at);
}

/* The 64-bit end record and its locator in front of the end record. */
static void bad_end64(void)
{
	static const struct {
		const char *what, *reason;
		uint64_t magic, n, all, size, offset, where;
	} ends[] = {
		{"none of its magic", "other bytes", 1, 0, 0, 0, 0, 0},
		{"2^61 entries", "at most 0 entries", 0x06064b50, UINT64_C(1) << 61, UINT64_C(1) << 61, 0, 0, 0},
		{"2^61 entries in 2^61 bytes", "another place", 0x06064b50, 1 << 20, 1 << 20, UINT64_C(1) << 61, 0, 0},
		{"offset and size that wrap", "another place", 0x06064b50, 0, 0, 16, UINT64_MAX - 15, 0},
		{"two counts", "one part", 0x06064b50, 1, 2, 0, 0, 0},
		{"locator outside", "another place", 0x06064b50, 0, 0, 0, 0, 1000},
		{"locator at 2^64-1", "another place", 0x06064b50, 0, 0, 0, 0, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct bytes b = {0};

		CASE("64-bit end record: %s", ends[i].what);
		add_le(&b, 4, ends[i].magic);
		add_le(&b, 8, 44);
		add_zeros(&b, 12);
		add_le(&b, 8, ends[i].n);
		add_le(&b, 8, ends[i].all);
		add_le(&b, 8, ends[i].size);
		add_le(&b, 8, ends[i].offset);
		add_le(&b, 4, 0x07064b50);
		add_le(&b, 4, 0);
		add_le(&b, 8, ends[i].where);
		add_le(&b, 4, 1);
		add_le(&b, 4, 0x06054b50);
		add_zeros(&b, 18);
		refuse("bad.npz", &b, ends[i].reason);
		free(b.at);
	}
}

static void round_trips(void)
{
	struct ql_named_list list = {0}, back;
	char name[32];

	CASE("every dtype, stored and deflated");
	for (unsigned dtype = 0; dtype < QL_DTYPE_COUNT; dtype++) {
		struct ql_tensor *t;

		if (!numpy_has(dtype))
			continue;
		t = counting(dtype, 2, (const int64_t[]){dtype == QL_int16 ? 0 : 37, 1001});
		snprintf(name, sizeof(name), "%s/\xc3\xbc", ql_dtype_name(dtype));
		ql_named_add(ctx, &list, name, t);
		ql_tensor_release(ctx, t);
	}
	for (unsigned flags = 0; flags <= QL_SAVE_COMPRESS; flags++) {
		save_list(path_of("x.npz"), &list, flags);
		back = load_path(path_of("x.npz"));
		CHECK(back.n == list.n, "%lld entries", (long long)back.n);
		for (int64_t i = 0; i < back.n && i < list.n; i++)
			CHECK(!strcmp(back.at[i].name, list.at[i].name) &&
					same_elements(back.at[i].tensor, list.at[i].tensor),
				"%s", back.at[i].name);
		ql_named_clear(ctx, &back);
	}
	CASE("every allocation fails in turn");
	sweep_memory(path_of("x.npz"), path_of("copy.npz"));
	ql_named_clear(ctx, &list);
}

/* 70 000 entries need the 64-bit end record. */
static void many(void)
{
	struct ql_named_list list = {0}, back;
	struct ql_tensor *t = counting(QL_uint8, 1, (const int64_t[]){1});
	char name[16];

	CASE("70000 entries");
	for (int i = 0; i < 70000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		ql_named_add(ctx, &list, name, t);
	}
	save_list(path_of("x.npz"), &list, 0);
	back = load_path(path_of("x.npz"));
	CHECK(back.n == 70000 && !strcmp(back.at[69999].name, "69999"), "%lld entries", (long long)back.n);
	ql_named_clear(ctx, &back);
	ql_named_clear(ctx, &list);
	ql_tensor_release(ctx, t);
}

static void names(void)
{
	struct ql_named_list list = {0};
	struct ql_tensor *t = counting(QL_uint8, 1, (const int64_t[]){1});

	CASE("names");
	save_one(path_of("x.npz"), t);
	list = load_path(path_of("x.npz"));
	CHECK(list.n == 1 && !strcmp(list.at[0].name, "arr_0"), "a tensor without a name");
	ql_named_add(ctx, &list, "arr_0", t);
	CHECK(ql_file_save(ctx, path_of("y.npz"), &list, 0) && strstr(ctx->err, "'arr_0' twice"), "%s", ctx->err);
	CHECK(save_named(path_of("y.npz"), "\xff", t, 0) && strstr(ctx->err, "UTF-8"), "%s", ctx->err);
	ql_named_clear(ctx, &list);
	ql_tensor_release(ctx, t);
}

int main(void)
{
	size_t before = start();
	struct bytes b = LITERAL(savez);

	check_literal("savez", LITERAL(savez));
	check_literal("savez_compressed", LITERAL(savez_compressed));
	good_archives();
	round_trips();
	names();
	CASE("every beginning of a file");
	refuse_truncated("cut.npz", &b);
	CASE("every byte changed");
	mutate("changed.npz", &b);
	b = LITERAL(savez_compressed);
	mutate("changed.npz", &b);
	bad_entries();
	bad_directories();
	bad_end64();
	many();
	printf("%d malformed files\n", cases);
	return finish(before);
}
