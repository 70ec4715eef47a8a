/* SPDX-License-Identifier: MIT
 * The kernels gather and triangle, element by element against their meaning.
 */
#include "tests/tools/gpu_views.h"

static struct gpu g;

static const struct view views[] = {
	{"rows", 2, {7, 20}, {20, 1}, 0, 0},
	{"transposed", 2, {30, 14}, {1, 30}, 3, 0},
	{"three axes", 3, {4, 5, 6}, {64, 8, 1}, 1, 0},
	{"backwards", 2, {5, 9}, {-9, -1}, 80, 0},
	{"expanded", 2, {6, 7}, {0, 1}, 9, 0},
	{"no rows", 2, {0, 4}, {4, 1}, 0, 0},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static int64_t elements_of(const int64_t *shape, int rank)
{
	int64_t n = 1;

	for (int d = 0; d < rank; d++)
		n *= shape[d];
	return n;
}

static void gather(const struct view *v, int axis, const char *dtype, const char *index_dtype)
{
	static int64_t data[VIEW_BUFFER], index[VIEW_BUFFER], wide[VIEW_BUFFER], got[VIEW_BUFFER];
	struct ql_gpu_option o = {.name = "axis", .i = axis};
	size_t size = ql_dtypes[ql_dtype_by_name(dtype)].bits / 8;
	struct ql_gpu_tensor in[2], out;
	struct ql_gpu_call call;
	int64_t shape[4], n;

	memcpy(shape, v->shape, sizeof(shape));
	shape[axis] = v->shape[axis] ? 3 : 0;
	n = elements_of(shape, v->rank);
	view_fill(dtype, data, false);
	for (int64_t i = 0; i < n; i++) {
		wide[i] = 1 + gpu_draw() % v->shape[axis];
		wide[i] = gpu_draw() % 3 ? wide[i] : wide[i] - 1 - v->shape[axis];
		ql_dtypes[ql_dtype_by_name(index_dtype)].from_i64(index, i, 1, 1, &wide[i]);
	}
	in[0] = view_gpu(&g, v, dtype, data);
	in[1] = gpu_tensor(&g, index_dtype, v->rank, shape, index, 0);
	out = gpu_tensor(&g, dtype, v->rank, shape, NULL, 0);
	call = gpu_call("gather", in, 2, &out, 1);
	call.options = &o;
	call.n_options = 1;
	if (gpu_run(&g, call) || CHECK(false, "refused: %s", g.why)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n; i++) {
			int64_t k = wide[i] < 0 ? wide[i] + v->shape[axis] : wide[i] - 1, from = v->first, rest = i;

			for (int d = v->rank - 1; d >= 0; d--) {
				from += (d == axis ? k : rest % shape[d]) * v->stride[d];
				rest /= shape[d];
			}
			CHECK(!memcmp((char *)got + (size_t)i * size, (char *)data + (size_t)from * size, size),
				"%s of %s along %d: element %d", v->what, dtype, axis, (int)i);
		}
	}
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
}

static void triangle(const struct view *v, const char *op, const char *dtype, int64_t diagonal)
{
	static int64_t data[VIEW_BUFFER], got[VIEW_BUFFER];
	static const int64_t zero;
	struct ql_gpu_option o = {.name = "diagonal", .i = diagonal};
	size_t size = ql_dtypes[ql_dtype_by_name(dtype)].bits / 8;
	struct ql_gpu_tensor in, out;
	struct ql_gpu_call call;

	view_fill(dtype, data, true);
	in = view_gpu(&g, v, dtype, data);
	out = gpu_tensor(&g, dtype, v->rank, v->shape, NULL, 0);
	call = gpu_call(op, &in, 1, &out, 1);
	call.options = &o;
	call.n_options = 1;
	if (gpu_run(&g, call) || CHECK(false, "refused: %s", g.why)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < gpu_count(&out); i++) {
			int64_t columns = v->shape[v->rank - 1], row = i / columns % v->shape[v->rank - 2];
			bool kept = strcmp(op, "tril") ? i % columns - row >= diagonal : i % columns - row <= diagonal;
			const void *want =
				kept ? (const char *)data + (size_t)view_at(v, i) * size : (const char *)&zero;

			CHECK(!memcmp((char *)got + (size_t)i * size, want, size),
				"%s of %s, %s, diagonal %d: element %d", op, v->what, dtype, (int)diagonal, (int)i);
		}
	}
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

static void bad_index(void)
{
	const float x[4] = {1, 2, 3, 4};
	const int32_t bad[] = {0, 5, -5};
	int64_t four = 4, two = 2;

	for (int i = 0; i < 3; i++) {
		int32_t index[2] = {-1, bad[i]};
		struct ql_gpu_tensor in[2] = {gpu_tensor(&g, "float32", 1, &four, x, 0),
			gpu_tensor(&g, "int32", 1, &two, index, 0)},
				     out = gpu_tensor(&g, "float32", 1, &two, NULL, 0);
		struct ql_gpu_fault fault;
		float got[2];

		CHECK(gpu_run(&g, gpu_call("gather", in, 2, &out, 1)), "refused: %s", g.why);
		CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_INDEX && fault.position == 1 &&
				fault.value == bad[i] && fault.limit == 4,
			"fault %d: %d at %d", fault.kind, (int)fault.value, (int)fault.position);
		gpu_get(&g, &out, got);
		CHECK(got[0] == 4 && got[1] == 1, "%g %g", (double)got[0], (double)got[1]);
		gpu_free(&g, &in[0]);
		gpu_free(&g, &in[1]);
		gpu_free(&g, &out);
	}
}

int main(void)
{
	static const char *const dtypes[] = {"float32", "float64", "bfloat16", "int8"};
	static const char *const index_dtypes[] = {"int64", "int32", "int16", "int8"};

	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("gather, threads %s", gpu_order(o));
		for (size_t v = 0; v < VIEWS; v++)
			for (int d = 0; d < 4; d++)
				for (int axis = 0; axis < views[v].rank; axis++)
					gather(&views[v], axis, dtypes[d], index_dtypes[(d + axis) % 4]);
		bad_index();
		CASE("triangle, threads %s", gpu_order(o));
		for (size_t v = 0; v < VIEWS; v++)
			for (int d = 0; d < 4; d++)
				for (int64_t diagonal = -3; diagonal <= 3; diagonal += 2) {
					triangle(&views[v], "tril", dtypes[d], diagonal);
					triangle(&views[v], "triu", dtypes[d], diagonal);
				}
		triangle(&views[0], "triu", "float32", INT64_MIN);
		triangle(&views[0], "tril", "float32", INT64_MAX);
	}
	CHECK(!strcmp(g.name, "triangle"), "by %s", g.name);
	gpu_close(&g);
	return check_end();
}
