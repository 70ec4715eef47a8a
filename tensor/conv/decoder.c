/* SPDX-License-Identifier: MIT
 * Weights of convolutions as codes. Rows are decoded into memory that stays in the second-level cache and multiplied from there, so
 * the float weight never exists as a whole: taps.c decodes the rows of a task within it, each row once if there is one block of
 * pixels; for the other ways, and for small weights, all threads decode a chunk of rows before its sums are computed.
 *
 * Codes below 8 bits are mostly in order of outputs, taps, channels in memory, so that rows of codes end with a byte
 * (nn/base/modes.lua). The tiles of taps.c read rows in this order, too; chunks are turned, which takes as long as decoding.
 */
#include "tensor/conv/conv.h"

#include "tensor/codec.h"
#include "tensor/gemm/pack.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/qparams.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

#define CHUNK (1 << 20) /* bytes of decoded rows */
#define LEAST 32        /* rows of a chunk, for which the source is unfolded again */
#define MOST_TAPS 4096  /* of rows that are turned */
#define DECODE_NS 0.4   /* a number, roughly */

bool ql_conv_decoder_takes(const struct ql_tensor *t)
{
	return t->q && !t->q->scheme->host && (t->rank == 4 || t->rank == 2);
}

enum ql_status ql_conv_decoder_open(
	struct ql_ctx *ctx, struct ql_tensor *w, int64_t channels, int64_t taps, struct ql_conv_decoder *out)
{
	enum ql_status status = QL_OK;

	*out = (struct ql_conv_decoder){.channels = channels, .taps = taps, .variant = ctx->kernels->simd->variant};
	if (w->rank == 4 && !ql_tensor_is_contiguous(w)) {
		status = ql_view_permute(ctx, "conv2d", w, (const int[]){0, 2, 3, 1}, &out->view);
		out->turned = !status && taps < MOST_TAPS && ql_tensor_is_contiguous(out->view);
	}
	if (!status && !out->turned) {
		ql_tensor_release(ctx, out->view);
		out->view = ql_tensor_keep(w);
	}
	return status ? status : ql_decoder_open(ctx, out->view, &out->decoder);
}

void ql_conv_decoder_close(struct ql_ctx *ctx, struct ql_conv_decoder *d)
{
	ql_decoder_close(ctx, d->decoder);
	ql_tensor_release(ctx, d->view);
}

void ql_conv_decoder_read(const struct ql_conv_decoder *d, int64_t first, int64_t rows, int64_t pitch, float *out)
{
	int64_t k = d->channels * d->taps, each = pitch == k ? rows : 1;

	for (int64_t i = 0; i < rows; i += each)
		ql_decoder_read(d->decoder, 0, (first + i) * k, each * k, out + i * pitch);
}

/* ---- chunks ---- */

struct chunk {
	const struct ql_conv_decoder *codes;
	int64_t first, k;
	float *a;
	struct ql_slots slots; /* a line for each thread */
};

/* item: a row */
static void decode_body(void *arg, int64_t begin, int64_t end)
{
	const struct chunk *c = arg;
	const struct ql_conv_decoder *d = c->codes;
	int slot;
	float *line = d->turned ? ql_slots_enter(&c->slots, &slot) : NULL;

	if (!line)
		ql_conv_decoder_read(d, c->first + begin, end - begin, c->k, c->a + begin * c->k);
	for (int64_t i = begin; line && i < end; i++) {
		ql_conv_decoder_read(d, c->first + i, 1, c->k, line);
		ql_gemm_panel_f32(
			d->variant, line, 1, d->channels, d->channels, (int)d->taps, d->taps, c->a + i * c->k);
	}
	if (line)
		ql_slots_leave(&c->slots, slot);
}

/* The sums of rows of consecutive groups, or of a part of one, from row `first` of all on. */
static enum ql_status chunk_sums(
	struct ql_ctx *ctx, const struct ql_conv_sums *s, struct chunk *c, int64_t groups, int64_t rows)
{
	int64_t group = c->first / s->rows, all = groups * rows;
	struct ql_conv_sums part = *s;
	enum ql_status status = ql_parallel_for(
		ctx, all, ql_max64(1, 4096 / c->k), (int64_t)(DECODE_NS * (double)all * (double)c->k), decode_body, c);

	part.codes = NULL;
	part.a = c->a;
	part.u.from += group * s->channels * s->u.h * s->u.w;
	part.groups = groups;
	part.rows = rows;
	part.target += c->first * s->th * s->tw;
	part.outputs = ql_conv_outputs(s);
	if (s->e.bias)
		part.e.bias += c->first;
	if (s->other)
		part.other += c->first * s->th * s->tw;
	return status ? status : ql_conv_sums(ctx, &part);
}

enum ql_status ql_conv_chunks(struct ql_ctx *ctx, const struct ql_conv_sums *s)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct chunk c = {.codes = s->codes, .k = s->channels * s->u.taps};
	int64_t most = ql_max64(LEAST, CHUNK / (int64_t)sizeof(float) / c.k);
	int64_t rows = ql_ceil_div(s->rows, ql_ceil_div(s->rows, most));
	int64_t groups = rows < s->rows ? 1 : ql_min64(s->groups, most / rows);
	enum ql_status status =
		s->codes->turned ? ql_slots_take(ctx, ql_size_array(c.k, sizeof(float)), &c.slots) : QL_OK;

	c.a = status ? NULL : ql_scratch_array(ctx, ql_mul64(ql_mul64(groups, rows), c.k), sizeof(*c.a));
	if (!status && !c.a)
		status = QL_ERR_MEMORY;
	for (int64_t g = 0; g < s->groups && !status; g += groups)
		for (int64_t i = 0; i < s->rows && !status; i += rows) {
			c.first = g * s->rows + i;
			status = chunk_sums(ctx, s, &c, ql_min64(groups, s->groups - g), ql_min64(rows, s->rows - i));
		}
	ql_scratch_release(ctx, mark);
	return status;
}
