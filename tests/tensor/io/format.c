/* SPDX-License-Identifier: MIT
 * Choosing a format, and messages that name the file.
 */
#include <sys/stat.h>

#include "tests/tensor/io/files.h"

static void refuse_load(const char *path, const char *reason)
{
	struct ql_named_list list = {0};

	CHECK(ql_file_load(ctx, path, &list, NULL) != QL_OK, "%s was loaded", path);
	CHECK(strstr(ctx->err, reason), "%s: %s", path, ctx->err);
	CHECK(!strncmp(ctx->err, "load: '", 7), "%s", ctx->err);
}

static void not_files(void)
{
	CASE("what cannot be opened");
	refuse_load(path_of("none.npy"), "none.npy': cannot open: No such file or directory");
	refuse_load("", "'': cannot open");
	refuse_load("/", "got a directory");
	mkdir(path_of("dir.npy"), 0700);
	refuse_load(path_of("dir.npy"), "dir.npy': wanted a file, got a directory");
	rmdir(path_of("dir.npy"));
	refuse_load("/dev/zero", "got a device");
	mkfifo(path_of("pipe.npy"), 0600);
	refuse_load(path_of("pipe.npy"), "pipe");
}

static void extensions(void)
{
	struct ql_tensor *t;

	ql_tensor_of_f32(ctx, 1, &t);
	CASE("extensions");
	CHECK(!strcmp(ql_format_of("a.b/x.NPY")->doc.name, "npy"), "npy");
	CHECK(!strcmp(ql_format_of("x.safetensors")->doc.name, "safetensors"), "safetensors");
	CHECK(!strcmp(ql_format_of("t10k-labels-idx1-ubyte")->doc.name, "idx"), "idx");
	CHECK(!ql_format_of(".npy") && !ql_format_of("x.gz") && !ql_format_of("npy") && !ql_format_of(""), "none");
	CASE("unknown extensions name the known ones");
	refuse_load(write_file("x.foo", "1234567", 7),
		"wanted a file name that ends in one of .npy .npz "
		".safetensors .idx -ubyte .idx.gz -ubyte.gz .idx.xz -ubyte.xz .bin .png .jpg .jpeg");
	refuse_load(write_file("x", "", 0), "wanted a file name");
	CHECK(save_named(path_of("x.foo"), "", t, 0) &&
			strstr(ctx->err, "x.foo': wanted a file name that ends in one of .npy .npz .safetensors"),
		"%s", ctx->err);
	CHECK(!strstr(ctx->err, "jpg"), "%s", ctx->err);
	CASE("formats that are only read");
	CHECK(save_named(path_of("x.jpg"), "", t, 0) && strstr(ctx->err, "one of .npy .npz .safetensors .png"), "%s",
		ctx->err);
	ql_tensor_release(ctx, t);
}

static void long_and_strange_paths(void)
{
	char path[3000];

	CASE("long and strange paths stay one line");
	memset(path, 'x', sizeof(path));
	strcpy(path + sizeof(path) - 5, ".npy");
	refuse_load(path, "File name too long");
	CHECK(strlen(ctx->err) < 500, "%zu bytes", strlen(ctx->err));
	refuse_load(path_of("a\nb\x1b[2J.npy"), "a?b?[2J.npy");
}

/* Every descriptor has what help and completion need. */
static void descriptors(void)
{
	CASE("descriptors");
	for (int i = 0; ql_formats[i]; i++) {
		const struct ql_format *f = ql_formats[i];

		CHECK(f->doc.name && f->doc.usage && f->doc.text && f->doc.example && f->load, "%s", f->doc.name);
		CHECK(f->extensions[0] && f->extensions[strlen(f->extensions) - 1] != ' ', "%s", f->doc.name);
	}
}

int main(void)
{
	size_t before = start();

	not_files();
	extensions();
	long_and_strange_paths();
	descriptors();
	return finish(before);
}
