/* SPDX-License-Identifier: MIT
 * Field numbers of onnx.proto. Fields that no importer looks at are not listed, so they are skipped.
 */
#include "nn/onnx/onnx.h"

#define END \
	{ \
		0, 0, false, NULL, NULL \
	}
#define ONE(number, kind, name) \
	{ \
		number, QL_PB_##kind, false, name, NULL \
	}
#define MANY(number, kind, name) \
	{ \
		number, QL_PB_##kind, true, name, NULL \
	}
#define PART(number, name, of) \
	{ \
		number, QL_PB_MESSAGE, false, name, of \
	}
#define PARTS(number, name, of) \
	{ \
		number, QL_PB_MESSAGE, true, name, of \
	}

static const struct ql_pb_field pair[] = {ONE(1, TEXT, "key"), ONE(2, TEXT, "value"), END};
static const struct ql_pb_field opset[] = {ONE(1, TEXT, "domain"), ONE(2, INT, "version"), END};
static const struct ql_pb_field nothing[] = {END}; /* that it is there is enough */

/* ---- types ---- */

static const struct ql_pb_field dim[] = {ONE(1, INT, "value"), ONE(2, TEXT, "param"), END};
static const struct ql_pb_field shape[] = {PARTS(1, "dim", dim), END};
static const struct ql_pb_field tensor_type[] = {ONE(1, INT, "elem_type"), PART(2, "shape", shape), END};
static const struct ql_pb_field type[] = {PART(1, "tensor_type", tensor_type), PART(4, "sequence_type", nothing),
	PART(5, "map_type", nothing), PART(8, "sparse_tensor_type", nothing), PART(9, "optional_type", nothing), END};
static const struct ql_pb_field value_info[] = {ONE(1, TEXT, "name"), PART(2, "type", type), END};

/* ---- tensors ---- */

static const struct ql_pb_field tensor[] = {MANY(1, INT, "dims"), ONE(2, INT, "data_type"), ONE(8, TEXT, "name"),
	PARTS(13, "external_data", pair), ONE(14, INT, "data_location"), END};

bool ql_onnx_is_tensor(const struct ql_pb_field *f)
{
	return f->of == tensor;
}

/* ---- graphs ---- */

static const struct ql_pb_field attribute[];

static const struct ql_pb_field node[] = {MANY(1, TEXT, "input"), MANY(2, TEXT, "output"), ONE(3, TEXT, "name"),
	ONE(4, TEXT, "op_type"), PARTS(5, "attribute", attribute), ONE(7, TEXT, "domain"), ONE(8, TEXT, "overload"),
	END};

static const struct ql_pb_field graph[] = {PARTS(1, "node", node), ONE(2, TEXT, "name"),
	PARTS(5, "initializer", tensor), PARTS(11, "input", value_info), PARTS(12, "output", value_info),
	PARTS(15, "sparse_initializer", nothing), END};

static const struct ql_pb_field attribute[] = {ONE(1, TEXT, "name"), ONE(2, FLOAT, "f"), ONE(3, INT, "i"),
	ONE(4, TEXT, "s"), PART(5, "t", tensor), PART(6, "g", graph), MANY(7, FLOAT, "floats"), MANY(8, INT, "ints"),
	MANY(9, TEXT, "strings"), PARTS(10, "tensors", nothing), PARTS(11, "graphs", nothing), PART(14, "tp", nothing),
	ONE(20, INT, "type"), ONE(21, TEXT, "ref_attr_name"), PART(22, "sparse_tensor", nothing), END};

static const struct ql_pb_field function[] = {ONE(1, TEXT, "name"), MANY(4, TEXT, "input"), MANY(5, TEXT, "output"),
	MANY(6, TEXT, "attribute"), PARTS(7, "node", node), PARTS(9, "opset_import", opset), ONE(10, TEXT, "domain"),
	PARTS(11, "attribute_proto", attribute), ONE(13, TEXT, "overload"), END};

const struct ql_pb_field ql_onnx_model[] = {ONE(1, INT, "ir_version"), ONE(2, TEXT, "producer_name"),
	ONE(3, TEXT, "producer_version"), PART(7, "graph", graph), PARTS(8, "opset_import", opset),
	PARTS(14, "metadata_props", pair), PARTS(25, "functions", function), END};
