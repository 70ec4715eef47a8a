/* SPDX-License-Identifier: MIT
 * Files of models that internal.onnx_open has opened.
 */
#ifndef QUOLL_INTERP_BIND_MODEL_FILE_H
#define QUOLL_INTERP_BIND_MODEL_FILE_H

#include <lua.h>

#include "tensor/io/reader.h"

/* The reader of the file that is the first argument. */
struct ql_reader *ql_check_model_file(lua_State *L);

#endif
