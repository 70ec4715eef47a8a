/* SPDX-License-Identifier: MIT
 * The meaning of the instructions of sm_90 that kernels use (gpu/kernels/ptx.h), from the PTX ISA manual: barriers in shared
 * memory that count arrivals and bytes, copies of boxes of a tensor, products of matrices in shared memory by a warpgroup.
 */
#ifndef QUOLL_GPU_EMU_SM90_H
#define QUOLL_GPU_EMU_SM90_H

#include "gpu/emu/cuda.h"
#include "gpu/emu/cuda_runtime.h"

static inline uint32_t ql_emu_shared_address(const void *at)
{
	return (uint32_t)(static_cast<const unsigned char *>(at) - ql_emu_shared);
}

/* ---- mbarrier ---- */

/* The word of a barrier. A phase ends when no arrival and no byte is pending; bytes come 16 at a time. */
struct ql_emu_mbarrier {
	uint8_t valid, phase;
	uint16_t expected, pending;
	int16_t pieces;
};
static_assert(sizeof(ql_emu_mbarrier) == 8, "a barrier has 8 bytes");
#define QL_EMU_VALID 0x5a

static inline ql_emu_mbarrier *ql_emu_mbarrier_at(const char *what, uint64_t *at)
{
	ql_emu_mbarrier *b = reinterpret_cast<ql_emu_mbarrier *>(at);

	if (b->valid != QL_EMU_VALID)
		ql_emu_fault("%s: the barrier was not initialized", what);
	return b;
}

static inline void ql_emu_mbarrier_init(uint64_t *at, uint32_t count)
{
	ql_emu_mbarrier b = {QL_EMU_VALID, 0, (uint16_t)count, (uint16_t)count, 0};

	if (count == 0 || count > 1024)
		ql_emu_fault("mbarrier.init: %u arrivals", count);
	memcpy(at, &b, sizeof(b));
}

static inline void ql_emu_mbarrier_end(ql_emu_mbarrier *b)
{
	if (b->pending || b->pieces)
		return;
	b->phase ^= 1;
	b->pending = b->expected;
}

static inline void ql_emu_mbarrier_arrive(uint64_t *at, uint32_t bytes)
{
	ql_emu_mbarrier *b = ql_emu_mbarrier_at("mbarrier.arrive", at);

	if (b->pending == 0)
		ql_emu_fault("mbarrier.arrive: more arrivals than the %d of a phase", b->expected);
	b->pieces = (int16_t)(b->pieces + (int)bytes / 16);
	b->pending--;
	ql_emu_mbarrier_end(b);
}

static inline void ql_emu_mbarrier_complete(uint64_t *at, uint32_t bytes)
{
	ql_emu_mbarrier *b = ql_emu_mbarrier_at("mbarrier.complete_tx", at);

	b->pieces = (int16_t)(b->pieces - (int)bytes / 16);
	ql_emu_mbarrier_end(b);
}

/* Whether the phase of this parity has ended: the barrier is in one of the other parity. */
static inline bool ql_emu_mbarrier_ended(const void *at, unsigned parity)
{
	return static_cast<const ql_emu_mbarrier *>(at)->phase != parity;
}

static inline void ql_emu_mbarrier_wait(uint64_t *at, uint32_t parity)
{
	ql_emu_mbarrier_at("mbarrier.try_wait", at);
	ql_emu_wait("mbarrier.try_wait", ql_emu_mbarrier_ended, at, parity);
}

/* ---- copies of boxes ---- */

/* The 128-byte swizzle: bits 4 to 6 of an address in shared memory by bits 7 to 9. */
static inline uint32_t ql_emu_swizzled(uint32_t address)
{
	return address ^ (address >> 7 & 7) << 4;
}

/* The 16 bytes from these coordinates on, 0 beyond the ends. */
static inline void ql_emu_tensor_piece(const CUtensorMap &map, const int64_t at[3], unsigned char piece[16])
{
	int64_t left = (int64_t)map.shape[0] - at[0];
	const unsigned char *from = map.at + at[0] + at[1] * (int64_t)map.stride[1] + at[2] * (int64_t)map.stride[2];
	bool inside = true;

	for (int d = 0; d < 3; d++)
		inside = inside && at[d] >= 0 && at[d] < (int64_t)map.shape[d];
	left = !inside ? 0 : left < 16 ? left : 16;
	ql_emu_global("cp.async.bulk.tensor", from, (size_t)left);
	memset(piece, 0, 16);
	memcpy(piece, from, (size_t)left);
}

static inline void ql_emu_tensor_copy(
	unsigned char *to, const CUtensorMap map, const int32_t first[3], uint64_t *barrier)
{
	uint32_t base = ql_emu_shared_address(to), n = 0;

	for (uint32_t z = 0; z < map.box[2]; z++)
		for (uint32_t y = 0; y < map.box[1]; y++)
			for (uint32_t x = 0; x < map.box[0]; x += 16, n += 16) {
				int64_t at[3] = {first[0] + (int64_t)x, first[1] + (int64_t)y, first[2] + (int64_t)z};
				bool swizzles = map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
				unsigned char piece[16];

				ql_emu_tensor_piece(map, at, piece);
				memcpy(ql_emu_shared + (swizzles ? ql_emu_swizzled(base + n) : base + n), piece, 16);
			}
	ql_emu_mbarrier_complete(barrier, n);
}

/* ---- wgmma ---- */

/* 32 bytes of a line of a matrix in shared memory, of a descriptor: address, bytes between groups of 8 lines, swizzle 128. */
static inline void ql_emu_matrix_line(uint64_t descriptor, int line, bool is_unsigned, int16_t to[32])
{
	uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, groups = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;

	for (uint32_t k = 0; k < 32; k += 16) {
		const unsigned char *from = ql_emu_shared + ql_emu_swizzled(start + (uint32_t)line / 8 * groups +
									    (uint32_t)line % 8 * 128 + k);

		for (int i = 0; i < 16; i++)
			to[k + (uint32_t)i] = is_unsigned ? from[i] : (int8_t)from[i];
	}
}

/* m64n256k32: lane l = 4 g + t of warp w of four has, in d[4 j] to d[4 j + 3], columns 8 j + 2 t and + 1 of rows 16 w + g and
 * + 8. */
template <bool A, bool B> static inline void ql_emu_wgmma(const ql_emu_product &p)
{
	int lane = (int)ql_emu_thread.x % 128;
	int16_t row[2][32], column[32];

	for (int h = 0; h < 2; h++)
		ql_emu_matrix_line(p.a, lane / 32 * 16 + lane % 32 / 4 + h * 8, A, row[h]);
	for (int j = 0; j < 32; j++)
		for (int e = 0; e < 2; e++) {
			ql_emu_matrix_line(p.b, j * 8 + lane % 4 * 2 + e, B, column);
			for (int h = 0; h < 2; h++) {
				uint32_t sum = p.add ? (uint32_t)p.d[j * 4 + h * 2 + e] : 0; /* it wraps */

				for (int k = 0; k < 32; k++)
					sum += (uint32_t)(row[h][k] * column[k]);
				p.d[j * 4 + h * 2 + e] = (int32_t)sum;
			}
		}
}

static inline void ql_emu_wgmma_add(void (*run)(const ql_emu_product &), int32_t *d, uint64_t a, uint64_t b, bool add)
{
	if (a >> 62 != 1 || b >> 62 != 1)
		ql_emu_fault("wgmma: a descriptor without the 128-byte swizzle");
	ql_emu_product_add({run, d, a, b, add});
}

#endif
