/* SPDX-License-Identifier: MIT
 * Header of a safetensors file: 8 bytes length N (little-endian), N bytes JSON, the data. The JSON object has per
 * tensor "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} with offsets from the start of the
 * data, and strings under "__metadata__". Everything is checked before data are read: N against the file (and 100
 * MB, the format's limit), duplicate names, sizes against offsets, and that the tensors cover the data without gap
 * or overlap. Tensors of a dtype or rank that there is none of here have their place; reading them is an error.
 */
#include "tensor/io/safetensors.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_MIN 40                 /* bytes of the shortest legal entry of a tensor, rounded down */
#define ENTRY_MAX 4096               /* bytes of the longest one that is parsed */
#define EXACT_MAX 9007199254740992.0 /* 2^53: larger integers are not exact in cJSON's doubles */

static const struct {
	const char *name;
	struct ql_element_wire wire;
} types[] = {
	{"F32", {QL_float32, 4, false, false}},
	{"F64", {QL_float64, 8, false, false}},
	{"F16", {QL_float16, 2, false, false}},
	{"BF16", {QL_bfloat16, 2, false, false}},
	{"F8_E4M3", {QL_float8_e4m3, 1, false, false}},
	{"F8_E5M2", {QL_float8_e5m2, 1, false, false}},
	{"F8_E8M0", {QL_float8_e8m0, 1, false, false}},
	{"I8", {QL_int8, 1, false, false}},
	{"U8", {QL_uint8, 1, false, false}},
	{"I16", {QL_int16, 2, false, false}},
	{"U16", {QL_uint16, 2, false, false}},
	{"I32", {QL_int32, 4, false, false}},
	{"I64", {QL_int64, 8, false, false}},
	{"BOOL", {QL_bool, 1, false, false}},
	{"U32", {QL_int64, 4, false, true}},
	{"U64", {QL_int64, 8, false, true}},
};

const char *ql_safetensors_type(unsigned dtype)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].wire.dtype == dtype && !types[i].wire.is_unsigned)
			return types[i].name;
	return ql_dtype_is_packed(dtype) ? "U8" : NULL;
}

static enum ql_status bad_entry(struct ql_safetensors *f, const struct ql_safetensor *e, const char *reason)
{
	return ql_fail(f->ctx, QL_ERR_FORMAT, "tensor '%.80s': %s", e->name, reason);
}

enum ql_status ql_safetensors_where(struct ql_safetensors *f, const struct ql_safetensor *e, enum ql_status status)
{
	char reason[sizeof(f->ctx->err)];

	if (!strncmp(f->ctx->err, "tensor '", 8)) /* it has it */
		return status;
	memcpy(reason, f->ctx->err, sizeof(reason));
	return ql_fail(f->ctx, status, "tensor '%.80s': %s", e->name, reason);
}

static bool whole_number(const cJSON *item, uint64_t *out)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < EXACT_MAX))
		return false;
	*out = (uint64_t)item->valuedouble;
	return (double)*out == item->valuedouble;
}

static enum ql_status read_type(
	struct ql_safetensors *f, const struct ql_safetensor *e, const cJSON *item, struct ql_safetensor_fields *out)
{
	if (!cJSON_IsString(item))
		return bad_entry(f, e, "dtype: wanted a string");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, item->valuestring)) {
			out->wire = &types[i].wire;
			return QL_OK;
		}
	return ql_fail(f->ctx, QL_ERR_UNSUPPORTED,
		"tensor '%.80s': dtype: wanted one of BOOL U8 I8 U16 I16 U32 I32 U64 I64 F8_E4M3 F8_E5M2 F8_E8M0 F16 BF16 F32 "
		"F64, got '%.20s'",
		e->name, item->valuestring);
}

static enum ql_status read_shape(
	struct ql_safetensors *f, const struct ql_safetensor *e, const cJSON *item, struct ql_safetensor_fields *out)
{
	const cJSON *size;
	uint64_t value;

	if (!cJSON_IsArray(item))
		return bad_entry(f, e, "shape: wanted a list");
	cJSON_ArrayForEach(size, item)
	{
		if (out->rank == QL_MAX_RANK)
			return ql_fail(f->ctx, QL_ERR_UNSUPPORTED,
				"tensor '%.80s': shape: wanted at most 8 axes, got more", e->name);
		if (!whole_number(size, &value))
			return bad_entry(f, e, "shape: wanted whole numbers from 0 to 2^53");
		out->shape[out->rank++] = (int64_t)value;
	}
	return QL_OK;
}

static enum ql_status read_offsets(
	struct ql_safetensors *f, const struct ql_safetensor *e, const cJSON *item, struct ql_safetensor_fields *out)
{
	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !whole_number(item->child, &out->begin) ||
		!whole_number(item->child->next, &out->end))
		return bad_entry(f, e, "data_offsets: wanted two whole numbers from 0 to 2^53");
	if (out->begin > out->end || out->end > f->n_data)
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"tensor '%.80s': data_offsets: wanted a range in 0 to %llu, got %llu to %llu", e->name,
			(unsigned long long)f->n_data, (unsigned long long)out->begin, (unsigned long long)out->end);
	return QL_OK;
}

static enum ql_status read_fields(
	struct ql_safetensors *f, const struct ql_safetensor *e, const cJSON *object, struct ql_safetensor_fields *out)
{
	static const char *const keys[3] = {"dtype", "shape", "data_offsets"};
	const cJSON *found[3] = {NULL, NULL, NULL}, *item;
	enum ql_status status;

	cJSON_ArrayForEach(item, object)
	{
		int k = 0;

		while (k < 3 && strcmp(keys[k], item->string))
			k++;
		if (k == 3 || found[k])
			return ql_fail(f->ctx, QL_ERR_FORMAT,
				"tensor '%.80s': wanted the keys dtype, shape, data_offsets once, got "
				"'%.20s'",
				e->name, item->string);
		found[k] = item;
	}
	if (!found[0] || !found[1] || !found[2])
		return bad_entry(f, e, "wanted the keys dtype, shape and data_offsets, one is missing");
	status = read_offsets(f, e, found[2], out);
	if (!status)
		status = read_type(f, e, found[0], out);
	return status ? status : read_shape(f, e, found[1], out);
}

enum ql_status ql_safetensors_fields(
	struct ql_safetensors *f, const struct ql_safetensor *e, struct ql_safetensor_fields *out)
{
	const char *end = NULL;
	enum ql_status status;
	cJSON *object;

	*out = (struct ql_safetensor_fields){0};
	if (e->length > ENTRY_MAX)
		return bad_entry(f, e, "wanted at most 4096 bytes of description, got more");
	object = cJSON_ParseWithLengthOpts(f->text + e->value, e->length, &end, false);
	if (!object || end != f->text + e->value + e->length || !cJSON_IsObject(object))
		status = bad_entry(f, e, "wanted a JSON object, got something else");
	else
		status = read_fields(f, e, object, out);
	cJSON_Delete(object);
	return status;
}

static enum ql_status check_entry(struct ql_safetensors *f, struct ql_safetensor *e)
{
	struct ql_safetensor_fields fields;
	uint64_t bytes;
	enum ql_status status = ql_safetensors_fields(f, e, &fields);

	e->begin = fields.begin;
	e->end = fields.end;
	if (status)
		return status == QL_ERR_UNSUPPORTED ? QL_OK : status; /* that tensor alone cannot be read */
	status = ql_elements_size(f->ctx, fields.rank, fields.shape, fields.wire->bytes, &bytes);
	if (status)
		return ql_safetensors_where(f, e, status);
	if (bytes != fields.end - fields.begin)
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"tensor '%.80s': data_offsets: wanted %llu bytes as dtype and shape need, got %llu", e->name,
			(unsigned long long)bytes, (unsigned long long)(fields.end - fields.begin));
	return QL_OK;
}

/* Checks length and braces and counts the tensors. Each entry has a minimum length, so the table of entries is at
 * most a small multiple of the header. */
static enum ql_status read_header(struct ql_safetensors *f)
{
	uint8_t head[8];
	uint64_t n;
	struct ql_json j;
	struct ql_json_value value;
	enum ql_status status = ql_reader_at(f->r, 0, 8, head, "header");

	if (status)
		return status;
	n = ql_le64(head);
	if (n > QL_SAFETENSORS_HEADER_MAX || n > f->r->size - 8)
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"header: wanted at most %llu bytes (the file, and the format's cap of 100 MB), got a "
			"length of %llu",
			(unsigned long long)(f->r->size - 8 < QL_SAFETENSORS_HEADER_MAX ? f->r->size - 8
											: QL_SAFETENSORS_HEADER_MAX),
			(unsigned long long)n);
	status = ql_reader_take(f->r, 8, n, "header", &f->text);
	if (status)
		return status;
	f->n_text = (size_t)n;
	f->data = 8 + n;
	f->n_data = f->r->size - f->data;
	if (n == 0 || f->text[0] != '{')
		return ql_fail(f->ctx, QL_ERR_FORMAT, "header: wanted '{' as its first byte");
	status = ql_json_open(f->ctx, "header", f->text, f->n_text, &j);
	while (!status && !(status = ql_json_next(&j, NULL, &value)) && !j.done) {
		if (*value.at != '{')
			return ql_fail(f->ctx, QL_ERR_FORMAT, "header: wanted an object for every name, got '%.*s'",
				(int)(value.n < 20 ? value.n : 20), value.at);
		f->n += value.n >= ENTRY_MIN;
	}
	return status ? status : ql_json_close(&j);
}

/* Fills the entries and finds the metadata. */
static enum ql_status read_entries(struct ql_safetensors *f)
{
	struct ql_json j;
	struct ql_json_value value;
	struct ql_safetensor *e = f->entry;
	char *name;
	enum ql_status status = ql_json_open(f->ctx, "header", f->text, f->n_text, &j);

	while (!status && !(status = ql_json_next(&j, &name, &value)) && !j.done) {
		if (!strcmp(name, "__metadata__")) {
			if (f->metadata.at)
				return ql_fail(f->ctx, QL_ERR_FORMAT, "header: wanted __metadata__ once, got it twice");
			f->metadata = value;
			continue;
		}
		if (value.n < ENTRY_MIN || e == f->entry + f->n)
			return ql_fail(f->ctx, QL_ERR_FORMAT,
				"tensor '%.80s': wanted the keys dtype, shape and data_offsets, got '%.*s'", name,
				(int)(value.n < 40 ? value.n : 40), value.at);
		*e = (struct ql_safetensor){
			.name = name, .value = (uint32_t)(value.at - f->text), .length = (uint32_t)value.n};
		status = check_entry(f, e++);
	}
	f->n = (uint32_t)(e - f->entry);
	return status;
}

static int compare_names(const void *a, const void *b, void *file)
{
	const struct ql_safetensors *f = file;

	return strcmp(f->entry[*(const uint32_t *)a].name, f->entry[*(const uint32_t *)b].name);
}

static int compare_offsets(const void *a, const void *b, void *file)
{
	const struct ql_safetensors *f = file;
	const struct ql_safetensor *x = &f->entry[*(const uint32_t *)a], *y = &f->entry[*(const uint32_t *)b];

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Checks for duplicate names, gaps and overlaps. */
static enum ql_status sort_entries(struct ql_safetensors *f)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < f->n; i++)
		f->by_name[i] = f->by_offset[i] = i;
	qsort_r(f->by_name, f->n, sizeof(uint32_t), compare_names, f);
	for (uint32_t i = 1; i < f->n; i++)
		if (!strcmp(f->entry[f->by_name[i]].name, f->entry[f->by_name[i - 1]].name))
			return bad_entry(f, &f->entry[f->by_name[i]], "wanted every name once, got it twice");
	qsort_r(f->by_offset, f->n, sizeof(uint32_t), compare_offsets, f);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct ql_safetensor *e = &f->entry[f->by_offset[i]];

		if (e->begin != end)
			return bad_entry(f, e,
				e->begin < end ? "data_offsets: wanted data of its own, got some of another tensor"
					       : "data_offsets: wanted them to follow the tensor before, got a gap");
		end = e->end;
	}
	if (end != f->n_data)
		return ql_fail(f->ctx, QL_ERR_FORMAT, "data: wanted %llu bytes as the header says, got %llu",
			(unsigned long long)end, (unsigned long long)f->n_data);
	return QL_OK;
}

/* Compares `name` with base followed by suffix. */
static int compare_joined(const char *name, const char *base, size_t n_base, const char *suffix)
{
	int order = strncmp(name, base, n_base);

	return order ? order : strcmp(name + n_base, suffix);
}

struct ql_safetensor *ql_safetensors_find(struct ql_safetensors *f, const char *base, size_t n, const char *tail)
{
	uint32_t lo = 0, hi = f->n;

	while (lo < hi) {
		uint32_t middle = lo + (hi - lo) / 2;
		struct ql_safetensor *e = &f->entry[f->by_name[middle]];
		int order = compare_joined(e->name, base, n, tail);

		if (order == 0)
			return e;
		if (order < 0)
			lo = middle + 1;
		else
			hi = middle;
	}
	return NULL;
}

static enum ql_status keep_text(struct ql_safetensors *f, const char *key, const char *text)
{
	struct ql_metadata_value *v;
	enum ql_status status;

	if (f->other->n == QL_SAFETENSORS_KEYS_MAX)
		return ql_fail(f->ctx, QL_ERR_FORMAT, "__metadata__: wanted at most %d keys, got more",
			QL_SAFETENSORS_KEYS_MAX);
	status = ql_metadata_add(f->ctx, f->other, key, &v);
	return status ? status : ql_metadata_set_text(f->ctx, v, text, strlen(text));
}

static enum ql_status read_note(
	struct ql_safetensors *f, struct ql_json *j, const char *key, struct ql_json_value value)
{
	size_t n = strlen(key), tail = strlen(QL_NOTE_TAIL);
	struct ql_safetensor *e;
	char *text;
	enum ql_status status = ql_json_string(j, value, &text);

	if (status)
		return status;
	if (n < tail || strcmp(key + n - tail, QL_NOTE_TAIL))
		return keep_text(f, key, text);
	e = ql_safetensors_find(f, key, n - tail, "");
	if (!e)
		return ql_fail(f->ctx, QL_ERR_FORMAT,
			"metadata '%.80s': wanted the note of a tensor in the file, there is none", key);
	if (e->note)
		return bad_entry(f, e, "wanted one quantization note, got two");
	e->note = (uint32_t)(text - f->text);
	return QL_OK;
}

/* The metadata must be strings; attaches notes to their tensors. */
static enum ql_status read_metadata(struct ql_safetensors *f)
{
	struct ql_json j;
	struct ql_json_value value;
	char *key;
	enum ql_status status;

	if (!f->metadata.at)
		return QL_OK;
	status = ql_json_open(f->ctx, "__metadata__", f->metadata.at, f->metadata.n, &j);
	while (!status && !(status = ql_json_next(&j, &key, &value)) && !j.done)
		status = read_note(f, &j, key, value);
	return status ? status : ql_metadata_check(f->ctx, f->other);
}

/* Marks the parts of every quantized tensor, themselves quantized or not, which are not loaded as tensors of their own. */
static void mark_parts(struct ql_safetensors *f)
{
	static const char *const tails[] = {QL_SCALE_TAIL, QL_ZERO_TAIL, QL_SHIFT_TAIL, QL_BITS_TAIL, QL_VALUES_TAIL};

	for (uint32_t i = 0; i < f->n; i++) {
		struct ql_safetensor *e = &f->entry[i];

		if (!e->note || !strstr(f->text + e->note, " scheme="))
			continue;
		for (size_t k = 0; k < sizeof(tails) / sizeof(*tails); k++) {
			struct ql_safetensor *part = ql_safetensors_find(f, e->name, strlen(e->name), tails[k]);

			if (part)
				part->part = true;
		}
	}
}

enum ql_status ql_safetensors_open(struct ql_safetensors *f)
{
	enum ql_status status = read_header(f);

	if (status)
		return status;
	f->entry = ql_alloc_array(f->ctx, (int64_t)f->n, sizeof(*f->entry));
	f->by_name = ql_alloc_array(f->ctx, (int64_t)f->n, sizeof(*f->by_name));
	f->by_offset = ql_alloc_array(f->ctx, (int64_t)f->n, sizeof(*f->by_offset));
	if (!f->entry || !f->by_name || !f->by_offset)
		return QL_ERR_MEMORY;
	status = read_entries(f);
	if (!status)
		status = sort_entries(f);
	if (!status)
		status = read_metadata(f);
	if (!status)
		mark_parts(f);
	return status;
}

void ql_safetensors_close(struct ql_safetensors *f)
{
	ql_free(f->ctx, f->text);
	ql_free(f->ctx, f->entry);
	ql_free(f->ctx, f->by_name);
	ql_free(f->ctx, f->by_offset);
}
