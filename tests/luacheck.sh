#!/bin/sh
# SPDX-License-Identifier: MIT
# luacheck, Debian's lua-check, finds nothing in the Lua files: no unused, overwritten or undefined variable (.luacheckrc).
cd "$(dirname "$0")/.." || exit 1
if ! command -v luacheck >/dev/null; then
	echo 'skipped: luacheck: it is not installed'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
version=$(luacheck --version | sed -n 's/^Luacheck: *//p')
case $version in
1.*) ;; # 0.x does not know Lua 5.4
*)
	echo "skipped: luacheck: wanted luacheck 1, got '$version'"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
	;;
esac
found=$(find tensor quant nn gpu interp scripts tutorials tests -name '*.lua' ! -path 'tests/golden/*' -print0 |
	xargs -0 luacheck --no-cache --no-color --codes --formatter plain 2>&1)
status=$?
if [ $status != 0 ] || [ -n "$found" ]; then
	echo "$found"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
echo '1 passed, 0 failed, 0 skipped'
