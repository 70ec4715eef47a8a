/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .gguf.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(gguf)
