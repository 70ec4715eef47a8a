/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .safetensors. Most changes make the header longer or shorter, which its length field
 * would give away at once; three times of four it is set right again.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(safetensors)

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	n = LLVMFuzzerMutate(data, n, most);
	if (seed % 4 && n > 8) {
		size_t end = n;

		while (end > 8 && data[end - 1] != '}')
			end--;
		for (int i = 0; i < 8; i++)
			data[i] = (uint8_t)((uint64_t)(end - 8) >> 8 * i);
	}
	return n;
}
