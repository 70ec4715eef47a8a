/* SPDX-License-Identifier: MIT
 * One libFuzzer program per file format: any bytes are read as such a file. What loads is looked at: elements
 *are read, quantized tensors decoded. What does not must leave a message. Checksums are not compared in this
 *build.
 *
 *	cmake --preset fuzz && cmake --build --preset fuzz
 *	build/fuzz/tests/fuzz/fuzz_npy -max_len=4096 -max_total_time=60 CORPUS tests/fuzz/seeds/npy
 */
#ifndef QUOLL_TESTS_FUZZ_FUZZ_H
#define QUOLL_TESTS_FUZZ_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/io/format.h"
#include "tensor/kernels/kernels.h"

#define MEMORY ((size_t)64 << 20) /* a file may honestly declare as much as deflate can make of it */
#define LOOK 256                  /* elements read of one tensor */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The kernels that have the sanitizers (CMakeLists.txt). */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return ql_kernels_force("ref") ? 0 : 1;
}

/* Readers of elements, and the decoder, must find what the shape promises. */
static void look(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	struct ql_tensor *decoded;
	int64_t n = ql_min64(ql_tensor_nelem(t), LOOK);
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += ql_tensor_at_f64(t, ql_tensor_nelem(t) - 1 - i);
	if (sum == 0.1234567)
		abort();
	if (t->q && !ql_decode(ctx, t, &decoded))
		ql_tensor_release(ctx, decoded);
}

__attribute__((unused)) static int fuzz(const struct ql_format *format, const uint8_t *data, size_t n)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	struct ql_named_list list = {0};
	struct ql_reader r;

	ctx->quant = &ql_quant_default;
	ctx->memory.limit = ctx->memory.now + MEMORY;
	ql_reader_memory(ctx, data, n, &r);
	if (format->load(&r, &list)) {
		if (!ctx->err[0])
			abort(); /* an error without a message */
	} else {
		for (int64_t i = 0; i < list.n; i++)
			look(ctx, list.at[i].tensor);
	}
	ql_named_clear(ctx, &list);
	ql_ctx_free(ctx);
	return 0;
}

#define FUZZ(name) \
	extern const struct ql_format ql_format_##name; \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) \
	{ \
		return fuzz(&ql_format_##name, data, n); \
	}

#endif
