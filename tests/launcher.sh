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
unset QUOLL_PRESET CC LD_LIBRARY_PATH PLPLOT_DRV_DIR
export QUOLL_INSTALL=no QUOLL_CUDA=0 # whatever this machine lacks, or has

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
mkdir tensor quant nn gpu interp tests scripts
cp "$repository/quoll" "$repository/CMakePresets.json" . && cp "$repository/tests/summary.awk" tests/
echo 'tool program:cmake cmake cmake cmake cmake cmake' >scripts/packages
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

nvcc="$scratch/nvcc"
check 'a GPU without nvcc: the program runs' 'quoll: no module for GPUs: nvcc *' "$(QUOLL_CUDA=1 PATH=/usr/bin:/bin CUDA_HOME=/nowhere ./quoll 2>&1 >/dev/null)"
cat >>CMakeLists.txt <<'END'
find_program(QUOLL_NVCC nvcc PATHS "$ENV{CUDA_HOME}/bin")
if(QUOLL_NVCC)
	file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gpu)
	add_custom_target(quoll_cuda COMMAND test ! -e ${CMAKE_SOURCE_DIR}/gpu/broken.cu
		COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/gpu/quoll_cuda.so VERBATIM)
endif()
END
mkdir -p "$nvcc/bin" && printf '#!/bin/sh\n' >"$nvcc/bin/nvcc" && chmod +x "$nvcc/bin/nvcc"
CUDA_HOME=$nvcc && export CUDA_HOME
program three 0
check 'QUOLL_CUDA=0: no module' 'quoll: building * done in * s' "$(QUOLL_CUDA=0 ./quoll 2>&1 >/dev/null)"
check 'the module is built when nvcc came' 'quoll: building the module for GPUs * done in * s' "$(QUOLL_CUDA=1 ./quoll 2>&1 >/dev/null)"
check 'beside the program' yes "$([ -e build/release/quoll_cuda.so ] && echo yes)"
check 'once' '' "$(QUOLL_CUDA=1 ./quoll 2>&1 >/dev/null)"
echo >gpu/kernel.cu
check 'and again after a change' '*quoll: building the module for GPUs * done in * s' "$(QUOLL_CUDA=1 ./quoll 2>&1 >/dev/null)"
echo >gpu/broken.cu
check 'a failure leaves the program' '*failed*the program runs on the CPU*three 0 ' "$(QUOLL_CUDA=1 ./quoll 2>&1)"
check 'and is not tried again' 'quoll: no module for GPUs: it could not be built; rm *' "$(QUOLL_CUDA=1 ./quoll 2>&1 >/dev/null)"
rm gpu/broken.cu
check 'before a change' '*building the module for GPUs * done in * s' "$(QUOLL_CUDA=1 ./quoll 2>&1 >/dev/null)"
unset CUDA_HOME

program four 0
mv "$tree" "$scratch/moved" && tree="$scratch/moved" && cd "$tree"
check 'a moved tree is configured again' 'four 0 ' "$(./quoll 2>/dev/null)"

# ---- machines without the tools: a PATH that has what every Debian has, and nothing more
unset QUOLL_INSTALL
bin="$scratch/bin" have="$scratch/have" store="$scratch/store"
mkdir "$bin" "$have" "$store" && rm -rf build && cp "$repository/scripts/packages" scripts/
for tool in sh readlink find sort tr mkdir flock date sed tail head grep touch cat env printf rm mv cp cut dirname; do
	ln -s "$(command -v $tool)" "$bin/$tool"
done
fake() { printf '#!/bin/sh\nhave="%s" bin="%s" store="%s"\n%s\n' "$have" "$bin" "$store" "$2" >"$1" && chmod +x "$1"; }
bare() { PATH=$bin sh ./quoll "$@" 2>&1; }
fake "$bin/id" 'cat "$have/.id"'
fake "$bin/uname" 'echo x86_64'
echo 0 >"$have/.id"
check 'no apt-get: names what is missing' '*no apt-get*cmake*gcc*libc6-dev*liblua5.4-dev*ninja-build*not built' "$(bare)"
for other in "dnf:*gcc*lua-devel*xz-devel*sudo sh -c 'dnf install -y *zlib-devel'*" "zypper:*sudo sh -c 'zypper install -y *libpng16-devel*" \
	"pacman:*sudo sh -c 'pacman -S --needed cjson cmake gcc *" 'brew:*  brew install cjson cmake gcc *'; do
	fake "$bin/${other%%:*}" 'echo "called" >"$have/.called"'
	check "${other%%:*}: its names and its command" "${other#*:}" "$(bare)"
	check "${other%%:*}: no name of Debian's" 0 "$(bare | grep -c -e '-dev ' -e apt-get)"
	rm "$bin/${other%%:*}"
done
check 'no other package manager is called' '' "$(cat "$have/.called" 2>/dev/null)"

# An apt-get that makes tools appear in PATH and notes packages in $have; where that is asked, it fails.
fake "$bin/apt-get" '[ "$1" != update ] || exit 0
case " $* " in *" $(cat "$have/.broken" 2>/dev/null) "*) exit 100 ;; esac
while [ "$1" != --no-install-recommends ]; do shift; done; shift
echo "$*" >>"$have/.log"
for package do : >"$have/$package"; [ ! -e "$store/$package" ] || cp "$store/$package"* "$bin/"; done
[ ! -e "$bin/gcc" ] || cp "$bin/gcc" "$bin/cc"; [ ! -e "$bin/ninja-build" ] || cp "$bin/ninja-build" "$bin/ninja"'
# A compiler that has the headers and libraries of the packages that are noted, and repeats the names of files that it lacks.
fake "$store/gcc" 'needs() { [ -e "$have/$1" ] || exit 1; }
case $* in *-print-file-name=*) echo "${1#*=}"; exit ;; esac
needs libc6-dev; source=$(cat)
case $* in *-lcjson*) needs libcjson-dev ;; *-lpng*) needs libpng-dev ;; *-llzma*) needs liblzma-dev ;; *-lprotobuf-nanopb*) needs libnanopb-dev ;;
*-l:liblua5.4.a*) needs liblua5.4-dev ;; *-llua* | *-l:*) exit 1 ;; *-lz*) needs zlib1g-dev ;; *-m32*) needs gcc-12-multilib ;; esac'
fake "$store/ninja-build" :
fake "$store/cmake" 'case $1 in --build) printf "#!/bin/sh\necho ran \$*\n" >"$2/quoll"; PATH=/bin:/usr/bin chmod +x "$2/quoll" ;;
*) cp "$have/make" "$have/make at configuration" 2>/dev/null; mkdir -p build/release; : >build/release/build.ninja; echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt ;; esac'
fake "$store/ctest" 'echo'
libraries="$scratch/a folder of/libraries"
mkdir -p "$libraries/plplot5.15.0/drivers" "$libraries/i386"
: >"$libraries/i386/libsqlite3.so.0"
fake "$bin/ldconfig" "printf '\\tlibsqlite3.so.0 (libc6) => %s\\n' '$libraries/i386/libsqlite3.so.0'
for pair in libplplot17:libplplot.so.17 libsqlite3-0:libsqlite3.so.0 libturbojpeg0:libturbojpeg.so.0 libpcre2-8-0:libpcre2-8.so.0 libutf8proc2:libutf8proc.so.2 libzmq5:libzmq.so.5 libblas3:libblas.so.3; do
	[ ! -e \"\$have/\${pair%:*}\" ] || { : >\"$libraries/\${pair#*:}\"; printf '\\t%s (libc6,x86-64) => %s\\n' \${pair#*:} \"$libraries/\${pair#*:}\"; }
done
if [ -e \"\$have/plplot-driver-cairo\" ]; then : >'$libraries/plplot5.15.0/drivers/cairo.so'; else rm -f '$libraries/plplot5.15.0/drivers/cairo.so'; fi"

packages=$(grep -E '^(tool|build|run) ' scripts/packages | tr -s ' ' | cut -d ' ' -f 3 | sort -u)
reset() { # nothing is built; every package is there but these
	rm -rf build "$have"/* "$have/.log" "$bin/cc" "$bin/gcc" "$bin/cmake" "$bin/ninja"*
	PATH=$bin "$bin/apt-get" --no-install-recommends $packages && rm "$have/.log"
	for package; do
		rm "$have/$package"
		case $package in gcc) rm "$bin/gcc" "$bin/cc" ;; ninja-build) rm "$bin/ninja"* ;; cmake) rm "$bin/cmake" ;; esac
	done
}
reset $packages
echo 1000 >"$have/.id"
check 'no root: the one command' "*sudo sh -c 'apt-get update && apt-get * install -y --no-install-recommends *gcc*" "$(bare)"
check 'no root: apt-get is not called' '' "$(cat "$have/.log" 2>/dev/null)"
echo 0 >"$have/.id"
check 'QUOLL_INSTALL=no: the same' '*sudo sh -c *not built' "$(QUOLL_INSTALL=no PATH=$bin sh ./quoll 2>&1)"
check 'and apt-get is not called' '' "$(cat "$have/.log" 2>/dev/null)"
echo install >"$have/.broken"
check 'root: says what it installs; a failure ends it' 'quoll: installing with apt-get: cmake gcc *failed*not built' "$(bare)"
rm "$have/.broken"
check 'an empty machine gets everything at once, and runs' '*ran 1' "$(bare 1)"
check 'by one call' "$(echo $packages)" "$(cat "$have/.log")"
for package in $packages; do
	reset "$package"
	check "without $package: it is installed" '*ran x' "$(bare x)"
	case $package in gcc | libc6-dev) continue ;; esac # nothing can be linked, so all that is linked may be missing
	check "without $package: and nothing else" "$package" "$(sed 's/ plplot-driver-cairo$//' "$have/.log")"
done
reset
check 'with everything: nothing is installed' 'quoll: building (*) * done in * s
ran' "$(bare)"
reset libplplot17 plplot-driver-cairo
echo plplot-driver-cairo >"$have/.broken"
check 'what only the plots want may be not to be had' '*failed*ran y' "$(bare y)"
rm "$have/.broken"
reset libpng-dev
echo 1000 >"$have/.id"
check 'no root, a library that the launcher does not find: CMake decides' 'quoll: missing: libpng-dev;*ran z' "$(bare z)"
echo 0 >"$have/.id"

tests() { PATH=$bin sh ./quoll test "$@" >/dev/null 2>&1; tr ' ' '\n' <"$have/.log"; }
reset && cp "$store/ctest" "$bin/"
check 'test: its packages are installed' '*clang*gcc-arm-none-eabi*libzmq5*make*qemu-user*tmux*' "$(tests)"
check 'before CMake looks for them' yes "$([ -e "$have/make at configuration" ] && echo yes)"
reset
check 'test after a build without them' no "$(bare >/dev/null; [ -e "$have/make at configuration" ] || echo no)"
tests >/dev/null
check 'CMake looks again' yes "$([ -e "$have/make at configuration" ] && echo yes)"
reset
check 'test -L quick: those of quick tests only' 'clang-format*fish*libblas3*libzmq5*lua-check*make*zsh' "$(tests -L quick)"
check 'no other' 0 "$(tr ' ' '\n' <"$have/.log" | grep -cx -e tmux -e clang -e 'qemu.*')"
reset
fake "$bin/arm-none-eabi-gcc" 'case $1 in *=*) echo "a/name/with/slashes/${1#*=}" ;; esac'
check 'test: a compiler that repeats the name of a file does not have it' '*libnewlib-arm-none-eabi*' "$(tests)"
reset
: >"$scratch/libc.a"
fake "$bin/arm-none-eabi-gcc" "echo '$scratch/libc.a'"
check 'test: one that gives the path of the file has it' 0 "$(tests | grep -c newlib)"
rm "$bin/arm-none-eabi-gcc"
reset
echo make >"$have/.broken"
check 'test: goes on without' '*installing with apt-get*failed*ran' "$(bare test; bare)"
rm "$have/.broken"
check 'every probe is known, every row complete' '' "$(sed '/^#/d' "$repository/scripts/packages" | grep -vE \
	'^(tool|build|run|quick|full) +(program|compiler|lua|links|library|driver|given|file|python):[^ ]* +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+$')"

cd / && rm -rf "$scratch"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
