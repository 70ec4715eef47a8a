/* SPDX-License-Identifier: MIT
 * IDX, the format of MNIST (Y. LeCun): two zero bytes, a type byte, the number of axes, their sizes as 32-bit
 * big-endian numbers, the elements big-endian. Often compressed (.gz or .xz): the size is then known only from the
 * header, and bounded by the size of the file (stream.h).
 */
#include "tensor/io/elements.h"
#include "tensor/io/format.h"

static const struct ql_element_wire *wire_of(uint8_t type)
{
	static const struct ql_element_wire wires[] = {
		{QL_uint8, 1, false, false},
		{QL_int8, 1, false, false},
		{QL_int16, 2, true, false},
		{QL_int32, 4, true, false},
		{QL_float32, 4, true, false},
		{QL_float64, 8, true, false},
	};
	static const uint8_t types[] = {0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e};

	for (size_t i = 0; i < sizeof(types); i++)
		if (types[i] == type)
			return &wires[i];
	return NULL;
}

static bool sniff(const uint8_t *head, size_t n)
{
	return n >= 4 && head[0] == 0 && head[1] == 0 && wire_of(head[2]) && head[3] >= 1 && head[3] <= QL_MAX_RANK;
}

static enum ql_status read_all(struct ql_stream *s, struct ql_tensor **out)
{
	struct ql_ctx *ctx = s->reader->ctx;
	uint8_t head[4], size[4];
	int64_t shape[QL_MAX_RANK];
	enum ql_status status = ql_stream_read(s, head, 4, "idx header");

	if (status)
		return status;
	if (!sniff(head, 4))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"header: wanted 00 00, a type of 08 09 0b 0c 0d 0e and 01 to 08 axes, got %02x %02x "
			"%02x %02x",
			head[0], head[1], head[2], head[3]);
	for (int d = 0; !status && d < head[3]; d++) {
		status = ql_stream_read(s, size, 4, "idx header");
		shape[d] = status ? 0 : ql_be32(size);
	}
	if (!status)
		status = ql_elements_read(s, wire_of(head[2]), head[3], shape, out);
	return status ? status : ql_stream_finish(s);
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct ql_stream s;
	struct ql_tensor *t = NULL;
	enum ql_coding coding;
	enum ql_status status = ql_stream_coding(r, &coding);

	if (status)
		return status;
	status = ql_stream_open(&s, r, 0, r->size, coding, 0);
	if (!status)
		status = read_all(&s, &t);
	ql_stream_close(&s);
	if (!status)
		status = ql_named_add(r->ctx, out, "", t);
	ql_tensor_release(r->ctx, t);
	return status;
}

const struct ql_format ql_format_idx = {
	.doc = {.name = "idx",
		.usage = "tensor.load 'train-images-idx3-ubyte.gz'",
		.text = "One tensor in MNIST's format, plain, .gz or .xz; recognised by its content, too. It "
			"can only be read.",
		.example = "file = data.find 'mnist/t10k-labels-idx1-ubyte.gz'\n"
			   "if file then assert(tensor.load(file):nelem() == 10000) end"},
	.extensions = ".idx -ubyte .idx.gz -ubyte.gz .idx.xz -ubyte.xz",
	.single = true,
	.load = load,
	.sniff = sniff,
};
