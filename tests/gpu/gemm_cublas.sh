#!/bin/sh
# SPDX-License-Identifier: MIT
# What gemm_cublas.cu asks of cuBLASLt, with a library that multiplies on the host, as there may be no GPU. Needs nvcc and the header.
# gemm_cublas.sh NVCC
cd "$(dirname "$0")/../.." || exit 1
skip() {
	echo "skipped: gemm_cublas: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}
fail() {
	cat "$folder/log"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
}
nvcc=${1-}
command -v "$nvcc" >/dev/null || skip 'nvcc is not installed'
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf '#include <cublasLt.h>\nint version = CUBLAS_VER_MAJOR;\n' >"$folder/header.cu"
"$nvcc" -E "$folder/header.cu" >"$folder/log" 2>&1 || skip 'cublasLt.h is not installed'
version=$(sed -n 's/^int version = \([0-9]*\).*/\1/p' "$folder/log")
"$nvcc" -I. -shared -Xcompiler=-fPIC -o "$folder/libcublasLt.so.$version" tests/tools/cublas_mock.c \
	-cudart none >"$folder/log" 2>&1 || fail
{
	"$nvcc" -I. -DcudaGetDevice=only_device -c -o "$folder/library.o" gpu/cuda/library.c &&
		"$nvcc" -std=c++17 -I. -arch=sm_80 -o "$folder/check" tests/tools/cublas_check.cu "$folder/library.o" -cudart static \
			-Xlinker -ldl
} >"$folder/log" 2>&1 || fail
QUOLL_CUDA_LIBDIR=$folder "$folder/check"
