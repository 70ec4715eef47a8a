/* SPDX-License-Identifier: MIT
 * Whether pictures in JPEG can be read here.
 */
#ifndef QUOLL_TENSOR_IO_JPEG_H
#define QUOLL_TENSOR_IO_JPEG_H

#include <stdbool.h>

/* Opens libturbojpeg at the first call. */
bool ql_jpeg_usable(void);

#endif
