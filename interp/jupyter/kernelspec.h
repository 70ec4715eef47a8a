/* SPDX-License-Identifier: MIT
 * The kernelspec: a folder by which Jupyter finds this program.
 */
#ifndef QUOLL_INTERP_JUPYTER_KERNELSPEC_H
#define QUOLL_INTERP_JUPYTER_KERNELSPEC_H

#include <limits.h>
#include <stdbool.h>

#include "tensor/base.h"

struct ql_kernelspec {
	const char *prefix; /* DIR of DIR/share/jupyter/kernels; NULL: the user's own folder */
	const char *name;   /* of the folder: letters, digits, - . _ */
};

#define QL_KERNELSPEC_TEXT (PATH_MAX + 512)

/* Writes the folder; `out` gets its path, or what went wrong. */
bool ql_kernelspec_install(struct ql_ctx *ctx, const struct ql_kernelspec *spec, char out[QL_KERNELSPEC_TEXT]);
/* Removes it again; refuses a folder that is no kernelspec of this program. */
bool ql_kernelspec_uninstall(const struct ql_kernelspec *spec, char out[QL_KERNELSPEC_TEXT]);

#endif
