/* SPDX-License-Identifier: MIT
 * The kernel "gemm_i16" against the integer paths of the core, equal bits: codes of 16 bits beside codes of 16 and 8, scales and zero
 * points per tensor, row and column, views, batches, k of several tiles, bias and activation, results of codes.
 */
#include "tests/tools/gpu_products.h"

static struct gpu g;

static const struct product_test tests[] = {
	{"linear", {{"=int16", 0, 2, {9, 61}}, {"=int16/1", 0, 2, {20, 61}}, {"float32", 0, 1, {20}}}, 3, "relu", NULL},
	{"linear", {{"=uint16/1", 0, 2, {70, 64}}, {"=int8/1", 0, 2, {66, 64}}}, 2, NULL, NULL},
	{"linear", {{"=uint8", 0, 3, {2, 5, 200}}, {"=uint16", 0, 2, {7, 200}}, {"float32", 0, 1, {7}}}, 3, "gelu",
		NULL},
	{"linear", {{"=int16", 0, 2, {9, 40}}, {"=int8/1", 0, 2, {20, 40}}}, 2, "relu", "uint8"},
	{"linear", {{"=int16", 0, 2, {9, 40}}, {"=int16", 0, 2, {20, 40}}}, 2, NULL, "int16"},
	{"matmul", {{"=int16/1", 0, 2, {12, 40}}, {"=int16/2", 0, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int8", TRANSPOSED, 2, {12, 40}}, {"=uint16/1", TRANSPOSED, 2, {40, 24}}}, 2, NULL, NULL},
	{"matmul", {{"=int16", 0, 3, {3, 4, 30}}, {"=int16", 0, 3, {3, 30, 5}}}, 2, NULL, NULL},
};

int main(void)
{
	return product_tests(&g, "gemm_i16", tests, sizeof(tests) / sizeof(tests[0]));
}
