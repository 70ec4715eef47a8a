/* SPDX-License-Identifier: MIT
 * The kernel rows: every op with a struct ql_map, through the core, on the device and on the host: views, broadcasting, numbers,
 * all dtypes of whole bytes, NaN and infinities. The bits are the same; what the kernel does not take is listed here.
 */
#include "gpu/device.h"
#include "tensor/loops/map.h"
#include "tensor/ops.h"
#include "tensor/remote.h"
#include "tensor/view.h"
#include "tests/tools/gpu_device.h"

static struct gpu g;
static struct ql_ctx *ctx;
static const struct ql_device *device;
static uint64_t state = 1;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* The test cannot go on without what it sets up. */
static void need(enum ql_status status)
{
	if (status) {
		printf("%s\n", ctx->err);
		exit(1);
	}
}

/* ---- operands ---- */

static double draw_real(void)
{
	static const double special[] = {0, -0.0, 1, -1, 0.5, 2.5, -2.5, 1e-40, 3e38, -3e38, INFINITY, -INFINITY, NAN,
		6, 100, 2, -104, 89, 1e10};
	uint32_t r = draw();

	if (r % 3 == 0)
		return special[r / 3 % (sizeof(special) / sizeof(special[0]))];
	return ldexp((double)draw() / 0x1p31 - 0.5, (int)(r / 3 % 12));
}

static void fill(struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];

	for (int64_t i = 0; i < ql_tensor_nelem(t); i++) {
		uint32_t r = draw() % 8;
		int64_t integer = r == 0 ? d->lo : r == 1 ? d->hi : (int64_t)(draw() % 16) - (d->lo < 0 ? 8 : 0);
		double real = draw_real();

		if (d->kind == QL_KIND_FLOAT)
			d->from_f64(t->storage->data, i, 1, 1, &real);
		else
			d->from_i64(t->storage->data, i, 1, 1, &integer);
	}
}

enum form { DENSE, TURNED, INNER, EVERY_THIRD, ROW, COLUMN, ONE, SCALAR, FORMS };
static const char *const form_names[FORMS] = {
	"dense", "turned", "inner part", "every third", "row", "column", "one element", "rank 0"};

/* The view of a tensor of `base_of` that has the shape (rows, columns), or one that broadcasts to it. */
static struct ql_tensor *view_of(enum form form, struct ql_tensor *base, int64_t rows, int64_t columns)
{
	struct ql_tensor *v = NULL, *w = NULL;

	if (form == TURNED) {
		need(ql_view_permute(ctx, "test", base, (const int[]){1, 0}, &v));
	} else if (form == INNER) {
		need(ql_view_narrow(ctx, "test", base, 0, 1, rows, &w));
		need(ql_view_narrow(ctx, "test", w, 1, 1, columns, &v));
	} else if (form == EVERY_THIRD) {
		need(ql_view_select(ctx, "test", base, 2, 1, &v));
	} else {
		v = ql_tensor_keep(base);
	}
	ql_tensor_release(ctx, w);
	return v;
}

static struct ql_tensor *base_of(enum form form, unsigned dtype, int64_t rows, int64_t columns)
{
	const int64_t shapes[FORMS][3] = {{rows, columns}, {columns, rows}, {rows + 2, columns + 3}, {rows, columns, 3},
		{columns}, {rows, 1}, {1, 1}, {0}};
	static const int ranks[FORMS] = {2, 2, 2, 3, 1, 2, 2, 0};
	struct ql_tensor *t;

	need(ql_tensor_new(ctx, dtype, ranks[form], shapes[form], &t));
	fill(t);
	return t;
}

/* The same operand here and there. */
static void operand(enum form form, unsigned dtype, int64_t rows, int64_t columns, struct ql_tensor **host,
	struct ql_tensor **there)
{
	struct ql_tensor *base = base_of(form, dtype, rows, columns), *moved;

	need(ql_tensor_to(ctx, base, device, &moved));
	*host = view_of(form, base, rows, columns);
	*there = view_of(form, moved, rows, columns);
	ql_tensor_release(ctx, base);
	ql_tensor_release(ctx, moved);
}

/* ---- running and comparing ---- */

static bool same(const struct ql_tensor *a, const struct ql_tensor *b)
{
	if (a->dtype != b->dtype || !ql_tensor_same_shape(a, b))
		return false;
	for (int64_t i = 0; i < ql_tensor_nelem(a); i++) {
		double x = ql_tensor_at_f64(a, i), y = ql_tensor_at_f64(b, i);

		if (a->dtype == QL_int64) {
			if (((const int64_t *)a->storage->data)[i] != ((const int64_t *)b->storage->data)[i])
				return false;
		} else if (isnan(x) ? !isnan(y) : x != y || signbit(x) != signbit(y)) {
			return false;
		}
	}
	return true;
}

/* Functions of integers that refuse some: the host runs them. */
static bool may_refuse(const struct ql_call *call)
{
	const struct ql_map *map = call->op->impl;
	struct ql_map_args args;
	const char *domain;

	return map->trouble && !ql_map_describe(ctx, call, &domain, &args) && !strcmp(domain, "int64");
}

static void compare(const struct ql_op *op, struct ql_tensor **host, struct ql_tensor **there, uint32_t weak,
	const struct ql_value *attr, const char *what)
{
	struct ql_call a = {.op = op, .in = host, .n_in = op->arity_max, .weak = weak, .attr = attr};
	struct ql_call b = {.op = op, .in = there, .n_in = op->arity_max, .weak = weak, .attr = attr};
	enum ql_status wanted = ql_op_apply(ctx, &a), status = ql_op_apply(ctx, &b);
	struct ql_tensor *got = NULL;

	CHECK(status == wanted, "%s: status %d, on the host %d: %s", what, (int)status, (int)wanted, ctx->err);
	if (!wanted && !status) {
		if (!may_refuse(&b))
			CHECK(b.kernel && !strcmp(b.kernel, "rows") && strcmp(b.path, "host"), "%s: %s, %s: %s", what,
				b.path, b.kernel, b.reason ? b.reason : "");
		CHECK(!strcmp(b.path, a.path) || !strcmp(b.path, "host"), "%s: path %s, on the host %s", what, b.path,
			a.path);
		need(ql_tensor_to(ctx, b.out[0], &ql_device_cpu, &got));
		CHECK(same(got, a.out[0]), "%s: other elements", what);
	}
	ql_tensor_release(ctx, got);
	ql_tensor_release(ctx, a.out[0]);
	ql_tensor_release(ctx, b.out[0]);
}

/* The form with an underscore. */
static void compare_into(const struct ql_op *op, struct ql_tensor **host, struct ql_tensor **there, const char *what)
{
	struct ql_call a = {.op = op, .in = host, .n_in = op->arity_max, .into = host[0]};
	struct ql_call b = {.op = op, .in = there, .n_in = op->arity_max, .into = there[0]};
	uint64_t version = there[0]->storage->version;
	enum ql_status wanted = ql_op_apply(ctx, &a), status = ql_op_apply(ctx, &b);
	struct ql_tensor *got, *want;

	CHECK(status == wanted, "%s: status %d, on the host %d: %s", what, (int)status, (int)wanted, ctx->err);
	CHECK(status || may_refuse(&b) || (b.kernel && !strcmp(b.kernel, "rows")), "%s: %s, %s: %s", what, b.path,
		b.kernel, b.reason ? b.reason : "");
	CHECK(status || (b.out[0] == there[0] && there[0]->storage->version > version), "%s: the version stayed", what);
	need(ql_tensor_to(ctx, there[0], &ql_device_cpu, &got));
	need(ql_tensor_contiguous(ctx, host[0], &want));
	CHECK(same(got, want), "%s: other elements", what);
	ql_tensor_release(ctx, got);
	ql_tensor_release(ctx, want);
	ql_tensor_release(ctx, a.out[0]);
	ql_tensor_release(ctx, b.out[0]);
}

static void check_forms(
	const struct ql_op *op, const unsigned *dtype, const enum form *form, int64_t rows, int64_t columns)
{
	struct ql_tensor *host[3] = {NULL}, *there[3] = {NULL};
	char what[160] = "";

	for (int k = 0; k < op->arity_max && k < 3; k++) {
		operand(form[k], dtype[k], rows, columns, &host[k], &there[k]);
		snprintf(what + strlen(what), sizeof(what) - strlen(what), " %s %s", form_names[form[k]],
			ql_dtype_name(dtype[k]));
	}
	compare(op, host, there, 0, NULL, what);
	for (int k = 0; k < op->arity_max; k++) {
		ql_tensor_release(ctx, host[k]);
		ql_tensor_release(ctx, there[k]);
	}
}

/* ---- all ops ---- */

/* One of so many, where each case is slow. */
#if defined(__SANITIZE_ADDRESS__)
#define ONE_OF 7
#else
#define ONE_OF 1
#endif

static const unsigned dtypes[] = {QL_float32, QL_float16, QL_bfloat16, QL_float64, QL_float8_e4m3, QL_int8, QL_uint8,
	QL_int16, QL_int32, QL_int64, QL_bool};
#define DTYPES ((int)(sizeof(dtypes) / sizeof(dtypes[0])))

static void check_dtypes(const struct ql_op *op)
{
	int seconds = op->arity_max > 1 ? DTYPES : 1;

	for (int a = 0; a < DTYPES; a++)
		for (int b = a % ONE_OF; b < seconds; b += ONE_OF) {
			const unsigned dtype[3] = {op->arity_max == 3 ? QL_bool : dtypes[a],
				dtypes[op->arity_max == 3 ? a : b], dtypes[b]};
			const enum form form[3] = {draw() % 4, draw() % FORMS, draw() % FORMS};

			check_forms(op, dtype, form, a % 2 ? 4 : 5, a % 2 ? 8 : 7);
		}
}

static bool is_integer_op(const struct ql_op *op)
{
	return !ql_map_of(op)->f32;
}

static void check_all_forms(const struct ql_op *op)
{
	unsigned plain = is_integer_op(op) ? QL_int32 : QL_float32;
	const unsigned dtype[3] = {op->arity_max == 3 ? QL_bool : plain, plain, plain};
	static const int64_t sizes[][2] = {{1, 1}, {3, 33}, {16, 16}, {0, 4}, {70, 61}};

	for (int a = 0; a < FORMS; a++)
		for (int b = 0; b < (op->arity_max > 1 ? FORMS : 1); b++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				const enum form form[3] = {(enum form)a, (enum form)b, DENSE};

				if ((a + b + (int)i) % ONE_OF == 0 && !(i == 4 && a + b > 2))
					check_forms(op, dtype, form, sizes[i][0], sizes[i][1]);
			}
}

/* A literal and a tensor of rank 0 in the host's memory. */
static void check_numbers(const struct ql_op *op)
{
	for (int a = 0; a < DTYPES; a++)
		for (int kind = 0; kind < 4; kind++) {
			struct ql_tensor *number, *x, *y, *host[3], *there[3];

			need(ql_tensor_new(ctx, kind % 2 ? QL_int64 : QL_float64, 0, NULL, &number));
			if (kind % 2)
				*(int64_t *)number->storage->data = 3;
			else
				*(double *)number->storage->data = 2.5;
			operand(DENSE, dtypes[a], 4, 9, &x, &y);
			for (int k = 0; k < op->arity_max; k++) {
				host[k] = k == 1 ? number : x;
				there[k] = k == 1 ? number : y;
			}
			if (op->arity_max == 3)
				operand(DENSE, QL_bool, 4, 9, &host[0], &there[0]);
			compare(op, host, there, kind < 2 ? 2 : 0, NULL, ql_dtype_name(dtypes[a]));
			if (op->arity_max == 3) {
				ql_tensor_release(ctx, host[0]);
				ql_tensor_release(ctx, there[0]);
			}
			ql_tensor_release(ctx, number);
			ql_tensor_release(ctx, x);
			ql_tensor_release(ctx, y);
		}
}

/* The in-place form on views, with another dtype, and with the tensor itself turned as the second operand. */
static void check_in_place(const struct ql_op *op)
{
	unsigned plain = is_integer_op(op) ? QL_int32 : QL_float32;
	const unsigned other[] = {plain, QL_float16, QL_int8, QL_float64};

	for (int form = 0; form < ROW; form++)
		for (int b = 0; b < 5; b++) {
			struct ql_tensor *host[2] = {NULL}, *there[2] = {NULL};
			char what[64];

			operand((enum form)form, b == 4 ? QL_float16 : plain, 8, 8, &host[0], &there[0]);
			if (op->arity_max == 2 && b == 4) {
				need(ql_view_permute(ctx, "test", host[0], (const int[]){1, 0}, &host[1]));
				need(ql_view_permute(ctx, "test", there[0], (const int[]){1, 0}, &there[1]));
			} else if (op->arity_max == 2) {
				operand((enum form)((form + b) % ROW), other[b], 8, 8, &host[1], &there[1]);
			}
			snprintf(what, sizeof(what), "in place, %s, %d", form_names[form], b);
			compare_into(op, host, there, what);
			for (int k = 0; k < 2; k++) {
				ql_tensor_release(ctx, host[k]);
				ql_tensor_release(ctx, there[k]);
			}
		}
}

/* ---- options ---- */

static void check_option(const struct ql_op *op, const struct ql_value *attr)
{
	for (int a = 0; a < DTYPES; a++) {
		struct ql_tensor *host, *there;

		operand(a % 2 ? TURNED : DENSE, dtypes[a], 6, 11, &host, &there);
		compare(op, &host, &there, 0, attr, ql_dtype_name(dtypes[a]));
		ql_tensor_release(ctx, host);
		ql_tensor_release(ctx, there);
	}
}

static void check_options(void)
{
	const struct ql_value low_high[3] = {{.set = true, .f = -1.5}, {.set = true, .f = 4}},
			      high[3] = {{0}, {.set = true, .f = 2.5}};
	const struct ql_value slope[2] = {{.set = true, .f = 0.25}}, by_tanh[2] = {{.set = true, .s = "tanh"}};
	const struct ql_value nothing[3] = {{.set = true, .f = NAN}};

	CASE("options");
	check_option(&ql_op_clamp, low_high);
	check_option(&ql_op_clamp, high);
	check_option(&ql_op_clamp, nothing);
	check_option(ql_op_by_name(ql_ops, "leakyrelu"), slope);
	check_option(ql_op_by_name(ql_ops, "gelu"), by_tanh);
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx || !gpu_load(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	need(ql_gpu_open(ctx, g.v, 0, "cudaemu", &device));
	for (int i = 0; ql_ops[i]; i++) {
		const struct ql_op *op = ql_ops[i];

		if (!ql_map_of(op))
			continue;
		gpu_order(i % ORDERS);
		CASE("%s", op->doc.name);
		if (!CHECK(g.v->op_find(op->doc.name) >= 0, "the device has no row for this op"))
			continue;
		check_dtypes(op);
		check_all_forms(op);
		if (op->arity_max > 1)
			check_numbers(op);
		if (op->flags & QL_INPLACE)
			check_in_place(op);
	}
	check_options();
	ql_ctx_free(ctx);
	return check_end();
}
