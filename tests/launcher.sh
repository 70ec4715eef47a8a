#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the launcher on a tiny project: sh tests/launcher.sh SCRATCH-FOLDER (which is emptied), from the repository's
# root. The scratch folder's name should have a blank in it.
set -u
passed=0 failed=0
repository=$PWD scratch=$1
rm -rf "$scratch" && mkdir -p "$scratch/the project" "$scratch/elsewhere" || exit 1
scratch=$(cd "$scratch" && pwd -P)
tree="$scratch/the project"
unset QUOLL_PRESET

# check 'what' 'wanted' 'got': equal, or got matches the pattern.
check() {
	case $3 in
	$2) passed=$((passed + 1)) ;;
	*) failed=$((failed + 1)) && printf 'launcher.sh: failed: %s\n  wanted: %s\n  got: %s\n' "$1" "$2" "$3" ;;
	esac
}

# Sources older than anything that is built now, so that the tests need not wait for the clock.
old() { find "$tree" -path '*/build' -prune -o -exec touch -d '1 hour ago' {} +; }
program() { printf '#include <stdio.h>\nint main(int n, char **v) { printf("%s %%d %%s\\n", n - 1, n > 1 ? v[n - 1] : ""); return %d; }\n' "$1" "$2" >"$tree/interp/main.c"; }

cd "$tree" || exit 1
mkdir tensor quant nn gpu interp tests
cp "$repository/quoll" "$repository/CMakePresets.json" . && cp "$repository/tests/summary.awk" tests/
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(quoll LANGUAGES C)
add_executable(quoll interp/main.c)
enable_testing()
add_test(NAME counts COMMAND printf "skipped: gpu: there is none\\n3 passed, 0 failed, 1 skipped\\n")
add_test(NAME plain COMMAND quoll)
set_tests_properties(plain PROPERTIES LABELS quick)
END
program one 0
old

check 'first run builds and passes arguments on' 'one 2 b c' "$(./quoll a 'b c' 2>"$scratch/err")"
check 'says so in one line' 'quoll: building * done in * s' "$(cat "$scratch/err")"
check 'second run builds nothing' '' "$(./quoll 2>&1 >"$scratch/out")"
cd "$scratch/elsewhere" && ln -s '../the project/quoll' link && ln -s link again
check 'from another folder through symbolic links' 'one 1 x' "$(./again x 2>&1)"
check 'through PATH' 'one 1 x' "$(PATH=$scratch/elsewhere:$PATH link x 2>&1)"
cd "$tree" && check 'by sh' 'one 0 ' "$(sh quoll 2>&1)"

program two 7
check 'a changed source is built' 'two 0 ' "$(./quoll 2>/dev/null)"
./quoll >/dev/null 2>&1
check 'exit status is handed on' 7 $?

echo 'int broken(' >>interp/main.c
check 'a failed build shows why, runs nothing' '*main.c:3:*error*the whole log is*' "$(./quoll 2>&1)"
check 'and runs nothing the second time' '' "$(./quoll 2>/dev/null)"
./quoll >/dev/null 2>&1
check 'and its status is 1' 1 $?

program three 0
./quoll >"$scratch/first" 2>&1 & one=$!
./quoll >"$scratch/second" 2>&1 & two=$!
wait $one && wait $two
check 'two at once: both good' 0 $?
check 'two at once: one builds' 1 "$(cat "$scratch/first" "$scratch/second" | grep -c building)"
check 'two at once: both run' 2 "$(cat "$scratch/first" "$scratch/second" | grep -c '^three 0')"

check 'test: counts cases' '4 passed, 0 failed, 1 skipped' "$(./quoll test 2>/dev/null | tail -n 1)"
check 'test: says why it skipped' '*  counts: gpu: there is none*' "$(./quoll test 2>/dev/null)"
check 'test: hands options on' '1 passed, 0 failed, 0 skipped' "$(./quoll test -L quick 2>/dev/null | tail -n 1)"
check 'test FILE goes to the program' 'three 2 file.lua' "$(./quoll test file.lua 2>/dev/null | tail -n 1)"
./quoll test -R nothing-of-this-name >/dev/null 2>&1
check 'test: no tests is a failure' 1 $(($? != 0))
program three 1
check 'test: a failure is counted' '3 passed, 1 failed, 1 skipped' "$(./quoll test 2>/dev/null | tail -n 1)"
./quoll test >/dev/null 2>&1
check 'test: status of a failure' 1 $(($? != 0))

program four 0
mv "$tree" "$scratch/moved" && tree="$scratch/moved" && cd "$tree"
check 'a moved tree is configured again' 'four 0 ' "$(./quoll 2>/dev/null)"

# Machines without the tools: a PATH that has what every Debian has, and nothing more.
mkdir "$scratch/bin" && rm -rf build
for tool in sh readlink find sort tr id mkdir flock date sed tail grep touch cat env printf rm mv; do
	ln -s "$(command -v $tool)" "$scratch/bin/$tool"
done
bare() { PATH=$scratch/bin sh ./quoll 2>&1; }
check 'no apt-get: names what is missing' '*no apt-get*cmake*gcc*libc6-dev*liblua5.4-dev*ninja-build*' "$(bare)"
printf '#!/bin/sh\necho "apt-get $*" >>"%s/apt.log"\nexit 1\n' "$scratch" >"$scratch/bin/apt-get"
chmod +x "$scratch/bin/apt-get"
rm "$scratch/bin/id" && printf '#!/bin/sh\necho 1000\n' >"$scratch/bin/id" && chmod +x "$scratch/bin/id"
check 'no root: the one command' "*sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends *gcc*" "$(bare)"
check 'no root: apt-get is not called' '' "$(cat "$scratch/apt.log" 2>/dev/null)"
printf '#!/bin/sh\necho 0\n' >"$scratch/bin/id"
check 'root: says what it installs; a failure ends it' 'quoll: installing with apt-get: cmake gcc *failed*' "$(bare)"
check 'root: apt-get is called' '*apt-get update*' "$(cat "$scratch/apt.log")"

cd / && rm -rf "$scratch"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
