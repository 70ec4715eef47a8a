/* SPDX-License-Identifier: MIT
 * Codes of 4 bits in every variant against the formula: integers of both signs with and without zero points, values of a table, blocks
 * of sizes around those of vectors and all lengths up to several; codes and results end where their memory does.
 */
#include "tensor/nibbles.h"

#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tests/check.h"

enum { LONGEST = 150, BLOCKS = LONGEST / 2 + 1 };
static uint8_t codes[LONGEST];
static float scales[BLOCKS], values[16];
static int32_t zeros[BLOCKS];

static void fill(void)
{
	for (int i = 0; i < LONGEST; i++)
		codes[i] = (uint8_t)((i * 157 + 11) ^ i >> 3);
	for (int i = 0; i < BLOCKS; i++) {
		scales[i] = 0.37f + (float)i * 0.731f;
		zeros[i] = i * 5 % 19 - 3;
	}
	for (int i = 0; i < 16; i++)
		values[i] = i == 3 ? -0.0f : (float)(i - 7) * 0.3331f;
}

static float value_of(const struct ql_nibbles *as, int64_t i)
{
	int code = codes[i / 2] >> i % 2 * 4 & 15;
	int64_t at = i / as->block;

	if (as->value)
		return as->value[code] * as->scale[at];
	return (float)((as->is_signed && code > 7 ? code - 16 : code) - (as->zero ? as->zero[at] : 0)) * as->scale[at];
}

static void check_length(int variant, const struct ql_nibbles *as, int64_t n)
{
	size_t bytes = (size_t)(n + 1) / 2;
	uint8_t *q = malloc(bytes);
	float *got = malloc((size_t)n * sizeof(*got)), want[LONGEST];

	memcpy(q, codes, bytes);
	ql_nibbles_decode(variant, as, q, n, got);
	for (int64_t i = 0; i < n; i++)
		want[i] = value_of(as, i);
	CHECK(memcmp(got, want, (size_t)n * sizeof(*got)) == 0, "%d codes, blocks of %d", (int)n, (int)as->block);
	free(q);
	free(got);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avx512vnni"};
	static const int64_t blocks[] = {2, 6, 8, 32, 34, 64, LONGEST};

	fill();
	for (int l = 0; l < 3; l++) {
		CHECK(ql_kernels_force(levels[l]), "level %s", levels[l]);
		for (int way = 0; way < 5; way++) {
			struct ql_nibbles as = {.value = way == 4 ? values : NULL,
				.is_signed = way & 1,
				.scale = scales,
				.zero = way == 2 || way == 3 ? zeros : NULL};

			CASE("way %d at %s", way, levels[l]);
			for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++)
				for (int64_t n = 1; n <= LONGEST; n++) {
					as.block = blocks[b];
					check_length(ql_kernels_cpu()->simd->variant, &as, n);
				}
		}
	}
	return check_end();
}
