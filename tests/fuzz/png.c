/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .png.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(png)
