/* SPDX-License-Identifier: MIT
 * The kernel "gemm_blocks" against linear of blocks of the core, equal bits: blocks of any length, the last one cut, zero points and
 * minimums, scales that are codes, views, batches, bias and activation, results of codes.
 */
#include "tests/tools/gpu_products.h"

static struct gpu g;

static const struct product_test tests[] = {
	{"linear", {{"=int8", 0, 2, {9, 61}}, {"=int8:32", 0, 2, {20, 61}}, {"float32", 0, 1, {20}}}, 3, "relu", NULL},
	{"linear", {{"=uint8/1", 0, 2, {70, 128}}, {"=uint8:16", 0, 2, {67, 128}}}, 2, NULL, NULL},
	{"linear", {{"=uint8", 0, 3, {2, 5, 200}}, {"=int8:40", 0, 2, {7, 200}}, {"float32", 0, 1, {7}}}, 3, "gelu",
		NULL},
	{"linear", {{"=int8", 0, 2, {3, 100}}, {"=int8:24", 0, 2, {9, 100}}}, 2, NULL, NULL},
	{"linear", {{"=uint8", 0, 2, {5, 64}}, {"=int8:32+min", 0, 2, {33, 64}}}, 2, NULL, NULL},
	{"linear", {{"=int8/1", 0, 2, {1, 256}}, {"=uint8/1+min", 0, 2, {5, 256}}}, 2, NULL, NULL},
	{"linear", {{"=uint8", 0, 2, {4, 96}}, {"=q8_0", 0, 2, {6, 96}}}, 2, NULL, NULL},
	{"linear", {{"=int8", 0, 2, {9, 64}}, {"=int8:32", 0, 2, {20, 64}}}, 2, "relu", "uint8"},
	{"linear", {{"=int8", TRANSPOSED, 2, {12, 64}}, {"=int8:32", 0, 2, {20, 64}}}, 2, NULL, NULL},
};

int main(void)
{
	return product_tests(&g, "gemm_blocks", tests, sizeof(tests) / sizeof(tests[0]));
}
