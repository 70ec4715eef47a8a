/* SPDX-License-Identifier: MIT
 * Checkpoints of llama2.c: the arrays and their order, both kinds of classifier, malformed files.
 */
#include "tests/tensor/io/files.h"

enum { DIM = 8, HIDDEN = 3, LAYERS = 2, HEADS = 2, KV_HEADS = 1, VOCABULARY = 5, STEPS = 3 };

/* Element i of the file's floats is i. */
static struct bytes checkpoint(bool own_classifier)
{
	int32_t head[7] = {DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, own_classifier ? -VOCABULARY : VOCABULARY, STEPS};
	int kv = DIM / HEADS * KV_HEADS;
	int n = VOCABULARY * DIM + 2 * LAYERS * DIM + 2 * LAYERS * DIM * DIM + 2 * LAYERS * kv * DIM +
		3 * LAYERS * HIDDEN * DIM + DIM + STEPS * (DIM / HEADS);
	struct bytes b = {0};

	add(&b, head, sizeof(head));
	for (int i = 0; i < n + (own_classifier ? VOCABULARY * DIM : 0); i++)
		add(&b, &(float){(float)i}, 4);
	return b;
}

/* In the order of the file; the sizes were added up by hand. */
static void check_arrays(bool own_classifier)
{
	static const struct {
		const char *name;
		int64_t shape[3];
		double first;
	} wanted[] = {{"embedding", {5, 8, 0}, 0}, {"rms_attention", {2, 8, 0}, 40}, {"wq", {2, 8, 8}, 56},
		{"wk", {2, 4, 8}, 184}, {"wv", {2, 4, 8}, 248}, {"wo", {2, 8, 8}, 312}, {"rms_ffn", {2, 8, 0}, 440},
		{"w1", {2, 3, 8}, 456}, {"w2", {2, 8, 3}, 504}, {"w3", {2, 3, 8}, 552}, {"rms_final", {8, 0, 0}, 600},
		{"classifier", {5, 8, 0}, 620}};
	struct bytes b = checkpoint(own_classifier);
	struct ql_named_list list = load_bytes("x.bin", &b);

	CASE("arrays, classifier %d", own_classifier);
	CHECK(list.n == (own_classifier ? 13 : 12), "%lld", (long long)list.n);
	for (int64_t i = 1; i < list.n; i++) {
		const struct ql_tensor *t = list.at[i].tensor;

		CHECK(!strcmp(list.at[i].name, wanted[i - 1].name), "%s", list.at[i].name);
		CHECK(t->dtype == QL_float32 && ql_tensor_at_f64(t, 0) == wanted[i - 1].first, "%s", list.at[i].name);
		for (int d = 0; d < 3; d++)
			CHECK(wanted[i - 1].shape[d] == (d < t->rank ? t->shape[d] : 0), "%s", list.at[i].name);
	}
	if (CHECK(list.n > 0 && !strcmp(list.at[0].name, "config"), "no config"))
		for (int i = 0; i < 7; i++)
			CHECK(ql_tensor_at_f64(list.at[0].tensor, i) == ((int[]){8, 3, 2, 2, 1, 5, 3})[i], "%d", i);
	ql_named_clear(ctx, &list);
	free(b.at);
}

static void malformed(void)
{
	static const char *const reasons[7] = {
		"dim: ", "hidden: ", "layers: ", "heads: ", "kv_heads: ", "vocabulary: ", "steps: "};
	struct bytes good = checkpoint(false), b = copy_of(&good);

	CASE("every beginning, every byte of the header changed");
	for (size_t n = 0; n < good.n; n += n < 40 ? 1 : 97)
		refuse("cut.bin", &(struct bytes){good.at, n}, n < 28 ? "header" : "llama2.c");
	good.n = 60;
	mutate("changed.bin", &good);
	CASE("a byte too many");
	add_zeros(&b, 1);
	refuse("bad.bin", &b, "got a file of");
	b.n--;
	CASE("header");
	for (unsigned i = 0; i < 7; i++) {
		uint32_t before = ql_le32(b.at + 4 * i);

		set_le(&b, 4 * i, 4, 0);
		refuse("bad.bin", &b, reasons[i]);
		set_le(&b, 4 * i, 4, i == 5 ? 0x80000000u : 0xffffffffu);
		refuse("bad.bin", &b, i == 5 ? "vocabulary: " : reasons[i]);
		set_le(&b, 4 * i, 4, before);
	}
	set_le(&b, 12, 4, 3);
	refuse("bad.bin", &b, "even parts");
	for (unsigned i = 0; i < 7; i++)
		set_le(&b, 4 * i, 4, i == 3 || i == 4 ? 1 : 0x7ffffffe);
	refuse("bad.bin", &b, "2^64");
	free(b.at);
	free(good.at);
}

static void memory(void)
{
	struct bytes b = checkpoint(true);

	CASE("every allocation fails in turn");
	sweep_memory(write_file("x.bin", b.at, b.n), NULL);
	free(b.at);
}

int main(void)
{
	size_t before = start();

	check_arrays(false);
	check_arrays(true);
	malformed();
	memory();
	printf("%d malformed files\n", cases);
	return finish(before);
}
