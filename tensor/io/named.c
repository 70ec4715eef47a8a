/* SPDX-License-Identifier: MIT
 * List of named tensors.
 */
#include "tensor/io/named.h"

#include <stdlib.h>
#include <string.h>

#define REASONS 64 /* kept of a list */

static enum ql_status make_room(struct ql_ctx *ctx, struct ql_named_list *list)
{
	int64_t room = list->room ? list->room * 2 : 8;
	struct ql_named_tensor *at;

	if (list->n < list->room)
		return QL_OK;
	at = ql_realloc_array(ctx, list->at, room, sizeof(*at));
	if (!at)
		return QL_ERR_MEMORY;
	list->at = at;
	list->room = room;
	return QL_OK;
}

enum ql_status ql_named_add(struct ql_ctx *ctx, struct ql_named_list *list, const char *name, struct ql_tensor *t)
{
	enum ql_status status = make_room(ctx, list);
	char *copy;

	if (status)
		return status;
	copy = ql_strdup(ctx, name);
	if (!copy)
		return QL_ERR_MEMORY;
	list->at[list->n++] = (struct ql_named_tensor){.name = copy, .tensor = ql_tensor_keep(t)};
	return QL_OK;
}

enum ql_status ql_named_refuse(struct ql_ctx *ctx, struct ql_named_list *list, const char *name)
{
	struct ql_named_refusal *at = list->refused, added = {NULL, NULL};
	int64_t room = list->room_refused ? list->room_refused * 2 : 8;

	if (list->n_refused < REASONS)
		added.why = ql_strdup(ctx, ctx->err);
	added.name = ql_strdup(ctx, name);
	if (list->n_refused == list->room_refused)
		at = ql_realloc_array(ctx, list->refused, room, sizeof(*at));
	if (at && list->n_refused == list->room_refused) {
		list->refused = at;
		list->room_refused = room;
	}
	if (!at || !added.name || (!added.why && list->n_refused < REASONS)) {
		ql_free(ctx, added.why);
		ql_free(ctx, added.name);
		return QL_ERR_MEMORY;
	}
	list->refused[list->n_refused++] = added;
	return QL_OK;
}

void ql_named_clear(struct ql_ctx *ctx, struct ql_named_list *list)
{
	for (int64_t i = 0; i < list->n_refused; i++) {
		ql_free(ctx, list->refused[i].name);
		ql_free(ctx, list->refused[i].why);
	}
	ql_free(ctx, list->refused);
	for (int64_t i = 0; i < list->n; i++) {
		ql_free(ctx, list->at[i].name);
		ql_tensor_release(ctx, list->at[i].tensor);
	}
	ql_free(ctx, list->at);
	ql_metadata_clear(ctx, &list->metadata);
	*list = (struct ql_named_list){0};
}

static int compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

enum ql_status ql_named_check(struct ql_ctx *ctx, const struct ql_named_list *list)
{
	const char **sorted = ql_alloc_array(ctx, list->n, sizeof(*sorted));
	enum ql_status status = QL_OK;

	if (!sorted)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < list->n; i++)
		sorted[i] = list->at[i].name;
	qsort(sorted, (size_t)list->n, sizeof(*sorted), compare);
	for (int64_t i = 1; !status && i < list->n; i++)
		if (!strcmp(sorted[i], sorted[i - 1]))
			status = ql_fail(ctx, QL_ERR_ARGUMENT, "wanted every name once, got '%.80s' twice", sorted[i]);
	ql_free(ctx, sorted);
	return status;
}

struct ql_tensor *ql_named_find(const struct ql_named_list *list, const char *name)
{
	for (int64_t i = 0; i < list->n; i++)
		if (!strcmp(list->at[i].name, name))
			return list->at[i].tensor;
	return NULL;
}
