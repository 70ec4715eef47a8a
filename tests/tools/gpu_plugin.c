/* SPDX-License-Identifier: MIT
 * A device plug-in without a device, for tests/interp/gpu.lua. QUOLL_TEST_GPU says what it finds:
 * "version" another interface, "none" no driver, "empty" no device, "unusable" one it refuses, else one that
 * works.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/abi.h"

ql_gpu_entry_fn ql_gpu_entry;

static int is(const char *what)
{
	const char *wanted = getenv("QUOLL_TEST_GPU");

	return wanted && !strcmp(wanted, what);
}

static int32_t probe(struct ql_gpu_info *out, int32_t room, char *why)
{
	if (is("none")) {
		strcpy(why, "the driver does not answer");
		return -1;
	}
	if (is("empty") || room < 1)
		return 0;
	*out = (struct ql_gpu_info){.cc_major = 9, .processors = 132, .memory = 1 << 30};
	strcpy(out->name, "Test GPU");
	if (is("unusable"))
		strcpy(out->why, "compute capability too low");
	return 1;
}

static const struct ql_gpu_vtable table = {
	.size = sizeof(table), .abi = QL_GPU_ABI, .name = "test", .version = "1", .probe = probe};

const struct ql_gpu_vtable *ql_gpu_entry(uint32_t abi)
{
	return abi != QL_GPU_ABI || is("version") ? NULL : &table;
}
