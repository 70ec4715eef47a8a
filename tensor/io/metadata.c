/* SPDX-License-Identifier: MIT
 * Metadata of files.
 */
#include "tensor/io/metadata.h"

#include <stdlib.h>
#include <string.h>

void ql_metadata_clear(struct ql_ctx *ctx, struct ql_metadata *m)
{
	for (int64_t i = 0; i < m->n; i++) {
		ql_free(ctx, m->at[i].key);
		ql_free(ctx, m->at[i].text);
		ql_free(ctx, m->at[i].end);
		ql_tensor_release(ctx, m->at[i].numbers);
	}
	ql_free(ctx, m->at);
	*m = (struct ql_metadata){0};
}

enum ql_status ql_metadata_add(
	struct ql_ctx *ctx, struct ql_metadata *m, const char *key, struct ql_metadata_value **out)
{
	int64_t room = m->room ? m->room * 2 : 8;
	struct ql_metadata_value *at;
	char *copy;

	if (m->n == m->room) {
		at = ql_realloc_array(ctx, m->at, room, sizeof(*at));
		if (!at)
			return QL_ERR_MEMORY;
		m->at = at;
		m->room = room;
	}
	copy = ql_strdup(ctx, key);
	if (!copy)
		return QL_ERR_MEMORY;
	*out = &m->at[m->n++];
	**out = (struct ql_metadata_value){.key = copy};
	return QL_OK;
}

enum ql_status ql_metadata_texts(struct ql_ctx *ctx, struct ql_metadata_value *v, int64_t n, uint64_t bytes)
{
	uint64_t room;

	if (!ql_size_add(bytes, 1, &room))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "%.80s: wanted texts below 2^64 bytes, got more", v->key);
	v->n = n;
	v->text = ql_alloc(ctx, (size_t)room);
	v->end = ql_alloc_array(ctx, n, sizeof(*v->end));
	return v->text && v->end ? QL_OK : QL_ERR_MEMORY;
}

enum ql_status ql_metadata_set_text(struct ql_ctx *ctx, struct ql_metadata_value *v, const char *text, size_t n)
{
	enum ql_status status = ql_metadata_texts(ctx, v, 1, n);

	if (status)
		return status;
	memcpy(v->text, text, n);
	v->text[n] = '\0';
	v->end[0] = n;
	return QL_OK;
}

const struct ql_metadata_value *ql_metadata_find(const struct ql_metadata *m, const char *key)
{
	for (int64_t i = 0; i < m->n; i++)
		if (!strcmp(m->at[i].key, key))
			return &m->at[i];
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

enum ql_status ql_metadata_check(struct ql_ctx *ctx, const struct ql_metadata *m)
{
	const char **sorted = ql_alloc_array(ctx, m->n, sizeof(*sorted));
	enum ql_status status = QL_OK;

	if (!sorted)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < m->n; i++)
		sorted[i] = m->at[i].key;
	qsort(sorted, (size_t)m->n, sizeof(*sorted), compare);
	for (int64_t i = 1; !status && i < m->n; i++)
		if (!strcmp(sorted[i], sorted[i - 1]))
			status = ql_fail(
				ctx, QL_ERR_FORMAT, "metadata: wanted every key once, got '%.80s' twice", sorted[i]);
	ql_free(ctx, sorted);
	return status;
}

const char *ql_metadata_text(const struct ql_metadata_value *v, int64_t i, size_t *n)
{
	uint64_t begin = i ? v->end[i - 1] : 0;

	*n = (size_t)(v->end[i] - begin);
	return v->text + begin;
}
