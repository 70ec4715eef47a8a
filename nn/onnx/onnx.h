/* SPDX-License-Identifier: MIT
 * The parts of ONNX files that are read (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), and their tensors.
 */
#ifndef QUOLL_NN_ONNX_ONNX_H
#define QUOLL_NN_ONNX_ONNX_H

#include "tensor/io/protobuf.h"
#include "tensor/tensor.h"

/* ModelProto; its nodes, values and functions. Of tensors without their elements. */
extern const struct ql_pb_field ql_onnx_model[];
/* Whether a message of this field is a TensorProto. */
bool ql_onnx_is_tensor(const struct ql_pb_field *f);

/* Reads the TensorProto at that place of the file, whose elements are in it. Errors: sizes that differ, a type that no dtype has. */
enum ql_status ql_onnx_tensor(const struct ql_reader *r, uint64_t offset, uint64_t size, struct ql_tensor **out);
#define QL_ONNX_ALL UINT64_MAX /* as many bytes as the elements need */
/* Reads `size` bytes at `offset` as elements of a data type of ONNX (TensorProto.DataType), as raw_data has them. */
enum ql_status ql_onnx_elements(const struct ql_reader *r, uint64_t offset, uint64_t size, int64_t type, int rank,
	const int64_t *shape, struct ql_tensor **out);

/* The dtype of a data type of ONNX; false: there is none. */
bool ql_onnx_dtype(int64_t type, unsigned *dtype);

#endif
