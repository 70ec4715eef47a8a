/* SPDX-License-Identifier: MIT
 * The only file with PTX. Each wrapper is one instruction, as inline assembly for nvcc and by its meaning in the PTX ISA
 * manual for the emulation. The kernel `wrappers` runs each by itself, so that the first run on a GPU compares the two.
 */
#ifndef QUOLL_GPU_KERNELS_PTX_H
#define QUOLL_GPU_KERNELS_PTX_H

#include "gpu/kernels/kernel.h"

#define QL_PTX __device__ static __forceinline__

#ifdef QL_EMULATION
/* An address that the instruction needs aligned. */
QL_PTX void ql_aligned(const char *what, const void *at, uintptr_t bytes)
{
	if ((uintptr_t)at % bytes)
		ql_emu_fault("%s at an address that is not a multiple of %d", what, (int)bytes);
}
/* Byte i of a word, as a number. */
QL_PTX int32_t ql_byte(uint32_t word, int i, bool is_unsigned)
{
	return is_unsigned ? (int32_t)(word >> 8 * i & 0xff) : (int32_t)(int8_t)(word >> 8 * i);
}
#else
QL_PTX uint32_t ql_shared_address(const void *at)
{
	return (uint32_t)__cvta_generic_to_shared(at);
}
#endif

/* ---- loads and stores of 16 bytes ---- */

/* ld.global.nc: memory that the kernel does not write. */
QL_PTX uint4 ql_load_16(const void *at)
{
	uint4 v;

#ifdef QL_EMULATION
	ql_aligned("ld.global.v4", at, 16);
	ql_emu_global("ld.global.v4", at, 16);
	memcpy(&v, at, sizeof(v));
#else
	asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "l"(at));
#endif
	return v;
}

QL_PTX void ql_store_16(void *at, uint4 v)
{
#ifdef QL_EMULATION
	ql_aligned("st.global.v4", at, 16);
	ql_emu_global("st.global.v4", at, 16);
	memcpy(at, &v, sizeof(v));
#else
	asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
		     : "memory");
#endif
}

/* ---- copies to shared memory that go on by themselves ---- */

/* cp.async.cg: 16 bytes, of which the first `bytes` are read and the others are 0. */
QL_PTX void ql_async_16(void *shared, const void *from, int32_t bytes)
{
#ifdef QL_EMULATION
	ql_aligned("cp.async, shared", shared, 16);
	ql_aligned("cp.async, global", from, 16);
	ql_emu_global("cp.async", from, (size_t)bytes);
	ql_emu_async(shared, from, bytes, 16);
#else
	asm volatile(
		"cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ql_shared_address(shared)), "l"(from), "r"(bytes)
		: "memory");
#endif
}

/* cp.async.commit_group: this thread's copies since the last one are a group. */
QL_PTX void ql_async_commit()
{
#ifdef QL_EMULATION
	ql_emu_async_commit();
#else
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* cp.async.wait_group: at most N of this thread's latest groups are still under way. */
template <int N> QL_PTX void ql_async_wait()
{
#ifdef QL_EMULATION
	ql_emu_async_wait(N);
#else
	asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* ---- four products of bytes ---- */

/* dp4a: c + the sum of products of the bytes of a and b */
template <bool A_UNSIGNED, bool B_UNSIGNED> QL_PTX int32_t ql_dp4a(uint32_t a, uint32_t b, int32_t c)
{
#ifdef QL_EMULATION
	for (int i = 0; i < 4; i++)
		c += ql_byte(a, i, A_UNSIGNED) * ql_byte(b, i, B_UNSIGNED);
	return c;
#else
	int32_t d;

	if (A_UNSIGNED && B_UNSIGNED)
		asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	else if (A_UNSIGNED)
		asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	else if (B_UNSIGNED)
		asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	else
		asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
#endif
}

/* ---- matrices of a warp ---- */

/* ldmatrix.x4.b16: four matrices of 8 rows of 16 bytes. Lane 8 i + r gives the address of row r of matrix i and receives,
 * in to[i], bytes 4 (lane mod 4) to + 3 of row lane / 4 of matrix i. */
QL_PTX void ql_load_matrices(uint32_t to[4], const void *shared)
{
#ifdef QL_EMULATION
	unsigned lane = ql_emu_lane();

	ql_aligned("ldmatrix", shared, 16);
	ql_emu_slots slots = ql_emu_exchange("ldmatrix", ~0u, shared, 16);
	for (unsigned i = 0; i < 4; i++)
		memcpy(&to[i], slots.lane[8 * i + lane / 4] + lane % 4 * 4, 4);
#else
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
		     : "r"(ql_shared_address(shared))
		     : "memory");
#endif
}

#ifdef QL_EMULATION
/* The 32 bytes of a row of a or a column of b from the registers that four lanes show, of which the first is `lane`: bytes
 * 0 to 15 are in register `low`, the others in register `high`. */
QL_PTX void ql_mma_line(ql_emu_slots slots, int lane, int low, int high, bool is_unsigned, int32_t to[32])
{
	for (int k = 0; k < 32; k++) {
		uint32_t word;

		memcpy(&word, slots.lane[lane + k % 16 / 4] + 4 * (k < 16 ? low : high), 4);
		to[k] = ql_byte(word, k % 4, is_unsigned);
	}
}
#endif

/* mma.m16n8k32 of bytes: d (16 x 8) += a (16 x 32, by rows) b (32 x 8, by columns). Lane l = 4 g + t has, of a, bytes
 * 4 t to + 3 of rows g and g + 8, and the same from byte 16; of b the same of column g; of d columns 2 t and 2 t + 1 of rows
 * g (d[0], d[1]) and g + 8. */
template <bool A_UNSIGNED, bool B_UNSIGNED>
QL_PTX void ql_mma_i8(int32_t d[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef QL_EMULATION
	uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
	ql_emu_slots slots = ql_emu_exchange("mma", ~0u, mine, sizeof(mine));
	int lane = (int)ql_emu_lane();
	int32_t rows[2][32], columns[2][32];

	for (int i = 0; i < 2; i++) {
		ql_mma_line(slots, lane / 4 * 4, i, i + 2, A_UNSIGNED, rows[i]);
		ql_mma_line(slots, (lane % 4 * 2 + i) * 4, 4, 5, B_UNSIGNED, columns[i]);
	}
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 32; k++)
			d[i] += rows[i / 2][k] * columns[i % 2][k];
#else
#define QL_MMA(types) \
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types \
		     ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
		     "{%0, %1, %2, %3};" \
		     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
	if (A_UNSIGNED && B_UNSIGNED)
		QL_MMA("u8.u8");
	else if (A_UNSIGNED)
		QL_MMA("u8.s8");
	else if (B_UNSIGNED)
		QL_MMA("s8.u8");
	else
		QL_MMA("s8.s8");
#undef QL_MMA
#endif
}

#endif
