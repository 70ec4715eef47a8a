#!/bin/sh
# SPDX-License-Identifier: MIT
# What conv_cudnn.cu asks of cuDNN, with a library that convolves on the host, as there may be no GPU. Its kernels are built as by
# the emulation. Needs nvcc, by which the header is found, and a C++ compiler.
# conv_cudnn.sh NVCC CC CXX
cd "$(dirname "$0")/../.." || exit 1
skip() {
	echo "skipped: conv_cudnn: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}
fail() {
	cat "$folder/log"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
}
nvcc=${1-} cc=${2:-cc} cxx=${3:-c++}
command -v "$nvcc" >/dev/null || skip 'nvcc is not installed'
command -v "$cxx" >/dev/null || skip 'there is no C++ compiler'
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
printf '#include <cudnn.h>\nint version = CUDNN_MAJOR;\n' >"$folder/header.cu"
"$nvcc" -E "$folder/header.cu" >"$folder/log" 2>&1 || skip 'cudnn.h is not installed'
version=$(sed -n 's/^int version = \([0-9]*\).*/\1/p' "$folder/log")
headers=$(sed -n 's/^# [0-9]* "\(.*\)\/\(cudnn\|library_types\)\.h".*/-idirafter \1/p' "$folder/log" | sort -u)
mkdir "$folder/emu"
echo '#include <cuda_runtime.h>' >"$folder/emu/cuda_runtime_api.h" # of the emulation
flags="-O1 -g -fno-strict-aliasing -ffp-contract=off -Wno-deprecated-declarations -I$folder/emu -Igpu/emu -I. $headers"
# shellcheck disable=SC2086 # words
{
	"$cc" -std=gnu11 $flags -shared -fPIC -o "$folder/libcudnn.so.$version" tests/tools/cudnn_mock.c &&
		"$cc" -std=gnu11 $flags -c -o "$folder/library.o" gpu/cuda/library.c &&
		"$cxx" -std=gnu++17 $flags -DQL_CUDNN_MOCK -x c++ -c -o "$folder/check.o" tests/tools/cudnn_check.cu &&
		"$cxx" -o "$folder/check" "$folder/check.o" "$folder/library.o" -ldl
} >"$folder/log" 2>&1 || fail
QUOLL_CUDA_LIBDIR=$folder "$folder/check"
