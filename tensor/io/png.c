/* SPDX-License-Identifier: MIT
 * PNG images through libpng: (H, W) for gray, (H, W, C) for gray with alpha (2), RGB (3) and RGBA (4). Palettes
 * become RGB, gray of 1, 2 and 4 bits is scaled to 0..255, transparency becomes an alpha channel, 16-bit images are
 * uint16. Values are the file's own numbers: gamma and colour profiles are not applied. Writing supports the same
 * shapes and dtypes, so that an image loads as it was saved.
 *
 * libpng reports errors by longjmp. It stays inside this file: all state across the jump is in struct job, and
 * `guarded` is the only frame to which it returns.
 */
#include <png.h>
#include <setjmp.h>

#include "tensor/io/elements.h"
#include "tensor/io/format.h"
#include "tensor/closed.h"

#define SIDE_MAX 1000000 /* pixels along one side */

struct job {
	struct ql_ctx *ctx;
	struct ql_stream stream;
	struct ql_tensor *t;
	enum ql_status status; /* error of a callback */
	png_structp png;
	png_infop info;
	const struct ql_reader *r; /* when reading */
	struct ql_writer *w;       /* when writing */
};

static void *take(png_structp png, png_alloc_size_t bytes)
{
	struct job *job = png_get_mem_ptr(png);
	void *block = ql_alloc(job->ctx, bytes);

	if (!block)
		job->status = QL_ERR_MEMORY;
	return block;
}

static void give(png_structp png, void *block)
{
	struct job *job = png_get_mem_ptr(png);

	ql_free(job->ctx, block);
}

static void fail(png_structp png, const char *reason)
{
	struct job *job = png_get_error_ptr(png);

	if (!job->status)
		job->status = ql_fail(job->ctx, QL_ERR_FORMAT, "png: %s", reason);
	png_longjmp(png, 1);
}

/* Warnings concern unused chunks or errors that libpng corrects. */
static void ignore(png_structp png, const char *reason)
{
	(void)png;
	(void)reason;
}

static void fetch(png_structp png, png_bytep to, size_t n)
{
	struct job *job = png_get_io_ptr(png);

	job->status = ql_stream_read(&job->stream, to, n, "png data");
	if (job->status)
		png_error(png, "read");
}

/* Checks the pixels against the file size: deflate expands a byte to at most 1032. */
static enum ql_status check_size(struct job *job)
{
	uint64_t width = png_get_image_width(job->png, job->info), height = png_get_image_height(job->png, job->info);
	uint64_t bits = (uint64_t)png_get_bit_depth(job->png, job->info) * png_get_channels(job->png, job->info);
	uint64_t bytes = (width * bits / 8 + 1) * height; /* size: sides are at most SIDE_MAX */

	if (bytes <= QL_INFLATE_MAX && bytes / QL_INFLATE_RATIO <= job->r->size)
		return QL_OK;
	return ql_fail(job->ctx, QL_ERR_FORMAT,
		"png: wanted a size that %llu bytes of file can hold, got %llu x %llu pixels",
		(unsigned long long)job->r->size, (unsigned long long)width, (unsigned long long)height);
}

static enum ql_status make_tensor(struct job *job)
{
	int64_t shape[3] = {png_get_image_height(job->png, job->info), png_get_image_width(job->png, job->info),
		png_get_channels(job->png, job->info)};
	bool wide = png_get_bit_depth(job->png, job->info) == 16;

	return ql_tensor_new(job->ctx, wide ? QL_uint16 : QL_uint8, shape[2] == 1 ? 2 : 3, shape, &job->t);
}

static enum ql_status read_rows(struct job *job, int passes)
{
	size_t bytes = png_get_rowbytes(job->png, job->info);
	png_bytep pixels = job->t->storage->data;

	for (int pass = 0; pass < passes; pass++)
		for (int64_t y = 0; y < job->t->shape[0]; y++) {
			if (job->ctx->interrupted)
				return ql_fail(job->ctx, QL_ERR_INTERRUPTED, "interrupted");
			png_read_row(job->png, pixels + (size_t)y * bytes, NULL);
		}
	png_read_end(job->png, NULL);
	return QL_OK;
}

static void configure(struct job *job)
{
	png_set_read_fn(job->png, job, fetch);
	png_set_user_limits(job->png, SIDE_MAX, SIDE_MAX);
	/* skip text, profiles and the like without inflating them */
	png_set_keep_unknown_chunks(job->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	png_set_crc_action(job->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#endif
}

static enum ql_status decode(struct job *job)
{
	enum ql_status status;
	int passes;

	configure(job);
	png_read_info(job->png, job->info);
	status = check_size(job);
	if (status)
		return status;
	png_set_expand(job->png);
	png_set_swap(job->png);
	passes = png_set_interlace_handling(job->png);
	png_read_update_info(job->png, job->info);
	status = make_tensor(job);
	return status ? status : read_rows(job, passes);
}

/* The target of libpng's longjmp. */
static enum ql_status guarded(struct job *job)
{
	if (setjmp(png_jmpbuf(job->png)))
		return job->status;
	return decode(job);
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct job job = {.ctx = r->ctx, .r = r};
	enum ql_status status = ql_stream_open(&job.stream, r, 0, r->size, QL_STORED, 0);

	if (status)
		return status;
	job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, fail, ignore, &job, take, give);
	job.info = job.png ? png_create_info_struct(job.png) : NULL;
	if (!job.info)
		status = job.status ? job.status : ql_fail(r->ctx, QL_ERR_UNSUPPORTED, "png: libpng cannot start");
	else
		status = guarded(&job);
	png_destroy_read_struct(&job.png, &job.info, NULL);
	ql_stream_close(&job.stream);
	if (!status)
		status = ql_named_add(r->ctx, out, "", job.t);
	ql_tensor_release(r->ctx, job.t);
	return status;
}

/* ---- writing ---- */

static void put(png_structp png, png_bytep from, size_t n)
{
	struct job *job = png_get_io_ptr(png);

	job->status = ql_writer_put(job->w, from, n);
	if (job->status)
		png_error(png, "write");
}

/* ql_writer_commit flushes. */
static void flush(png_structp png)
{
	(void)png;
}

static enum ql_status check_image(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	bool shape = t->rank == 2 || (t->rank == 3 && t->shape[2] >= 2 && t->shape[2] <= 4);
	char text[QL_SHAPE_TEXT];

	if (t->q || (t->dtype != QL_uint8 && t->dtype != QL_uint16))
		return ql_fail(ctx, QL_ERR_DTYPE, "png: wanted uint8 or uint16, got %s%s", ql_tensor_text(t, text),
			t->q                          ? "; save :codes() or :dequantize()"
			: ql_dtype_is_float(t->dtype) ? "; of values from 0 to 1: (x * 255):to 'uint8'"
						      : "; use :to 'uint8'");
	for (int d = 0; d < 2 && shape; d++)
		shape = t->shape[d] >= 1 && t->shape[d] <= SIDE_MAX;
	if (shape)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE,
		"png: wanted an image (h, w) or (h, w, channels) with 2 to 4 channels and sides of 1 to %d, got %s%s",
		SIDE_MAX, ql_shape_text(t->rank, t->shape, text),
		t->rank == 3 && t->shape[0] <= 4 && t->shape[2] > 4 ? "; channels come last: x:permute(2, 3, 1)" : "");
}

static enum ql_status encode(struct job *job)
{
	static const int colours[] = {
		PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
	const struct ql_tensor *t = job->t;
	int64_t channels = t->rank == 3 ? t->shape[2] : 1;
	int bits = (int)ql_dtypes[t->dtype].bits;
	size_t bytes = (size_t)(t->shape[1] * channels * bits / 8); /* size: of a row of an image in memory */
	const unsigned char *pixels = ql_tensor_data(t);

	png_set_write_fn(job->png, job, put, flush);
	png_set_user_limits(job->png, SIDE_MAX, SIDE_MAX);
	png_set_IHDR(job->png, job->info, (png_uint_32)t->shape[1], (png_uint_32)t->shape[0], bits,
		colours[channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(job->png, job->info);
	if (bits == 16)
		png_set_swap(job->png);
	for (int64_t y = 0; y < t->shape[0]; y++) {
		if (job->ctx->interrupted)
			return ql_fail(job->ctx, QL_ERR_INTERRUPTED, "interrupted");
		png_write_row(job->png, pixels + (size_t)y * bytes);
	}
	png_write_end(job->png, NULL);
	return QL_OK;
}

static enum ql_status guarded_encode(struct job *job)
{
	if (setjmp(png_jmpbuf(job->png)))
		return job->status;
	return encode(job);
}

static enum ql_status save(struct ql_writer *w, const struct ql_named_list *list, unsigned flags)
{
	struct job job = {.ctx = w->ctx, .w = w};
	enum ql_status status = check_image(w->ctx, list->at[0].tensor);

	(void)flags;
	if (!status)
		status = ql_tensor_contiguous(w->ctx, list->at[0].tensor, &job.t);
	if (!status)
		status = ql_closed_open(w->ctx, job.t->storage);
	if (status) {
		ql_tensor_release(w->ctx, job.t);
		return status;
	}
	job.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &job, fail, ignore, &job, take, give);
	job.info = job.png ? png_create_info_struct(job.png) : NULL;
	if (!job.info)
		status = job.status ? job.status : ql_fail(w->ctx, QL_ERR_UNSUPPORTED, "png: libpng cannot start");
	else
		status = guarded_encode(&job);
	png_destroy_write_struct(&job.png, &job.info);
	ql_closed_close(w->ctx, job.t->storage);
	ql_tensor_release(w->ctx, job.t);
	return status;
}

const struct ql_format ql_format_png = {
	.doc = {.name = "png",
		.usage = "tensor.load 'camera.png'  tensor.save('x.png', x)",
		.text = "An image: uint8 (uint16 for 16-bit images), (H, W) for gray, (H, W, C) for "
			"gray+alpha, RGB and RGBA. The numbers are those of the file, and what is saved loads as it was. Floats are not "
			"guessed at: (x * 255):to 'uint8' for values from 0 to 1.",
		.example =
			"file = os.tmpname() .. '.png'\ntensor.save(file, tensor({{0, 255}, {7, 8}, dtype = 'uint8'}))\n"
			"print(tensor.load(file)[2])  --> uint8(2) 7 8\nos.remove(file)"},
	.extensions = ".png",
	.single = true,
	.load = load,
	.save = save,
};
