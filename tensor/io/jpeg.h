/* SPDX-License-Identifier: MIT
 * Whether JPEG images can be read.
 */
#ifndef QUOLL_TENSOR_IO_JPEG_H
#define QUOLL_TENSOR_IO_JPEG_H

#include <stdbool.h>

/* Opens libturbojpeg at the first call. */
bool ql_jpeg_usable(void);

#endif
