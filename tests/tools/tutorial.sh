#!/bin/sh
# SPDX-License-Identifier: MIT
# tutorial.sh QUOLL TUTORIAL ROOT SCRATCH: runs a tutorial with --quick in a scratch folder, where its pictures go. A
# tutorial that reads data says "input: real (…)" or "input: procedural …, because …"; the second is a failure where
# there is a data folder, and a skip where there is none. The pictures that the tutorial names are PNGs then.
name=${2#"$3/"}
mkdir -p "$4" && cd "$4" && rm -rf out || exit 1
[ ! -d "$3/data" ] || ln -sfn "$3/data" data
"$1" test "$2" -- --quick >log 2>&1
status=$?
sed '$d' log
read -r passed _ failed _ skipped _ <<-END
	$(tail -n 1 log)
END
case $passed$failed$skipped in
'' | *[!0-9]*) tail -n 1 log && echo "$name: died (status $status)" && exit 1 ;;
esac
if ! grep -q '^input: ' log; then
	echo 'input: reads none'
elif ! grep -q '^input: procedural' log; then
	passed=$((passed + 1))
elif [ -d data ] || [ -n "${QUOLL_DATA-}" ]; then
	echo "$name: procedural input, though there is a data folder" && failed=$((failed + 1))
else
	echo "skipped: real input: no data folder (QUOLL_DATA, ./data)" && skipped=$((skipped + 1))
fi
for picture in $(grep -o "'out/[0-9a-z_]*\.png'" "$2" | tr -d "'"); do
	if [ "$(head -c 8 "$picture" | od -A n -t x1 | tr -d ' ')" = 89504e470d0a1a0a ]; then
		passed=$((passed + 1))
	else
		echo "$name: $picture is not a PNG" && failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
