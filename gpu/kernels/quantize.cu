/* SPDX-License-Identifier: MIT
 * quantize and encode: codes of at most 16 bits, affine or of a table, per tensor, axis or block, by encode.h. With QL_GPU_FIND
 * scale and zero point are found first, by quant/ranges/fit.c.
 *
 * blocks_fit_half answers, as one int32, whether all scales that quantize would find for blocks are normal float16 numbers,
 * so that the caller can choose their dtype.
 *
 * finite_range gives the smallest and the largest finite value, as two float32; infinity and -infinity where there is none.
 */
#include "gpu/kernels/encode.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/range_fit.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define PIECE 16384 /* elements that a warp looks at */
#define SHORT 64    /* up to here a thread looks at all elements of a scale */
#define ALL 0xffffffffu

/* ---- the range under each scale ---- */

/* Ordered as the floats are; 0 and ~0 belong to NaN. */
QL_NUMBER uint32_t key_of(float x)
{
	uint32_t bits = ql_bits_of(x);

	return bits >> 31 ? ~bits : bits | 0x80000000u;
}
QL_NUMBER float of_key(uint32_t key)
{
	return ql_float_of(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* Of the finite values under a scale: hi is 0 when there is none. */
struct found {
	uint32_t *lo, *hi;
};

struct search {
	ql_strided kept;  /* operand 0: the first element under each scale */
	ql_strided along; /* its elements; of blocks: one axis, of which the last block of a line has fewer */
	int64_t scales, pieces;
	int64_t line, blocks; /* of blocks: elements of the line, blocks in it; else 0 */
	int64_t inner;        /* of blocks: scales after the block axis */
	const void *in;
	int32_t from;
	struct found found;
};

/* Elements under a scale; blocks at the end of a line have fewer. */
QL_NUMBER int64_t elements_of(const search &s, int64_t scale)
{
	int64_t left = s.blocks ? s.line - scale / s.inner % s.blocks * s.along.count : s.along.count;

	return left < s.along.count && !QL_BUG(find_short_block) ? left : s.along.count;
}

/* Widens lo .. hi by element i of the scale whose elements begin at `first`. */
QL_NUMBER void look(const search &s, int64_t first, int64_t i, uint32_t &lo, uint32_t &hi)
{
	int64_t at[QL_STRIDED_MOST];
	float x;

	ql_strided_at(s.along, i, at);
	x = ql_load_f32(s.from, s.in, first + at[0]);
	if (x - x == 0) {
		lo = min(lo, key_of(x));
		hi = max(hi, key_of(x));
	}
}

/* A warp for PIECE elements of a scale. */
QL_KERNEL(THREADS) find_ranges(search s)
{
	for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < s.scales * s.pieces;
		item += (int64_t)gridDim.x * WARPS) {
		int64_t scale = item / s.pieces, begin = item % s.pieces * PIECE, n = elements_of(s, scale);
		int64_t first[QL_STRIDED_MOST], end = begin + PIECE < n ? begin + PIECE : n;
		uint32_t lo = ~0u, hi = 0;

		ql_strided_at(s.kept, scale, first);
		for (int64_t i = begin + (threadIdx.x & 31); i < end; i += 32)
			look(s, first[0], i, lo, hi);
		for (int d = 16; d; d >>= 1) {
			lo = min(lo, __shfl_xor_sync(ALL, lo, d));
			hi = max(hi, __shfl_xor_sync(ALL, hi, d));
		}
		if ((threadIdx.x & 31) == 0 && hi) {
			atomicMin(&s.found.lo[scale], lo);
			atomicMax(&s.found.hi[scale], hi);
		}
	}
}

/* A thread for each scale. */
QL_KERNEL(THREADS) find_short_ranges(search s)
{
	for (int64_t scale = ql_thread(); scale < s.scales; scale += ql_threads()) {
		int64_t n = elements_of(s, scale), first[QL_STRIDED_MOST];
		uint32_t lo = ~0u, hi = 0;

		ql_strided_at(s.kept, scale, first);
		for (int64_t i = 0; i < n; i++)
			look(s, first[0], i, lo, hi);
		s.found.lo[scale] = lo;
		s.found.hi[scale] = hi;
	}
}

/* ---- scale and zero point from a range ---- */

QL_KERNEL(THREADS) fit(found f, ql_fit_rule r, ql_scales s, int64_t scales)
{
	for (int64_t i = ql_thread(); i < scales; i += ql_threads()) {
		double lo = f.hi[i] ? (double)of_key(f.lo[i]) : 0, hi = f.hi[i] ? (double)of_key(f.hi[i]) : 0;
		float x = ql_fit_scale(r, s.scale_type, lo, hi);

		ql_store_f32(s.scale_type, s.scale, i, x);
		if (s.zero)
			ql_store_i64(s.zero_type, s.zero, i, ql_fit_zero(r, lo, x));
	}
}

/* *all was 1 and becomes 0 when a scale is no normal float16 number. */
QL_KERNEL(THREADS) fits_half(found f, ql_fit_rule r, int32_t *all, int64_t scales)
{
	for (int64_t i = ql_thread(); i < scales; i += ql_threads()) {
		double lo = f.hi[i] ? (double)of_key(f.lo[i]) : 0, hi = f.hi[i] ? (double)of_key(f.hi[i]) : 0;
		double scale = ql_fit_exact(r, lo, hi);

		if (scale != 0 && (scale < 0x1p-14 || scale > 65504.0))
			atomicMin(all, 0);
	}
}

QL_KERNEL(32) ends_of(found f, float *out)
{
	if (ql_thread() != 0)
		return;
	out[0] = *f.hi ? of_key(*f.lo) : INFINITY;
	out[1] = *f.hi ? of_key(*f.hi) : -INFINITY;
}

QL_KERNEL(32) set_one(int32_t *to)
{
	if (ql_thread() == 0)
		*to = 1;
}

/* ---- the call ---- */

static int64_t scales_of(const struct ql_gpu_tensor *t, const struct ql_gpu_codes *c)
{
	int64_t n = 1;

	if (!c->block)
		return c->axis < 0 ? 1 : t->shape[c->axis];
	for (int d = 0; d < t->rank; d++)
		n *= d == c->block_axis ? (t->shape[d] + c->block - 1) / c->block : t->shape[d];
	return n;
}

static bool asks_half(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "blocks_fit_half");
}

static bool asks_range(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "finite_range");
}

static bool plan_range(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;

	if (call->n_in != 1 || in->codes || in->flags & QL_GPU_NUMBER || !ql_element_whole(ql_element_of(in->dtype)))
		return ql_refuse(p, "wanted plain numbers of whole bytes");
	if (ql_element_of(out->dtype) != QL_E_float32 || ql_count(out) != 2 || !ql_dense(out))
		return ql_refuse(p, "wanted two float32 as the result");
	p->path = "float32";
	p->workspace = 2 * sizeof(uint32_t);
	return true;
}

/* True if elements can be encoded into `out`. */
static bool fits_result(const struct ql_gpu_tensor *out, struct ql_gpu_plan *p)
{
	int element = ql_element_of(out->dtype);

	if (out->codes->rounding)
		return ql_refuse(p, "numbers are divided by the scale, not rescaled in fixed point");
	if (!(out->codes->grid ? ql_table_fits(out, p) : ql_scales_fit(out, p)))
		return false;
	return (ql_element_whole(element) ? ql_dense(out) : ql_packed_dense(out)) ||
	       ql_refuse(p, "the result is a view");
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = out->codes;
	bool half = asks_half(call);

	if (asks_range(call))
		return plan_range(call, p);
	if (!c || in->codes || (in->flags & QL_GPU_NUMBER) || !ql_element_whole(ql_element_of(in->dtype)))
		return ql_refuse(p, "wanted plain numbers of whole bytes, to be quantized");
	if (half && ql_element_of(out->dtype) != QL_E_int32)
		return ql_refuse(p, "wanted an int32 result");
	if (!half && !fits_result(out, p))
		return false;
	if ((half || c->flags & QL_GPU_FIND) && !ql_fit_takes(c, p))
		return false;
	p->path = ql_element_get(ql_element_of(out->dtype)).name;
	p->workspace = half || c->flags & QL_GPU_FIND ? (uint64_t)scales_of(in, c) * 2 * sizeof(uint32_t) : 0;
	return true;
}

static search search_of(const struct ql_gpu_tensor *in, const struct ql_gpu_codes *c, void *workspace)
{
	struct ql_gpu_tensor first = *in;
	search s = {};

	s.scales = scales_of(in, c);
	s.from = ql_element_of(in->dtype);
	s.in = in->at;
	s.found.lo = static_cast<uint32_t *>(workspace);
	s.found.hi = s.found.lo + s.scales;
	if (c->block) {
		int axis = c->block_axis;

		s.line = in->shape[axis];
		s.blocks = (s.line + c->block - 1) / c->block;
		s.inner = 1;
		for (int d = axis + 1; d < in->rank; d++)
			s.inner *= in->shape[d];
		first.shape[axis] = s.blocks;
		first.stride[axis] = in->stride[axis] * c->block;
		s.kept = ql_strided_of(&first, NULL, ~0u);
		s.along = ql_strided_of(in, NULL, 1u << axis);
		s.along.count = c->block < s.line ? c->block : s.line;
		s.along.shape[0] = s.along.count;
	} else {
		uint32_t kept = c->axis < 0 ? 0 : 1u << c->axis;

		s.kept = ql_strided_of(in, NULL, kept);
		s.along = ql_strided_of(in, NULL, ~kept);
	}
	s.pieces = (s.along.count + PIECE - 1) / PIECE;
	return s;
}

/* Ranges of all scales into the workspace. */
static cudaError_t find(const struct ql_gpu_place *place, const search &s)
{
	size_t bytes = (size_t)s.scales * sizeof(uint32_t);
	cudaError_t error = cudaMemsetAsync(s.found.lo, 0xff, bytes, place->stream);

	if (!error)
		error = cudaMemsetAsync(s.found.hi, 0, bytes, place->stream);
	if (error || s.pieces == 0)
		return error;
	if (s.along.count <= SHORT)
		return ql_launch_free(find_short_ranges, ql_blocks(s.scales, THREADS), dim3(THREADS), place->stream, s);
	return ql_launch(find_ranges, ql_blocks(s.scales * s.pieces, WARPS), dim3(THREADS), 0, place->stream, s);
}

static cudaError_t answer_half(const struct ql_gpu_place *place, const struct ql_gpu_call *call, const search &s)
{
	const struct ql_gpu_codes *c = call->out->codes;
	ql_fit_rule r = ql_fit_rule_of(c);
	int32_t *all = static_cast<int32_t *>(call->out->at);
	cudaError_t error = ql_launch_free(set_one, dim3(1), dim3(32), place->stream, all);

	if (error || s.scales == 0)
		return error;
	error = find(place, s);
	if (error)
		return error;
	return ql_launch_free(
		fits_half, ql_blocks(s.scales, THREADS), dim3(THREADS), place->stream, s.found, r, all, s.scales);
}

static cudaError_t find_scales(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_codes *c = call->out->codes;
	search s = search_of(call->in, c, call->workspace);
	ql_fit_rule r = ql_fit_rule_of(c);
	cudaError_t error;

	if (asks_half(call))
		return answer_half(place, call, s);
	if (s.scales == 0)
		return cudaSuccess;
	error = find(place, s);
	if (error)
		return error;
	return ql_launch_free(
		fit, ql_blocks(s.scales, THREADS), dim3(THREADS), place->stream, s.found, r, ql_scales_of(c), s.scales);
}

static cudaError_t run_range(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_codes all = {};
	search s;
	cudaError_t error;

	all.axis = all.block_axis = -1;
	s = search_of(call->in, &all, call->workspace);
	error = find(place, s);
	if (error)
		return error;
	return ql_launch_free(ends_of, dim3(1), dim3(32), place->stream, s.found, static_cast<float *>(call->out->at));
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_codes *codes = call->out->codes;
	cudaError_t error = cudaSuccess;

	if (asks_range(call))
		return run_range(place, call);
	if (asks_half(call) || codes->flags & QL_GPU_FIND)
		error = find_scales(place, call);
	if (error || asks_half(call))
		return error;
	return ql_encode_run(place, call);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_quantize;
const struct ql_gpu_kernel ql_gpu_kernel_quantize = {
	"quantize encode blocks_fit_half finite_range", "quantize", "simt", QL_GPU_BITS, 80, plan, run};
