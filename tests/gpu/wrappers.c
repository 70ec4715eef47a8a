/* SPDX-License-Identifier: MIT
 * The instructions that gpu/kernels/ptx.h wraps, one by one, against their definitions in the PTX ISA manual.
 */
#include "tests/tools/gpu_device.h"

#define WORDS 21600 /* two matrices of 300 lines of 144 bytes */

static struct gpu g;
static uint32_t in[WORDS], got[WORDS], want[WORDS];

static int32_t byte(const uint32_t *words, int i, bool is_unsigned)
{
	uint8_t code = (uint8_t)(words[i / 4] >> i % 4 * 8);

	return is_unsigned ? code : (int8_t)code;
}

/* Runs the wrapper on random words into `got`. */
static bool run(const char *name)
{
	int64_t n = WORDS;
	struct ql_gpu_option option = {.name = "name", .type = QL_GPU_OPTION_TEXT, .s = name};
	struct ql_gpu_tensor from, to = gpu_tensor(&g, "int32", 1, &n, NULL, 0);
	struct ql_gpu_call call = gpu_call("wrapper", &from, 1, &to, 1);
	bool good;

	for (int i = 0; i < WORDS; i++)
		in[i] = gpu_draw();
	memset(want, 0xEE, sizeof(want));
	from = gpu_tensor(&g, "int32", 1, &n, in, 0);
	g.v->fill(g.s, to.at, 0xEE, to.bytes);
	call.options = &option;
	call.n_options = 1;
	good = CHECK(gpu_run(&g, call), "%s refused: %s", name, g.why);
	gpu_get(&g, &to, got);
	gpu_free(&g, &from);
	gpu_free(&g, &to);
	return good;
}

static void expect_words(const char *name, int words)
{
	for (int i = 0; i < words; i++)
		if (!CHECK(got[i] == want[i], "%s: word %d is %08x, wanted %08x", name, i, got[i], want[i]))
			return;
}

static void expect(const char *name)
{
	expect_words(name, WORDS);
}

static void copies(void)
{
	for (int which = 0; which < 2; which++) {
		run(which ? "store_16" : "load_16");
		memcpy(want, in, sizeof(in));
		expect(which ? "store_16" : "load_16");
	}
}

/* Each lane shows what its neighbour copied: the first lane mod 17 bytes, then zeros. */
static void async(void)
{
	run("async_16");
	for (int group = 0; group < 2; group++)
		for (int lane = 0; lane < 32; lane++) {
			int from = (lane + 1) % 32;
			unsigned char row[16] = {0};

			memcpy(row, in + group * 128 + from * 4, (size_t)(from % 17));
			memcpy(want + group * 128 + lane * 4, row, sizeof(row));
		}
	expect("async_16");
}

static void widen(void)
{
	run("widen_f16");
	for (int i = 0; i < WORDS; i++) {
		float x = ql_f16_to_f32((uint16_t)in[i]), y;

		memcpy(&y, &got[i], sizeof(y));
		if (!CHECK(gpu_same_f32(x, y), "widen_f16 of %04x: %g, wanted %g", in[i] & 0xffff, (double)y,
			    (double)x))
			return;
	}
}

static void powers(void)
{
	run("exp2_near");
	for (int i = 0; i < WORDS; i++) {
		float x = (float)(int32_t)in[i] * 0x1p-24f, y;
		double z = exp2((double)x);

		memcpy(&y, &got[i], sizeof(y));
		if (!CHECK(x < -125.9f ? (double)y <= z * 1.000001 : fabs((double)y - z) <= z * 4e-7,
			    "exp2_near of %.9g: %.9g, wanted %.9g", (double)x, (double)y, z))
			return;
	}
}

static void dp4a(void)
{
	run("dp4a");
	for (int i = 0; i < WORDS / 4 && 3 * i + 2 < WORDS; i++)
		for (int signs = 0; signs < 4; signs++) {
			int32_t sum = (int32_t)in[3 * i + 2];

			for (int k = 0; k < 4; k++)
				sum = (int32_t)((uint32_t)sum + (uint32_t)(byte(&in[3 * i], k, signs & 1) *
									   byte(&in[3 * i + 1], k, signs & 2)));
			want[4 * i + signs] = (uint32_t)sum;
		}
	expect_words("dp4a", 4 * (WORDS / 4));
}

/* Matrix i has rows 8 i to 8 i + 7; lane l gets word l mod 4 of row l / 4 of each. */
static void matrices(void)
{
	run("load_matrices");
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++)
			want[lane * 4 + i] = in[(8 * i + lane / 4) * 4 + lane % 4];
	expect("load_matrices");
}

static void mma(const char *name, bool a, bool b)
{
	run(name);
	for (int row = 0; row < 16; row++)
		for (int column = 0; column < 8; column++) {
			uint32_t sum = in[192 + row * 8 + column];

			for (int k = 0; k < 32; k++)
				sum += (uint32_t)(byte(in + row * 8, k, a) * byte(in + 128 + column * 8, k, b));
			want[row * 8 + column] = sum;
		}
	expect(name);
}

/* Element l / 4 of rows 2 (l mod 4) and + 1 of each matrix. */
static void turned(void)
{
	run("load_turned");
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 8; i++) {
			uint32_t word = in[(i / 2 * 8 + lane % 4 * 2 + i % 2) * 4 + lane / 8];

			word = lane / 4 % 2 ? word >> 16 : word & 0xffff;
			want[lane * 4 + i / 2] = i % 2 ? (want[lane * 4 + i / 2] & 0xffff) | word << 16 : word;
		}
	expect("load_turned");
}

static float half_of(uint32_t word, int i, bool bf16)
{
	uint16_t half = (uint16_t)(word >> 16 * i);

	return bf16 ? ql_bf16_to_f32(half) : ql_f16_to_f32(half);
}

/* Both halves of `words` results: equal, or not a number. */
static void expect_halves(const char *name, int words, bool bf16)
{
	for (int i = 0; i < 2 * words; i++) {
		float x = half_of(got[i / 2], i % 2, bf16), y = half_of(want[i / 2], i % 2, bf16);

		if (!CHECK(gpu_same_f32(x, y), "%s: half %d is %g, wanted %g", name, i, (double)x, (double)y))
			return;
	}
}

static void pairs(const char *name, bool bf16)
{
	run(name);
	for (int i = 0; i < WORDS / 2; i++) {
		float x[2];

		memcpy(x, &in[2 * i], sizeof(x));
		want[i] = bf16 ? (uint32_t)ql_f32_to_bf16(x[1]) << 16 | ql_f32_to_bf16(x[0])
			       : (uint32_t)ql_f32_to_f16(x[1]) << 16 | ql_f32_to_f16(x[0]);
	}
	expect_halves(name, WORDS / 2, bf16);
}

static void fma_pairs(const char *name, bool bf16)
{
	run(name);
	for (int i = 0; i < WORDS / 3; i++) {
		want[i] = 0;
		for (int h = 0; h < 2; h++) {
			double x = (double)half_of(in[3 * i], h, bf16) * (double)half_of(in[3 * i + 1], h, bf16) +
				   (double)half_of(in[3 * i + 2], h, bf16);
			uint16_t half;

			ql_dtypes[bf16 ? QL_bfloat16 : QL_float16].from_f64(&half, 0, 1, 1, &x);
			want[i] |= (uint32_t)half << 16 * h;
		}
	}
	expect_halves(name, WORDS / 3, bf16);
}

static void permute(void)
{
	run("permute");
	for (int i = 0; i < WORDS / 3; i++) {
		want[i] = 0;
		for (int b = 0; b < 4; b++) {
			uint32_t which = in[3 * i + 2] >> 4 * b & 7;

			want[i] |= (in[3 * i + (which > 3)] >> which % 4 * 8 & 0xff) << 8 * b;
		}
	}
	expect_words("permute", WORDS / 3);
}

static int32_t whole(const uint32_t *words, int i)
{
	return (int32_t)(words[i / 2] >> 16 * (i % 2) & 15) - 8;
}

static void mma_16(const char *name)
{
	run(name);
	for (int row = 0; row < 16; row++)
		for (int column = 0; column < 8; column++) {
			int32_t sum = (int32_t)(in[192 + row * 8 + column] & 255);

			for (int k = 0; k < 16; k++)
				sum += whole(in + row * 8, k) * whole(in + 128 + column * 8, k);
			want[row * 8 + column] = (uint32_t)sum;
		}
	expect(name);
}

/* ---- sm_90a ---- */

/* Five rounds; thread t adds word i times (i + 1) t. */
static void barrier(void)
{
	run("barrier");
	CHECK(!strcmp(g.name, "wrappers_wgmma"), "%s ran", g.name);
	for (uint32_t thread = 0; thread < 128; thread++) {
		want[thread] = 0;
		for (uint32_t i = 0; i < 5; i++)
			want[thread] += in[i] * (i + 1) * thread;
	}
	expect("barrier");
}

static void sync_some(void)
{
	run("sync_some");
	for (int i = 0; i < 96; i++)
		want[i] = in[(i + 1) % 96];
	expect("sync_some");
}

/* The box begins at byte 32 of line 270 of the second matrix of 300 lines of 144 bytes. In shared memory the 16 bytes at c of line
 * r of 128 are at c xor r mod 8. */
static void tensor_copy(void)
{
	run("tensor_copy");
	memset(want, 0, 64 * 128);
	for (int r = 0; r < 64; r++)
		for (int c = 0; c < 8; c++)
			if (270 + r < 300 && 32 + 16 * c < 144)
				memcpy(want + r * 32 + (c ^ r % 8) * 4, in + (300 + 270 + r) * 36 + 8 + c * 4, 16);
	expect("tensor_copy");
}

/* a: 64 lines of 128 bytes, b: 256 lines. */
static void wgmma(const char *name, bool a, bool b)
{
	run(name);
	for (int row = 0; row < 64; row++)
		for (int column = 0; column < 256; column++) {
			uint32_t sum = 0;

			for (int k = 0; k < 128; k++)
				sum += (uint32_t)(byte(in + row * 32, k, a) * byte(in + 2048 + column * 32, k, b));
			want[row * 256 + column] = sum;
		}
	expect(name);
}

int main(void)
{
	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		copies();
		async();
		widen();
		powers();
		dp4a();
		matrices();
		mma("mma_s8s8", false, false);
		mma("mma_u8s8", true, false);
		mma("mma_s8u8", false, true);
		mma("mma_u8u8", true, true);
		turned();
		pairs("pair_f16", false);
		pairs("pair_bf16", true);
		fma_pairs("fma_f16", false);
		fma_pairs("fma_bf16", true);
		permute();
		mma_16("mma_f16");
		mma_16("mma_bf16");
		barrier();
		sync_some();
		tensor_copy();
		wgmma("wgmma_s8s8", false, false);
		wgmma("wgmma_u8s8", true, false);
		wgmma("wgmma_s8u8", false, true);
		wgmma("wgmma_u8u8", true, true);
	}
	gpu_close(&g);
	return check_end();
}
