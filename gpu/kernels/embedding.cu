/* SPDX-License-Identifier: MIT
 * embedding: rows of a table by number, a warp for each; rows of codes are decoded as by dequantize, those that are not named
 * are not read. With a result of codes of one given scale the rows are encoded as by quantize. A number outside of the table is
 * noted and counts as 1.
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
	ql_scales result;
	unsigned long long *counts;
	int32_t id_type, type, to;
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

/* Element c of row r of the codes. */
QL_DEVICE float decoded(const lookup &l, int64_t r, int64_t c)
{
	int64_t k = r / l.down * l.by_row + c / l.across * l.by_column;
	int32_t code = ql_load_code(l.type, l.table, r * l.row + c * l.column);
	float x = (float)(code - ql_zero_at(l.scales, k)) * ql_scale_at(l.scales, k);

	if (l.scales.shift)
		x += ql_load_float(l.scales.shift_type, l.scales.shift, k);
	return x;
}

QL_KERNEL(THREADS) decode_rows(lookup l)
{
	for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < l.ids.count;
		i += (int64_t)gridDim.x * WARPS) {
		int64_t r = row_of(l, i);

		for (int64_t c = threadIdx.x & 31; c < l.d; c += 32)
			static_cast<float *>(l.out)[i * l.d + c] = decoded(l, r, c);
	}
}

/* Of a table of codes or floats. */
QL_KERNEL(THREADS) encode_rows(lookup l)
{
	int32_t zero = ql_zero_at(l.result, 0);
	float scale = ql_scale_at(l.result, 0), lo = (float)(l.result.lo - zero), hi = (float)(l.result.hi - zero);

	for (int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; i < l.ids.count;
		i += (int64_t)gridDim.x * WARPS) {
		int64_t r = row_of(l, i);

		for (int64_t c = threadIdx.x & 31; c < l.d; c += 32) {
			float x = l.scales.scale ? decoded(l, r, c)
						 : ql_load_f32(l.type, l.table, r * l.row + c * l.column);
			float v = rintf(x / scale);

			v = v < lo ? lo : v;
			v = v > hi ? hi : v;
			ql_store_i64(l.to, l.out, i * l.d + c, v != v ? zero : (int64_t)v + zero);
			if (l.counts && x - x != 0)
				atomicAdd(&l.counts[x == x], 1ull);
		}
	}
}

/* ---- the call ---- */

/* True if the rows can be encoded into `out`. */
static bool fits_codes(const struct ql_gpu_tensor *out, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = out->codes;

	if (!ql_scales_fit(out, p))
		return false;
	if (c->flags & QL_GPU_FIND || c->axis >= 0 || c->block || c->shift || c->rounding ||
		!ql_element_whole(ql_element_of(out->dtype)))
		return ql_refuse(p, "the rows are to be quantized without one given scale");
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *table = &call->in[0], *ids = &call->in[1], *out = call->out;
	int type = ql_element_of(table->dtype);

	if (((table->flags | ids->flags) & QL_GPU_NUMBER) || !ql_element_whole(ql_element_of(ids->dtype)))
		return ql_refuse(p, "wanted numbers of whole bytes on the device");
	if (out->codes && !fits_codes(out, p))
		return false;
	if (out->codes && !table->codes && !ql_element_float(type))
		return ql_refuse(p, "a table of integers whose rows are to be quantized");
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

static cudaError_t encode(const struct ql_gpu_place *place, lookup l, const struct ql_gpu_tensor *out, dim3 blocks)
{
	cudaError_t error = cudaSuccess;

	l.result = ql_scales_of(out->codes);
	l.to = ql_element_of(out->dtype);
	l.counts = reinterpret_cast<unsigned long long *>(out->codes->counts);
	if (l.counts)
		error = cudaMemsetAsync(l.counts, 0, 2 * sizeof(*l.counts), place->stream);
	return error ? error : ql_launch_free(encode_rows, blocks, dim3(THREADS), place->stream, l);
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
	if (table->codes)
		find_scales(&l, table->codes);
	if (call->out->codes)
		return encode(place, l, call->out, blocks);
	if (!table->codes)
		return take(place, l, blocks);
	return ql_launch_free(decode_rows, blocks, dim3(THREADS), place->stream, l);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_embedding;
const struct ql_gpu_kernel ql_gpu_kernel_embedding = {"embedding", "embedding", "simt", QL_GPU_BITS, 80, plan, run};
