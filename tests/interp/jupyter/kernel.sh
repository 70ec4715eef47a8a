#!/bin/sh
# SPDX-License-Identifier: MIT
# labels: full serial
# Runs a script of this folder in the environment of tests/tools/venv.sh: sh kernel.sh QUOLL SCRIPT [arguments]. Skipped by
# name where libzmq5, python3-venv or PyPI is not to be had.
set -u
quoll=$1 script=$2
shift 2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
skip() { printf 'skipped: %s: %s\n0 passed, 0 failed, 1 skipped\n' "$script" "$1"; exit 0; }

"$quoll" doctor | grep -q 'libzmq 4' || skip 'there is no libzmq5'
command -v python3 >/dev/null || skip 'there is no python3'
package=
if [ "$script" = browser.py ]; then
	package=jupyterlab
	command -v chromium >/dev/null || skip 'there is no chromium'
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
# shellcheck disable=SC2086 # none or one
python=$(sh "$here/../../tools/venv.sh" "$quoll" $package) || skip 'python3 makes no environment (python3-venv), or PyPI is not to be reached'
export PYTHONDONTWRITEBYTECODE=1 TMPDIR="$folder"
"$python" -W ignore::ResourceWarning "$here/$script" "$quoll" "$@"
