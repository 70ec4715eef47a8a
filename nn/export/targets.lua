-- SPDX-License-Identifier: MIT
-- The processors of target=: tiles with their instructions, behind #if, and beside each the plain loop over the same layout that other
-- processors compile. Weights are panels of `lanes` outputs, (n / lanes, k / 4, lanes, 4), so that one vector has four codes of each
-- output, with zeros behind n and k. Sums of a row are whole panels.
--   lanes, rows, outputs   of a panel, of a tile, of a tile
--   tile, cells            parts; cells is nil where the plain copy serves
--   finish                 the part that makes 8-bit codes of sums by the float rule, or nil
--   over                   whether tiles read all rows, also those behind the last
--   signed                 whether cells are signed bytes, for instructions that multiply no others
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local parts = internal.import 'nn/export/parts'
local targets = {list = {}} -- by name, too

local function add(name, t)
	targets.list[#targets.list + 1], targets[name], t.name = t, t, name
	t.sizes = 'sizes' .. t.word
	parts.add(t.sizes, {text = ([[
#define Q_ROWS %d /* of a tile */
#define Q_OUTPUTS %d /* of a tile: their sums are on the stack */
#ifdef __GNUC__
#define Q_ALIGNED __attribute__((aligned(%d)))
#else
#define Q_ALIGNED
#endif
]]):format(t.rows, t.outputs, 4 * t.lanes)})
	parts.add('tile' .. t.word, {needs = {{t.sizes}}, text = ([[
/* Sums (rows, width) of rows of x, `step` apart, with n outputs of w in panels of @LANES@: @WHAT@. */
#if @CONDITION@
@FAST@#else
static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t i, j, l, t;

	(void)k;
	for (i = 0; i < rows; i++)
		for (j = 0; j < n; j++) {
			const int8_t *from = w + j / @LANES@ * @LANES@ * pitch + j % @LANES@ * 4;
			int32_t s = 0;

			for (t = 0; t < pitch; t += 4, from += 4 * @LANES@)
				for (l = 0; l < 4; l++)
					s += @CELL@x[i * step + t + l] * from[l];
			sum[i * width + j] = s;
		}
}
#endif
]]):gsub('@(%u+)@', {LANES = tostring(t.lanes), CONDITION = t.condition, CELL = t.signed and '(int8_t)' or '', FAST = t.fast, WHAT = t.what})})
end

-- Sums of R rows by P panels stay in registers, for which the loops over constants must be unrolled.
local SHAPES = [[
#ifdef __clang__
#define Q_UNROLL
#else
#define Q_UNROLL _Pragma("GCC unroll 16")
#endif
#define Q_SHAPE(R, P) \
	static void ${name}_##R(const uint8_t *x, int64_t step, const int8_t *w, int32_t n, \
		int64_t pitch, int32_t *sum, int64_t width) \
	{ \
		const int8_t *from[P]; \
		Q_VECTOR all[R][P]; \
		Q_BYTES b[P], a; \
		int64_t i, r, p; \
\
		Q_UNROLL for (p = 0; p < P; p++) { \
			from[p] = w + (p * Q_LANES < n ? p : 0) * Q_LANES * pitch; \
			Q_UNROLL for (r = 0; r < R; r++) \
				all[r][p] = Q_ZERO(); \
		} \
		for (i = 0; i < pitch; i += 4) { \
			Q_UNROLL for (p = 0; p < P; p++) \
				b[p] = Q_LOAD(from[p] + i * Q_LANES); \
			Q_UNROLL for (r = 0; r < R; r++) { \
				int32_t four; \
\
				memcpy(&four, x + r * step + i, 4); \
				a = Q_SPREAD(four); \
				Q_UNROLL for (p = 0; p < P; p++) \
					all[r][p] = Q_DOT(all[r][p], a, b[p]); \
			} \
		} \
		Q_UNROLL for (p = 0; p < P; p++) \
			if (p * Q_LANES < n) \
				Q_UNROLL for (r = 0; r < R; r++) \
					Q_STORE(sum + r * width + p * Q_LANES, all[r][p]); \
	}
]]

local X86 = '#include <immintrin.h>\n' .. SHAPES

local CELLS512 = [[
static void ${name}(const ${x} *x, int32_t n, uint8_t *y)
{
	const int32_t bit = (${x})-1 < 0 ? 128 : 0;
	const __m128i bits = _mm_set1_epi8((char)bit);
	int32_t i, at;

	for (i = 0; n < 16 && i < n; i++)
		y[i] = (uint8_t)(x[i] + bit);
	for (; i < n; i += 16) {
		at = i + 16 < n ? i : n - 16; /* the last overlap */
		_mm_storeu_si128((__m128i *)(void *)(y + at), _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(x + at)), bits));
	}
}
]]
local FINISH512 = [[
static void ${name}(const int32_t *sum, int32_t rows, int32_t width, int32_t from, int32_t some, const int32_t *bias, const float *factor,
	const struct q_codes *c, ${y} *y, int32_t n)
{
	const __m512 lo = _mm512_set1_ps(c->lo), hi = _mm512_set1_ps(c->hi);
	const __m512i zero = _mm512_set1_epi32(c->zero), least = _mm512_set1_epi32(c->relu ? 0 : INT32_MIN);
	int32_t i, j;

	(void)q_round; /* what this does */
	for (j = 0; j < some; j += 16) {
		__mmask16 part = (__mmask16)(0xffff >> (some - j < 16 ? 16 - (some - j) : 0));
		__m512i add = _mm512_maskz_loadu_epi32(part, bias + from + j);
		__m512 times = _mm512_maskz_loadu_ps(part, factor + from + j);

		for (i = 0; i < rows; i++) {
			__m512i s = _mm512_add_epi32(_mm512_loadu_si512(sum + i * width + j), add);
			__m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_max_epi32(s, least)), times);

			Q_CODES(v, y + i * n + from + j, part);
		}
	}
}
]]

add('avx512vnni', {word = '512', lanes = 16, rows = 16, outputs = 64, over = true, cells = CELLS512, finish = FINISH512,
	condition = 'defined __AVX512VNNI__ && defined __AVX512BW__ && defined __AVX512VL__', what = 'vpdpbusd', fast = X86 .. [[
#define Q_VECTOR __m512i
#define Q_BYTES __m512i
#define Q_LANES 16
#define Q_ZERO() _mm512_setzero_si512()
#define Q_LOAD(p) _mm512_loadu_si512(p)
#define Q_SPREAD(x) _mm512_set1_epi32(x)
#define Q_DOT(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define Q_STORE(p, v) _mm512_storeu_si512(p, v)
/* q_round(v, lo, hi, zero) of the numbers v in the mask `part` */
#define Q_CODES(v, y, part) \
	do { \
		__m512 known = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v); \
		__m512i codes = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(known, lo), hi)); \
\
		if (part == 0xffff) \
			_mm_storeu_si128((__m128i *)(void *)(y), _mm512_cvtepi32_epi8(_mm512_add_epi32(codes, zero))); \
		else \
			_mm512_mask_cvtepi32_storeu_epi8(y, part, _mm512_add_epi32(codes, zero)); \
	} while (0)
Q_SHAPE(1, 4)
Q_SHAPE(4, 4)
Q_SHAPE(8, 2)
Q_SHAPE(16, 1)

static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t i;

	(void)k;
	if (rows == 1)
		${name}_1(x, step, w, n, pitch, sum, width);
	else if (n > 32)
		for (i = 0; i < rows; i += 4)
			${name}_4(x + i * step, step, w, n, pitch, sum + i * width, width);
	else if (n > 16)
		for (i = 0; i < rows; i += 8)
			${name}_8(x + i * step, step, w, n, pitch, sum + i * width, width);
	else
		${name}_16(x, step, w, n, pitch, sum, width);
}
]]})

-- vpmaddubsw would saturate, so without vpdpbusd the bytes at even and at odd places become words, which vpmaddwd adds without loss;
-- compilers do this once for each vector of bytes of a tile.
add('avx2', {word = '256', lanes = 8, rows = 8, outputs = 16, over = true, condition = 'defined __AVX2__', what = 'vpmaddwd or vpdpbusd',
	fast = X86 .. [[
#define Q_VECTOR __m256i
#define Q_BYTES __m256i
#define Q_LANES 8
#define Q_ZERO() _mm256_setzero_si256()
#define Q_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define Q_SPREAD(x) _mm256_set1_epi32(x)
#ifdef __AVXVNNI__
#define Q_DOT(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#else
#define Q_EVEN(a, b) _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8))
#define Q_ODD(a, b) _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8))
#define Q_DOT(sum, a, b) _mm256_add_epi32(_mm256_add_epi32(sum, Q_EVEN(a, b)), Q_ODD(a, b))
#endif
#define Q_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
Q_SHAPE(1, 2)
Q_SHAPE(4, 2)

static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t i;

	(void)k;
	if (rows == 1)
		${name}_1(x, step, w, n, pitch, sum, width);
	else
		for (i = 0; i < rows; i += 4)
			${name}_4(x + i * step, step, w, n, pitch, sum + i * width, width);
}
]]})

-- Without sdot two sums of each output: two products of 16 bits may not be added in 16 bits (-128 * -128 twice is 2^15).
add('neon', {word = 'neon', lanes = 4, rows = 8, outputs = 16, over = true, signed = true,
	condition = 'defined __aarch64__ && defined __ARM_NEON && !defined __ARM_BIG_ENDIAN', what = 'sdot, or smull and sadalp',
	fast = '#include <arm_neon.h>\n' .. SHAPES .. [[
#define Q_BYTES int8x16_t
#define Q_LANES 4
#define Q_LOAD(p) vld1q_s8(p)
#define Q_SPREAD(x) vreinterpretq_s8_s32(vdupq_n_s32(x))
#ifdef __ARM_FEATURE_DOTPROD
#define Q_PANELS 4
#define Q_VECTOR int32x4_t
#define Q_ZERO() vdupq_n_s32(0)
#define Q_DOT(sum, a, b) vdotq_s32(sum, b, a)
#define Q_STORE(p, v) vst1q_s32(p, v)
#else
struct q_halves {
	int32x4_t low, high;
};

static struct q_halves ${name}_zero(void)
{
	struct q_halves s;

	s.low = s.high = vdupq_n_s32(0);
	return s;
}

static struct q_halves ${name}_dot(struct q_halves s, int8x16_t a, int8x16_t b)
{
	s.low = vpadalq_s16(s.low, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
	s.high = vpadalq_s16(s.high, vmull_high_s8(a, b));
	return s;
}

#define Q_PANELS 2
#define Q_VECTOR struct q_halves
#define Q_ZERO ${name}_zero
#define Q_DOT ${name}_dot
#define Q_STORE(p, v) vst1q_s32(p, vpaddq_s32((v).low, (v).high))
#endif
Q_SHAPE(1, Q_PANELS)
Q_SHAPE(4, Q_PANELS)

static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t i, j;

	(void)k;
	for (j = 0; j < n; j += Q_PANELS * Q_LANES)
		if (rows == 1)
			${name}_1(x, step, w + j * pitch, n - j, pitch, sum + j, width);
		else
			for (i = 0; i < rows; i += 4)
				${name}_4(x + i * step, step, w + j * pitch, n - j, pitch, sum + i * width + j, width);
}
]]})

-- Two rows by two outputs, whose codes are the low and the high bytes of words: sxtb16 and uxtb16 make pairs of 16 bits of them.
add('armv7e-m', {word = 'dsp', lanes = 2, rows = 2, outputs = 16, condition = 'defined __GNUC__ && defined __ARM_FEATURE_SIMD32',
	what = 'smlad', fast = [[
#define Q_PAIR(how, word) \
	(__extension__({ \
		uint32_t pair; \
\
		__asm__(how : "=r"(pair) : "r"(word)); \
		pair; \
	}))
#define Q_SMLAD(sum, p, q) __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(p), "r"(q))

static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t j;

	(void)k;
	for (j = 0; j < n; j += 2, sum += 2) {
		const uint8_t *p = x, *q = rows > 1 ? x + step : x, *end = x + pitch;
		uint32_t word, a, b, c, d, e;
		int32_t s = 0, t = 0, u = 0, v = 0;

		do {
			memcpy(&word, p, 4);
			a = Q_PAIR("uxtb16 %0, %1", word);
			b = Q_PAIR("uxtb16 %0, %1, ror #8", word);
			memcpy(&word, q, 4);
			c = Q_PAIR("uxtb16 %0, %1", word);
			d = Q_PAIR("uxtb16 %0, %1, ror #8", word);
			memcpy(&word, w, 4);
			e = Q_PAIR("sxtb16 %0, %1", word);
			Q_SMLAD(s, a, e);
			Q_SMLAD(t, c, e);
			e = Q_PAIR("sxtb16 %0, %1, ror #8", word);
			Q_SMLAD(s, b, e);
			Q_SMLAD(t, d, e);
			memcpy(&word, w + 4, 4);
			e = Q_PAIR("sxtb16 %0, %1", word);
			Q_SMLAD(u, a, e);
			Q_SMLAD(v, c, e);
			e = Q_PAIR("sxtb16 %0, %1, ror #8", word);
			Q_SMLAD(u, b, e);
			Q_SMLAD(v, d, e);
			p += 4;
			q += 4;
			w += 8;
		} while (p < end);
		sum[0] = s;
		sum[1] = u;
		sum[width] = t;
		sum[width + 1] = v;
	}
}
]]})

-- Sums of codes, instead of the part add: float rule, bytes.
local ADD512 = [[
static void ${name}(const ${a} *a, int32_t za, float ma, const ${b} *b, int32_t zb, float mb, int32_t n, float low, float high,
	int32_t zeroes, ${y} *y)
{
	const __m512 lo = _mm512_set1_ps(low), hi = _mm512_set1_ps(high);
	const __m512i zero = _mm512_set1_epi32(zeroes);
	int32_t i;

	for (i = 0; i < n; i += 16) {
		__mmask16 part = (__mmask16)(0xffff >> (n - i < 16 ? 16 - (n - i) : 0));
		__m128i p = _mm_maskz_loadu_epi8(part, a + i), q = _mm_maskz_loadu_epi8(part, b + i);
		__m512i c = (${a})-1 < 0 ? _mm512_cvtepi8_epi32(p) : _mm512_cvtepu8_epi32(p);
		__m512i d = (${b})-1 < 0 ? _mm512_cvtepi8_epi32(q) : _mm512_cvtepu8_epi32(q);
		__m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(c, _mm512_set1_epi32(za))), _mm512_set1_ps(ma));
		__m512 u = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(d, _mm512_set1_epi32(zb))), _mm512_set1_ps(mb));

		v = _mm512_add_ps(v, u);
		Q_CODES(v, y + i, part);
	}
	(void)q_round;
}
]]
targets.avx512vnni.add = ADD512

-- Raises an error for a name that is none.
function targets.refuse(name)
	local known = {}
	for i, t in ipairs(targets.list) do known[i] = t.name end
	base.fail("export: target: wanted %s or none for plain C, got '%.40s'%s", table.concat(known, ' '), name, base.near(name, known))
end

return targets
