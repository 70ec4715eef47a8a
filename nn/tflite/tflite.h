/* SPDX-License-Identifier: MIT
 * The parts of TFLite files that are read (https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/mlir/lite/schema).
 */
#ifndef QUOLL_NN_TFLITE_TFLITE_H
#define QUOLL_NN_TFLITE_TFLITE_H

#include "tensor/io/flatbuffer.h"

#define QL_TFLITE_IDENTIFIER "TFL3"

/* Model, with its tensors, ops and the places of buffers. */
extern const struct ql_fb_field ql_tflite_model[];

#endif
