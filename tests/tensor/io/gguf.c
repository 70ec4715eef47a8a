/* SPDX-License-Identifier: MIT
 * Malformed .gguf files, failing memory, and files of both versions.
 */
#include "tests/tensor/io/files.h"

enum { U8, U32 = 4, F32 = 6, TEXT = 8, ARRAY };

static void add_name(struct bytes *b, const char *name)
{
	add_le(b, 8, strlen(name));
	add_text(b, name);
}

static void add_head(struct bytes *b, unsigned version, uint64_t tensors, uint64_t keys)
{
	add_text(b, "GGUF");
	add_le(b, 4, version);
	add_le(b, 8, tensors);
	add_le(b, 8, keys);
}

static void add_key(struct bytes *b, const char *name, unsigned type)
{
	add_name(b, name);
	add_le(b, 4, type);
}

static void add_entry(struct bytes *b, const char *name, int64_t rows, int64_t row, unsigned type, uint64_t offset)
{
	add_name(b, name);
	add_le(b, 4, 2);
	add_le(b, 8, (uint64_t)row);
	add_le(b, 8, (uint64_t)rows);
	add_le(b, 4, type);
	add_le(b, 8, offset);
}

static void align(struct bytes *b)
{
	add_zeros(b, (32 - b->n % 32) % 32);
}

/* Two keys, a float tensor and two blocks of Q4_0. */
static struct bytes good_file(unsigned version)
{
	struct bytes b = {0};

	add_head(&b, version, 2, 3);
	add_key(&b, "a", U32);
	add_le(&b, 4, 7);
	add_key(&b, "t", ARRAY);
	add_le(&b, 4, TEXT);
	add_le(&b, 8, 2);
	add_name(&b, "xy");
	add_name(&b, "z");
	add_key(&b, "n", ARRAY);
	add_le(&b, 4, U32);
	add_le(&b, 8, 1);
	add_le(&b, 4, 5);
	add_entry(&b, "f", 2, 3, 0, 0);
	add_entry(&b, "q", 1, 64, 2, 32);
	align(&b);
	for (int i = 0; i < 6; i++)
		add(&b, &(float){(float)i}, 4);
	align(&b);
	for (int i = 0; i < 2; i++) {
		add_le(&b, 2, 0x3c00); /* scale 1 */
		for (int k = 0; k < 16; k++)
			add_le(&b, 1, (uint64_t)(k + i) * 11 & 255);
	}
	return b;
}

static void check_good(unsigned version)
{
	struct bytes b = good_file(version);
	struct ql_named_list list = load_bytes("x.gguf", &b);
	size_t n;

	CASE("version %u", version);
	if (CHECK(list.n == 2 && list.metadata.n == 3, "%lld tensors", (long long)list.n)) {
		const struct ql_tensor *f = list.at[0].tensor, *q = list.at[1].tensor;
		const struct ql_metadata_value *texts = &list.metadata.at[1];

		CHECK(f->shape[0] == 2 && f->shape[1] == 3 && ql_tensor_at_f64(f, 5) == 5, "f");
		CHECK(q->dtype == QL_int4 && q->q && ql_tensor_at_f64(q, 1) == 3 && ql_tensor_at_f64(q, 17) == -8, "q");
		CHECK(ql_tensor_at_f64(q, 33) == -2 && ql_tensor_at_f64(q, 49) == -7, "second block");
		CHECK(texts->n == 2 && !strncmp(ql_metadata_text(texts, 1, &n), "z", 1) && n == 1, "texts");
		CHECK(ql_tensor_at_f64(list.metadata.at[2].numbers, 0) == 5, "numbers");
	}
	ql_named_clear(ctx, &list);
	CASE("by its first bytes");
	list = load_bytes("x.bin2", &b);
	CHECK(list.n == 2, "%lld tensors", (long long)list.n);
	ql_named_clear(ctx, &list);
	free(b.at);
}

/* A file whose only key is `type` followed by the numbers. */
static void refuse_key(unsigned type, unsigned element, uint64_t n, const char *reason)
{
	struct bytes b = {0};

	add_head(&b, 3, 0, 1);
	add_key(&b, "key", type);
	if (type == ARRAY)
		add_le(&b, 4, element);
	add_le(&b, 8, n);
	add_zeros(&b, 64);
	refuse("key.gguf", &b, reason);
	free(b.at);
}

static void keys(void)
{
	CASE("arrays and texts beyond the file");
	for (unsigned element = 0; element <= 13; element++) {
		refuse_key(ARRAY, element, (uint64_t)1 << 61,
			element == ARRAY || element == 13 ? "wanted an array of" : "fit into the file");
		refuse_key(ARRAY, element, UINT64_MAX, "");
	}
	refuse_key(TEXT, 0, (uint64_t)1 << 61, "key: wanted");
	refuse_key(TEXT, 0, UINT64_MAX, "key: wanted");
	refuse_key(13, 0, 0, "wanted a type from 0 to 12");
	refuse_key(10, 0, UINT64_MAX, "wanted integers up to 2^63-1");
	refuse_key(ARRAY, ARRAY, 1, "one of arrays");
}

/* A file with one tensor of the given fields. */
static void refuse_tensor(int64_t rows, int64_t row, unsigned type, uint64_t offset, const char *reason)
{
	struct bytes b = {0};

	add_head(&b, 3, 1, 0);
	add_entry(&b, "w", rows, row, type, offset);
	add_zeros(&b, 256);
	refuse("tensor.gguf", &b, reason);
	free(b.at);
}

static void tensors(void)
{
	struct bytes b = {0};

	CASE("sizes and offsets");
	refuse_tensor(1, (int64_t)1 << 61, 0, 0, "'");
	refuse_tensor(-1, 4, 0, 0, "wanted sizes below 2^63");
	refuse_tensor((int64_t)1 << 32, (int64_t)1 << 32, 0, 0, "");
	refuse_tensor((int64_t)1 << 40, 32, 8, 0, "wanted 37383395344384 bytes");
	refuse_tensor(1, 4, 0, 1024, "the file ends at");
	refuse_tensor(1, 4, 0, UINT64_MAX - 31, "w");
	refuse_tensor(1, 4, 0, 16, "in steps of 32");
	refuse_tensor(1, 48, 8, 0, "whole blocks of 32");
	CASE("overlap");
	add_head(&b, 3, 2, 0);
	add_entry(&b, "v", 1, 16, 0, 0);
	add_entry(&b, "w", 1, 4, 0, 32);
	add_zeros(&b, 256);
	refuse("bad.gguf", &b, "'v' and 'w'");
	CASE("five axes");
	b.n = 0;
	add_head(&b, 3, 1, 0);
	add_name(&b, "w");
	add_le(&b, 4, 5);
	add_zeros(&b, 256);
	refuse("bad.gguf", &b, "at most 4 axes, got 5");
	free(b.at);
}

static void heads(void)
{
	static const struct {
		unsigned version;
		uint64_t tensors, keys;
		const char *reason;
	} wrong[] = {{1, 0, 0, "version 2 or 3, got 1"}, {4, 0, 0, "got 4"}, {0x03000000, 0, 0, "big-endian"},
		{3, (uint64_t)1 << 61, 0, "header"}, {3, 0, (uint64_t)1 << 61, "header"},
		{3, UINT64_MAX, UINT64_MAX, "header"}, {3, 1000, 0, "header"}};
	struct bytes b = {0};

	CASE("header");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		b.n = 0;
		add_head(&b, wrong[i].version, wrong[i].tensors, wrong[i].keys);
		add_zeros(&b, 100);
		refuse("head.gguf", &b, wrong[i].reason);
	}
	b.at[0] = 'g';
	refuse("head.gguf", &b, "begins with GGUF");
	free(b.at);
}

int main(void)
{
	size_t before = start();
	struct bytes b = good_file(3);

	check_good(2);
	check_good(3);
	CASE("every beginning, every byte changed");
	refuse_truncated("cut.gguf", &b);
	mutate("changed.gguf", &b);
	heads();
	keys();
	tensors();
	CASE("memory");
	sweep_memory(write_file("x.gguf", b.at, b.n), path_of("copy.gguf"));
	free(b.at);
	printf("%d malformed files\n", cases);
	return finish(before);
}
