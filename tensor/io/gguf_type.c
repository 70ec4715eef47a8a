/* SPDX-License-Identifier: MIT
 * Types of tensors in GGUF files: numbers and sizes as in ggml.h. Types without a format here have a name and a size only.
 */
#include <string.h>

#include "tensor/io/gguf.h"
#include "tensor/op.h"

#define PLAIN(id, name, bytes, dtype) \
	{ \
		id, name, bytes, 1, QL_##dtype, NULL, NULL, NULL \
	}
#define BLOCKS(id, name, bytes, elements, format, functions) \
	{ \
		id, name, bytes, elements, 0, format, ql_gguf_unpack_##functions, ql_gguf_pack_##functions \
	}
#define OTHER(id, name, bytes, elements) \
	{ \
		id, name, bytes, elements, 0, NULL, NULL, NULL \
	}

static const struct ql_gguf_type types[] = {
	PLAIN(0, "F32", 4, float32),
	PLAIN(1, "F16", 2, float16),
	BLOCKS(2, "Q4_0", 18, 32, "q4_0", q4_0),
	BLOCKS(3, "Q4_1", 20, 32, "q4_1", q4_1),
	BLOCKS(6, "Q5_0", 22, 32, "q5_0", q5_0),
	BLOCKS(7, "Q5_1", 24, 32, "q5_1", q5_1),
	BLOCKS(8, "Q8_0", 34, 32, "q8_0", q8_0),
	OTHER(9, "Q8_1", 36, 32),
	BLOCKS(10, "Q2_K", 84, 256, "q2_k", q2_k),
	BLOCKS(11, "Q3_K", 110, 256, "q3_k", q3_k),
	BLOCKS(12, "Q4_K", 144, 256, "q4_k", q4_k),
	BLOCKS(13, "Q5_K", 176, 256, "q5_k", q5_k),
	BLOCKS(14, "Q6_K", 210, 256, "q6_k", q6_k),
	OTHER(15, "Q8_K", 292, 256),
	OTHER(16, "IQ2_XXS", 66, 256),
	OTHER(17, "IQ2_XS", 74, 256),
	OTHER(18, "IQ3_XXS", 98, 256),
	OTHER(19, "IQ1_S", 50, 256),
	BLOCKS(20, "IQ4_NL", 18, 32, "iq4_nl", iq4_nl),
	OTHER(21, "IQ3_S", 110, 256),
	OTHER(22, "IQ2_S", 82, 256),
	OTHER(23, "IQ4_XS", 136, 256),
	PLAIN(24, "I8", 1, int8),
	PLAIN(25, "I16", 2, int16),
	PLAIN(26, "I32", 4, int32),
	PLAIN(27, "I64", 8, int64),
	PLAIN(28, "F64", 8, float64),
	OTHER(29, "IQ1_M", 56, 256),
	PLAIN(30, "BF16", 2, bfloat16),
	BLOCKS(34, "TQ1_0", 54, 256, "tq1_0", tq1_0),
	BLOCKS(35, "TQ2_0", 66, 256, "tq2_0", tq2_0),
	BLOCKS(39, "MXFP4", 17, 32, "gguf.mxfp4", mxfp4),
	OTHER(40, "NVFP4", 36, 64),
	OTHER(41, "Q1_0", 18, 128),
	{0, NULL, 0, 0, 0, NULL, NULL, NULL},
};

const struct ql_gguf_type *ql_gguf_type_by_id(uint32_t id)
{
	for (const struct ql_gguf_type *type = types; type->bytes; type++)
		if (type->id == id)
			return type;
	return NULL;
}

bool ql_gguf_type_known(const struct ql_gguf_type *type)
{
	return type && (type->elements == 1 || type->format);
}

const struct ql_gguf_type *ql_gguf_type_of(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	const char *format = t->q && t->q->format ? ctx->quant->formats->name(t->q->format) : "";
	bool rows = t->q && t->q->block_axis == t->rank - 1 && !t->q->bits && !t->q->values;

	for (const struct ql_gguf_type *type = types; type->bytes; type++)
		if (t->q ? rows && type->format && !strcmp(type->format, format)
			 : type->elements == 1 && type->dtype == t->dtype)
			return type;
	return NULL;
}
