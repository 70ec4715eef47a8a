/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .npy. Three times of four the length of the header is set right again after a change.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(npy)

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	size_t head, end;

	n = LLVMFuzzerMutate(data, n, most);
	if (seed % 4 == 0 || n < 12)
		return n;
	head = data[6] > 1 ? 12 : 10;
	for (end = head; end < n && data[end] != '\n'; end++)
		;
	data[8] = (uint8_t)(end + 1 - head);
	data[9] = (uint8_t)((end + 1 - head) >> 8);
	return n;
}
