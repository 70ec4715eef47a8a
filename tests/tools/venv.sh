#!/bin/sh
# SPDX-License-Identifier: MIT
# venv.sh QUOLL [PACKAGE ...]: prints the Python of an environment that has what the tests use of PyPI, and these packages. It lies
# beside the tests of a build and is made by the first test that wants it. Fails where python3-venv or PyPI is not to be had.
packages='jupyter_kernel_test nbconvert jupytext nbformat lxml'
folder=$(dirname "$(readlink -f "$1")")/tests/venv
shift
mkdir -p "$folder" || exit 1
exec 9>"$folder.lock"
! command -v flock >/dev/null || flock 9
for package in $packages "$@"; do
	grep -qx "$package" "$folder/has" 2>/dev/null || wanted="${wanted-} $package"
done
if [ -n "${wanted-}" ]; then
	[ -x "$folder/bin/pip" ] || python3 -m venv "$folder" >"$folder.log" 2>&1 || exit 1
	# shellcheck disable=SC2086 # several words
	"$folder/bin/pip" install -q --disable-pip-version-check $wanted >"$folder.log" 2>&1 9>&- || exit 1
	printf '%s\n' $wanted >>"$folder/has"
fi
echo "$folder/bin/python"
