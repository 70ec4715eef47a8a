/* SPDX-License-Identifier: MIT
 * Formats made at run time.
 */
#include "quant/user_format.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant/spec.h"
#include "tensor/op.h"

extern const struct ql_scheme ql_scheme_grid, ql_scheme_functions;

/* The narrowest dtype that holds codes up to `most`. */
static unsigned storage_of(enum ql_dtype_kind kind, int64_t most)
{
	unsigned best = kind == QL_KIND_INT ? QL_int8 : QL_uint8;

	for (unsigned i = 0; i < QL_DTYPE_COUNT; i++)
		if (ql_dtypes[i].kind == kind && ql_dtypes[i].hi >= most && ql_dtypes[i].bits < ql_dtypes[best].bits)
			best = i;
	return best;
}

static enum ql_status check_name(struct ql_ctx *ctx, const char *name)
{
	const struct ql_quant_format *format = ql_quant_format_by_name(ctx, name);
	size_t n = strlen(name);
	bool good = n > 0 && n < QL_FORMAT_NAME && isalpha((unsigned char)name[0]);

	for (size_t i = 0; i < n; i++)
		good &= isalnum((unsigned char)name[i]) || name[i] == '_';
	if (!good)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"scheme: name: wanted a letter, then up to 30 letters, digits or _, got '%.40s'", name);
	if ((format && !format->stored) || ql_dtype_by_name(name) >= 0 || ql_scheme_by_name(name))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"scheme: name: wanted a new one, got '%s', which is a dtype, scheme or format of Quoll", name);
	return QL_OK;
}

static enum ql_status check_values(struct ql_ctx *ctx, const struct ql_user_fields *f)
{
	if (f->functions && (f->bits < 2 || f->bits > 8))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: bits: wanted 2 to 8, got %lld", (long long)f->bits);
	if (!f->functions && (f->n < 2 || f->n > QL_GRID_MAX))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: table: wanted 2 to %d values, got %lld", QL_GRID_MAX,
			(long long)f->n);
	for (int64_t i = 0; i < f->n && !f->functions; i++)
		if (!isfinite((float)f->value[i]))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"scheme: table: wanted finite float32 values, got %g as number %lld", f->value[i],
				(long long)i + 1);
	if (f->unit < 0 || !isfinite((float)f->unit))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: unit: wanted a finite number above 0, got %g", f->unit);
	if (f->block < 0 || f->block > INT32_MAX)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: block: wanted 1 or more elements, got %lld",
			(long long)f->block);
	return QL_OK;
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const void *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
	return hash;
}

const char *ql_format_stored_name(const struct ql_quant_format *format)
{
	return format->stored ? format->stored : format->doc.name;
}

static void fill_names(struct ql_user_format *u, const struct ql_user_fields *f)
{
	snprintf(u->name, sizeof(u->name), "%s", f->name);
	snprintf(u->text, sizeof(u->text), "%s",
		f->text        ? f->text
		: f->functions ? "functions of the user"
			       : "a table of the user");
	u->format.doc = (struct ql_doc){.name = u->name, .usage = u->name, .text = u->text};
	u->format.block = f->block;
	u->format.stored = u->stored;
}

/* Functions have no hash, so files identify them by name only. */
static void fill_functions(struct ql_user_format *u, const struct ql_user_fields *f)
{
	bool is_signed = f->is_signed;
	int64_t most = (INT64_C(1) << (f->bits - (is_signed ? 1 : 0))) - 1;

	fill_names(u, f);
	snprintf(u->stored, sizeof(u->stored), "%s" QL_FORMAT_FUNCTIONS, f->name);
	u->functions = *f->functions;
	u->functions.name = u->name;
	u->functions.unit = f->unit > 0 ? (float)f->unit : 1;
	u->format.dtype = storage_of(is_signed ? QL_KIND_INT : QL_KIND_UINT, most);
	u->format.bits = (int)f->bits;
	u->format.scheme = &ql_scheme_functions;
	u->format.functions = &u->functions;
}

static bool fill_table(struct ql_user_format *u, const struct ql_user_fields *f)
{
	float value[QL_GRID_MAX];
	size_t size;

	for (int64_t i = 0; i < f->n; i++)
		value[i] = (float)f->value[i];
	if (!ql_grid_fill(&u->table, value, (int)f->n, QL_TIE_LOWER) || !(u->table.unit > 0))
		return false;
	if (f->unit > 0)
		u->table.unit = (float)f->unit;
	ql_grid_use_index(&u->table, &u->index);
	fill_names(u, f);
	size = (size_t)f->n * sizeof(*value); /* size: at most 256 values */
	snprintf(u->stored, sizeof(u->stored), "%s#%016llx", f->name, (unsigned long long)hash_of(value, size));
	u->format.dtype = storage_of(QL_KIND_UINT, f->n - 1);
	u->format.scheme = &ql_scheme_grid;
	u->format.table = &u->table;
	return true;
}

enum ql_status ql_user_format_add(struct ql_ctx *ctx, const struct ql_user_fields *f)
{
	enum ql_status status = check_name(ctx, f->name);
	struct ql_user_format *u;

	if (!status)
		status = check_values(ctx, f);
	if (status)
		return status;
	u = ql_alloc_zeroed(ctx, sizeof(*u));
	if (!u)
		return QL_ERR_MEMORY;
	if (f->functions) {
		fill_functions(u, f);
	} else if (!fill_table(u, f)) {
		ql_free(ctx, u);
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: table: wanted two different values, got only one");
	}
	if (!ql_spec_add_name(u->name)) {
		ql_free(ctx, u);
		return ql_fail(ctx, QL_ERR_ARGUMENT, "scheme: name: wanted at most some hundred formats, got more");
	}
	u->next = ctx->formats;
	ctx->formats = u;
	return QL_OK;
}

void ql_user_formats_free(struct ql_ctx *ctx)
{
	while (ctx && ctx->formats) {
		struct ql_user_format *u = ctx->formats;

		ctx->formats = u->next;
		ql_free(ctx, u);
	}
}
