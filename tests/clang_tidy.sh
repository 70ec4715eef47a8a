#!/bin/sh
# SPDX-License-Identifier: MIT
# clang-tidy, Debian's 14, finds nothing in the C files of the last commit and of what is not committed yet (.clang-tidy has the
# checks). It takes seconds a file: after SECONDS_MOST no further file is begun, and those left out are counted.
# clang_tidy.sh BUILD_FOLDER [FILE ...]
cd "$(dirname "$0")/.." || exit 1
SECONDS_MOST=${SECONDS_MOST:-15}
build=${1:?wanted the folder of a build}
shift
skip() {
	echo "skipped: clang_tidy: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}
command -v clang-tidy >/dev/null || skip 'clang-tidy is not installed'
version=$(clang-tidy --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
[ "$version" = 14 ] || skip "wanted clang-tidy 14, got $version"
[ -f "$build/compile_commands.json" ] || skip "$build has no compile_commands.json"
if [ $# = 0 ]; then
	git rev-parse -q --verify HEAD~1 >/dev/null 2>&1 || skip 'there is no commit before the last'
	# shellcheck disable=SC2046
	set -- $(git diff --name-only --diff-filter=d HEAD~1 -- '*.c')
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
stop=$(($(date +%s) + SECONDS_MOST))
export build stop
for file; do
	grep -q "\"file\": \".*/$file\"" "$build/compile_commands.json" && echo "$file"
done | xargs -r -P "$(nproc)" -n 1 sh -c '
	if [ "$(date +%s)" -ge "$stop" ]; then
		echo "left out: $0"
		exit 0
	fi
	set -- --extra-arg-before=-include --extra-arg-before=tests/tools/clang_tidy.h
	[ "$0" != tensor/base.c ] || set -- # it defines ql_fail, which is a macro there
	found=$(clang-tidy --quiet -p "$build" "$@" "$0" 2>/dev/null) ||
		printf "%s\n" "wrong: $0" "$found"
' >"$log"
left=$(grep -c '^left out: ' "$log")
[ "$left" = 0 ] || echo "$left of $# files were left out after $SECONDS_MOST s"
if grep -q '^wrong: ' "$log"; then
	grep ': error: ' "$log" || grep -v '^left out: ' "$log"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
echo '1 passed, 0 failed, 0 skipped'
