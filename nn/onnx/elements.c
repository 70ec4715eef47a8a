/* SPDX-License-Identifier: MIT
 * Elements of tensors as raw_data has them: little-endian, and those of fewer than 8 bits low bits first, across rows.
 */
#include "nn/onnx/elements.h"

#include <string.h>

#include "tensor/io/elements.h"
#include "tensor/view.h"

enum { CHUNK = 1 << 16 }; /* bytes that are packed at a time */

/* The low `bits` of bytes, 8 / bits of them in each byte of the file. */
static enum ql_status put_packed(struct ql_writer *w, const uint8_t *from, int64_t n, unsigned bits)
{
	unsigned per = 8 / bits, mask = (1u << bits) - 1;
	uint8_t *chunk = ql_alloc(w->ctx, CHUNK);
	enum ql_status status = chunk ? QL_OK : QL_ERR_MEMORY;

	for (int64_t first = 0; first < n && !status; first += (int64_t)CHUNK * per) {
		int64_t count = n - first < (int64_t)CHUNK * per ? n - first : (int64_t)CHUNK * per;

		memset(chunk, 0, CHUNK);
		for (int64_t i = 0; i < count; i++)
			chunk[i / per] |= (uint8_t)((from[first + i] & mask) << (unsigned)(i % per) * bits);
		status = ql_writer_put(w, chunk, (uint64_t)((count + per - 1) / per));
	}
	ql_free(w->ctx, chunk);
	return status;
}

enum ql_status ql_onnx_elements_write(struct ql_writer *w, struct ql_tensor *t)
{
	struct ql_tensor *bytes = NULL;
	enum ql_status status;

	if (!ql_dtype_is_packed(t->dtype))
		return ql_elements_write(w, t);
	if (8 % ql_dtypes[t->dtype].bits)
		return ql_fail(w->ctx, QL_ERR_UNSUPPORTED, "data type: wanted 1, 2, 4 or at least 8 bits, got %u",
			(unsigned)ql_dtypes[t->dtype].bits);
	status = ql_tensor_cast(w->ctx, t, ql_dtype_whole(t->dtype), &bytes);
	if (!status)
		status = put_packed(w, bytes->storage->data, ql_tensor_nelem(bytes), ql_dtypes[t->dtype].bits);
	ql_tensor_release(w->ctx, bytes);
	return status;
}
