#!/bin/sh
# SPDX-License-Identifier: MIT
# labels: full serial
# Runs a script of this folder in an environment of its own from PyPI: sh kernel.sh QUOLL SCRIPT [arguments]. Skipped by
# name where libzmq5, python3-venv or PyPI is not to be had.
set -u
quoll=$1 script=$2
shift 2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
skip() { printf 'skipped: %s: %s\n0 passed, 0 failed, 1 skipped\n' "$script" "$1"; exit 0; }

"$quoll" doctor | grep -q 'libzmq 4' || skip 'there is no libzmq5'
command -v python3 >/dev/null || skip 'there is no python3'
packages='jupyter_kernel_test nbconvert'
if [ "$script" = browser.py ]; then
	packages='jupyterlab nbconvert'
	command -v chromium >/dev/null || skip 'there is no chromium'
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$folder/venv" >"$folder/log" 2>&1 || skip 'python3 makes no environment (python3-venv)'
# shellcheck disable=SC2086 # several words
"$folder/venv/bin/pip" install -q --disable-pip-version-check $packages >"$folder/log" 2>&1 ||
	skip 'PyPI is not to be reached'
export PYTHONDONTWRITEBYTECODE=1 TMPDIR="$folder"
"$folder/venv/bin/python" -W ignore::ResourceWarning "$here/$script" "$quoll" "$@"
