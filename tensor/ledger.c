/* SPDX-License-Identifier: MIT
 * The ledger: an append-only array of rows, found by an open-addressing hash of (op, path, kernel, reason,
 * operands). All strings are static, so their addresses identify them. Equal strings may have several addresses and
 * must share a row: each combination of addresses is an alias of a row.
 */
#include "tensor/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/op.h"

struct alias {
	struct ql_ledger_row key; /* addresses; its count is not used */
	uint32_t row;
};

struct ql_ledger {
	struct ql_ledger_row *rows; /* rows[0] unused; same capacity as aliases */
	struct alias *aliases;      /* aliases[0] unused */
	uint32_t count, alias_count, room;
	uint32_t *slots; /* numbers of aliases; 2 * room of them */
};

#define QL_LEDGER_FIRST 64

enum ql_status ql_ledger_init(struct ql_ctx *ctx)
{
	struct ql_ledger *l = calloc(1, sizeof(*l));

	ctx->ledger = l;
	if (!l)
		return QL_ERR_MEMORY;
	l->room = QL_LEDGER_FIRST;
	l->count = l->alias_count = 1;
	l->rows = calloc(l->room, sizeof(*l->rows));
	l->aliases = calloc(l->room, sizeof(*l->aliases));
	l->slots = calloc(l->room, 2 * sizeof(*l->slots));
	return l->rows && l->aliases && l->slots ? QL_OK : QL_ERR_MEMORY;
}

void ql_ledger_free(struct ql_ctx *ctx)
{
	if (!ctx->ledger)
		return;
	free(ctx->ledger->rows);
	free(ctx->ledger->aliases);
	free(ctx->ledger->slots);
	free(ctx->ledger);
	ctx->ledger = NULL;
}

static uint32_t hash(const struct ql_ledger_row *r)
{
	uint64_t h = r->operands;

	h = (h ^ (uintptr_t)r->op) * 0x9e3779b97f4a7c15u;
	h = (h ^ (uintptr_t)r->path) * 0x9e3779b97f4a7c15u;
	h = (h ^ (uintptr_t)r->kernel) * 0x9e3779b97f4a7c15u;
	h = (h ^ (uintptr_t)r->reason) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

static bool same(const struct ql_ledger_row *a, const struct ql_ledger_row *b)
{
	return a->op == b->op && a->path == b->path && a->kernel == b->kernel && a->reason == b->reason &&
	       a->operands == b->operands;
}

static bool equal_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool equal(const struct ql_ledger_row *a, const struct ql_ledger_row *b)
{
	return a->operands == b->operands && equal_text(a->op, b->op) && equal_text(a->path, b->path) &&
	       equal_text(a->kernel, b->kernel) && equal_text(a->reason, b->reason);
}

static uint32_t *slot_of(struct ql_ledger *l, const struct ql_ledger_row *r)
{
	uint32_t mask = 2 * l->room - 1, at = hash(r) & mask;

	while (l->slots[at] && !same(&l->aliases[l->slots[at]].key, r))
		at = (at + 1) & mask;
	return &l->slots[at];
}

static bool grow(struct ql_ledger *l)
{
	struct ql_ledger_row *rows = reallocarray(l->rows, l->room, 2 * sizeof(*rows));
	struct alias *aliases;
	uint32_t *slots;

	if (!rows)
		return false;
	l->rows = rows;
	aliases = reallocarray(l->aliases, l->room, 2 * sizeof(*aliases));
	if (!aliases)
		return false;
	l->aliases = aliases;
	slots = calloc(l->room, 4 * sizeof(*slots));
	if (!slots)
		return false;
	free(l->slots);
	l->slots = slots;
	l->room *= 2;
	for (uint32_t i = 1; i < l->alias_count; i++)
		*slot_of(l, &l->aliases[i].key) = i;
	return true;
}

/* Finds or adds the row with these strings. There are at most as many rows as aliases. */
static uint32_t row_of(struct ql_ledger *l, const struct ql_ledger_row *row)
{
	for (uint32_t i = 1; i < l->count; i++)
		if (equal(&l->rows[i], row))
			return i;
	l->rows[l->count] = *row;
	return l->count++;
}

uint32_t ql_ledger_count(
	struct ql_ctx *ctx, const char *op, const char *path, const char *kernel, const char *reason, uint64_t operands)
{
	struct ql_ledger *l = ctx->ledger;
	struct ql_ledger_row row = {op, path, kernel, reason, operands, 0};
	uint32_t *slot = slot_of(l, &row), found;

	if (!*slot) {
		if (l->alias_count == l->room) {
			if (!grow(l))
				return 0;
			slot = slot_of(l, &row);
		}
		l->aliases[l->alias_count] = (struct alias){row, row_of(l, &row)};
		*slot = l->alias_count++;
	}
	found = l->aliases[*slot].row;
	l->rows[found].count++;
	return found;
}

void ql_ledger_add(struct ql_ctx *ctx, uint32_t row, int64_t n)
{
	ctx->ledger->rows[row].count += (uint64_t)n;
}

/* 8 bits for each of the first six operands: dtype + 1, top bit: quantized. */
uint64_t ql_ledger_key(const struct ql_call *call)
{
	uint64_t key = 0;
	int n = call->n_in < 6 ? call->n_in : 6;

	for (int i = 0; i < n; i++)
		key |= (uint64_t)(call->in[i]->dtype + 1u + (call->in[i]->q ? 128u : 0u)) << (8 * i);
	return key;
}

char *ql_ledger_operands(uint64_t key, char text[96])
{
	int n = 0;

	text[0] = '\0';
	for (; key; key >>= 8)
		n += snprintf(text + n, (size_t)(96 - n), "%s%s%s", n ? " x " : "",
			ql_dtype_name((unsigned)(key & 127) - 1), key & 128 ? "q" : "");
	return text;
}

uint32_t ql_ledger_rows(const struct ql_ctx *ctx)
{
	return ctx->ledger->count - 1;
}

const struct ql_ledger_row *ql_ledger_row(const struct ql_ctx *ctx, uint32_t row)
{
	return row >= 1 && row < ctx->ledger->count ? &ctx->ledger->rows[row] : NULL;
}

void ql_ledger_reset(struct ql_ctx *ctx)
{
	for (uint32_t i = 1; i < ctx->ledger->count; i++)
		ctx->ledger->rows[i].count = 0;
}

uint64_t ql_ledger_fallbacks(const struct ql_ctx *ctx)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < ctx->ledger->count; i++)
		if (!strcmp(ctx->ledger->rows[i].path, "fallback"))
			n += ctx->ledger->rows[i].count;
	return n;
}
