/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of idx files.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(idx)
