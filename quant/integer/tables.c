/* SPDX-License-Identifier: MIT
 * A table that is new takes the place of the one that was kept first.
 */
#include "quant/integer/tables.h"

#include <string.h>

#define TABLES 64 /* 27 KiB */

struct ql_tables {
	uint64_t hash[TABLES]; /* 0: none */
	struct ql_table_key key[TABLES];
	uint8_t codes[TABLES][QL_TABLE_CODES];
	int next;
};

static bool one_option(const struct ql_call *call)
{
	const struct ql_attr *a = call->op->doc.attrs;

	for (int i = 0; a && call->attr && a[i].type != QL_ATTR_END; i++)
		if (call->attr[i].set && a[i].type != QL_ATTR_SPEC)
			return false;
	return true;
}

static bool is_plain(const struct ql_spec *s)
{
	return s->scheme && s->scheme->affine && !s->scheme->host && ql_dtypes[s->dtype].bits == 8 && s->has_scale &&
	       !s->scale_tensor && !s->zero_tensor && !s->each_bits && !s->grid && !s->importance && !s->stochastic &&
	       !s->axis && !s->block && !s->outer;
}

bool ql_table_key_of(const struct ql_call *call, struct ql_table_key *key)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_tensor *x = call->in[0];

	if (!v || !is_plain(v->spec) || call->n_in != 1 || !one_option(call) || !x->q || !ql_qparams_affine(x->q) ||
		x->q->scheme->host || x->q->codes.grid || x->q->axis >= 0 || x->q->block ||
		ql_dtypes[x->dtype].bits != 8)
		return false;
	memset(key, 0, sizeof(*key));
	key->op = call->op;
	key->scheme = x->q->scheme;
	key->scale = ql_tensor_at_f64(x->q->scale, 0);
	key->zero = x->q->zero_point ? (int64_t)ql_tensor_at_f64(x->q->zero_point, 0) : 0;
	key->lo = x->q->codes.lo;
	key->hi = x->q->codes.hi;
	key->dtype = x->dtype;
	memcpy(&key->out, v->spec, sizeof(key->out));
	return true;
}

static uint64_t hash_of(const struct ql_table_key *key)
{
	const char *bytes = (const char *)key;
	uint64_t hash = 0x9e3779b97f4a7c15u, word;

	_Static_assert(sizeof(*key) % sizeof(word) == 0, "whole words");
	for (size_t i = 0; i < sizeof(*key); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash | 1;
}

const uint8_t *ql_table_find(const struct ql_ctx *ctx, const struct ql_table_key *key)
{
	const struct ql_tables *t = ctx->tables;
	const char *wanted = (const char *)key;
	uint64_t hash = t ? hash_of(key) : 0;

	for (int i = 0; t && i < TABLES; i++)
		if (t->hash[i] == hash && !memcmp((const char *)&t->key[i], wanted, sizeof(*key)))
			return t->codes[i];
	return NULL;
}

void ql_table_keep(struct ql_ctx *ctx, const struct ql_table_key *key, const uint8_t *codes)
{
	struct ql_tables *t = ctx->tables;
	int i;

	if (!t)
		t = ctx->tables = ql_alloc_zeroed(ctx, sizeof(*t));
	if (!t)
		return;
	i = t->next;
	t->next = (i + 1) % TABLES;
	t->hash[i] = hash_of(key);
	memcpy(&t->key[i], key, sizeof(*key));
	memcpy(t->codes[i], codes, QL_TABLE_CODES);
}
