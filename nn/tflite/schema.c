/* SPDX-License-Identifier: MIT
 * Slots of schema.fbs. Fields that no importer looks at are not listed, so they are skipped; options of ops without fields have no table.
 */
#include "nn/tflite/tflite.h"

#define END \
	{ \
		0, QL_FB_BOOL, false, NULL, NULL, NULL \
	}
#define ONE(slot, kind, name) \
	{ \
		slot, QL_FB_##kind, false, name, NULL, NULL \
	}
#define MANY(slot, kind, name) \
	{ \
		slot, QL_FB_##kind, true, name, NULL, NULL \
	}
#define PART(slot, name, of) \
	{ \
		slot, QL_FB_TABLE, false, name, of, NULL \
	}
#define PARTS(slot, name, of) \
	{ \
		slot, QL_FB_TABLE, true, name, of, NULL \
	}
#define CHOICE(slot, name, choices) \
	{ \
		slot, QL_FB_UNION, false, name, NULL, choices \
	}

static const struct ql_fb_field nothing[] = {END}; /* that it is there is enough */

/* ---- options ---- */

static const struct ql_fb_field conv2d[] = {ONE(0, I8, "padding"), ONE(1, I32, "stride_w"), ONE(2, I32, "stride_h"),
	ONE(3, I8, "act"), ONE(4, I32, "dilation_w"), ONE(5, I32, "dilation_h"), END};
static const struct ql_fb_field depthwise[] = {ONE(0, I8, "padding"), ONE(1, I32, "stride_w"), ONE(2, I32, "stride_h"),
	ONE(3, I32, "multiplier"), ONE(4, I8, "act"), ONE(5, I32, "dilation_w"), ONE(6, I32, "dilation_h"), END};
static const struct ql_fb_field transpose_conv[] = {
	ONE(0, I8, "padding"), ONE(1, I32, "stride_w"), ONE(2, I32, "stride_h"), ONE(3, I8, "act"), END};
static const struct ql_fb_field pool[] = {ONE(0, I8, "padding"), ONE(1, I32, "stride_w"), ONE(2, I32, "stride_h"),
	ONE(3, I32, "filter_w"), ONE(4, I32, "filter_h"), ONE(5, I8, "act"), END};
static const struct ql_fb_field svdf[] = {ONE(0, I32, "rank"), ONE(1, I8, "act"), ONE(2, BOOL, "asymmetric"), END};
static const struct ql_fb_field dense[] = {
	ONE(0, I8, "act"), ONE(1, I8, "format"), ONE(2, BOOL, "keep"), ONE(3, BOOL, "asymmetric"), END};
static const struct ql_fb_field softmax[] = {ONE(0, FLOAT, "beta"), END};
static const struct ql_fb_field concatenation[] = {ONE(0, I32, "axis"), ONE(1, I8, "act"), END};
static const struct ql_fb_field act_only[] = {ONE(0, I8, "act"), END};
static const struct ql_fb_field response[] = {
	ONE(0, I32, "radius"), ONE(1, FLOAT, "bias"), ONE(2, FLOAT, "alpha"), ONE(3, FLOAT, "beta"), END};
static const struct ql_fb_field resize_bilinear[] = {ONE(2, BOOL, "corners"), ONE(3, BOOL, "half"), END};
static const struct ql_fb_field resize_nearest[] = {ONE(0, BOOL, "corners"), ONE(1, BOOL, "half"), END};
static const struct ql_fb_field reshape[] = {MANY(0, I32, "shape"), END};
static const struct ql_fb_field block[] = {ONE(0, I32, "block"), END};
static const struct ql_fb_field gather[] = {ONE(0, I32, "axis"), ONE(1, I32, "batch"), END};
static const struct ql_fb_field reducer[] = {ONE(0, BOOL, "keep"), END};
static const struct ql_fb_field squeeze[] = {MANY(0, I32, "axes"), END};
static const struct ql_fb_field strided_slice[] = {ONE(0, I32, "begin_mask"), ONE(1, I32, "end_mask"),
	ONE(2, I32, "ellipsis_mask"), ONE(3, I32, "new_axis_mask"), ONE(4, I32, "shrink_axis_mask"),
	ONE(5, BOOL, "offset"), END};
static const struct ql_fb_field split[] = {ONE(0, I32, "count"), END};
static const struct ql_fb_field cast[] = {ONE(0, I8, "from"), ONE(1, I8, "to"), END};
static const struct ql_fb_field output_type[] = {ONE(0, I8, "type"), END};
static const struct ql_fb_field pack[] = {ONE(0, I32, "count"), ONE(1, I32, "axis"), END};
static const struct ql_fb_field lstm[] = {ONE(0, I8, "act"), ONE(1, FLOAT, "cell_clip"),
	ONE(2, FLOAT, "projection_clip"), ONE(3, BOOL, "time_major"), ONE(4, BOOL, "asymmetric"),
	ONE(5, BOOL, "diagonal"), END};
static const struct ql_fb_field leaky[] = {ONE(0, FLOAT, "alpha"), END};
static const struct ql_fb_field mirror[] = {ONE(0, I8, "mode"), END};
static const struct ql_fb_field matmul[] = {
	ONE(0, BOOL, "adjoint_x"), ONE(1, BOOL, "adjoint_y"), ONE(2, BOOL, "asymmetric"), END};
static const struct ql_fb_field gelu[] = {ONE(0, BOOL, "approximate"), END};

static const struct ql_fb_choice options[] = {{1, conv2d}, {2, depthwise}, {5, pool}, {6, svdf}, {8, dense},
	{9, softmax}, {10, concatenation}, {11, act_only}, {12, act_only}, {13, response}, {15, resize_bilinear},
	{17, reshape}, {19, block}, {21, act_only}, {23, gather}, {27, reducer}, {28, act_only}, {29, act_only},
	{30, squeeze}, {32, strided_slice}, {35, split}, {37, cast}, {40, output_type}, {49, transpose_conv},
	{55, output_type}, {57, output_type}, {59, pack}, {64, pack}, {71, lstm}, {74, resize_nearest}, {75, leaky},
	{77, mirror}, {79, split}, {94, block}, {101, matmul}, {116, gelu}, {0, NULL}};

/* ---- the model ---- */

static const struct ql_fb_field code[] = {
	ONE(0, I8, "deprecated"), ONE(1, TEXT, "custom"), ONE(2, I32, "version"), ONE(3, I32, "builtin"), END};
static const struct ql_fb_field quantization[] = {
	MANY(2, FLOAT, "scale"), MANY(3, I64, "zero_point"), ONE(4, U8, "details"), ONE(6, I32, "axis"), END};
static const struct ql_fb_field tensor[] = {MANY(0, I32, "shape"), ONE(1, I8, "type"), ONE(2, U32, "buffer"),
	ONE(3, TEXT, "name"), PART(4, "quantization", quantization), ONE(5, BOOL, "variable"),
	PART(6, "sparsity", nothing), MANY(7, I32, "signature"), ONE(10, U32, "external"), END};
static const struct ql_fb_field op[] = {ONE(0, U32, "code"), MANY(1, I32, "inputs"), MANY(2, I32, "outputs"),
	CHOICE(4, "options", options), MANY(8, I32, "intermediates"), END};
static const struct ql_fb_field graph[] = {PARTS(0, "tensors", tensor), MANY(1, I32, "inputs"), MANY(2, I32, "outputs"),
	PARTS(3, "ops", op), ONE(4, TEXT, "name"), END};
static const struct ql_fb_field buffer[] = {ONE(0, BYTES, "data"), ONE(1, I64, "offset"), ONE(2, I64, "size"), END};
static const struct ql_fb_field named[] = {ONE(0, TEXT, "name"), ONE(1, U32, "tensor"), END};
static const struct ql_fb_field signature[] = {
	PARTS(0, "inputs", named), PARTS(1, "outputs", named), ONE(2, TEXT, "key"), ONE(4, U32, "graph"), END};

const struct ql_fb_field ql_tflite_model[] = {ONE(0, U32, "version"), PARTS(1, "codes", code),
	PARTS(2, "graphs", graph), ONE(3, TEXT, "description"), PARTS(4, "buffers", buffer),
	PARTS(7, "signatures", signature), END};
