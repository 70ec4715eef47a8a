/* SPDX-License-Identifier: MIT
 * The kernel "gemm_packed" against the integer paths of the core, equal bits: codes of 2 to 7 bits beside codes of 8 and each
 * other, scales and zero points per tensor, row and column, views, batches, bias and activation, results of codes.
 */
#include "tests/tools/gpu_products.h"

static struct gpu g;

static const struct product_test tests[] = {
	{"linear", {{"=int8", 0, 2, {9, 61}}, {"=int4/1", 0, 2, {20, 61}}, {"float32", 0, 1, {20}}}, 3, "relu", NULL},
	{"linear", {{"=uint8/1", 0, 2, {9, 64}}, {"=uint4/1", 0, 2, {33, 64}}}, 2, NULL, NULL},
	{"linear", {{"=int4", 0, 3, {2, 5, 200}}, {"=int4", 0, 2, {7, 200}}, {"float32", 0, 1, {7}}}, 3, "gelu", NULL},
	{"linear", {{"=uint4", 0, 2, {1, 64}}, {"=int3/1", 0, 2, {140, 64}}}, 2, NULL, NULL},
	{"linear", {{"=int6/1", 0, 2, {5, 40}}, {"=int8/1", 0, 2, {7, 40}}}, 2, NULL, NULL},
	{"linear", {{"=int8", 0, 2, {9, 64}}, {"=int4/1", 0, 2, {20, 64}}}, 2, "relu", "uint8"},
	{"linear", {{"=int8", 0, 2, {9, 64}}, {"=int5", 0, 2, {20, 64}}}, 2, NULL, "int8"},
	{"matmul", {{"=int8/1", 0, 2, {12, 40}}, {"=int4/2", 0, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int4", TRANSPOSED, 2, {12, 40}}, {"=uint8/1", TRANSPOSED, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int4", 0, 3, {3, 4, 30}}, {"=int2", 0, 3, {3, 30, 5}}}, 2, NULL, NULL},
};

int main(void)
{
	return product_tests(&g, "gemm_packed", tests, sizeof(tests) / sizeof(tests[0]));
}
