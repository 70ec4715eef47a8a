#!/bin/sh
# SPDX-License-Identifier: MIT
# The objects of kernels hold the instructions that they are named after, and those of the baseline hold none of them, by disassembly: a compiler that
# knows no such instruction, or a flag that is lost, would give a slow kernel with right results.
# instructions.sh BUILD
folder=$1/CMakeFiles/quoll_tensor.dir/tensor/kernels
passed=0 failed=0
if ! command -v objdump >/dev/null; then
	echo 'skipped: instructions: no objdump'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
check() { # whether KERNEL has (or, with `not`, has not) a line of the PATTERN
	wanted=has
	[ "$1" = not ] && { wanted=not; shift; }
	found=$(objdump -d --no-show-raw-insn "$folder/$1.c.o" | grep -cE "$2")
	if { [ $wanted = has ] && [ "$found" -gt 0 ]; } || { [ $wanted = not ] && [ "$found" -eq 0 ]; }; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$1: $wanted: $2: $found lines"
	fi
}
[ -f "$folder/gemm_i8_ref.c.o" ] || { echo "no objects in $folder"; exit 1; }
case $(objdump -f "$folder/gemm_i8_ref.c.o") in
*x86-64*) ;;
*)
	echo 'skipped: instructions: not x86-64'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
	;;
esac
for family in gemm_i8 limit; do
	check ${family}_avx512vnni 'vpdpbusd .*%zmm'
	check ${family}_avxvnni 'vpdpbusd .*%ymm'
	check not ${family}_avxvnni '%zmm'
	check not ${family}_avx2 'vpdpbusd|%zmm'
done
check taps_i16_avx512vnni 'vpdpwssd .*%zmm'
check taps_i16_avxvnni 'vpdpwssd .*%ymm'
check gemm_b1_avx512popcnt 'vpopcntq .*%zmm'
check gemm_f32_avx512 'vfmadd.*%zmm'
check gemm_f32_avx2 'vfmadd.*%ymm'
check not gemm_f32_ordered_avx512 'vfmadd'
check limit_amx 'tdpbusd'
check limit_avx512 'vpmaddwd .*%zmm'
for object in "$folder"/*_ref.c.o "$folder"/kernels.c.o; do
	name=${object##*/}
	check not "${name%.c.o}" '%ymm|%zmm'
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
