/* SPDX-License-Identifier: MIT
 * TensorProto. Elements are raw_data, or in a field of numbers for their type, of which the low bytes are those of raw_data.
 */
#include "nn/onnx/onnx.h"

#include <string.h>

#include "tensor/io/elements.h"
#include "tensor/view.h"

/* How a data type is stored; bytes 0: two or four elements in a byte, of `packed` bits. */
struct wire {
	struct ql_element_wire of;
	unsigned packed;
};

static bool wire_of(int64_t type, struct wire *w)
{
	static const struct wire wires[] = {
		[1] = {{QL_float32, 4, false, false}, 0},
		[2] = {{QL_uint8, 1, false, false}, 0},
		[3] = {{QL_int8, 1, false, false}, 0},
		[4] = {{QL_uint16, 2, false, false}, 0},
		[5] = {{QL_int16, 2, false, false}, 0},
		[6] = {{QL_int32, 4, false, false}, 0},
		[7] = {{QL_int64, 8, false, false}, 0},
		[9] = {{QL_bool, 1, false, false}, 0},
		[10] = {{QL_float16, 2, false, false}, 0},
		[11] = {{QL_float64, 8, false, false}, 0},
		[12] = {{QL_int64, 4, false, true}, 0},
		[13] = {{QL_int64, 8, false, true}, 0},
		[16] = {{QL_bfloat16, 2, false, false}, 0},
		[17] = {{QL_float8_e4m3, 1, false, false}, 0},
		[19] = {{QL_float8_e5m2, 1, false, false}, 0},
		[21] = {{QL_uint4, 0, false, false}, 4},
		[22] = {{QL_int4, 0, false, false}, 4},
		[23] = {{QL_float8_e4m3, 0, false, false}, 4}, /* float4 of e2m1, whose numbers e4m3 has */
		[24] = {{QL_float8_e8m0, 1, false, false}, 0},
		[25] = {{QL_uint2, 0, false, false}, 2},
		[26] = {{QL_int2, 0, false, false}, 2},
	};

	if (type < 1 || type >= (int64_t)(sizeof(wires) / sizeof(*wires)) ||
		(!wires[type].of.bytes && !wires[type].packed))
		return false;
	*w = wires[type];
	return true;
}

bool ql_onnx_dtype(int64_t type, unsigned *dtype)
{
	struct wire w;

	if (!wire_of(type, &w) || (w.packed && ql_dtype_is_float(w.of.dtype)))
		return false;
	*dtype = w.of.dtype;
	return true;
}

static enum ql_status find_wire(struct ql_ctx *ctx, int64_t type, struct wire *w)
{
	if (wire_of(type, w))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_UNSUPPORTED,
		"data type: wanted numbers of up to 64 bits, bool, float8 of e4m3, e5m2 or e8m0, float4, or integers of 2 or 4 bits, got %s (%lld)",
		type == 8                  ? "strings"
		: type == 14 || type == 15 ? "complex numbers"
					   : "another",
		(long long)type);
}

/* ---- elements ---- */

/* The byte of a packed code: of integers with its sign, of float4 (e2m1) the same number as e4m3. */
static uint8_t unpacked(unsigned dtype, unsigned code, unsigned mask)
{
	static const uint8_t e4m3[] = {0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};

	if (ql_dtype_is_float(dtype))
		return (uint8_t)(e4m3[code & 7] | (code & 8) << 4);
	return (uint8_t)(ql_dtypes[dtype].kind == QL_KIND_INT && code > mask / 2 ? code - mask - 1 : code);
}

/* Packed elements, `bits` each, low bits first and across rows. */
static enum ql_status read_packed(const struct ql_reader *r, uint64_t offset, uint64_t size, const struct wire *w,
	int rank, const int64_t *shape, struct ql_tensor **out)
{
	unsigned per = 8 / w->packed, mask = (1u << w->packed) - 1;
	struct ql_tensor *bytes = NULL;
	char *from = NULL;
	enum ql_status status = ql_tensor_new(r->ctx, ql_dtype_whole(w->of.dtype), rank, shape, &bytes);
	int64_t n = status ? 0 : ql_tensor_nelem(bytes);
	uint8_t *to = status ? NULL : bytes->storage->data;

	if (!status)
		status = ql_reader_take(r, offset, size, "data", &from);
	for (int64_t i = 0; i < n && !status; i++) {
		unsigned byte = (unsigned char)from[i / per], code = byte >> (unsigned)(i % per) * w->packed & mask;

		to[i] = unpacked(w->of.dtype, code, mask);
	}
	ql_free(r->ctx, from);
	if (!status)
		status = ql_tensor_cast(r->ctx, bytes, w->of.dtype, out);
	ql_tensor_release(r->ctx, bytes);
	return status;
}

/* Bytes of so many elements. */
static enum ql_status bytes_of(
	struct ql_ctx *ctx, const struct wire *w, int rank, const int64_t *shape, uint64_t *bytes)
{
	enum ql_status status = ql_elements_size(ctx, rank, shape, w->packed ? 1 : w->of.bytes, bytes);

	if (w->packed)
		*bytes = *bytes / (8 / w->packed) + (*bytes % (8 / w->packed) != 0);
	return status;
}

enum ql_status ql_onnx_elements(const struct ql_reader *r, uint64_t offset, uint64_t size, int64_t type, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	struct wire w;
	struct ql_stream s;
	uint64_t wanted = 0;
	enum ql_status status = find_wire(r->ctx, type, &w);

	*out = NULL;
	if (!status)
		status = bytes_of(r->ctx, &w, rank, shape, &wanted);
	if (status)
		return status;
	if (size != QL_ONNX_ALL && wanted != size)
		return ql_fail(r->ctx, QL_ERR_FORMAT, "data: wanted %llu bytes, got %llu", (unsigned long long)wanted,
			(unsigned long long)size);
	status = ql_reader_check(r, offset, wanted, "data");
	if (status || w.packed)
		return status ? status : read_packed(r, offset, wanted, &w, rank, shape, out);
	status = ql_stream_open(&s, r, offset, wanted, QL_STORED, 0);
	if (!status)
		status = ql_elements_read(&s, &w.of, rank, shape, out);
	ql_stream_close(&s);
	return status;
}

/* ---- the message ---- */

enum { FLOAT = 1, DOUBLE = 11 }; /* of TensorProto.DataType */
enum field { DIMS = 1, TYPE = 2, FLOATS = 4, INTS = 5, LONGS = 7, RAW = 9, DOUBLES = 10, UNSIGNED = 11 };

static const struct ql_pb_field fields[] = {{DIMS, QL_PB_INT, true, "dims", NULL},
	{TYPE, QL_PB_INT, false, "data_type", NULL}, {RAW, QL_PB_BYTES, false, "raw_data", NULL},
	{FLOATS, QL_PB_FLOATS, true, "float_data", NULL}, {DOUBLES, QL_PB_DOUBLES, true, "double_data", NULL},
	{0, 0, false, NULL, NULL}};

static const struct ql_pb_field numbers[] = {{FLOATS, QL_PB_FLOAT, true, "float_data", NULL},
	{INTS, QL_PB_INT, true, "int32_data", NULL}, {LONGS, QL_PB_INT, true, "int64_data", NULL},
	{DOUBLES, QL_PB_DOUBLE, true, "double_data", NULL}, {UNSIGNED, QL_PB_INT, true, "uint64_data", NULL},
	{0, 0, false, NULL, NULL}};

struct tensor_message {
	struct ql_ctx *ctx;
	int64_t type, shape[QL_MAX_RANK];
	int rank;
	bool raw;
	uint64_t offset, size; /* of raw_data, or of packed numbers */
	int lists;             /* of floats or doubles: packed ones, or single numbers */
	enum field list;       /* the last of them */
	uint8_t *bytes;        /* as raw_data would be */
	uint64_t room, filled;
	unsigned step; /* bytes of a number */
};

static enum ql_status take_dim(struct tensor_message *t, int64_t dim)
{
	if (t->rank == QL_MAX_RANK || dim < 0)
		return ql_fail(t->ctx, QL_ERR_FORMAT, "dims: wanted at most %d sizes of 0 and up, got %s", QL_MAX_RANK,
			dim < 0 ? "a negative one" : "more");
	t->shape[t->rank++] = dim;
	return QL_OK;
}

static enum ql_status take_field(void *arg, const struct ql_pb_event *e)
{
	struct tensor_message *t = arg;
	enum field field = (enum field)e->field->number;

	if (field == DIMS)
		return take_dim(t, e->i);
	if (field == TYPE)
		t->type = e->i;
	else if (field == RAW)
		t->raw = true;
	else
		t->lists += t->lists < 2;
	if (field == RAW || (field != TYPE && !t->raw)) {
		t->list = field;
		t->offset = e->offset;
		t->size = e->size;
	}
	return QL_OK;
}

/* Floats and doubles have a field of their own, which others may not use: numbers are copied with the size of the type. */
static bool belongs(const struct ql_pb_field *f, int64_t type)
{
	return f->kind == QL_PB_FLOAT    ? type == FLOAT
	       : f->kind == QL_PB_DOUBLE ? type == DOUBLE
					 : type != FLOAT && type != DOUBLE;
}

/* Whether the numbers are in one piece with the bytes that raw_data would have, as many as wanted. */
static bool is_whole(const struct tensor_message *t)
{
	struct wire w;
	uint64_t wanted = 0;

	if (t->lists != 1 || !wire_of(t->type, &w) || bytes_of(t->ctx, &w, t->rank, t->shape, &wanted) ||
		wanted != t->size)
		return false;
	return (t->list == FLOATS && w.of.dtype == QL_float32) || (t->list == DOUBLES && w.of.dtype == QL_float64);
}

static enum ql_status take_number(void *arg, const struct ql_pb_event *e)
{
	struct tensor_message *t = arg;
	float single = (float)e->f;
	const void *from = e->field->kind == QL_PB_FLOAT    ? (const void *)&single
			   : e->field->kind == QL_PB_DOUBLE ? (const void *)&e->f
							    : &e->i;

	if (!belongs(e->field, t->type))
		return ql_fail(t->ctx, QL_ERR_FORMAT, "data: wanted numbers of data type %lld, got %s",
			(long long)t->type, e->field->name);
	if (t->filled + t->step > t->room)
		return ql_fail(t->ctx, QL_ERR_FORMAT, "data: wanted %llu numbers, got more",
			(unsigned long long)(t->room / t->step));
	memcpy(t->bytes + t->filled, from, t->step);
	t->filled += t->step;
	return QL_OK;
}

/* Reads numbers of other fields than raw_data, which have at least a byte each in the file. */
static enum ql_status read_numbers(
	const struct ql_reader *r, uint64_t offset, uint64_t size, struct tensor_message *t, struct ql_tensor **out)
{
	struct ql_reader memory;
	struct wire w = {.packed = 0};
	enum ql_status status = find_wire(r->ctx, t->type, &w);

	if (!status)
		status = bytes_of(r->ctx, &w, t->rank, t->shape, &t->room);
	if (status)
		return status;
	t->step = w.packed ? 1 : w.of.bytes;
	if (t->room / t->step > size)
		return ql_fail(r->ctx, QL_ERR_FORMAT, "data: wanted %llu numbers, got %llu bytes",
			(unsigned long long)(t->room / t->step), (unsigned long long)size);
	t->bytes = ql_alloc(r->ctx, (size_t)t->room);
	if (!t->bytes)
		return QL_ERR_MEMORY;
	status = ql_protobuf_read(r, offset, size, numbers, take_number, t);
	ql_reader_memory(r->ctx, t->bytes, t->filled, &memory);
	if (!status)
		status = ql_onnx_elements(&memory, 0, t->filled, t->type, t->rank, t->shape, out);
	ql_free(r->ctx, t->bytes);
	return status;
}

enum ql_status ql_onnx_tensor(const struct ql_reader *r, uint64_t offset, uint64_t size, struct ql_tensor **out)
{
	struct tensor_message t = {.ctx = r->ctx};
	enum ql_status status = ql_protobuf_read(r, offset, size, fields, take_field, &t);

	*out = NULL;
	if (status)
		return status;
	return t.raw || is_whole(&t) ? ql_onnx_elements(r, t.offset, t.size, t.type, t.rank, t.shape, out)
				     : read_numbers(r, offset, size, &t, out);
}
