/* SPDX-License-Identifier: MIT
 * FlatBuffers by tables of fields: values, tables in tables, unions, and every way in which offsets can be wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/io/flatbuffer.h"
#include "tests/check.h"

static struct ql_ctx *ctx;

static const struct ql_fb_field child[] = {
	{0, QL_FB_I64, false, "far", NULL, NULL}, {0, QL_FB_BOOL, false, NULL, NULL, NULL}};
static const struct ql_fb_choice choices[] = {{7, child}, {0, NULL}};
static const struct ql_fb_field root[] = {{0, QL_FB_I32, false, "number", NULL, NULL},
	{1, QL_FB_TEXT, false, "text", NULL, NULL}, {2, QL_FB_FLOAT, true, "list", NULL, NULL},
	{3, QL_FB_TABLE, true, "tables", child, NULL}, {5, QL_FB_UNION, false, "union", NULL, choices},
	{6, QL_FB_BYTES, false, "bytes", NULL, NULL}, {0, QL_FB_BOOL, false, NULL, NULL, NULL}};

/* What was read, as text. */
struct log {
	const struct ql_reader *r;
	char text[512];
	size_t n;
};

static enum ql_status take(void *arg, const struct ql_fb_event *e)
{
	struct log *l = arg;
	char text[16] = "";
	enum ql_status status = QL_OK;

	if (e->what == QL_FB_VALUE && e->field->kind == QL_FB_TEXT && e->size < sizeof(text))
		status = ql_reader_at(l->r, e->offset, e->size, text, "text");
	if (l->n + 64 > sizeof(l->text))
		return QL_OK;
	if (e->what == QL_FB_END)
		l->n += (size_t)snprintf(l->text + l->n, 64, ")");
	else if (e->what == QL_FB_BEGIN)
		l->n += (size_t)snprintf(l->text + l->n, 64, " %s(", e->field->name);
	else if (e->field->kind == QL_FB_FLOAT)
		l->n += (size_t)snprintf(l->text + l->n, 64, " %s=%g", e->field->name, e->f);
	else if (e->field->kind == QL_FB_TEXT)
		l->n += (size_t)snprintf(l->text + l->n, 64, " %s='%s'", e->field->name, text);
	else if (e->field->kind == QL_FB_BYTES)
		l->n += (size_t)snprintf(l->text + l->n, 64, " %s@%d+%d", e->field->name, (int)e->offset, (int)e->size);
	else
		l->n += (size_t)snprintf(l->text + l->n, 64, " %s=%lld", e->field->name, (long long)e->i);
	return status;
}

/* A root with all fields: its vtable is at 8, the table at 28, parts behind it. */
static const uint8_t whole[] = {28, 0, 0, 0, 'T', 'E', 'S', 'T',                 /* root, identifier */
	18, 0, 32, 0, 4, 0, 8, 0, 12, 0, 16, 0, 24, 0, 20, 0, 28, 0, 0, 0,       /* vtable of 7 slots */
	20, 0, 0, 0, 251, 255, 255, 255, 24, 0, 0, 0, 28, 0, 0, 0, 36, 0, 0, 0,  /* table: -5, offsets */
	48, 0, 0, 0, 7, 0, 0, 0, 56, 0, 0, 0,                                    /* union, its type, bytes */
	2, 0, 0, 0, 'h', 'i', 0, 0, 2, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 192,     /* text at 60, list at 68 */
	1, 0, 0, 0, 12, 0, 0, 0, 6, 0, 12, 0, 4, 0, 0, 0,                        /* tables at 80; a vtable at 88 */
	8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9, 9, 9, 0}; /* table at 96; bytes at 112 */

static enum ql_status read_bytes(const uint8_t *data, size_t n, struct log *l)
{
	struct ql_reader r;

	*l = (struct log){.r = &r};
	ql_reader_memory(ctx, data, n, &r);
	ctx->err[0] = '\0';
	return ql_flatbuffer_read(&r, "TEST", root, take, l);
}

static void values(void)
{
	struct log l;

	CASE("values");
	CHECK(read_bytes(whole, sizeof(whole), &l) == QL_OK, "%s", ctx->err);
	CHECK(!strcmp(l.text,
		      " number=-5 text='hi' list=1 list=-2 tables( far=4294967296) union( far=4294967296) bytes@116+3"),
		"%s", l.text);
}

static void broken(void)
{
	uint8_t copy[sizeof(whole)];
	struct log l;

	CASE("truncations");
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		CHECK(read_bytes(whole, n, &l) != QL_OK && ctx->err[0], "%zu bytes", n);
	CASE("identifier");
	memcpy(copy, whole, sizeof(whole));
	copy[4] = 'X';
	CHECK(read_bytes(copy, sizeof(copy), &l) == QL_ERR_FORMAT &&
			strstr(ctx->err, "wanted a file with the identifier TEST"),
		"%s", ctx->err);
	CASE("each byte changed");
	for (size_t at = 0; at < sizeof(whole); at++)
		for (int k = 0; k < 4; k++) {
			memcpy(copy, whole, sizeof(whole));
			copy[at] = (uint8_t[]){0, 255, 127, 128}[k];
			CHECK(read_bytes(copy, sizeof(copy), &l) == QL_OK || ctx->err[0], "byte %zu", at);
		}
}

static void refuse(const char *what, size_t at, uint32_t word, const char *message)
{
	uint8_t copy[sizeof(whole)];
	struct log l;

	CASE("%s", what);
	memcpy(copy, whole, sizeof(whole));
	memcpy(copy + at, &word, 4);
	CHECK(read_bytes(copy, sizeof(copy), &l) == QL_ERR_FORMAT && strstr(ctx->err, message), "%s", ctx->err);
}

static void wrong(void)
{
	refuse("root out of the file", 0, 4000, "an offset leads out of the file at byte 0");
	refuse("root at itself", 0, 0, "an offset leads out of the file");
	refuse("an offset that wraps", 36, UINT32_MAX, "an offset leads out of the file at byte 36");
	refuse("a vtable before the file", 28, 100, "a table has its fields out of the file at byte 28");
	refuse("a vtable behind the file", 28, (uint32_t)-4000, "a table has its fields out of the file");
	refuse("a vtable of 2 bytes", 8, 0x00200002, "a table has sizes below 4");
	refuse("a field behind its table", 12, 0x000800f0, "a field is outside of its table");
	refuse("a vector of 2^30", 68, 1u << 30, "list: ");
	refuse("2^30 tables", 80, 1u << 30, "tables: ");
	refuse("a text of 2^32 - 1", 60, UINT32_MAX, "text: ");
}

static void put(uint8_t *data, size_t at, uint32_t word)
{
	memcpy(data + at, &word, 4);
}

/* Seven levels of tables, whose 50 parts are one: each is read, so their number is bounded by the size of the file. */
static void shared(void)
{
	static const struct ql_fb_field deep[] = {
		{0, QL_FB_TABLE, true, "again", deep, NULL}, {0, QL_FB_BOOL, false, NULL, NULL, NULL}};
	enum { PARTS = 50, LEVELS = 7, STEP = 12 + 4 * PARTS, FIRST = 16 };
	uint8_t data[FIRST + (LEVELS + 1) * STEP] = {0};
	struct ql_reader r;
	struct log l = {.r = &r};

	CASE("tables that share their parts");
	put(data, 0, FIRST);
	memcpy(data + 4, "TEST", 4);
	put(data, 8, 6 | 8 << 16); /* the vtable of all */
	put(data, 12, 4);
	for (uint32_t level = 0; level <= LEVELS; level++) {
		uint32_t at = FIRST + level * STEP;

		put(data, at, at - 8);
		put(data, at + 4, 4);
		put(data, at + 8, level < LEVELS ? PARTS : 0);
		for (uint32_t i = 0; i < PARTS; i++)
			put(data, at + 12 + 4 * i, STEP - 12 - 4 * i);
	}
	ql_reader_memory(ctx, data, sizeof(data), &r);
	CHECK(ql_flatbuffer_read(&r, "TEST", deep, take, &l) == QL_ERR_FORMAT &&
			strstr(ctx->err, "values outside of tensors, got more"),
		"%s", ctx->err);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	values();
	broken();
	wrong();
	shared();
	ql_ctx_free(ctx);
	return check_end();
}
