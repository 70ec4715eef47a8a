#!/bin/sh
# SPDX-License-Identifier: MIT
# The layout of all C files is that of .clang-format, by clang-format 14, Debian's: other versions lay some lines out otherwise.
cd "$(dirname "$0")/.." || exit 1
if ! command -v clang-format >/dev/null; then
	echo 'skipped: format: clang-format is not installed'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
version=$(clang-format --version)
case $version in
*'version 14.'*) ;;
*)
	echo "skipped: format: wanted clang-format 14, got $version"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
	;;
esac
wrong=$(find tensor quant nn gpu interp tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror 2>&1 | sed -n 's/: error: code should be clang-formatted.*//p')
if [ -n "$wrong" ]; then
	echo "$wrong"
	echo 'clang-format -i FILE lays a file out'
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
echo '1 passed, 0 failed, 0 skipped'
