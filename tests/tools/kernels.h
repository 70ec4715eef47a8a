/* SPDX-License-Identifier: MIT
 * What the tests of kernels share: random numbers, memory with guards, and a walk over kernels.def.
 */
#ifndef QUOLL_TESTS_TOOLS_KERNELS_H
#define QUOLL_TESTS_TOOLS_KERNELS_H

#include <stdlib.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

#define GUARD 0x5a /* byte that must survive after every output */

static uint64_t state = 1;

static inline uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static inline void *take(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);

	if (!p)
		exit(1);
	memset(p, GUARD, (bytes + 127) / 64 * 64);
	return p;
}

static inline bool guarded(const void *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (((const unsigned char *)p)[i] != GUARD)
			return false;
	return true;
}
/* The test of a family; NULL: another program has it. */
struct family {
	const char *name;
	void (*test)(const void *kernel);
};

static inline void missing(const char *name, uint32_t needs)
{
	static const char *const feature[] = {"AVX2", "AVX-VNNI", "AVX-512", "AVX-512-VNNI", "AVX-512-VPOPCNTDQ",
		"AVX-512-BF16", "AMX-INT8", "AMX-BF16"};
	char why[200] = "this CPU has no";

	for (int i = 0; i < (int)(sizeof(feature) / sizeof(feature[0])); i++)
		if (needs & ~ql_cpu()->features & 1u << i)
			snprintf(why + strlen(why), sizeof(why) - strlen(why), " %s", feature[i]);
	SKIP(name, why);
}

static inline void test_kernel(const struct family *f, const char *isa, const void *kernel)
{
	CASE("%s_%s", f->name, isa);
	f->test(kernel);
	printf("%s_%s: %s\n", f->name, isa, check.bad ? "failed" : "passed");
}

static inline bool can_run(const struct ql_gemm_f32 *k)
{
	return !k->available || k->available();
}

/* All entries of kernels.def whose family has a test in the list of n. */
static inline void test_kernels(const struct family *list, size_t n)
{
	for (int i = 0; i < ql_kernel_count; i++) {
		const struct ql_kernel_entry *e = &ql_kernel_entries[i];
		const struct family *f = list;
		char name[64];

		while (f < list + n && strcmp(f->name, e->family))
			f++;
		if (f == list + n || !f->test)
			continue;
		snprintf(name, sizeof(name), "%s_%s", e->family, e->isa);
		if (e->needs & ~ql_cpu()->features)
			missing(name, e->needs);
		else if (!strcmp(e->family, "gemm_f32") && !can_run(e->kernel))
			SKIP(name, "no CBLAS is installed");
		else
			test_kernel(f, e->isa, e->kernel);
	}
}

#endif
