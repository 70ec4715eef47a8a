#!/bin/sh
# SPDX-License-Identifier: MIT
# Every function and variable that other files can see is used by another object file: what only its own file uses is static.
# statics.sh BUILD_FOLDER
cd "${1:?wanted the folder of a build}" || exit 1
if ! command -v nm >/dev/null; then
	echo 'skipped: statics: nm is not installed'
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
# ql_reader_memory: only the fuzzers call it, which other builds do not have; ql_grid_none: declared with all grids of formats.def
found=$(find . -name 'libquoll_*.a' -exec nm -A {} + -o -path '*quoll.dir*' -name '*.o' -exec nm -A {} + -o -path './tests/*.o' -exec nm -A {} + 2>/dev/null | awk '
	$NF !~ /^ql_/ || $NF == "ql_reader_memory" || $NF == "ql_grid_none" { next }
	$(NF - 1) == "U" { used[$NF] = 1; next }
	$(NF - 1) ~ /^[TDBR]$/ && $1 ~ /\.a:/ { sub(/:[0-9a-f]*$/, "", $1); made[$NF] = $1; n++ }
	END {
		if (n < 1000)
			print "wanted the objects of a whole build, found " n " symbols"
		for (name in made)
			if (!(name in used))
				print made[name] ": " name " is used in this file only: wanted static"
	}')
if [ -n "$found" ]; then
	echo "$found"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
echo '1 passed, 0 failed, 0 skipped'
