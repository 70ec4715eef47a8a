/* SPDX-License-Identifier: MIT
 * JPEG images by libturbojpeg, loaded at first use: uint8, (H, W) for gray, (H, W, 3) for colour, baseline and
 * progressive. The pixels are those of libjpeg's accurate transform and smooth upsampling; Exif orientation and
 * colour profiles are not applied.
 *
 * The size in the header is limited before allocating: a file of a few bytes can declare 65,535 x 65,535 pixels.
 * Warnings of libjpeg (truncated or inconsistent data) are errors. Ctrl-C waits for the library, so its work is
 * limited as well: each scan of a progressive file processes all pixels.
 */
#include "tensor/io/jpeg.h"

#include <dlfcn.h>
#include <string.h>

#include "tensor/io/format.h"

#define PIXELS_MAX ((uint64_t)1 << 28)
#define WORK_MAX ((uint64_t)1 << 30) /* pixels times scans; about 4 s */
#define PIXELS_PER_BYTE \
	2048 /* a block of 64 pixels takes a bit at least, half or less of it when colours are coarser */

/* values of turbojpeg.h, version 2 */
#define FORMAT_RGB 0
#define FORMAT_GRAY 6
#define SPACE_GRAY 2
#define SPACE_CMYK 3
#define FLAG_STOP_ON_WARNING 8192
#define FLAG_LIMIT_SCANS 32768 /* fails above 500 scans */

#define TURBOJPEG_FUNCTIONS(F) \
	F(tjInitDecompress, void *, (void)) \
	F(tjDestroy, int, (void *handle)) \
	F(tjGetErrorStr2, char *, (void *handle)) \
	F(tjDecompressHeader3, int, \
		(void *handle, const unsigned char *data, unsigned long n, int *width, int *height, int *subsampling, \
			int *space)) \
	F(tjDecompress2, int, \
		(void *handle, const unsigned char *data, unsigned long n, unsigned char *to, int width, int pitch, \
			int height, int format, int flags))

struct turbojpeg {
#define F(name, result, parameters) result(*name) parameters;
	TURBOJPEG_FUNCTIONS(F)
#undef F
};

/* NULL if the library is missing or lacks a function. */
static const struct turbojpeg *turbojpeg(void)
{
	static struct turbojpeg functions;
	static bool tried, usable;
	void *library;

	if (tried)
		return usable ? &functions : NULL;
	tried = true;
	library = dlopen("libturbojpeg.so.0", RTLD_NOW | RTLD_LOCAL);
	usable = library != NULL;
#define F(name, result, parameters) \
	*(void **)&functions.name = library ? dlsym(library, #name) : NULL; \
	usable = usable && functions.name;
	TURBOJPEG_FUNCTIONS(F)
#undef F
	return usable ? &functions : NULL;
}

bool ql_jpeg_usable(void)
{
	return turbojpeg() != NULL;
}

struct job {
	struct ql_ctx *ctx;
	const struct turbojpeg *lib;
	void *handle;
	const unsigned char *data;
	uint64_t n;
	int width, height, space;
};

/* Fails with the library's message, without the name of its function. */
static enum ql_status refused(const struct job *j)
{
	const char *why = j->lib->tjGetErrorStr2(j->handle), *colon = strstr(why, "(): ");

	return ql_fail(j->ctx, QL_ERR_FORMAT, "jpeg: %s", colon ? colon + 4 : why);
}

/* Counts scans; those of a thumbnail too. */
static uint64_t count_scans(const struct job *j)
{
	const unsigned char *at = j->data, *end = at + j->n;
	uint64_t n = 0;

	while ((at = memchr(at, 0xff, (size_t)(end - at))) && ++at < end)
		n += *at == 0xda;
	return n;
}

static enum ql_status check_work(const struct job *j)
{
	uint64_t pixels = (uint64_t)j->width * (uint64_t)j->height, scans = count_scans(j);

	if (scans <= WORK_MAX / pixels)
		return QL_OK;
	return ql_fail(j->ctx, QL_ERR_FORMAT,
		"jpeg: wanted at most %llu pixels in all scans together, got %llu scans of %d x %d pixels",
		(unsigned long long)WORK_MAX, (unsigned long long)scans, j->width, j->height);
}

static enum ql_status read_header(struct job *j)
{
	int subsampling;
	uint64_t pixels;

	if (j->n < 2 || j->data[0] != 0xff || j->data[1] != 0xd8)
		return ql_fail(j->ctx, QL_ERR_FORMAT, "jpeg: wanted a file that begins with ff d8");
	if (j->lib->tjDecompressHeader3(j->handle, j->data, j->n, &j->width, &j->height, &subsampling, &j->space))
		return refused(j);
	if (j->width < 1 || j->height < 1)
		return ql_fail(j->ctx, QL_ERR_FORMAT, "jpeg: wanted pixels, got %d x %d", j->width, j->height);
	pixels = (uint64_t)j->width * (uint64_t)j->height;
	if (pixels > PIXELS_MAX || pixels / PIXELS_PER_BYTE > j->n)
		return ql_fail(j->ctx, QL_ERR_FORMAT,
			"jpeg: wanted a size that %llu bytes of file can hold, at most %llu pixels, got %d x %d pixels",
			(unsigned long long)j->n, (unsigned long long)PIXELS_MAX, j->width, j->height);
	if (j->space >= SPACE_CMYK)
		return ql_fail(j->ctx, QL_ERR_UNSUPPORTED, "jpeg: wanted gray or colour (RGB), got inks (CMYK)");
	return check_work(j);
}

static enum ql_status decode(struct job *j, struct ql_tensor **out)
{
	bool gray;
	enum ql_status status = read_header(j);

	if (status)
		return status;
	gray = j->space == SPACE_GRAY;
	status = ql_tensor_new(j->ctx, QL_uint8, gray ? 2 : 3, (const int64_t[]){j->height, j->width, 3}, out);
	if (status)
		return status;
	if (j->lib->tjDecompress2(j->handle, j->data, j->n, (*out)->storage->data, j->width, j->width * (gray ? 1 : 3),
		    j->height, gray ? FORMAT_GRAY : FORMAT_RGB, FLAG_STOP_ON_WARNING | FLAG_LIMIT_SCANS))
		return refused(j);
	return QL_OK;
}

static enum ql_status load(const struct ql_reader *r, struct ql_named_list *out)
{
	struct job j = {.ctx = r->ctx, .lib = turbojpeg(), .n = r->size};
	struct ql_tensor *t = NULL;
	char *data = NULL;
	enum ql_status status;

	if (!j.lib)
		return ql_fail(r->ctx, QL_ERR_UNSUPPORTED,
			"jpeg: wanted the library libturbojpeg.so.0, which is not here; install it with: apt-get install libturbojpeg0");
	status = ql_reader_take(r, 0, r->size, "jpeg data", &data);
	if (status)
		return status;
	j.data = (const unsigned char *)data;
	j.handle = j.lib->tjInitDecompress();
	status = j.handle ? decode(&j, &t) : ql_fail(r->ctx, QL_ERR_MEMORY, "jpeg: out of memory");
	if (!status)
		status = ql_named_add(r->ctx, out, "", t);
	if (j.handle)
		j.lib->tjDestroy(j.handle);
	ql_tensor_release(r->ctx, t);
	ql_free(r->ctx, data);
	return status;
}

static bool sniff(const uint8_t *head, size_t n)
{
	return n >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff;
}

const struct ql_format ql_format_jpeg = {
	.doc = {.name = "jpeg",
		.usage = "tensor.load 'photo.jpg'",
		.text = "A picture: uint8, (H, W) for gray, (H, W, 3) for colour, baseline or progressive, of at most 2^28 pixels (2^30 in "
			"all scans of a progressive file together). x:permute(3, 1, 2) "
			"brings the colours to the front, x:resize gives it another size. The orientation that a camera notes (Exif) is not "
			"applied, as in PIL's Image.open and torchvision. It can only be read; libturbojpeg does that (Debian: libturbojpeg0).",
		.example = "print(pcall(tensor.load, 'no.jpg'))  --> false ...no.jpg..."},
	.extensions = ".jpg .jpeg",
	.single = true,
	.load = load,
	.sniff = sniff,
};
