/* SPDX-License-Identifier: MIT
 * embedding: rows of a table by number, a warp for each; rows of codes are decoded as by dequantize, those that are not named
 * are not read. A number outside of the table is noted and counts as 1.
 */
#include "gpu/kernels/fault.h"
#include "gpu/kernels/scales.h"

#define THREADS 256
#define WARPS (THREADS / 32)

struct lookup {
	ql_strided ids;
	const void *number, *table;
	void *out;
	int64_t rows, d, row, column; /* of the table: sizes, strides */
	ql_scales scales;
	int64_t down, across, by_row,
		by_column; /* element (r, c) has scale r / down * by_row + c / across * by_column */
	int32_t id_type, type;
	uint64_t serial;
	ql_gpu_record *record;
};

/* The row of id i, from 0. */
QL_DEVICE int64_t row_of(const lookup &l, int64_t i)
{
	int64_t at[QL_STRIDED_MOST], id;

	ql_strided_at(l.ids, i, at);
	id = ql_load_i64(l.id_type, l.number, at[0]);
	if (id >= 1 && id <= l.rows)
		return id - 1;
	if ((threadIdx.x & 31) == 0)
		ql_note(l.record, l.serial, QL_GPU_FAULT_INDEX, i, id, l.rows);
	return 0;
}

/* Elements as they are: d elements of the size of T. */
template <typename T> QL_KERNEL(THREADS) take_rows(lookup l)
{
	const T *table = static_cast<const T *>(l.table);
	T *out = static_cast<T *>(l.out);

	for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < l.ids.count;
		i += (int64_t)gridDim.x * WARPS) {
		int64_t from = row_of(l, i) * l.row;

		for (int64_t c = threadIdx.x & 31; c < l.d - QL_BUG(embedding_tail); c += 32)
			out[i * l.d + c] = table[from + c * l.column];
	}
}

QL_KERNEL(THREADS) decode_rows(lookup l)
{
	for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < l.ids.count;
		i += (int64_t)gridDim.x * WARPS) {
		int64_t r = row_of(l, i), first = r / l.down * l.by_row;

		for (int64_t c = threadIdx.x & 31; c < l.d; c += 32) {
			int64_t k = first + c / l.across * l.by_column;
			int32_t code = (int32_t)ql_load_i64(l.type, l.table, r * l.row + c * l.column);
			float x = (float)(code - ql_zero_at(l.scales, k)) * ql_scale_at(l.scales, k);

			if (l.scales.shift)
				x += ql_load_f32(l.scales.shift_type, l.scales.shift, k);
			static_cast<float *>(l.out)[i * l.d + c] = x;
		}
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *table = &call->in[0], *ids = &call->in[1], *out = call->out;
	int type = ql_element_of(table->dtype);

	if (((table->flags | ids->flags) & QL_GPU_NUMBER) || !ql_element_whole(ql_element_of(ids->dtype)))
		return ql_refuse(p, "wanted numbers of whole bytes on the device");
	if (out->codes)
		return ql_refuse(p, "the rows are to be quantized");
	if (!ql_dense(out))
		return ql_refuse(p, "the result is a view");
	if (table->codes ? !ql_scales_fit(table, p) : !ql_element_whole(type))
		return p->why[0] ? false : ql_refuse(p, "a table of packed elements");
	p->path = ql_element_get(type).name;
	p->faults = 1;
	return true;
}

/* Where the scales of the table's elements are. */
static void find_scales(lookup *l, const struct ql_gpu_codes *c)
{
	l->scales = ql_scales_of(c);
	if (c->block) {
		l->down = c->block_axis == 0 ? c->block : 1;
		l->across = c->block_axis == 0 ? 1 : c->block;
		l->by_row = (l->d + l->across - 1) / l->across;
		l->by_column = 1;
	} else {
		l->by_row = c->axis == 0;
		l->by_column = c->axis == 1;
	}
}

/* Whole rows in steps of 16 bytes where they are aligned. */
static cudaError_t take(const struct ql_gpu_place *place, lookup l, dim3 blocks)
{
	int64_t size = ql_element_get(l.type).bits / 8;

	if (l.column == 1 && l.d * size % 16 == 0 && l.row * size % 16 == 0 &&
		((uintptr_t)l.table | (uintptr_t)l.out) % 16 == 0) {
		l.d = l.d * size / 16;
		l.row = l.row * size / 16;
		return ql_launch_free(take_rows<uint4>, blocks, dim3(THREADS), place->stream, l);
	}
	switch (size) {
	case 1: return ql_launch_free(take_rows<uint8_t>, blocks, dim3(THREADS), place->stream, l);
	case 2: return ql_launch_free(take_rows<uint16_t>, blocks, dim3(THREADS), place->stream, l);
	case 4: return ql_launch_free(take_rows<uint32_t>, blocks, dim3(THREADS), place->stream, l);
	default: return ql_launch_free(take_rows<uint64_t>, blocks, dim3(THREADS), place->stream, l);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *table = &call->in[0], *ids = &call->in[1];
	lookup l = {};
	dim3 blocks;

	l.ids = ql_strided_of(ids, NULL, ~0u);
	l.number = ids->at;
	l.table = table->at;
	l.out = call->out->at;
	l.rows = table->shape[0];
	l.d = table->shape[1];
	l.row = table->stride[0];
	l.column = table->stride[1];
	l.down = l.across = 1;
	l.id_type = ql_element_of(ids->dtype);
	l.type = ql_element_of(table->dtype);
	l.serial = call->serial;
	l.record = place->record;
	if (l.ids.count == 0)
		return cudaSuccess;
	blocks = ql_blocks(l.ids.count, WARPS);
	if (!table->codes)
		return take(place, l, blocks);
	find_scales(&l, table->codes);
	return ql_launch_free(decode_rows, blocks, dim3(THREADS), place->stream, l);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_embedding;
const struct ql_gpu_kernel ql_gpu_kernel_embedding = {"embedding", "embedding", "simt", QL_GPU_BITS, 80, plan, run};
