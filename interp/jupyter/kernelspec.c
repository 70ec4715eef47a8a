/* SPDX-License-Identifier: MIT
 * Where Jupyter looks (https://docs.jupyter.org/en/latest/use/jupyter-directories.html):
 * PREFIX/share/jupyter/kernels, and for a user $JUPYTER_DATA_DIR/kernels, else
 * $XDG_DATA_HOME/jupyter/kernels, else ~/.local/share/jupyter/kernels.
 */
#include "interp/jupyter/kernelspec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/jupyter/wire.h"
#include "tensor/io/writer.h"

#define QL_SPEC_MAX 65536 /* bytes of a kernel.json */

/* Lattice points and the codes nearest to them: a curve, quantized. */
static const char logo[] =
	"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\" width=\"64\" height=\"64\">\n"
	"<rect width=\"64\" height=\"64\" rx=\"12\" fill=\"#0072B2\"/>\n"
	"<path d=\"M8 50 H20 V38 H32 V20 H44 V14 H56\" fill=\"none\" stroke=\"#ffffff\" stroke-width=\"5\" "
	"stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n"
	"<path d=\"M8 52 C24 50 26 16 56 13\" fill=\"none\" stroke=\"#E69F00\" stroke-width=\"3\" "
	"stroke-linecap=\"round\"/>\n"
	"</svg>\n";

__attribute__((format(printf, 2, 3))) static bool fail(char out[QL_KERNELSPEC_TEXT], const char *format, ...)
{
	va_list list;
	int n = snprintf(out, QL_KERNELSPEC_TEXT, "kernel: ");

	va_start(list, format);
	vsnprintf(out + n, QL_KERNELSPEC_TEXT - (size_t)n, format, list);
	va_end(list);
	return false;
}

static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			return false;
	return *name && *name != '.' && strlen(name) <= 100;
}

static bool folder_of(const struct ql_kernelspec *spec, char path[PATH_MAX], char out[QL_KERNELSPEC_TEXT])
{
	const char *data = getenv("JUPYTER_DATA_DIR"), *share = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int n;

	if (!is_name(spec->name))
		return fail(out, "--name: wanted letters, digits and - . _, got '%.100s'", spec->name);
	if (spec->prefix)
		n = snprintf(path, PATH_MAX, "%s/share/jupyter/kernels/%s", spec->prefix, spec->name);
	else if (data && *data)
		n = snprintf(path, PATH_MAX, "%s/kernels/%s", data, spec->name);
	else if (share && *share)
		n = snprintf(path, PATH_MAX, "%s/jupyter/kernels/%s", share, spec->name);
	else if (home && *home)
		n = snprintf(path, PATH_MAX, "%s/.local/share/jupyter/kernels/%s", home, spec->name);
	else
		return fail(out, "install: HOME is not set; give --prefix DIR");
	return n < PATH_MAX - 32 || fail(out, "the path of the kernelspec is too long");
}

/* Makes the folder and those it is in. */
static bool make_folders(const char *path, char out[QL_KERNELSPEC_TEXT])
{
	char part[PATH_MAX];

	for (size_t i = 1;; i++) {
		if (path[i] != '/' && path[i])
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return fail(out, "%s: %s", part, strerror(errno));
		if (!path[i])
			return true;
	}
}

static bool write_file(struct ql_ctx *ctx, const char *folder, const char *name, const char *text, size_t n,
	char out[QL_KERNELSPEC_TEXT])
{
	char path[PATH_MAX + 32];
	struct ql_writer w;
	enum ql_status status;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	status = ql_writer_open(ctx, path, &w);
	if (!status)
		status = ql_writer_put(&w, text, n);
	if (!status)
		status = ql_writer_commit(&w);
	ql_writer_close(&w);
	return !status || fail(out, "%s: %s", path, ctx->err);
}

static bool write_spec(
	struct ql_ctx *ctx, const struct ql_kernelspec *spec, const char *folder, char out[QL_KERNELSPEC_TEXT])
{
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct ql_wire text = {0};
	bool good;

	if (n < 0)
		return fail(out, "/proc/self/exe: %s", strerror(errno));
	ql_wire_put(&text, "{\n \"argv\": [");
	ql_wire_quote(&text, program, (size_t)n);
	ql_wire_put(&text, ", \"kernel\", \"{connection_file}\"],\n \"display_name\": ");
	if (!strcmp(spec->name, "quoll")) {
		ql_wire_put(&text, "\"Quoll\"");
	} else {
		ql_wire_put(&text, "\"Quoll (");
		ql_wire_put(&text, spec->name); /* is_name: nothing to escape */
		ql_wire_put(&text, ")\"");
	}
	ql_wire_put(&text, ",\n \"language\": \"lua\",\n \"interrupt_mode\": \"signal\",\n"
			   " \"kernel_protocol_version\": \"5.4\",\n \"metadata\": {\"debugger\": false}\n}\n");
	good = !text.failed && write_file(ctx, folder, "kernel.json", text.at, text.n, out);
	ql_wire_free(&text);
	return good;
}

bool ql_kernelspec_install(struct ql_ctx *ctx, const struct ql_kernelspec *spec, char out[QL_KERNELSPEC_TEXT])
{
	char folder[PATH_MAX];

	if (!folder_of(spec, folder, out) || !make_folders(folder, out))
		return false;
	if (!write_file(ctx, folder, "logo-svg.svg", logo, sizeof(logo) - 1, out) ||
		!write_spec(ctx, spec, folder, out))
		return false;
	snprintf(out, QL_KERNELSPEC_TEXT, "%s", folder);
	return true;
}

/* The kernel.json runs `… kernel {connection_file}`. */
static bool is_ours(const char *path)
{
	static char text[QL_SPEC_MAX];
	FILE *f = fopen(path, "rbe");
	size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
	const char *why;
	cJSON *object = ql_wire_read(text, n, &why);
	const cJSON *argv = cJSON_GetObjectItemCaseSensitive(object, "argv");
	const cJSON *word = cJSON_GetArrayItem(argv, 1),
		    *language = cJSON_GetObjectItemCaseSensitive(object, "language");
	bool ours = cJSON_GetArraySize(argv) == 3 && cJSON_IsString(word) && !strcmp(word->valuestring, "kernel") &&
		    cJSON_IsString(language) && !strcmp(language->valuestring, "lua");

	if (f)
		fclose(f);
	cJSON_Delete(object);
	return ours;
}

bool ql_kernelspec_uninstall(const struct ql_kernelspec *spec, char out[QL_KERNELSPEC_TEXT])
{
	char folder[PATH_MAX], path[PATH_MAX + 32];

	if (!folder_of(spec, folder, out))
		return false;
	snprintf(path, sizeof(path), "%s/kernel.json", folder);
	if (access(path, F_OK))
		return fail(out, "%s: %s", path, strerror(errno));
	if (!is_ours(path))
		return fail(out, "%s: this is no kernelspec of this program; nothing was removed", path);
	if (unlink(path))
		return fail(out, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "%s/logo-svg.svg", folder);
	unlink(path);
	if (rmdir(folder)) /* files of others stay, and with them the folder */
		return fail(out, "%s: %s", folder, strerror(errno));
	snprintf(out, QL_KERNELSPEC_TEXT, "%s", folder);
	return true;
}
