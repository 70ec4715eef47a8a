/* SPDX-License-Identifier: MIT
 * CPU detection. A feature counts only if the operating system saves its registers (XCR0) and, for AMX, grants the
 * process the tile data (arch_prctl, requested once).
 */
#include "tensor/cpu.h"

#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

struct leaf {
	unsigned a, b, c, d;
};

static struct leaf cpuid(unsigned leaf, unsigned sub)
{
	struct leaf r = {0, 0, 0, 0};

	__cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
	return r;
}

static uint64_t xcr0(void)
{
	unsigned lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

static uint32_t detect(void)
{
	unsigned top = cpuid(0, 0).a;
	struct leaf one = cpuid(1, 0), seven, seven1;
	uint64_t saved;
	uint32_t f = 0;

	if (top < 7 || !(one.c >> 27 & 1)) /* OSXSAVE */
		return 0;
	saved = xcr0();
	seven = cpuid(7, 0);
	seven1 = seven.a >= 1 ? cpuid(7, 1) : (struct leaf){0, 0, 0, 0};
	if ((saved & 6) != 6 || !(seven.b >> 5 & 1) || !(one.c >> 12 & 1) || !(one.c >> 29 & 1))
		return 0;
	f |= QL_CPU_AVX2;
	if (seven1.a >> 4 & 1)
		f |= QL_CPU_AVXVNNI;
	/* F, DQ, CD, BW, VL */
	if ((saved & 0xe6) == 0xe6 && (seven.b >> 16 & 1) && (seven.b >> 17 & 1) && (seven.b >> 28 & 1) &&
		(seven.b >> 30 & 1) && (seven.b >> 31 & 1)) {
		f |= QL_CPU_AVX512;
		f |= seven.c >> 11 & 1 ? QL_CPU_AVX512VNNI : 0;
		f |= seven.c >> 14 & 1 ? QL_CPU_AVX512POPCNT : 0;
		f |= seven1.a >> 5 & 1 ? QL_CPU_AVX512BF16 : 0;
	}
	if ((saved >> 17 & 3) == 3 && (seven.d >> 24 & 1) && (seven.d >> 25 & 1) &&
		syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0)
		f |= QL_CPU_AMX_INT8 | (seven.d >> 22 & 1 ? QL_CPU_AMX_BF16 : 0);
	return f;
}

/* One line of /sys/devices/system/cpu/cpu0/cache/index<i>/<file>; "" if missing. */
static void cache_line(int i, const char *file, char line[32])
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, file);
	f = fopen(path, "r");
	if (!f || !fgets(line, 32, f))
		line[0] = '\0';
	if (f)
		fclose(f);
}

/* Bytes of the data or unified cache of a level as reported by sysfs, else by sysconf, which is wrong on some
 * virtual machines (320 MiB of L3 instead of 32). */
static size_t cache_bytes(int level, int name)
{
	char line[32];
	long n;

	for (int i = 0; i < 8; i++) {
		cache_line(i, "type", line);
		if (line[0] == '\0')
			break;
		if (line[0] == 'I') /* instructions */
			continue;
		cache_line(i, "level", line);
		if (strtol(line, NULL, 10) != level)
			continue;
		cache_line(i, "size", line);
		n = strtol(line, NULL, 10);
		if (n > 0)
			return (size_t)n << (strchr(line, 'M') ? 20 : 10);
	}
	n = sysconf(name);
	return n > 0 ? (size_t)n : 0;
}

static void brand(char name[64])
{
	unsigned text[12];

	strcpy(name, "x86-64");
	if (cpuid(0x80000000u, 0).a < 0x80000004u)
		return;
	for (unsigned i = 0; i < 3; i++) {
		struct leaf r = cpuid(0x80000002u + i, 0);

		text[4 * i] = r.a;
		text[4 * i + 1] = r.b;
		text[4 * i + 2] = r.c;
		text[4 * i + 3] = r.d;
	}
	snprintf(name, 64, "%.48s", (const char *)text);
	for (size_t n = strlen(name); n > 0 && name[n - 1] == ' '; n--)
		name[n - 1] = '\0';
}

const struct ql_cpu *ql_cpu(void)
{
	static struct ql_cpu cpu;
	static bool known;
	long cores;

	if (known)
		return &cpu;
	cores = sysconf(_SC_NPROCESSORS_ONLN); /* reads a file: 10 microseconds */
	cpu.features = detect();
	brand(cpu.name);
	cpu.l1d = cache_bytes(1, _SC_LEVEL1_DCACHE_SIZE);
	cpu.l2 = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE);
	cpu.l3 = cache_bytes(3, _SC_LEVEL3_CACHE_SIZE);
	cpu.cores = cores > 0 ? (int)cores : 1;
	known = true;
	return &cpu;
}

int64_t ql_cpu_level(const char *name)
{
	static const struct {
		const char *name;
		uint32_t adds;
	} level[] = {
		{"ref", 0},
		{"avx2", QL_CPU_AVX2},
		{"avxvnni", QL_CPU_AVXVNNI},
		{"avx512vnni", QL_CPU_AVX512 | QL_CPU_AVX512VNNI | QL_CPU_AVX512POPCNT | QL_CPU_AVX512BF16},
		{"amx", QL_CPU_AMX_INT8 | QL_CPU_AMX_BF16},
	};
	uint32_t features = 0;

	for (size_t i = 0; i < sizeof(level) / sizeof(level[0]); i++) {
		features |= level[i].adds;
		if (!strcmp(name, level[i].name))
			return features;
	}
	return strcmp(name, "native") ? -1 : (int64_t)UINT32_MAX;
}

/* Half of the last cache, but of one far larger than the second-level ones no more than eight of these: others share it, and what does
 * not fit its fair part is read no faster than memory (Xeon of family 6, model 207, 2 cores of its 300 MiB: 128 MiB at 40 GB/s, memory
 * at 36 to 39; ordinary stores 22 GB/s, others 41). */
uint64_t ql_cpu_stream_above(void)
{
	const struct ql_cpu *cpu = ql_cpu();
	size_t near = 8 * cpu->l2 * (size_t)cpu->cores;

	if (!cpu->l3)
		return (size_t)8 << 20;
	return near && near < cpu->l3 / 2 ? near : cpu->l3 / 2;
}
