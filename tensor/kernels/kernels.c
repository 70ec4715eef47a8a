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
static char level[16], families[64]; /* of the CPU; of devices, "": all */
static char text_of_level[sizeof(level) + sizeof(QL_CPU_BF16_TILES) + sizeof(families)];

/* Level ref allows only the portable C of this program, so no library either. */
static bool usable(const struct ql_kernel_entry *e, uint32_t features)
{
	if (!strcmp(level, "ref") && strcmp(e->isa, "ref") && strcmp(e->isa, "tiles_ref"))
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

static const struct ql_gemm_bf16 *best_bf16(uint32_t features, bool tiles)
{
	for (int i = 0; i < ql_kernel_count; i++) {
		const struct ql_gemm_bf16 *k = ql_kernel_entries[i].kernel;

		if (!strcmp(ql_kernel_entries[i].family, "gemm_bf16") && k->tiles == tiles &&
			usable(&ql_kernel_entries[i], features))
			return k;
	}
	return NULL;
}

/* Whether the n characters are a word of the list. */
static bool is_word(const char *list, const char *word, size_t n)
{
	for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == n && !strncmp(at, word, n))
			return true;
	return false;
}

struct request {
	char cpu[sizeof(level)], device[sizeof(families)];
	bool bf16, tiles;
};

/* At most one level ("native" without one), one of the words of bfloat16, and families, each once, separated by spaces. */
static bool read_level(const char *text, struct request *r)
{
	size_t n, used = 0;

	*r = (struct request){.bf16 = false};
	for (const char *at = text; *at; at += n, at += strspn(at, " ")) {
		n = strcspn(at, " ");
		if (!r->cpu[0] && n < sizeof(level) && is_word(QL_CPU_LEVELS " native", at, n))
			snprintf(r->cpu, sizeof(level), "%.*s", (int)n, at);
		else if (!r->bf16 && is_word(QL_CPU_BF16, at, n))
			r->bf16 = true;
		else if (!r->bf16 && is_word(QL_CPU_BF16_TILES, at, n))
			r->bf16 = r->tiles = true;
		else if (is_word(QL_DEVICE_FAMILIES, at, n) && !is_word(r->device, at, n))
			used += (size_t)snprintf(
				r->device + used, sizeof(families) - used, "%s%.*s", used ? " " : "", (int)n, at);
		else
			return false;
	}
	if (!r->cpu[0] && (used || r->bf16))
		strcpy(r->cpu, "native");
	return r->cpu[0] != '\0';
}

bool ql_kernels_known(const char *text)
{
	struct request r;

	return read_level(text, &r);
}

bool ql_kernels_force(const char *name)
{
	struct request r;
	uint32_t features, instruction;

	if (!read_level(name, &r))
		return false;
	instruction = r.tiles ? QL_CPU_AMX_BF16 : QL_CPU_AVX512BF16;
	if (r.bf16 && !strcmp(r.cpu, "native") && !(ql_cpu()->features & instruction))
		return false;
	strcpy(level, r.cpu);
	strcpy(families, r.device);
	snprintf(text_of_level, sizeof(text_of_level), "%s%s%s%s", level,
		r.tiles  ? " " QL_CPU_BF16_TILES
		: r.bf16 ? " " QL_CPU_BF16
			 : "",
		families[0] ? " " : "", families);
	features = ql_cpu()->features & (uint32_t)ql_cpu_level(level);
#define F(family) table.family = best(#family, features);
	QL_KERNEL_FAMILIES(F)
#undef F
	table.tiles = best_tiles(features, false);
	table.gemm_bf16 = best_bf16(features, r.tiles);
	table.bf16 = r.bf16;
	ordered = table;
	ordered.gemm_f32 = ordered.tiles = best_tiles(features, true);
	ordered.ordered = true;
	ordered.bf16 = false;
	return true;
}

const struct ql_kernels *ql_kernels_cpu(void)
{
	const char *wanted = table.simd ? NULL : getenv("QUOLL_KERNEL"); /* a search that loops would notice */

	if (!table.simd && !(wanted && ql_kernels_force(wanted))) {
		if (wanted)
			fprintf(stderr, "quoll: QUOLL_KERNEL: wanted one of %s native%s, got %s\n", QL_CPU_LEVELS,
				ql_kernels_known(wanted) ? "; this processor lacks its instruction" : "", wanted);
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
	return text_of_level;
}

const char *ql_kernels_families(void)
{
	return families;
}
