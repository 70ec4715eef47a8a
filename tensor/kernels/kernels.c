/* SPDX-License-Identifier: MIT
 * Dispatch: the best entry of kernels.def per family that this CPU supports and the current level allows.
 */
#include "tensor/kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/cpu.h"

#define X(family, isa, needs) extern const struct ql_##family family##_##isa;
#include "tensor/kernels/kernels.def"
#undef X

const struct ql_kernel_entry ql_kernel_entries[] = {
#define X(family, isa, needs) {#family, #isa, needs, &family##_##isa},
#include "tensor/kernels/kernels.def"
#undef X
};
const int ql_kernel_count = sizeof(ql_kernel_entries) / sizeof(ql_kernel_entries[0]);

static struct ql_kernels table, ordered;
static char level[16];

/* Level ref allows only the portable C of this program, so no library either. */
static bool usable(const struct ql_kernel_entry *e, uint32_t features)
{
	if (!strcmp(level, "ref") && strcmp(e->isa, "ref"))
		return false;
	if (!strcmp(e->family, "gemm_f32")) {
		const struct ql_gemm_f32 *k = e->kernel;

		if (k->available && !k->available())
			return false;
	}
	return (e->needs & ~features) == 0;
}

static const void *best(const char *family, uint32_t features)
{
	for (int i = 0; i < ql_kernel_count; i++)
		if (!strcmp(ql_kernel_entries[i].family, family) && usable(&ql_kernel_entries[i], features))
			return ql_kernel_entries[i].kernel;
	return NULL;
}

/* The last entry, ref, is ordered. */
static const struct ql_gemm_f32 *best_tiles(uint32_t features, bool in_order)
{
	for (int i = 0; i < ql_kernel_count; i++) {
		const struct ql_gemm_f32 *k = ql_kernel_entries[i].kernel;

		if (!strcmp(ql_kernel_entries[i].family, "gemm_f32") && k->tile && (k->ordered || !in_order) &&
			usable(&ql_kernel_entries[i], features))
			return k;
	}
	return NULL;
}

bool ql_kernels_force(const char *name)
{
	int64_t allowed = ql_cpu_level(name);
	uint32_t features;

	if (allowed < 0)
		return false;
	snprintf(level, sizeof(level), "%s", name);
	features = ql_cpu()->features & (uint32_t)allowed;
#define F(family) table.family = best(#family, features);
	QL_KERNEL_FAMILIES(F)
#undef F
	table.tiles = best_tiles(features, false);
	ordered = table;
	ordered.gemm_f32 = ordered.tiles = best_tiles(features, true);
	ordered.ordered = true;
	return true;
}

const struct ql_kernels *ql_kernels_cpu(void)
{
	const char *wanted = getenv("QUOLL_KERNEL");

	if (!table.simd && !(wanted && ql_kernels_force(wanted))) {
		if (wanted)
			fprintf(stderr, "quoll: QUOLL_KERNEL: wanted one of %s native, got %s\n", QL_CPU_LEVELS,
				wanted);
		ql_kernels_force("native");
	}
	return &table;
}

const struct ql_kernels *ql_kernels_ordered(void)
{
	ql_kernels_cpu();
	return &ordered;
}

const char *ql_kernels_level(void)
{
	return level;
}
