/* SPDX-License-Identifier: MIT
 * Rows are told apart by what their strings say, not by where they stand; many rows; a reset keeps them.
 */
#include <stdio.h>
#include <string.h>

#include "tensor/ledger.h"
#include "tests/check.h"

static void test_equal_strings(void)
{
	static const char path[] = "int8", other[] = "int8", op[] = "matmul", again[] = "matmul";
	struct ql_ctx *ctx = ql_ctx_new(1);
	uint32_t row = ql_ledger_count(ctx, op, path, "ref", NULL, 7);

	CASE("equal strings at different addresses");
	CHECK(ql_ledger_count(ctx, again, other, "ref", NULL, 7) == row, "a second row");
	CHECK(ql_ledger_count(ctx, op, path, "ref", NULL, 7) == row, "a third row");
	CHECK(ql_ledger_rows(ctx) == 1 && ql_ledger_row(ctx, row)->count == 3, "%u rows", ql_ledger_rows(ctx));
	CHECK(ql_ledger_count(ctx, op, path, "ref", "why", 7) != row, "a reason is not told from none");
	CHECK(ql_ledger_count(ctx, op, path, "ref", NULL, 8) != row, "operands are not told apart");
	ql_ctx_free(ctx);
}

static void test_many(void)
{
	static char names[500][2][16];
	struct ql_ctx *ctx = ql_ctx_new(1);
	bool good = true;

	CASE("many rows");
	for (int i = 0; i < 500; i++)
		for (int k = 0; k < 2; k++) {
			snprintf(names[i][k], sizeof(names[i][k]), "op%d", i);
			good &= ql_ledger_count(ctx, names[i][k], "p", "k", NULL, 0) == (uint32_t)i + 1;
		}
	for (uint32_t i = 1; i <= 500; i++)
		good &= ql_ledger_row(ctx, i)->count == 2;
	CHECK(good && ql_ledger_rows(ctx) == 500, "%u rows", ql_ledger_rows(ctx));
	ql_ledger_reset(ctx);
	CHECK(ql_ledger_rows(ctx) == 500 && ql_ledger_row(ctx, 500)->count == 0, "a reset");
	CHECK(!ql_ledger_row(ctx, 0) && !ql_ledger_row(ctx, 501), "rows outside");
	ql_ctx_free(ctx);
}

int main(void)
{
	test_equal_strings();
	test_many();
	return check_end();
}
