/* SPDX-License-Identifier: MIT
 * The only file with PTX, but for the conversions of number.h. Each wrapper is one instruction, as inline assembly for nvcc and by its meaning in the PTX ISA
 * manual for the emulation. The kernel `wrappers` runs each by itself, so that the first run on a GPU compares the two.
 */
#ifndef QUOLL_GPU_KERNELS_PTX_H
#define QUOLL_GPU_KERNELS_PTX_H

#include <cuda.h>

#include "gpu/kernels/kernel.h"
#include "gpu/kernels/number.h"

#define QL_PTX __device__ static __forceinline__

#ifdef QL_EMULATION
#include "gpu/emu/sm90.h"

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
	uint32_t sum = (uint32_t)c; /* it wraps */

	for (int i = 0; i < 4; i++)
		sum += (uint32_t)(ql_byte(a, i, A_UNSIGNED) * ql_byte(b, i, B_UNSIGNED));
	return (int32_t)sum;
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

/* ---- conversions ---- */

/* cvt.f32.f16 of the low half of a word; exact */
QL_PTX float ql_widen_f16(uint32_t half)
{
#ifdef QL_EMULATION
	return ql_from_f16((uint16_t)half);
#else
	float x;

	asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)half));
	return x;
#endif
}

/* Two floats of 16 bits in a word, the first one in the low half: bfloat16 or float16. */
#ifdef QL_EMULATION
template <bool BF16> QL_PTX float ql_half_of(uint32_t word, int i)
{
	uint16_t half = (uint16_t)(word >> 16 * i);

	return BF16 ? ql_from_bf16(half) : ql_from_f16(half);
}
#endif

/* cvt.rn.f16x2.f32, cvt.rn.bf16x2.f32: two float32, each rounded to nearest, ties to even */
template <bool BF16> QL_PTX uint32_t ql_pair(float first, float second)
{
#ifdef QL_EMULATION
	return BF16 ? (uint32_t)ql_to_bf16(second) << 16 | ql_to_bf16(first)
		    : (uint32_t)ql_to_f16(second) << 16 | ql_to_f16(first);
#else
	uint32_t pair;

	if (BF16)
		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
	else
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
	return pair;
#endif
}

/* fma.rn.f16x2, fma.rn.bf16x2: a b + c of both halves, rounded once */
template <bool BF16> QL_PTX uint32_t ql_fma_pair(uint32_t a, uint32_t b, uint32_t c)
{
#ifdef QL_EMULATION
	float d[2];

	for (int i = 0; i < 2; i++)
		d[i] = ql_odd_of_f64((double)ql_half_of<BF16>(a, i) * (double)ql_half_of<BF16>(b, i) +
				     (double)ql_half_of<BF16>(c, i));
	return ql_pair<BF16>(d[0], d[1]);
#else
	uint32_t d;

	if (BF16)
		asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	else
		asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
#endif
}

/* prmt: byte i of the result is the one that four bits of `which` number, 0 to 3 of a, 4 to 7 of b */
QL_PTX uint32_t ql_permute(uint32_t a, uint32_t b, uint32_t which)
{
#ifdef QL_EMULATION
	uint64_t bytes = (uint64_t)b << 32 | a;
	uint32_t d = 0;

	for (int i = 0; i < 4; i++)
		d |= (uint32_t)(bytes >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
	return d;
#else
	uint32_t d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(which));
	return d;
#endif
}

/* ex2.approx.ftz.f32: 2^x within 2 units in the last place; denormal results are 0. For results with a tolerance. */
QL_PTX float ql_exp2_near(float x)
{
	float y;

#ifdef QL_EMULATION
	y = exp2f(x);
	y = y < 0x1p-126f ? 0 : y;
#else
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#endif
	return y;
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

/* ldmatrix.x4.trans.b16: the same rows; a lane receives, in to[i], element lane / 4 of 16 bits of rows 2 (lane mod 4) and
 * + 1 of matrix i. */
QL_PTX void ql_load_turned(uint32_t to[4], const void *shared)
{
#ifdef QL_EMULATION
	unsigned lane = ql_emu_lane();

	ql_aligned("ldmatrix.trans", shared, 16);
	ql_emu_slots slots = ql_emu_exchange("ldmatrix.trans", ~0u, shared, 16);
	for (unsigned i = 0; i < 8; i++) {
		uint16_t half;

		memcpy(&half, slots.lane[i / 2 * 8 + lane % 4 * 2 + i % 2] + lane / 4 * 2, 2);
		to[i / 2] = i % 2 ? to[i / 2] | (uint32_t)half << 16 : half;
	}
#else
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
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
		for (int k = 0; k < 32; k++) /* it wraps */
			d[i] = (int32_t)((uint32_t)d[i] + (uint32_t)(rows[i / 2][k] * columns[i % 2][k]));
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

#ifdef QL_EMULATION
/* The 16 floats of a row of a or a column of b from the registers that four lanes show, of which the first is `lane`: the
 * first eight are in register `low`, the others in register `high`. */
template <bool BF16> QL_PTX void ql_mma_line_16(ql_emu_slots slots, int lane, int low, int high, double to[16])
{
	for (int k = 0; k < 16; k++) {
		uint32_t word;

		memcpy(&word, slots.lane[lane + k % 8 / 2] + 4 * (k < 8 ? low : high), 4);
		to[k] = (double)ql_half_of<BF16>(word, k % 2);
	}
}
#endif

/* mma.m16n8k16 of float16 or bfloat16: d (16 x 8, float32) += a (16 x 16, by rows) b (16 x 8, by columns). Lane l = 4 g + t
 * has, of a, numbers 2 t and + 1 of rows g and g + 8, and the same from number 8; of b the same of column g; of d columns 2 t
 * and + 1 of rows g (d[0], d[1]) and g + 8. Order and rounding of the sums are the device's own; here they are rounded once. */
template <bool BF16> QL_PTX void ql_mma_16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef QL_EMULATION
	uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
	ql_emu_slots slots = ql_emu_exchange("mma", ~0u, mine, sizeof(mine));
	int lane = (int)ql_emu_lane();
	double rows[2][16], columns[2][16];

	for (int i = 0; i < 2; i++) {
		ql_mma_line_16<BF16>(slots, lane / 4 * 4, i, i + 2, rows[i]);
		ql_mma_line_16<BF16>(slots, (lane % 4 * 2 + i) * 4, 4, 5, columns[i]);
	}
	for (int i = 0; i < 4; i++) {
		double sum = (double)d[i];

		for (int k = 0; k < 16; k++)
			sum += rows[i / 2][k] * columns[i % 2][k];
		d[i] = (float)sum;
	}
#else
#define QL_MMA(type) \
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, " \
		     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
	if (BF16)
		QL_MMA("bf16");
	else
		QL_MMA("f16");
#undef QL_MMA
#endif
}

/* ---- sm_90a: barriers in shared memory ---- */

/* The instructions below exist on sm_90a only; files named *_wgmma.cu use them and are compiled for it alone. Their kernels
 * are empty where QL_SM90A is 0. */
#if defined(QL_EMULATION) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define QL_SM90A 1
#else
#define QL_SM90A 0
#endif

/* mbarrier.init: a phase ends after `count` arrivals, when all bytes that it expects are there. */
QL_PTX void ql_barrier_init(uint64_t *at, uint32_t count)
{
#ifdef QL_EMULATION
	ql_aligned("mbarrier.init", at, 8);
	ql_emu_mbarrier_init(at, count);
#else
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ql_shared_address(at)), "r"(count) : "memory");
#endif
}

/* fence.mbarrier_init: what was initialized is seen by copies. */
QL_PTX void ql_barrier_init_fence()
{
#ifndef QL_EMULATION
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/* mbarrier.arrive */
QL_PTX void ql_barrier_arrive(uint64_t *at)
{
#ifdef QL_EMULATION
	ql_emu_mbarrier_arrive(at, 0);
#else
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ql_shared_address(at)) : "memory");
#endif
}

/* mbarrier.arrive.expect_tx: arrives, and the phase expects so many bytes more. */
QL_PTX void ql_barrier_expect(uint64_t *at, uint32_t bytes)
{
#ifdef QL_EMULATION
	ql_emu_mbarrier_arrive(at, bytes);
#else
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ql_shared_address(at)), "r"(bytes)
		     : "memory");
#endif
}

/* mbarrier.try_wait.parity, until the phase of this parity has ended. */
QL_PTX void ql_barrier_wait(uint64_t *at, uint32_t parity)
{
#ifdef QL_EMULATION
	ql_emu_mbarrier_wait(at, parity);
#else
	asm volatile("{\n"
		     ".reg .pred ended;\n"
		     "again:\n"
		     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
		     "@ended bra done;\n"
		     "bra again;\n"
		     "done:\n"
		     "}" ::"r"(ql_shared_address(at)),
		     "r"(parity)
		     : "memory");
#endif
}

/* bar.sync: barrier `id`, 1 to 15, of `threads` threads of the block. */
QL_PTX void ql_sync_some(uint32_t id, uint32_t threads)
{
#ifdef QL_EMULATION
	ql_emu_sync_some(id, threads);
#else
	asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}

/* ---- sm_90a: copies of boxes of a tensor ---- */

/* cp.async.bulk.tensor.3d: the box of the map (gpu/kernels/tensor_map.h) whose first element is at x, y, z; the bytes of the
 * whole box complete at the barrier. */
QL_PTX void ql_tensor_copy(void *shared, const CUtensorMap *map, int32_t x, int32_t y, int32_t z, uint64_t *barrier)
{
#ifdef QL_EMULATION
	const CUtensorMap copy = *map;

	ql_aligned("cp.async.bulk.tensor, shared", shared, 128);
	ql_emu_bulk([=] {
		const int32_t first[3] = {x, y, z};

		ql_emu_tensor_copy(static_cast<unsigned char *>(shared), copy, first, barrier);
	});
#else
	asm volatile(
		"cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
		"%4}], [%5];" ::"r"(ql_shared_address(shared)),
		"l"(map), "r"(x), "r"(y), "r"(z), "r"(ql_shared_address(barrier))
		: "memory");
#endif
}

/* ---- sm_90a: registers of a warpgroup ---- */

/* setmaxnreg.inc, setmaxnreg.dec: the threads of this warpgroup have N registers from here on. */
template <int N> QL_PTX void ql_registers_more()
{
	static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a multiple of 8 within 24 .. 256");
#ifdef QL_EMULATION
	ql_emu_exchange("setmaxnreg.inc", ~0u, nullptr, 0);
#else
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> QL_PTX void ql_registers_less()
{
	static_assert(N % 8 == 0 && N >= 24 && N <= 256, "a multiple of 8 within 24 .. 256");
#ifdef QL_EMULATION
	ql_emu_exchange("setmaxnreg.dec", ~0u, nullptr, 0);
#else
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

/* ---- sm_90a: matrices of a warpgroup ---- */

/* The descriptor of lines of 128 bytes in shared memory, in groups of 8 that are 1024 bytes and begin at a multiple of it, with
 * the 128-byte swizzle: address / 16 from bit 0, bytes between groups / 16 from bit 32, 1 at bit 62. Byte 32 i of the lines is at
 * the descriptor + 2 i. */
QL_PTX uint64_t ql_wgmma_descriptor(const void *shared)
{
#ifdef QL_EMULATION
	uint32_t address = ql_emu_shared_address(shared);
#else
	uint32_t address = ql_shared_address(shared);
#endif

	return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* wgmma.fence: registers and shared memory that were written are seen by the products after it. */
QL_PTX void ql_wgmma_fence()
{
#ifdef QL_EMULATION
	ql_emu_exchange("wgmma.fence", ~0u, nullptr, 0);
	ql_emu_product_fence();
#else
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

/* fence.proxy.async: what this thread has written to shared memory by stores is seen by products and copies. */
QL_PTX void ql_proxy_fence()
{
#ifndef QL_EMULATION
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* wgmma.commit_group: the products since the last one are a group. */
QL_PTX void ql_wgmma_commit()
{
#ifdef QL_EMULATION
	ql_emu_exchange("wgmma.commit_group", ~0u, nullptr, 0);
	ql_emu_product_commit();
#else
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

/* wgmma.wait_group: at most N of the latest groups are still under way. */
template <int N> QL_PTX void ql_wgmma_wait()
{
#ifdef QL_EMULATION
	ql_emu_product_wait(N);
	ql_emu_exchange("wgmma.wait_group", ~0u, nullptr, 0);
#else
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#endif
}

#ifndef QL_EMULATION
#define QL_4(d, i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define QL_16(d, i) QL_4(d, i), QL_4(d, i + 4), QL_4(d, i + 8), QL_4(d, i + 12)
#define QL_WGMMA(types) \
	asm volatile( \
		"{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n" \
		"wgmma.mma_async.sync.aligned.m64n256k32.s32." types " {" \
		"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
		"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
		"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
		"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
		"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
		"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
		"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
		"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, " \
		"%128, %129, add;\n}" \
		: QL_16(d, 0), QL_16(d, 16), QL_16(d, 32), QL_16(d, 48), QL_16(d, 64), QL_16(d, 80), QL_16(d, 96), \
		QL_16(d, 112) \
		: "l"(a), "l"(b), "r"((int)add))
#endif

/* wgmma.mma_async.m64n256k32 of bytes: d (64 x 256) = a (64 x 32) b (256 x 32)' + d, or without d where add is false. Lane
 * l = 4 g + t of warp w of the four has columns 8 j + 2 t (d[4 j]) and + 1 of row 16 w + g, and the same (d[4 j + 2]) of row
 * 16 w + g + 8. Goes on by itself; d is not to be touched before the wait. */
template <bool A_UNSIGNED, bool B_UNSIGNED> QL_PTX void ql_wgmma_i8(int32_t d[128], uint64_t a, uint64_t b, bool add)
{
#ifdef QL_EMULATION
	ql_emu_wgmma_add(ql_emu_wgmma<A_UNSIGNED, B_UNSIGNED>, d, a, b, add);
#else
	if (A_UNSIGNED && B_UNSIGNED)
		QL_WGMMA("u8.u8");
	else if (A_UNSIGNED)
		QL_WGMMA("u8.s8");
	else if (B_UNSIGNED)
		QL_WGMMA("s8.u8");
	else
		QL_WGMMA("s8.s8");
#endif
}
#ifndef QL_EMULATION
#undef QL_4
#undef QL_16
#undef QL_WGMMA
#endif

#endif
