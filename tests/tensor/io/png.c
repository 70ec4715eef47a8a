/* SPDX-License-Identifier: MIT
 * PNG: images of Pillow as literals; every colour type, depth and interlacing, written here with libpng;
 * malformed files.
 */
#include <png.h>
#include <zlib.h>

#include "tests/tensor/io/files.h"

struct literal {
	const char *what, *bytes;
	size_t n;
	unsigned dtype;
	int rank;
	int64_t shape[3];
	double values[24];
};

#define PNG_LITERAL(text) "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00" text, sizeof(text) - 1 + 19

static const struct literal literals[] = {
	{"1-bit gray",
		PNG_LITERAL("\x03\x00\x00\x00\x02\x01\x00\x00\x00\x00\xb5\x0f"
			    "[\xb7\x00\x00\x00\x0cIDATx\xda\x63p`"
			    "8\x00\x00\x01\x84\x01\x01\x34\x82\x43\xfc\x00\x00\x00\x00IEND\xae"
			    "B`\x82"),
		QL_uint8, 2, {2, 3}, {0, 255, 0, 255, 255, 0}},
	{"2-bit palette",
		PNG_LITERAL("\x03\x00\x00\x00\x02\x02\x03\x00\x00\x00\xe0\x1a"
			    "\x8e\x89\x00\x00\x00\x0cPLTE\xff\x00\x00\x00\xff\x00\x00\x00\xff\x0a\x14\x1e\""
			    "\x88)\x04\x00\x00\x00\x0c"
			    "IDATx\xda\x63\x90`8\x02\x00\x01\x10\x00\xdd/"
			    "\x18\xdc\x8e\x00\x00\x00\x00IEND\xae\x42`\x82"),
		QL_uint8, 3, {2, 3, 3}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 255, 0, 0, 0, 255, 0}},
	{"palette with transparency",
		PNG_LITERAL("\x03\x00\x00\x00\x02\x02\x03\x00\x00\x00\xe0\x1a"
			    "\x8e\x89\x00\x00\x00\x0cPLTE\xff\x00\x00\x00\xff\x00\x00\x00\xff\x0a\x14\x1e\""
			    "\x88)\x04\x00\x00\x00\x02"
			    "tRNS\xff\x00\xe5\xb7\x30J\x00\x00\x00\x0cIDATx\xda\x63\x90`"
			    "8\x02\x00\x01\x10\x00\xdd/\x18\xdc\x8e\x00"
			    "\x00\x00\x00IEND\xae\x42`\x82"),
		QL_uint8, 3, {2, 3, 4},
		{255, 0, 0, 255, 0, 255, 0, 0, 0, 0, 255, 255, 10, 20, 30, 255, 255, 0, 0, 255, 0, 255, 0, 0}},
	{"16-bit gray",
		PNG_LITERAL("\x03\x00\x00\x00\x02\x10\x00\x00\x00\x00\xe8\x8f"
			    "\xe5\x85\x00\x00\x00\x16IDATx\xda\x63````dd`\xf8\xff_"
			    "\xc8\x84\x81\x09\x00\x0b\xfc\x02I\xaa\xa8 \x13\x00"
			    "\x00\x00\x00IEND\xae\x42`\x82"),
		QL_uint16, 2, {2, 3}, {0, 1, 256, 65535, 4660, 2}},
	{"gray with alpha",
		PNG_LITERAL("\x02\x00\x00\x00\x01\x08\x04\x00\x00\x00^+\xb7"
			    "\x01\x00\x00\x00\x0dIDATx\xda\x63\x64\x64\x62\x62\x02\x00\x00\x1a\x00\x09\xaf|}"
			    "\x06\x00\x00\x00\x00IE"
			    "ND\xae\x42`\x82"),
		QL_uint8, 3, {1, 2, 2}, {1, 2, 3, 4}},
	{"RGBA",
		PNG_LITERAL("\x02\x00\x00\x00\x01\x08\x06\x00\x00\x00\xf4\""
			    "\x7f\x8a\x00\x00\x00\x11IDATx\xda\x63\x64\x64\x62\x66\x61\x61\x61\x61\x01\x00"
			    "\x00v\x00\x1c,\xebw\xdb\x00"
			    "\x00\x00\x00IEND\xae\x42`\x82"),
		QL_uint8, 3, {1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}},
};

static void check_literals(void)
{
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		const struct literal *l = &literals[i];
		struct ql_tensor wanted = {.rank = (uint8_t)l->rank, .shape = {l->shape[0], l->shape[1], l->shape[2]}};
		struct ql_named_list list;

		CASE("Pillow's image: %s", l->what);
		list = load_bytes("x.png", &(struct bytes){(uint8_t *)(uintptr_t)l->bytes, l->n});
		if (CHECK(list.n == 1, "nothing")) {
			const struct ql_tensor *t = list.at[0].tensor;

			if (CHECK(t->dtype == l->dtype && ql_tensor_same_shape(t, &wanted), "%s",
				    ql_tensor_text(t, (char[QL_SHAPE_TEXT]){0})))
				for (int64_t k = 0; k < ql_tensor_nelem(t); k++)
					CHECK(ql_tensor_at_f64(t, k) == l->values[k], "%lld: %g", (long long)k,
						ql_tensor_at_f64(t, k));
		}
		ql_named_clear(ctx, &list);
	}
}

static void append(png_structp png, png_bytep data, size_t n)
{
	add(png_get_io_ptr(png), data, n);
}

/* An image whose packed rows are bytes i * 29 + 3 of a counter, as libpng writes it. */
static struct bytes png_of(int width, int height, int depth, int color, int interlace)
{
	struct bytes b = {0}, rows = {0};
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	png_color palette[256];
	size_t row;

	png_set_write_fn(png, &b, append, NULL);
	png_set_IHDR(png, info, (unsigned)width, (unsigned)height, depth, color, interlace, 0, 0);
	for (int i = 0; i < 256; i++)
		palette[i] = (png_color){(uint8_t)i, (uint8_t)(i * 7), (uint8_t)(255 - i)};
	if (color == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, palette, 1 << depth);
	png_write_info(png, info);
	row = png_get_rowbytes(png, info);
	for (size_t i = 0; i < row * (size_t)height; i++)
		add_le(&rows, 1, i * 29 + 3);
	for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
		for (int y = 0; y < height; y++)
			png_write_row(png, rows.at + (size_t)y * row);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	free(rows.at);
	return b;
}

/* Sample i of row y as png_of wrote it */
static unsigned sample(int width, int channels, int depth, int y, int i)
{
	size_t row = ((size_t)(width * channels * depth) + 7) / 8, at = (size_t)y * row;

	if (depth == 16)
		return (unsigned)((uint8_t)((at + (size_t)i * 2) * 29 + 3) << 8 |
				  (uint8_t)((at + (size_t)i * 2 + 1) * 29 + 3));
	at += (size_t)(i * depth / 8);
	return (unsigned)((uint8_t)(at * 29 + 3) >> (8 - depth - i * depth % 8)) & ((1u << depth) - 1);
}

static void check_image(int depth, int color, int channels, int interlace)
{
	enum { WIDTH = 13, HEIGHT = 11 };
	struct bytes b = png_of(WIDTH, HEIGHT, depth, color, interlace);
	struct ql_named_list list = load_bytes("x.png", &b);
	bool palette = color == PNG_COLOR_TYPE_PALETTE;
	int out = palette ? 3 : channels;

	free(b.at);
	if (!CHECK(list.n == 1, "nothing"))
		return;
	CHECK(list.at[0].tensor->dtype == (depth == 16 ? QL_uint16 : QL_uint8), "dtype");
	CHECK(ql_tensor_nelem(list.at[0].tensor) == WIDTH * HEIGHT * out, "shape");
	for (int y = 0; y < HEIGHT; y++)
		for (int i = 0; i < WIDTH * out; i++) {
			unsigned v = sample(WIDTH, channels, depth, y, palette ? i / 3 : i);
			unsigned colours[3] = {v, (uint8_t)(v * 7), 255 - v};
			unsigned wanted = palette ? colours[i % 3] : depth < 8 ? v * 255 / ((1u << depth) - 1) : v;
			double got = ql_tensor_at_f64(list.at[0].tensor, y * WIDTH * out + i);

			CHECK(got == wanted, "row %d, %d: %g, wanted %u", y, i, got, wanted);
		}
	ql_named_clear(ctx, &list);
}

static void kinds(void)
{
	static const struct {
		const char *name;
		int color, channels, depths[6];
	} all[] = {
		{"gray", PNG_COLOR_TYPE_GRAY, 1, {1, 2, 4, 8, 16}},
		{"palette", PNG_COLOR_TYPE_PALETTE, 1, {1, 2, 4, 8}},
		{"gray and alpha", PNG_COLOR_TYPE_GRAY_ALPHA, 2, {8, 16}},
		{"RGB", PNG_COLOR_TYPE_RGB, 3, {8, 16}},
		{"RGBA", PNG_COLOR_TYPE_RGB_ALPHA, 4, {8, 16}},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (int k = 0; all[i].depths[k]; k++)
			for (int interlace = 0; interlace < 2; interlace++) {
				CASE("%s of %d bits%s", all[i].name, all[i].depths[k], interlace ? ", interlaced" : "");
				check_image(all[i].depths[k], all[i].color, all[i].channels, interlace);
			}
}

/* Makes the checksum of the first chunk right again. */
static void mend(struct bytes *b)
{
	uint32_t crc = (uint32_t)crc32(0, b->at + 12, 17);

	for (size_t i = 0; i < 4; i++)
		b->at[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

static void refuse_size(uint32_t width, uint32_t height, unsigned depth, unsigned color, const char *reason)
{
	struct bytes b = png_of(5, 4, 8, PNG_COLOR_TYPE_RGB, 0);

	CASE("%u x %u pixels of %u bits, colour type %u", width, height, depth, color);
	for (size_t i = 0; i < 4; i++) {
		b.at[16 + i] = (uint8_t)(width >> (24 - 8 * i));
		b.at[20 + i] = (uint8_t)(height >> (24 - 8 * i));
	}
	b.at[24] = (uint8_t)depth;
	b.at[25] = (uint8_t)color;
	mend(&b);
	refuse_within("bad.png", &b, b.n + ROOM + 5 * 4 * 8 + 200000, reason);
	free(b.at);
}

static void malformed(void)
{
	struct bytes b = png_of(7, 5, 8, PNG_COLOR_TYPE_RGB, 0), c;

	CASE("every beginning");
	for (size_t n = 0; n < b.n; n++)
		refuse_within("cut.png", &(struct bytes){b.at, n}, n + ROOM, "");
	CASE("every byte changed");
	mutate("changed.png", &b);
	CASE("another magic");
	c = copy_of(&b);
	c.at[1] = 'J';
	refuse("bad.png", &c, "Not a PNG");
	free(c.at);
	CASE("checksum of the pixels");
	c = copy_of(&b);
	c.at[c.n - 13] ^= 1;
	refuse("bad.png", &c, "CRC");
	free(c.at);
	CASE("pixels before the palette");
	c = png_of(7, 5, 4, PNG_COLOR_TYPE_PALETTE, 0);
	memcpy(c.at + 37, "sPLT", 4);
	refuse("bad.png", &c, "PLTE");
	free(c.at);
	refuse_size(0, 4, 8, 2, "Invalid IHDR");
	refuse_size(5, 0, 8, 2, "Invalid IHDR");
	refuse_size(0x80000000u, 4, 8, 2, "");
	refuse_size(0x7fffffff, 4, 8, 2, "Invalid IHDR");
	refuse_size(1000001, 1, 8, 0, "Invalid IHDR");
	refuse_size(1000000, 1000000, 8, 6, "file can hold");
	refuse_size(5, 1000000, 8, 2, "file can hold");
	refuse_size(100000, 1, 16, 6, "file can hold");
	refuse_size(5, 5, 8, 2, "Not enough image data");
	refuse_size(5, 400, 8, 2, "Not enough image data");
	refuse_size(5, 4, 3, 2, "Invalid IHDR");
	refuse_size(5, 4, 16, 3, "Invalid IHDR");
	refuse_size(5, 4, 8, 1, "Invalid IHDR");
	free(b.at);
}

/* A text chunk that would inflate to much is skipped. */
static void text_bomb(void)
{
	struct bytes b = png_of(7, 5, 8, PNG_COLOR_TYPE_GRAY, 0), text = {0}, c = {0};
	struct ql_named_list list = {0};
	uLongf n = 200000;
	uint8_t *zeros = calloc(1, 100000000), *packed = malloc(n);

	CASE("a text that inflates to 100 MB is not inflated");
	compress2(packed, &n, zeros, 100000000, 9);
	add_text(&text, "zTXtkey");
	add_zeros(&text, 2);
	add(&text, packed, n);
	add(&c, b.at, 33);
	add_be(&c, 4, text.n - 4);
	add(&c, text.at, text.n);
	add_be(&c, 4, crc32(0, text.at, (uInt)text.n));
	add(&c, b.at + 33, b.n - 33);
	ctx->memory.limit = ctx->memory.now + c.n + ROOM;
	CHECK(!ql_file_load(ctx, write_file("x.png", c.at, c.n), &list, NULL), "%s", ctx->err);
	ctx->memory.limit = 0;
	ql_named_clear(ctx, &list);
	free(zeros);
	free(packed);
	free(text.at);
	free(b.at);
	free(c.at);
}

static void memory(void)
{
	struct bytes b = png_of(70, 50, 8, PNG_COLOR_TYPE_RGB, 1);

	CASE("every allocation fails in turn");
	sweep_memory(write_file("x.png", b.at, b.n), NULL);
	free(b.at);
}

int main(void)
{
	size_t before = start();

	check_literals();
	kinds();
	malformed();
	text_bomb();
	memory();
	printf("%d malformed files\n", cases);
	return finish(before);
}
