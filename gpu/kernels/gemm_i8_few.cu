/* SPDX-License-Identifier: MIT
 * linear and matmul of codes of 8 bits, b also of 4, where a has few rows and b has many columns, so that reading b decides:
 * mma.sync m16n8k32 (compute capability 8.0), tiles of 16 x 128 results, four stages of cp.async of 128 codes of k. Where the
 * tiles are too few for a device k is cut into parts; sums of codes are exact, so a second kernel may add them in any order, and
 * finishes the results.
 *
 * k is taken in panels of 32, of which lane 4 g + t has codes 8 t to 8 t + 7 of a line, in a and b alike. Codes of 4 bits
 * become 16 times themselves in bytes, the even ones and the odd ones; the sums are divided by 16 at the end.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define ROWS 16
#define COLUMNS 128
#define PANEL 32
#define PANELS 4 /* of a stage */
#define DEEP (PANEL * PANELS)
#define STAGES 4
#define MOST 32 /* rows of a */
#define PARTS 16
#ifdef QL_EMULATION
#define WANTED 4 /* so that small tests run all forms */
#define MANY 64
#define LONG 256
#define PART 256
#else
#define WANTED 256 /* blocks that occupy a device */
#define MANY 1024  /* columns of b, at least */
#define LONG 512   /* codes of k, at least */
#define PART 512   /* of them in a part, at least */
#endif

struct job {
	ql_code_product x;
	bool nibbles; /* b has codes of 4 bits; its strides count these */
	bool wide_b;
	bool zeros; /* sums of codes of lines are needed */
	int64_t part;
	int32_t parts;
	int32_t *sums; /* (parts, m, n); then of the codes of lines: (parts, m), (parts, n) */
};

/* Panels of lines of bytes, b by 16 or 32 bytes of a line. */
template <int BITS> struct stage {
	alignas(16) uint8_t a[PANELS][ROWS][PANEL], b[PANELS][COLUMNS][PANEL * BITS / 8];
};

/* ---- from global to shared memory ---- */

/* n codes from byte `from` on and zeros behind them, to 16 bytes. */
template <int BITS> QL_DEVICE void fetch_16(uint8_t *to, const uint8_t *from, int n, bool wide)
{
	int bytes = (n * BITS + 7) / 8;

	if (wide) {
		ql_async_16(to, from, bytes);
		return;
	}
	QL_ROLLED
	for (int i = 0; i < 16; i++)
		to[i] = i < bytes ? from[i] : 0;
}

/* Codes of k from `begin` to below `end` of lines first .. first + LINES - 1; 0 beyond the ends. */
template <int BITS, int LINES>
QL_DEVICE void fetch(uint8_t (*to)[LINES][PANEL * BITS / 8], const uint8_t *from, int64_t line, bool wide,
	int32_t first, int32_t lines, int32_t begin, int32_t end)
{
	const int each = 128 / BITS, chunks = DEEP / each, in_panel = PANEL / each;

	for (int e = (int)threadIdx.x; e < LINES * chunks; e += THREADS) {
		int l = e / chunks, c = e % chunks;
		int32_t k = begin + c * each, left = end - k, n = left < 0 ? 0 : left < each ? left : each;

		if (first + l >= lines)
			n = 0;
		if (QL_BUG(few_tail))
			n = n ? each : 0;
		fetch_16<BITS>(&to[c / in_panel][l][c % in_panel * 16],
			n ? from + ((first + l) * line + k) * BITS / 8 : from, n, wide);
	}
}

template <int BITS>
QL_DEVICE void fetch_stage(stage<BITS> &s, const job &w, int32_t i0, int32_t j0, int32_t begin, int32_t end)
{
	if (begin < end) {
		fetch<8, ROWS>(s.a, w.x.a.at, w.x.a.line, w.x.a.wide, i0, (int32_t)w.x.m, begin, end);
		fetch<BITS, COLUMNS>(s.b, w.x.b.at, w.x.b.line, w.wide_b, j0, (int32_t)w.x.n, begin, end);
	}
	ql_async_commit();
}

/* ---- products ---- */

#define EIGHTS (COLUMNS / 8 / (THREADS / 32)) /* products of a warp, side by side */

struct part_sums {
	int32_t product[EIGHTS][4];
	int32_t a[2], b[EIGHTS]; /* of codes, of this lane alone */
};

template <int BITS> QL_DEVICE uint2 codes_of(const uint8_t *at)
{
	if (BITS == 8)
		return *reinterpret_cast<const uint2 *>(at);
	uint32_t word = *reinterpret_cast<const uint32_t *>(at);

	return {word << 4 & 0xf0f0f0f0u, word & 0xf0f0f0f0u};
}

template <bool A, bool B, int BITS>
QL_DEVICE void multiply(const stage<BITS> &s, bool zeros, int panel, int column, part_sums &sum)
{
	int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
	uint2 rows[2];

	QL_UNROLL
	for (int i = 0; i < 2; i++) {
		uint2 v = *reinterpret_cast<const uint2 *>(&s.a[panel][g + 8 * i][t * 8]);

		rows[i] = BITS == 8 ? v : uint2{ql_permute(v.x, v.y, 0x6420), ql_permute(v.x, v.y, 0x7531)};
		if (zeros)
			sum.a[i] = ql_dp4a<A, false>(v.y, 0x01010101u, ql_dp4a<A, false>(v.x, 0x01010101u, sum.a[i]));
	}
	const uint32_t a[4] = {rows[0].x, rows[1].x, rows[0].y, rows[1].y};

	QL_UNROLL
	for (int j = 0; j < EIGHTS; j++) {
		uint2 v = codes_of<BITS>(&s.b[panel][column + j * 8 + g][t * BITS]);
		const uint32_t b[2] = {v.x, v.y};

		ql_mma_i8<A, B>(sum.product[j], a, b);
		if (zeros)
			sum.b[j] = ql_dp4a<B, false>(v.y, 0x01010101u, ql_dp4a<B, false>(v.x, 0x01010101u, sum.b[j]));
	}
}

QL_DEVICE int32_t of_four_lanes(int32_t x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}

/* Stores the sums of a part of k. Those of b, and all products with them, are by 2^above too large. */
QL_DEVICE void store(const job &w, int part, int32_t i0, int32_t j0, int above, part_sums &sum)
{
	int lane = (int)threadIdx.x % 32, m = (int)w.x.m, n = (int)w.x.n;
	int32_t *of_a = w.sums + (int64_t)w.parts * m * n + part * m,
		*of_b = w.sums + (int64_t)w.parts * m * (n + 1) + (int64_t)part * n;

	QL_UNROLL
	for (int j = 0; j < EIGHTS; j++) {
		QL_UNROLL
		for (int e = 0; e < 4; e++) {
			int i = i0 + lane / 4 + e / 2 * 8, column = j0 + j * 8 + lane % 4 * 2 + e % 2;

			if (i < m && column < n + QL_BUG(few_column))
				w.sums[((int64_t)part * m + i) * n + column] = sum.product[j][e] >> above;
		}
	}
	if (!w.zeros)
		return;
	QL_UNROLL
	for (int j = 0; j < EIGHTS; j++) {
		int32_t all = of_four_lanes(sum.b[j]);
		int column = j0 + j * 8 + lane / 4;

		if (lane % 4 == 0 && column < n)
			of_b[column] = all >> above;
	}
	QL_UNROLL
	for (int i = 0; i < 2; i++) {
		int32_t all = of_four_lanes(sum.a[i]);
		int row = i0 + lane / 4 + i * 8;

		if (lane % 4 == 0 && row < m)
			of_a[row] = all;
	}
}

template <bool A, bool B, int BITS> QL_KERNEL(THREADS, 2) multiply_few(job w)
{
	typedef stage<BITS> ring[STAGES];
	QL_SHARED(ring, t);
	uint32_t down = (uint32_t)(w.x.m + ROWS - 1) / ROWS, across = (uint32_t)(w.x.n + COLUMNS - 1) / COLUMNS;
	int32_t i0 = (int32_t)(blockIdx.x % down * ROWS), j0 = (int32_t)(blockIdx.x / down % across * COLUMNS);
	int part = (int)(blockIdx.x / (down * across)), column = (int)threadIdx.x / 32 * EIGHTS * 8;
	int32_t begin = (int32_t)(part * w.part), end = (int32_t)(begin + w.part < w.x.k ? begin + w.part : w.x.k);
	part_sums sum = {};

	for (int s = 0; s < STAGES - 1; s++)
		fetch_stage(t[s], w, i0, j0, begin + s * DEEP, end);
	for (uint32_t s = 0; begin < end; s++, begin += DEEP) {
		if (QL_BUG(few_wait))
			ql_async_wait<STAGES - 1>();
		else
			ql_async_wait<STAGES - 2>();
		__syncthreads(); /* the stage is there, and the one that is filled next has been read */
		fetch_stage(t[(s + STAGES - 1) % STAGES], w, i0, j0, begin + (STAGES - 1) * DEEP, end);
		QL_UNROLL
		for (int p = 0; p < PANELS; p++)
			multiply<A, B, BITS>(t[s % STAGES], w.zeros, p, column, sum);
	}
	store(w, part, i0, j0 + column, BITS == 8 ? 0 : 4, sum);
}

/* Results from the sums of all parts. */
QL_KERNEL(THREADS, 4) finish_few(job w)
{
	int64_t m = w.x.m, n = w.x.n, count = m * n;
	const int32_t *of_a = w.sums + w.parts * count, *of_b = of_a + w.parts * m;

	for (int64_t e = ql_thread(); e < count; e += ql_threads()) {
		int64_t i = e / n, j = e % n;
		int32_t sum = 0, a = 0, b = 0;

		for (int p = QL_BUG(few_parts); p < w.parts; p++) {
			sum += w.sums[p * count + e];
			a += w.zeros ? of_a[p * m + i] : 0;
			b += w.zeros ? of_b[p * n + j] : 0;
		}
		ql_product_store(w.x, 0, ql_batch_at(w.x, 0), i, j, sum, a, b);
	}
}

/* ---- the call ---- */

static bool is_nibbles(const struct ql_gpu_tensor *t)
{
	struct ql_element_info e = ql_element_get(ql_element_of(t->dtype));

	return t->codes && e.bits == 4 && (e.kind == QL_E_INT || e.kind == QL_E_UINT);
}

static bool job_of(const struct ql_gpu_call *call, job *w, struct ql_gpu_plan *p)
{
	struct ql_gpu_call bytes = *call;
	struct ql_gpu_tensor in[3];
	ql_code_product &x = w->x;
	int64_t tiles, wanted, most;

	if (call->n_in < 2 || call->n_in > 3)
		return ql_refuse(p, "wanted two operands");
	for (int i = 0; i < call->n_in; i++)
		in[i] = call->in[i];
	w->nibbles = is_nibbles(&in[1]);
	if (w->nibbles) /* as if they were bytes, of which strides then count codes */
		in[1].dtype = ql_element_get(ql_element_of(in[1].dtype)).kind == QL_E_UINT ? "uint8" : "int8";
	bytes.in = in;
	if (!ql_product_of(&bytes, &x, p))
		return false;
	if (x.m > MOST || x.n < MANY || x.k < LONG || x.batches != 1 || x.n >> 30 || x.k >> 30)
		return ql_refuse(p, "more rows, or fewer columns, than are worth reading b alone");
	if (x.a.step != 1 || x.b.step != 1 || (w->nibbles && x.b.line % 2))
		return ql_refuse(p, "lines that are not read in bytes");
	w->wide_b = x.b.line * (w->nibbles ? 4 : 8) % 128 == 0 && (uintptr_t)x.b.at % 16 == 0;
	w->zeros = x.a.scales.zero || x.b.scales.zero;
	tiles = (x.m + ROWS - 1) / ROWS * ((x.n + COLUMNS - 1) / COLUMNS);
	most = x.k / PART < PARTS ? x.k / PART : PARTS;
	wanted = WANTED / tiles > most ? most : WANTED / tiles;
	w->part = wanted > 1 ? ((x.k + wanted - 1) / wanted + DEEP - 1) / DEEP * DEEP : x.k;
	w->parts = (int32_t)((x.k + w->part - 1) / w->part);
	w->sums = static_cast<int32_t *>(call->workspace);
	p->workspace = (uint64_t)(w->parts * (x.m * x.n + x.m + x.n)) * sizeof(int32_t);
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_gpu_plan own = {};
	job w = {};

	if (!job_of(call, &w, &own))
		return p->why[0] ? false : ql_refuse(p, own.why);
	p->path = own.path;
	p->workspace = own.workspace;
	return true;
}

template <bool A, bool B, int BITS> static cudaError_t launch(const struct ql_gpu_place *place, const job &w)
{
	int64_t tiles = (w.x.m + ROWS - 1) / ROWS * ((w.x.n + COLUMNS - 1) / COLUMNS);

	return ql_launch(multiply_few<A, B, BITS>, ql_blocks(tiles * w.parts, 1, INT32_MAX), dim3(THREADS),
		sizeof(stage<BITS>) * STAGES, place->stream, w);
}

template <int BITS> static cudaError_t launch_signs(const struct ql_gpu_place *place, const job &w)
{
	if (w.x.a.is_unsigned)
		return w.x.b.is_unsigned ? launch<true, true, BITS>(place, w) : launch<true, false, BITS>(place, w);
	return w.x.b.is_unsigned ? launch<false, true, BITS>(place, w) : launch<false, false, BITS>(place, w);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	job w = {};
	cudaError_t error;

	if (!job_of(call, &w, &p))
		return cudaErrorInvalidValue;
	error = ql_product_begin(w.x, place->stream);
	if (error || w.x.m == 0)
		return error;
	error = w.nibbles ? launch_signs<4>(place, w) : launch_signs<8>(place, w);
	if (error)
		return error;
	return ql_launch_free(finish_few, ql_blocks(w.x.m * w.x.n, THREADS), dim3(THREADS), place->stream, w);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_few;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_few = {
	"linear matmul", "gemm_i8_few", "mma", QL_GPU_BITS, 80, plan, run};
