/* SPDX-License-Identifier: MIT
 * One plain C loop, compiled once per instruction set: QL_SIMD(type, name, (parameters), { body }) defines
 * name_ref, name_avx2, name_avx512 and the table `name[3]`, indexed by ctx->kernels->simd->variant. The loops are
 * vectorised by the compiler; products and sums are never fused and reductions keep a fixed number of lanes,
 * so all variants give the same bits.
 *
 * With QL_EXTRACT, for scripts/device_rows.lua, they become marks before the functions that devices can run, too.
 */
#ifndef QUOLL_TENSOR_VMATH_SIMD_H
#define QUOLL_TENSOR_VMATH_SIMD_H

#define QL_SIMD_VARIANTS 3
#define QL_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#ifdef __clang__
#define QL_TARGET_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")))
#else
#define QL_TARGET_AVX512 \
	__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,prefer-vector-width=512")))
#endif
/* Before a loop over several parts of one array: declares its iterations independent. */
#ifdef __clang__
#define QL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define QL_INDEPENDENT _Pragma("GCC ivdep")
#endif

#ifdef QL_EXTRACT
#define QL_INLINE QL_MARK_INLINE
#define QL_ROW QL_MARK_ROW
#define QL_SIMD(type, name, params, ...) QL_MARK_ROW type name params __VA_ARGS__
#else
#define QL_INLINE static inline __attribute__((always_inline))
/* Before a function of a struct ql_map that is no QL_SIMD. */
#define QL_ROW static
#define QL_SIMD(type, name, params, ...) \
	static type name##_ref params __VA_ARGS__ QL_TARGET_AVX2 static type name##_avx2 params __VA_ARGS__ \
		QL_TARGET_AVX512 static type name##_avx512 params \
			__VA_ARGS__ static type(*const name[QL_SIMD_VARIANTS]) \
				params = {name##_ref, name##_avx2, name##_avx512};
#endif

#endif
