/* SPDX-License-Identifier: MIT
 * How the pixels of a convolution are cut into parts for the sums of the weight's gradient: in the order of the CPU by
 * tensor/conv/unfold.c (blocks) and tensor/conv/weight.c (parts), whose rules and numbers these are; else evenly.
 */
#ifndef QUOLL_GPU_KERNELS_CONV_PARTS_H
#define QUOLL_GPU_KERNELS_CONV_PARTS_H

#include "gpu/kernels/window.h"

#define QL_CONV_PIXELS 256 /* of a block */
#define QL_CONV_DEPTH 256  /* channels times taps of a task */
#define QL_CONV_TASKS 32
#define QL_CONV_PART_BYTES ((double)(32 << 20)) /* of all parts together, if there are several */

struct ql_conv_parts {
	int32_t count;
	int64_t each;                                                   /* pixels of a part; 0: whole blocks */
	int64_t images, rows, columns;                                  /* of a block */
	int64_t row_blocks, column_blocks, blocks, grid[2], all_images; /* blocks: all; of the images */
};

static inline int64_t ql_parts_ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static inline int64_t ql_parts_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The blocks of `images` grids of pixels, in order. */
static inline struct ql_conv_parts ql_conv_blocks(int64_t images, const int64_t grid[2])
{
	struct ql_conv_parts p = {};
	int64_t image = grid[0] * grid[1], some = QL_CONV_PIXELS / ql_parts_max(1, image);

	p.count = 1;
	p.images = 1;
	p.rows = grid[0];
	p.columns = grid[1];
	if (image <= QL_CONV_PIXELS) {
		p.images = ql_parts_max(1, images < some ? images : some);
	} else if (grid[1] <= 2 * QL_CONV_PIXELS) {
		p.rows = ql_parts_max(1, QL_CONV_PIXELS / grid[1]);
		p.rows = ql_parts_ceil(grid[0], ql_parts_ceil(grid[0], p.rows));
	} else {
		p.rows = 1;
		p.columns = QL_CONV_PIXELS;
	}
	p.row_blocks = ql_parts_ceil(grid[0], p.rows);
	p.column_blocks = ql_parts_ceil(grid[1], p.columns);
	p.blocks = ql_parts_ceil(images, p.images) * p.row_blocks * p.column_blocks;
	p.grid[0] = grid[0];
	p.grid[1] = grid[1];
	p.all_images = images;
	return p;
}

/* The parts of the CPU. */
static inline void ql_conv_parts_ordered(
	struct ql_conv_parts *p, int64_t groups, int64_t channels, int64_t taps, int64_t rows)
{
	int64_t most = ql_parts_max(1, QL_CONV_DEPTH / taps);
	int64_t piece = ql_parts_ceil(channels, ql_parts_ceil(channels, most)), pieces = ql_parts_ceil(channels, piece);
	int64_t parts = ql_parts_ceil(QL_CONV_TASKS, groups * pieces), pairs = ql_parts_max(1, p->blocks / 2);
	double bytes = 4.0 * (double)groups * (double)channels * (double)taps * (double)rows;

	parts = parts < pairs ? parts : pairs;
	if ((double)parts * bytes > QL_CONV_PART_BYTES)
		parts = ql_parts_max(1, (int64_t)(QL_CONV_PART_BYTES / bytes));
	p->count = (int32_t)parts;
}

/* The first block of a part, and the first pixel of a block, among all; one behind the last is the end. */
__device__ static __forceinline__ int64_t ql_part_block(const ql_conv_parts &p, int64_t part)
{
	return p.blocks * part / p.count;
}
__device__ static __forceinline__ int64_t ql_block_pixel(const ql_conv_parts &p, int64_t block)
{
	int64_t line = block / p.column_blocks, image = line / p.row_blocks * p.images;

	if (block >= p.blocks)
		return p.all_images * p.grid[0] * p.grid[1];
	return (image * p.grid[0] + line % p.row_blocks * p.rows) * p.grid[1] + block % p.column_blocks * p.columns;
}
__device__ static __forceinline__ int64_t ql_part_pixel(const ql_conv_parts &p, int64_t part)
{
	int64_t all = p.all_images * p.grid[0] * p.grid[1];

	if (!p.each)
		return ql_block_pixel(p, ql_part_block(p, part));
	return part * p.each < all ? part * p.each : all;
}

#endif
