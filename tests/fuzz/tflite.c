/* SPDX-License-Identifier: MIT
 * Fuzzes the reader of TFLite models: the model is read, and the elements of each tensor from the buffer that it names.
 */
#include "nn/onnx/onnx.h"
#include "nn/tflite/tflite.h"
#include "tests/fuzz/fuzz.h"

#define MOST 16

struct found {
	const struct ql_reader *r;
	int depth, shapes, buffers;
	int64_t shape[MOST];
	struct {
		uint64_t offset, size;
	} buffer[MOST];
};

static enum ql_status take(void *arg, const struct ql_fb_event *e)
{
	struct found *f = arg;
	char text[64];

	f->depth += e->what == QL_FB_BEGIN ? 1 : e->what == QL_FB_END ? -1 : 0;
	if (f->depth < 0)
		abort();
	if (e->what != QL_FB_VALUE)
		return QL_OK;
	if (e->field->kind == QL_FB_BYTES && f->buffers < MOST) {
		f->buffer[f->buffers].offset = e->offset;
		f->buffer[f->buffers++].size = e->size;
	}
	if (!strcmp(e->field->name, "shape") && f->shapes < MOST)
		f->shape[f->shapes++] = e->i;
	return e->field->kind == QL_FB_TEXT
		       ? ql_reader_at(f->r, e->offset, ql_min64((int64_t)e->size, 64) > 0 ? 1 : 0, text, "text")
		       : QL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	struct ql_reader r;
	struct found f = {.r = &r};
	struct ql_tensor *t;

	ctx->memory.limit = ctx->memory.now + MEMORY;
	ql_reader_memory(ctx, data, n, &r);
	if (ql_flatbuffer_read(&r, QL_TFLITE_IDENTIFIER, ql_tflite_model, take, &f) && !ctx->err[0])
		abort(); /* an error without a message */
	for (int i = 0; i < f.buffers; i++)
		for (int type = 1; type < 27; type++) {
			int rank = f.shapes < 4 ? f.shapes : 4;
			bool negative = false;

			for (int d = 0; d < rank; d++)
				negative = negative || f.shape[d] < 0;
			if (!negative &&
				!ql_onnx_elements(&r, f.buffer[i].offset, f.buffer[i].size, type, rank, f.shape, &t)) {
				look(ctx, t);
				ql_tensor_release(ctx, t);
			}
		}
	ql_ctx_free(ctx);
	return 0;
}
