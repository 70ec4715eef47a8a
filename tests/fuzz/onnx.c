/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of ONNX: any bytes are read as a model, and each of its tensors as a TensorProto.
 */
#include "nn/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

struct reading {
	struct ql_ctx *ctx;
	const struct ql_reader *r;
};

/* Tensors that are too large for their bytes must be refused before memory is taken for them. */
static enum ql_status take(void *arg, const struct ql_pb_event *e)
{
	const struct reading *in = arg;
	struct ql_tensor *t = NULL;
	enum ql_status status;

	if (e->what != QL_PB_BEGIN || !ql_onnx_is_tensor(e->field))
		return QL_OK;
	status = ql_onnx_tensor(in->r, e->offset, e->size, &t);
	if (!status)
		look(in->ctx, t);
	else if (!in->ctx->err[0])
		abort();
	ql_tensor_release(in->ctx, t);
	return QL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	struct ql_reader r;
	struct reading in = {ctx, &r};

	ctx->quant = &ql_quant_default;
	ctx->memory.limit = ctx->memory.now + MEMORY;
	ql_reader_memory(ctx, data, n, &r);
	if (ql_protobuf_read(&r, 0, n, ql_onnx_model, take, &in) && !ctx->err[0])
		abort(); /* an error without a message */
	ql_ctx_free(ctx);
	return 0;
}
