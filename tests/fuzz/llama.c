/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of llama2.c checkpoints.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(llama)
