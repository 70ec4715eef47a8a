/* SPDX-License-Identifier: MIT
 * What both kernels of convolutions of codes share behind their products: tiles of a result, the plan, the launch. Include it
 * behind conv_i8.h and what that wants.
 */
template <bool A, bool B>
QL_DEVICE void tile(tiles &t, const job &w, const ql_phase &phase, int64_t group, int64_t i0, int64_t j0)
{
	bool zeros = w.x.a.scales.zero || w.x.b.scales.zero;
	int64_t plane = w.s.target.h * w.s.target.w;
	struct products sum = {};
	on_the_way next;
	int32_t line = 0, pad = ql_zero_at(w.x.a.scales, 0);
	int now = 0;

	for (int i = (int)threadIdx.x; i < PIXELS; i += THREADS)
		t.pixel[i] = ql_pixel_of(w.s, phase, i0 + i);
	list_taps(t, w, phase, 0, 0);
	__syncthreads();
	for (int64_t k0 = -DEEP; k0 < w.x.k; k0 += DEEP, now ^= 1) {
		fetch(t, w, t.tap[now], group, j0, pad, w.x.k - k0 - DEEP, next);
		if (k0 >= 0) {
			multiply<A, B>(t.stage[now ^ 1], sum);
			line = zeros ? add_line<A, B>(t.stage[now ^ 1], line) : 0;
		}
		put(t.stage[now], next);
		list_taps(t, w, phase, now ^ 1, k0 + 2 * DEEP);
		if (!QL_BUG(conv_i8_barrier))
			__syncthreads();
	}
	keep(t, sum);
	if (threadIdx.x < PIXELS + OUTPUTS)
		t.sum[threadIdx.x] = line;
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < PIXELS * OUTPUTS; e += THREADS) {
		int i = e % PIXELS, j = e / PIXELS;
		int64_t output = group * w.s.rows + j0 + j, to = t.pixel[i].to;

		if (j0 + j < w.s.rows && to >= 0)
			ql_product_put(w.x, to + output * plane, ql_code_line_of(w.x.a, 0, 0, t.sum[i]),
				ql_code_line_of(w.x.b, 0, output, t.sum[PIXELS + j]), ql_bias_at(w.x, output),
				t.product[j][i]);
	}
	__syncthreads(); /* before the next tile is written */
}

template <bool A, bool B> QL_KERNEL(THREADS) conv(job w)
{
	QL_SHARED(struct tiles, t);
	ql_phase phase = ql_phase_of(w.s, 0);
	int64_t across = (w.s.pixels + PIXELS - 1) / PIXELS, down = (w.s.rows + OUTPUTS - 1) / OUTPUTS;

	for (int64_t i = blockIdx.x; i < across * down * w.s.groups; i += gridDim.x)
		tile<A, B>(t, w, phase, i / (down * across), i / down % across * PIXELS, i % down * OUTPUTS);
}

/* ---- the call ---- */

static bool codes_of(const struct ql_gpu_tensor *t, int axis, struct ql_code_matrix *l, struct ql_gpu_plan *p)
{
	if (!ql_scales_fit(t, p))
		return false;
	if (ql_element_get(ql_element_of(t->dtype)).bits != 8)
		return ql_refuse(p, "codes of other than 8 bits");
	if (t->codes->shift)
		return ql_refuse(p, "codes with a minimum");
	if (t->codes->block)
		return ql_refuse(p, "scale varies in blocks");
	if (t->codes->axis > axis)
		return ql_refuse(p, "scale varies along the summed axes");
	l->at = static_cast<const uint8_t *>(t->at);
	l->is_unsigned = ql_element_get(ql_element_of(t->dtype)).kind == QL_E_UINT;
	l->scales = ql_scales_of(t->codes);
	l->per_line = t->codes->axis == 0;
	return true;
}

/* Sets w; false: p->why says why not. */
static bool job_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in, *k = &call->in[1], *out = call->out;

	*w = {};
	if (!codes_of(x, -1, &w->x.a, p) || !codes_of(k, 0, &w->x.b, p) ||
		!ql_conv_geometry(call, x, k, out, &w->s.w, &w->s.groups, p))
		return false;
	ql_conv_sums_of(&w->s, false, x, k, out);
	w->x.batches = 1;
	w->x.m = w->s.pixels;
	w->x.n = w->s.groups * w->s.rows;
	w->x.k = w->s.channels * w->s.w.kernel[0] * w->s.w.kernel[1];
	if (w->x.k >= ((int64_t)1 << 31) / (ql_most_of(&w->x.a) * ql_most_of(&w->x.b)))
		return ql_refuse(p, "sums of more than 32 bits");
	if (!ql_bias_of(call, &w->x, p) || !ql_result_of(call, &w->x, p))
		return false;
	w->words = ql_dense(k) && w->x.k % 4 == 0 && (uintptr_t)k->at % 4 == 0;
	p->path = w->x.rounding == QL_ROUNDING_SINGLE ? "int8 single" : w->x.rounding ? "int8 double" : "int8";
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct job w;

	return job_of(call, &w, p);
}

template <bool A, bool B> static cudaError_t launch(const struct ql_gpu_place *place, const job &w)
{
	int64_t all = (w.s.pixels + PIXELS - 1) / PIXELS * ((w.s.rows + OUTPUTS - 1) / OUTPUTS) * w.s.groups;

	return ql_launch(conv<A, B>, ql_blocks(all, 1), dim3(THREADS), sizeof(struct tiles), place->stream, w);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct job w;
	cudaError_t error;

	if (!job_of(call, &w, &p))
		return cudaErrorInvalidValue;
	error = ql_product_begin(w.x, place->stream);
	if (error || ql_count(call->out) == 0)
		return error;
	if (w.x.a.is_unsigned)
		return w.x.b.is_unsigned ? launch<true, true>(place, w) : launch<true, false>(place, w);
	return w.x.b.is_unsigned ? launch<false, true>(place, w) : launch<false, false>(place, w);
}
