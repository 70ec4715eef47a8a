/* SPDX-License-Identifier: MIT */
#ifndef QUOLL_NN_ONNX_ELEMENTS_H
#define QUOLL_NN_ONNX_ELEMENTS_H

#include "tensor/io/writer.h"
#include "tensor/tensor.h"

/* Writes the elements of the view in row-major order as raw_data of a TensorProto. Codes of a quantized tensor are passed as its
 * plain view. */
enum ql_status ql_onnx_elements_write(struct ql_writer *w, struct ql_tensor *t);

#endif
