/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .jpg.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(jpeg)
