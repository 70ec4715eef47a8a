#!/bin/sh
# SPDX-License-Identifier: MIT
# with_cuda.sh PROGRAM MODULE TEST …: the tests on a GPU, or the reason why not, as a skip. A test is a program (tests/gpu/*.c) or
# the word `lua` with files for `quoll test` behind it. The last line counts the cases of all.
set -u
program=$1 module=$2
shift 2
passed=0 failed=0 skipped=0

skip() { printf 'skipped: cuda: %s\n0 passed, 0 failed, 1 skipped\n' "$1"; exit; }

[ -e "$module" ] || skip 'quoll_cuda.so is not built (QUOLL_CUDA=1 ./quoll builds it where nvcc is)'
export QUOLL_GPU_PLUGIN="$module" QUOLL_TEST_PLUGIN="$module" QUOLL_TEST_DEVICE=cuda
why=$("$program" -e 'local ok, why = gpu.available() if not ok then print(why) end' 2>&1)
[ -z "$why" ] || skip "$why"

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# run COMMAND …: adds its last line to the totals; a command that died before it is one failure.
run() {
	"$@" >"$log" 2>&1
	grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" || echo '0 passed, 1 failed, 0 skipped' >>"$log"
	grep -vE '^[0-9]+ passed, ' "$log" | sed "s|^|${1##*/}: |"
	# shellcheck disable=SC2046 # six words
	set -- $(tail -n 1 "$log")
	passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
}

while [ $# -gt 0 ]; do
	if [ "$1" = lua ]; then
		shift
		run "$program" test "$@"
		break
	fi
	run "$1"
	shift
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
