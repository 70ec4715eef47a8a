#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/gpu_check.lua: the folder that it packs runs in another place, without an environment, on cudaemu; a stage that ends badly is a
# row, and the others run; without a device the reason is said.
# gpu_check.sh QUOLL BUILD
cd "$(dirname "$0")/../.." || exit 1
quoll=$1 build=$2
skip() {
	echo "skipped: gpu_check: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
check() { # NAME COMMAND ARGUMENT...
	name=$1
	shift
	if "$@" >/dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$name: failed"
		cat "$folder/log"
	fi
}
no() { ! "$@"; }
table=$folder/elsewhere/gpu_check.txt
run() { # VARIABLE... -- STAGE...
	set -- "$@"
	variables=
	while [ "$1" != -- ]; do
		variables="$variables $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	(cd / && env -i $variables "$folder/elsewhere/run.sh" cudaemu "$@") >"$folder/log" 2>&1
}

[ -e "$build/quoll_cudaemu.so" ] || skip 'the emulation is not built'
grep -q __asan_init "$quoll" && skip 'the sanitizer does not run without its environment'
"$quoll" scripts/gpu_check.lua pack "$folder/packed" "$build" >"$folder/log" 2>&1
check 'at most 64 MiB' [ $? -eq 0 ]
mv "$folder/packed" "$folder/elsewhere"
check 'a run' run -- wrappers quantize weights torch residency
check 'wrappers' grep -q '^wrappers  wrappers of PTX  *passed' "$table"
check 'times' grep -q '^quantize  row-wise quantize f16 to int8.* measured ' "$table"
check 'what is missing is named' grep -q '^torch     attention f16 / SDPA.* missing  goal 0.50: it is for a GPU' "$table"
check 'bytes of a step' grep -q '^residency bytes of a step beyond batch and loss  *reached  0 bytes' "$table"
check 'no failure' no grep -q ' failed ' "$table"
check 'as many lines as were printed' [ "$(wc -l <"$table")" -eq "$(wc -l <"$folder/log")" ]

{
	# shellcheck disable=SC2016 # Lua
	echo 'if arg[1] == "weights" then print "first" error "of the test" end if arg[1] == "lines" then os.exit(7) end'
	cat "$folder/elsewhere/gpu_stages.lua"
} >"$folder/stages"
mv "$folder/stages" "$folder/elsewhere/gpu_stages.lua"
mkdir "$folder/out"
table=$folder/out/gpu_check.txt
check 'a failure ends the run so' no run "OUT=$folder/out" -- weights lines residency
check 'an error' grep -q '^weights   stage  *failed .*of the test' "$table"
check 'an end' grep -q '^lines     stage  *failed  *exit 7' "$table"
check 'the rest' grep -q '^residency bytes of a step .* reached ' "$table"
check 'no device' no run QUOLL_EMU_NONE=1 -- residency
check 'why' grep -q '^machine   cudaemu  *failed  *[a-z]' "$folder/elsewhere/gpu_check.txt"
check 'then nothing else' no grep -q '^residency' "$folder/elsewhere/gpu_check.txt"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
