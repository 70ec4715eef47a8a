/* SPDX-License-Identifier: MIT
 * linear and matmul of float16 or bfloat16 by mma.sync m16n8k16 (compute capability 8.0) with sums in float32; one operand may
 * be affine codes of 8 or 4 bits. Four stages of cp.async; tiles of 128 x 128 results, or with codes of 64, of few rows 32 or 16,
 * x 128, and where they are too few for a device k is cut into parts, whose sums a second kernel adds in order.
 * Lines that cannot be read 16 bytes at a time are staged one by one.
 *
 * A result is within (k + 16) 2^-24 of the sum of the absolute products, and a unit of its last place. Where scales vary along k (but
 * not in blocks of lines of codes), each decoded number is rounded to the type of the other operand, which adds half a unit
 * of that type of the same sum; one too large for float16 is infinite. So it is, too, where codes are decoded before: codes
 * that are not read as they are, and many rows where cuBLASLt multiplies.
 */
#include "gpu/kernels/gemm_f16.h"
#include "gpu/kernels/inner.h"

#ifdef QL_EMULATION
#define WANTED 4 /* so that small tests run all forms */
#define PART 256
#else
#define WANTED 256 /* blocks that occupy a device */
#define PART 1024
#endif
#define PARTS 32  /* of k, at most; PART: elements of one, at least */
#define LARGE 256 /* rows for which it pays to decode codes before */

/* ---- a tile of results, of a block ---- */

template <typename X>
QL_DEVICE void fetch_stage(typename X::stage &s, const job &w, const ql_float_batch &a, const ql_float_batch &b,
	int32_t i0, int32_t j0, int32_t k0, int32_t end)
{
	if (k0 < end) {
		fetch<X::A, X::ROWS, X::PANELS>(s.a, w.x.a, w.wide_a, a.at, i0, (int32_t)w.x.m, k0, end);
		fetch<X::B, COLUMNS, X::PANELS>(s.b, w.x.b, w.wide_b, b.at, j0, (int32_t)w.x.n, k0, end);
	}
	ql_async_commit();
}

/* Row and column, in the tile, of the results of this warp. */
template <typename X> QL_DEVICE int row_of()
{
	return (int)threadIdx.x / 32 % X::WARPS_DOWN * X::I * 16;
}
template <typename X> QL_DEVICE int column_of()
{
	return (int)threadIdx.x / 32 / X::WARPS_DOWN * X::J * 8;
}

/* The sums of a tile over begin <= k < end. */
template <typename X>
QL_DEVICE void sums_of(typename X::memory &t, const job &w, uint32_t number, int32_t i0, int32_t j0, int32_t begin,
	int32_t end, float (*sum)[X::J][4])
{
	ql_float_batch a = ql_float_lines_at(w.x.a, number), b = ql_float_lines_at(w.x.b, number);
	float part[of<X::B>::SCALES ? X::I : 1][X::J][4] = {};
	scales_of_thread<X> next = {};

	QL_ROLLED
	for (int s = 0; s < STAGES - 1; s++) {
		fetch_stage<X>(t.stages[s], w, a, b, i0, j0, begin + s * X::DEEP, end);
		if constexpr (X::SCALES > 0) {
			read_scales<X>(next, w, b.scale, j0, begin + s * X::DEEP, end);
			put_scales<X>(t.stages[s].p, w, next);
		}
	}
	if constexpr (X::SCALES > 0)
		read_scales<X>(next, w, b.scale, j0, begin + (STAGES - 1) * X::DEEP, end);
	for (uint32_t s = 0; begin < end; s++, begin += X::DEEP) {
		typename X::stage &now = t.stages[s % STAGES], &free = t.stages[(s + STAGES - 1) % STAGES];
		int32_t k0 = begin + (STAGES - 1) * X::DEEP;

		if (QL_BUG(half_wait))
			ql_async_wait<STAGES - 1>();
		else
			ql_async_wait<STAGES - 2>();
		if (!QL_BUG(half_barrier))
			__syncthreads(); /* the stage is there, and the one that is filled next has been read */
		fetch_stage<X>(free, w, a, b, i0, j0, k0, end);
		if constexpr (X::SCALES > 0) {
			/* scales that do not vary are in all stages after the first rounds */
			if (s == 0 || w.varies) {
				put_scales<X>(free.p, w, next);
				read_scales<X>(next, w, b.scale, j0, k0 + (QL_BUG(half_scale) ? 0 : X::DEEP), end);
			}
		}
		QL_ROLLED
		for (int p = 0; p < X::PANELS; p++) {
			if constexpr (of<X::B>::SCALES) {
				multiply<X>(now, w, p, row_of<X>(), column_of<X>(), part);
				if (((p + 1) & ((1 << w.group) - 1)) == 0)
					add_group<X>(now, p >> w.group, column_of<X>(), part, sum);
			} else {
				multiply<X>(now, w, p, row_of<X>(), column_of<X>(), sum);
			}
		}
	}
}

/* Puts the sums of this thread where all can read them. */
template <typename X> QL_DEVICE void keep(float (*to)[COLUMNS + 4], float (*sum)[X::J][4])
{
	int row = row_of<X>() + (int)threadIdx.x % 32 / 4;

	QL_UNROLL
	for (int i = 0; i < X::I; i++) {
		QL_UNROLL
		for (int j = 0; j < X::J; j++) {
			QL_UNROLL
			for (int e = 0; e < 4; e++)
				to[row + i * 16 + e / 2 * 8][column_of<X>() + column_of<X>(j, e)] = sum[i][j][e];
		}
	}
}

/* Stores result (i, j) of the product. */
QL_DEVICE void finish(const job &w, int64_t number, int64_t i, int64_t j, float sum)
{
	int64_t at = w.turned ? (number * w.x.n + j) * w.x.m + i : (number * w.x.m + i) * w.x.n + j;

	ql_float_store(w.x, at, w.turned ? i : j, sum);
}

template <typename X>
QL_DEVICE void tile(typename X::memory &t, const job &w, int part, uint32_t number, int32_t i0, int32_t j0)
{
	const ql_float_lines &b = w.x.b;
	int32_t begin = (int32_t)(part * w.part), end = (int32_t)(begin + w.part < w.x.k ? begin + w.part : w.x.k);
	float sum[X::I][X::J][4] = {};

	sums_of<X>(t, w, number, i0, j0, begin, end, sum);
	__syncthreads(); /* the stages have been read, their memory is free */
	keep<X>(t.product, sum);
	__syncthreads();
	for (int e = (int)threadIdx.x; e < X::ROWS * COLUMNS; e += THREADS) {
		int r = w.turned ? e % X::ROWS : e / COLUMNS, c = w.turned ? e / X::ROWS : e % COLUMNS;
		int32_t i = i0 + r, j = j0 + c;
		float y = t.product[r][c];

		if (i >= w.x.m || j >= w.x.n + QL_BUG(half_column_bound))
			continue;
		if (X::B == CODES_8_DOWN && !w.varies)
			y *= ql_scale_at(b.scales,
				ql_float_lines_at(b, number).scale + ql_scale_step(b.scale_line, (uint32_t)j));
		if (w.sums)
			w.sums[((part * w.x.batches + number) * w.x.m + i) * w.x.n + j] = y;
		else
			finish(w, number, i, j, y);
	}
}

template <bool BF16, int A, int B, int ROWS, int PANELS> QL_KERNEL(THREADS, 2) gemm(job w)
{
	typedef tiling<BF16, A, B, ROWS, PANELS> X;
	typedef typename X::memory memory;
	QL_SHARED(memory, t);
	uint32_t down = (uint32_t)(w.x.m + ROWS - 1) / ROWS, each = down * ((uint32_t)(w.x.n + COLUMNS - 1) / COLUMNS);
	uint32_t at = blockIdx.x % each, number = blockIdx.x / each;

	tile<X>(t, w, (int)(number / (uint32_t)w.x.batches), number % (uint32_t)w.x.batches,
		(int32_t)(at % down) * ROWS, (int32_t)(at / down) * COLUMNS);
}

/* Adds the parts of each sum in order. */
QL_KERNEL(THREADS) add_parts(job w)
{
	int64_t each = w.x.m * w.x.n, count = w.x.batches * each;

	for (int64_t e = ql_thread(); e < count; e += ql_threads()) {
		float sum = w.sums[e];

		for (int p = 1; p < w.parts; p++)
			sum += w.sums[p * count + e];
		finish(w, e / each, e % each / w.x.n, e % w.x.n, sum);
	}
}

/* ---- the call ---- */

static bool is_half(int element)
{
	return element == QL_E_float16 || element == QL_E_bfloat16;
}

static int64_t rows_of(const job &w)
{
	return w.b == ALONG || w.b == DOWN ? 128 : w.b == CODES_8_DOWN ? 64 : w.x.m > 16 ? 32 : 16;
}

/* Codes that are read as they are: the form of b; -1: they are decoded before. */
static int form_of_codes(const ql_float_lines &b)
{
	struct ql_element_info e = ql_element_get(b.element);
	bool down = b.line == 1 && b.step != 1, blocks = b.scale_step.step && b.scale_step.block > 1;

	if (b.scales.shift || (e.bits != 8 && e.bits != 4) || (e.kind != QL_E_INT && e.kind != QL_E_UINT))
		return -1;
	if (down && e.bits == 8 && b.scale_step.step && !b.scale_line.step && b.scale_step.block == 1)
		return CODES_8_DOWN;
	if (down && e.bits == 8 && !b.scale_step.step && (!b.scale_line.step || !b.scales.zero))
		return CODES_8_DOWN;
	if (down || (b.scale_step.step && (!blocks || b.scale_step.shift < 5)))
		return -1;
	if (e.bits == 8)
		return CODES_8;
	for (int d = 0; d < b.batch.rank; d++)
		if (b.batch.shape[d] != 1 && b.batch.stride[0][d] % 2)
			return -1;
	return b.step == 1 && b.line % 2 == 0 ? CODES_4 : -1;
}

/* Whether 16 bytes can be read at once, `along` being the distance of their elements. */
static bool is_wide(const ql_float_lines &l, bool across)
{
	int bits = ql_element_get(l.element).bits;
	int64_t along = across ? l.line : l.step, all = across ? l.step : l.line;

	for (int d = 0; d < l.batch.rank; d++)
		all |= l.batch.shape[d] == 1 ? 0 : l.batch.stride[0][d];
	return along == 1 && all * bits % 128 == 0 && (uintptr_t)l.at % 16 == 0;
}

/* Codes are operand b, and of floats b lies along its lines only if a does. */
static void turn(job *w)
{
	ql_float_lines a = w->x.a;
	int64_t m = w->x.m;

	w->x.a = w->x.b;
	w->x.b = a;
	w->x.m = w->x.n;
	w->x.n = m;
	w->turned = true;
}

static bool is_down(const ql_float_lines &l)
{
	return l.line == 1 && l.step != 1;
}

static bool forms_of(job *w, struct ql_gpu_plan *p)
{
	ql_float_product &x = w->x;
	int codes;

	if (x.a.codes || (!x.b.codes && is_down(x.a) && !is_down(x.b)))
		turn(w);
	if (x.a.codes || !is_half(x.a.element) || (!x.b.codes && x.b.element != x.a.element))
		return ql_refuse(p, "operands that are not of one 16-bit float type");
	codes = x.b.codes ? form_of_codes(x.b) : is_down(x.b) ? DOWN : ALONG;
	if (codes < 0)
		return ql_refuse(p, "codes that are not read as they are");
	w->b = (enum form)codes;
	w->a = is_down(x.a) && (w->b == DOWN || w->b == CODES_8_DOWN) ? DOWN : ALONG;
	w->wide_a = is_wide(x.a, w->a == DOWN);
	w->wide_b = is_wide(x.b, w->b == DOWN || w->b == CODES_8_DOWN);
	return true;
}

/* What kernels need to know of codes. A stage has 2^panels panels. */
static void codes_of(job *w, int32_t panels)
{
	struct ql_element_info e = ql_element_get(w->x.b.element);
	int32_t block = w->x.b.scale_step.shift - 5; /* panels, as a power of two */

	w->varies = w->x.b.codes && w->x.b.scale_step.step;
	w->group = !w->varies || block > panels ? panels : block < 0 ? 0 : block;
	if (!w->x.b.codes || e.kind != QL_E_INT)
		return;
	w->above = 1 << (e.bits - 1);
	w->flip = e.bits == 8 ? 0x80808080u : 0x00080008u;
}

static bool job_of(const struct ql_gpu_call *call, job *w, struct ql_gpu_plan *p)
{
	ql_float_product &x = w->x;
	int64_t tiles, wanted, most, deep;
	int32_t panels;

	if (!ql_float_product_of(call, &x, p) || !forms_of(w, p))
		return false;
	if (x.to != QL_E_float32 && !is_half(x.to))
		return ql_refuse(p, "wanted a result of float32 or 16-bit floats");
	if ((x.m | x.n | x.k) >> 30)
		return ql_refuse(p, "more than 2^30 lines");
	panels = rows_of(*w) == 16 ? 2 : rows_of(*w) == 128 ? 0 : 1;
	deep = PANEL << panels;
	codes_of(w, panels);
	tiles = (x.m + rows_of(*w) - 1) / rows_of(*w) * ((x.n + COLUMNS - 1) / COLUMNS) * x.batches;
	if (tiles > INT32_MAX / PARTS)
		return ql_refuse(p, "more than 2^26 tiles");
	most = x.k / PART < PARTS ? x.k / PART : PARTS;
	wanted = tiles ? WANTED / tiles : 1;
	wanted = wanted > most ? most : wanted;
	w->part = wanted > 1 ? ((x.k + wanted - 1) / wanted + deep - 1) / deep * deep : x.k;
	w->parts = wanted > 1 ? (int32_t)((x.k + w->part - 1) / w->part) : 1;
	p->workspace = w->parts > 1 ? (uint64_t)(w->parts * x.batches * x.m * x.n) * sizeof(float) : 0;
	p->path = ql_element_get(x.a.element).name;
	w->sums = w->parts > 1 ? static_cast<float *>(call->workspace) : NULL;
	return true;
}

/* ---- codes decoded before ---- */

/* t with its axes in the order of memory, longest distances first, which is how codes are decoded. */
struct in_memory {
	struct ql_gpu_tensor t, scale, zero, shift;
	struct ql_gpu_codes codes;
	int32_t axis[QL_GPU_MAX_RANK]; /* of the given tensor */
};

/* A parameter that has the axes of the tensor. */
static const struct ql_gpu_tensor *parameter_of(const ql_gpu_tensor *from, const in_memory &m, ql_gpu_tensor *to)
{
	if (!from || from->rank != m.t.rank || m.t.rank < 2)
		return from;
	*to = *from;
	for (int d = 0; d < m.t.rank; d++) {
		to->shape[d] = from->shape[m.axis[d]];
		to->stride[d] = from->stride[m.axis[d]];
	}
	return to;
}

static void order_of(const struct ql_gpu_tensor *t, in_memory *m)
{
	m->t = *t;
	m->codes = *t->codes;
	for (int d = 0; d < t->rank; d++) {
		int at = d;

		for (; at > 0 && t->stride[m->axis[at - 1]] < t->stride[d]; at--)
			m->axis[at] = m->axis[at - 1];
		m->axis[at] = d;
	}
	for (int d = 0; d < t->rank; d++) {
		m->t.shape[d] = t->shape[m->axis[d]];
		m->t.stride[d] = t->stride[m->axis[d]];
		if (t->codes->axis == m->axis[d])
			m->codes.axis = d;
		if (t->codes->block_axis == m->axis[d])
			m->codes.block_axis = d;
	}
	m->codes.scale = parameter_of(t->codes->scale, *m, &m->scale);
	m->codes.zero_point = parameter_of(t->codes->zero_point, *m, &m->zero);
	m->codes.shift = parameter_of(t->codes->shift, *m, &m->shift);
	m->t.codes = &m->codes;
}

/* The call with the codes of one operand as numbers of the other's type. Its workspace: these, then what the product needs. */
struct decoded {
	struct ql_inner inner;
	struct ql_gpu_call call;
	struct ql_gpu_tensor in[3];
	struct ql_gpu_plan plan;
};

static bool decode(const struct ql_gpu_place *place, const struct ql_gpu_call *call, decoded *d, struct ql_gpu_plan *p)
{
	int codes = call->n_in > 1 && call->in[1].codes ? 1 : 0, element;
	struct ql_gpu_tensor out;
	in_memory m = {};

	if (call->n_in < 2 || !call->in[codes].codes)
		return ql_refuse(p, "wanted codes and numbers");
	element = ql_element_of(call->in[1 - codes].dtype);
	if (!is_half(element) || (call->in[1 - codes].flags & QL_GPU_NUMBER))
		return ql_refuse(p, "operands that are not of one 16-bit float type");
	d->inner.place = place;
	d->inner.workspace = static_cast<char *>(call->workspace);
	d->inner.plan = p;
	for (int i = 0; i < call->n_in && i < 3; i++)
		d->in[i] = call->in[i];
	order_of(&call->in[codes], &m);
	out = ql_dense_tensor(ql_inner_take(&d->inner, ql_count(&m.t), 2), element, m.t.rank, m.t.shape);
	ql_inner_op(&d->inner, "dequantize", &m.t, 1, &out);
	d->in[codes] = out;
	for (int i = 0; i < out.rank; i++) {
		d->in[codes].shape[m.axis[i]] = out.shape[i];
		d->in[codes].stride[m.axis[i]] = out.stride[i];
	}
	d->call = *call;
	d->call.in = d->in;
	if (!ql_inner_good(&d->inner))
		return false;
	if (!ql_part_plan(&d->call, &d->plan))
		return ql_refuse(p, d->plan.why);
	d->call.workspace = ql_inner_take(&d->inner, (int64_t)d->plan.workspace, 1);
	return true;
}

/* Whether the call is better decoded before. */
static bool decodes(const struct ql_gpu_call *call, const job &w, bool direct)
{
	struct ql_gpu_plan p = {};
	decoded d = {};

	if (!call->in[0].codes && !call->in[1].codes)
		return false;
	if (!direct)
		return true;
	return w.x.m >= LARGE && w.x.n >= LARGE && decode(NULL, call, &d, &p) && !strcmp(d.plan.name, "gemm_cublas");
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const char *path;
	decoded d = {};
	job w = {};
	bool direct;

	if (call->flags & QL_GPU_ORDERED)
		return p->why[0] ? false : ql_refuse(p, "products are added in order");
	if (call->n_in < 2 || (call->in[0].codes && call->in[1].codes)) /* a kernel of codes has said why */
		return p->why[0] ? false : ql_refuse(p, "wanted two operands, of which one at most is codes");
	direct = job_of(call, &w, p);
	if (!decodes(call, w, direct))
		return direct;
	path = call->in[call->in[0].codes ? 1 : 0].dtype;
	if (!decode(NULL, call, &d, p))
		return false;
	p->path = path;
	p->workspace = d.inner.used;
	return true;
}

template <bool BF16, int A, int B, int ROWS, int PANELS>
static cudaError_t launch(const struct ql_gpu_place *place, const job &w)
{
	int64_t all = (w.x.m + ROWS - 1) / ROWS * ((w.x.n + COLUMNS - 1) / COLUMNS) * w.x.batches * w.parts;

	return ql_launch(gemm<BF16, A, B, ROWS, PANELS>, ql_blocks(all, 1, INT32_MAX), dim3(THREADS),
		sizeof(typename tiling<BF16, A, B, ROWS, PANELS>::memory), place->stream, w);
}

template <bool BF16> static cudaError_t launch_forms(const struct ql_gpu_place *place, const job &w)
{
	bool few = rows_of(w) == 16;

	switch (w.b) {
	case ALONG: return launch<BF16, ALONG, ALONG, 128, 1>(place, w);
	case DOWN:
		return w.a == DOWN ? launch<BF16, DOWN, DOWN, 128, 1>(place, w)
				   : launch<BF16, ALONG, DOWN, 128, 1>(place, w);
	case CODES_8:
		return few ? launch<BF16, ALONG, CODES_8, 16, 4>(place, w)
			   : launch<BF16, ALONG, CODES_8, 32, 2>(place, w);
	case CODES_4:
		return few ? launch<BF16, ALONG, CODES_4, 16, 4>(place, w)
			   : launch<BF16, ALONG, CODES_4, 32, 2>(place, w);
	default:
		return w.a == DOWN ? launch<BF16, DOWN, CODES_8_DOWN, 64, 2>(place, w)
				   : launch<BF16, ALONG, CODES_8_DOWN, 64, 2>(place, w);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	decoded d = {};
	job w = {};
	bool direct = job_of(call, &w, &p);
	cudaError_t error;

	if (decodes(call, w, direct)) {
		if (!decode(place, call, &d, &p))
			return d.inner.error ? d.inner.error : cudaErrorInvalidValue;
		return ql_part_run(place, &d.call);
	}
	if (!direct)
		return cudaErrorInvalidValue;
	if (w.x.m * w.x.n * w.x.batches == 0)
		return cudaSuccess;
	error = w.x.a.element == QL_E_bfloat16 ? launch_forms<true>(place, w) : launch_forms<false>(place, w);
	if (error || !w.sums)
		return error;
	return ql_launch_free(
		add_parts, ql_blocks(w.x.batches * w.x.m * w.x.n, THREADS), dim3(THREADS), place->stream, w);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_f16_mma;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_f16_mma = {
	"linear matmul", "gemm_f16_mma", "mma", QL_GPU_TOLERANCE, 80, plan, run};
