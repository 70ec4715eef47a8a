/* SPDX-License-Identifier: MIT
 * linear and matmul of at most 8 rows of a, where products need no order: what reading b takes decides. b is floats, or affine
 * codes of 8 or 4 bits, with k in order; a warp has a few of its lines, a lane reads 16 bytes of each at a time. a waits in
 * shared memory.
 *
 * A code u becomes the float 2^23 + u by being put into its mantissa, where it lies: the code j of a half word of codes of
 * `bits` bits gives 2^23 + 2^(bits j) u. The difference to 2^23 + 2^(bits j) (zero point) is exact; a is multiplied by
 * 2^-(bits j) before. So a code costs a mask, a difference and a fused product per row, and a group of codes one scale.
 */
#include "gpu/kernels/float_product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define BOUNDS THREADS, 2 /* blocks of a multiprocessor, at least */
#define WARPS (THREADS / 32)
#define MOST 8 /* rows */
#ifdef QL_EMULATION
#define WANTED 4 /* so that small tests run all forms */
#else
#define WANTED 128 /* blocks that occupy a device */
#endif
#define MANY (16 * WANTED) /* lines */
#define MAGIC 0x4b000000u  /* 2^23 */

/* Before a loop of which `words` rounds are written out. */
#ifdef QL_EMULATION
#define QL_UNROLL_WORDS (void)words;
#else
#define QL_UNROLL_WORDS _Pragma("unroll (words)")
#endif

/* Elements of b */
enum format { FLOAT32, FLOAT16, BFLOAT16, CODES_8, CODES_4 };

template <int F> struct of {
	enum { BITS = F == FLOAT32 ? 32 : F == CODES_8 ? 8 : F == CODES_4 ? 4 : 16 };
	enum { CODES = F >= CODES_8 };
	enum { EACH = 128 / BITS };                 /* elements in 16 bytes */
	enum { PITCH = EACH + (EACH > 4 ? 4 : 0) }; /* distance of the a of neighbouring lanes: no conflicts of banks */
	enum { DEEP = 32 * EACH };                  /* of k in a stage */
	enum { HALF = CODES ? 16 / BITS : 1 };      /* codes in a half word */
};

struct job {
	ql_float_product x;
	enum format format;
	bool wide;     /* 16 bytes of b can be read at once */
	bool quads;    /* a is float32, float16 or bfloat16, of which four numbers of a row can be read at once */
	uint32_t flip; /* in each code: makes signed codes unsigned */
	int32_t above; /* what that adds to them */
};

/* `rows` of a, as far as they are staged */
template <int F, int M> struct stage {
	float a[M][32 * of<F>::PITCH];
};

/* What the number k of a row is multiplied by. */
template <int F> QL_DEVICE float power_of(int k)
{
	return of<F>::CODES ? ql_float_of((uint32_t)(127 - k % of<F>::HALF * of<F>::BITS) << 23) : 1;
}

/* Four numbers at a time; all or none are before the end. */
template <int F, int M, bool HALVES>
QL_DEVICE void fill_quads(stage<F, M> &to, const job &w, const ql_float_batch &from, int64_t k0)
{
	bool brain = w.x.a.element == QL_E_bfloat16;

	QL_ROLLED
	for (int e = (int)threadIdx.x * 4; e < M * of<F>::DEEP; e += THREADS * 4) {
		int row = e / of<F>::DEEP, k = e % of<F>::DEEP;
		int64_t at = from.at + row * w.x.a.line + k0 + k;
		float v[4] = {0, 0, 0, 0};

		if (row < w.x.m && k0 + k < w.x.k)
			ql_load_quad<HALVES>(w.x.a.at, at, brain, v);
		QL_UNROLL
		for (int i = 0; i < 4; i++)
			v[i] *= power_of<F>(k + i);
		*reinterpret_cast<float4 *>(&to.a[row][k / of<F>::EACH * of<F>::PITCH + k % of<F>::EACH]) =
			float4{v[0], v[1], v[2], v[3]};
	}
}

template <int F, int M> QL_DEVICE void fill(stage<F, M> &to, const job &w, const ql_float_batch &from, int64_t k0)
{
	if (w.quads && w.x.a.element == QL_E_float32) {
		fill_quads<F, M, false>(to, w, from, k0);
		return;
	}
	if (w.quads) {
		fill_quads<F, M, true>(to, w, from, k0);
		return;
	}
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < M * of<F>::DEEP; e += THREADS) {
		int row = e / of<F>::DEEP, k = e % of<F>::DEEP;
		float v = 0;

		if (row < w.x.m && k0 + k < w.x.k)
			ql_line_value(w.x.a, from, row, k0 + k, &v);
		to.a[row][k / of<F>::EACH * of<F>::PITCH + k % of<F>::EACH] = v * power_of<F>(k);
	}
}

QL_DEVICE uint4 bytes_16(const uint8_t *at, bool wide)
{
	uint4 v = {0, 0, 0, 0};

	if (wide)
		return ql_load_16(at);
	QL_ROLLED
	for (int i = 0; i < 16; i += 4) {
		v = {v.y, v.z, v.w,
			(uint32_t)at[i] | (uint32_t)at[i + 1] << 8 | (uint32_t)at[i + 2] << 16 |
				(uint32_t)at[i + 3] << 24};
	}
	return v;
}

/* Element i of a word, codes less `zero` and times 2^(bits * place in the half word). */
template <int F> QL_DEVICE float value(uint32_t word, int i, const job &w, int32_t zero)
{
	const int bits = of<F>::BITS, place = i % of<F>::HALF * bits;
	const uint32_t half = i * bits >= 16 ? word >> 16 : word;

	if (F == FLOAT32)
		return ql_float_of(word);
	if (F == FLOAT16)
		return ql_from_f16((uint16_t)half);
	if (F == BFLOAT16)
		return ql_from_bf16((uint16_t)half);
	return ql_float_of(((half & ((1u << (bits & 15)) - 1) << place) ^ w.flip << place) | MAGIC) -
	       (0x1p23f + (float)((zero + w.above) * (1 << place)));
}

/* Where the codes of a lane have their scale. */
QL_DEVICE int64_t scale_of(const ql_float_lines &b, const ql_float_batch &from, int64_t line, int64_t k)
{
	return from.scale + ql_scale_step(b.scale_line, (uint32_t)line) + ql_scale_step(b.scale_step, (uint32_t)k);
}

/* Adds the products of 16 bytes of each line to the sums of the rows; element k is their first. all: sums of a. */
template <int F, int M, int R>
QL_DEVICE void multiply(const stage<F, M> &from, const job &w, const ql_float_batch &b, int64_t line, int64_t k,
	uint4 *v, const float *all, float (*sum)[M])
{
	const int words = M * R * of<F>::EACH >= 64 ? 1 : 4; /* at once */
	int first = (int)(threadIdx.x % 32) * of<F>::PITCH;
	float inner[R][M] = {}, scale[R];
	int64_t at[R];
	int32_t zero[R];

	QL_UNROLL
	for (int r = 0; r < R; r++) {
		at[r] = of<F>::CODES && line + r < w.x.n ? scale_of(w.x.b, b, line + r, k) : 0;
		zero[r] = of<F>::CODES ? ql_zero_at(w.x.b.scales, at[r]) : 0;
		scale[r] = of<F>::CODES ? ql_scale_at(w.x.b.scales, at[r]) : 1; /* there when the sums are */
	}
	QL_UNROLL_WORDS
	for (int i = 0; i < 4; i++) {
		QL_UNROLL
		for (int j = 0; j < of<F>::EACH / 4; j++) {
			float a[M];

			QL_UNROLL
			for (int row = 0; row < M; row++)
				a[row] = from.a[row][first + i * (of<F>::EACH / 4) + j];
			QL_UNROLL
			for (int r = 0; r < R; r++) {
				float q = value<F>(v[r].x, j, w, zero[r]);

				QL_UNROLL
				for (int row = 0; row < M; row++)
					inner[r][row] = __fmaf_rn(q, a[row], inner[r][row]);
			}
		}
		QL_UNROLL
		for (int r = 0; r < R; r++)
			v[r] = {v[r].y, v[r].z, v[r].w, v[r].x};
	}
	QL_UNROLL
	for (int r = 0; r < R; r++) {
		float shift = of<F>::CODES && w.x.b.scales.shift
				      ? ql_load_float(w.x.b.scales.shift_type, w.x.b.scales.shift, at[r])
				      : 0;

		QL_UNROLL
		for (int row = 0; row < M; row++) {
			sum[r][row] = __fmaf_rn(scale[r], inner[r][row], sum[r][row]);
			if (of<F>::CODES && w.x.b.scales.shift)
				sum[r][row] = __fmaf_rn(shift, all[row], sum[r][row]);
		}
	}
}

/* The sums of what a lane multiplies, for codes that begin at a minimum. */
template <int F, int M> QL_DEVICE void sums_of_a(const stage<F, M> &from, float *all)
{
	int first = (int)(threadIdx.x % 32) * of<F>::PITCH;

	QL_ROLLED
	for (int i = 0; i < of<F>::EACH; i++) {
		QL_UNROLL
		for (int row = 0; row < M; row++)
			all[row] = __fmaf_rn(
				from.a[row][first + i], (float)(1 << i % of<F>::HALF * of<F>::BITS), all[row]);
	}
}

/* Adds up what the lanes have and stores it, a result by each of the first lanes. */
template <int M, int R> QL_DEVICE void finish(const job &w, int64_t number, int64_t first, const float (*sum)[M])
{
	int lane = (int)threadIdx.x % 32, r = lane / M, row = lane % M;
	float mine = 0;

	QL_UNROLL
	for (int i = 0; i < R * M; i++) {
		float all = sum[i / M][i % M];

		QL_UNROLL
		for (int bits = 16; bits; bits /= 2)
			all += __shfl_xor_sync(~0u, all, bits);
		mine = lane == i ? all : mine;
	}
	if (r < R && row < w.x.m && first + r < w.x.n + QL_BUG(gemv_column))
		ql_float_store(w.x, (number * w.x.m + row) * w.x.n + first + r, first + r, mine);
}

/* The 16 bytes of this lane, whose first element is k, of each line; zeros beyond the ends. */
template <int F, int R>
QL_DEVICE void load(uint4 (&to)[R], const job &w, const ql_float_batch &b, int64_t first, int64_t k)
{
	const uint8_t *from = static_cast<const uint8_t *>(w.x.b.at);

	QL_UNROLL
	for (int r = 0; r < R; r++) {
		to[r] = {0, 0, 0, 0};
		if (first + r < w.x.n && k < w.x.k)
			to[r] = bytes_16(from + (b.at + (first + r) * w.x.b.line + k) * of<F>::BITS / 8, w.wide);
	}
}

/* Lines first .. first + R - 1 of a batch for each warp. While a stage is multiplied the next one is on its way, but of eight rows,
 * whose sums need the registers. */
template <int F, int M, int R> QL_DEVICE void lines(stage<F, M> &t, const job &w, int64_t number, int64_t first)
{
	ql_float_batch a = ql_float_lines_at(w.x.a, number), b = ql_float_lines_at(w.x.b, number);
	int64_t k = (int64_t)(threadIdx.x % 32) * of<F>::EACH;
	float sum[R][M] = {};
	const bool ahead = M < 8;
	uint4 v[R] = {}, next[R] = {};

	if (ahead)
		load<F, R>(v, w, b, first, k);
	for (int64_t k0 = 0; k0 < w.x.k; k0 += of<F>::DEEP, k += of<F>::DEEP) {
		float all[M] = {};

		if (!ahead)
			load<F, R>(v, w, b, first, k);
		fill<F, M>(t, w, a, k0);
		if (!QL_BUG(gemv_filled))
			__syncthreads();
		if (ahead)
			load<F, R>(next, w, b, first, k + of<F>::DEEP);
		if (of<F>::CODES && w.x.b.scales.shift)
			sums_of_a<F, M>(t, all);
		if (k < w.x.k - (QL_BUG(gemv_tail) ? of<F>::EACH : 0))
			multiply<F, M, R>(t, w, b, first, k, v, all, sum);
		QL_UNROLL
		for (int r = 0; r < R && ahead; r++)
			v[r] = next[r];
		if (!QL_BUG(gemv_read))
			__syncthreads(); /* before a is filled again */
	}
	finish<M, R>(w, number, first, sum);
}

template <int F, int M, int R> QL_KERNEL(BOUNDS) gemv(job w)
{
	typedef stage<F, M> shared;
	QL_SHARED(shared, t);
	int64_t groups = (w.x.n + WARPS * R - 1) / (WARPS * R), all = groups * w.x.batches;

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x)
		lines<F, M, R>(t, w, i / groups, (i % groups * WARPS + threadIdx.x / 32) * R);
}

/* ---- the call ---- */

static int format_of(const ql_float_lines &b)
{
	struct ql_element_info e = ql_element_get(b.element);

	if (b.codes)
		return e.kind != QL_E_INT && e.kind != QL_E_UINT ? -1
		       : e.bits == 8                             ? CODES_8
		       : e.bits == 4                             ? CODES_4
								 : -1;
	return b.element == QL_E_float32    ? FLOAT32
	       : b.element == QL_E_float16  ? FLOAT16
	       : b.element == QL_E_bfloat16 ? BFLOAT16
					    : -1;
}

/* Whether all lines of b begin at multiples of so many bits. */
static bool begins_at(const ql_float_lines &b, int64_t bits)
{
	int64_t size = ql_element_get(b.element).bits, all = b.line * size;

	for (int d = 0; d < b.batch.rank; d++)
		all |= b.batch.shape[d] == 1 ? 0 : b.batch.stride[0][d] * size;
	return all % bits == 0;
}

/* k is a multiple of four. */
static bool has_quads(const ql_float_lines &a)
{
	int64_t bits = ql_element_get(a.element).bits;

	if (a.codes || a.step != 1)
		return false;
	return (a.element == QL_E_float32 || a.element == QL_E_float16 || a.element == QL_E_bfloat16) &&
	       begins_at(a, 4 * bits) && (uintptr_t)a.at % (4 * bits / 8) == 0;
}

static bool job_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const char had = p->why[0];
	ql_float_product &x = w->x;
	int format, each;

	if (!ql_float_product_of(call, &x, p))
		return false;
	if (call->flags & QL_GPU_ORDERED)
		return had ? false : ql_refuse(p, "products in order");
	format = format_of(x.b);
	if (x.m > MOST || !ql_element_float(x.to) || x.to == QL_E_float64 || format < 0 || (x.b.step != 1 && x.k > 1))
		return had ? false : ql_refuse(p, "more than 8 rows, or lines that are not read 16 bytes at a time");
	if (x.b.codes && x.n >= MANY && x.k >= 1024 && (x.a.element == QL_E_float16 || x.a.element == QL_E_bfloat16) &&
		!x.b.scales.shift)
		return had ? false
			   : ql_refuse(
				     p, "enough lines for tensor cores"); /* gemm_f16_mma: fewer instructions a code */
	each = 128 / ql_element_get(x.b.element).bits;
	if (x.k == 0 || x.k % each || !begins_at(x.b, 8) ||
		(x.b.scale_step.step && x.b.scale_step.block % (uint32_t)each))
		return had ? false : ql_refuse(p, "lines that are not read 16 bytes at a time");
	w->format = (enum format)format;
	w->wide = begins_at(x.b, 128) && (uintptr_t)x.b.at % 16 == 0;
	w->quads = has_quads(x.a);
	if (x.b.codes && ql_element_get(x.b.element).kind == QL_E_INT) {
		w->above = 1 << (ql_element_get(x.b.element).bits - 1);
		w->flip = (uint32_t)w->above;
	}
	p->path = "float32";
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct job w = {};

	return job_of(call, &w, p);
}

template <int F, int M, int R> static cudaError_t launch_lines(const struct ql_gpu_place *place, const job &w)
{
	int64_t all = (w.x.n + WARPS * R - 1) / (WARPS * R) * w.x.batches;

	return ql_launch(gemv<F, M, R>, ql_blocks(all, 1), dim3(THREADS), sizeof(stage<F, M>), place->stream, w);
}

/* Several lines for each warp, which then reads a once for all; of one row only where there are enough for all warps. */
template <int F> static cudaError_t launch(const struct ql_gpu_place *place, const job &w)
{
	if (w.x.m > 4)
		return launch_lines<F, 8, 2>(place, w);
	if (w.x.m > 1)
		return launch_lines<F, 4, 2>(place, w);
	if (w.x.n * w.x.batches >= (int64_t)WANTED * WARPS * 4)
		return launch_lines<F, 1, 4>(place, w);
	return launch_lines<F, 1, 1>(place, w);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct job w = {};

	if (!job_of(call, &w, &p))
		return cudaErrorInvalidValue;
	if (w.x.m * w.x.n * w.x.batches == 0)
		return cudaSuccess;
	switch (w.format) {
	case FLOAT32: return launch<FLOAT32>(place, w);
	case FLOAT16: return launch<FLOAT16>(place, w);
	case BFLOAT16: return launch<BFLOAT16>(place, w);
	case CODES_8: return launch<CODES_8>(place, w);
	default: return launch<CODES_4>(place, w);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemv_f32;
const struct ql_gpu_kernel ql_gpu_kernel_gemv_f32 = {
	"linear matmul", "gemv_f32", "simt", QL_GPU_TOLERANCE, 80, plan, run};
