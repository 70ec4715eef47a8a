/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of .npz.
 */
#include "tests/fuzz/fuzz.h"

FUZZ(npz)
