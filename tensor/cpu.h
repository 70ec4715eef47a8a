/* SPDX-License-Identifier: MIT
 * The instruction sets of this processor, and which of them kernels may use (QUOLL_KERNEL, hw.force).
 */
#ifndef QUOLL_TENSOR_CPU_H
#define QUOLL_TENSOR_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ql_cpu_feature {
	QL_CPU_AVX2 = 1,          /* AVX2, FMA and F16C, and the OS saves ymm */
	QL_CPU_AVXVNNI = 2,       /* vpdpbusd on ymm, VEX encoded */
	QL_CPU_AVX512 = 4,        /* F, BW, DQ, VL, CD, and the OS saves zmm */
	QL_CPU_AVX512VNNI = 8,    /* vpdpbusd on zmm */
	QL_CPU_AVX512POPCNT = 16, /* vpopcntdq */
	QL_CPU_AVX512BF16 = 32,
	QL_CPU_AMX_INT8 = 64, /* tile unit, and the OS permits its use */
	QL_CPU_AMX_BF16 = 128 /* likewise */
};

struct ql_cpu {
	char name[64];
	uint32_t features;  /* all available, of enum ql_cpu_feature */
	size_t l1d, l2, l3; /* bytes per core (l3: shared); 0: unknown */
	int cores;
};

/* The processor, detected at the first call. */
const struct ql_cpu *ql_cpu(void);
/* Bytes of a result above which it is written past the caches: it would only evict other data (measured on 64 Mi elements). */
uint64_t ql_cpu_stream_above(void);

/* Levels that QUOLL_KERNEL and hw.force accept, lowest first; each includes those before it. */
#define QL_CPU_LEVELS "ref avx2 avxvnni avx512vnni amx"
/* Words that may stand beside them: products of matrices of floats are made of bfloat16 numbers, with the sums of AVX512_BF16's
 * instruction or with those of AMX_BF16's. */
#define QL_CPU_BF16 "bf16"
#define QL_CPU_BF16_TILES "bf16tiles"
/* Families of kernels of devices (gpu/abi.h), which may stand beside a level: "ref simt". */
#define QL_DEVICE_FAMILIES "simt dp4a mma wgmma cublas cudnn"
/* Features of a level; -1 for an unknown name. "native" gives all features. */
int64_t ql_cpu_level(const char *name);

#endif
