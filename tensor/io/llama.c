/* SPDX-License-Identifier: MIT
 * Checkpoints of llama2.c (A. Karpathy), version 0: seven little-endian int32 (dim, hidden, layers, heads,
 * kv_heads, vocabulary, steps), then float32 arrays without names in a fixed order, one array for all layers:
 *
 * 	embedding (vocabulary, dim)   rms_attention (layers, dim)   wq (layers, dim, dim)   wk, wv (layers, kv, dim)
 * 	wo (layers, dim, dim)   rms_ffn (layers, dim)   w1 (layers, hidden, dim)   w2 (layers, dim, hidden)
 * 	w3 (layers, hidden, dim)   rms_final (dim)   two tables (steps, dim / heads / 2) of the rotations, skipped
 * 	classifier (vocabulary, dim) when the vocabulary is written as a negative number; else it is the embedding
 *
 * where kv = kv_heads * dim / heads. The size of the whole file is checked before allocating: the format has no
 * magic number, so only its exact size distinguishes it from other .bin files.
 */
#include "tensor/io/elements.h"
#include "tensor/io/format.h"

enum { DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY, STEPS, FIELDS };

#define MOST 13 /* arrays of a file */

struct array {
	const char *name; /* NULL: not loaded */
	int rank;
	int64_t shape[3];
};

static enum ql_status read_header(const struct ql_reader *r, int32_t field[FIELDS], bool *own_classifier)
{
	static const char *const names[FIELDS] = {
		"dim", "hidden", "layers", "heads", "kv_heads", "vocabulary", "steps"};
	uint8_t head[4 * FIELDS];
	enum ql_status status = ql_reader_at(r, 0, sizeof(head), head, "header");

	if (status)
		return status;
	for (int i = 0; i < FIELDS; i++)
		field[i] = (int32_t)ql_le32(head + 4 * i);
	*own_classifier = field[VOCABULARY] < 0;
	if (*own_classifier && field[VOCABULARY] > INT32_MIN)
		field[VOCABULARY] = -field[VOCABULARY];
	for (int i = 0; i < FIELDS; i++)
		if (field[i] <= 0)
			return ql_fail(r->ctx, QL_ERR_FORMAT,
				"header: %s: wanted a number above 0, got %d; is it a llama2.c checkpoint?", names[i],
				field[i]);
	if (field[DIM] % (2 * (int64_t)field[HEADS]) || field[HEADS] % field[KV_HEADS])
		return ql_fail(r->ctx, QL_ERR_FORMAT,
			"header: wanted dim in even parts for heads and heads in parts for kv_heads, got %d, %d, %d",
			field[DIM], field[HEADS], field[KV_HEADS]);
	return QL_OK;
}

static int arrays_of(const int32_t field[FIELDS], bool own_classifier, struct array list[MOST])
{
	int64_t n = field[LAYERS], d = field[DIM], h = field[HIDDEN], v = field[VOCABULARY];
	int64_t half = d / field[HEADS] / 2, kv = 2 * half * field[KV_HEADS];
	int count = 0;

	list[count++] = (struct array){"embedding", 2, {v, d}};
	list[count++] = (struct array){"rms_attention", 2, {n, d}};
	list[count++] = (struct array){"wq", 3, {n, d, d}};
	list[count++] = (struct array){"wk", 3, {n, kv, d}};
	list[count++] = (struct array){"wv", 3, {n, kv, d}};
	list[count++] = (struct array){"wo", 3, {n, d, d}};
	list[count++] = (struct array){"rms_ffn", 2, {n, d}};
	list[count++] = (struct array){"w1", 3, {n, h, d}};
	list[count++] = (struct array){"w2", 3, {n, d, h}};
	list[count++] = (struct array){"w3", 3, {n, h, d}};
	list[count++] = (struct array){"rms_final", 1, {d}};
	list[count++] = (struct array){NULL, 3, {2, field[STEPS], half}};
	if (own_classifier)
		list[count++] = (struct array){"classifier", 2, {v, d}};
	return count;
}

static enum ql_status check_size(const struct ql_reader *r, const struct array *list, int n)
{
	uint64_t bytes, total = 4 * FIELDS;
	enum ql_status status = QL_OK;

	for (int i = 0; i < n && !status; i++) {
		status = ql_elements_size(r->ctx, list[i].rank, list[i].shape, 4, &bytes);
		if (!status && !ql_size_add(total, bytes, &total))
			status = ql_fail(r->ctx, QL_ERR_FORMAT, "header: wanted sizes below 2^64 bytes, got more");
	}
	if (!status && total != r->size)
		status = ql_fail(r->ctx, QL_ERR_FORMAT,
			"wanted %llu bytes by the header, got a file of %llu; is it a llama2.c checkpoint (version 0)?",
			(unsigned long long)total, (unsigned long long)r->size);
	return status;
}

static enum ql_status add_config(const struct ql_reader *r, const int32_t field[FIELDS], struct ql_named_list *out)
{
	struct ql_tensor *t;
	enum ql_status status = ql_tensor_new(r->ctx, QL_int64, 1, &(int64_t){FIELDS}, &t);

	if (status)
		return status;
	for (int i = 0; i < FIELDS; i++)
		((int64_t *)t->storage->data)[i] = field[i];
	status = ql_named_add(r->ctx, out, "config", t);
	ql_tensor_release(r->ctx, t);
	return status;
}

static enum ql_status load_array(
	const struct ql_reader *r, const struct array *a, uint64_t offset, uint64_t bytes, struct ql_named_list *out)
{
	struct ql_tensor *t;
	enum ql_status status = ql_tensor_new(r->ctx, QL_float32, a->rank, a->shape, &t);

	if (status)
		return status;
	status = ql_reader_at(r, offset, bytes, t->storage->data, a->name);
	if (!status)
		status = ql_named_add(r->ctx, out, a->name, t);
	ql_tensor_release(r->ctx, t);
	return status;
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct array list[MOST];
	int32_t field[FIELDS];
	uint64_t offset = 4 * FIELDS, bytes = 0;
	bool own_classifier = false;
	enum ql_status status = read_header(r, field, &own_classifier);
	int n = status ? 0 : arrays_of(field, own_classifier, list);

	if (!status)
		status = check_size(r, list, n);
	if (!status)
		status = add_config(r, field, out);
	for (int i = 0; i < n && !status; i++, offset += bytes) {
		status = ql_elements_size(r->ctx, list[i].rank, list[i].shape, 4, &bytes);
		if (!status && list[i].name)
			status = load_array(r, &list[i], offset, bytes, out);
	}
	return status;
}

const struct ql_format ql_format_llama = {
	.doc = {.name = "llama",
		.usage = "tensor.load 'stories260K.bin'",
		.text = "A checkpoint of llama2.c (version 0, float32): config (int64: dim, hidden, layers, heads, kv_heads, "
			"vocabulary, steps), embedding, rms_attention, wq, wk, wv, wo, rms_ffn, w1, w2, w3, rms_final, and "
			"classifier unless it is the embedding. Arrays of layers have the layer as their first axis. It can only "
			"be read.",
		.example = "file = data.find 'weights/stories260K.bin'\n"
			   "if file then assert(tensor.load(file).wk:size(1) == 5) end"},
	.extensions = ".bin",
	.load = load,
};
